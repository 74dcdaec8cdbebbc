// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the bodies in bodies.h.
#include "bench/device_api.cuh"
#include "bench/files_body.h"
#include "bench/kernels.h"
#include "bench/names_body.h"
#include "bench/pauses_body.h"
#include "gpu/launch_body.cuh"

namespace gofs::bench::kernels {

const work::GpuKernel kRawRead = gpu::kernel_of<BenchJob, raw_read_body>();
const work::GpuKernel kFileRead = gpu::kernel_of<BenchJob, file_read_body<DeviceApi>>();
const work::GpuKernel kWideRead = gpu::kernel_of<BenchJob, wide_read_body<DeviceApi>>();
const work::GpuKernel kRawWrite = gpu::kernel_of<WriteJob, raw_write_body>();
const work::GpuKernel kFileWrite = gpu::kernel_of<WriteJob, file_write_body<DeviceApi>>();
const work::GpuKernel kWriteAndSync =
    gpu::kernel_of<WriteAndSyncParams, write_and_sync_body<DeviceApi>>();
const work::GpuKernel kNames = gpu::kernel_of<NamesJob, names_body<DeviceApi>>();
const work::GpuKernel kFiles = gpu::kernel_of<FilesParams, files_body<DeviceApi>>();

}  // namespace gofs::bench::kernels
