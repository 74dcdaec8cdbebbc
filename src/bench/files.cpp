// SPDX-License-Identifier: Apache-2.0
#include "bench/files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "bench/actors.hpp"
#include "bench/bodies.h"
#include "bench/files_body.h"
#include "host/messages.h"
#include "host/run_job.h"

namespace gofs::bench {

Expected<FilesMeasurement> measure_files_one_by_one(host::VolumeState& volume,
                                                    const std::vector<std::string>& paths,
                                                    uint32_t file_bytes, uint32_t warps) {
  constexpr const char* kFilesSubject = "bench of files";
  simt::MemorySpace& memory = volume.backend().memory();
  std::vector<char> text(paths.size() * kBenchPathBytes);
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].size() >= kBenchPathBytes) {
      return host::make_error(EINVAL, paths[i], "a path that is too long");
    }
    std::memcpy(&text[i * kBenchPathBytes], paths[i].c_str(), paths[i].size() + 1);
  }
  const BackendArray placed(memory, std::max<size_t>(text.size(), 1));
  memory.write(placed.data(), text.data(), text.size());
  const BackendArray buffers(memory, std::max<uint64_t>(paths.size() * uint64_t{file_bytes}, 1));
  const Actors actors = actors_by_warp(volume.backend(), warps);
  FilesParams job{};
  job.fs = volume.filesystem();
  job.paths = placed.as<char>();
  job.count = static_cast<uint32_t>(paths.size());
  job.warps = actors.warps;
  job.file_bytes = file_bytes;
  job.buffers = buffers.data();
  job.first_ns = ~uint64_t{0};
  if (!host::run_job(volume, bodies::kFiles, actors.grid, job)) {
    return volume.explain(host::VolumeState::kNotRun, kFilesSubject);
  }
  if (job.error != 0) return volume.explain(job.error, kFilesSubject);
  if (job.wrong_stamps != 0) {
    return host::make_error(
        EIO, kFilesSubject,
        fmt::format("{} blocks are not those that were asked for", job.wrong_stamps));
  }
  FilesMeasurement result;
  result.warps = actors.warps;
  result.bytes = job.bytes;
  result.seconds =
      job.last_ns > job.first_ns ? static_cast<double>(job.last_ns - job.first_ns) * 1e-9 : 0;
  return result;
}

}  // namespace gofs::bench
