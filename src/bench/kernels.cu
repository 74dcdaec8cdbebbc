// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the bodies in bodies.h.
#include "bench/device_api.cuh"
#include "bench/files_body.h"
#include "bench/kernels.h"
#include "bench/names_body.h"
#include "bench/pauses_body.h"
#include "bench/records_body.h"
#include "bench/stream_body.h"
#include "gpu/launch_body.cuh"

namespace gofs::bench::gpu_kernels {

const kernels::GpuKernel kRawRead = gpu::kernel_of<BenchJob, raw_read_body>();
const kernels::GpuKernel kFileRead = gpu::kernel_of<BenchJob, file_read_body<DeviceApi>>();
const kernels::GpuKernel kWideRead = gpu::kernel_of<BenchJob, wide_read_body<DeviceApi>>();
const kernels::GpuKernel kRawWrite = gpu::kernel_of<WriteJob, raw_write_body>();
const kernels::GpuKernel kFileWrite = gpu::kernel_of<WriteJob, file_write_body<DeviceApi>>();
const kernels::GpuKernel kWriteAndSync =
    gpu::kernel_of<WriteAndSyncParams, write_and_sync_body<DeviceApi>>();
const kernels::GpuKernel kNames = gpu::kernel_of<NamesJob, names_body<DeviceApi>>();
const kernels::GpuKernel kStream = gpu::kernel_of<StreamJob, stream_body<DeviceApi>>();
const kernels::GpuKernel kRecords = gpu::kernel_of<RecordsJob, records_body<DeviceApi>>();
const kernels::GpuKernel kFiles = gpu::kernel_of<FilesParams, files_body<DeviceApi>>();

}  // namespace gofs::bench::gpu_kernels
