// SPDX-License-Identifier: Apache-2.0
#include "points.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gofs::bench {
namespace {

/// One baseline along the points.
struct Series {
  Baseline* baseline;
  std::vector<Sample> samples{};  // of this point
  uint32_t most = 0;              // outstanding, of the points before
  bool at_maximum = false;        // it cannot give more
};

Row row_of(Series& series, const std::string& model, const Point& point) {
  std::vector<Sample>& samples = series.samples;
  const auto middle = samples.size() / 2;
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.cores < b.cores; });
  const double cores = samples[middle].cores;
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.per_second() < b.per_second(); });
  const Sample& median = samples[middle];
  const double rate = median.per_second();
  return {series.baseline->name(),
          model,
          point,
          median.outstanding,
          median.in_flight,
          {rate, samples.front().per_second(), samples.back().per_second()},
          rate > 0 ? median.outstanding * 1e6 / rate : 0,
          cores,
          point.files ? 0 : series.baseline->controller_warps(),
          series.baseline->note()};
}

Error in_words(const Error& error, const Series& series, const std::string& model,
               const Point& point) {
  return {error.code,
          fmt::format("{}, model {}, {} {}, {} outstanding: {}", series.baseline->name(), model,
                      pattern_of(point), point.writes ? "writes" : "reads", point.outstanding,
                      error.message)};
}

/// Few are spread over many warps; where they are more, there are warps enough.
constexpr uint32_t kSpreadWarpsMax = 1'024;

/// Whether so many lie otherwise with `lanes` in each warp than in whole ones.
bool lie_otherwise(uint32_t outstanding, uint32_t lanes) {
  return outstanding > lanes && simt::divide_up(outstanding, lanes) <= kSpreadWarpsMax;
}

/// Measures those of the group that can give more than at the points before; the others leave it.
Expected<void> run_point(const Options& options, const std::string& model, const Point& point,
                         std::vector<Series>& group, const Sinks& sinks) {
  for (uint32_t run = 0; run < options.runs; ++run) {
    for (Series& series : group) {
      if (series.at_maximum) continue;
      const auto sample = series.baseline->measure(point);
      if (!sample) return in_words(sample.error(), series, model, point);
      if (sample->outstanding <= series.most) {
        series.at_maximum = true;
      } else {
        series.samples.push_back(*sample);
      }
    }
  }
  for (Series& series : group) {
    if (series.at_maximum) continue;
    sinks.row(row_of(series, model, point));
    series.most = series.samples.front().outstanding;
    series.at_maximum = series.most < point.outstanding;
    series.samples.clear();
  }
  return {};
}

Expected<void> run_files(const Options& options, const std::string& model,
                         const std::vector<Baseline*>& group, const Sinks& sinks) {
  std::vector<Series> series;
  for (Baseline* const baseline : group) {
    if (baseline->has_files()) series.push_back({baseline});
  }
  for (const uint32_t outstanding : options.outstanding) {
    const Point point{false, false, outstanding, {}, true};
    if (auto done = run_point(options, model, point, series, sinks); !done) return done;
  }
  return {};
}

}  // namespace

Expected<void> run_points(const Options& options, const std::string& model,
                          const std::vector<Baseline*>& group, const Sinks& sinks) {
  for (const std::string& work : options.works) {
    for (const std::string& pattern : options.patterns) {
      if (pattern == "files") {
        if (work == "write") continue;
        if (auto done = run_files(options, model, group, sinks); !done) return done;
        continue;
      }
      for (const uint32_t lanes : options.lanes_per_warp) {
        std::vector<Series> series;
        for (Baseline* const baseline : group) {
          if (lanes == 0 || baseline->has_layout()) series.push_back({baseline});
        }
        for (const uint32_t outstanding : options.outstanding) {
          if (lanes != 0 && !lie_otherwise(outstanding, lanes)) continue;
          const Point point{work == "write", pattern == "random", outstanding, {lanes, 0}};
          if (auto done = run_point(options, model, point, series, sinks); !done) return done;
        }
      }
    }
  }
  return {};
}

}  // namespace gofs::bench
