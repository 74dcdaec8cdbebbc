// SPDX-License-Identifier: Apache-2.0
#include "host/serve/metrics_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "ssd/hosted/quiet_thread.h"

namespace gofs::host {

namespace {

// After a connection could not be taken, since there are no descriptors left, perhaps.
constexpr std::chrono::milliseconds kPauseAfterFailure{100};

}  // namespace

MetricsServer::MetricsServer(ssd::Descriptor listening, HttpExchange::TextBy text_by,
                             const MetricsServerOptions& options)
    : listening_(std::move(listening)), text_by_(std::move(text_by)), options_(options) {
  thread_ = ssd::start_quiet_thread([this] { run(); });
}

MetricsServer::~MetricsServer() {
  ring_bell(stop_);
  thread_.join();
}

std::string MetricsServer::text() {
  const Clock::time_point now = Clock::now();
  if (text_.empty() || now >= text_until_) {
    text_ = text_by_();
    text_until_ = now + options_.text_for;
  }
  return text_;
}

void MetricsServer::take_connection() {
  ssd::Descriptor taken(
      ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const Clock::time_point now = Clock::now();
  if (taken.is_open()) {
    exchanges_.emplace_back(std::move(taken), now + options_.exchange_max);
  } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
    takes_from_ = now + kPauseAfterFailure;
  }
}

/// Until the first deadline of some connection, or until one may be taken again.
int MetricsServer::timeout_ms() const {
  const Clock::time_point now = Clock::now();
  Clock::time_point first = Clock::time_point::max();
  if (takes_from_ > now) first = takes_from_;
  for (const HttpExchange& one : exchanges_) first = std::min(first, one.deadline());
  if (first == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - now).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

void MetricsServer::run() {
  for (;;) {
    const bool takes = exchanges_.size() < options_.exchanges_max && Clock::now() >= takes_from_;
    std::vector<pollfd> looks{{stop_.get(), POLLIN, 0},
                              {listening_.get(), static_cast<short>(takes ? POLLIN : 0), 0}};
    for (const HttpExchange& one : exchanges_) {
      looks.push_back({one.connection().get(), one.waits_for(), 0});
    }
    if (::poll(looks.data(), looks.size(), timeout_ms()) < 0) continue;
    if (looks[0].revents != 0) return;
    const Clock::time_point now = Clock::now();
    size_t i = 2;
    std::erase_if(exchanges_, [&](HttpExchange& one) {
      const bool ready = looks[i++].revents != 0;
      return now >= one.deadline() || (ready && !one.step([this] { return text(); }));
    });
    if ((looks[1].revents & POLLIN) != 0) take_connection();
  }
}

}  // namespace gofs::host
