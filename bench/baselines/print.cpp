// SPDX-License-Identifier: Apache-2.0
#include "print.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/show_spread.hpp"
#include "simt/platform.h"

namespace gofs::bench {
namespace {

using Json = nlohmann::ordered_json;

void put_line(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

const char* work_of(const Point& point) { return point.writes ? "write" : "read"; }
uint64_t bytes_of(const Point& point) { return point.files ? kSmallFileBytes : kBlockBytes; }

}  // namespace

Sinks Printer::sinks() {
  Sinks sinks;
  sinks.machine = [this](const VolumeInfo& info) { machine(info); };
  sinks.row = [this](const Row& one) { row(one); };
  sinks.gap = [this](const std::string& name, const std::string& why) { gap(name, why); };
  return sinks;
}

void Printer::machine(const VolumeInfo& info) {
  if (options_.json) {
    put_line(Json{{"bench", "baselines volume"},
                  {"backend", info.backend},
                  {"backend_detail", info.backend_detail},
                  {"ssd", info.ssd},
                  {"lba_bytes", info.lba_bytes},
                  {"queues", info.queues},
                  {"queue_depth", info.queue_depth},
                  {"large_bytes", options_.large_bytes},
                  {"written_bytes", options_.written_bytes()},
                  {"runs", options_.runs},
                  {"seconds", options_.seconds},
                  {"controller_warps", options_.controller_warps}}
                 .dump());
    return;
  }
  put_line(fmt::format("-- {}: {}; {}, {} queue pairs of {} entries", info.backend,
                       info.backend_detail, info.ssd, info.queues, info.queue_depth));
  if (!first_) return;
  first_ = false;
  put_line(
      fmt::format("{} runs of {} s each: median, least and most; {} bytes an operation; "
                  "{} controller warps beside raw, gofs and the companions",
                  options_.runs, options_.seconds, kBlockBytes, options_.controller_warps));
  put_line(fmt::format("{:<16} {:<8} {:<5} {:<10} {:>7} {:>7} {:>5} {:>32} {:>7} {:>10} {:>6}  {}",
                       "name", "model", "work", "pattern", "outst.", "flight", "lanes", "1000/s",
                       "GB/s", "us", "cores", "note"));
}

void Printer::row(const Row& row) const {
  const Spread& rate = row.per_second;
  if (options_.json) {
    put_line(Json{{"bench", "baseline"},
                  {"name", row.name},
                  {"model", row.model},
                  {"work", work_of(row.point)},
                  {"pattern", pattern_of(row.point)},
                  {"outstanding", row.outstanding},
                  {"in_flight", row.in_flight},
                  {"lanes_per_warp", row.point.layout.lanes_per_warp},
                  {"bytes", bytes_of(row.point)},
                  {"ops_per_s", spread_json(rate, 1)},
                  {"bytes_per_s", spread_json(rate, static_cast<double>(bytes_of(row.point)))},
                  {"latency_us", row.latency_us},
                  {"cores", row.cores},
                  {"controller_warps", row.controller_warps},
                  {"note", row.note}}
                 .dump());
    return;
  }
  const std::string rates = fmt::format("{:.5g} ({:.5g} to {:.5g})", rate.median / 1e3,
                                        rate.least / 1e3, rate.most / 1e3);
  const uint32_t lanes = row.point.layout.lanes_per_warp;
  put_line(fmt::format(
      "{:<16} {:<8} {:<5} {:<10} {:>7} {:>7} {:>5} {:>32} {:>7.3f} {:>10.2f} {:>6.2f}  {}",
      row.name, row.model, work_of(row.point), pattern_of(row.point), row.outstanding,
      row.in_flight, lanes == 0 ? "all" : std::to_string(lanes), rates,
      rate.median * static_cast<double>(bytes_of(row.point)) / 1e9, row.latency_us, row.cores,
      row.note));
}

void Printer::gap(const std::string& name, const std::string& why) const {
  if (options_.json) {
    put_line(
        Json{{"bench", "baseline"}, {"name", name}, {"available", false}, {"note", why}}.dump());
    return;
  }
  put_line(fmt::format("{:<16} not available: {}", name, why));
}

}  // namespace gofs::bench
