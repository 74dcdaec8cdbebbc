// SPDX-License-Identifier: Apache-2.0
//
// The bodies that measure, as work/bodies.h. bodies.cpp defines the objects, kernels.cu their
// kernels.
#pragma once

#include "work/body.h"

namespace gofs::bench::bodies {

extern const work::Body kRawRead;       // read_body.h    commands, no file system
extern const work::Body kFileRead;      // read_body.h    the same through the file API
extern const work::Body kWideRead;      // read_body.h    by blocks and grids
extern const work::Body kRawWrite;      // write_body.h
extern const work::Body kFileWrite;     // write_body.h
extern const work::Body kWriteAndSync;  // pauses_body.h
extern const work::Body kNames;         // names_body.h
extern const work::Body kFiles;         // files_body.h   a file a warp

}  // namespace gofs::bench::bodies
