// SPDX-License-Identifier: Apache-2.0
//
// How a client and its server meet: at a socket of the file system, whose mode says who may come.
// The server learns from Linux who it is, and hands over a channel.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "host/serve/channel_client.h"
#include "vfs/credentials.h"

namespace gofs::host {

/// Changes with every change of what is said there.
inline constexpr uint32_t kGreetingVersion = 5;

/// The only message, from the server. With it come the descriptors of a channel, if `error` is 0.
struct Greeting {
  uint64_t magic;
  uint32_t version;
  int32_t error;  // an errno
};
inline constexpr uint64_t kGreetingMagic = 0x6f6c6c6568736667;  // "gfshello"

/// A socket of the file system that takes clients, for those whom `mode` lets write to it.
class ListeningSocket {
 public:
  /// A socket that is left there by a server that has ended is replaced; of several servers that
  /// begin at once one gets the name. Throws std::system_error: EADDRINUSE where a server answers,
  /// EEXIST where something else has the name, ETIMEDOUT where another one that begins or ends
  /// there hangs.
  ListeningSocket(std::string path, uint32_t mode);
  /// Its name goes, unless another one has it by now.
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  const ssd::Descriptor& descriptor() const { return listening_; }

 private:
  const std::string path_;
  uint64_t inode_ = 0;  // of the name, known before anybody sees it
  ssd::Descriptor listening_;
};

/// Who is at the other end of a connection.
struct Peer {
  vfs::Credentials credentials;
  int32_t pid;
};
/// Throws std::system_error: E2BIG for more groups than a caller can have, who would otherwise be
/// refused what he may do.
Peer peer_of(const ssd::Descriptor& connection);
/// Whether the other end is of this process's user, or root's; false where that is not known.
bool is_trusted_peer(const ssd::Descriptor& connection);

/// Lets the other end send descriptors (SO_PASSRIGHTS), which connections of a ListeningSocket do
/// not; nothing to do before Linux 6.16.
void take_descriptors_of(const ssd::Descriptor& connection);

/// Sends the greeting, with the ends of a channel or an errno. False: nobody is there.
bool greet(const ssd::Descriptor& connection, const ChannelEnds* ends, int error);

/// So long the others wait for a server that has a socket and says nothing.
inline constexpr std::chrono::milliseconds kGreetingTimeout{10'000};

/// A channel of one's own, which is there as long as its connection is open. Throws
/// std::system_error: what connect() says, what the server says, ETIMEDOUT where it says nothing or
/// its queue stays full, EPROTO where something else is there. A server answers EAGAIN where all
/// channels are taken, and ECONNREFUSED where it takes no client any more.
ChannelEnds attach_at(const std::string& path,
                      std::chrono::milliseconds timeout = kGreetingTimeout);

/// A connection for control.h alone, also to a server that has no channel to give. Throws as
/// attach_at().
ssd::Descriptor connect_at(const std::string& path);

}  // namespace gofs::host
