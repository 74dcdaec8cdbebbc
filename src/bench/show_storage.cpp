// SPDX-License-Identifier: Apache-2.0
//
// gofs bench storage: a file and small files of a volume that is there (storage.hpp). A table, a
// row when it is measured; with --json an object a line, the first and the last of which say on
// what, and what it took of memory. bench/host_storage.py compares these with fio's.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/commands.hpp"
#include "bench/storage.hpp"
#include "cli/output.h"
#include "cli/text.h"

namespace gofs::bench {
namespace {

using Json = nlohmann::ordered_json;

/// A line of /proc/self/status that is about memory, in bytes. 0: it has none.
uint64_t memory_status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":"))
      return std::strtoull(&line[name.size() + 1], nullptr, 10) << 10;
  }
  return 0;
}

void show_storage_volume(const cli::Session& session, const host::VolumeState& volume,
                         const StorageOptions& options) {
  const VolumeInfo info = volume.info();
  if (session.json) {
    cli::print(Json{{"bench", "storage volume"},
                    {"volume", cli::escaped(options.volume)},
                    {"backend", info.backend},
                    {"backend_detail", info.backend_detail},
                    {"ssd", cli::escaped(info.ssd)},
                    {"lba_bytes", info.lba_bytes},
                    {"command_bytes_max", info.transfer_bytes_max},
                    {"queues", info.queues},
                    {"queue_depth", info.queue_depth},
                    {"mode", info.mode},
                    {"file_bytes", options.file_bytes},
                    {"seconds", options.seconds}}
                   .dump() +
               "\n");
  } else {
    cli::print(
        fmt::format("backend {}: {}\nssd     {}, mode {}\n{:<17} {:>11} {:>8} {:>12} {:>10} "
                    "{:>10}\n",
                    info.backend, info.backend_detail, cli::escaped(info.ssd), info.mode, "work",
                    "outstanding", "bytes", "operations/s", "MB/s", "CPU us"));
  }
  cli::flush_output();
}

void show_storage_row(const cli::Session& session, const StorageRow& row) {
  const double rate = row.operations_per_second();
  const double cpu_us =
      row.operations == 0 ? 0 : row.cpu_seconds * 1e6 / static_cast<double>(row.operations);
  if (session.json) {
    cli::print(Json{{"bench", "storage"},
                    {"work", name_of(row.work)},
                    {"wanted", row.wanted},
                    {"outstanding", row.outstanding},
                    {"bytes", row.bytes},
                    {"operations", row.operations},
                    {"seconds", row.seconds},
                    {"ops_per_s", rate},
                    {"bytes_per_s", rate * row.bytes},
                    {"cpu_us_per_op", cpu_us}}
                   .dump() +
               "\n");
  } else {
    cli::print(fmt::format("{:<17} {:>11} {:>8} {:>12.0f} {:>10.1f} {:>10.2f}\n", name_of(row.work),
                           row.outstanding == 0 ? "batch" : std::to_string(row.outstanding),
                           row.bytes, rate, rate * row.bytes / 1e6, cpu_us));
  }
  cli::flush_output();
}

/// What the process has of memory, at most and now, and how much of it was pinned for a GPU.
void show_storage_memory(const cli::Session& session, host::VolumeState& volume) {
  const auto report = volume.memory();
  if (!report) throw cli::Failure{report.error().message};
  uint64_t pinned_bytes = 0;
  for (const MemoryPartReport& part : report->parts) pinned_bytes += part.host_bytes;
  const uint64_t peak_bytes = memory_status("VmHWM");
  const uint64_t anonymous_bytes = memory_status("RssAnon");
  if (session.json) {
    cli::print(Json{{"bench", "storage memory"},
                    {"resident_peak_bytes", peak_bytes},
                    {"anonymous_bytes", anonymous_bytes},
                    {"shared_bytes", memory_status("RssShmem")},
                    {"pinned_bytes", pinned_bytes}}
                   .dump() +
               "\n");
  } else {
    cli::print(fmt::format("memory  {} resident at most, {} anonymous now, {} pinned\n",
                           cli::size_text(peak_bytes), cli::size_text(anonymous_bytes),
                           cli::size_text(pinned_bytes)));
  }
}

}  // namespace

void run_storage_bench(cli::Session& session, const StorageCommand& command) {
  cli::refuse_output_onto_volume(session);
  StorageOptions options;
  options.volume = session.volume;
  options.backend = session.backend;
  options.outstanding = command.outstanding;
  options.file_bytes = command.file_bytes;
  options.files = command.files;
  options.seconds = command.seconds;
  if (!command.works.empty()) options.works.clear();
  for (const std::string& name : command.works) {  // in this order: each finds what others leave
    for (uint32_t number = 0; number < kStorageWorks; ++number) {
      const auto work = static_cast<StorageWork>(number);
      if (name == name_of(work)) options.works.push_back(work);
    }
  }
  StorageSinks sinks;
  sinks.volume = [&](host::VolumeState& volume) { show_storage_volume(session, volume, options); };
  sinks.row = [&](const StorageRow& row) { show_storage_row(session, row); };
  sinks.end = [&](host::VolumeState& volume) { show_storage_memory(session, volume); };
  if (auto done = run_storage(options, sinks); !done) throw cli::Failure{done.error().message};
}

}  // namespace gofs::bench
