// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a libcuda.so.1 without a GPU, for what the host does with memory of one. The
// memory cannot be touched by its addresses, and what comes into a stream is done when somebody
// waits for the stream.
#pragma once

#include <cstdint>

struct CUstream_st;

extern "C" {

/// `bytes` of memory of the GPU; lasts as long as the process.
void* fake_gpu_allocate(uint64_t bytes);
/// The same of memory that another process can be given a descriptor of.
void* fake_gpu_map(uint64_t bytes);
/// How many copies were begun.
uint64_t fake_gpu_copies();
/// The same memory as the host may look at it, when nothing is under way.
uint8_t* fake_gpu_look(void* memory);
/// A kernel that sets `bytes` bytes.
void fake_gpu_fill(CUstream_st* stream, void* memory, int byte, uint64_t bytes);
/// The stream that is being captured.
CUstream_st* fake_gpu_captured_stream();
}
