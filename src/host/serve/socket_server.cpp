// SPDX-License-Identifier: Apache-2.0
#include "host/serve/socket_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
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

}  // namespace

SocketServer::SocketServer(ChannelServer& channels, std::string path, uint32_t mode)
    : channels_(channels),
      path_(std::move(path)),
      listening_(listen_at(path_, mode)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!events_.is_open() || !stop_.is_open()) ssd::fail_with(errno, path_);
  watch(listening_.get());
  watch(stop_.get());
  thread_ = ssd::start_quiet_thread([this] { run(); });
}

SocketServer::~SocketServer() {
  (void)::unlink(path_.c_str());
  const uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof(one));
  thread_.join();
  for (const auto& [descriptor, connection] : connections_) {
    channels_.begin_close(connection.channel);
    leaving_.push_back(connection.channel);
  }
  for (const uint32_t channel : leaving_) (void)channels_.close(channel);
}

void SocketServer::watch(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = descriptor;
  if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    ssd::fail_with(errno, path_);
  }
}

void SocketServer::run() {
  for (;;) {
    epoll_event event{};
    const int count = ::epoll_wait(events_.get(), &event, 1, leaving_.empty() ? -1 : kLeavingMs);
    if (count == 1 && event.data.fd == stop_.get()) return;
    if (count == 1 && event.data.fd == listening_.get()) {
      take_client();
    } else if (count == 1) {
      end_client(event.data.fd);
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
    const int descriptor = connection.get();
    watch(descriptor);
    auto opened = channels_.open(peer_of(connection));
    if (!opened) {
      (void)greet(connection, nullptr, opened.error().code);
      return;
    }
    connections_.emplace(descriptor, Connection{std::move(connection), opened->number});
    if (!greet(connections_.at(descriptor).descriptor, &opened->ends, 0)) end_client(descriptor);
  } catch (const std::system_error& problem) {
    (void)greet(connection, nullptr, problem.code().value());
  }
}

/// It has hung up, or has said something, which is not its turn.
void SocketServer::end_client(int connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  channels_.begin_close(found->second.channel);
  leaving_.push_back(found->second.channel);
  connections_.erase(found);
}

}  // namespace gofs::host
