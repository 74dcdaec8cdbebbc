// SPDX-License-Identifier: Apache-2.0
#include "host/serve/bell.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "ssd/system_failure.h"

namespace gofs::host {

ssd::Descriptor make_bell() {
  ssd::Descriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell.is_open()) ssd::fail_with(errno, "eventfd");
  return bell;
}

void ring_bell(const ssd::Descriptor& bell) {
  const uint64_t one = 1;
  (void)!::write(bell.get(), &one, sizeof(one));
}

ssd::Descriptor copy_of(const ssd::Descriptor& one) {
  ssd::Descriptor copy(::fcntl(one.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.is_open()) ssd::fail_with(errno, "a descriptor");
  return copy;
}

Watch::Watch() : events_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!events_.is_open()) ssd::fail_with(errno, "epoll_create1");
}

void Watch::add(const ssd::Descriptor& descriptor, uint32_t mark) {
  add(descriptor, mark, EPOLLIN | EPOLLRDHUP);
}

void Watch::add_bell(const ssd::Descriptor& bell) { add(bell, 0, EPOLLIN | EPOLLET); }

void Watch::add(const ssd::Descriptor& descriptor, uint32_t mark, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u32 = mark;
  if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor.get(), &event) != 0) {
    ssd::fail_with(errno, "epoll_ctl");
  }
}

void Watch::remove(const ssd::Descriptor& descriptor) {
  (void)::epoll_ctl(events_.get(), EPOLL_CTL_DEL, descriptor.get(), nullptr);
}

std::optional<uint32_t> Watch::wait(int timeout_ms) const {
  epoll_event event{};
  if (::epoll_wait(events_.get(), &event, 1, timeout_ms) != 1) return {};
  return uint32_t{event.data.u32};  // the struct is packed
}

}  // namespace gofs::host
