// SPDX-License-Identifier: Apache-2.0
//
// The bodies that measure.
#pragma once

#include "work/body.h"

namespace gofs::work::bodies {

extern const Body kRawRead;       // bench.h         commands, no file system
extern const Body kFileRead;      // bench.h         the same through the file API
extern const Body kWideRead;      // bench.h         by blocks and grids
extern const Body kRawWrite;      // bench_writes.h
extern const Body kFileWrite;     // bench_writes.h
extern const Body kWriteAndSync;  // bench_pauses.h
extern const Body kNames;         // bench_names.h
extern const Body kFiles;         // bench_files.h   a file a warp

}  // namespace gofs::work::bodies
