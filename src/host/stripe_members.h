// SPDX-License-Identifier: Apache-2.0
//
// How several SSDs make one volume. Where they carry the superblocks of a Linux md array, these say
// so: RAID level 0 with metadata 1.2 and disks of one size, which mdadm assembles and Linux mounts.
// Where none does, or it is memory, the volume is striped from their beginnings, in the order in
// which they are named, as `mdadm --build` does. Physical SSDs are asked one after the other,
// before they are attached to the volume. Members may be of several kinds: hosted and virtual SSDs
// get LBAs of the size that the others have.
#pragma once

#include <vector>

#include "format/stripe.h"
#include "host/volume_spec.h"

namespace gofs::host {

/// Without a superblock and an option; what mdadm takes as well.
inline constexpr uint64_t kStripeBytesUsual = 512 << 10;

/// Brings the members, two or more, into their order. EINVAL, EUCLEAN, EOPNOTSUPP and what reading
/// them says, with words that name the member at fault.
Expected<format::Stripe> arrange_stripe(std::vector<VolumeSpec>& members);

/// Whether one of the members, which may be missing, has md's superblock.
bool has_md_superblock(const std::vector<VolumeSpec>& members);

}  // namespace gofs::host
