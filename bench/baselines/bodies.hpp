// SPDX-License-Identifier: Apache-2.0
//
// The bodies of this folder, as kernels/bodies.h: each has a parameter struct and a function in the
// header named here. bodies.cpp defines the objects, kernels.cu their kernels.
#pragma once

#include "kernels/body.h"

namespace gofs::bench::bodies {

extern const kernels::Body kBlockMap;        // block_map.h
extern const kernels::Body kCompanionRead;   // companion.h
extern const kernels::Body kCompanionWrite;  // companion.h
extern const kernels::Body kRpc;             // rpc.h
extern const kernels::Body kStampSlots;      // slots.h
extern const kernels::Body kCheckSlots;      // slots.h

}  // namespace gofs::bench::bodies
