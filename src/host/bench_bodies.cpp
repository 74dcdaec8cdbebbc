// SPDX-License-Identifier: Apache-2.0
#include "work/bench_bodies.h"

#include "gpu/bench_kernels.h"
#include "work/bench_files.h"
#include "work/bench_names.h"
#include "work/bench_pauses.h"

namespace gofs::work::bodies {

constinit const Body kRawRead{"raw read", run_on_cpu<BenchJob, raw_read_body>,
                              GOFS_KERNEL(gpu::kernels::kRawRead)};
constinit const Body kFileRead{"file read", run_on_cpu<BenchJob, file_read_body>,
                               GOFS_KERNEL(gpu::kernels::kFileRead)};
constinit const Body kWideRead{"wide read", run_on_cpu<BenchJob, wide_read_body>,
                               GOFS_KERNEL(gpu::kernels::kWideRead)};
constinit const Body kRawWrite{"raw write", run_on_cpu<WriteJob, raw_write_body>,
                               GOFS_KERNEL(gpu::kernels::kRawWrite)};
constinit const Body kFileWrite{"file write", run_on_cpu<WriteJob, file_write_body>,
                                GOFS_KERNEL(gpu::kernels::kFileWrite)};
constinit const Body kWriteAndSync{"write and sync",
                                   run_on_cpu<WriteAndSyncParams, write_and_sync_body>,
                                   GOFS_KERNEL(gpu::kernels::kWriteAndSync)};
constinit const Body kNames{"names", run_on_cpu<NamesJob, names_body>,
                            GOFS_KERNEL(gpu::kernels::kNames)};
constinit const Body kFiles{"files", run_on_cpu<FilesParams, files_body>,
                            GOFS_KERNEL(gpu::kernels::kFiles)};

}  // namespace gofs::work::bodies
