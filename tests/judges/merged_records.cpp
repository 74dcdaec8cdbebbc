// SPDX-License-Identifier: Apache-2.0
#include "merged_records.h"

#include <set>
#include <utility>

namespace gofs::judges {

/// Records may begin alike, so that more than one order has to be tried: how far each writer has
/// come says where in the log that is, and is looked at once.
std::optional<std::vector<uint64_t>> record_ends(const WritersRecords& writers,
                                                 std::string_view log) {
  using Counts = std::vector<uint8_t>;  // records of each writer
  struct Place {
    Counts counts;
    std::vector<uint64_t> ends;
  };
  std::set<Counts> met;
  std::vector<Place> open{{Counts(writers.size(), 0), {}}};
  while (!open.empty()) {
    const Place place = std::move(open.back());
    open.pop_back();
    const uint64_t at = place.ends.empty() ? 0 : place.ends.back();
    bool all = true;
    for (size_t writer = 0; writer < writers.size(); ++writer) {
      const size_t number = place.counts[writer];
      if (number == writers[writer].size()) continue;
      all = false;
      const std::string& record = writers[writer][number];
      if (log.substr(at, record.size()) != record) continue;
      Place next = place;
      ++next.counts[writer];
      next.ends.push_back(at + record.size());
      if (met.insert(next.counts).second) open.push_back(std::move(next));
    }
    if (all && at == log.size()) return place.ends;
  }
  return std::nullopt;
}

}  // namespace gofs::judges
