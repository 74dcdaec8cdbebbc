// SPDX-License-Identifier: Apache-2.0
//
// The bodies that volumes are made of. Each has a header here with a parameter struct and a
// function `body(warp, warp_index, warp_count, params)`. host/bodies.cpp defines the objects,
// gpu/kernels.cu their kernels.
#pragma once

#include "kernels/body.h"

namespace gofs::kernels::bodies {

extern const Body kMount;         // mount.h     one warp
extern const Body kReadSegments;  // mount.h     after kMount
extern const Body kBeginWriting;  // mount.h     one warp, after kReadSegments
extern const Body kUnmount;       // mount.h     one warp, and others that help it
extern const Body kCall;          // call.h      one warp, and others that help it with a checkpoint
extern const Body kCalls;         // calls.h     a call a warp
extern const Body kHashFiles;     // hash.h      a file a lane
extern const Body kBatch;         // batch.h
extern const Body kRanges;        // ranges.h
extern const Body kInodes;        // inodes.h    an inode a lane
extern const Body kClean;         // clean.h
extern const Body kClock;         // clock.h     one warp
extern const Body kHold;          // hold.h      one warp

}  // namespace gofs::kernels::bodies
