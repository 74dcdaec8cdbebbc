// SPDX-License-Identifier: Apache-2.0
#include "host/files_by_calls.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <string_view>

#include "host/messages.h"
#include "host/tree.h"

namespace gofs::host {

using request::Verb;

namespace {

/// Files that are made at the same time: so many are open then.
constexpr size_t kOpenAtOnce = 64;

/// A file on its way.
struct Making {
  const NewFile* file;
  std::string path;
  int64_t error = 0;  // why it is not made, as a negative errno
  int descriptor = -1;
  uint64_t written = 0;

  bool is_open() const { return descriptor >= 0; }
  bool wants_bytes() const { return is_open() && error == 0 && written < file->bytes; }
};

/// Makes the call `request_of(file)` for each file that `wanted`, all at once, and has `take` what
/// is answered. Whether there was any.
template <typename Wanted, typename RequestOf, typename Take>
bool call_for_all(AnyVolume& volume, std::vector<Making>& files, const Wanted& wanted,
                  const RequestOf& request_of, const Take& take) {
  std::vector<Making*> chosen;
  std::vector<CallRequest> requests;
  for (Making& one : files) {
    if (!wanted(one)) continue;
    chosen.push_back(&one);
    requests.push_back(request_of(one));
  }
  std::vector<CallAnswer> answers(requests.size());
  volume.call_all(requests, answers);
  for (size_t i = 0; i < chosen.size(); ++i) take(*chosen[i], answers[i].result);
  return !chosen.empty();
}

void open_all(AnyVolume& volume, std::vector<Making>& files, uint32_t permissions) {
  call_for_all(
      volume, files, [](const Making& one) { return one.error == 0; },
      [&](const Making& one) {
        return CallRequest{.verb = Verb::kOpen,
                           .path = &one.path,
                           .flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                           .mode = permissions};
      },
      [](Making& one, int64_t result) {
        if (result < 0) {
          one.error = result;
        } else {
          one.descriptor = static_cast<int>(result);
        }
      });
}

void write_all(AnyVolume& volume, std::vector<Making>& files) {
  const auto request_of = [](const Making& one) {
    return CallRequest{.verb = Verb::kPwrite,
                       .descriptor = one.descriptor,
                       .input = static_cast<const uint8_t*>(one.file->data) + one.written,
                       .bytes = one.file->bytes - one.written,
                       .offset = static_cast<int64_t>(one.written)};
  };
  const auto take = [](Making& one, int64_t result) {
    if (result > 0) {
      one.written += static_cast<uint64_t>(result);
    } else {
      one.error = result == 0 ? -ENOSPC : result;
    }
  };
  while (call_for_all(
      volume, files, [](const Making& one) { return one.wants_bytes(); }, request_of, take)) {
  }
}

void close_all(AnyVolume& volume, std::vector<Making>& files) {
  call_for_all(
      volume, files, [](const Making& one) { return one.is_open(); },
      [](const Making& one) {
        return CallRequest{.verb = Verb::kClose, .descriptor = one.descriptor};
      },
      [](Making&, int64_t) {});
  // All of a file or nothing.
  call_for_all(
      volume, files, [](const Making& one) { return one.is_open() && one.error != 0; },
      [](const Making& one) { return CallRequest{.verb = Verb::kUnlink, .path = &one.path}; },
      [](Making&, int64_t) {});
}

void make_all(AnyVolume& volume, std::vector<Making>& files, uint32_t permissions) {
  open_all(volume, files, permissions);
  write_all(volume, files);
  close_all(volume, files);
}

/// Those that found no descriptor, each alone.
void make_refused(AnyVolume& volume, std::vector<Making>& files, uint32_t permissions) {
  for (Making& one : files) {
    if (one.error != -ENFILE && one.error != -EMFILE) continue;
    std::vector<Making> alone = {{one.file, one.path}};
    make_all(volume, alone, permissions);
    one = alone.front();
  }
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
  for (auto file = files.begin(); file != files.end();) {
    std::vector<Making> some;
    // Of two that have one name the first is made.
    std::set<std::string_view> names;
    for (; file != files.end() && some.size() < kOpenAtOnce; ++file) {
      if (!names.insert(file->name).second) break;
      const bool named = !file->name.empty() && file->name.find('/') == std::string::npos;
      some.push_back({&*file, joined_path(directory, file->name), named ? 0 : -EINVAL});
    }
    make_all(volume, some, permissions);
    make_refused(volume, some, permissions);
    for (const Making& one : some) answers.push_back(static_cast<int>(-one.error));
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
