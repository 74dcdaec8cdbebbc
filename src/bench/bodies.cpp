// SPDX-License-Identifier: Apache-2.0
#include "bench/bodies.h"

#include "bench/cpu_api.hpp"
#include "bench/files_body.h"
#include "bench/kernels.h"
#include "bench/names_body.h"
#include "bench/pauses_body.h"

namespace gofs::bench::bodies {

constinit const work::Body kRawRead{"raw read", work::run_on_cpu<BenchJob, raw_read_body>,
                                    GOFS_KERNEL(kernels::kRawRead)};
constinit const work::Body kFileRead{"file read",
                                     work::run_on_cpu<BenchJob, file_read_body<CpuApi>>,
                                     GOFS_KERNEL(kernels::kFileRead)};
constinit const work::Body kWideRead{"wide read",
                                     work::run_on_cpu<BenchJob, wide_read_body<CpuApi>>,
                                     GOFS_KERNEL(kernels::kWideRead)};
constinit const work::Body kRawWrite{"raw write", work::run_on_cpu<WriteJob, raw_write_body>,
                                     GOFS_KERNEL(kernels::kRawWrite)};
constinit const work::Body kFileWrite{"file write",
                                      work::run_on_cpu<WriteJob, file_write_body<CpuApi>>,
                                      GOFS_KERNEL(kernels::kFileWrite)};
constinit const work::Body kWriteAndSync{
    "write and sync", work::run_on_cpu<WriteAndSyncParams, write_and_sync_body<CpuApi>>,
    GOFS_KERNEL(kernels::kWriteAndSync)};
constinit const work::Body kNames{"names", work::run_on_cpu<NamesJob, names_body<CpuApi>>,
                                  GOFS_KERNEL(kernels::kNames)};
constinit const work::Body kFiles{"files", work::run_on_cpu<FilesParams, files_body<CpuApi>>,
                                  GOFS_KERNEL(kernels::kFiles)};

}  // namespace gofs::bench::bodies
