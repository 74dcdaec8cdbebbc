// SPDX-License-Identifier: Apache-2.0
//
// gofs bench stream and gofs bench records: files by many (streams.hpp), and records of one log
// (records.hpp). A table, a row when it is measured; with --json an object a line.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/commands.hpp"
#include "bench/records.hpp"
#include "bench/show_spread.hpp"
#include "bench/streams.hpp"
#include "cli/output.h"
#include "host/volume_spec.h"

namespace gofs::bench {
namespace {

using Json = nlohmann::ordered_json;

/// "grid:256M", "block:1M:own".
StreamShape parse_shape(const std::string& word) {
  StreamShape shape{};
  const size_t colon = word.find(':');
  const size_t second = colon == std::string::npos ? colon : word.find(':', colon + 1);
  const std::string actor = word.substr(0, colon);
  bool known = false;
  for (const StreamActor one :
       {StreamActor::kGrid, StreamActor::kBlock, StreamActor::kWarp, StreamActor::kThread}) {
    if (actor != name_of(one)) continue;
    shape.actor = one;
    known = true;
  }
  const std::string size =
      colon == std::string::npos ? "" : word.substr(colon + 1, second - colon - 1);
  const uint64_t bytes = host::parse_size(size).value_or(0);
  const bool own = second != std::string::npos;
  if (!known || bytes == 0 || bytes > 1u << 30 || bytes % kBlockBytes != 0 ||
      (own && word.substr(second + 1) != "own")) {
    throw cli::Failure{"bench stream: " + word +
                       ": wants grid, block, warp or thread, a colon and a size of whole 4 KiB "
                       "blocks up to 1G, and :own where each has a file of its own"};
  }
  shape.piece_bytes = static_cast<uint32_t>(bytes);
  shape.own_files = own;
  return shape;
}

StreamOptions stream_options(const cli::Session& session, const StreamCommand& command) {
  StreamOptions options;
  options.folder = command.folder;
  options.backend = session.backend;
  options.models = command.models;
  options.runs = command.runs;
  options.file_bytes = command.file_bytes;
  if (!command.shapes.empty()) options.shapes.clear();
  for (const std::string& word : command.shapes) options.shapes.push_back(parse_shape(word));
  if (command.works.empty()) return options;
  options.works.clear();
  for (uint32_t number = 0; number < kStreamWorks; ++number) {
    const auto work = static_cast<StreamWork>(number);
    if (std::count(command.works.begin(), command.works.end(), name_of(work)) != 0) {
      options.works.push_back(work);
    }
  }
  return options;
}

void show_volume(const cli::Session& session, const host::VolumeState& volume, const char* bench,
                 uint32_t runs, bool first, const std::string& head) {
  const VolumeInfo info = volume.info();
  if (session.json) {
    cli::print(Json{{"bench", std::string(bench) + " volume"},
                    {"backend", info.backend},
                    {"backend_detail", info.backend_detail},
                    {"ssd", info.ssd},
                    {"model", volume.spec().model_name},
                    {"lba_bytes", info.lba_bytes},
                    {"command_bytes_max", info.transfer_bytes_max},
                    {"queues", info.queues},
                    {"queue_depth", info.queue_depth},
                    {"mode", info.mode},
                    {"runs", runs}}
                   .dump() +
               "\n");
  } else if (first) {
    cli::print(
        fmt::format("backend {}: {}\n{} queue pairs of {} entries; {} runs: median, least "
                    "and most\n{}\n",
                    info.backend, info.backend_detail, info.queues, info.queue_depth, runs, head));
  }
  cli::flush_output();
}

void show_stream(const cli::Session& session, const StreamRow& row) {
  if (session.json) {
    cli::print(Json{{"bench", "stream"},
                    {"model", row.model},
                    {"actor", name_of(row.shape.actor)},
                    {"actors", row.actors},
                    {"piece_bytes", row.shape.piece_bytes},
                    {"own_files", row.shape.own_files},
                    {"work", name_of(row.work)},
                    {"bytes", row.bytes},
                    {"raw_bytes_per_s", spread_json(row.raw)},
                    {"file_bytes_per_s", spread_json(row.file)},
                    {"fsync_s", spread_json(row.fsync_seconds)},
                    {"ratio", row.ratio()}}
                   .dump() +
               "\n");
  } else {
    cli::print(fmt::format(
        "{:<8} {:<7} {:>6} {:>10} {:<4} {:<10} {:>26} {:>26} {:>6.3f} {:>9.2f}\n", row.model,
        name_of(row.shape.actor), row.actors, row.shape.piece_bytes,
        row.shape.own_files ? "own" : "one", name_of(row.work), spread_text(row.raw, 1e9),
        spread_text(row.file, 1e9), row.ratio(), row.fsync_seconds.median * 1e3));
  }
  cli::flush_output();
}

void show_records(const cli::Session& session, const RecordRow& row) {
  const char* const who = row.shape.by_threads ? "thread" : "warp";
  if (session.json) {
    cli::print(Json{{"bench", "records"},
                    {"model", row.model},
                    {"actor", who},
                    {"writers", row.writers},
                    {"bytes", row.shape.bytes},
                    {"reader", row.shape.reader},
                    {"durable", row.shape.durable},
                    {"records_per_s", spread_json(row.records)},
                    {"longest_us", row.longest_us},
                    {"records_read", row.read}}
                   .dump() +
               "\n");
  } else {
    cli::print(fmt::format("{:<8} {:<7} {:>7} {:>6} {:<7} {:<8} {:>30} {:>10.0f}\n", row.model, who,
                           row.writers, row.shape.bytes, row.shape.reader ? "yes" : "no",
                           row.shape.durable ? "each" : "no", spread_text(row.records, 1e3),
                           row.longest_us));
  }
  cli::flush_output();
}

}  // namespace

void run_stream(cli::Session& session, const StreamCommand& command) {
  bool first = true;
  StreamSinks sinks;
  sinks.volume = [&](const host::VolumeState& volume) {
    show_volume(session, volume, "stream", command.runs, first,
                fmt::format("{:<8} {:<7} {:>6} {:>10} {:<4} {:<10} {:>26} {:>26} {:>6} {:>9}",
                            "model", "actor", "actors", "bytes", "file", "work", "raw GB/s",
                            "file GB/s", "ratio", "fsync ms"));
    first = false;
  };
  sinks.row = [&](const StreamRow& row) { show_stream(session, row); };
  if (auto done = run_streams(stream_options(session, command), sinks); !done) {
    throw cli::Failure{done.error().message};
  }
}

void run_record_bench(cli::Session& session, const RecordCommand& command) {
  RecordOptions options;
  options.folder = command.folder;
  options.backend = session.backend;
  options.models = command.models;
  options.runs = command.runs;
  options.seconds = command.seconds;
  if (command.small) options.log_bytes = uint64_t{8} << 20;
  bool first = true;
  RecordSinks sinks;
  sinks.volume = [&](const host::VolumeState& volume) {
    show_volume(
        session, volume, "records", command.runs, first,
        fmt::format("{:<8} {:<7} {:>7} {:>6} {:<7} {:<8} {:>30} {:>10}", "model", "actor",
                    "writers", "bytes", "reader", "durable", "1000 records/s", "longest us"));
    first = false;
  };
  sinks.row = [&](const RecordRow& row) { show_records(session, row); };
  if (auto done = run_records(options, sinks); !done) throw cli::Failure{done.error().message};
}

}  // namespace gofs::bench
