// SPDX-License-Identifier: Apache-2.0
#include "host/serve/socket_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "host/serve/socket.h"
#include "ssd/hosted/quiet_thread.h"
#include "ssd/system_failure.h"

namespace gofs::host {

namespace {

// How often it is looked whether the calls of a client that has gone have ended.
constexpr int kLeavingMs = 2;

uint32_t mark_of(const ssd::Descriptor& one) { return static_cast<uint32_t>(one.get()); }

}  // namespace

SocketServer::SocketServer(ChannelServer& channels, std::string path, uint32_t mode)
    : channels_(channels),
      path_(std::move(path)),
      listening_(listen_at(path_, mode)),
      stop_(make_bell()) {
  events_.add(listening_, mark_of(listening_));
  events_.add(stop_, mark_of(stop_));
  thread_ = ssd::start_quiet_thread([this] { run(); });
}

SocketServer::~SocketServer() {
  (void)::unlink(path_.c_str());
  ring_bell(stop_);
  thread_.join();
  for (const auto& [mark, connection] : connections_) {
    channels_.begin_close(connection.channel);
    leaving_.push_back(connection.channel);
  }
  for (const uint32_t channel : leaving_) (void)channels_.close(channel);
}

void SocketServer::run() {
  for (;;) {
    const std::optional<uint32_t> ready = events_.wait(leaving_.empty() ? -1 : kLeavingMs);
    if (ready == mark_of(stop_)) return;
    if (ready == mark_of(listening_)) {
      take_client();
    } else if (ready) {
      end_client(*ready);
    }
    std::erase_if(leaving_, [&](uint32_t channel) { return channels_.finish_close(channel); });
  }
}

void SocketServer::take_client() {
  ssd::Descriptor connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection.is_open()) {
    // There are no descriptors left, perhaps: the client waits until there are.
    std::this_thread::sleep_for(std::chrono::milliseconds(kLeavingMs));
    return;
  }
  try {
    const uint32_t mark = mark_of(connection);
    events_.add(connection, mark);
    auto opened = channels_.open(peer_of(connection));
    if (!opened) {
      (void)greet(connection, nullptr, opened.error().code);
      return;
    }
    connections_.emplace(mark, Connection{std::move(connection), opened->number});
    if (!greet(connections_.at(mark).descriptor, &opened->ends, 0)) end_client(mark);
  } catch (const std::system_error& problem) {
    (void)greet(connection, nullptr, problem.code().value());
  }
}

/// It has hung up, or has said something, which is not its turn.
void SocketServer::end_client(uint32_t mark) {
  const auto found = connections_.find(mark);
  if (found == connections_.end()) return;
  channels_.begin_close(found->second.channel);
  leaving_.push_back(found->second.channel);
  connections_.erase(found);
}

}  // namespace gofs::host
