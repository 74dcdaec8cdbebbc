// SPDX-License-Identifier: Apache-2.0
#include "random_calls_judge.hpp"

#include <cerrno>
#include <cstdlib>
#include <random>
#include <set>
#include <vector>

#include "model.h"

namespace gofs::judges {

namespace {

using testing::RandomCall;
using testing::RandomKind;

std::string bytes_of(const RandomCall& call, uint64_t count) {
  std::string bytes(count, '\0');
  for (uint64_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<char>(testing::random_byte(call.value, i));
  }
  return bytes;
}

/// What the call answers, made on the model.
int64_t replay(Model& model, const RandomCall& call, const std::string& path,
               const std::string& other) {
  uint32_t id = 0;
  int error = 0;
  switch (call.kind) {
    case RandomKind::kWrite:
      error = model.open(path, vfs::kOpenWriteOnly | vfs::kOpenCreate, 0644, id);
      if (error < 0) return error;
      model.write(id, call.offset, bytes_of(call, call.bytes));
      return call.bytes;
    case RandomKind::kRead: {
      error = model.open(path, vfs::kOpenReadOnly, 0, id);
      if (error < 0) return error;
      if (model.at(id).is_directory()) return -EISDIR;
      const std::string got = model.at(id).content.read(call.offset, call.bytes);
      return testing::random_sum(reinterpret_cast<const uint8_t*>(got.data()), got.size());
    }
    case RandomKind::kTruncate:
      return model.truncate(path, call.offset);
    case RandomKind::kMkdir:
      return model.mkdir(path, 0755);
    case RandomKind::kRmdir:
      return model.rmdir(path);
    case RandomKind::kUnlink:
      return model.unlink(path);
    case RandomKind::kRename:
      return model.rename(path, other, call.value % 3);
    case RandomKind::kLink:
      return model.link(path, other);
    case RandomKind::kSymlink:
      return model.symlink(other, path);
    case RandomKind::kChmod:
      return model.chmod(path, call.value & 07777);
    case RandomKind::kSetxattr:
    case RandomKind::kRemovexattr: {
      char name[testing::kRandomPathBytes];
      testing::put_random_xattr(name, call.value);
      if (call.kind == RandomKind::kRemovexattr) return model.removexattr(path, name);
      return model.setxattr(path, name, bytes_of(call, call.bytes % testing::kRandomValueBytes),
                            call.value % 3);
    }
    case RandomKind::kStat:
      error = model.resolve(path, false, id);
      if (error < 0) return error;
      return model.at(id).is_regular() ? static_cast<int64_t>(model.at(id).content.size())
                                       : int64_t{model.at(id).mode};
    case RandomKind::kFsync:
      return model.open(path, vfs::kOpenReadOnly, 0, id);
    default:
      return 0;
  }
}

std::string read_file(Volume& volume, const std::string& path, uint64_t bytes) {
  std::string content(bytes, '\0');
  const auto fd = volume.open(path);
  if (!fd) return "open: " + fd.error().message;
  const auto got = volume.pread(*fd, content.data(), bytes, 0);
  (void)volume.close(*fd);
  return got ? content.substr(0, *got) : "pread: " + got.error().message;
}

std::set<std::string> names_of(Volume& volume, const std::string& path) {
  std::set<std::string> names;
  const auto fd = volume.opendir(path);
  if (!fd) return names;
  for (;;) {
    const auto entries = volume.readdir(*fd);
    if (!entries || entries->empty()) break;
    for (const auto& entry : *entries) names.insert(entry.name);
  }
  (void)volume.close(*fd);
  return names;
}

/// How `path` differs from an object of the model, or nothing.
std::string compare(Volume& volume, const std::string& path, const Object& object) {
  const auto stat = volume.lstat(path);
  if (!stat) return path + ": lstat: " + stat.error().message;
  if (stat->mode != object.mode || stat->links != object.links) {
    return path + ": mode " + std::to_string(stat->mode) + ", " + std::to_string(stat->links) +
           " links, not " + std::to_string(object.mode) + ", " + std::to_string(object.links);
  }
  if (object.is_symlink()) {
    const auto target = volume.readlink(path);
    return target && *target == object.target ? "" : path + ": another target";
  }
  if (object.is_regular()) {
    const uint64_t size = object.content.size();
    if (stat->size_bytes != size) return path + ": size " + std::to_string(stat->size_bytes);
    if (read_file(volume, path, size) != object.content.read(0, size)) return path + ": contents";
  }
  const auto names = volume.llistxattr(path);
  if (!names || names->size() != object.xattrs.size()) return path + ": extended attributes";
  for (const auto& [name, value] : object.xattrs) {
    const auto got = volume.lgetxattr(path, name);
    if (!got || *got != value) return path + ": " + name;
  }
  std::set<std::string> wanted;
  for (const auto& [name, id] : object.entries) wanted.insert(name);
  const bool lists = !object.is_directory() || names_of(volume, path) == wanted;
  return lists ? "" : path + ": other names";
}

std::string compare_tree(Volume& volume, const Model& model, const std::string& home) {
  std::vector<std::string> open{home};
  while (!open.empty()) {
    const std::string path = open.back();
    open.pop_back();
    uint32_t id = 0;
    model.resolve(path, false, id);
    const std::string problem = compare(volume, path, model.at(id));
    if (!problem.empty()) return problem;
    for (const auto& [name, child] : model.at(id).entries) open.push_back(path + "/" + name);
  }
  return {};
}

}  // namespace

testing::RandomCallsParams random_run(uint32_t calls) {
  const char* const seed = std::getenv("GOFS_SEED");
  testing::RandomCallsParams run{};
  run.seed = seed != nullptr ? std::strtoull(seed, nullptr, 0) : std::random_device()();
  run.calls = calls;
  return run;
}

std::string words_of(const testing::RandomCallsParams& run) {
  return "GOFS_SEED=" + std::to_string(run.seed);
}

RandomRunOnHost::RandomRunOnHost(uint32_t warps, uint32_t calls)
    : params(random_run(calls)), answers(size_t{warps} * calls), scratch(warps) {
  params.answers = answers.data();
  params.scratch = scratch.data();
}

std::string judge_random_calls(const testing::RandomCallsParams& run, uint32_t warps,
                               Volume& volume) {
  std::vector<uint32_t> made(testing::kRandomSharedNames);
  std::vector<bool> wanted(made.size());
  for (uint32_t warp = 0; warp < warps; ++warp) {
    char path[testing::kRandomPathBytes];
    char other[testing::kRandomPathBytes];
    testing::put_random_path(path, warp, 0);
    const std::string home = path;
    Model model;
    model.mkdir(home, 0777);
    testing::RandomCalls calls(run.seed, warp);
    for (uint32_t i = 0; i < run.calls; ++i) {
      const RandomCall call = calls.next();
      const int64_t answer = run.answers[uint64_t{warp} * run.calls + i];
      const uint32_t number = call.value % testing::kRandomSharedNames;
      if (call.kind == RandomKind::kShared && (answer == 0 || answer == -EEXIST)) {
        wanted[number] = true;
        made[number] += answer == 0 ? 1 : 0;
        continue;
      }
      testing::put_random_path(path, warp, call.name);
      testing::put_random_path(other, warp, call.other);
      const int64_t right = replay(model, call, path, other);
      if (answer != right) {
        return "warp " + std::to_string(warp) + ", call " + std::to_string(i) + ", kind " +
               std::to_string(static_cast<uint32_t>(call.kind)) + " of " + path + ": answer " +
               std::to_string(answer) + ", not " + std::to_string(right);
      }
    }
    const std::string problem = compare_tree(volume, model, home);
    if (!problem.empty()) return problem;
  }
  std::set<std::string> shared;
  for (uint32_t number = 0; number < made.size(); ++number) {
    if (made[number] != (wanted[number] ? 1u : 0u)) {
      return "shared name " + std::to_string(number) + " was made " + std::to_string(made[number]) +
             " times";
    }
    if (wanted[number]) shared.insert((number < 10 ? "s0" : "s") + std::to_string(number));
  }
  return names_of(volume, "/shared") == shared ? "" : "/shared has other names";
}

}  // namespace gofs::judges
