// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "f2fs/writer_layout.h"
#include "nvme/layout.h"
#include "ssd/virtual_ssd.h"
#include "testing/teams.hpp"
#include "vfs/layout.h"
#include "work/batch.h"
#include "work/call.h"
#include "work/clean.h"
#include "work/mount.h"

namespace gofs::judges {

namespace {

/// Of the log: most commands write a block or more.
constexpr uint64_t kBytesPerCommand = 2048;

/// The lanes of one warp, on the caller's thread.
template <typename Work>
void run_warp(uint32_t width, const Work& work) {
  if (width == 1) {
    work(simt::Warp());
  } else {
    testing::run_teams(1, width, [&](const simt::Warp& warp, uint32_t) { work(warp); });
  }
}

ssd::VirtualSsdConfig ssd_config(const SessionOptions& options) {
  ssd::VirtualSsdConfig config;
  config.queue_entries_max = 256;
  config.queue_pairs_max = 4;
  config.fault_capacity = options.faults ? 1 : 0;
  if (options.log_bytes != 0) {
    config.logged_commands = static_cast<uint32_t>(options.log_bytes / kBytesPerCommand);
    config.logged_bytes = options.log_bytes;
  }
  return config;
}

nvme::DeviceOptions device_options() {
  nvme::DeviceOptions options;
  options.io_queues = 2;
  options.queue_depth = 64;
  options.admin_depth = 16;
  // A machine that has other things to do.
  options.command_timeout_ns = options.admin_timeout_ns = 60'000'000'000;
  return options;
}

vfs::FilesystemOptions filesystem_options(const SessionOptions& options) {
  vfs::FilesystemOptions tables;
  tables.cache_pages = options.cache_pages;
  tables.pool_pages = 128;
  tables.descriptors = options.descriptors;
  tables.operations = 64;
  tables.dentry_entries = 256;
  tables.path_entries = 64;
  tables.batch_files = 512;
  tables.map_bytes = 64 * 4096;
  return tables;
}

}  // namespace

/// In the order in which they stand on each other.
struct Session::Parts {
  Parts(uint8_t* image, uint64_t bytes, const SessionOptions& options)
      : controller(
            ssd::create_virtual_controller(memory, ssd_config(options), media(image, bytes))),
        device(nvme::create_device(memory, controller, device_options())),
        tables(
            std::make_unique<vfs::FilesystemMemory>(memory, device, filesystem_options(options))) {}
  ~Parts() {
    tables.reset();
    nvme::destroy_device(memory, device, device_options().io_queues);
    ssd::destroy_virtual_controller(memory, controller);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  static ssd::Media media(uint8_t* image, uint64_t bytes) {
    ssd::Media media;
    media.base = image;
    media.bytes = bytes;
    return media;
  }
  vfs::Filesystem& fs() { return *tables->filesystem(); }

  simt::HostMemorySpace memory;
  const ssd::ControllerRef controller;
  nvme::Device* const device;
  std::unique_ptr<vfs::FilesystemMemory> tables;
  std::unique_ptr<f2fs::WriterMemory> writer;
};

Session::Session(uint8_t* image, uint64_t bytes, const SessionOptions& options)
    : options_(options), parts_(std::make_unique<Parts>(image, bytes, options)) {
  vfs::Filesystem& fs = parts_->fs();
  work::MountParams mounting{};
  mounting.fs = &fs;
  run_warp(options.width, [&](const simt::Warp& warp) { work::mount_body(warp, 0, 1, mounting); });
  up_ = true;
  mount_error_ = mounting.volume.error;
  if (mounting.device.step != nvme::BringUpStep::kDone) mount_error_ = -EIO;
  if (mount_error_ != 0) return;
  if (!options.writable) return;
  parts_->writer = std::make_unique<f2fs::WriterMemory>(parts_->memory, fs.volume.geometry);
  work::BeginWritingParams beginning{};
  beginning.fs = &fs;
  beginning.writer = parts_->writer->writer();
  run_warp(options.width,
           [&](const simt::Warp& warp) { work::begin_writing_body(warp, 0, 1, beginning); });
  begun_ = beginning.result;
  const int64_t realtime_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  fs.realtime_offset_ns = realtime_ns - static_cast<int64_t>(beginning.now_ns);
}

Session::~Session() { (void)unmount(); }

int Session::unmount() {
  if (!up_) return 0;
  up_ = false;
  work::UnmountParams leaving{};
  leaving.fs = &parts_->fs();
  run_warp(options_.width,
           [&](const simt::Warp& warp) { work::unmount_body(warp, 0, 1, leaving); });
  return leaving.written != 0 ? leaving.written : leaving.result;
}

uint32_t Session::findings() const {
  return f2fs::count_findings(*parts_->fs().volume.corruptions);
}

namespace {

/// A call about `path`, if there is one, and never about what a link at its end leads to.
work::CallParams about(work::CallKind kind, const std::string* path = nullptr) {
  work::CallParams params{};
  params.kind = kind;
  params.path = path == nullptr ? nullptr : path->c_str();
  params.keep_link = true;
  return params;
}

work::CallParams about(work::CallKind kind, int fd) {
  work::CallParams params = about(kind);
  params.descriptor = fd;
  return params;
}

/// Bytes that are only read.
void give(work::CallParams& params, std::string_view bytes) {
  params.buffer = const_cast<char*>(bytes.data());
  params.bytes = bytes.size();
}

}  // namespace

/// The body that serves host programs.
int64_t Session::perform(work::CallParams& params) {
  params.fs = &parts_->fs();
  run_warp(options_.width, [&](const simt::Warp& warp) { work::call_body(warp, 0, 1, params); });
  return params.result;
}

int Session::answer(work::CallParams params) { return static_cast<int>(perform(params)); }

int Session::open(const std::string& path, uint32_t flags, uint32_t mode) {
  work::CallParams params = about(work::CallKind::kOpen, &path);
  params.flags = flags;
  params.mode = mode;
  return answer(params);
}

int Session::close(int fd) { return answer(about(work::CallKind::kClose, fd)); }

int64_t Session::pread(int fd, void* buffer, uint64_t bytes, uint64_t offset) {
  work::CallParams params = about(work::CallKind::kPread, fd);
  params.buffer = buffer;
  params.bytes = bytes;
  params.offset = static_cast<int64_t>(offset);
  return perform(params);
}

int64_t Session::pwrite(int fd, std::string_view bytes, uint64_t offset) {
  work::CallParams params = about(work::CallKind::kPwrite, fd);
  give(params, bytes);
  params.offset = static_cast<int64_t>(offset);
  return perform(params);
}

int64_t Session::write(int fd, std::string_view bytes) {
  work::CallParams params = about(work::CallKind::kWrite, fd);
  give(params, bytes);
  return perform(params);
}

int64_t Session::lseek(int fd, int64_t offset, int whence) {
  work::CallParams params = about(work::CallKind::kLseek, fd);
  params.offset = offset;
  params.flags = static_cast<uint32_t>(whence);
  return perform(params);
}

int Session::ftruncate(int fd, uint64_t size) {
  work::CallParams params = about(work::CallKind::kFtruncate, fd);
  params.bytes = size;
  return answer(params);
}

int Session::fallocate(int fd, uint32_t mode, uint64_t offset, uint64_t bytes) {
  work::CallParams params = about(work::CallKind::kFallocate, fd);
  params.flags = mode;
  params.offset = static_cast<int64_t>(offset);
  params.bytes = bytes;
  return answer(params);
}

int Session::fsync(int fd) { return answer(about(work::CallKind::kFsync, fd)); }

int Session::truncate(const std::string& path, uint64_t size) {
  work::CallParams params = about(work::CallKind::kTruncate, &path);
  params.bytes = size;
  return answer(params);
}

int Session::mkdir(const std::string& path, uint32_t mode) {
  work::CallParams params = about(work::CallKind::kMkdir, &path);
  params.mode = mode;
  return answer(params);
}

int Session::mknod(const std::string& path, uint32_t mode, uint32_t major, uint32_t minor) {
  work::CallParams params = about(work::CallKind::kMknod, &path);
  params.mode = mode;
  params.device = {major, minor};
  return answer(params);
}

int Session::symlink(const std::string& target, const std::string& path) {
  work::CallParams params = about(work::CallKind::kSymlink, &path);
  params.other = target.c_str();
  return answer(params);
}

int Session::link(const std::string& existing, const std::string& path) {
  work::CallParams params = about(work::CallKind::kLink, &path);
  params.other = existing.c_str();
  return answer(params);
}

int Session::unlink(const std::string& path) {
  return answer(about(work::CallKind::kUnlink, &path));
}

int Session::rmdir(const std::string& path) { return answer(about(work::CallKind::kRmdir, &path)); }

int Session::rename(const std::string& from, const std::string& to, uint32_t flags) {
  work::CallParams params = about(work::CallKind::kRename, &to);
  params.other = from.c_str();
  params.flags = flags;
  return answer(params);
}

int Session::chmod(const std::string& path, uint32_t mode) {
  work::CallParams params = about(work::CallKind::kChmod, &path);
  params.mode = mode;
  return answer(params);
}

int Session::chown(const std::string& path, uint32_t uid, uint32_t gid) {
  work::CallParams params = about(work::CallKind::kChown, &path);
  params.uid = uid;
  params.gid = gid;
  return answer(params);
}

int Session::utimens(const std::string& path, const f2fs::TimeStamp& accessed,
                     const f2fs::TimeStamp& modified) {
  work::CallParams params = about(work::CallKind::kUtimens, &path);
  params.accessed = accessed;
  params.modified = modified;
  return answer(params);
}

int Session::setxattr(const std::string& path, const std::string& name, const std::string& value,
                      uint32_t flags) {
  work::CallParams params = about(work::CallKind::kSetxattr, &path);
  params.name = name.c_str();
  give(params, value);
  params.flags = flags;
  return answer(params);
}

int Session::removexattr(const std::string& path, const std::string& name) {
  work::CallParams params = about(work::CallKind::kRemovexattr, &path);
  params.name = name.c_str();
  return answer(params);
}

namespace {

/// Names and contents as batches take them.
struct BatchArrays {
  BatchArrays(const std::vector<std::string>& names_given, const std::vector<std::string>& contents)
      : errors(names_given.size()) {
    for (const std::string& name : names_given) names.push_back(name.c_str());
    for (const std::string& content : contents) {
      offsets.push_back(buffer.size());
      sizes.push_back(content.size());
      buffer.insert(buffer.end(), content.begin(), content.end());
      buffer.resize(simt::align_up(buffer.size(), size_t{4}));
    }
    buffer.push_back(0);
  }
  void give(work::BatchParams& params) {
    params.names = names.data();
    params.count = static_cast<uint32_t>(names.size());
    params.buffer = buffer.data();
    params.offsets = offsets.data();
    params.sizes = sizes.data();
    params.errors = errors.data();
  }

  std::vector<const char*> names;
  std::vector<uint8_t> buffer;
  std::vector<uint64_t> offsets;
  std::vector<uint64_t> sizes;
  std::vector<int> errors;
};

}  // namespace

int Session::batch_step(work::BatchParams& params) {
  params.fs = &parts_->fs();
  run_warp(options_.width, [&](const simt::Warp& warp) { work::batch_body(warp, 0, 1, params); });
  return static_cast<int>(params.result);
}

int Session::batch_create(const std::string& directory, const std::vector<std::string>& names,
                          const std::vector<std::string>& contents) {
  BatchArrays arrays(names, contents);
  work::BatchParams params{};
  params.step = work::BatchStep::kCreate;
  params.path = directory.c_str();
  params.permissions = 0644;
  arrays.give(params);
  const int error = batch_step(params);
  if (error < 0) return error;
  for (const int one : arrays.errors) {
    if (one < 0) return one;
  }
  return 0;
}

int Session::batch_write(const std::string& directory, const std::vector<std::string>& names,
                         const std::vector<std::string>& contents) {
  BatchArrays arrays(names, contents);
  work::BatchParams params{};
  params.step = work::BatchStep::kBegin;
  params.path = directory.c_str();
  arrays.give(params);
  const int bd = batch_step(params);
  if (bd < 0) return bd;
  params.descriptor = bd;
  for (const work::BatchStep step :
       {work::BatchStep::kFind, work::BatchStep::kLoad, work::BatchStep::kWrite}) {
    params.step = step;
    params.result = 0;
    batch_step(params);
  }
  uint64_t wanted = 0;
  for (const std::string& content : contents) wanted += content.size();
  const int error = params.bytes == wanted ? 0 : -EIO;
  params.step = work::BatchStep::kEnd;
  const int ended = batch_step(params);
  return error < 0 ? error : ended;
}

int Session::collect_garbage() {
  work::CleanParams clean{};
  clean.fs = &parts_->fs();
  const auto run = [&] {
    run_warp(options_.width, [&](const simt::Warp& warp) { work::clean_body(warp, 0, 1, clean); });
  };
  run();
  for (uint32_t round = 0; round < parts_->fs().volume.geometry.main_segments; ++round) {
    clean = {};
    clean.fs = &parts_->fs();
    clean.step = work::CleanStep::kRound;
    clean.victims = {f2fs::VictimPolicy::kGreedy, vfs::kWorthCleaning};
    clean.segments_max = 4;
    run();
    if (clean.error < 0) return clean.error;
    const int error = sync();
    if (error < 0 || clean.segments == 0) return error;
  }
  return 0;
}

int Session::sync() { return answer(about(work::CallKind::kSync)); }

int Session::stat(const std::string& path, vfs::Stat& out) {
  work::CallParams params = about(work::CallKind::kStat, &path);
  const auto error = static_cast<int>(perform(params));
  if (error == 0) out = params.stat;
  return error;
}

int Session::readlink(const std::string& path, std::string& target) {
  target.assign(vfs::kPathBytesMax, '\0');
  work::CallParams params = about(work::CallKind::kReadlink, &path);
  params.buffer = target.data();
  params.bytes = target.size();
  const int64_t bytes = perform(params);
  target.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
  return bytes < 0 ? static_cast<int>(bytes) : 0;
}

int Session::list(const std::string& path, Names& names) {
  names.clear();
  const int fd = open(path, vfs::kOpenReadOnly | vfs::kOpenDirectory);
  if (fd < 0) return fd;
  std::vector<f2fs::NamedEntry> entries(256);
  int64_t count = 0;
  bool twice = false;
  do {
    work::CallParams params = about(work::CallKind::kReaddir, fd);
    params.buffer = entries.data();
    params.bytes = entries.size() * sizeof(f2fs::NamedEntry);
    count = perform(params);
    for (int64_t i = 0; i < count; ++i) {
      const f2fs::NamedEntry& entry = entries[static_cast<size_t>(i)];
      const auto inserted = names.emplace(std::string(entry.name, entry.name_length),
                                          std::pair(entry.ino, entry.type));
      twice = twice || !inserted.second;
    }
  } while (count > 0);
  (void)close(fd);
  if (count < 0) return static_cast<int>(count);
  return twice ? -EEXIST : 0;
}

int Session::xattrs(const std::string& path, Xattrs& values) {
  values.clear();
  work::CallParams params = about(work::CallKind::kListxattr, &path);
  int64_t bytes = perform(params);  // how many there are
  if (bytes <= 0) return static_cast<int>(bytes);
  std::string list(vfs::kXattrListBytesMax, '\0');
  params.buffer = list.data();
  params.bytes = list.size();
  bytes = perform(params);
  if (bytes < 0) return static_cast<int>(bytes);
  std::string value(vfs::kXattrListBytesMax, '\0');
  for (size_t at = 0; at < static_cast<size_t>(bytes);) {
    const std::string name = list.c_str() + at;
    at += name.size() + 1;
    params = about(work::CallKind::kGetxattr, &path);
    params.name = name.c_str();
    params.buffer = value.data();
    params.bytes = value.size();
    const int64_t got = perform(params);
    if (got < 0) return static_cast<int>(got);
    values[name] = value.substr(0, static_cast<size_t>(got));
  }
  return 0;
}

vfs::FilesystemStat Session::statfs() { return vfs::statfs(parts_->fs()); }

void Session::plan_fault(const ssd::FaultRule& rule) {
  ssd::clear_faults(parts_->memory, parts_->controller);
  ssd::add_fault(parts_->memory, parts_->controller, rule);
}

uint64_t Session::fault_matches() {
  return parts_->controller.controller->faults->entries[0].matches;
}

uint32_t Session::moment() {
  ssd::WriteLog* const log = parts_->controller.controller->write_log;
  if (log == nullptr) return 0;
  ssd::end_posted(*log);
  return simt::load_relaxed(log->events);
}

ssd::WriteTrace Session::trace() { return ssd::read_trace(parts_->memory, parts_->controller); }

}  // namespace gofs::judges
