// SPDX-License-Identifier: Apache-2.0
//
// What calls enter and leave, and the host opens and closes meanwhile: a channel, a window. One
// word says whether it is open and how many calls are inside, so entering takes one atomic, and no
// fence.
#pragma once

#include <cstdint>

#include "simt/atomic.h"

namespace gofs::serve {

/// Zero: closed, and nobody inside.
struct Gate {
  uint32_t word;  // kGateOpen, and the calls inside
};

inline constexpr uint32_t kGateOpen = 1u << 31;

/// By one lane, as all of these.
GOFS_HD inline void leave_gate(Gate& gate, uint32_t calls = 1) {
  simt::AtomicRef<uint32_t>(gate.word).fetch_sub(calls, simt::memory_order_release);  // [H3]
}

/// For so many calls. Whether it is open: then what is behind it stays what it is until each has
/// left.
GOFS_HD inline bool enter_gate(Gate& gate, uint32_t calls = 1) {
  const uint32_t before =
      simt::AtomicRef<uint32_t>(gate.word).fetch_add(calls, simt::memory_order_acquire);  // [H3]
  if ((before & kGateOpen) != 0) return true;
  leave_gate(gate, calls);
  return false;
}

/// Whether it is open now; it may not be when a call comes to it.
GOFS_HD inline bool is_open(const Gate& gate) {
  return (simt::load_relaxed(gate.word) & kGateOpen) != 0;
}

/// It is closed, and all have left.
GOFS_HD inline void open_gate(Gate& gate) {
  simt::AtomicRef<uint32_t>(gate.word).fetch_or(kGateOpen, simt::memory_order_release);  // [H3]
}

/// No call enters any more. Whether it was open.
GOFS_HD inline bool close_gate(Gate& gate) {
  const uint32_t before =
      simt::AtomicRef<uint32_t>(gate.word).fetch_and(~kGateOpen, simt::memory_order_relaxed);
  return (before & kGateOpen) != 0;
}

/// Whether no call is inside, of one that is closed.
GOFS_HD inline bool is_left(const Gate& gate) {
  return (simt::load_acquire(gate.word) & ~kGateOpen) == 0;  // [H3]
}

}  // namespace gofs::serve
