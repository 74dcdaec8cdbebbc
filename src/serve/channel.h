// SPDX-License-Identifier: Apache-2.0
//
// A channel as its server sees it: a client's ring, whose calls they are, and the memory that they
// may name. All of this lies in memory of the server's alone.
#pragma once

#include "format/xattr.h"
#include "serve/gate.h"
#include "serve/ring.h"
#include "simt/warp.h"
#include "vfs/caller.h"

namespace gofs::serve {

/// Memory that a client's requests may name. Others may change what is in it at any time. That of
/// number 0 is there as long as the channel is open, and its gate is not used.
struct Window {
  uint8_t* memory;
  uint64_t bytes;
  Gate gate;
};

/// Slots of one ring that follow each other, for who looks at all rings (look_far.h). Which ones
/// they are never changes.
struct SlotRun {
  const uint32_t* published;  // where their requests are, as long as the channel is open; or null
  const uint32_t* taken;      // as Channel has it
  const uint32_t* answered;   // the same
  uint32_t channel;
  uint32_t first;
  uint32_t count;
};

inline constexpr uint32_t kRunSlots = 64;
/// How many runs a ring has.
GOFS_HD constexpr uint32_t runs_of(uint32_t depth) { return (depth + kRunSlots - 1) / kRunSlots; }

struct alignas(128) Channel {
  Ring ring;
  vfs::Caller caller;
  uint32_t* taken;     // of each slot, how many requests were taken from it
  uint32_t* answered;  // and answered: no other is taken meanwhile, whatever its client publishes
  Window windows[kWindowsMax];
  SlotRun* runs;           // runs_of() its ring's depth
  alignas(128) Gate gate;  // of the warps that look at the channel, or perform a call of it
  uint32_t next_slot;      // where to look first; a hint
};

/// Of a slot's texts so many bytes are copied along with the request: most often all of them.
inline constexpr uint32_t kTextsAlong = 112;

/// Of a buffer that is to be steady so many bytes are copied. A longer value is refused in any
/// case: no inode has room for the attribute, nor for an access list of so many entries.
inline constexpr uint32_t kSteadyBytes = 16 * 1024;
static_assert(kSteadyBytes / sizeof(format::AclEntry) * sizeof(format::AclEntryShort) >=
              2 * kBlockBytes);

/// Room of a warp for what it has copied from a channel, since that may change while it is used.
struct alignas(16) CallRoom {
  request::Request request;
  uint64_t texts[kTextsAlong / sizeof(uint64_t)];  // the first ones
  Window* window;  // which the call has entered, or null; of the first lane
  alignas(kTextAlign) char path[request::kPathRoomBytes];
  alignas(kTextAlign) char other[request::kPathRoomBytes];
  alignas(kTextAlign) char name[request::kNameRoomBytes];
  alignas(16) uint8_t steady[kSteadyBytes];
};

/// No warp enters it any more. Whether it was open. By one lane.
GOFS_HD inline bool begin_close(Channel& channel) {
  for (uint32_t i = 0; i < runs_of(channel.ring.depth); ++i) {
    simt::store_relaxed(channel.runs[i].published, static_cast<const uint32_t*>(nullptr));
  }
  return close_gate(channel.gate);
}

}  // namespace gofs::serve
