// SPDX-License-Identifier: Apache-2.0
//
// New volumes, for host programs that need no mkfs.f2fs.
//
//   gofs::MkfsOptions options;
//   options.size_bytes = uint64_t{1} << 30;
//   const auto made = gofs::mkfs("vol.img", options);
//   if (!made) fprintf(stderr, "%s\n", made.error().message.c_str());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gofs/expected.hpp"
#include "gofs/export.h"

namespace gofs {

struct MkfsOptions {
  uint64_t size_bytes = 0;              // 0: that of the file or device
  std::string label;                    // UTF-8, at most 511 UTF-16 units
  std::vector<std::string> features{};  // as mkfs.f2fs -O names them
  bool overwrite = false;               // what the file or device holds
};

/// Makes an empty F2FS volume, as mkfs.f2fs does: on an image, which is made if it is missing, on a
/// block device, or on several with a `+` between them (a stripe). Options of the virtual SSD that
/// `spec` may have are for mounting. It is durable when this returns. What is refused is refused
/// before anything is changed, and a file that was missing is removed again. Errors: those of
/// opening and writing; EBUSY (another program uses it), EEXIST (it holds something, and not
/// options.overwrite), ENOSPC (below 64 MiB), EFBIG (above 16 TiB), EINVAL, EOPNOTSUPP.
GOFS_API Expected<void> mkfs(const std::string& spec, const MkfsOptions& options = {});

}  // namespace gofs
