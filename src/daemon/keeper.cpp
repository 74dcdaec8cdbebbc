// SPDX-License-Identifier: Apache-2.0
#include "daemon/keeper.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/session.h"
#include "daemon/keeper_line.h"
#include "daemon/mps.h"
#include "daemon/signals.h"
#include "daemon/speech.h"
#include "daemon/worker_process.h"
#include "host/serve/socket.h"
#include "host/volume_spec.h"
#include "ssd/claimed_image.h"
#include "ssd/system_failure.h"

namespace gofs::daemon {

namespace {

using std::chrono::milliseconds;

// Between a worker that could not serve, or not for kServingMin, and the next one; it grows.
constexpr milliseconds kPauseMin{100};
constexpr milliseconds kPauseMax{10'000};
constexpr milliseconds kServingMin{50};
// How often it is looked whether the worker is alive, and how long one that is not is left to end
// by itself.
constexpr milliseconds kLookPeriod{500};
constexpr milliseconds kGrace{5'000};

/// The files and block devices of a volume. They are claimed here, where nothing dies, so that
/// nobody has them between two workers. What is wrong with the words a worker says.
std::vector<ssd::ClaimedImage> claim(const std::string& volume) {
  std::vector<ssd::ClaimedImage> claims;
  const auto members = host::parse_volume_specs(volume);
  if (!members) return claims;
  for (const host::VolumeSpec& member : *members) {
    if (member.path.empty() || ::access(member.path.c_str(), F_OK) != 0) continue;
    claims.emplace_back(member.path, ssd::FileAccess::kReadWrite);
  }
  return claims;
}

using Clock = std::chrono::steady_clock;

/// How long a worker has said nothing, and what is done about it.
class Silence {
 public:
  explicit Silence(const Options& options) : options_(options) {}

  /// It has said something.
  void end() { lasted_ = {}; }
  /// It says nothing still: one that has hung is asked to end, and killed where it does not.
  void go_on(WorkerProcess& worker) {
    const Clock::time_point now = Clock::now();
    // Where all processes were frozen none could speak.
    lasted_ += std::min<Clock::duration>(now - std::exchange(looked_, now), 2 * kLookPeriod);
    if (was_too_long_) {
      // What it says now is that it tries to end.
      if (now - asked_at_ >= kGrace) worker.signal(SIGKILL);
      return;
    }
    if (options_.hang.count() == 0 || lasted_ < options_.hang || is_excused(worker)) return;
    complain(options_.volume + ": the worker has given no sign of life for " +
             std::to_string(options_.hang.count()) + " s, and is ended");
    worker.signal(SIGTERM);
    was_too_long_ = true;
    asked_at_ = now;
  }
  bool was_too_long() const { return was_too_long_; }

 private:
  bool is_excused(const WorkerProcess& worker) {
    if (!worker.is_traced()) return false;
    if (!std::exchange(is_debugged_, true)) {
      complain(options_.volume + ": a debugger has the worker, which may take its time");
    }
    end();
    return true;
  }

  const Options& options_;
  Clock::time_point looked_ = Clock::now();
  Clock::duration lasted_{};
  bool was_too_long_ = false;
  Clock::time_point asked_at_{};  // to end
  bool is_debugged_ = false;
};

class Keeper {
 public:
  explicit Keeper(const Options& options)
      : options_(options),
        listening_(options.socket, options.mode),
        signals_(ending_signals()),
        claims_(claim(options.volume)) {
    for (const ssd::ClaimedImage& claim : claims_) {
      for (const int one : claim.descriptors()) claimed_.push_back(one);
    }
    if (options.mps) mps_.emplace();
  }

  int keep() {
    bool has_served = false;
    milliseconds pause = kPauseMin;
    for (;;) {
      const std::unique_ptr<WorkerProcess> worker = start_worker(has_served);
      if (worker == nullptr) {
        pause = std::min(2 * pause, kPauseMax);
        if (wait_for_signal(pause)) return cli::kExitFailure;
        continue;
      }
      const Ended ended = watch_worker(*worker, has_served);
      has_served = has_served || ended.served;
      // A first one that never came up has said why.
      if (ended.on_purpose || !has_served) {
        return WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : cli::kExitFailure;
      }
      complain(options_.volume + ": the worker " + words_of_end(ended.status) +
               "; another is started");
      const bool is_well = ended.served_for >= kServingMin;
      pause = is_well ? kPauseMin : std::min(2 * pause, kPauseMax);
      if (!is_well && wait_for_signal(pause)) return cli::kExitFailure;
    }
  }

 private:
  struct Ended {
    int status;       // as of wait(2)
    bool served;      // it had come up
    bool on_purpose;  // it was asked to, or a client asked for it
    milliseconds served_for;
  };

  std::vector<std::string> words() const {
    std::vector<std::string> words{"gofsd",
                                   "--work",
                                   options_.volume,
                                   "--socket",
                                   options_.socket,
                                   "--backend",
                                   options_.backend,
                                   "--threads",
                                   std::to_string(options_.threads),
                                   "--blocks",
                                   std::to_string(options_.blocks),
                                   "--clients",
                                   std::to_string(options_.clients_max),
                                   "--claims",
                                   std::to_string(claimed_.size())};
    if (!options_.metrics.empty()) words.insert(words.end(), {"--metrics", options_.metrics});
    return words;
  }

  /// Null: the machine has no room for one now. Of the first one, that is the end.
  std::unique_ptr<WorkerProcess> start_worker(bool again) {
    try {
      return std::make_unique<WorkerProcess>(words(), listening_.descriptor(), claimed_);
    } catch (const std::system_error& problem) {
      if (!again) throw;
      complain(options_.volume +
               ": no worker can be started, which is tried again: " + problem.what());
      return nullptr;
    }
  }

  /// The signals that come meanwhile are passed on: the first one asks the worker to end, another
  /// one kills it.
  Ended watch_worker(WorkerProcess& worker, bool again) {
    Ended ended{0, false, false, {}};
    Silence silence(options_);
    Clock::time_point came_up;
    bool was_signalled = false;
    for (;;) {
      pollfd looks[] = {{signals_.get(), POLLIN, 0}, {worker.connection().get(), POLLIN, 0}};
      if (::poll(looks, std::size(looks), static_cast<int>(kLookPeriod.count())) < 0) {
        if (errno != EINTR) ssd::fail_with(errno, "poll");
        continue;
      }
      if (looks[1].revents == 0) silence.go_on(worker);
      if (take_signal()) {
        worker.signal(std::exchange(was_signalled, true) ? SIGKILL : SIGTERM);
        ended.on_purpose = true;
      }
      if (looks[1].revents == 0) continue;
      Word word{};
      if (::read(worker.connection().get(), &word, 1) == 1) {
        silence.end();
        ended.on_purpose = ended.on_purpose || word == Word::kEnding;
        if (word != Word::kServing) continue;
        ended.served = true;
        came_up = Clock::now();
        tell_serving(again);
        continue;
      }
      ended.status = worker.reap();
      if (ended.served) {
        ended.served_for = std::chrono::duration_cast<milliseconds>(Clock::now() - came_up);
      }
      const bool asked_for = WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0;
      ended.on_purpose = ended.on_purpose || (asked_for && !silence.was_too_long());
      return ended;
    }
  }

  void tell_serving(bool again) {
    say(options_.volume + (again ? " is served again at " : " is served at ") + options_.socket);
  }

  bool take_signal() {
    signalfd_siginfo info;
    return ::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info));
  }

  bool wait_for_signal(milliseconds pause) {
    pollfd look{signals_.get(), POLLIN, 0};
    return ::poll(&look, 1, static_cast<int>(pause.count())) > 0 && take_signal();
  }

  const Options& options_;
  const host::ListeningSocket listening_;
  const ssd::Descriptor signals_;
  const std::vector<ssd::ClaimedImage> claims_;
  std::vector<int> claimed_;  // their descriptors
  std::optional<Mps> mps_;
};

}  // namespace

int keep(const Options& options) { return Keeper(options).keep(); }

}  // namespace gofs::daemon
