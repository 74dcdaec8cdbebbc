// SPDX-License-Identifier: Apache-2.0
//
// Tells metrics to whom asks for them by HTTP, from one thread. Few connections are had at a time,
// each for a bounded time and of bounded bytes, so that nobody who comes does harm: others wait
// until there is room.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <thread>

#include "host/serve/bell.h"
#include "host/serve/http_exchange.h"

namespace gofs::host {

struct MetricsServerOptions {
  std::chrono::milliseconds exchange_max{5000};  // from connecting to hanging up
  size_t exchanges_max = 16;                     // at a time
  std::chrono::milliseconds text_for{100};       // so long the same text is told again
};

class MetricsServer {
 public:
  /// `text_by` is called from its thread. Throws std::system_error.
  MetricsServer(ssd::Descriptor listening, HttpExchange::TextBy text_by,
                const MetricsServerOptions& options = {});
  /// Connections are hung up.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

 private:
  using Clock = HttpExchange::Clock;

  void run();
  void take_connection();
  int timeout_ms() const;
  std::string text();

  const ssd::Descriptor listening_;
  const ssd::Descriptor stop_ = make_bell();
  const HttpExchange::TextBy text_by_;
  const MetricsServerOptions options_;
  // Of the thread:
  std::list<HttpExchange> exchanges_;
  std::string text_;
  Clock::time_point text_until_{};
  Clock::time_point takes_from_{};  // before, none is taken

  std::thread thread_;
};

}  // namespace gofs::host
