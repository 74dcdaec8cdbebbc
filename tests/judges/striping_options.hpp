// SPDX-License-Identifier: Apache-2.0
//
// How the judges' programs are told over how many SSDs a volume is striped.
#pragma once

#include <CLI/CLI.hpp>
#include <bit>
#include <cstdint>
#include <string>

#include "disk.h"

namespace gofs::judges {

/// What is wrong with a chunk's size, or nothing.
inline std::string refuse_chunk(const std::string& text) {
  uint64_t bytes = 0;
  const bool fine = CLI::detail::lexical_cast(text, bytes) && bytes >= kBlockBytes &&
                    std::has_single_bit(bytes) && bytes <= uint64_t{1} << 30;
  return fine ? std::string() : text + " is not a power of two from 4096 on";
}

/// `striping` outlives the app.
inline void add_striping_options(CLI::App& app, Striping& striping) {
  app.add_option("--disks", striping.disks, "SSDs over which the volume is striped")
      ->check(CLI::Range(1u, format::kStripeDisksMax))
      ->capture_default_str();
  app.add_option("--chunk", striping.chunk_bytes, "bytes of a chunk of the stripe")
      ->check(CLI::Validator(refuse_chunk, "POWER OF TWO >= 4096"))
      ->capture_default_str();
}

}  // namespace gofs::judges
