// SPDX-License-Identifier: Apache-2.0
//
// A new F2FS volume over several disks, as Linux has it on an md array of RAID level 0: superblocks
// of metadata version 1.2, so that mdadm assembles the disks, and the volume dealt out to them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/stripe.h"
#include "host/image/image_target.h"
#include "host/image/volume_options.h"

namespace gofs::image {

/// Where the volume begins on each disk of an array that we make.
inline constexpr uint64_t kArrayStartBytes = 1 << 20;

/// Several targets as one. They are those of the stripe, in its order, and outlive this one.
std::unique_ptr<ImageTarget> make_striped_target(
    const std::vector<std::unique_ptr<ImageTarget>>& disks, const format::Stripe& stripe);

/// Makes files or devices, two or more, an md array with room for a volume; files that are missing
/// are made. `size_bytes` is that of the volume, rounded up to whole chunks on all disks; 0 takes
/// the files as large as they are. Errors: those of make_volume(), EEXIST also for a volume on one
/// of them; EINVAL for files of different sizes, or more than kStripeDisksMax. What is refused is
/// refused before a file is changed.
Status make_array(const std::vector<std::string>& paths, uint64_t size_bytes, uint64_t chunk_bytes,
                  const VolumeOptions& options, std::vector<std::unique_ptr<ImageTarget>>* disks,
                  format::Stripe* stripe);

/// The same, and a volume on it. Where that fails, files that were missing are removed again.
Status make_array_volume(const std::vector<std::string>& paths, uint64_t size_bytes,
                         uint64_t chunk_bytes, const VolumeOptions& options);

/// Makes a volume on files or devices that are an array already, dealt out as `stripe` says and in
/// its order. Errors: those of make_volume().
Status make_volume_on_array(const std::vector<std::string>& paths, const format::Stripe& stripe,
                            const VolumeOptions& options);

}  // namespace gofs::image
