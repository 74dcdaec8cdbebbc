// SPDX-License-Identifier: Apache-2.0
//
// The bodies of this folder, as work/bodies.h: each has a parameter struct and a function in the
// header named here. bodies.cpp defines the objects, kernels.cu their kernels.
#pragma once

#include "work/body.h"

namespace gofs::bench::bodies {

extern const work::Body kBlockMap;        // block_map.h
extern const work::Body kCompanionRead;   // companion.h
extern const work::Body kCompanionWrite;  // companion.h
extern const work::Body kRpc;             // rpc.h
extern const work::Body kStampSlots;      // slots.h
extern const work::Body kCheckSlots;      // slots.h

}  // namespace gofs::bench::bodies
