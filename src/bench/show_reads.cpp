// SPDX-License-Identifier: Apache-2.0
//
// gofs bench VOL [raw] [file] [files]: what reading costs. `raw` are NVMe commands without a file
// system; `file` are the same reads of a file; `files` opens a directory's files as one batch and
// reads them all. Raw and file reads take turns on one mounted volume, so that the ratio of
// their medians is the file system's own cost. A file read is made by a thread, a warp, a block or
// the grid (--scope); a raw one always by a thread. Times are the backend's, without launches.
// reads.hpp measures.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/commands.hpp"
#include "bench/reads.hpp"
#include "cli/output.h"
#include "cli/text.h"
#include "host/tree.h"

namespace gofs::bench {
namespace {

using Json = nlohmann::ordered_json;

bool wants(const BenchOptions& options, const std::string& kind) {
  return std::find(options.kinds.begin(), options.kinds.end(), kind) != options.kinds.end();
}

struct Row {
  std::string kind;
  std::string pattern;
  ReadMeasurement measured;
};

ReadScope scope_named(const std::string& name) {
  if (name == "warp") return ReadScope::kWarp;
  if (name == "block") return ReadScope::kBlock;
  return name == "grid" ? ReadScope::kGrid : ReadScope::kThread;
}

ReadMeasurement median(std::vector<ReadMeasurement> runs) {
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    return a.operations_per_second() < b.operations_per_second();
  });
  return runs[runs.size() / 2];
}

/// The largest file and the directory with most files, for those who do not name any.
struct Finds {
  std::string largest_file;
  uint64_t largest_bytes = 0;
  std::string fullest_directory = "/";
};

Finds search(host::VolumeState& volume) {
  Finds finds;
  std::map<std::string, uint64_t> counts;
  host::Tree tree(volume);
  const host::TreeEntry root = cli::take(tree.find("/", false));
  host::WalkVisitor visitor;
  visitor.entry = [&](const host::TreeEntry& entry) {
    if (!entry.stat || entry.entry.type != format::kTypeRegular) return;
    if (entry.stat->size_bytes > finds.largest_bytes) {
      finds.largest_file = entry.path;
      finds.largest_bytes = entry.stat->size_bytes;
    }
    ++counts[entry.path.substr(0, std::max<size_t>(entry.name_at, 2) - 1)];
  };
  tree.walk(root, {.recursive = true}, visitor);
  uint64_t most = 0;
  for (const auto& [directory, count] : counts) {
    if (count <= most) continue;
    most = count;
    finds.fullest_directory = directory;
  }
  return finds;
}

class Bench {
 public:
  Bench(const cli::Session& session, const BenchOptions& options)
      : session_(session), options_(options) {
    MountOptions mount;
    mount.backend = session.backend;
    const bool device_only = !wants(options, "file") && !wants(options, "files");
    volume_ = cli::take(host::VolumeState::mount(
        session.volume, mount,
        device_only ? host::MountKind::kDeviceOnly : host::MountKind::kVolume));
    const auto fs = volume_->backend().memory().read_object(volume_->filesystem());
    raw_start_ = device_only ? 0 : uint64_t{fs.volume.geometry.main_blkaddr} * kBlockBytes;
    raw_end_ = volume_->info().ssd_bytes;
    if (device_only) return;
    raw_end_ = std::min<uint64_t>(raw_end_, fs.volume.geometry.main_end() * kBlockBytes);
    if ((wants(options, "file") && options.file.empty()) ||
        (wants(options, "files") && options.directory.empty())) {
      const Finds finds = search(*volume_);
      if (options_.file.empty()) options_.file = finds.largest_file;
      if (options_.directory.empty()) options_.directory = finds.fullest_directory;
    }
    if (wants(options_, "file")) open_file();
  }

  void run() {
    if (wants(options_, "raw") || wants(options_, "file")) {
      for (const std::string pattern : {"random", "sequential"}) {
        if (options_.pattern == "both" || pattern.starts_with(options_.pattern)) measure(pattern);
      }
    }
    if (wants(options_, "files")) measure_files();
  }

  void show() { session_.json ? show_json() : show_table(); }

 private:
  void open_file() {
    if (options_.file.empty()) throw cli::Failure{session_.volume + ": holds no file to read"};
    const auto opened = volume_->call({.verb = request::Verb::kOpen, .path = &options_.file});
    if (opened.result < 0)
      throw cli::Failure{volume_->explain(opened.result, options_.file).message};
    file_ = static_cast<int>(opened.result);
    Stat stat{};
    (void)volume_->call({.verb = request::Verb::kFstat, .descriptor = file_}, stat);
    file_bytes_ = stat.size_bytes / options_.block_bytes * options_.block_bytes;
    if (file_bytes_ == 0) throw cli::Failure{options_.file + ": smaller than one block"};
  }

  void measure(const std::string& pattern) {
    ReadPlan plan;
    plan.pattern = pattern == "random" ? Pattern::kRandom : Pattern::kSequential;
    plan.scope = scope_named(options_.scope);
    plan.outstanding = options_.outstanding;
    plan.block_bytes = static_cast<uint32_t>(options_.block_bytes);
    plan.operations = options_.operations;
    plan.seconds = options_.seconds;
    plan.seed = options_.seed;
    // As much as of the file, so that caches serve both alike.
    uint64_t span = raw_end_ - raw_start_;
    if (file_bytes_ != 0) span = std::min(span, file_bytes_);
    std::vector<ReadMeasurement> raw;
    std::vector<ReadMeasurement> file;
    for (uint32_t i = 0; i < options_.repetitions; ++i) {
      if (wants(options_, "raw")) {
        raw.push_back(cli::take(measure_raw(*volume_, plan, raw_start_, span)));
      }
      if (wants(options_, "file")) {
        file.push_back(cli::take(measure_file(*volume_, plan, file_, file_bytes_)));
      }
    }
    if (!raw.empty()) rows_.push_back({"raw", pattern, median(raw)});
    if (!file.empty()) rows_.push_back({"file", pattern, median(file)});
    if (!raw.empty() && !file.empty()) {
      ratios_[pattern] = median(file).bytes_per_second() / median(raw).bytes_per_second();
    }
  }

  void measure_files() {
    files_ = cli::take(
        measure_batch(*volume_, options_.directory, options_.files_max, options_.repetitions));
  }

  void show_table() {
    const VolumeInfo info = volume_->info();
    cli::print(
        fmt::format("backend {}: {}\nssd     {}, {} queue pairs of {} entries, LBAs of {} bytes\n",
                    info.backend, info.backend_detail, info.ssd, info.queues, info.queue_depth,
                    info.lba_bytes));
    if (file_ >= 0) {
      cli::print(fmt::format("file    {} ({})\n", cli::escaped(options_.file),
                             cli::size_text(file_bytes_)));
    }
    if (!rows_.empty()) {
      cli::print(fmt::format("{:<6} {:<11} {:>6} {:>11} {:>8} {:>12} {:>10} {:>9}\n", "reads",
                             "pattern", "scope", "outstanding", "bytes", "reads/s", "MB/s",
                             "mean us"));
    }
    for (const Row& row : rows_) {
      const ReadMeasurement& m = row.measured;
      cli::print(fmt::format("{:<6} {:<11} {:>6} {:>11} {:>8} {:>12.0f} {:>10.1f} {:>9.2f}\n",
                             row.kind, row.pattern, row.kind == "raw" ? "thread" : options_.scope,
                             m.outstanding, m.block_bytes, m.operations_per_second(),
                             m.bytes_per_second() / 1e6, m.latency_us()));
    }
    for (const auto& [pattern, ratio] : ratios_) {
      cli::print(fmt::format("file reads reach {:.3f} of raw commands ({})\n", ratio, pattern));
    }
    if (files_) {
      cli::print(fmt::format(
          "files  {} files of {}, {} ({} could not be read): names {:.2f} ms, inodes "
          "{:.2f} ms, data {:.2f} ms = {:.1f} MB/s\n",
          files_->files, cli::escaped(options_.directory), cli::size_text(files_->bytes),
          files_->failed_files, files_->list_seconds * 1e3, files_->load_seconds * 1e3,
          files_->read_seconds * 1e3, rate(*files_) / 1e6));
    }
  }

  static double rate(const BatchMeasurement& batch) {
    return batch.read_seconds > 0 ? static_cast<double>(batch.bytes) / batch.read_seconds : 0;
  }

  void show_json() {
    const VolumeInfo info = volume_->info();
    Json object;
    object["volume"] = cli::escaped(session_.volume);
    object["backend"] = {{"name", info.backend}, {"detail", info.backend_detail}};
    object["ssd"] = {{"description", info.ssd},
                     {"model", volume_->spec().model_name},
                     {"lba_bytes", info.lba_bytes},
                     {"queues", info.queues},
                     {"queue_depth", info.queue_depth}};
    if (file_ >= 0)
      object["file"] = {{"path", cli::escaped(options_.file)}, {"bytes", file_bytes_}};
    object["reads"] = Json::array();
    for (const Row& row : rows_) {
      const ReadMeasurement& m = row.measured;
      object["reads"].push_back({{"kind", row.kind},
                                 {"pattern", row.pattern},
                                 {"scope", row.kind == "raw" ? "thread" : options_.scope},
                                 {"outstanding", m.outstanding},
                                 {"block_bytes", m.block_bytes},
                                 {"operations", m.operations},
                                 {"bytes", m.bytes},
                                 {"seconds", m.seconds},
                                 {"operations_per_second", m.operations_per_second()},
                                 {"bytes_per_second", m.bytes_per_second()},
                                 {"mean_us", m.latency_us()},
                                 {"checksum", m.checksum}});
    }
    object["ratios"] = ratios_;
    if (files_) {
      object["files"] = {
          {"directory", cli::escaped(options_.directory)}, {"files", files_->files},
          {"failed_files", files_->failed_files},          {"bytes", files_->bytes},
          {"list_seconds", files_->list_seconds},          {"load_seconds", files_->load_seconds},
          {"read_seconds", files_->read_seconds},          {"bytes_per_second", rate(*files_)}};
    }
    cli::print(object.dump(2) + "\n");
  }

  const cli::Session& session_;
  BenchOptions options_;
  std::unique_ptr<host::VolumeState> volume_;
  uint64_t raw_start_ = 0;
  uint64_t raw_end_ = 0;
  int file_ = -1;
  uint64_t file_bytes_ = 0;
  std::vector<Row> rows_;
  std::map<std::string, double> ratios_;
  std::optional<BatchMeasurement> files_;
};

}  // namespace

void run_bench(cli::Session& session, const BenchOptions& options) {
  cli::refuse_output_onto_volume(session);
  Bench bench(session, options);
  bench.run();
  bench.show();
}

}  // namespace gofs::bench
