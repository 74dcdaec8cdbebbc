// SPDX-License-Identifier: Apache-2.0
#include "host/bench_files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "host/bench_actors.h"
#include "host/messages.h"
#include "host/run_job.h"
#include "work/bench_bodies.h"
#include "work/bench_files.h"

namespace gofs::host {

Expected<FilesMeasurement> measure_files_one_by_one(VolumeState& volume,
                                                    const std::vector<std::string>& paths,
                                                    uint32_t file_bytes, uint32_t warps) {
  constexpr const char* kFilesSubject = "bench of files";
  simt::MemorySpace& memory = volume.backend().memory();
  std::vector<char> text(paths.size() * work::kBenchPathBytes);
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].size() >= work::kBenchPathBytes) {
      return make_error(EINVAL, paths[i], "a path that is too long");
    }
    std::memcpy(&text[i * work::kBenchPathBytes], paths[i].c_str(), paths[i].size() + 1);
  }
  const BackendArray placed(memory, std::max<size_t>(text.size(), 1));
  memory.write(placed.data(), text.data(), text.size());
  const BackendArray buffers(memory, std::max<uint64_t>(paths.size() * uint64_t{file_bytes}, 1));
  const Actors actors = actors_by_warp(volume.backend(), warps);
  work::FilesParams job{};
  job.fs = volume.filesystem();
  job.paths = placed.as<char>();
  job.count = static_cast<uint32_t>(paths.size());
  job.warps = actors.warps;
  job.file_bytes = file_bytes;
  job.buffers = buffers.data();
  job.first_ns = ~uint64_t{0};
  if (!run_job(volume, work::bodies::kFiles, actors.grid, job)) {
    return volume.explain(VolumeState::kNotRun, kFilesSubject);
  }
  if (job.error != 0) return volume.explain(job.error, kFilesSubject);
  if (job.wrong_stamps != 0) {
    return make_error(EIO, kFilesSubject,
                      fmt::format("{} blocks are not those that were asked for", job.wrong_stamps));
  }
  FilesMeasurement result;
  result.warps = actors.warps;
  result.bytes = job.bytes;
  result.seconds =
      job.last_ns > job.first_ns ? static_cast<double>(job.last_ns - job.first_ns) * 1e-9 : 0;
  return result;
}

}  // namespace gofs::host
