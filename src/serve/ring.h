// SPDX-License-Identifier: Apache-2.0
//
// The ring of a channel: requests go one way, answers the other, through memory that a client and
// its server share. Each word of it has one writer and is only loaded and stored, so either side
// may be a GPU or a CPU. This file has its layout and the moves of both sides, each by one thread.
//
//   client: take a free slot; publish the request; wait for the answer          [H1] [H2]
//   server: see a published request, take it, copy it; answer
//
// A slot is used again and again, each time in its next lap; which are free is the client's
// business. The client believes the server. The server believes nothing: what it has to know of the
// ring it keeps in memory of its own, and whatever a client writes into its own ring, at any time,
// harms that client alone.
#pragma once

#include <cstdint>

#include "request/request.h"
#include "simt/atomic.h"
#include "simt/host_sleep.h"

namespace gofs::serve {

/// Changes with every change of what is shared.
inline constexpr uint32_t kRingVersion = 7;
inline constexpr uint64_t kRingMagic = 0x31676e6972736667;  // "gfsring1"

/// Slots of a ring: a power of two.
inline constexpr uint32_t kRingDepthMin = 2;
inline constexpr uint32_t kRingDepthMax = 1024;

/// Windows of a channel: memory that requests may name by a number. Number 0 is the buffer in the
/// ring's own memory.
inline constexpr uint32_t kWindowsMax = 64;

/// Texts of one request: two paths and a name, each from a multiple of kTextAlign on. Across PCIe
/// the lanes of a warp take as many bytes at once.
inline constexpr uint32_t kTextBytes = 2 * kPathBytesMax + 512;
inline constexpr uint32_t kTextAlign = 8;

struct Answer {
  int64_t result;  // as the verb says, or a negative errno
  uint32_t lap;    // + 1, written last [H2]
  uint32_t unused;
};

/// The beginning of the shared memory. The server writes it, but for `sleepers`.
struct RingHead {
  uint64_t magic;
  uint32_t version;
  uint32_t depth;
  uint64_t bytes;  // of all that is shared
  uint64_t published_at;
  uint64_t requests_at;
  uint64_t answers_at;
  uint64_t texts_at;   // kTextBytes for each slot
  uint64_t buffer_at;  // window 0, which lies in the shared memory too
  uint64_t buffer_bytes;
  uint32_t wakes;                       // not 0: an answer wakes who sleeps until it comes
  alignas(128) uint32_t server_sleeps;  // not 0: who publishes a request wakes it
  uint32_t gone;                        // not 0: no request is answered any more
  alignas(128) uint32_t sleepers;       // not 0: threads of the client sleep until they are woken
};

/// One side's view of the shared memory.
struct Ring {
  RingHead* head;
  uint32_t* published;  // for each slot: lap + 1 once the request of that lap is written [H1]
  request::Request* requests;
  Answer* answers;
  char* texts;
  uint8_t* buffer;
  uint32_t depth;
  uint64_t buffer_bytes;
};

/// Where the parts are, for `depth` slots and a buffer of `buffer_bytes`, a multiple of 4096.
GOFS_HD inline RingHead layout_of_ring(uint32_t depth, uint64_t buffer_bytes) {
  constexpr uint64_t kPage = 4096;
  RingHead head{};
  head.magic = kRingMagic;
  head.version = kRingVersion;
  head.depth = depth;
  uint64_t at = kPage;
  const auto part = [&at](uint64_t bytes) {
    const uint64_t begin = at;
    at += (bytes + kPage - 1) / kPage * kPage;
    return begin;
  };
  head.published_at = part(depth * sizeof(uint32_t));
  head.requests_at = part(depth * sizeof(request::Request));
  head.answers_at = part(depth * sizeof(Answer));
  head.texts_at = part(uint64_t{depth} * kTextBytes);
  head.buffer_at = part(buffer_bytes);
  head.buffer_bytes = buffer_bytes;
  head.bytes = at;
  return head;
}

/// The view of what lies at `memory` with the layout of `head`, of which the caller has a copy.
GOFS_HD inline Ring view_of_ring(void* memory, const RingHead& head) {
  auto* const bytes = static_cast<uint8_t*>(memory);
  Ring ring{};
  ring.head = static_cast<RingHead*>(memory);
  ring.published = reinterpret_cast<uint32_t*>(bytes + head.published_at);
  ring.requests = reinterpret_cast<request::Request*>(bytes + head.requests_at);
  ring.answers = reinterpret_cast<Answer*>(bytes + head.answers_at);
  ring.texts = reinterpret_cast<char*>(bytes + head.texts_at);
  ring.buffer = bytes + head.buffer_at;
  ring.depth = head.depth;
  ring.buffer_bytes = head.buffer_bytes;
  return ring;
}

/// A slot in one of its laps.
struct RingPlace {
  uint32_t slot;
  uint32_t lap;
};

// --- The client's moves. ---------------------------------------------------------------------

GOFS_HD inline void publish(const Ring& ring, const RingPlace& place,
                            const request::Request& request) {
  ring.requests[place.slot] = request;
  simt::store_system_release(ring.published[place.slot], place.lap + 1);  // [H1]
}

GOFS_HD inline bool is_answered(const Ring& ring, const RingPlace& place) {
  return simt::load_system_acquire(ring.answers[place.slot].lap) == place.lap + 1;  // [H2]
}

/// The answer, of which is_answered() has been true.
GOFS_HD inline int64_t answer_of(const Ring& ring, const RingPlace& place) {
  return ring.answers[place.slot].result;
}

// --- The server's. ---------------------------------------------------------------------------

GOFS_HD inline bool is_published(const Ring& ring, const RingPlace& place) {
  return simt::load_system_acquire(ring.published[place.slot]) == place.lap + 1;  // [H1]
}

/// Answers the request that was the `lap`th of its slot.
GOFS_HD inline void answer(const Ring& ring, const RingPlace& place, int64_t result) {
  Answer& there = ring.answers[place.slot];
  simt::store_system_relaxed(there.result, result);
  simt::store_system_release(there.lap, place.lap + 1);  // [H2]
  simt::wake_sleepers(there.lap, ring.head->sleepers);
}

}  // namespace gofs::serve
