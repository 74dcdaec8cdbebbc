// SPDX-License-Identifier: Apache-2.0
#include "host/create_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "host/messages.h"
#include "host/run_job.h"
#include "kernels/batch.h"
#include "kernels/bodies.h"

namespace gofs::host {

namespace {

/// What one call makes: the copies of its files' contents, in memory that the backend reaches, are
/// bounded, and so is the time for which the directory is locked.
constexpr size_t kFilesAtOnce = 16384;
constexpr uint64_t kBytesAtOnce = uint64_t{64} << 20;

/// The files from `first` on that one call makes: at least one.
size_t portion_end(const std::vector<NewFile>& files, size_t first) {
  uint64_t bytes = files[first].bytes;
  size_t end = first + 1;
  while (end < files.size() && end - first < kFilesAtOnce &&
         bytes + files[end].bytes <= kBytesAtOnce) {
    bytes += files[end].bytes;
    ++end;
  }
  return end;
}

bool may_be_name(const std::string& name) { return name.find('\0') == std::string::npos; }

/// The arguments of a call in shared memory.
struct Portion {
  Portion(simt::MemorySpace& shared, const std::string& directory,
          const std::vector<NewFile>& files, size_t first, size_t end)
      : path(shared, directory.size() + 1),
        texts(shared, text_bytes(files, first, end)),
        names(shared, end - first),
        offsets(shared, end - first),
        sizes(shared, end - first),
        errors(shared, end - first),
        buffer(shared, data_bytes(files, first, end) + 1) {
    std::memcpy(path.data(), directory.c_str(), directory.size() + 1);
    char* text = texts.data();
    uint64_t at = 0;
    for (size_t i = first; i < end; ++i) {
      const NewFile& file = files[i];
      names[i - first] = text;
      // One that no name can be becomes none, which is refused.
      if (may_be_name(file.name)) std::memcpy(text, file.name.c_str(), file.name.size() + 1);
      text += file.name.size() + 1;
      offsets[i - first] = at;
      sizes[i - first] = file.bytes;
      if (file.bytes != 0) std::memcpy(buffer.data() + at, file.data, file.bytes);
      at += simt::align_up(file.bytes, uint64_t{4});
    }
  }

  SharedArray<char> path;
  SharedArray<char> texts;
  SharedArray<const char*> names;
  SharedArray<uint64_t> offsets;
  SharedArray<uint64_t> sizes;
  SharedArray<int> errors;
  SharedArray<uint8_t> buffer;

 private:
  static size_t text_bytes(const std::vector<NewFile>& files, size_t first, size_t end) {
    size_t bytes = 0;
    for (size_t i = first; i < end; ++i) bytes += files[i].name.size() + 1;
    return bytes;
  }
  static uint64_t data_bytes(const std::vector<NewFile>& files, size_t first, size_t end) {
    uint64_t bytes = 0;
    for (size_t i = first; i < end; ++i) bytes += simt::align_up(files[i].bytes, uint64_t{4});
    return bytes;
  }
};

}  // namespace

Expected<std::vector<int>> create_files(VolumeState& volume, const std::string& path,
                                        const std::vector<NewFile>& files, uint32_t permissions) {
  std::vector<int> answers(files.size());
  if (path.find('\0') != std::string::npos) return make_error(ENOENT, path);
  if (path.size() >= vfs::kPathBytesMax) return make_error(ENAMETOOLONG, path);
  if (!volume.is_ours()) return volume.not_ours();
  if (!volume.is_up()) return make_error(ENODEV, path);
  for (const NewFile& file : files) {
    const std::string words = volume.refuses_buffer(file.data, file.bytes);
    if (!words.empty()) return make_error(EFAULT, file.name, words);
  }
  kernels::Grid grid = volume.backend().full_grid();
  grid.cooperative = true;
  try {
    for (size_t first = 0; first < files.size();) {
      const size_t end = portion_end(files, first);
      const Portion portion(volume.backend().shared_memory(), path, files, first, end);
      kernels::BatchParams job{};
      job.fs = volume.filesystem();
      job.step = kernels::BatchStep::kCreate;
      job.path = portion.path.data();
      job.names = portion.names.data();
      job.count = static_cast<uint32_t>(end - first);
      job.permissions = permissions;
      job.buffer = portion.buffer.data();
      job.offsets = portion.offsets.data();
      job.sizes = portion.sizes.data();
      job.errors = portion.errors.data();
      const bool ran = run_job(volume, kernels::bodies::kBatch, grid, job);
      const int64_t result = ran ? job.result : VolumeState::kNotRun;
      if (volume.has_failed()) return volume.explain(-EIO, path);
      if (result < 0 && first == 0) return volume.explain(result, path);
      for (size_t i = first; i < end; ++i) {
        const int error = !ran         ? -EIO
                          : result < 0 ? static_cast<int>(result)
                                       : portion.errors[i - first];
        answers[i] = may_be_name(files[i].name) ? -error : EINVAL;
      }
      first = end;
    }
  } catch (const std::bad_alloc&) {
    return volume.explain(-ENOMEM, path);
  }
  return answers;
}

}  // namespace gofs::host
