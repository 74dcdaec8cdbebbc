// SPDX-License-Identifier: Apache-2.0
#include "host/files_by_calls.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "host/messages.h"
#include "host/tree.h"

namespace gofs::host {

using request::Verb;

namespace {

/// 0, or a negative errno.
int64_t write_all(AnyVolume& volume, int descriptor, const NewFile& file) {
  for (uint64_t done = 0; done < file.bytes;) {
    const auto answer = volume.call({.verb = Verb::kPwrite,
                                     .descriptor = descriptor,
                                     .input = static_cast<const uint8_t*>(file.data) + done,
                                     .bytes = file.bytes - done,
                                     .offset = static_cast<int64_t>(done)});
    if (answer.result < 0) return answer.result;
    if (answer.result == 0) return -ENOSPC;
    done += static_cast<uint64_t>(answer.result);
  }
  return 0;
}

int64_t create_one(AnyVolume& volume, const std::string& directory, const NewFile& file,
                   uint32_t permissions) {
  if (file.name.empty() || file.name.find('/') != std::string::npos) return -EINVAL;
  const std::string path = joined_path(directory, file.name);
  const auto opened = volume.call({.verb = Verb::kOpen,
                                   .path = &path,
                                   .flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                   .mode = permissions});
  if (opened.result < 0) return opened.result;
  const auto descriptor = static_cast<int>(opened.result);
  const int64_t error = write_all(volume, descriptor, file);
  (void)volume.call({.verb = Verb::kClose, .descriptor = descriptor});
  // All of it or nothing.
  if (error < 0) (void)volume.call({.verb = Verb::kUnlink, .path = &path});
  return error;
}

}  // namespace

Expected<std::vector<int>> create_by_calls(AnyVolume& volume, const std::string& directory,
                                           const std::vector<NewFile>& files,
                                           uint32_t permissions) {
  for (const NewFile& file : files) {
    const std::string words = volume.refuses_buffer(file.data, file.bytes);
    if (!words.empty()) return make_error(EFAULT, file.name, words);
  }
  Stat stat{};
  const auto found = volume.call({.verb = Verb::kStat, .path = &directory}, stat);
  if (found.result < 0) return volume.explain(found.result, directory);
  if ((stat.mode & 0170000u) != 0040000u) return make_error(ENOTDIR, directory);
  std::vector<int> answers;
  for (const NewFile& file : files) {
    answers.push_back(static_cast<int>(-create_one(volume, directory, file, permissions)));
  }
  return answers;
}

int64_t hash_by_calls(AnyVolume& volume, int descriptor,
                      uint8_t (&digest)[kernels::kSha256DigestBytes],
                      const std::function<void(uint64_t bytes)>& progress) {
  constexpr uint64_t kPortionBytes = uint64_t{1} << 20;
  struct alignas(16) Block {
    uint8_t bytes[kernels::kSha256BlockBytes];
  };
  const auto portion = std::make_unique<Block[]>(kPortionBytes / sizeof(Block));
  uint8_t* const bytes = portion[0].bytes;
  kernels::Sha256 hash;
  uint64_t size = 0;
  uint64_t here = 0;  // bytes of the portion
  for (bool at_end = false; !at_end;) {
    const auto answer = volume.call({.verb = Verb::kPread,
                                     .descriptor = descriptor,
                                     .buffer = bytes + here,
                                     .bytes = kPortionBytes - here,
                                     .offset = static_cast<int64_t>(size)});
    if (answer.result < 0) return answer.result;
    at_end = answer.result == 0;
    size += static_cast<uint64_t>(answer.result);
    here += static_cast<uint64_t>(answer.result);
    if (here != kPortionBytes && !at_end) continue;
    const uint64_t whole = here / sizeof(Block);
    hash.blocks(bytes, whole);
    progress(here);
    here %= sizeof(Block);
    if (at_end) {
      hash.finish(bytes + whole * sizeof(Block), static_cast<uint32_t>(here), size, digest);
    }
  }
  return 0;
}

}  // namespace gofs::host
