// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the benchmarks, as kernels.cu.
#include "gpu/bench_kernels.h"
#include "gpu/launch_body.cuh"
#include "work/bench_files.h"
#include "work/bench_names.h"
#include "work/bench_pauses.h"

namespace gofs::gpu::kernels {

using namespace work;

const GpuKernel kRawRead = kernel_of<BenchJob, raw_read_body>();
const GpuKernel kFileRead = kernel_of<BenchJob, file_read_body>();
const GpuKernel kWideRead = kernel_of<BenchJob, wide_read_body>();
const GpuKernel kRawWrite = kernel_of<WriteJob, raw_write_body>();
const GpuKernel kFileWrite = kernel_of<WriteJob, file_write_body>();
const GpuKernel kWriteAndSync = kernel_of<WriteAndSyncParams, write_and_sync_body>();
const GpuKernel kNames = kernel_of<NamesJob, names_body>();
const GpuKernel kFiles = kernel_of<FilesParams, files_body>();

}  // namespace gofs::gpu::kernels
