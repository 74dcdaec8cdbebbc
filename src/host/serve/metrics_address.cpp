// SPDX-License-Identifier: Apache-2.0
#include "host/serve/metrics_address.h"

#include <arpa/inet.h>

#include <cerrno>
#include <charconv>

#include "ssd/system_failure.h"

namespace gofs::host {

namespace {

constexpr int kMetricsBacklog = 16;

std::optional<uint16_t> parse_port(const std::string& text) {
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || stop != end) return std::nullopt;
  return port;
}

}  // namespace

std::optional<MetricsAddress> parse_metrics_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::optional<uint16_t> port = parse_port(text.substr(colon + 1));
  if (!port) return std::nullopt;
  const std::string host = colon == 0 ? "127.0.0.1" : text.substr(0, colon);
  MetricsAddress parsed{};
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    parsed.address.v6.sin6_family = AF_INET6;
    parsed.address.v6.sin6_port = htons(*port);
    parsed.bytes = sizeof(parsed.address.v6);
    const std::string inner = host.substr(1, host.size() - 2);
    if (::inet_pton(AF_INET6, inner.c_str(), &parsed.address.v6.sin6_addr) != 1) {
      return std::nullopt;
    }
    return parsed;
  }
  parsed.address.v4.sin_family = AF_INET;
  parsed.address.v4.sin_port = htons(*port);
  parsed.bytes = sizeof(parsed.address.v4);
  if (::inet_pton(AF_INET, host.c_str(), &parsed.address.v4.sin_addr) != 1) return std::nullopt;
  return parsed;
}

ssd::Descriptor listen_for_metrics(const std::string& text) {
  const std::string subject = "metrics at " + text;
  const auto parsed = parse_metrics_address(text);
  if (!parsed) ssd::fail_with(EINVAL, subject);
  ssd::Descriptor listening(
      ::socket(parsed->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listening.is_open()) ssd::fail_with(errno, subject);
  // The connections of a worker that was here before may linger.
  const int yes = 1;
  (void)::setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (::bind(listening.get(), &parsed->address.any, parsed->bytes) != 0 ||
      ::listen(listening.get(), kMetricsBacklog) != 0) {
    ssd::fail_with(errno, subject);
  }
  return listening;
}

uint16_t port_of(const ssd::Descriptor& listening) {
  MetricsAddress bound{};
  bound.bytes = sizeof(bound.address);
  if (::getsockname(listening.get(), &bound.address.any, &bound.bytes) != 0) {
    ssd::fail_with(errno, "getsockname");
  }
  return ntohs(bound.address.any.sa_family == AF_INET6 ? bound.address.v6.sin6_port
                                                       : bound.address.v4.sin_port);
}

}  // namespace gofs::host
