// SPDX-License-Identifier: Apache-2.0
#include "bench/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "bench/actors.hpp"
#include "bench/bodies.h"
#include "bench/images.hpp"
#include "bench/volume.hpp"
#include "bench/writes.hpp"
#include "host/messages.h"
#include "host/run_job.h"

namespace gofs::bench {
namespace {

constexpr const char* kRecordSubject = "bench records";
constexpr uint32_t kReadBytes = 1 << 18;

Error wrong_log(const std::string& what) { return host::make_error(EIO, kRecordSubject, what); }

/// What a finished log must hold: `done` records of each writer.
class LogCheck {
 public:
  LogCheck(const RecordShape& shape, std::vector<uint32_t> done)
      : shape_(shape), done_(std::move(done)), next_(done_.size(), 0) {
    for (const uint32_t count : done_) expected_ += count;
  }
  uint64_t bytes() const { return expected_ * shape_.bytes; }

  /// Looks at the next whole records of the log.
  Expected<void> check(const uint8_t* data, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += shape_.bytes, ++seen_) {
      uint32_t writer = 0;
      uint32_t number = 0;
      const auto writers = static_cast<uint32_t>(done_.size());
      if (!is_record(data + at, shape_.bytes, writers, writer, number)) {
        return wrong_log(fmt::format("record {} of the log is none", seen_));
      }
      if (shape_.bytes < kRecordHead) continue;  // it does not say whose it is
      if (number != next_[writer]++) {
        return wrong_log(fmt::format("record {} of the log is number {} of writer {}, not {}",
                                     seen_, number, writer, next_[writer] - 1));
      }
    }
    return {};
  }
  Expected<void> finish() const {
    if (seen_ != expected_) {
      return wrong_log(fmt::format("{} records of {} are in the log", seen_, expected_));
    }
    return {};
  }

 private:
  const RecordShape shape_;
  const std::vector<uint32_t> done_;
  std::vector<uint32_t> next_;
  uint64_t expected_ = 0;
  uint64_t seen_ = 0;
};

/// The logs of one mounted volume.
class VolumeRecords {
 public:
  VolumeRecords(const RecordOptions& options, const RecordSinks& sinks, std::string model)
      : options_(options), sinks_(sinks), model_(std::move(model)) {}

  Expected<void> run() {
    const Images images(options_.folder, 1);
    const BenchContents contents{16 * kMiB, 0, 0, 4 * options_.log_bytes + 64 * kMiB, 0};
    if (const auto made = make_bench_volume(images.paths(), contents); !made) return made.error();
    auto volume = mount_bench_volume(images.paths(), model_, bench_mount(options_.backend));
    if (!volume) return volume.error();
    volume_ = std::move(*volume);
    sinks_.volume(*volume_);
    for (const RecordShape& shape : options_.shapes) {
      if (auto done = run_row(shape); !done) return done;
    }
    return volume_->unmount();
  }

 private:
  Expected<void> run_row(const RecordShape& shape) {
    RecordRow row{model_, shape, 0, {}, 0, 0};
    std::vector<double> rates;
    for (uint32_t i = 0; i < std::max(options_.runs, 1u); ++i) {
      const auto rate = run_once(shape, row);
      if (!rate) return rate.error();
      rates.push_back(*rate);
    }
    row.records = spread_of(rates);
    sinks_.row(row);
    return {};
  }

  Expected<int> open(const std::string& path, uint32_t flags) {
    const auto opened =
        volume_->call({.verb = request::Verb::kOpen, .path = &path, .flags = flags, .mode = 0644});
    if (opened.result < 0) return volume_->explain(opened.result, path);
    return static_cast<int>(opened.result);
  }
  void close(int descriptor) {
    (void)volume_->call({.verb = request::Verb::kClose, .descriptor = descriptor});
  }

  /// Records a second, of a new log.
  Expected<double> run_once(const RecordShape& shape, RecordRow& row) {
    const std::string path = "/log";
    const auto log = open(path, vfs::kOpenWriteOnly | vfs::kOpenCreate | vfs::kOpenTruncate |
                                    vfs::kOpenAppend | (shape.durable ? vfs::kOpenDataSync : 0u));
    if (!log) return log.error();
    const auto reader = open(path, vfs::kOpenReadOnly);
    if (!reader) return reader.error();
    const auto synced = time_checkpoint(*volume_);
    if (!synced) return synced.error();
    const auto rate = append(shape, *log, *reader, row);
    close(*log);
    close(*reader);
    return rate;
  }

  Expected<double> append(const RecordShape& shape, int log, int reader, RecordRow& row) {
    kernels::Backend& backend = volume_->backend();
    // A CPU has as many threads as it has; one of them reads.
    const uint32_t spare = shape.reader ? 1 : 0;
    const kernels::Grid full = backend.full_grid();
    uint32_t writers = shape.writers;
    if (backend.is_host()) {
      writers = std::min(writers, std::max(full.blocks * full.threads_per_block, 2u) - spare);
    }
    const uint32_t width = shape.by_threads ? backend.warp_width() : 1;
    const auto warps = static_cast<uint32_t>(simt::divide_up(writers, width)) + spare;
    RecordsJob job{};
    RecordsParams& params = job.params;
    const BackendArray buffers(backend.memory(), writers * record_stride(shape.bytes));
    const BackendArray read_buffer(backend.memory(), kReadBytes);
    const BackendArray done(backend.memory(), uint64_t{writers} * sizeof(uint32_t));
    params.fs = volume_->filesystem();
    params.by_threads = shape.by_threads;
    params.writers = writers;
    params.records = static_cast<uint32_t>(
        std::clamp<uint64_t>(options_.log_bytes / shape.bytes / writers, 1, UINT32_MAX));
    params.time_ns = static_cast<uint64_t>(options_.seconds * 1e9);
    params.bytes = shape.bytes;
    params.log = log;
    params.reader = shape.reader ? reader : -1;
    params.read_bytes = kReadBytes;
    params.buffers = buffers.data();
    params.read_buffer = read_buffer.data();
    params.done = done.as<uint32_t>();
    if (!host::run_job(*volume_, bodies::kRecords,
                       detail::grid_of_warps(warps, backend.warp_width()), job)) {
      return volume_->explain(host::VolumeState::kNotRun, kRecordSubject);
    }
    const RecordsResults& results = job.results;
    if (results.error != 0) return volume_->explain(results.error, kRecordSubject);
    if (results.wrong != 0) {
      return wrong_log(fmt::format("the reader met {} records that are none", results.wrong));
    }
    std::vector<uint32_t> counts(writers);
    backend.memory().read(counts.data(), done.data(), counts.size() * sizeof(uint32_t));
    if (auto right = check_log(LogCheck(shape, std::move(counts)), shape, reader); !right) {
      return right.error();
    }
    if (shape.reader && results.records_read != results.records) {
      return wrong_log(
          fmt::format("the reader met {} records of {}", results.records_read, results.records));
    }
    row.writers = writers;
    row.read += results.records_read;
    row.longest_us = std::max(row.longest_us, static_cast<double>(results.longest_ns) * 1e-3);
    const double seconds =
        static_cast<double>(std::max(results.last_ns, results.first_ns + 1) - results.first_ns) *
        1e-9;
    return static_cast<double>(results.records) / seconds;
  }

  Expected<void> check_log(LogCheck check, const RecordShape& shape, int reader) {
    const uint64_t portion = (16 * kMiB) / shape.bytes * shape.bytes;
    std::vector<uint8_t> data(portion);
    for (uint64_t at = 0;;) {
      const auto answer = volume_->call({.verb = request::Verb::kPread,
                                         .descriptor = reader,
                                         .buffer = data.data(),
                                         .bytes = portion,
                                         .offset = static_cast<int64_t>(at)});
      if (answer.result < 0) return volume_->explain(answer.result, kRecordSubject);
      const auto got = static_cast<uint64_t>(answer.result);
      if (got == 0) break;
      if (got % shape.bytes != 0 && at + got == check.bytes()) {
        return wrong_log("the log ends within a record");
      }
      const uint64_t whole = got / shape.bytes * shape.bytes;
      if (whole == 0) return wrong_log("the log ends within a record");
      if (auto right = check.check(data.data(), whole); !right) return right;
      at += whole;
    }
    return check.finish();
  }

  const RecordOptions& options_;
  const RecordSinks& sinks_;
  const std::string model_;
  std::unique_ptr<host::VolumeState> volume_;
};

}  // namespace

std::vector<RecordShape> usual_records() {
  std::vector<RecordShape> shapes;
  for (const uint32_t bytes : {1u, 300u, 4'000u, 5'000u}) {
    shapes.push_back({false, 1'056, bytes, false, false});
  }
  shapes.push_back({false, 1, 300, false, false});
  shapes.push_back({true, 1, 300, false, false});
  shapes.push_back({true, 32, 300, false, false});
  shapes.push_back({true, 33'792, 300, false, false});
  shapes.push_back({false, 1'056, 300, true, false});
  shapes.push_back({false, 1'056, 300, false, true});
  shapes.push_back({false, 1, 300, false, true});
  return shapes;
}

Expected<void> run_records(const RecordOptions& options, const RecordSinks& sinks) {
  for (const std::string& model : options.models) {
    VolumeRecords records(options, sinks, model);
    if (auto done = records.run(); !done) return done;
  }
  return {};
}

}  // namespace gofs::bench
