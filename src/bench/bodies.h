// SPDX-License-Identifier: Apache-2.0
//
// The bodies that measure, as kernels/bodies.h. bodies.cpp defines the objects, kernels.cu their
// kernels.
#pragma once

#include "kernels/body.h"

namespace gofs::bench::bodies {

extern const kernels::Body kRawRead;       // read_body.h    commands, no file system
extern const kernels::Body kFileRead;      // read_body.h    the same through the file API
extern const kernels::Body kWideRead;      // read_body.h    by blocks and grids
extern const kernels::Body kRawWrite;      // write_body.h
extern const kernels::Body kFileWrite;     // write_body.h
extern const kernels::Body kWriteAndSync;  // pauses_body.h
extern const kernels::Body kNames;         // names_body.h
extern const kernels::Body kStream;        // stream_body.h  one file by many, or a file each
extern const kernels::Body kRecords;       // records_body.h
extern const kernels::Body kFiles;         // files_body.h   a file a warp

}  // namespace gofs::bench::bodies
