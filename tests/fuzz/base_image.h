// SPDX-License-Identifier: Apache-2.0
//
// The sound images that fuzzing starts from: small volumes, with every structure that a reader
// meets, and with so little in them that a walk over all of it takes a few milliseconds. Those of
// the builder are the same byte for byte wherever they are made; those of f2fs-tools need the
// tools.
#pragma once

#include <cstdint>
#include <string>

namespace gofs::fuzz {

/// The numbers are part of the corpus: append only.
enum class Base : uint8_t {
  kPlain,  // no features
  kExtra,  // extra attributes, inode checksums, flexible inline xattrs, creation times, ...
  kMoved,  // plain, after checkpoints: NAT blocks of both versions, a NAT journal, a newer pack 2
  kTools,  // mkfs.f2fs and sload.f2fs, defaults
  kToolsExtra,  // the same with the features of kExtra
};
inline constexpr uint32_t kBuiltCount = 3;  // kPlain to kMoved: made without tools
inline constexpr uint32_t kBaseCount = 5;

/// sload.f2fs leaves more room unused than a volume of 64 MiB has.
constexpr uint64_t base_bytes(Base base) {
  return uint64_t{base >= Base::kTools ? 128u : 64u} << 20;
}

const char* base_name(Base base);

/// True if the tools that `base` needs are there.
bool can_make(Base base);

/// Fills `image` (base_bytes(), zeroed). Throws std::runtime_error with what failed.
void make_base(Base base, uint8_t* image);

}  // namespace gofs::fuzz
