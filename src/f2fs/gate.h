// SPDX-License-Identifier: Apache-2.0
//
// The one lock that operations and checkpoints share: operations that change the volume go in side
// by side, and who makes a checkpoint closes the gate, waits until all are out, and opens it again.
// Processors count those inside in words of their own, so that going in costs nobody anything but a
// processor's own cache line. (GoFS, SOSP'25, section 3.5; a "big-reader lock".)
//
// Nobody goes in twice, or makes a checkpoint inside.
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::f2fs {

/// How long a caller waits at the gate. Operations wait for the device and for each other inside,
/// and a checkpoint writes all that has changed.
inline constexpr uint64_t kGateTimeoutNs = 480'000'000'000;

struct Gate {
  struct alignas(128) Side {
    uint32_t inside;  // how many, and kShut
  };
  static constexpr uint32_t kSides = 64;
  static constexpr uint32_t kShut = 1u << 31;

  Side sides[kSides];
  alignas(128) uint32_t closed;  // not 0: by somebody, who shuts all sides
};

/// The part of the gate that the caller went through.
struct GatePass {
  uint32_t side;
};

/// Goes in. Collective, one pass for the warp. As long as it is closed, `meanwhile()` is called,
/// collectively, which says whether it has done anything. 0 or -EBUSY (the gate was closed for
/// kGateTimeoutNs).
template <typename Meanwhile>
GOFS_HD int enter_gate(simt::AnyWarp auto warp, Gate& gate, GatePass& pass, Meanwhile meanwhile) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kGateTimeoutNs);
  simt::Backoff backoff;
  pass.side = warp.shfl(simt::processor_id() % Gate::kSides, 0);
  uint32_t& inside = gate.sides[pass.side].inside;
  for (bool first = true;; first = false) {
    uint32_t entered = 0;
    // Who has found it shut only looks.
    if (warp.thread_rank() == 0 && (first || (simt::load_relaxed(inside) & Gate::kShut) == 0)) {
      // Acquire: what was changed behind the closed gate is seen. [G3]
      const uint32_t before =
          simt::AtomicRef<uint32_t>(inside).fetch_add(1, simt::memory_order_acquire);  // [G1]
      entered = (before & Gate::kShut) == 0 ? 1 : 0;
      if (entered == 0) {
        simt::AtomicRef<uint32_t>(inside).fetch_sub(1, simt::memory_order_relaxed);
      }
    }
    if (warp.shfl(entered, 0) != 0) break;
    if (warp.any(deadline.passed())) return -EBUSY;
    if (!meanwhile()) backoff.pause();
  }
  warp.sync();
  return 0;
}
GOFS_HD inline int enter_gate(simt::AnyWarp auto warp, Gate& gate, GatePass& pass) {
  return enter_gate(warp, gate, pass, [] { return false; });
}

/// Goes in without waiting: where was_open() says no to the answer, the caller goes out again at
/// once. One lane, which calls add_before_look() next: only then is seen what was changed behind
/// the closed gate.
GOFS_HD inline uint32_t step_in(Gate& gate, GatePass& pass) {
  pass.side = simt::processor_id() % Gate::kSides;
  return simt::AtomicRef<uint32_t>(gate.sides[pass.side].inside)
      .fetch_add(1, simt::kAcquiredByNextLook);  // [G1] [G3]
}
GOFS_HD constexpr bool was_open(uint32_t answer) { return (answer & Gate::kShut) == 0; }

/// Goes out. What the caller, and whoever has synchronised with him, has changed inside before
/// `release` is seen by who closes the gate. [G2] One lane.
GOFS_HD inline void leave_gate(Gate& gate, const GatePass& pass, const simt::Release& release) {
  release.add(gate.sides[pass.side].inside, ~0u);
}
/// The same for a warp. Collective.
GOFS_HD inline void leave_gate(simt::AnyWarp auto warp, Gate& gate, const GatePass& pass) {
  warp.sync();
  if (warp.thread_rank() == 0) leave_gate(gate, pass, simt::Release());
}

/// Opens the gate that the caller has closed. Collective.
GOFS_HD inline void open_gate(simt::AnyWarp auto warp, Gate& gate) {
  warp.sync();
  for (uint32_t side = warp.thread_rank(); side < Gate::kSides; side += warp.size()) {
    simt::AtomicRef<uint32_t>(gate.sides[side].inside)
        .fetch_and(~Gate::kShut, simt::memory_order_release);  // [G3]
  }
  warp.sync();
  if (warp.thread_rank() == 0) simt::store_release(gate.closed, 0u);  // [G3]
}

namespace detail {

/// Shuts all sides. From then on nobody goes in whom is_empty() does not see. Collective.
GOFS_HD inline void shut_sides(simt::AnyWarp auto warp, Gate& gate) {
  for (uint32_t side = warp.thread_rank(); side < Gate::kSides; side += warp.size()) {
    simt::AtomicRef<uint32_t>(gate.sides[side].inside)
        .fetch_or(Gate::kShut, simt::memory_order_relaxed);  // [G1]
  }
  warp.sync();
}

/// Whether nobody is inside a gate whose sides are shut. Collective, uniform.
GOFS_HD inline bool is_empty(simt::AnyWarp auto warp, const Gate& gate) {
  bool inside = false;
  for (uint32_t side = warp.thread_rank(); side < Gate::kSides; side += warp.size()) {
    const uint32_t word = simt::load_acquire(gate.sides[side].inside);  // [G1] [G2]
    inside = inside || word != Gate::kShut;
  }
  return !warp.any(inside);
}

}  // namespace detail

/// Closes the gate, unless somebody else has: -EAGAIN at once. Then waits until nobody is inside.
/// Collective, uniform. 0; or -EBUSY, somebody was inside for kGateTimeoutNs; it is open then.
GOFS_NOINLINE GOFS_HD inline int try_close_gate(simt::AnyWarp auto warp, Gate& gate) {
  uint32_t closed = 0;
  if (warp.thread_rank() == 0) closed = simt::try_lock(gate.closed) ? 1 : 0;  // [G3]
  if (warp.shfl(closed, 0) == 0) return -EAGAIN;
  warp.sync();
  detail::shut_sides(warp, gate);
  const simt::Deadline deadline = simt::Deadline::after_ns(kGateTimeoutNs);
  simt::Backoff backoff;
  while (!detail::is_empty(warp, gate)) {
    if (warp.any(deadline.passed())) {
      open_gate(warp, gate);
      return -EBUSY;
    }
    backoff.pause();
  }
  warp.sync();
  return 0;
}

/// Closes the gate and waits until nobody is inside; `meanwhile()` as in enter_gate(). Collective,
/// uniform. 0 or -EBUSY: another has closed it, or somebody was inside, for kGateTimeoutNs; it is
/// then not the caller's.
template <typename Meanwhile>
GOFS_HD int close_gate(simt::AnyWarp auto warp, Gate& gate, Meanwhile meanwhile) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kGateTimeoutNs);
  simt::Backoff backoff;
  for (;;) {
    const int error = try_close_gate(warp, gate);
    if (error != -EAGAIN) return error;
    if (warp.any(deadline.passed())) return -EBUSY;
    if (!meanwhile()) backoff.pause();
  }
}
GOFS_HD inline int close_gate(simt::AnyWarp auto warp, Gate& gate) {
  return close_gate(warp, gate, [] { return false; });
}

}  // namespace gofs::f2fs
