// SPDX-License-Identifier: Apache-2.0
#include "bench/names.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "bench/bodies.h"
#include "bench/writes.hpp"
#include "host/messages.h"
#include "host/run_job.h"
#include "kernels/batch.h"
#include "kernels/bodies.h"

namespace gofs::bench {

namespace {

constexpr const char* kNamesSubject = "bench of names";

double seconds_between(uint64_t first_ns, uint64_t last_ns) {
  return last_ns > first_ns ? static_cast<double>(last_ns - first_ns) * 1e-9 : 0;
}

}  // namespace

NamesBench::NamesBench(host::VolumeState& volume, uint32_t warps_max, uint32_t file_bytes_max)
    : volume_(volume),
      all_(actors_by_warp(volume.backend(), warps_max)),
      file_bytes_max_(file_bytes_max),
      paths_(volume.backend().memory(), uint64_t{all_.warps} * kNamePathBytes),
      buffers_(volume.backend().memory(), uint64_t{all_.warps} * std::max(file_bytes_max, 1u)),
      done_(volume.backend().memory(), uint64_t{all_.warps} * sizeof(uint32_t)),
      stats_(volume.backend().memory(), uint64_t{all_.warps} * sizeof(vfs::Stat)) {}

NamesParams NamesBench::params_of(NameKind kind, uint32_t file_bytes) {
  NamesParams params{};
  params.fs = volume_.filesystem();
  params.kind = kind;
  params.file_bytes = file_bytes;
  params.run = ++runs_;
  params.paths = paths_.as<char>();
  params.buffers = buffers_.data();
  params.done = done_.as<uint32_t>();
  params.stats = stats_.as<vfs::Stat>();
  return params;
}

/// Seconds; `names` becomes how many were made or removed.
Expected<double> NamesBench::step(NameStep step, const Actors& actors, NamesParams params,
                                  uint64_t& names) {
  params.step = step;
  params.warps = actors.warps;
  NamesJob job{params, {}};
  if (!host::run_job(volume_, bodies::kNames, actors.grid, job)) {
    return volume_.explain(host::VolumeState::kNotRun, kNamesSubject);
  }
  const NamesResults& done = job.results;
  if (done.error != 0) return volume_.explain(done.error, kNamesSubject);
  if (done.wrong != 0) {
    return host::make_error(EIO, kNamesSubject,
                            fmt::format("{} names are not as they were made", done.wrong));
  }
  names = done.names;
  return seconds_between(done.first_ns, done.last_ns);
}

Expected<NamesMeasurement> NamesBench::make_homes() {
  NamesParams params = params_of(NameKind::kHome, 0);
  params.operations = 1;
  NamesMeasurement result;
  result.warps = all_.warps;
  const auto made = step(NameStep::kMake, all_, params, result.names);
  if (!made) return made.error();
  result.make_seconds = *made;
  uint64_t none = 0;
  const auto checked = step(NameStep::kCheck, all_, params, none);
  if (!checked) return checked.error();
  return result;
}

Expected<NamesMeasurement> NamesBench::make_and_remove(const NamesPlan& plan) {
  const Actors actors = actors_by_warp(volume_.backend(), std::min(plan.warps, all_.warps));
  if (plan.file_bytes > file_bytes_max_ || plan.file_bytes % kBlockBytes != 0) {
    return host::make_error(EINVAL, kNamesSubject, "files of another size");
  }
  NamesParams params = params_of(plan.kind, plan.file_bytes);
  params.place = plan.place;
  constexpr uint64_t kNamesOfWarpMax = 1'000'000;  // six digits
  params.operations = static_cast<uint32_t>(
      std::clamp<uint64_t>(plan.names_max / actors.warps, 1, kNamesOfWarpMax));
  params.time_ns = static_cast<uint64_t>(plan.seconds * 1e9);
  NamesMeasurement result;
  result.warps = actors.warps;
  const auto made = step(NameStep::kMake, actors, params, result.names);
  if (!made) return made.error();
  result.make_seconds = *made;
  uint64_t count = 0;
  const auto checked = step(NameStep::kCheck, actors, params, count);
  if (!checked) return checked.error();
  // Else one that making the names has made due would fall into removing them.
  const auto checkpoint = time_checkpoint(volume_);
  if (!checkpoint) return checkpoint.error();
  const auto removed = step(NameStep::kRemove, actors, params, count);
  if (!removed) return removed.error();
  if (count != result.names) {
    return host::make_error(EIO, kNamesSubject,
                            fmt::format("{} of {} removed", count, result.names));
  }
  result.remove_seconds = *removed;
  const auto gone = step(NameStep::kGone, actors, params, count);
  if (!gone) return gone.error();
  return result;
}

namespace {

constexpr uint32_t kBatchNameBytes = 16;

std::string batch_name(uint32_t index) { return fmt::format("{:08}", index); }

/// What a batch is made of, in the backend's memory: each block has its stamp.
struct BatchContents {
  BatchContents(host::VolumeState& volume, uint32_t files, uint32_t file_bytes)
      : texts(volume.backend().memory(), uint64_t{files} * kBatchNameBytes),
        names(volume.backend().memory(), uint64_t{files} * sizeof(const char*)),
        offsets(volume.backend().memory(), uint64_t{files} * sizeof(uint64_t)),
        sizes(volume.backend().memory(), uint64_t{files} * sizeof(uint64_t)),
        errors(volume.backend().memory(), uint64_t{files} * sizeof(int)),
        data(volume.backend().memory(), std::max<uint64_t>(uint64_t{files} * file_bytes, 1)) {
    simt::MemorySpace& memory = volume.backend().memory();
    std::vector<char> text(uint64_t{files} * kBatchNameBytes);
    std::vector<const char*> name(files);
    std::vector<uint64_t> offset(files);
    const std::vector<uint64_t> size(files, file_bytes);
    for (uint32_t i = 0; i < files; ++i) {
      const std::string one = batch_name(i);
      std::memcpy(&text[uint64_t{i} * kBatchNameBytes], one.c_str(), one.size() + 1);
      name[i] = texts.as<char>() + uint64_t{i} * kBatchNameBytes;
      offset[i] = uint64_t{i} * file_bytes;
    }
    memory.write(texts.data(), text.data(), text.size());
    memory.write(names.data(), name.data(), files * sizeof(const char*));
    memory.write(offsets.data(), offset.data(), files * sizeof(uint64_t));
    memory.write(sizes.data(), size.data(), files * sizeof(uint64_t));
    if (file_bytes != 0) write_data(memory, files, file_bytes);
  }

  BackendArray texts;
  BackendArray names;
  BackendArray offsets;
  BackendArray sizes;
  BackendArray errors;
  BackendArray data;

 private:
  void write_data(simt::MemorySpace& memory, uint32_t files, uint32_t file_bytes) const {
    constexpr uint32_t kFilesAtOnce = 1024;
    std::vector<uint8_t> part(uint64_t{kFilesAtOnce} * file_bytes);
    for (uint32_t first = 0; first < files; first += kFilesAtOnce) {
      const uint32_t count = std::min(kFilesAtOnce, files - first);
      for (uint64_t at = 0; at < uint64_t{count} * file_bytes; at += kBlockBytes) {
        put_stamp(&part[at], kBlockBytes,
                  {first + at / file_bytes, at % file_bytes / kBlockBytes, 0, 0});
      }
      memory.write(data.data() + uint64_t{first} * file_bytes, part.data(),
                   uint64_t{count} * file_bytes);
    }
  }
};

/// Whether the file is what the batch was to make.
Expected<bool> is_as_in_batch(host::VolumeState& volume, const std::string& directory,
                              uint32_t index, uint32_t file_bytes) {
  const std::string path = batch_path(directory, index);
  const auto opened = volume.call({.verb = request::Verb::kOpen, .path = &path});
  if (opened.result < 0) return volume.explain(opened.result, path);
  const auto descriptor = static_cast<int>(opened.result);
  std::vector<uint8_t> bytes(uint64_t{file_bytes} + 1);
  const auto read = volume.call({.verb = request::Verb::kPread,
                                 .descriptor = descriptor,
                                 .buffer = bytes.data(),
                                 .bytes = bytes.size()});
  (void)volume.call({.verb = request::Verb::kClose, .descriptor = descriptor});
  if (read.result < 0) return volume.explain(read.result, path);
  bool right = read.result == file_bytes;
  for (uint32_t at = 0; right && at < file_bytes; at += kBlockBytes) {
    right = has_stamp(&bytes[at], kBlockBytes, {index, at / kBlockBytes, 0, 0});
  }
  return right;
}

}  // namespace

std::string batch_path(const std::string& directory, uint32_t index) {
  return directory + "/" + batch_name(index);
}

Expected<BatchCreation> measure_batch_creation(host::VolumeState& volume,
                                               const std::string& directory, uint32_t files,
                                               uint32_t file_bytes) {
  if (files == 0 || file_bytes % kBlockBytes != 0) {
    return host::make_error(EINVAL, directory, "a batch of whole blocks is wanted");
  }
  const auto mkdir = volume.call({.verb = request::Verb::kMkdir, .path = &directory, .mode = 0755});
  if (mkdir.result < 0) return volume.explain(mkdir.result, directory);
  const BatchContents contents(volume, files, file_bytes);
  simt::MemorySpace& shared = volume.backend().shared_memory();
  const host::SharedArray<char> path(shared, directory.size() + 1);
  std::memcpy(path.data(), directory.c_str(), directory.size() + 1);
  kernels::BatchParams job{};
  job.fs = volume.filesystem();
  job.step = kernels::BatchStep::kCreate;
  job.path = path.data();
  job.names = contents.names.as<const char*>();
  job.count = files;
  job.permissions = 0644;
  job.buffer = contents.data.data();
  job.offsets = contents.offsets.as<uint64_t>();
  job.sizes = contents.sizes.as<uint64_t>();
  job.errors = contents.errors.as<int>();
  job.first_ns = ~uint64_t{0};
  kernels::Grid grid = volume.backend().full_grid();
  grid.cooperative = true;
  if (!host::run_job(volume, kernels::bodies::kBatch, grid, job)) {
    return volume.explain(host::VolumeState::kNotRun, directory);
  }
  if (job.result < 0) return volume.explain(job.result, directory);
  std::vector<int> errors(files);
  volume.backend().memory().read(errors.data(), contents.errors.data(), files * sizeof(int));
  for (uint32_t i = 0; i < files; ++i) {
    if (errors[i] != 0) return volume.explain(errors[i], batch_path(directory, i));
  }
  constexpr uint32_t kSamples = 64;
  for (uint32_t i = 0; i < std::min(kSamples, files); ++i) {
    const auto index = static_cast<uint32_t>(uint64_t{i} * (files - 1) / kSamples);
    const auto right = is_as_in_batch(volume, directory, index, file_bytes);
    if (!right) return right.error();
    if (!*right) return host::make_error(EIO, batch_path(directory, index), "wrong contents");
  }
  return BatchCreation{files, uint64_t{files} * file_bytes,
                       seconds_between(job.first_ns, job.last_ns)};
}

}  // namespace gofs::bench
