// SPDX-License-Identifier: Apache-2.0
#include "host/serve/socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "ssd/system_failure.h"

namespace gofs::host {

namespace {

constexpr int kBacklog = 128;
constexpr int kGreetingTimeoutMs = 10'000;
constexpr size_t kDescriptors = 2;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    ssd::fail_with(ENAMETOOLONG, "a socket's path has 1 to 107 bytes: " + path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

ssd::Descriptor make_socket(int flags = 0) {
  ssd::Descriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!made.is_open()) ssd::fail_with(errno, "a socket");
  return made;
}

/// 0, or what connect() says.
int connect_to(const ssd::Descriptor& one, const std::string& path) {
  const sockaddr_un address = address_of(path);
  const int result = ::connect(one.get(), reinterpret_cast<const sockaddr*>(&address),
                               static_cast<socklen_t>(sizeof(address)));
  return result == 0 ? 0 : errno;
}

/// That no server answers there, and nothing is lost with the name.
void expect_free(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return;
    ssd::fail_with(errno, path);
  }
  if (!S_ISSOCK(status.st_mode)) ssd::fail_with(EEXIST, path);
  const int error = connect_to(make_socket(), path);
  if (error == 0) ssd::fail_with(EADDRINUSE, path + ": a server is there");
  if (error != ECONNREFUSED) ssd::fail_with(error, path);
}

/// Room for the descriptors that come with a message.
union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(kDescriptors * sizeof(int))];
};

ssd::Descriptor listen_at(const std::string& path, uint32_t mode) {
  expect_free(path);
  // It gets its name when it has its mode and listens.
  const std::string apart = path + "." + std::to_string(::getpid());
  const sockaddr_un address = address_of(apart);
  ssd::Descriptor listening = make_socket(SOCK_NONBLOCK);
  (void)::unlink(apart.c_str());
  if (::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address),
             static_cast<socklen_t>(sizeof(address))) != 0) {
    ssd::fail_with(errno, apart);
  }
  if (::chmod(apart.c_str(), mode) != 0 || ::listen(listening.get(), kBacklog) != 0 ||
      ::rename(apart.c_str(), path.c_str()) != 0) {
    const int error = errno;
    (void)::unlink(apart.c_str());
    ssd::fail_with(error, path);
  }
  return listening;
}

}  // namespace

ListeningSocket::ListeningSocket(std::string path, uint32_t mode)
    : path_(std::move(path)), listening_(listen_at(path_, mode)) {}

ListeningSocket::~ListeningSocket() { (void)::unlink(path_.c_str()); }

Peer peer_of(const ssd::Descriptor& connection) {
  ucred who{};
  socklen_t bytes = sizeof(who);
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) {
    ssd::fail_with(errno, "SO_PEERCRED");
  }
  std::vector<gid_t> groups(kGroupsMax);
  bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) != 0) {
    ssd::fail_with(errno == ERANGE ? E2BIG : errno, "SO_PEERGROUPS");
  }
  vfs::Credentials credentials{};
  credentials.uid = who.uid;
  credentials.gid = who.gid;
  credentials.group_count = static_cast<uint32_t>(bytes / sizeof(gid_t));
  for (uint32_t i = 0; i < credentials.group_count; ++i) credentials.groups[i] = groups[i];
  return {credentials, who.pid};
}

bool greet(const ssd::Descriptor& connection, const ChannelEnds* ends, int error) {
  Greeting greeting{kGreetingMagic, kGreetingVersion, error};
  iovec part{&greeting, sizeof(greeting)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control{};
  if (ends != nullptr) {
    const int descriptors[kDescriptors] = {ends->memory.descriptor().get(), ends->bell.get()};
    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(descriptors));
    std::memcpy(CMSG_DATA(header), descriptors, sizeof(descriptors));
  }
  // It is the connection's first message, for which there is room.
  return ::sendmsg(connection.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof(greeting));
}

namespace {

/// A connection, and what the server has said first.
struct Greeted {
  ssd::Descriptor connection;
  Greeting greeting{};
  std::array<ssd::Descriptor, kDescriptors> descriptors{};
  size_t count = 0;  // of these
};

Greeted greeted_at(const std::string& path) {
  Greeted greeted;
  greeted.connection = make_socket();
  if (const int error = connect_to(greeted.connection, path); error != 0) {
    ssd::fail_with(error, path);
  }
  pollfd waiting{greeted.connection.get(), POLLIN, 0};
  const int ready = ::poll(&waiting, 1, kGreetingTimeoutMs);
  if (ready <= 0) ssd::fail_with(ready == 0 ? ETIMEDOUT : errno, path);
  Greeting& greeting = greeted.greeting;
  iovec part{&greeting, sizeof(greeting)};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof(control);
  const ssize_t got =
      ::recvmsg(greeted.connection.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  // First of all they have owners.
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < here && greeted.count < kDescriptors; ++i) {
      int value = -1;
      std::memcpy(&value, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      greeted.descriptors[greeted.count++] = ssd::Descriptor(value);
    }
  }
  if (got == 0) ssd::fail_with(ECONNREFUSED, path + ": the server has ended");
  if (got < 0) ssd::fail_with(errno, path);
  if (got != static_cast<ssize_t>(sizeof(greeting)) || greeting.magic != kGreetingMagic ||
      greeting.version != kGreetingVersion) {
    ssd::fail_with(EPROTO, path + ": no server of this version of GoFS");
  }
  return greeted;
}

}  // namespace

ChannelEnds attach_at(const std::string& path) {
  Greeted greeted = greeted_at(path);
  if (greeted.greeting.error != 0) ssd::fail_with(greeted.greeting.error, path);
  if (greeted.count != kDescriptors) ssd::fail_with(EPROTO, path + ": no channel has come");
  return {SharedMemory::map(std::move(greeted.descriptors[0])), std::move(greeted.descriptors[1]),
          std::move(greeted.connection)};
}

ssd::Descriptor connect_at(const std::string& path) {
  return std::move(greeted_at(path).connection);
}

}  // namespace gofs::host
