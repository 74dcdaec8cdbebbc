// SPDX-License-Identifier: Apache-2.0
//
// What the driver sees of an SSD: its registers, and step(), which lets a virtual controller do
// some of its work on the caller's time. A physical SSD works by itself; its step() does nothing.
// The layers above cannot tell which they have.
#pragma once

#include "format/nvme.h"
#include "simt/atomic.h"
#include "simt/warp.h"
#include "ssd/virtual_controller.h"

namespace gofs::ssd {

/// Trivially copyable; lives in kernels' parameters and in the driver's state.
struct ControllerRef {
  uint8_t* bar;                   // BAR 0: Registers, doorbells from 0x1000
  VirtualController* controller;  // null: a physical device behind `bar`

  GOFS_HD format::nvme::Registers& registers() const {
    return *reinterpret_cast<format::nvme::Registers*>(bar);
  }

  /// The doorbell of queue `qid`; `stride_exponent` is CAP.DSTRD.
  GOFS_HD uint32_t* doorbell(uint32_t qid, bool completion, uint32_t stride_exponent) const {
    const uint64_t index = uint64_t{2} * qid + (completion ? 1 : 0);
    return reinterpret_cast<uint32_t*>(bar + format::nvme::kDoorbellOffset +
                                       (index << (2 + stride_exponent)));
  }

  /// Collective. Advances the device: takes new commands of queue `qid`, moves their data, posts
  /// the completions that are due. Returns without waiting for anything.
  GOFS_HD void step(simt::AnyWarp auto warp, uint32_t qid) const {
    if (controller != nullptr) ssd::step(warp, *controller, qid);
  }

  /// The address that a PRP entry holds for memory that the caller sees at `pointer`.
  GOFS_HD uint64_t dma_address(const void* pointer) const {
    return reinterpret_cast<uint64_t>(pointer);
  }
};

}  // namespace gofs::ssd
