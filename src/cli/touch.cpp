// SPDX-License-Identifier: Apache-2.0
//
// gofs touch VOL PATH...: sets the times of files, and makes those that are missing.
#include <charconv>
#include <cmath>
#include <limits>

#include "cli/changes.h"
#include "cli/commands.h"

namespace gofs::cli {

std::optional<TimeStamp> parse_time(const std::string& text) {
  const size_t point = std::min(text.find('.'), text.size());
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + point, seconds);
  if (error != std::errc() || end != text.data() + point) return std::nullopt;
  std::string fraction = point == text.size() ? "0" : text.substr(point + 1);
  if (fraction.empty() || fraction.size() > 9 ||
      fraction.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  fraction.resize(9, '0');
  const auto nanoseconds = static_cast<uint32_t>(std::stoul(fraction));
  if (!text.starts_with('-') || nanoseconds == 0) return TimeStamp{seconds, nanoseconds};
  // Nanoseconds count forwards from the second before: -0.25 is a quarter before 1970.
  if (seconds == std::numeric_limits<int64_t>::min()) return std::nullopt;
  return TimeStamp{seconds - 1, 1'000'000'000 - nanoseconds};
}

void run_touch(Session& session, const TouchOptions& options) {
  const TimeStamp time =
      options.time.empty() ? TimeStamp{0, kTimeNow} : parse_time(options.time).value();
  const TimeStamp omit{0, kTimeOmit};
  const bool both = options.accessed == options.modified;
  const TimeStamp accessed = both || options.accessed ? time : omit;
  const TimeStamp modified = both || options.modified ? time : omit;
  ChangeOptions change = options.change;
  const bool of_links = options.no_dereference || change.recursive;
  if (!of_links) change.missing = options.no_create ? Missing::kLeave : Missing::kCreate;
  change_paths(session, change, [&](Volume& volume, host::Tree& tree) -> Change {
    return [&](const ChangeTarget& target) {
      if (target.met != nullptr) {
        return tree.change(
            *target.met,
            {.verb = request::Verb::kUtimens, .accessed = accessed, .modified = modified});
      }
      return of_links ? volume.lutimens(target.path, accessed, modified)
                      : volume.utimens(target.path, accessed, modified);
    };
  });
}

}  // namespace gofs::cli
