// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 as FIPS 180-4 defines it, for a lane or a thread with a message of its own. All 64 rounds
// are unrolled at compile time, so that state, message schedule and constants are registers and
// literals on both kinds of processor.
//
//   Sha256 hash;
//   hash.blocks(data, bytes / 64);            // whole blocks, as they come
//   hash.finish(rest, bytes % 64, bytes, digest);
#pragma once

#include <cstring>
#include <utility>

#include "simt/platform.h"

namespace gofs::kernels {

inline constexpr uint32_t kSha256BlockBytes = 64;
inline constexpr uint32_t kSha256DigestBytes = 32;

namespace detail {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
inline constexpr uint32_t kSha256Constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

GOFS_HD constexpr uint32_t rotate_right(uint32_t word, uint32_t bits) {
  return word >> bits | word << (32 - bits);
}

GOFS_HD constexpr uint32_t big_endian(uint32_t word) {
  return word >> 24 | (word >> 8 & 0xff00u) | (word << 8 & 0xff0000u) | word << 24;
}

/// One round. Instead of moving the eight working variables one place on, each round finds them one
/// place back. `w` holds the last 16 words of the message schedule.
template <uint32_t kRound>
GOFS_HD void sha256_round(uint32_t (&v)[8], uint32_t (&w)[16]) {
  constexpr uint32_t kConstant = kSha256Constants[kRound];
  constexpr auto kPlace = [](uint32_t variable) { return (variable + 64 - kRound) & 7; };
  constexpr uint32_t kA = kPlace(0), kB = kPlace(1), kC = kPlace(2), kD = kPlace(3);
  constexpr uint32_t kE = kPlace(4), kF = kPlace(5), kG = kPlace(6), kH = kPlace(7);
  constexpr uint32_t kNow = kRound & 15;
  if constexpr (kRound >= 16) {
    const uint32_t early = w[(kRound + 1) & 15];
    const uint32_t late = w[(kRound + 14) & 15];
    w[kNow] += (rotate_right(early, 7) ^ rotate_right(early, 18) ^ early >> 3) +
               w[(kRound + 9) & 15] +
               (rotate_right(late, 17) ^ rotate_right(late, 19) ^ late >> 10);
  }
  const uint32_t e = v[kE];
  const uint32_t a = v[kA];
  const uint32_t first = v[kH] + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
                         (v[kG] ^ (e & (v[kF] ^ v[kG]))) + kConstant + w[kNow];
  const uint32_t second = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
                          ((a & v[kB]) | (v[kC] & (a | v[kB])));
  v[kD] += first;
  v[kH] = first + second;
}

template <uint32_t... kRounds>
GOFS_HD void sha256_rounds(uint32_t (&v)[8], uint32_t (&w)[16],
                           std::integer_sequence<uint32_t, kRounds...>) {
  (sha256_round<kRounds>(v, w), ...);
}

}  // namespace detail

class Sha256 {
 public:
  /// Takes `count` blocks of 64 bytes in. `data` is aligned to 16 bytes.
  GOFS_HD void blocks(const uint8_t* data, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) block(data + i * kSha256BlockBytes);
  }

  /// Takes the last `rest_bytes` (fewer than 64) of a message of `message_bytes` in, and gives its
  /// digest. Afterwards the object is of no use.
  GOFS_HD void finish(const uint8_t* rest, uint32_t rest_bytes, uint64_t message_bytes,
                      uint8_t (&digest)[kSha256DigestBytes]) {
    constexpr uint32_t kLengthAt = kSha256BlockBytes - sizeof(uint64_t);
    alignas(16) uint8_t last[kSha256BlockBytes];
    for (uint32_t i = 0; i < kSha256BlockBytes; ++i)
      last[i] = i < rest_bytes ? rest[i] : uint8_t{0};
    last[rest_bytes] = 0x80;
    if (rest_bytes >= kLengthAt) {
      block(last);
      for (uint32_t i = 0; i < kSha256BlockBytes; ++i) last[i] = 0;
    }
    const uint64_t bits = message_bytes * 8;
    for (uint32_t i = 0; i < sizeof(uint64_t); ++i) {
      last[kLengthAt + i] = static_cast<uint8_t>(bits >> (56 - 8 * i));
    }
    block(last);
    for (uint32_t i = 0; i < kSha256DigestBytes; ++i) {
      digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    }
  }

 private:
  GOFS_HD void block(const uint8_t* data) {
    uint32_t w[16];
    memcpy(w, __builtin_assume_aligned(data, 16), sizeof(w));
    for (uint32_t& word : w) word = detail::big_endian(word);
    uint32_t v[8];
    for (uint32_t i = 0; i < 8; ++i) v[i] = state_[i];
    detail::sha256_rounds(v, w, std::make_integer_sequence<uint32_t, 64>());
    for (uint32_t i = 0; i < 8; ++i) state_[i] += v[i];
  }

  // The first 32 bits of the fractional parts of the square roots of the first eight primes.
  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
};

/// The digest of a whole message, at any address.
GOFS_HD inline void sha256(const uint8_t* message, uint64_t bytes,
                           uint8_t (&digest)[kSha256DigestBytes]) {
  Sha256 hash;
  uint64_t at = 0;
  for (; bytes - at >= kSha256BlockBytes; at += kSha256BlockBytes) {
    alignas(16) uint8_t block[kSha256BlockBytes];
    memcpy(block, message + at, sizeof(block));
    hash.blocks(block, 1);
  }
  hash.finish(message + at, static_cast<uint32_t>(bytes - at), bytes, digest);
}

}  // namespace gofs::kernels
