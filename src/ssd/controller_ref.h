// SPDX-License-Identifier: Apache-2.0
//
// What the driver sees of an SSD: its registers, the addresses that it knows memory by, and step(),
// which lets a virtual controller do some of its work on the caller's time, and wakes the threads
// that a hosted one is. A physical SSD works by itself; its step() does nothing. The layers above
// cannot tell which they have.
#pragma once

#include "format/nvme.h"
#include "simt/atomic.h"
#include "simt/host_call.h"
#include "simt/warp.h"
#include "ssd/dma_map.h"
#include "ssd/virtual_controller.h"

namespace gofs::ssd {

/// What ControllerRef::nudge is called with.
struct Nudge {
  void* nudged;
  uint32_t qid;
};

/// Trivially copyable; lives in kernels' parameters and in the driver's state.
struct ControllerRef {
  uint8_t* bar;                        // BAR 0: Registers, doorbells from 0x1000
  VirtualController* controller;       // null: it works by itself
  const DmaMap* dma;                   // null: it reaches all memory, by its users' pointers
  simt::HostFunction nudge = nullptr;  // wakes it if it sleeps and a queue has something for it
  void* nudged = nullptr;

  GOFS_HD format::nvme::Registers& registers() const {
    return *reinterpret_cast<format::nvme::Registers*>(bar);
  }

  /// The doorbell of queue `qid`; `stride_exponent` is CAP.DSTRD.
  GOFS_HD uint32_t* doorbell(uint32_t qid, bool completion, uint32_t stride_exponent) const {
    const uint64_t index = uint64_t{2} * qid + (completion ? 1 : 0);
    return reinterpret_cast<uint32_t*>(bar + format::nvme::kDoorbellOffset +
                                       (index << (2 + stride_exponent)));
  }

  /// Collective, uniform. Advances the device: takes new commands of queue `qid`, moves their data,
  /// posts the completions that are due. Returns without waiting for anything; true if that was a
  /// command of an I/O queue.
  GOFS_HD bool step(simt::AnyWarp auto warp, uint32_t qid) const {
    if (controller != nullptr) return ssd::step(warp, *controller, qid);
    if (simt::can_call_host(nudge) && warp.thread_rank() == 0) {
      Nudge call{nudged, qid};
      simt::call_host(nudge, &call);
    }
    return false;
  }

  /// Whether step() of I/O queue `qid` is likely to find something. One lane.
  GOFS_HD bool has_work(uint32_t qid) const {
    return controller != nullptr && ssd::has_work(*controller, qid);
  }

  /// Whether a command that the controller did not abort, and that did not complete either, is done
  /// with memory all the same. Ours is, when it answers the abort; others are not known.
  GOFS_HD bool lets_go_of_lost_commands() const { return controller != nullptr; }

  /// Whether the controller can read and write `bytes` at `memory`.
  GOFS_HD bool reaches(const void* memory, uint64_t bytes) const {
    uint64_t unused = 0;
    return dma == nullptr || dma->find(memory, bytes, unused);
  }

  /// The address that a PRP entry holds for memory that it reaches.
  GOFS_HD uint64_t dma_address(const void* memory) const {
    if (dma == nullptr) return reinterpret_cast<uint64_t>(memory);
    uint64_t address = 0;
    const bool found = dma->find(memory, 1, address);
    GOFS_ASSERT(found);
    return address;
  }
};

}  // namespace gofs::ssd
