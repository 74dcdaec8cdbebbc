// SPDX-License-Identifier: Apache-2.0
#include "host/serve/socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "host/serve/control.h"
#include "host/serve/message.h"
#include "ssd/system_failure.h"

namespace gofs::host {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 128;
// So long a keeper waits in the queue of one that has the name.
constexpr std::chrono::milliseconds kTryTimeout{1'000};
// So long one waits for others that look at the name, who have it for kTryTimeout at the most.
constexpr std::chrono::milliseconds kLockTimeout{5'000};
constexpr std::chrono::milliseconds kLockPause{1};
#ifdef SO_PASSRIGHTS
constexpr int kPassRights = SO_PASSRIGHTS;
#else
constexpr int kPassRights = 83;  // of Linux 6.16
#endif

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

/// What clients send with their questions is not to reach this process (message.h), but for those
/// of take_descriptors_of(). Connections inherit it. An older Linux has no such option.
void refuse_descriptors(const ssd::Descriptor& listening) {
  const int no = 0;
  (void)::setsockopt(listening.get(), SOL_SOCKET, kPassRights, &no, sizeof(no));
}

/// 0, what connect() says, or ETIMEDOUT where the queue there stays full.
int connect_to(const ssd::Descriptor& one, const std::string& path, Clock::time_point deadline) {
  const sockaddr_un address = address_of(path);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::microseconds>(deadline - Clock::now()).count();
    if (left <= 0) return ETIMEDOUT;
    // Without it, it waits for ever.
    const timeval timeout{left / 1'000'000, left % 1'000'000};
    (void)::setsockopt(one.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    const int result = ::connect(one.get(), reinterpret_cast<const sockaddr*>(&address),
                                 static_cast<socklen_t>(sizeof(address)));
    if (result == 0) return 0;
    if (errno != EAGAIN && errno != EINTR) return errno;
  }
}

/// 0: there is none.
uint64_t inode_at(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

bool is_socket(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

/// Whoever looks at a socket's name, and then changes it, is alone meanwhile: he has locked a file
/// beside it, which goes with the lock. A lock of the folder would do, but anybody may lock what he
/// may read, and nobody else should keep a server from beginning; this file is for those alone who
/// may make names there. Who is killed leaves it, and the next one takes it over.
class NameLock {
 public:
  /// Throws std::system_error: ETIMEDOUT, or what open() says.
  explicit NameLock(const std::string& path) : path_(path + ".gofs-lock") {
    const Clock::time_point deadline = Clock::now() + kLockTimeout;
    while (!try_lock()) {
      if (Clock::now() > deadline) {
        ssd::fail_with(ETIMEDOUT, path + ": another server has locked " + path_ +
                                      " and does not begin or end");
      }
      std::this_thread::sleep_for(kLockPause);
    }
  }
  ~NameLock() { (void)::unlink(path_.c_str()); }
  NameLock(const NameLock&) = delete;
  NameLock& operator=(const NameLock&) = delete;

 private:
  bool try_lock() {
    file_ = ssd::Descriptor::open(path_, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (!file_.is_open()) refuse(errno);
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK || errno == EINTR) return false;
      ssd::fail_with(errno, path_);
    }
    // Who had it before has removed it, perhaps, and another one has made one since.
    struct stat status {};
    return ::fstat(file_.get(), &status) == 0 && status.st_ino == inode_at(path_);
  }

  [[noreturn]] void refuse(int error) const {
    const bool is_there = error == EACCES && inode_at(path_) != 0;
    ssd::fail_with(error, is_there ? path_ +
                                         ", which another user's server has left if none begins "
                                         "or ends now: remove it"
                                   : path_);
  }

  const std::string path_;
  ssd::Descriptor file_;
};

/// That no server answers there, and nothing is lost with the name.
void expect_free(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return;
    ssd::fail_with(errno, path);
  }
  if (!S_ISSOCK(status.st_mode)) ssd::fail_with(EEXIST, path);
  const int error = connect_to(make_socket(), path, Clock::now() + kTryTimeout);
  if (error == 0 || error == ETIMEDOUT) ssd::fail_with(EADDRINUSE, path + ": a server is there");
  if (error != ECONNREFUSED) ssd::fail_with(error, path);
}

/// `inode` becomes that of the name.
ssd::Descriptor listen_at(const std::string& path, uint32_t mode, uint64_t& inode) {
  // It gets its name when it has its mode and listens.
  const std::string apart = path + ".new";
  if (path.empty() || apart.size() >= sizeof(sockaddr_un::sun_path)) {
    ssd::fail_with(ENAMETOOLONG, "the path of a server's socket has 1 to 103 bytes: " + path);
  }
  const sockaddr_un address = address_of(apart);
  const NameLock alone(path);
  expect_free(path);
  ssd::Descriptor listening = make_socket(SOCK_NONBLOCK);
  refuse_descriptors(listening);
  if (is_socket(apart)) (void)::unlink(apart.c_str());  // of one that was killed
  if (::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address),
             static_cast<socklen_t>(sizeof(address))) != 0) {
    ssd::fail_with(errno, apart);
  }
  // Of the name of its own: the other one may be another's by the time that it is looked at.
  inode = inode_at(apart);
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
    : path_(std::move(path)), listening_(listen_at(path_, mode, inode_)) {}

ListeningSocket::~ListeningSocket() {
  try {
    const NameLock alone(path_);
    // It listens still, so that no other file has its inode's number.
    if (inode_at(path_) == inode_) (void)::unlink(path_.c_str());
  } catch (const std::exception&) {
    // It has listened until here, so another one has the name only if it came just now.
    if (inode_at(path_) == inode_) (void)::unlink(path_.c_str());
  }
}

bool is_trusted_peer(const ssd::Descriptor& connection) {
  try {
    return is_trusted(peer_of(connection).credentials);
  } catch (const std::system_error&) {
    return false;
  }
}

void take_descriptors_of(const ssd::Descriptor& connection) {
  const int yes = 1;
  (void)::setsockopt(connection.get(), SOL_SOCKET, kPassRights, &yes, sizeof(yes));
}

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
  const Greeting greeting{kGreetingMagic, kGreetingVersion, error};
  const std::span<const char> bytes(reinterpret_cast<const char*>(&greeting), sizeof(greeting));
  // It is the connection's first message, for which there is room.
  if (ends == nullptr) return send_message(connection, bytes);
  const int descriptors[] = {ends->memory.descriptor().get(), ends->bell.get()};
  return send_message(connection, bytes, descriptors);
}

namespace {

/// Where a connection is refused: what is there instead of a server, after a colon.
std::string instead_of_server(const std::string& path) {
  struct stat status {};
  const bool is_socket = ::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
  return is_socket ? ": the server of this socket has ended" : ": it is not a server's socket";
}

/// A connection, and what the server has said first.
struct Greeted {
  ssd::Descriptor connection;
  int error;
  std::vector<ssd::Descriptor> descriptors;
};

Greeted greeted_at(const std::string& path, std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  ssd::Descriptor connection = make_socket();
  int error = connect_to(connection, path, deadline);
  if (error == ECONNREFUSED) ssd::fail_with(error, path + instead_of_server(path));
  if (error == 0) error = await_message(connection, deadline);
  if (error != 0) ssd::fail_with(error, path);
  Message message = receive_message(connection, sizeof(Greeting), Descriptors::kTaken);
  if (message.error == 0 && message.bytes.empty()) {
    ssd::fail_with(ECONNREFUSED, path + ": the server has ended");
  }
  if (message.error != 0 && message.error != EMSGSIZE) ssd::fail_with(message.error, path);
  Greeting greeting{};
  if (message.bytes.size() == sizeof(greeting)) {
    std::memcpy(&greeting, message.bytes.data(), sizeof(greeting));
  }
  if (greeting.magic != kGreetingMagic || greeting.version != kGreetingVersion) {
    ssd::fail_with(EPROTO, path + ": no server of this version of GoFS");
  }
  return {std::move(connection), greeting.error, std::move(message.descriptors)};
}

}  // namespace

ChannelEnds attach_at(const std::string& path, std::chrono::milliseconds timeout) {
  Greeted greeted = greeted_at(path, timeout);
  if (greeted.error == ECONNREFUSED) {
    ssd::fail_with(greeted.error, path + ": the server takes no clients any more");
  }
  if (greeted.error != 0) ssd::fail_with(greeted.error, path);
  if (greeted.descriptors.size() != 2) ssd::fail_with(EPROTO, path + ": no channel has come");
  return {SharedMemory::map(std::move(greeted.descriptors[0])), std::move(greeted.descriptors[1]),
          std::move(greeted.connection)};
}

ssd::Descriptor connect_at(const std::string& path) {
  return std::move(greeted_at(path, kGreetingTimeout).connection);
}

}  // namespace gofs::host
