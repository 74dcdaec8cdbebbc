// SPDX-License-Identifier: Apache-2.0
//
// Contents that tell by themselves what they are: a file is made of records of 512 bytes, each of
// which names the file, its place in it and how often it was written.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace gofs::neighbour {

inline constexpr uint64_t kRecordBytes = 512;

struct RecordName {
  uint64_t file;
  uint32_t place;
  uint32_t version;
};

/// Fills `record`, of kRecordBytes.
inline void fill_record(const RecordName& name, char* record) {
  std::array<uint64_t, kRecordBytes / 8> words;
  words[0] = name.file;
  words[1] = uint64_t{name.place} << 32 | name.version;
  for (size_t i = 2; i < words.size(); ++i) {
    words[i] = (words[i - 1] ^ words[i - 2] >> 29) * 0xbf58476d1ce4e5b9 + i;
  }
  std::memcpy(record, words.data(), kRecordBytes);
}

inline bool is_record(const RecordName& name, const char* record) {
  std::array<char, kRecordBytes> wanted;
  fill_record(name, wanted.data());
  return std::memcmp(wanted.data(), record, kRecordBytes) == 0;
}

}  // namespace gofs::neighbour
