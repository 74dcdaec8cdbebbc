// SPDX-License-Identifier: Apache-2.0
//
// Makes an empty F2FS volume, as mkfs.f2fs does with one segment per section on one device: the
// same areas, the same reserve. Only what must be zero or differ is written, so that a volume of
// any size costs a few MiB of a sparse file.
//
//   gofs::image::Status status = gofs::image::make_volume("vol.img", uint64_t{1} << 30, {});
//   if (!status.ok()) fprintf(stderr, "gofs: vol.img: %s\n", status.message.c_str());
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "host/image/image_target.h"
#include "host/image/volume_options.h"

namespace gofs::image {

/// On a host file, made if missing and given `size_bytes`, or on a block device; 0 takes the size
/// that is there. What is refused is refused before the file is changed; a file that was missing is
/// removed again if this fails. Messages begin with the path. Errors: those of opening and writing;
/// EBUSY (another process uses it); EEXIST (it holds something, and not options.overwrite); ENOSPC
/// (below 64 MiB), EFBIG (above 16 TiB); EINVAL, EOPNOTSUPP (label, features).
Status make_volume(const std::string& path, uint64_t size_bytes, const VolumeOptions& options);

/// The same on an open descriptor of a file or device.
Status make_volume(int fd, uint64_t size_bytes, const VolumeOptions& options);

/// On the whole of a target, e.g. memory.
Status make_volume(ImageTarget& target, const VolumeOptions& options);

/// Opens the file or device of a new volume for ImageBuilder, with the checks of make_volume before
/// anything is changed, the file's size included.
Status open_volume_target(const std::string& path, uint64_t size_bytes,
                          const VolumeOptions& options, std::unique_ptr<ImageTarget>* target);

}  // namespace gofs::image
