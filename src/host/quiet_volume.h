// SPDX-License-Identifier: Apache-2.0
//
// A volume that kernels use, kept as it is while the host copies what lies on its SSDs
// (kernels/hold.h): whoever wants to change it waits meanwhile.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "gofs/expected.hpp"
#include "host/volume_state.h"
#include "kernels/hold.h"

namespace gofs::host {

/// What it takes. Kept, since on a GPU who frees memory waits for all kernels.
struct QuietMemory {
  static constexpr uint32_t kBytes = 256 << 10;
  /// Throws std::bad_alloc.
  explicit QuietMemory(simt::MemorySpace& shared) : params(shared, 1), bytes(shared, kBytes) {}
  SharedArray<kernels::HoldParams> params;
  SharedArray<uint8_t> bytes;  // of one copy
};

class QuietVolume final : public kernels::MemoryCopier {
 public:
  /// Waits until operations and checkpoints that are under way have ended. Throws std::system_error
  /// (no thread). The volume is mounted for writing. `memory` is for one at a time.
  QuietVolume(VolumeState& volume, QuietMemory& memory);
  /// As release().
  ~QuietVolume() override;
  QuietVolume(const QuietVolume&) = delete;
  QuietVolume& operator=(const QuietVolume&) = delete;

  /// Whether it is quiet; else why not.
  const Expected<void>& beginning() const { return beginning_; }
  /// Nothing is kept any more. Whether all was, from the beginning to this call.
  Expected<void> release();

  /// By the warp, while it is quiet.
  std::string pull(void* to_host, const void* from, uint64_t bytes) override;

 private:
  bool have_copied(void* to, const void* from, uint64_t bytes);

  VolumeState& volume_;
  QuietMemory& memory_;
  kernels::HoldParams& params_;
  uint32_t copies_ = 0;
  std::atomic<bool> ended_{false};
  bool ran_ = false;  // of the thread, until it has ended
  Expected<void> beginning_;
  std::thread holding_;  // waits for the warp that holds it
};

}  // namespace gofs::host
