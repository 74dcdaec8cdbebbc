// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a client that writes what it likes into its ring, while the server reads it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "host/serve/bell.h"
#include "serve/ring.h"
#include "ssd/descriptor.h"

namespace gofs::host {

/// How many requests each hostile client has answered; GOFS_HOSTILE_REQUESTS says so for long runs.
inline uint64_t hostile_requests() {
  const char* const wanted = std::getenv("GOFS_HOSTILE_REQUESTS");
  return wanted == nullptr ? 5000 : std::stoull(wanted);
}

/// The bell is as much a client's as the server's.
inline void empty_bell(const ssd::Descriptor& bell) {
  EXPECT_EQ(::fcntl(bell.get(), F_SETFL, 0), 0);
  uint64_t rings = 0;
  EXPECT_EQ(::read(bell.get(), &rings, sizeof(rings)), 8);
  ring_bell(bell);
}

/// Writes what it likes into its ring, until the server has answered so many requests. Kernels have
/// no bell.
inline void be_hostile(uint8_t* memory, const ssd::Descriptor* bell, uint32_t seed) {
  const uint64_t count = hostile_requests();
  serve::RingHead head{};
  std::memcpy(&head, memory, sizeof(head));
  const serve::Ring ring = serve::view_of_ring(memory, head);
  std::mt19937_64 random(seed);
  std::vector<uint32_t> laps(ring.depth, 0);
  const auto word = [&](void* at) {
    simt::store_system_relaxed(*static_cast<uint64_t*>(at), random());
  };
  const std::string paths[] = {"/", "/mine", "/mine/../mine", "/shared", "../..", "/mine/x"};
  for (uint64_t answered = 0; answered < count;) {
    const auto slot = static_cast<uint32_t>(random() % ring.depth);
    request::Request& request = ring.requests[slot];
    request::Request wanted{};
    std::memcpy(&wanted, &request, sizeof(wanted));
    wanted.verb = static_cast<request::Verb>(random() % (request::kVerbs + 2));
    wanted.descriptor = static_cast<int32_t>(random() % 8);
    wanted.buffer = random() % 4 == 0 ? static_cast<uint32_t>(random()) >> random() % 32 : 0;
    wanted.buffer_offset = random() % 4 == 0 ? random() : random() % 4096 * 8;
    wanted.bytes = random() % 4 == 0 ? random() : random() % 70'000;
    wanted.offset = random() % 8 == 0 ? static_cast<int64_t>(random()) : 0;
    wanted.flags = static_cast<uint32_t>(random() % 4 == 0 ? random() : random() % 4);
    wanted.mode = static_cast<uint32_t>(random() & 0777);
    for (request::Text* text : {&wanted.path, &wanted.other, &wanted.name}) {
      const std::string& path = paths[random() % std::size(paths)];
      text->at = random() % 8 == 0 ? static_cast<uint32_t>(random()) : 64 * (random() % 8);
      text->bytes =
          random() % 8 == 0 ? static_cast<uint32_t>(random()) : static_cast<uint32_t>(path.size());
      std::memcpy(ring.texts + uint64_t{slot} * serve::kTextBytes + 64 * (random() % 8),
                  path.data(), path.size());
    }
    std::memcpy(&request, &wanted, sizeof(wanted));
    // It counts its own laps by the answers: those are the server's to write.
    const uint32_t lap = simt::load_system_acquire(ring.answers[slot].lap);
    answered += lap - laps[slot];
    laps[slot] = lap;
    simt::store_system_release(ring.published[slot], lap + 1);
    // Changed while it is read, and after it was published.
    for (int i = 0; i < 4; ++i) {
      word(reinterpret_cast<uint8_t*>(&ring.requests[slot]) + 8 * (random() % 15));
      word(ring.texts + uint64_t{slot} * serve::kTextBytes + 8 * (random() % 100));
    }
    if (random() % 16 == 0) {
      simt::store_system_relaxed(ring.published[random() % ring.depth],
                                 static_cast<uint32_t>(random()));
    }
    if (random() % 64 == 0) word(memory + 8 * (random() % 40));
    // It waits for no answer.
    for (uint32_t ahead = random() % 8 == 0 ? 4 : 0; ahead > 0; --ahead) {
      simt::store_system_release(ring.published[slot], lap + 6 - ahead);
    }
    if (bell == nullptr) continue;
    ring_bell(*bell);
    if (random() % 64 == 0) empty_bell(*bell);
  }
}

}  // namespace gofs::host
