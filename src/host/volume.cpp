// SPDX-License-Identifier: Apache-2.0
#include "gofs/volume.hpp"

#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "host/messages.h"
#include "host/serve/attached_volume.h"
#include "host/volume_state.h"

namespace gofs {

using host::AnyVolume;
using host::CallAnswer;
using host::CallRequest;
using host::Profiled;
using request::Verb;

namespace {

/// Entries that one readdir call fetches; at least a GPU's warp width.
constexpr size_t kEntriesAtOnce = 1024;

// What a descriptor is called is looked up for messages alone: a call that has done its work does
// not fail any more.

Expected<uint64_t> number_or_error(AnyVolume& state, const CallAnswer& answer, int fd) {
  if (answer.result < 0) return state.explain(answer.result, state.descriptor_name(fd));
  return static_cast<uint64_t>(answer.result);
}

Expected<Stat> stat_or_error(AnyVolume& state, const CallRequest& request,
                             const std::string& subject) {
  Stat stat{};
  const auto answer = state.call(request, stat);
  if (answer.result < 0) return state.explain(answer.result, subject);
  return stat;
}

Expected<void> nothing_or_error(AnyVolume& state, const CallAnswer& answer,
                                const std::string& subject) {
  if (answer.result < 0) return state.explain(answer.result, subject);
  return {};
}

/// Why a call about a descriptor cannot use its buffer, or what is wrong with the descriptor, which
/// comes first, as with Linux. `verb`: kPread, kPwrite or kFstat.
Error refusal(AnyVolume& state, Verb verb, int fd, const std::string& words) {
  Stat unused{};
  CallRequest request{.verb = verb, .descriptor = fd};
  const auto answer = verb == Verb::kFstat ? state.call(request, unused) : state.call(request);
  if (answer.result < 0) return state.explain(answer.result, state.descriptor_name(fd));
  return host::make_error(EFAULT, state.descriptor_name(fd), words);
}

/// The answers of calls that do not depend on each other.
std::vector<CallAnswer> all_answers(AnyVolume& state, const std::vector<CallRequest>& requests) {
  std::vector<CallAnswer> answers(requests.size());
  state.call_all(requests, answers);
  return answers;
}

/// Calls about extended attributes; the subject of errors is the path or what `request` is about.
Expected<std::string> xattr_or_error(AnyVolume& state, CallRequest request,
                                     const std::string& subject) {
  std::string bytes(kXattrListBytesMax, '\0');
  request.buffer = bytes.data();
  request.bytes = bytes.size();
  const auto answer = state.call(request);
  if (answer.result < 0) return state.explain(answer.result, subject);
  bytes.resize(static_cast<size_t>(answer.result));
  return bytes;
}

Expected<std::vector<std::string>> names_or_error(AnyVolume& state, const CallRequest& request,
                                                  const std::string& subject) {
  const auto list = xattr_or_error(state, request, subject);
  if (!list) return list.error();
  std::vector<std::string> names;
  for (size_t at = 0; at < list->size(); at += names.back().size() + 1) {
    names.emplace_back(list->c_str() + at);
  }
  return names;
}

}  // namespace

Volume::Volume(std::unique_ptr<AnyVolume> state) : state_(std::move(state)) {}
Volume::Volume(Volume&&) noexcept = default;
Volume& Volume::operator=(Volume&&) noexcept = default;
Volume::~Volume() = default;

Expected<Volume> Volume::mount(const std::string& spec, const MountOptions& options) {
  const Profiled profiled("mount", 0);
  auto state = host::VolumeState::mount(spec, options, host::MountKind::kVolume);
  if (!state) return state.error();
  return Volume(std::move(*state));
}

Expected<Volume> Volume::attach(const std::string& path, const AttachOptions& options) {
  const Profiled profiled("attach", 0);
  auto state = host::AttachedVolume::attach(path, options);
  if (!state) return state.error();
  return Volume(std::move(*state));
}

VolumeHandle Volume::device() const { return state_->device(); }

Expected<int> Volume::open(const std::string& path, uint32_t flags, uint32_t mode) {
  const auto answer =
      state_->call({.verb = Verb::kOpen, .path = &path, .flags = flags, .mode = mode});
  if (answer.result < 0) return state_->explain(answer.result, path);
  const int fd = static_cast<int>(answer.result);
  state_->name_descriptor(fd, path);
  return fd;
}

Expected<int> Volume::open_inode(const Identity& file, uint32_t flags) {
  const std::string subject = "inode " + std::to_string(file.ino);
  const auto answer = state_->call(
      {.verb = Verb::kOpenIdentity, .flags = flags, .input = &file, .bytes = sizeof(file)});
  if (answer.result == -ESTALE) {
    return host::make_error(ESTALE, subject, "the file has been removed, or is another volume's");
  }
  if (answer.result < 0) return state_->explain(answer.result, subject, file.ino);
  const int fd = static_cast<int>(answer.result);
  state_->name_descriptor(fd, subject);
  return fd;
}

Expected<void> Volume::close(int fd) {
  const auto answer = state_->call({.verb = Verb::kClose, .descriptor = fd});
  if (answer.result < 0) return state_->explain(answer.result, state_->descriptor_name(fd));
  return {};
}

Expected<uint64_t> Volume::pread(int fd, void* buffer, uint64_t bytes, uint64_t offset) {
  if (offset > kOffsetMax || bytes > kOffsetMax) {
    return host::make_error(EINVAL, state_->descriptor_name(fd));
  }
  const std::string words = state_->refuses_buffer(buffer, bytes);
  if (!words.empty()) return refusal(*state_, Verb::kPread, fd, words);
  const int64_t result = state_->read_range({fd, buffer, bytes, offset});
  if (result < 0) return state_->explain(result, state_->descriptor_name(fd));
  return static_cast<uint64_t>(result);
}

Expected<uint64_t> Volume::read(int fd, void* buffer, uint64_t bytes) {
  if (bytes > kOffsetMax) return host::make_error(EINVAL, state_->descriptor_name(fd));
  const std::string words = state_->refuses_buffer(buffer, bytes);
  if (!words.empty()) return refusal(*state_, Verb::kPread, fd, words);
  const auto answer = state_->call(
      {.verb = Verb::kAdvance, .descriptor = fd, .offset = static_cast<int64_t>(bytes)});
  if (answer.result < 0) return state_->explain(answer.result, state_->descriptor_name(fd));
  return pread(fd, buffer, bytes, static_cast<uint64_t>(answer.result));
}

Expected<Stat> Volume::stat(const std::string& path) {
  return stat_or_error(*state_, {.verb = Verb::kStat, .path = &path}, path);
}

Expected<Stat> Volume::lstat(const std::string& path) {
  return stat_or_error(*state_, {.verb = Verb::kStat, .path = &path, .keep_link = true}, path);
}

Expected<Stat> Volume::fstat(int fd) {
  return stat_or_error(*state_, {.verb = Verb::kFstat, .descriptor = fd},
                       state_->descriptor_name(fd));
}

Expected<Identity> Volume::identity(int fd) {
  Identity identity{};
  const auto answer = state_->call({.verb = Verb::kIdentity, .descriptor = fd}, identity);
  if (answer.result < 0) return state_->explain(answer.result, state_->descriptor_name(fd));
  return identity;
}

std::vector<Expected<Stat>> Volume::stat_many(const std::vector<std::string>& paths) {
  std::vector<Stat> stats(paths.size());
  std::vector<CallRequest> requests;
  requests.reserve(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    requests.push_back(
        {.verb = Verb::kStat, .path = &paths[i], .buffer = &stats[i], .bytes = sizeof(Stat)});
  }
  const std::vector<CallAnswer> answers = all_answers(*state_, requests);
  std::vector<Expected<Stat>> results;
  results.reserve(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    if (answers[i].result < 0) {
      results.emplace_back(state_->explain(answers[i].result, paths[i]));
    } else {
      results.emplace_back(stats[i]);
    }
  }
  return results;
}

std::vector<Expected<int>> Volume::open_many(const std::vector<std::string>& paths, uint32_t flags,
                                             uint32_t mode) {
  std::vector<CallRequest> requests;
  requests.reserve(paths.size());
  for (const std::string& path : paths) {
    requests.push_back({.verb = Verb::kOpen, .path = &path, .flags = flags, .mode = mode});
  }
  const std::vector<CallAnswer> answers = all_answers(*state_, requests);
  std::vector<Expected<int>> results;
  results.reserve(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto fd = static_cast<int>(answers[i].result);
    if (fd < 0) {
      results.emplace_back(state_->explain(answers[i].result, paths[i]));
    } else {
      state_->name_descriptor(fd, paths[i]);
      results.emplace_back(fd);
    }
  }
  return results;
}

std::vector<Expected<void>> Volume::close_many(const std::vector<int>& fds) {
  std::vector<CallRequest> requests;
  requests.reserve(fds.size());
  for (const int fd : fds) requests.push_back({.verb = Verb::kClose, .descriptor = fd});
  const std::vector<CallAnswer> answers = all_answers(*state_, requests);
  std::vector<Expected<void>> results;
  results.reserve(fds.size());
  for (size_t i = 0; i < fds.size(); ++i) {
    const bool failed = answers[i].result < 0;
    const std::string subject = failed ? state_->descriptor_name(fds[i]) : std::string();
    results.push_back(nothing_or_error(*state_, answers[i], subject));
  }
  return results;
}

Expected<void> Volume::access(const std::string& path, int mode) {
  static_assert(R_OK == kMayRead && W_OK == kMayWrite && X_OK == kMayExecute);
  const auto answer =
      state_->call({.verb = Verb::kAccess, .path = &path, .flags = static_cast<uint32_t>(mode)});
  return nothing_or_error(*state_, answer, path);
}

Expected<std::string> Volume::readlink(const std::string& path) {
  std::string target(kPathBytesMax, '\0');
  const auto answer = state_->call(
      {.verb = Verb::kReadlink, .path = &path, .buffer = target.data(), .bytes = target.size()});
  if (answer.result < 0) return state_->explain(answer.result, path);
  target.resize(static_cast<size_t>(answer.result));
  return target;
}

Expected<std::string> Volume::getxattr(const std::string& path, const std::string& name) {
  return xattr_or_error(*state_, {.verb = Verb::kGetxattr, .path = &path, .name = &name}, path);
}

Expected<std::string> Volume::lgetxattr(const std::string& path, const std::string& name) {
  return xattr_or_error(
      *state_, {.verb = Verb::kGetxattr, .path = &path, .keep_link = true, .name = &name}, path);
}

Expected<std::string> Volume::fgetxattr(int fd, const std::string& name) {
  return xattr_or_error(*state_, {.verb = Verb::kFgetxattr, .name = &name, .descriptor = fd},
                        state_->descriptor_name(fd));
}

Expected<std::vector<std::string>> Volume::listxattr(const std::string& path) {
  return names_or_error(*state_, {.verb = Verb::kListxattr, .path = &path}, path);
}

Expected<std::vector<std::string>> Volume::llistxattr(const std::string& path) {
  return names_or_error(*state_, {.verb = Verb::kListxattr, .path = &path, .keep_link = true},
                        path);
}

Expected<std::vector<std::string>> Volume::flistxattr(int fd) {
  return names_or_error(*state_, {.verb = Verb::kFlistxattr, .descriptor = fd},
                        state_->descriptor_name(fd));
}

Expected<int> Volume::opendir(const std::string& path) {
  return open(path, vfs::kOpenReadOnly | vfs::kOpenDirectory);
}

Expected<std::vector<DirectoryEntry>> Volume::readdir(int fd) {
  std::vector<NamedEntry> raw(kEntriesAtOnce);
  const auto count = readdir(fd, raw.data(), raw.size());
  if (!count) return count.error();
  std::vector<DirectoryEntry> entries;
  entries.reserve(*count);
  for (uint64_t i = 0; i < *count; ++i) {
    const NamedEntry& entry = raw[i];
    entries.push_back({entry.ino, entry.type, std::string(entry.name, entry.name_length)});
  }
  return entries;
}

Expected<uint64_t> Volume::readdir(int fd, NamedEntry* entries, uint64_t count) {
  const uint64_t bytes = std::min<uint64_t>(count, kEntriesAtOnce) * sizeof(NamedEntry);
  const std::string words = state_->refuses_buffer(entries, bytes);
  if (!words.empty()) return refusal(*state_, Verb::kFstat, fd, words);
  const auto answer =
      state_->call({.verb = Verb::kReaddir, .descriptor = fd, .buffer = entries, .bytes = bytes});
  return number_or_error(*state_, answer, fd);
}

Expected<uint64_t> Volume::lseek(int fd, int64_t offset, int whence) {
  static_assert(SEEK_SET == kSeekSet && SEEK_CUR == kSeekCurrent && SEEK_END == kSeekEnd &&
                SEEK_DATA == kSeekData && SEEK_HOLE == kSeekHole);
  const auto answer = state_->call({.verb = Verb::kLseek,
                                    .flags = static_cast<uint32_t>(whence),
                                    .descriptor = fd,
                                    .offset = offset});
  return number_or_error(*state_, answer, fd);
}

Expected<FilesystemStat> Volume::statfs() {
  FilesystemStat stat{};
  const auto answer = state_->call({.verb = Verb::kStatfs}, stat);
  if (answer.result < 0) return state_->explain(answer.result, state_->name());
  return stat;
}

namespace {

/// A change of what `path` names, or, where that is null, of what a descriptor has open.
Expected<void> change(AnyVolume& state, CallRequest request, const std::string* path) {
  request.path = path;
  const auto answer = state.call(request);
  if (answer.result >= 0) return {};
  return state.explain(answer.result,
                       path != nullptr ? *path : state.descriptor_name(request.descriptor));
}

/// A change that makes `path` of `request.other`, which is a path too.
Expected<void> change_between(AnyVolume& state, CallRequest request, const std::string& path) {
  request.path = &path;
  const auto answer = state.call(request);
  if (answer.result >= 0) return {};
  return state.explain(answer.result, *request.other, path);
}

/// Writes in portions, since a call may take less than all of it, as in pread(). `offset` means
/// nothing to kWrite, whose position moves past what was asked for: after a short one it ends.
Expected<uint64_t> write_all(AnyVolume& state, Verb verb, int fd, const void* buffer,
                             uint64_t bytes, uint64_t offset) {
  const std::string words = state.refuses_buffer(buffer, bytes);
  if (!words.empty()) return refusal(state, Verb::kPwrite, fd, words);
  uint64_t done = 0;
  for (;;) {
    const auto answer = state.call({.verb = verb,
                                    .descriptor = fd,
                                    .input = static_cast<const uint8_t*>(buffer) + done,
                                    .bytes = bytes - done,
                                    .offset = static_cast<int64_t>(offset + done)});
    if (answer.result < 0) {
      if (done != 0) return done;
      return state.explain(answer.result, state.descriptor_name(fd));
    }
    done += static_cast<uint64_t>(answer.result);
    const bool is_short = static_cast<uint64_t>(answer.result) < answer.bytes;
    if (answer.result == 0 || done == bytes || (verb == Verb::kWrite && is_short)) return done;
  }
}

}  // namespace

Expected<uint64_t> Volume::pwrite(int fd, const void* buffer, uint64_t bytes, uint64_t offset) {
  if (offset > kOffsetMax || bytes > kOffsetMax) {
    return host::make_error(EINVAL, state_->descriptor_name(fd));
  }
  return write_all(*state_, Verb::kPwrite, fd, buffer, bytes, offset);
}

Expected<uint64_t> Volume::write(int fd, const void* buffer, uint64_t bytes) {
  if (bytes > kOffsetMax) return host::make_error(EINVAL, state_->descriptor_name(fd));
  return write_all(*state_, Verb::kWrite, fd, buffer, bytes, 0);
}

Expected<uint64_t> Volume::copy_file_range(int from, uint64_t from_offset, int to,
                                           uint64_t to_offset, uint64_t bytes) {
  const auto failed = [&](int64_t error) {
    return state_->explain(error, state_->descriptor_name(from), state_->descriptor_name(to));
  };
  if (std::max({from_offset, to_offset, bytes}) > kOffsetMax) return failed(-EINVAL);
  uint64_t done = 0;
  while (done < bytes) {
    const auto answer = state_->call({.verb = Verb::kCopyRange,
                                      .descriptor = from,
                                      .offset = static_cast<int64_t>(from_offset + done),
                                      .other_descriptor = to,
                                      .other_offset = static_cast<int64_t>(to_offset + done),
                                      .length = bytes - done});
    if (answer.result < 0 && done == 0) return failed(answer.result);
    if (answer.result <= 0) break;
    done += static_cast<uint64_t>(answer.result);
  }
  return done;
}

Expected<std::vector<int>> Volume::batch_create(const std::string& path,
                                                const std::vector<NewFile>& files, uint32_t mode) {
  return state_->create_files(path, files, mode);
}

Expected<void> Volume::mkdir(const std::string& path, uint32_t mode) {
  return change(*state_, {.verb = Verb::kMkdir, .mode = mode}, &path);
}

Expected<void> Volume::mknod(const std::string& path, uint32_t mode, uint32_t major,
                             uint32_t minor) {
  return change(*state_,
                {.verb = Verb::kMknod, .mode = mode, .device_major = major, .device_minor = minor},
                &path);
}

Expected<void> Volume::symlink(const std::string& target, const std::string& path) {
  // No target need be there, but it must be one: ENOENT alone would be taken for what `path` lacks.
  if (target.empty()) return host::make_error(ENOENT, path, "the link's target is empty");
  return change(*state_, {.verb = Verb::kSymlink, .other = &target}, &path);
}

Expected<void> Volume::link(const std::string& existing, const std::string& path) {
  return change_between(*state_, {.verb = Verb::kLink, .other = &existing}, path);
}

Expected<void> Volume::unlink(const std::string& path) {
  return change(*state_, {.verb = Verb::kUnlink}, &path);
}

Expected<void> Volume::rmdir(const std::string& path) {
  return change(*state_, {.verb = Verb::kRmdir}, &path);
}

Expected<void> Volume::rename(const std::string& from, const std::string& to, uint32_t flags) {
  return change_between(*state_, {.verb = Verb::kRename, .other = &from, .flags = flags}, to);
}

Expected<void> Volume::truncate(const std::string& path, uint64_t size) {
  return change(*state_, {.verb = Verb::kTruncate, .bytes = size}, &path);
}

Expected<void> Volume::ftruncate(int fd, uint64_t size) {
  return change(*state_, {.verb = Verb::kFtruncate, .descriptor = fd, .bytes = size}, nullptr);
}

Expected<void> Volume::fallocate(int fd, uint32_t mode, uint64_t offset, uint64_t bytes) {
  static_assert(FALLOC_FL_KEEP_SIZE == kFallocateKeepSize &&
                FALLOC_FL_PUNCH_HOLE == kFallocatePunchHole &&
                FALLOC_FL_ZERO_RANGE == kFallocateZeroRange);
  return change(*state_,
                {.verb = Verb::kFallocate,
                 .flags = mode,
                 .descriptor = fd,
                 .bytes = bytes,
                 .offset = static_cast<int64_t>(offset)},
                nullptr);
}

Expected<void> Volume::chmod(const std::string& path, uint32_t mode) {
  return change(*state_, {.verb = Verb::kChmod, .mode = mode}, &path);
}

Expected<void> Volume::fchmod(int fd, uint32_t mode) {
  return change(*state_, {.verb = Verb::kFchmod, .mode = mode, .descriptor = fd}, nullptr);
}

Expected<void> Volume::chown(const std::string& path, uint32_t uid, uint32_t gid) {
  return change(*state_, {.verb = Verb::kChown, .uid = uid, .gid = gid}, &path);
}

Expected<void> Volume::lchown(const std::string& path, uint32_t uid, uint32_t gid) {
  return change(*state_, {.verb = Verb::kChown, .keep_link = true, .uid = uid, .gid = gid}, &path);
}

Expected<void> Volume::fchown(int fd, uint32_t uid, uint32_t gid) {
  return change(*state_, {.verb = Verb::kFchown, .descriptor = fd, .uid = uid, .gid = gid},
                nullptr);
}

Expected<void> Volume::utimens(const std::string& path, const TimeStamp& accessed,
                               const TimeStamp& modified) {
  return change(*state_, {.verb = Verb::kUtimens, .accessed = accessed, .modified = modified},
                &path);
}

Expected<void> Volume::lutimens(const std::string& path, const TimeStamp& accessed,
                                const TimeStamp& modified) {
  return change(
      *state_,
      {.verb = Verb::kUtimens, .keep_link = true, .accessed = accessed, .modified = modified},
      &path);
}

Expected<void> Volume::futimens(int fd, const TimeStamp& accessed, const TimeStamp& modified) {
  return change(
      *state_,
      {.verb = Verb::kFutimens, .descriptor = fd, .accessed = accessed, .modified = modified},
      nullptr);
}

namespace {

CallRequest setting(Verb verb, const std::string& name, const std::string& value, uint32_t flags) {
  // More than any inode has room for is refused without a look at it.
  return {.verb = verb,
          .name = &name,
          .flags = flags,
          .input = value.data(),
          .bytes = std::min<uint64_t>(value.size(), kXattrValueBytesMax + 1)};
}

}  // namespace

Expected<void> Volume::setxattr(const std::string& path, const std::string& name,
                                const std::string& value, uint32_t flags) {
  return change(*state_, setting(Verb::kSetxattr, name, value, flags), &path);
}

Expected<void> Volume::lsetxattr(const std::string& path, const std::string& name,
                                 const std::string& value, uint32_t flags) {
  auto request = setting(Verb::kSetxattr, name, value, flags);
  request.keep_link = true;
  return change(*state_, request, &path);
}

Expected<void> Volume::fsetxattr(int fd, const std::string& name, const std::string& value,
                                 uint32_t flags) {
  auto request = setting(Verb::kFsetxattr, name, value, flags);
  request.descriptor = fd;
  return change(*state_, request, nullptr);
}

Expected<void> Volume::removexattr(const std::string& path, const std::string& name) {
  return change(*state_, {.verb = Verb::kRemovexattr, .name = &name}, &path);
}

Expected<void> Volume::lremovexattr(const std::string& path, const std::string& name) {
  return change(*state_, {.verb = Verb::kRemovexattr, .keep_link = true, .name = &name}, &path);
}

Expected<void> Volume::fremovexattr(int fd, const std::string& name) {
  return change(*state_, {.verb = Verb::kFremovexattr, .name = &name, .descriptor = fd}, nullptr);
}

CleaningReport Volume::cleaning_totals() const { return state_->cleaning_totals(); }

ClockReport Volume::clock() const { return state_->clock(); }

Expected<CleaningReport> Volume::collect_garbage(const CleaningOptions& options) {
  const Profiled profiled("collect garbage", 0);
  return state_->collect_garbage(options);
}

Expected<void> Volume::sync() {
  const Profiled profiled("sync", 0);
  return state_->sync();
}
Expected<void> Volume::fsync(int fd) {
  const Profiled profiled("fsync", 0);
  return state_->fsync(request::Verb::kFsync, fd);
}
Expected<void> Volume::fdatasync(int fd) {
  const Profiled profiled("fdatasync", 0);
  return state_->fsync(request::Verb::kFdatasync, fd);
}
Expected<void> Volume::unmount() {
  const Profiled profiled("unmount", 0);
  return state_->unmount();
}

VolumeInfo Volume::info() const { return state_->info(); }
Expected<MemoryReport> Volume::memory() { return state_->memory(); }
Expected<Statistics> Volume::statistics() {
  Statistics found{};
  const auto answer = state_->call({.verb = Verb::kStatistics}, found);
  if (answer.result < 0) return state_->explain(answer.result, state_->name());
  return found;
}
Error Volume::explain(int code, const std::string& path) { return state_->explain(-code, path); }

std::vector<std::string> Volume::warnings() { return state_->warnings(); }

Expected<BufferHandle> Volume::register_buffer(void* memory, uint64_t bytes) {
  return state_->register_buffer(memory, bytes);
}
Expected<void> Volume::unregister_buffer(BufferHandle buffer) {
  return state_->unregister_buffer(buffer);
}

}  // namespace gofs
