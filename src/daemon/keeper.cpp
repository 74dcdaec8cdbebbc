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
#include <vector>

#include "cli/output.h"
#include "cli/session.h"
#include "daemon/signals.h"
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
  }

  int keep() {
    bool has_served = false;
    milliseconds pause = kPauseMin;
    for (;;) {
      const Ended ended = run_worker(has_served);
      has_served = has_served || ended.served;
      // A first one that never came up has said why.
      if (ended.on_purpose || !has_served) {
        return WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : cli::kExitFailure;
      }
      (void)cli::tell(options_.volume + ": the worker " + words_of_end(ended.status) +
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

  /// The signals that come meanwhile are passed on: the first one asks the worker to end, another
  /// one kills it.
  Ended run_worker(bool again) {
    WorkerProcess worker(words(), listening_.descriptor(), claimed_);
    Ended ended{0, false, false, {}};
    std::chrono::steady_clock::time_point came_up;
    for (;;) {
      pollfd looks[] = {{signals_.get(), POLLIN, 0}, {worker.connection().get(), POLLIN, 0}};
      if (::poll(looks, std::size(looks), -1) < 0 && errno != EINTR) ssd::fail_with(errno, "poll");
      if (take_signal()) {
        worker.signal(ended.on_purpose ? SIGKILL : SIGTERM);
        ended.on_purpose = true;
      }
      if (looks[1].revents == 0) continue;
      char byte = 0;
      if (::read(worker.connection().get(), &byte, 1) == 1) {
        ended.served = true;
        came_up = std::chrono::steady_clock::now();
        tell_serving(again);
        continue;
      }
      ended.status = worker.reap();
      if (ended.served) {
        ended.served_for =
            std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - came_up);
      }
      ended.on_purpose =
          ended.on_purpose || (WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0);
      return ended;
    }
  }

  void tell_serving(bool again) {
    cli::print(options_.volume + (again ? " is served again at " : " is served at ") +
               options_.socket + "\n");
    cli::flush_output();
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
};

}  // namespace

int keep(const Options& options) { return Keeper(options).keep(); }

}  // namespace gofs::daemon
