// SPDX-License-Identifier: Apache-2.0
//
// A client's side of a channel, for its kernels: calls go through a ring that lies in memory of the
// GPU, or of the host where the server runs there.
//
//   take a slot; copy texts and data into it; publish; wait for the answer; copy data out; release
//
// What a call reads or writes goes through the slot's part of the ring's buffer, or directly where
// it lies in memory that the server reaches. A call takes as much as a part has room for:
// kernel_data.h goes on. The words here lie in memory of the client's alone.
#pragma once

#include "serve/descriptor_base.h"
#include "serve/ring.h"
#include "simt/copy_near.h"
#include "simt/pause_in_crowd.h"
#include "vfs/path.h"

namespace gofs::serve {

/// A call that was published and not waited for, by its slot.
struct CallBegun {
  uint8_t* output;  // where its results are to be copied, or null
  uint64_t bytes;
  request::Verb verb;
};

/// Memory of the client's that the server reaches too: its window of this number.
struct KernelWindow {
  uint64_t begin;  // an address; 0: there is none [H8]
  uint64_t end;
};

/// The host changes them while kernels run.
struct KernelWindows {
  uint32_t count;  // behind these is none
  KernelWindow at[kWindowsMax];
};

struct KernelChannel {
  Ring ring;
  const request::VerbRow* rows;  // request::kVerbRows
  uint64_t part_bytes;           // of the ring's buffer, for each slot
  int descriptor_base;           // descriptor_base.h
  uint64_t answer_timeout_ns;
  uint64_t lock_timeout_ns;  // for which grids wait for each other
  uint32_t* laps;            // that each slot has been through; of who has taken it
  CallBegun* begun;          // the same
  uint32_t* free;            // a bit for each slot that is free [H6]
  uint32_t* waiting;         // warps and threads that wait for a slot
  const uint32_t* gone;      // not 0: the server has ended; in the host's memory, and its to write
  uint64_t* gone_looked_ns;  // when somebody has looked there
  const KernelWindows* windows;
  vfs::GridCalls grids;
};

/// One of those who wait looks so often whether the server has ended, and tells the others. It is a
/// look across PCIe; where thousands looked, the server's looks there took a hundred times as long.
inline constexpr uint64_t kLookForServerNs = 1'000'000;

/// A call as a kernel makes it, with pointers of its own. The texts may lie in any memory that the
/// calling lanes read, `output` and `input` in any that they reach; what the verb does not take is
/// null. Of the buffer there are `request.bytes`.
struct KernelCall {
  request::Request request{};
  const char* directory = nullptr;  // of which `path` is a name; or null
  const char* path = nullptr;
  const char* other = nullptr;
  const char* name = nullptr;
  void* output = nullptr;
  const void* input = nullptr;
  const IoVector* parts = nullptr;  // or these are read, one after the other
  int part_count = 0;

  GOFS_HD explicit KernelCall(request::Verb verb) { request.verb = verb; }
};

namespace detail {

GOFS_HD inline bool is_gone(const KernelChannel& channel) {
  return simt::load_system_acquire(*channel.gone) != 0;  // [H9]
}

/// What KernelChannel::gone_looked_ns is when the server was found to have ended.
inline constexpr uint64_t kServerGone = ~uint64_t{0};

/// Whether the server has ended, as one among many finds it out. By one lane.
GOFS_HD inline bool is_found_gone(KernelChannel& channel) {
  uint64_t looked = simt::load_relaxed(*channel.gone_looked_ns);
  if (looked == kServerGone) return true;
  const uint64_t now = simt::now_ns();
  if (now - looked < kLookForServerNs) return false;
  const bool looks = simt::AtomicRef<uint64_t>(*channel.gone_looked_ns)
                         .compare_exchange_strong(looked, now, simt::memory_order_relaxed);
  if (!looks || !is_gone(channel)) return false;
  simt::store_relaxed(*channel.gone_looked_ns, kServerGone);
  return true;
}

/// How long to wait for what the server does. By one lane.
class ServerWait {
 public:
  GOFS_HD explicit ServerWait(const KernelChannel& channel)
      : deadline_(simt::Deadline::after_ns(channel.answer_timeout_ns)) {}

  /// Not 0: -ESTALE where the server has ended, -ETIMEDOUT where it says nothing.
  GOFS_HD int error(KernelChannel& channel) {
    if (!look_.passed()) return 0;
    look_ = simt::Deadline::after_ns(kLookForServerNs);
    if (is_found_gone(channel)) return -ESTALE;
    return deadline_.passed() ? -ETIMEDOUT : 0;
  }

 private:
  const simt::Deadline deadline_;
  simt::Deadline look_ = simt::Deadline::after_ns(kLookForServerNs);
};

/// Slots that calls may have which are started and waited for later: the others are for those who
/// wait for nothing but their own answer, and so get on.
GOFS_HD constexpr uint32_t slots_for_later(uint32_t depth) { return depth - depth / 4; }

/// The slots of word `index` of KernelChannel::free that are among the first `count`.
GOFS_HD constexpr uint32_t first_slots(uint32_t index, uint32_t count) {
  const uint32_t before = index * 32;
  if (count >= before + 32) return ~0u;
  return count > before ? (1u << (count - before)) - 1 : 0;
}

/// A slot of the first `usable` that was free and is the caller's now; or -1. By one lane; looks at
/// word `first` before the others.
GOFS_HD inline int try_to_take_slot(KernelChannel& channel, uint32_t first, uint32_t usable) {
  const uint32_t words = (channel.ring.depth + 31) / 32;
  for (uint32_t i = 0; i < words; ++i) {
    const uint32_t index = (first + i) % words;
    uint32_t& word = channel.free[index];
    const uint32_t there = simt::load_relaxed(word) & first_slots(index, usable);
    if (there == 0) continue;
    const uint32_t bit = simt::lowest_bit(there);
    const uint32_t before =
        simt::AtomicRef<uint32_t>(word).fetch_and(~(1u << bit), simt::memory_order_acquire);
    if ((before >> bit & 1u) != 0) return static_cast<int>(index * 32 + bit);  // [H6]
  }
  return -1;
}

/// By one lane: the slot, which is the caller's until it releases it, or a negative errno. `later`:
/// for a call that is waited for later; -EAGAIN where there is none at once.
GOFS_HD inline int take_free_slot(KernelChannel& channel, bool later) {
  const uint32_t usable = later ? slots_for_later(channel.ring.depth) : channel.ring.depth;
  auto first = static_cast<uint32_t>(simt::now_ns() >> 5);
  int slot = try_to_take_slot(channel, first, usable);
  if (slot >= 0) return slot;
  if (later) return is_found_gone(channel) ? -ESTALE : -EAGAIN;
  // Thousands may wait here, for a few words.
  simt::add_relaxed(*channel.waiting, 1u);
  ServerWait wait(channel);
  int error = 0;
  while (slot < 0 && error == 0) {
    simt::pause_in_crowd(simt::load_relaxed(*channel.waiting));
    slot = try_to_take_slot(channel, ++first, usable);
    if (slot < 0) error = wait.error(channel);
  }
  simt::add_relaxed(*channel.waiting, ~0u);
  return slot >= 0 ? slot : error;
}

/// By one lane. `lap` is the next one.
GOFS_HD inline void release_slot(KernelChannel& channel, uint32_t slot, uint32_t lap) {
  channel.laps[slot] = lap;
  simt::AtomicRef<uint32_t>(channel.free[slot / 32])
      .fetch_or(1u << slot % 32, simt::memory_order_release);  // [H6]
}

/// Bytes of a text that are handed over, or a negative errno. Of one that is longer than any can be
/// there are too many still: the file system says so when it comes to them. Collective, uniform.
GOFS_HD inline int64_t text_bytes(simt::AnyWarp auto warp, const char* text,
                                  const request::TextRule& rule) {
  int64_t length = 0;
  if (warp.thread_rank() == 0) {
    const uint64_t most = simt::min<uint64_t>(rule.room_bytes - 1, simt::room_at(text));
    const char* const here = simt::reach(0, text);
    while (length < static_cast<int64_t>(most) && here[length] != '\0') ++length;
    if (length == static_cast<int64_t>(most) && most < rule.room_bytes - 1) length = -EFAULT;
  }
  return warp.shfl(length, 0);
}

/// Copies a text that the calling lanes read. Collective.
GOFS_HD inline void copy_characters(simt::AnyWarp auto warp, const char* text, uint32_t bytes,
                                    char* to) {
  const char* const here = simt::reach(0, text);
  for (uint32_t i = warp.thread_rank(); i < bytes; i += warp.size()) to[i] = here[i];
}

/// Puts a text behind those that are there, `at`. 0, or a negative errno. Collective, uniform.
GOFS_HD inline int put_text(simt::AnyWarp auto warp, const char* text,
                            const request::TextRule& rule, char* room, uint32_t& at,
                            request::Text& where) {
  if (text == nullptr) return 0;
  const int64_t bytes = text_bytes(warp, text, rule);
  if (bytes < 0) return static_cast<int>(bytes);
  where = {at, static_cast<uint32_t>(bytes)};
  copy_characters(warp, text, where.bytes, room + at);
  at += (where.bytes + kTextAlign - 1) / kTextAlign * kTextAlign;
  return 0;
}

/// Puts a path there, or a name behind that of its directory, a slash between them. The same.
GOFS_HD inline int put_path(simt::AnyWarp auto warp, const KernelCall& call, char* room,
                            uint32_t& at, request::Text& where) {
  const request::TextRule rule = request::path_rule();
  if (call.directory == nullptr) return put_text(warp, call.path, rule, room, at, where);
  const int64_t before = text_bytes(warp, call.directory, rule);
  if (before < 0) return static_cast<int>(before);
  const int64_t bytes = text_bytes(warp, call.path, rule);
  if (bytes < 0) return static_cast<int>(bytes);
  const auto all = static_cast<uint32_t>(before + 1 + bytes);
  if (all >= rule.room_bytes) return -ENAMETOOLONG;
  where = {at, all};
  copy_characters(warp, call.directory, static_cast<uint32_t>(before), room + at);
  if (warp.thread_rank() == 0) room[at + before] = '/';
  copy_characters(warp, call.path, static_cast<uint32_t>(bytes), room + at + before + 1);
  at += (all + kTextAlign - 1) / kTextAlign * kTextAlign;
  return 0;
}

/// The number of a descriptor in a request becomes the server's. 0, or what is the answer instead.
GOFS_HD inline int to_server(const KernelChannel& channel, int& descriptor) {
  const int own = own_number(channel.descriptor_base, descriptor);
  if (own < 0) return own;
  descriptor = own;
  return 0;
}

/// Where the server finds bytes of a call: as in a request.
struct DataPlace {
  uint32_t buffer;
  uint64_t offset;
};

/// Where memory of the client's lies in a window that has all of it; in number 0 where none has.
/// By one lane.
GOFS_HD inline DataPlace place_in_windows(const KernelWindows& windows, const void* memory,
                                          uint64_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(memory);
  const uint32_t count = simt::load_relaxed(windows.count);
  for (uint32_t number = 1; number < count; ++number) {
    const KernelWindow& window = windows.at[number];
    const uint64_t first = simt::load_acquire(window.begin);  // [H8]
    if (first == 0 || begin < first) continue;
    const uint64_t end = simt::load_acquire(window.end);
    if (simt::load_relaxed(window.begin) != first) continue;  // the number is another one's by now
    if (begin < end && bytes <= end - begin) return {number, begin - first};
  }
  return {0, 0};
}

/// Where the server is to find the bytes that a call moves: in memory of the client's, or in the
/// slot's part of the ring's buffer. Whether the former. Collective, uniform.
GOFS_HD inline bool place_data(simt::AnyWarp auto warp, const KernelChannel& channel, uint32_t slot,
                               KernelCall& call) {
  request::Request& request = call.request;
  const request::VerbRow& row = channel.rows[static_cast<uint32_t>(request.verb)];
  request.buffer = 0;
  request.buffer_offset = uint64_t{slot} * channel.part_bytes;
  if ((row.takes & request::kRoom) != 0) request.bytes = request.length;
  if ((row.takes & (request::kInput | request::kOutput | request::kRoom)) != 0) {
    request.bytes = simt::min(request.bytes, channel.part_bytes);
  }
  if (!request::moves_bytes(row) || request.bytes == 0) return false;
  const void* const memory = call.input != nullptr ? call.input : call.output;
  DataPlace place{0, 0};
  if (warp.thread_rank() == 0) place = place_in_windows(*channel.windows, memory, request.bytes);
  const uint32_t buffer = warp.shfl(place.buffer, 0);
  if (buffer == 0) return false;
  request.buffer = buffer;
  request.buffer_offset = warp.shfl(place.offset, 0);
  return true;
}

/// Copies what a call reads. Collective.
GOFS_HD inline void copy_input(simt::AnyWarp auto warp, const KernelCall& call, uint8_t* to) {
  const simt::CopyShare share{warp.thread_rank(), warp.size()};
  uint64_t left = call.request.bytes;
  if (call.input != nullptr) simt::copy_from_near(warp, share, to, call.input, left);
  for (int i = 0; i < call.part_count; ++i) {
    const IoVector part = call.parts[i];
    const uint64_t bytes = simt::min(part.bytes, left);  // others may change it
    simt::copy_from_near(warp, share, to, part.base, bytes);
    to += bytes;
    left -= bytes;
  }
}

}  // namespace detail

/// Takes a slot and publishes the call there; `later` as take_free_slot() has it.
/// `call.request.bytes` becomes what it takes of its buffer. 0, or a negative errno, and then the
/// server is not asked. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int begin_call(simt::AnyWarp auto warp, KernelChannel& channel,
                                            KernelCall& call, bool later, RingPlace& place) {
  const bool leader = warp.thread_rank() == 0;
  request::Request& request = call.request;
  const uint32_t takes = channel.rows[static_cast<uint32_t>(request.verb)].takes;
  int error = 0;
  if ((takes & (request::kDescriptor | request::kBatch)) != 0) {
    error = detail::to_server(channel, request.descriptor);
  }
  if (error == 0 && (takes & request::kOtherDescriptor) != 0) {
    error = detail::to_server(channel, request.other_descriptor);
  }
  if (error != 0) return error;
  const int slot = warp.shfl(leader ? detail::take_free_slot(channel, later) : 0, 0);
  if (slot < 0) return slot;
  warp.sync();
  place = {static_cast<uint32_t>(slot), channel.laps[slot]};
  const Ring& ring = channel.ring;
  char* const room = ring.texts + uint64_t{place.slot} * kTextBytes;
  uint32_t at = 0;
  error = detail::put_path(warp, call, room, at, request.path);
  if (error == 0) {
    error = detail::put_text(warp, call.other, request::path_rule(), room, at, request.other);
  }
  if (error == 0) {
    error = detail::put_text(warp, call.name, request::name_rule(), room, at, request.name);
  }
  const bool is_direct = detail::place_data(warp, channel, place.slot, call);
  if (error == 0 && !is_direct) {
    detail::copy_input(warp, call, ring.buffer + request.buffer_offset);
  }
  warp.sync();
  if (leader) {
    if (error != 0) {
      detail::release_slot(channel, place.slot, place.lap);
    } else {
      auto* const output = is_direct ? nullptr : static_cast<uint8_t*>(call.output);
      channel.begun[place.slot] = {output, request.bytes, request.verb};
      publish(ring, place, request);
    }
  }
  return error;
}

/// Whether the call has ended, so that end_call() does not wait. Collective, uniform.
GOFS_HD inline bool has_ended(simt::AnyWarp auto warp, KernelChannel& channel,
                              const RingPlace& place) {
  const bool leader = warp.thread_rank() == 0;
  const bool ended = leader && (is_answered(channel.ring, place) || detail::is_found_gone(channel));
  return warp.shfl(ended ? 1u : 0u, 0) != 0;
}

/// Waits for the call's answer, which is the result: -ESTALE where the server has ended, and
/// -ETIMEDOUT where it says nothing; the slot is then not used again. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int64_t end_call(simt::AnyWarp auto warp, KernelChannel& channel,
                                              const RingPlace& place) {
  const bool leader = warp.thread_rank() == 0;
  int64_t result = 0;
  uint32_t answered = 0;
  if (leader) {
    detail::ServerWait wait(channel);
    simt::Backoff backoff;
    while (!is_answered(channel.ring, place)) {
      result = wait.error(channel);
      if (result != 0) break;
      backoff.pause();
    }
    if (result == 0) {
      answered = 1;
      result = answer_of(channel.ring, place);
    }
  }
  result = warp.shfl(result, 0);
  if (warp.shfl(answered, 0) == 0) return result;
  warp.sync();  // one lane has acquired the answer, for all
  const CallBegun begun = channel.begun[place.slot];
  if (begun.output != nullptr) {
    const request::VerbRow& row = channel.rows[static_cast<uint32_t>(begun.verb)];
    const uint64_t written = simt::min(request::bytes_written(row, result), begun.bytes);
    simt::copy_to_near(warp, {warp.thread_rank(), warp.size()}, begun.output,
                       channel.ring.buffer + uint64_t{place.slot} * channel.part_bytes, written);
  }
  warp.sync();
  if (leader) detail::release_slot(channel, place.slot, place.lap + 1);
  const uint32_t takes = channel.rows[static_cast<uint32_t>(begun.verb)].takes;
  if ((takes & request::kGives) != 0 && result >= 0) result += channel.descriptor_base;
  return result;
}

/// Makes a call: its answer, as the verb says. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int64_t ask(simt::AnyWarp auto warp, KernelChannel& channel,
                                         KernelCall& call) {
  RingPlace place{};
  const int error = begin_call(warp, channel, call, false, place);
  return error != 0 ? error : end_call(warp, channel, place);
}

/// Channels are told from file systems by a bit that no address of either has.
GOFS_HD inline VolumeHandle handle_of(KernelChannel* channel) {
  return {reinterpret_cast<const char*>(channel) + 1};
}
/// Null: the handle is a file system's.
GOFS_HD inline KernelChannel* channel_of(VolumeHandle volume) {
  const auto word = reinterpret_cast<uintptr_t>(volume.state);
  return (word & 1) != 0 ? reinterpret_cast<KernelChannel*>(word - 1) : nullptr;
}

}  // namespace gofs::serve
