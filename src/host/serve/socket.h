// SPDX-License-Identifier: Apache-2.0
//
// How a client and its server meet: at a socket of the file system, whose mode says who may come.
// The server learns from Linux who it is, and hands over a channel.
#pragma once

#include <string>

#include "host/serve/channel_client.h"
#include "vfs/credentials.h"

namespace gofs::host {

/// Changes with every change of what is said there.
inline constexpr uint32_t kGreetingVersion = 1;

/// The only message, from the server. With it come the descriptors of a channel, if `error` is 0.
struct Greeting {
  uint64_t magic;
  uint32_t version;
  int32_t error;  // an errno
};
inline constexpr uint64_t kGreetingMagic = 0x6f6c6c6568736667;  // "gfshello"

/// A socket at `path` that takes clients, for those whom `mode` lets write to it. One that is left
/// there by a server that has ended is replaced. Throws std::system_error: EADDRINUSE where a
/// server answers, EEXIST where something else has the name.
ssd::Descriptor listen_at(const std::string& path, uint32_t mode);

/// Who is at the other end of a connection. Throws std::system_error: E2BIG for more groups than a
/// caller can have, who would otherwise be refused what he may do.
vfs::Credentials peer_of(const ssd::Descriptor& connection);

/// Sends the greeting, with the ends of a channel or an errno. False: nobody is there.
bool greet(const ssd::Descriptor& connection, const ChannelEnds* ends, int error);

/// A channel of one's own, which is there as long as its connection is open. Throws
/// std::system_error: what connect() says, what the server says, ETIMEDOUT where it says nothing,
/// EPROTO where something else is there.
ChannelEnds attach_at(const std::string& path);

}  // namespace gofs::host
