// SPDX-License-Identifier: Apache-2.0
//
// Volumes for judges: what mkfs.f2fs makes, and images that fsck.f2fs can look at while they are in
// memory.
#pragma once

#include <cstdint>
#include <string>

#include "ssd/power_cut.h"
#include "testing/image_file.h"

namespace gofs::judges {

/// What mkfs.f2fs makes with these options. Throws std::runtime_error.
testing::ImageFile make_empty_volume(uint64_t bytes, const std::string& mkfs_options = "");

/// Throws std::runtime_error.
testing::ImageFile load_volume(const std::string& path);

/// What fsck.f2fs complains about, or nothing. `torn`: one checkpoint may be half written.
std::string complaints_of(const std::string& path, bool torn = false);

/// Undoes on a copy of `base` what the commands of a trace did, whatever of it took place.
void put_back(testing::ImageFile& copy, const testing::ImageFile& base,
              const ssd::WriteTrace& trace);

}  // namespace gofs::judges
