// SPDX-License-Identifier: Apache-2.0
//
// Host threads that read many small files, one after the other each: open, pread into pinned
// memory, copy, close.
#pragma once

#include "baseline.hpp"
#include "device.hpp"
#include "storage.hpp"

namespace gofs::bench {

/// Reads the files from 0 to `files` - 1, each into a place of its own in the device's memory, by
/// `threads` threads. All that came there is looked at by the device. Errors: EIO for wrong bytes
/// too.
Expected<Sample> run_host_files(Device& device, Storage& storage, uint32_t threads, uint32_t files);

}  // namespace gofs::bench
