// SPDX-License-Identifier: Apache-2.0
#include "bench/storage.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "bench/cpu_meter.hpp"
#include "bench/names.hpp"
#include "bench/reads.hpp"
#include "bench/writes.hpp"
#include "host/messages.h"

namespace gofs::bench {
namespace {

constexpr const char* kStorageSubject = "bench storage";
constexpr uint64_t kWholeBytes = uint64_t{1} << 20;

bool is_of_batch(StorageWork work) {
  return work == StorageWork::kBatchCreate || work == StorageWork::kBatchRead;
}
bool writes(StorageWork work) {
  return work == StorageWork::kRandomWrite || work == StorageWork::kSequentialWrite;
}
bool is_random(StorageWork work) {
  return work == StorageWork::kRandomRead || work == StorageWork::kRandomWrite;
}

class StorageBench {
 public:
  StorageBench(const StorageOptions& options, const StorageSinks& sinks)
      : options_(options), sinks_(sinks), directory_(fmt::format("/gofs-bench-{}", ::getpid())) {}

  Expected<void> run() {
    if (options_.file_bytes == 0 || options_.file_bytes % kWholeBytes != 0) {
      return host::make_error(EINVAL, kStorageSubject, "the file is to have whole MiB");
    }
    MountOptions mount;
    mount.backend = options_.backend;
    mount.read_only = false;
    auto volume = host::VolumeState::mount(options_.volume, mount, host::MountKind::kVolume);
    if (!volume) return volume.error();
    volume_ = std::move(*volume);
    auto done = measure();
    file_.reset();
    remove_all();
    if (!done) return done;
    return volume_->unmount();
  }

 private:
  Expected<void> measure() {
    if (std::any_of(options_.works.begin(), options_.works.end(),
                    [](StorageWork work) { return !is_of_batch(work); })) {
      if (auto prepared = prepare(); !prepared) return prepared;
    }
    if (sinks_.volume) sinks_.volume(*volume_);
    for (const StorageWork work : options_.works) {
      if (is_of_batch(work)) {
        if (auto done = measure_batches(work); !done) return done;
        continue;
      }
      for (const uint32_t outstanding : options_.outstanding) {
        if (auto done = measure_point(work, outstanding); !done) return done;
      }
    }
    if (sinks_.end) sinks_.end(*volume_);
    return {};
  }

  /// Large writes go to new blocks before those of the file become free.
  Expected<void> check_room() {
    FilesystemStat stat{};
    const auto answer = volume_->call({.verb = request::Verb::kStatfs}, stat);
    if (answer.result < 0) return volume_->explain(answer.result, options_.volume);
    const uint64_t free_bytes = stat.blocks_available * kBlockBytes;
    if (free_bytes / 2 >= options_.file_bytes) return {};
    return host::make_error(
        ENOSPC, options_.volume,
        fmt::format("a file of {} MiB wants twice as much room, and {} are free",
                    options_.file_bytes >> 20, free_bytes >> 20));
  }

  /// The file, all of it written.
  Expected<void> prepare() {
    if (auto checked = check_room(); !checked) return checked;
    auto made = BenchFiles::make(*volume_, directory_, 1, false);
    if (!made) return made.error();
    file_ = std::move(*made);
    if (auto sized = file_->resize(options_.file_bytes); !sized) return sized;
    // As many writers as share its pieces evenly.
    constexpr uint32_t kWritersMax = 1024;
    const kernels::Grid full = volume_->backend().full_grid();
    const uint64_t most = volume_->backend().is_host() ? full.blocks : kWritersMax;
    const uint64_t pieces = options_.file_bytes / kStorageSequentialBytes;
    uint32_t writers = 1;
    while (2 * writers <= most && pieces % (2 * writers) == 0) writers *= 2;
    const auto filled = file_->fill(writers);
    if (!filled) return filled.error();
    return checkpoint();
  }

  Expected<void> checkpoint() {
    const auto seconds = time_checkpoint(*volume_);
    return seconds ? Expected<void>() : seconds.error();
  }

  Expected<void> measure_point(StorageWork work, uint32_t outstanding) {
    const uint32_t bytes = is_random(work) ? kStorageRandomBytes : kStorageSequentialBytes;
    if (!writes(work)) {
      const auto read = measure_reads(work, outstanding, bytes);
      if (!read) return read.error();
      sinks_.row({work, outstanding, read->outstanding, bytes, read->operations, read->seconds,
                  read->cpu_seconds});
      return {};
    }
    // What was replaced by writes before becomes free.
    if (auto done = checkpoint(); !done) return done;
    WritePlan plan;
    plan.pattern = is_random(work) ? WritePattern::kRandom : WritePattern::kSequential;
    plan.scope = WriteScope::kWarp;
    plan.outstanding = outstanding;
    plan.block_bytes = bytes;
    plan.seconds = options_.seconds;
    if (!is_random(work)) plan.bytes_max = options_.file_bytes;  // which go to new blocks
    const auto written = measure_file_writes(*volume_, plan, *file_);
    if (!written) return written.error();
    sinks_.row({work, outstanding, written->outstanding, bytes, written->writes, written->seconds,
                written->cpu_seconds});
    return {};
  }

  /// As many as fill the time, at the rate of a few.
  Expected<ReadMeasurement> measure_reads(StorageWork work, uint32_t outstanding, uint32_t bytes) {
    constexpr uint64_t kTriedEach = 16;
    ReadPlan plan;
    plan.pattern = is_random(work) ? Pattern::kRandom : Pattern::kSequential;
    plan.scope = ReadScope::kWarp;
    plan.outstanding = outstanding;
    plan.block_bytes = bytes;
    plan.operations = outstanding * kTriedEach;
    plan.seed = ++seed_;
    const int file = volume_->backend().memory().read_object(file_->descriptors());
    const auto tried = measure_file(*volume_, plan, file, options_.file_bytes);
    if (!tried) return tried;
    plan.operations = std::max<uint64_t>(
        plan.operations, static_cast<uint64_t>(tried->operations_per_second() * options_.seconds));
    plan.seed = ++seed_;
    return measure_file(*volume_, plan, file, options_.file_bytes);
  }

  /// Files of a batch are made, and read where that is measured.
  Expected<void> measure_batches(StorageWork work) {
    if (made_files_ == 0) {
      const CpuMeter meter;
      const auto made =
          measure_batch_creation(*volume_, small_directory(), options_.files, kStorageFileBytes);
      const double cpu_seconds = meter.seconds();
      if (!made) return made.error();
      made_files_ = static_cast<uint32_t>(made->files);
      if (work == StorageWork::kBatchCreate) {
        sinks_.row({work, 0, 0, kStorageFileBytes, made->files, made->seconds, cpu_seconds});
      }
      if (auto done = checkpoint(); !done) return done;
    }
    if (work == StorageWork::kBatchCreate) return {};
    const CpuMeter meter;
    const auto read = measure_batch(*volume_, small_directory(), made_files_, 1);
    const double cpu_seconds = meter.seconds();
    if (!read) return read.error();
    if (read->failed_files != 0) {
      return host::make_error(EIO, small_directory(),
                              fmt::format("{} files could not be read", read->failed_files));
    }
    sinks_.row({work, 0, 0, kStorageFileBytes, read->files,
                read->list_seconds + read->load_seconds + read->read_seconds, cpu_seconds});
    return {};
  }

  std::string small_directory() const { return directory_ + "-small"; }

  /// As far as that goes.
  void remove_all() {
    const auto remove = [this](request::Verb verb, const std::string& path) {
      (void)volume_->call({.verb = verb, .path = &path});
    };
    for (uint32_t i = 0; i < made_files_; ++i) {
      remove(request::Verb::kUnlink, batch_path(small_directory(), i));
    }
    remove(request::Verb::kUnlink, directory_ + "/000000");
    remove(request::Verb::kRmdir, small_directory());
    remove(request::Verb::kRmdir, directory_);
  }

  const StorageOptions& options_;
  const StorageSinks& sinks_;
  const std::string directory_;
  std::unique_ptr<host::VolumeState> volume_;
  std::unique_ptr<BenchFiles> file_;  // goes before the volume
  uint32_t made_files_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace

const char* name_of(StorageWork work) {
  switch (work) {
    case StorageWork::kRandomRead:
      return "random-read";
    case StorageWork::kRandomWrite:
      return "random-write";
    case StorageWork::kSequentialRead:
      return "sequential-read";
    case StorageWork::kSequentialWrite:
      return "sequential-write";
    case StorageWork::kBatchCreate:
      return "batch-create";
    case StorageWork::kBatchRead:
      break;
  }
  return "batch-read";
}

Expected<void> run_storage(const StorageOptions& options, const StorageSinks& sinks) {
  try {
    return StorageBench(options, sinks).run();
  } catch (const std::bad_alloc&) {
    return host::make_error(ENOMEM, kStorageSubject);
  }
}

}  // namespace gofs::bench
