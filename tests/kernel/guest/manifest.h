// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace gofs::judge {

/// Writes what the kernel says about every object below `root`, itself included: one JSON object a
/// line, in the form that `gofs ls --json` prints, and for regular files "sha256" of the whole
/// content up to `whole_max` bytes of size, above it "probes": [offset, length, sha256] of each run
/// of data, of the borders around it and of some places in between.
/// The first line describes the file system.
void write_manifest(const std::string& root, const std::string& out, int64_t whole_max);

}  // namespace gofs::judge
