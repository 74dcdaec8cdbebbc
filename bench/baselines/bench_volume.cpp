// SPDX-License-Identifier: Apache-2.0
#include "bench_volume.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "bench/reads.hpp"

namespace gofs::bench {
namespace {

/// The written file may lie there in several states until a checkpoint.
constexpr uint64_t kWrittenCopies = 6;

/// What fill() writes at a time. All files have whole MiB.
constexpr uint32_t kPieceBytes = 128 << 10;

/// How many warps can share `pieces` evenly.
uint32_t sharing_warps(const kernels::Backend& backend, uint64_t pieces) {
  constexpr uint64_t kWarpsMax = 1024;
  const kernels::Grid full = backend.full_grid();
  const uint64_t most =
      backend.is_host() ? uint64_t{full.blocks} * full.threads_per_block : kWarpsMax;
  uint64_t warps = 1;
  while (warps * 2 <= most && pieces % (warps * 2) == 0) warps *= 2;
  return static_cast<uint32_t>(warps);
}

}  // namespace

Expected<std::unique_ptr<BenchVolume>> BenchVolume::make(
    const Options& options, const std::string& backend, const std::string& model,
    const std::function<void(const std::string&)>& ready) {
  const std::string image = fmt::format("{}/gofs-baselines-{}.img", options.folder, ::getpid());
  std::unique_ptr<BenchVolume> volume(new BenchVolume(image));
  BenchContents contents;
  contents.large_bytes = options.large_bytes;
  contents.small_count = options.small_files();
  contents.small_bytes = kSmallFileBytes;
  contents.raw_bytes = options.written_bytes();
  contents.spare_bytes = kWrittenCopies * options.written_bytes() + 64 * kMiB;
  const auto made = make_bench_volume({image}, contents);
  if (!made) return made.error();
  volume->raw_start_ = *made;
  volume->large_bytes_ = options.large_bytes;
  volume->small_files_ = options.small_files();
  if (ready) ready(image);
  if (auto mounted = volume->mount(backend, model); !mounted) return mounted.error();
  if (auto prepared = volume->prepare(options); !prepared) return prepared.error();
  return volume;
}

BenchVolume::~BenchVolume() {
  written_.reset();
  in_place_.reset();
  // First, so that nothing has to be written to it that nobody reads.
  (void)::unlink(image_.c_str());
}

Expected<void> BenchVolume::mount(const std::string& backend, const std::string& model) {
  auto state = mount_bench_volume({image_}, model, bench_mount(backend));
  if (!state) return state.error();
  state_ = std::move(*state);
  const auto fs = state_->backend().memory().read_object(state_->filesystem());
  main_start_ = uint64_t{fs.volume.geometry.main_blkaddr} * kBlockBytes;
  return {};
}

Expected<void> BenchVolume::prepare(const Options& options) {
  const std::string path = "/large";
  const auto opened = state_->call({.verb = request::Verb::kOpen, .path = &path});
  if (opened.result < 0) return state_->explain(opened.result, path);
  large_ = static_cast<int>(opened.result);
  for (const auto& [file, folder] : {std::pair{&written_, "/written"}, {&in_place_, "/in-place"}}) {
    auto made = make_file(folder, options.written_bytes());
    if (!made) return made.error();
    *file = std::move(*made);
  }
  if (auto done = checkpoint(); !done) return done;
  return warm_up(options.written_bytes());
}

/// Touches what is read and written past the file system: the first to do so would be measured.
Expected<void> BenchVolume::warm_up(uint64_t raw_bytes) {
  constexpr uint32_t kOutstanding = 64;
  ReadPlan read;
  read.pattern = Pattern::kSequential;
  read.block_bytes = kPieceBytes;
  read.outstanding = kOutstanding;
  read.operations = large_bytes_ / kPieceBytes;
  const auto done = measure_raw(*state_, read, main_start_, large_bytes_);
  if (!done) return done.error();
  WritePlan write;
  write.pattern = WritePattern::kSequential;
  write.block_bytes = kPieceBytes;
  write.outstanding =
      static_cast<uint32_t>(std::min<uint64_t>(kOutstanding, raw_bytes / kPieceBytes));
  write.seconds = 60;
  write.bytes_max = raw_bytes;
  const auto written = measure_raw_writes(*state_, write, raw_start_, raw_bytes);
  return written ? Expected<void>() : written.error();
}

Expected<std::unique_ptr<BenchFiles>> BenchVolume::make_file(const std::string& folder,
                                                             uint64_t bytes) {
  auto files = BenchFiles::make(*state_, folder, 1, false);
  if (!files) return files;
  if (auto sized = (*files)->resize(bytes); !sized) return sized.error();
  if (auto filled = fill(**files); !filled) return filled.error();
  return files;
}

Expected<void> BenchVolume::fill(BenchFiles& files) {
  const uint64_t pieces = files.bytes_each() / kPieceBytes;
  const auto filled = files.fill(sharing_warps(state_->backend(), pieces));
  return filled ? Expected<void>() : filled.error();
}

Expected<void> BenchVolume::checkpoint() {
  const auto seconds = time_checkpoint(*state_);
  return seconds ? Expected<void>() : seconds.error();
}

Expected<void> BenchVolume::make_room() {
  if (auto done = checkpoint(); !done) return done;
  if (state_->free_segments() >= state_->info().main_segments / 4) return {};
  const uint64_t bytes = written_->bytes_each();
  if (auto emptied = written_->resize(0); !emptied) return emptied;
  if (auto done = checkpoint(); !done) return done;
  if (auto sized = written_->resize(bytes); !sized) return sized;
  if (auto filled = fill(*written_); !filled) return filled;
  return checkpoint();
}

}  // namespace gofs::bench
