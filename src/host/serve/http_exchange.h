// SPDX-License-Identifier: Apache-2.0
//
// One request of HTTP/1.1 and its answer, over a connection that does not block: what a monitoring
// program asks, and no more. Who is slow or sends too much is answered or dropped; nothing is
// waited for here.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "ssd/descriptor.h"

namespace gofs::host {

class HttpExchange {
 public:
  using Clock = std::chrono::steady_clock;
  /// What is told at /metrics; empty where that is not known now.
  using TextBy = std::function<std::string()>;

  static constexpr size_t kRequestBytesMax = 4096;

  HttpExchange(ssd::Descriptor connection, Clock::time_point deadline)
      : connection_(std::move(connection)), deadline_(deadline) {}

  const ssd::Descriptor& connection() const { return connection_; }
  Clock::time_point deadline() const { return deadline_; }
  /// What poll() is to look for.
  short waits_for() const;
  /// Gets on, as far as that goes at once. False: it is over.
  bool step(const TextBy& text_by);

 private:
  bool hear(const TextBy& text_by);
  bool tell();
  bool leave();

  ssd::Descriptor connection_;
  const Clock::time_point deadline_;
  std::string request_;
  std::string answer_;  // not empty: the request is there
  size_t told_ = 0;     // of the answer
  bool leaving_ = false;
};

/// The answer to the head of a request, all of it or as much as may come.
std::string http_answer(const std::string& head, const HttpExchange::TextBy& text_by);

}  // namespace gofs::host
