// SPDX-License-Identifier: Apache-2.0
//
// A channel as its server sees it: a client's ring, whose calls they are, and the memory that they
// may name. All of this lies in memory of the server's alone.
#pragma once

#include "format/xattr.h"
#include "serve/ring.h"
#include "simt/warp.h"
#include "vfs/caller.h"

namespace gofs::serve {

/// Memory that a client's requests may name. Others may change what is in it at any time.
struct Window {
  uint8_t* memory;  // null: none has this number [H8]
  uint64_t bytes;
  uint32_t uses;  // calls that are about it; of number 0, which lasts as the channel does, nobody
                  // counts them
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

enum ChannelState : uint32_t {
  kChannelFree = 0,
  kChannelOpen = 1,
  kChannelLeaving = 2,  // its client has gone: what it has open is closed when no call is left
};

struct alignas(128) Channel {
  Ring ring;
  vfs::Caller caller;
  uint32_t* taken;     // of each slot, how many requests were taken from it
  uint32_t* answered;  // and answered: no other is taken meanwhile, whatever its client publishes
  Window windows[kWindowsMax];
  SlotRun* runs;                // runs_of() its ring's depth
  alignas(128) uint32_t state;  // ChannelState [H3]
  uint32_t inside;              // warps that look at the channel, or perform a call of it
  uint32_t next_slot;           // where to look first; a hint
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

/// Enters an open channel for so many calls: until each has left it, it stays what it is. By one
/// lane.
GOFS_HD inline bool enter_channel(Channel& channel, uint32_t calls = 1) {
  if (simt::load_relaxed(channel.state) != kChannelOpen) return false;
  (void)simt::add_before_look(channel.inside, calls);                    // [H3]
  if (simt::look_after_add(channel.state) == kChannelOpen) return true;  // [H3]
  simt::AtomicRef<uint32_t>(channel.inside).fetch_sub(calls, simt::memory_order_release);
  return false;
}

/// No warp enters it any more. Whether it was open. By one lane.
GOFS_HD inline bool begin_close(Channel& channel) {
  uint32_t open = kChannelOpen;
  for (uint32_t i = 0; i < runs_of(channel.ring.depth); ++i) {
    simt::store_relaxed(channel.runs[i].published, static_cast<const uint32_t*>(nullptr));
  }
  return simt::AtomicRef<uint32_t>(channel.state)
      .compare_exchange_strong(open, kChannelLeaving, simt::memory_order_seq_cst);  // [H3]
}

/// Whether no warp is inside any more, after begin_close().
GOFS_HD inline bool is_left(Channel& channel) {
  return simt::AtomicRef<uint32_t>(channel.inside).load(simt::memory_order_seq_cst) == 0;  // [H3]
}

GOFS_HD inline void leave_channel(Channel& channel) {
  simt::AtomicRef<uint32_t>(channel.inside).fetch_sub(1, simt::memory_order_release);  // [H3]
}

GOFS_HD inline void leave_window(Window& window) {
  simt::AtomicRef<uint32_t>(window.uses).fetch_sub(1, simt::memory_order_release);  // [H8]
}

/// The window's memory, which lasts until the call leaves it; or null, and then it has not entered.
/// By one lane.
GOFS_HD inline uint8_t* enter_window(Window& window) {
  if (simt::load_relaxed(window.memory) == nullptr) return nullptr;
  (void)simt::add_before_look(window.uses, 1u);                 // [H8]
  uint8_t* const memory = simt::look_after_add(window.memory);  // [H8]
  if (memory == nullptr) leave_window(window);
  return memory;
}

/// Nobody has used it since it was closed. By one lane.
GOFS_HD inline void open_window(Window& window, uint8_t* memory, uint64_t bytes) {
  window.bytes = bytes;
  simt::store_release(window.memory, memory);  // [H8]
}

/// No call enters it any more. Whether none is about it. By one lane.
GOFS_HD inline bool close_window(Window& window) {
  simt::AtomicRef<uint8_t*>(window.memory).store(nullptr, simt::memory_order_seq_cst);  // [H8]
  return simt::AtomicRef<uint32_t>(window.uses).load(simt::memory_order_seq_cst) == 0;  // [H8]
}

}  // namespace gofs::serve
