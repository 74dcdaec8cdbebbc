// SPDX-License-Identifier: Apache-2.0
//
// gofs stat VOL --watch [SECONDS]: what goes on in a volume, a line after each interval, as iostat
// has it for a disk. At a server's socket that is what all its clients do.
#include <chrono>
#include <thread>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/statistics_text.h"

namespace gofs::cli {

namespace {

constexpr uint64_t kLinesAHeader = 20;

}  // namespace

void run_watch(Session& session, const WatchOptions& options) {
  using Clock = std::chrono::steady_clock;
  Volume volume = open_volume(session);
  if (!is_socket(session.volume)) {
    (void)tell(session.volume +
               ": mounted by this command alone, so what it does is all there is "
               "to see; name a server's socket to see its clients");
  }
  const auto interval =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  Statistics before = take(volume.statistics());
  CommandTimes times_before = take(command_times(volume));
  Clock::time_point seen = Clock::now();
  for (uint64_t line = 0; options.count == 0 || line < options.count; ++line) {
    if (!session.json && line % kLinesAHeader == 0) print(rates_header());
    flush_output();
    std::this_thread::sleep_until(seen + interval);
    const Statistics now = take(volume.statistics());
    const CommandTimes times = take(command_times(volume));
    const Clock::time_point then = std::exchange(seen, Clock::now());
    const double seconds = std::chrono::duration<double>(seen - then).count();
    const Rates rates = rates_between(before, now, seconds);
    const CommandDelays delays = delays_between(times_before, times, seconds);
    print(session.json ? rates_json(rates, now, delays, times) : rates_line(rates, now, delays));
    before = now;
    times_before = times;
  }
}

}  // namespace gofs::cli
