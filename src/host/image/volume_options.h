// SPDX-License-Identifier: Apache-2.0
//
// What a new volume shall be like, and what an inode says of its file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "format/superblock.h"

namespace gofs::image {

/// Features that new volumes may have. The default is none, as with mkfs.f2fs.
inline constexpr uint32_t kFeaturesOffered =
    format::kFeatureExtraAttr | format::kFeatureInodeChecksum |
    format::kFeatureFlexibleInlineXattr | format::kFeatureInodeCrtime |
    format::kFeatureSuperChecksum | format::kFeatureLostFound;

struct VolumeOptions {
  std::string label;  // UTF-8, at most 511 UTF-16 units
  uint32_t feature = 0;
  std::optional<std::array<uint8_t, 16>> uuid;  // default: random
  /// With a seed (and a uuid or not) and a time, equal calls write equal bytes.
  std::optional<uint64_t> seed;
  std::optional<int64_t> time_s;  // default: now
  bool overwrite = false;         // write over an existing F2FS volume
  bool flush = true;              // return only when the volume is durable
};

struct Timestamp {
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
};

/// `mode` holds permission bits only; the type comes from the call that makes the file. Times that
/// are not given are the volume's time_s.
struct Attributes {
  uint16_t mode = 0644;
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::optional<Timestamp> atime{};
  std::optional<Timestamp> mtime{};
  std::optional<Timestamp> ctime{};
};

}  // namespace gofs::image
