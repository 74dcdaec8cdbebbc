// SPDX-License-Identifier: Apache-2.0
//
// How late it is over here, for the host, which knows how late it is over there: it asks by a word
// of memory that both reach, and gets an answer in a few microseconds. By one warp.
#pragma once

#include "vfs/filesystem.h"

namespace gofs::kernels {

/// How long the warp waits for the next question, which the host may be kept from asking at once.
inline constexpr uint64_t kClockTurnNs = 5'000'000'000;

enum class ClockStep : uint32_t { kAnswer, kDraw };

struct ClockParams {
  vfs::Filesystem* fs;
  ClockStep step;
  vfs::ClockLine line;            // kDraw: from now on
  uint32_t questions;             // kAnswer: so many
  alignas(64) uint32_t asked;     // counted by the host,
  alignas(64) uint32_t answered;  // and by the warp, which has set
  uint64_t now_ns;                // simt::now_ns() between the two
};

GOFS_HD inline void clock_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                               ClockParams& params) {
  if (warp_index != 0 || warp.thread_rank() != 0) return;
  if (params.step == ClockStep::kDraw) return vfs::draw_line(params.fs->clock, params.line);
  for (uint32_t question = 1; question <= params.questions; ++question) {
    const simt::Deadline deadline = simt::Deadline::after_ns(kClockTurnNs);
    for (simt::Backoff backoff; simt::load_system_acquire(params.asked) < question;) {
      if (deadline.passed()) return;
      backoff.pause();
    }
    params.now_ns = simt::now_ns();
    simt::store_system_release(params.answered, question);
  }
}

}  // namespace gofs::kernels
