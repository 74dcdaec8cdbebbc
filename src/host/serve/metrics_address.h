// SPDX-License-Identifier: Apache-2.0
//
// Where a server tells its metrics: `ADDRESS:PORT` by numbers, of this machine alone if no address
// is given.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>

#include "ssd/descriptor.h"

namespace gofs::host {

struct MetricsAddress {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } address;
  socklen_t bytes;
};

/// ":9466" is 127.0.0.1; "0.0.0.0:9466" all of this machine's; "[::1]:9466" has IPv6. Port 0 is one
/// that is free. No value: it is none of these.
std::optional<MetricsAddress> parse_metrics_address(const std::string& text);

/// A socket that takes connections there, and does not block. Throws std::system_error.
ssd::Descriptor listen_for_metrics(const std::string& text);

/// The port that it has got.
uint16_t port_of(const ssd::Descriptor& listening);

}  // namespace gofs::host
