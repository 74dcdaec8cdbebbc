// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4) for the guest's side of the kernel tests. On purpose not the library's own:
// the judge must not share a mistake with whom it judges. tests/kernel/judge.py compares it with
// Python's before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gofs::judge {

class Sha256 {
 public:
  void update(const void* data, size_t size);
  /// The digest in hexadecimal; the object is used up.
  std::string finish();

 private:
  void compress(const uint8_t* block);

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint64_t size_ = 0;
  uint8_t pending_[64] = {};
};

}  // namespace gofs::judge
