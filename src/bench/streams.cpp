// SPDX-License-Identifier: Apache-2.0
#include "bench/streams.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>

#include "bench/actors.hpp"
#include "bench/bodies.h"
#include "bench/images.hpp"
#include "bench/volume.hpp"
#include "bench/writes.hpp"
#include "host/messages.h"
#include "host/run_job.h"

namespace gofs::bench {
namespace {

constexpr const char* kStreamSubject = "bench stream";

/// The actors of a shape, and the launch that has them.
struct StreamCast {
  uint32_t actors;
  kernels::Grid grid;
};

StreamCast cast_of(const kernels::Backend& backend, StreamActor actor) {
  kernels::Grid grid = backend.full_grid();
  // A block of 256 threads on each multiprocessor.
  if (!backend.is_host()) grid.blocks = std::max(grid.blocks / 2, 1u);
  const uint32_t threads = grid.blocks * grid.threads_per_block;
  switch (actor) {
    case StreamActor::kGrid:
      grid.cooperative = true;
      return {1, grid};
    case StreamActor::kBlock:
      return {grid.blocks, grid};
    case StreamActor::kWarp:
      return {threads / backend.warp_width(), grid};
    case StreamActor::kThread:
      break;
  }
  return {threads, grid};
}

/// The streams of one mounted volume.
class VolumeStreams {
 public:
  VolumeStreams(const StreamOptions& options, const StreamSinks& sinks, std::string model)
      : options_(options), sinks_(sinks), model_(std::move(model)) {}

  Expected<void> run() {
    const Images images(options_.folder, 1);
    // Room for a file beside one that was freed and that the last checkpoint still has.
    BenchContents contents{16 * kMiB, 0, 0, 2 * options_.file_bytes + options_.file_bytes / 2, 0};
    contents.spare_bytes += 64 * kMiB;
    contents.raw_bytes = options_.file_bytes;
    const auto made = make_bench_volume(images.paths(), contents);
    if (!made) return made.error();
    raw_start_ = *made;
    auto volume = mount_bench_volume(images.paths(), model_, bench_mount(options_.backend));
    if (!volume) return volume.error();
    volume_ = std::move(*volume);
    sinks_.volume(*volume_);
    for (const StreamShape& shape : options_.shapes) {
      if (auto done = run_shape(shape); !done) return done;
    }
    return volume_->unmount();
  }

 private:
  /// What all launches of a shape have in common.
  struct Stage {
    StreamShape shape;
    StreamCast cast;
    uint64_t file_bytes;  // of each
    uint32_t files;
    const BackendArray* buffers;
    const BenchFiles* descriptors;

    uint64_t bytes() const { return file_bytes * files; }
  };

  Expected<void> run_shape(const StreamShape& shape) {
    Stage stage{shape, cast_of(volume_->backend(), shape.actor), 0, 1, nullptr, nullptr};
    if (shape.piece_bytes == 0 || shape.piece_bytes % kBlockBytes != 0) {
      return host::make_error(EINVAL, kStreamSubject, "pieces must be whole blocks of 4096 bytes");
    }
    if (shape.own_files) stage.files = stage.cast.actors;
    stage.file_bytes = options_.file_bytes / stage.files / shape.piece_bytes * shape.piece_bytes;
    if (stage.file_bytes == 0) {
      return host::make_error(EINVAL, kStreamSubject, "a file has to have a whole piece at least");
    }
    const BackendArray buffers(volume_->backend().memory(),
                               uint64_t{stage.cast.actors} * shape.piece_bytes);
    auto files =
        BenchFiles::make(*volume_, fmt::format("/stream{}", directories_++), stage.files, false);
    if (!files) return files.error();
    whole_ = false;
    stage.buffers = &buffers;
    stage.descriptors = files->get();
    for (const StreamWork work : options_.works) {
      if (auto done = run_row(stage, **files, work); !done) return done;
    }
    if (auto emptied = (*files)->resize(0); !emptied) return emptied;
    return checkpoint();
  }

  Expected<void> run_row(const Stage& stage, BenchFiles& files, StreamWork work) {
    std::vector<double> raw;
    std::vector<double> file;
    std::vector<double> fsync;
    const bool reads = work == StreamWork::kRead;
    for (uint32_t i = 0; i < std::max(options_.runs, 1u); ++i) {
      if (auto ready = prepare(stage, files, work); !ready) return ready;
      const bool shuffled = work == StreamWork::kShuffled;
      const auto seconds = launch(stage, true, reads, shuffled);
      if (!seconds) return seconds.error();
      file.push_back(static_cast<double>(stage.bytes()) / *seconds);
      fsync.push_back(0);
      if (!reads) {
        const auto synced = fsync_all(files);
        if (!synced) return synced.error();
        fsync.back() = *synced;
        if (const auto read = launch(stage, true, true, false); !read) return read.error();
      }
      if (reads && !raw_written_) {
        if (const auto wrote = launch(stage, false, false, false); !wrote) return wrote.error();
      }
      const auto commands = launch(stage, false, reads, shuffled);
      if (!commands) return commands.error();
      raw_written_ = true;
      raw.push_back(static_cast<double>(stage.bytes()) / *commands);
    }
    sinks_.row({model_, stage.shape, work, stage.cast.actors, stage.bytes(), spread_of(raw),
                spread_of(file), spread_of(fsync)});
    return {};
  }

  /// Before a run: the files are what its work wants.
  Expected<void> prepare(const Stage& stage, BenchFiles& files, StreamWork work) {
    if (work == StreamWork::kOver || work == StreamWork::kRead) {
      if (whole_) return {};
      const auto written = launch(stage, true, false, false);
      return written ? checkpoint() : written.error();
    }
    if (auto emptied = files.resize(0); !emptied) return emptied;
    if (auto synced = checkpoint(); !synced) return synced;
    if (work == StreamWork::kTruncated) return files.resize(stage.file_bytes);
    if (work == StreamWork::kAllocated) return files.allocate(stage.file_bytes);
    return {};
  }

  /// Seconds. A read wants what the last writer of these files has left.
  Expected<double> launch(const Stage& stage, bool file, bool reads, bool shuffled) {
    if (!reads) ++run_;
    if (!reads && file) file_run_ = run_;
    if (!reads && file) whole_ = true;
    if (!reads && !file) raw_run_ = run_;
    StreamJob job{};
    StreamParams& params = job.params;
    params.fs = volume_->filesystem();
    params.actor = stage.shape.actor;
    params.reads = reads;
    params.shuffled = shuffled;
    params.actors = stage.cast.actors;
    params.files = file ? stage.files : 1;
    params.descriptors = file ? stage.descriptors->descriptors() : nullptr;
    params.file_bytes = file ? stage.file_bytes : stage.bytes();
    params.piece_bytes = stage.shape.piece_bytes;
    params.command_bytes = std::min(stage.shape.piece_bytes, volume_->info().transfer_bytes_max);
    params.start_byte = raw_start_;
    params.run = file ? file_run_ : raw_run_;
    params.buffers = stage.buffers->data();
    if (!host::run_job(*volume_, bodies::kStream, stage.cast.grid, job)) {
      return volume_->explain(host::VolumeState::kNotRun, kStreamSubject);
    }
    const StreamResults& done = job.results;
    if (done.error != 0) return volume_->explain(done.error, kStreamSubject);
    if (done.wrong != 0) {
      return host::make_error(
          EIO, kStreamSubject,
          fmt::format("{} blocks do not hold what was written to them", done.wrong));
    }
    return static_cast<double>(std::max(done.last_ns, done.first_ns + 1) - done.first_ns) * 1e-9;
  }

  Expected<double> fsync_all(const BenchFiles& files) {
    const auto before = std::chrono::steady_clock::now();
    if (auto synced = files.fsync(); !synced) return synced.error();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  }
  Expected<void> checkpoint() {
    const auto seconds = time_checkpoint(*volume_);
    return seconds ? Expected<void>() : seconds.error();
  }

  const StreamOptions& options_;
  const StreamSinks& sinks_;
  const std::string model_;
  std::unique_ptr<host::VolumeState> volume_;
  uint64_t raw_start_ = 0;
  bool raw_written_ = false;
  bool whole_ = false;  // the files have all their bytes
  uint32_t directories_ = 0;
  uint64_t run_ = 0;  // of the last launch that wrote,
  uint64_t file_run_ = 0;
  uint64_t raw_run_ = 0;
};

}  // namespace

const char* name_of(StreamWork work) {
  switch (work) {
    case StreamWork::kNew:
      return "new";
    case StreamWork::kTruncated:
      return "truncated";
    case StreamWork::kAllocated:
      return "allocated";
    case StreamWork::kShuffled:
      return "shuffled";
    case StreamWork::kOver:
      return "over";
    case StreamWork::kRead:
      break;
  }
  return "read";
}

const char* name_of(StreamActor actor) {
  switch (actor) {
    case StreamActor::kGrid:
      return "grid";
    case StreamActor::kBlock:
      return "block";
    case StreamActor::kWarp:
      return "warp";
    case StreamActor::kThread:
      break;
  }
  return "thread";
}

std::vector<StreamShape> usual_shapes() {
  constexpr uint32_t kKiB = 1 << 10;
  constexpr uint32_t kMega = 1 << 20;
  return {{StreamActor::kGrid, 256 * kMega, false}, {StreamActor::kGrid, 16 * kMega, false},
          {StreamActor::kGrid, kMega, false},       {StreamActor::kBlock, kMega, false},
          {StreamActor::kBlock, 128 * kKiB, false}, {StreamActor::kWarp, kMega, false},
          {StreamActor::kWarp, 128 * kKiB, false},  {StreamActor::kWarp, 16 * kKiB, false},
          {StreamActor::kBlock, kMega, true}};
}

Expected<void> run_streams(const StreamOptions& options, const StreamSinks& sinks) {
  for (const std::string& model : options.models) {
    VolumeStreams streams(options, sinks, model);
    if (auto done = streams.run(); !done) return done;
  }
  return {};
}

}  // namespace gofs::bench
