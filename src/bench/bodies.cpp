// SPDX-License-Identifier: Apache-2.0
#include "bench/bodies.h"

#include "bench/cpu_api.hpp"
#include "bench/files_body.h"
#include "bench/kernels.h"
#include "bench/names_body.h"
#include "bench/pauses_body.h"
#include "bench/records_body.h"
#include "bench/stream_body.h"

namespace gofs::bench::bodies {

constinit const kernels::Body kRawRead{"raw read", kernels::run_on_cpu<BenchJob, raw_read_body>,
                                       GOFS_KERNEL(gpu_kernels::kRawRead)};
constinit const kernels::Body kFileRead{"file read",
                                        kernels::run_on_cpu<BenchJob, file_read_body<CpuApi>>,
                                        GOFS_KERNEL(gpu_kernels::kFileRead)};
constinit const kernels::Body kWideRead{"wide read",
                                        kernels::run_on_cpu<BenchJob, wide_read_body<CpuApi>>,
                                        GOFS_KERNEL(gpu_kernels::kWideRead)};
constinit const kernels::Body kRawWrite{"raw write", kernels::run_on_cpu<WriteJob, raw_write_body>,
                                        GOFS_KERNEL(gpu_kernels::kRawWrite)};
constinit const kernels::Body kFileWrite{"file write",
                                         kernels::run_on_cpu<WriteJob, file_write_body<CpuApi>>,
                                         GOFS_KERNEL(gpu_kernels::kFileWrite)};
constinit const kernels::Body kWriteAndSync{
    "write and sync", kernels::run_on_cpu<WriteAndSyncParams, write_and_sync_body<CpuApi>>,
    GOFS_KERNEL(gpu_kernels::kWriteAndSync)};
constinit const kernels::Body kNames{"names", kernels::run_on_cpu<NamesJob, names_body<CpuApi>>,
                                     GOFS_KERNEL(gpu_kernels::kNames)};
constinit const kernels::Body kStream{"stream", kernels::run_on_cpu<StreamJob, stream_body<CpuApi>>,
                                      GOFS_KERNEL(gpu_kernels::kStream)};
constinit const kernels::Body kRecords{"records",
                                       kernels::run_on_cpu<RecordsJob, records_body<CpuApi>>,
                                       GOFS_KERNEL(gpu_kernels::kRecords)};
constinit const kernels::Body kFiles{"files", kernels::run_on_cpu<FilesParams, files_body<CpuApi>>,
                                     GOFS_KERNEL(gpu_kernels::kFiles)};

}  // namespace gofs::bench::bodies
