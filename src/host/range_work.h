// SPDX-License-Identifier: Apache-2.0
//
// Reads or writes of ranges that were begun (Volume::read_ranges), on the host's side.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gofs/volume.hpp"
#include "host/process_mark.h"
#include "host/shared_array.h"
#include "kernels/backend.h"
#include "kernels/ranges.h"

namespace gofs::host {

/// What a program waits for. From any thread.
class RangeWork {
 public:
  virtual ~RangeWork() = default;
  virtual bool is_done() = 0;
  /// Waits. Of each range the bytes that were moved, or a negative errno; an error where it was not
  /// carried out at all.
  virtual Expected<std::vector<int64_t>> wait() = 0;
};

/// Work that was done at once.
class DoneRanges final : public RangeWork {
 public:
  explicit DoneRanges(std::vector<int64_t> results) : results_(std::move(results)) {}
  bool is_done() override { return true; }
  Expected<std::vector<int64_t>> wait() override { return results_; }

 private:
  const std::vector<int64_t> results_;
};

/// A launch that carries out ranges in the order of a stream. It owns what the launch uses; when
/// that has ended, another may use it. In a child of fork(), where nothing comes to an end, it is
/// done and was not carried out.
class LaunchedRanges final : public RangeWork {
 public:
  /// The error of a launch that has failed, of which the backend says why. Asked while there is a
  /// volume.
  using Explain = std::function<Error(const std::string& why)>;

  /// Throws std::bad_alloc.
  LaunchedRanges(kernels::Backend& backend, Explain explain);

  /// Begins; nothing is under way. `already` are results that ranges have before, which
  /// the launch leaves out; empty: none has. Empty, or why not. Throws std::bad_alloc.
  std::string begin(vfs::Filesystem* fs, bool writes, const std::vector<IoRange>& ranges,
                    const std::vector<std::optional<int64_t>>& already, CUstream_st* stream);

  /// What launches a body and waits for its end; false: it has failed.
  using Run = std::function<bool(const kernels::Body&, const kernels::Grid&, void* params)>;
  /// Carries out ranges by `run`, in no stream of the program, a warp for each `piece_bytes` of
  /// one, a power of two; nothing is under way. Their results, until the next time; null where that
  /// has failed. Throws std::bad_alloc.
  const int64_t* run(vfs::Filesystem* fs, bool writes, const std::vector<IoRange>& ranges,
                     uint64_t piece_bytes, const Run& run);

  bool is_done() override;
  Expected<std::vector<int64_t>> wait() override;
  /// wait(), and lets go what belongs to the backend. Results stay.
  void settle();

 private:
  kernels::Grid prepare(vfs::Filesystem* fs, bool writes, const std::vector<IoRange>& ranges,
                        const std::vector<std::optional<int64_t>>& already, uint64_t piece_bytes);
  uint32_t number_pieces(const kernels::RangeCut& cut, const std::vector<IoRange>& ranges,
                         const std::vector<std::optional<int64_t>>& already);
  template <typename T>
  static void grow(std::unique_ptr<SharedArray<T>>& array, simt::MemorySpace& memory, size_t count);
  void collect();

  kernels::Backend* backend_;
  const Explain explain_;
  const ProcessMark process_ = ProcessMark::of_this_process();
  std::mutex mutex_;
  std::unique_ptr<SharedArray<kernels::RangesParams>> params_;
  std::unique_ptr<SharedArray<IoRange>> ranges_;
  std::unique_ptr<SharedArray<uint32_t>> first_pieces_;
  std::unique_ptr<SharedArray<int64_t>> results_;
  std::unique_ptr<SharedArray<kernels::RangeState>> states_;
  std::unique_ptr<SharedArray<kernels::RangesProgress>> progress_;
  std::unique_ptr<kernels::Begun> begun_;
  size_t count_ = 0;  // of ranges
  std::vector<std::optional<int64_t>> already_;
  std::vector<int64_t> collected_;
  std::optional<Error> problem_;  // why it was not carried out
};

/// All launches of a volume that were begun, and what they use, for the next ones.
class RangeWorks {
 public:
  /// One that nothing is under way of. Throws std::bad_alloc.
  std::shared_ptr<LaunchedRanges> take(kernels::Backend& backend,
                                       const LaunchedRanges::Explain& explain);
  /// Waits for all of them; none is begun meanwhile or afterwards.
  void settle();

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<LaunchedRanges>> all_;
};

}  // namespace gofs::host
