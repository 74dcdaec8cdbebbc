// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "cli/session.h"
#include "daemon/heart.h"
#include "daemon/keeper_line.h"
#include "daemon/signals.h"
#include "daemon/speech.h"
#include "host/metrics_text.h"
#include "host/serve/control_desk.h"
#include "host/serve/metrics_address.h"
#include "host/serve/metrics_server.h"
#include "host/serve/served_volume.h"
#include "host/serve/socket_server.h"
#include "ssd/claimed_image.h"
#include "ssd/system_failure.h"

namespace gofs::daemon {

namespace {

// How often it is looked whether there is damage to tell of.
constexpr int kTellingMs = 1000;

void tell_warnings(const Options& options, host::VolumeState& volume) {
  for (const std::string& warning : volume.warnings()) {
    complain(options.volume + ": warning: " + warning);
  }
}

/// Empty where the volume does not answer.
std::string metrics_of(host::VolumeState& volume, host::ChannelServer& channels) {
  Statistics statistics{};
  if (volume.call({.verb = request::Verb::kStatistics}, statistics).result < 0) return {};
  const auto times = volume.command_times();
  return times ? host::metrics_text(statistics, *times, channels.status().clients.size())
               : std::string();
}

/// Until a signal, the keeper's end or `stop`.
void wait_for_end(const Options& options, host::VolumeState& volume, const ssd::Descriptor& signals,
                  const ssd::Descriptor& keeper, const ssd::Descriptor& stop) {
  pollfd ends[] = {{signals.get(), POLLIN, 0}, {keeper.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}};
  while (::poll(ends, std::size(ends), kTellingMs) <= 0) tell_warnings(options, volume);
}

/// A call is slow, and has not hung, while the SSD is given commands, each of which has a deadline.
/// What a GPU does meanwhile is not seen from here: a turn of it may last as long as its clients
/// wait for an answer.
Heart::Sign sign_of_life(const host::VolumeState& volume, const host::ChannelServer& channels) {
  if (!volume.backend().is_host()) {
    constexpr std::chrono::nanoseconds kLongest{host::ChannelClient::kAnswerTimeoutNs};
    return {[&channels] { return channels.progress(); },
            std::chrono::duration_cast<std::chrono::milliseconds>(kLongest)};
  }
  return {[&] { return channels.progress() + volume.commands_issued(); }, {}};
}

/// Each client takes up to five, and a session of Linux's gives 1,024 unless asked for more.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

/// What the keeper has claimed is this process's as well.
void inherit_claims(const Options& options) {
  std::vector<ssd::Descriptor> claims;
  for (int i = 0; i < options.claims; ++i) {
    claims.emplace_back(kFirstClaim + i);
    if (::fcntl(claims.back().get(), F_SETFD, FD_CLOEXEC) != 0) ssd::fail_with(errno, "a claim");
  }
  ssd::inherit_claims(std::move(claims));
}

}  // namespace

int work(const Options& options) {
  const ssd::Descriptor signals = ending_signals();
  const ssd::Descriptor listening(kListeningDescriptor);
  const ssd::Descriptor keeper(kKeeperDescriptor);
  const ssd::Descriptor stop = host::make_bell();
  inherit_claims(options);
  raise_descriptor_limit();
  Heart heart(keeper);
  MountOptions mount;
  mount.backend = options.backend;
  mount.read_only = false;
  const auto volume =
      cli::take(host::VolumeState::mount(options.volume, mount, host::MountKind::kServed));
  tell_warnings(options, *volume);
  // A GPU's threads get their stacks when a kernel is launched for the first time, and CUDA may
  // wait until no kernel runs for that: clients' kernels would wait for ours meanwhile.
  if (!volume->backend().is_host()) (void)volume->call({.verb = request::Verb::kSync});
  std::vector<ssd::Descriptor> waiting;  // for the answer to their question for the end
  {
    host::ChannelServerOptions serving;
    serving.threads = options.threads;
    serving.blocks = options.blocks;
    // The keeper starts another, which finds what was durable.
    serving.on_failure = [&stop] { host::ring_bell(stop); };
    serving.channels_max = options.clients_max;
    host::ChannelServer channels(host::served(*volume), serving);
    host::ControlDesk desk(*volume, channels, [&] {
      (void)tell_keeper(keeper, Word::kEnding);
      host::ring_bell(stop);
    });
    host::SocketServer server(channels, listening,
                              [&desk](const host::Question& question, const auto& who) {
                                return desk.answer(question, who);
                              });
    std::optional<host::MetricsServer> metrics;
    if (!options.metrics.empty()) {
      metrics.emplace(host::listen_for_metrics(options.metrics),
                      [&] { return metrics_of(*volume, channels); });
    }
    {
      const Heart::Judged judged(heart, sign_of_life(*volume, channels));
      if (tell_keeper(keeper, Word::kServing)) {
        wait_for_end(options, *volume, signals, keeper, stop);
      }
    }
    waiting = server.end();
  }
  tell_warnings(options, *volume);
  const auto unmounted = volume->unmount();
  const host::Answer answer =
      unmounted ? host::Answer{}
                : host::Answer{unmounted.error().code, unmounted.error().message, {}};
  for (const ssd::Descriptor& one : waiting) (void)host::send_control(one, host::packed(answer));
  cli::take(unmounted);
  return 0;
}

}  // namespace gofs::daemon
