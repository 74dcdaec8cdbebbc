// SPDX-License-Identifier: Apache-2.0
#include "host/serve/message.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gofs::host {

namespace {

/// Room for the descriptors that come with a message.
union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(kDescriptorsMax * sizeof(int))];
};

msghdr message_of(iovec& part, Control& control) {
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof(control);
  return message;
}

/// What has come has an owner first of all.
void take_descriptors(msghdr& message, std::vector<ssd::Descriptor>& to) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int value = -1;
      std::memcpy(&value, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      to.emplace_back(value);
    }
  }
}

}  // namespace

bool send_message(const ssd::Descriptor& connection, std::span<const char> bytes,
                  std::span<const int> descriptors) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  Control control{};
  msghdr message = message_of(part, control);
  if (descriptors.empty()) {
    message.msg_control = nullptr;
    message.msg_controllen = 0;
  } else {
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(connection.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

int await_message(const ssd::Descriptor& connection,
                  std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{connection.get(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready > 0) return 0;
    if (ready == 0) return ETIMEDOUT;
    // A signal, after which poll() is never begun again by itself.
    if (errno != EINTR) return errno;
  }
}

Message receive_message(const ssd::Descriptor& connection, size_t bytes_max, Descriptors what) {
  Message received;
  received.bytes.resize(bytes_max);
  received.descriptors.reserve(kDescriptorsMax);
  iovec part{received.bytes.data(), received.bytes.size()};
  Control control{};
  msghdr message = message_of(part, control);
  if (what == Descriptors::kDropped) {
    message.msg_control = nullptr;
    message.msg_controllen = 0;
  }
  const ssize_t got =
      ::recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0) {
    received.error = errno;
  } else if (static_cast<size_t>(got) > bytes_max) {
    received.error = EMSGSIZE;
  }
  if (got >= 0) take_descriptors(message, received.descriptors);
  received.bytes.resize(received.error == 0 ? static_cast<size_t>(got) : 0);
  return received;
}

}  // namespace gofs::host
