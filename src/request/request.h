// SPDX-License-Identifier: Apache-2.0
//
// The record of a call: what a host program gives a kernel, and a client its server. It holds no
// pointers. Whoever takes it says what its texts and its buffer are on his side (Arguments).
#pragma once

#include <cerrno>
#include <cstdint>
#include <type_traits>

#include "gofs/types.h"
#include "request/verb.h"
#include "simt/platform.h"

namespace gofs::request {

/// A part of the memory that both sides share for texts. No NUL is at its end.
struct Text {
  uint32_t at;
  uint32_t bytes;
};

/// What may be a text. One that is longer is handed over as its first bytes, which are too many
/// still: the file system says so when it comes to them, as Linux would.
struct TextRule {
  uint32_t room_bytes;  // that it takes with a NUL behind it, at most
  int holds_nul;        // what is answered to one that has a NUL in it
};
inline constexpr uint32_t kPathRoomBytes = kPathBytesMax + 1;
inline constexpr uint32_t kNameRoomBytes = kXattrNameBytesMax + 2;
GOFS_HD constexpr TextRule path_rule() { return {kPathRoomBytes, -ENOENT}; }
GOFS_HD constexpr TextRule name_rule() { return {kNameRoomBytes, -EINVAL}; }

/// Bits of a request.
inline constexpr uint16_t kKeepLink = 1;  // the call is about the symbolic link at the path's end
inline constexpr uint16_t kMade = 2;      // the caller has made the file that it enters
inline constexpr uint16_t kPiece = 4;     // a write is one of several of a range, in any order

/// What a call does not take is not looked at. Sizes, offsets and times are as in gofs.cuh.
struct Request {
  Verb verb;
  uint16_t bits;
  int32_t descriptor;
  uint32_t number;  // of an inode, 0: none is given; or of a file of a batch
  uint32_t flags;
  uint32_t mode;
  uint32_t uid;
  uint32_t gid;
  uint32_t device_major;
  uint32_t device_minor;
  uint32_t buffer;  // the number of a window
  uint64_t buffer_offset;
  uint64_t bytes;
  int64_t offset;
  int64_t other_offset;
  uint64_t length;  // of what a call does between two files; `bytes` is that of its buffer
  int32_t other_descriptor;
  uint32_t unused;
  Text path;
  Text other;
  Text name;
  TimeStamp accessed;
  TimeStamp modified;
};
static_assert(sizeof(Request) == 144 && std::is_trivially_copyable_v<Request>);

/// A request on the side of whoever performs it: checked, with its texts and its buffer where that
/// side has them. They are as the verb takes them; the others may be null.
struct Arguments {
  Request request;
  const char* path;  // these three end with a NUL
  const char* other;
  const char* name;
  void* buffer;  // `bytes` of it; what is only read is not changed
};

}  // namespace gofs::request
