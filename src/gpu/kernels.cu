// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the CUDA backend: each is one body of work/, which a reader who wants to know what
// the file system does should open instead.
#include "gpu/kernels.h"
#include "gpu/launch_body.cuh"
#include "kernels/batch.h"
#include "kernels/call.h"
#include "kernels/calls.h"
#include "kernels/clean.h"
#include "kernels/clock.h"
#include "kernels/hash.h"
#include "kernels/hold.h"
#include "kernels/inodes.h"
#include "kernels/mount.h"
#include "kernels/ranges.h"

namespace gofs::gpu::gpu_kernels {

using namespace kernels;

const GpuKernel kMount = kernel_of<MountParams, mount_body>();
const GpuKernel kReadSegments = kernel_of<BeginWritingParams, read_segments_body>();
const GpuKernel kBeginWriting = kernel_of<BeginWritingParams, begin_writing_body>();
const GpuKernel kUnmount = kernel_of<UnmountParams, unmount_body>();
const GpuKernel kCall = kernel_of<CallParams, call_body>();
const GpuKernel kCalls = kernel_of<CallsParams, calls_body>();
const GpuKernel kHashFiles = kernel_of<HashParams, hash_body>();
const GpuKernel kBatch = kernel_of<BatchParams, batch_body>();
const GpuKernel kRanges = kernel_of<RangesParams, ranges_body>();
const GpuKernel kInodes = kernel_of<InodesParams, inodes_body>();
const GpuKernel kClean = kernel_of<CleanParams, clean_body>();
const GpuKernel kClock = kernel_of<ClockParams, clock_body>();
const GpuKernel kHold = kernel_of<HoldParams, hold_body>();

}  // namespace gofs::gpu::gpu_kernels
