// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <mutex>

#include "f2fs/writer_layout.h"
#include "host/messages.h"
#include "kernels/call.h"
#include "kernels/clean.h"
#include "kernels/mount.h"
#include "mounted_kernels.h"
#include "nvme/array.h"
#include "nvme/layout.h"
#include "recording_engine.h"
#include "served_calls.h"
#include "served_kernels.h"
#include "simt/host_memory.h"
#include "ssd/hosted/faulty_engine_for_test.h"
#include "ssd/hosted/hosted_controller.h"
#include "ssd/virtual_ssd.h"
#include "vfs/layout.h"

namespace gofs::judges {

namespace {

/// Of the log: most commands write a block or more.
constexpr uint64_t kBytesPerCommand = 2048;

/// By one warp, on the caller's thread.
template <typename Work>
void run_warp(uint32_t width, const Work& work) {
  launch(1, width, [&](const simt::Warp& warp, uint32_t) { work(warp); });
}

/// `first`: the SSD that keeps the log for all, or nothing if this is to be it.
ssd::VirtualSsdConfig ssd_config(const SessionOptions& options, uint32_t disk,
                                 const ssd::ControllerRef* first) {
  ssd::VirtualSsdConfig config;
  config.lba_shift = options.lba_shift;
  config.queue_entries_max = 256;
  config.queue_pairs_max = 4;
  config.fault_capacity = options.faults ? 1 : 0;
  if (options.log_bytes != 0 && first != nullptr) {
    config.log_of = *first;
    config.log_disk = disk;
  } else if (options.log_bytes != 0) {
    config.logged_commands = static_cast<uint32_t>(options.log_bytes / kBytesPerCommand);
    config.logged_bytes = options.log_bytes;
  }
  return config;
}

nvme::DeviceOptions device_options(const SessionOptions& wanted) {
  nvme::DeviceOptions options;
  options.io_queues = 2;
  options.queue_depth = wanted.queue_depth;
  options.admin_depth = 16;
  options.command_timeout_ns = options.admin_timeout_ns = wanted.timeout_ns;
  options.assumes_atomic_blocks = wanted.hosted;  // as a mount does
  return options;
}

vfs::FilesystemOptions filesystem_options(const SessionOptions& options) {
  vfs::FilesystemOptions tables;
  tables.cache_pages = options.cache_pages;
  tables.pool_pages = options.spare_blocks;
  tables.descriptors = options.descriptors;
  tables.operations = 64;
  tables.dentry_entries = 256;
  tables.path_entries = 64;
  tables.batch_files = 512;
  tables.time_granularity_ns = options.time_granularity_ns;
  tables.map_bytes = 64 * 4096;
  return tables;
}

}  // namespace

/// In the order in which they stand on each other.
struct Session::Parts {
  Parts(Disks& disks, const SessionOptions& options) {
    nvme::Array array{};
    array.stripe = disks.stripe();
    for (uint32_t disk = 0; disk < disks.count(); ++disk) {
      controllers.push_back(options.hosted ? add_hosted(disks, options, disk)
                                           : add_virtual(disks, options, disk));
      devices.push_back(nvme::create_device(memory, controllers.back(), device_options(options)));
      array.devices[array.count++] = devices.back();
    }
    tables = std::make_unique<vfs::FilesystemMemory>(memory, array, filesystem_options(options));
  }
  ~Parts() {
    tables.reset();
    for (; !controllers.empty(); controllers.pop_back(), devices.pop_back()) {
      nvme::destroy_device(memory, devices.back());
      if (hosted.empty()) ssd::destroy_virtual_controller(memory, controllers.back());
    }
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  ssd::ControllerRef add_virtual(Disks& disks, const SessionOptions& options, uint32_t disk) {
    ssd::Media media;
    media.base = disks[disk].data();
    media.bytes = disks[disk].bytes();
    const auto* const first = disk == 0 ? nullptr : &controllers.front();
    return ssd::create_virtual_controller(memory, ssd_config(options, disk, first), media);
  }

  ssd::ControllerRef add_hosted(Disks& disks, const SessionOptions& options, uint32_t disk) {
    ssd::HostedOptions wanted;
    wanted.queue_pairs_max = 4;
    wanted.queue_entries_max = 256;
    wanted.lba_bytes = options.lba_shift == 9 ? 0 : 1u << options.lba_shift;
    ssd::IoFaults& of_disk = faults.emplace_back();
    wanted.make_engine = [this, disk, &of_disk](const ssd::IoTarget& target) {
      auto engine = ssd::uring_refusal() == 0 ? ssd::make_uring_engine(target)
                                              : ssd::make_thread_engine(target);
      return make_recording_engine(requests, disk,
                                   std::make_unique<ssd::FaultyEngine>(of_disk, std::move(engine)));
    };
    const auto access = options.writable ? ssd::FileAccess::kReadWrite : ssd::FileAccess::kReadOnly;
    hosted.push_back(std::make_unique<ssd::HostedController>(
        std::make_unique<ssd::BackingStore>(disks[disk].path(), access), memory, wanted));
    return hosted.back()->ref();
  }

  vfs::Filesystem& fs() { return *tables->filesystem(); }

  simt::HostMemorySpace memory;
  RequestLog requests;
  std::deque<ssd::IoFaults> faults;  // of each hosted SSD
  std::vector<std::unique_ptr<ssd::HostedController>> hosted;
  std::vector<ssd::ControllerRef> controllers;
  std::vector<nvme::Device*> devices;
  std::unique_ptr<vfs::FilesystemMemory> tables;
  std::unique_ptr<f2fs::WriterMemory> writer;
  struct Started {
    std::string bytes;
    vfs::Ticket ticket{0, vfs::Ticket::kNoOperation, 0, 0};
    bool ended = false;
  };
  Started& start(std::string bytes, size_t& number) {
    const std::lock_guard lock(starting);
    number = started.size();
    return started.emplace_back(Started{std::move(bytes)});
  }
  Started& started_as(size_t number) {
    const std::lock_guard lock(starting);
    return started[number];
  }

  std::mutex starting;
  std::deque<Started> started;
};

Session::Session(Disks& disks, const SessionOptions& options)
    : options_(options), parts_(std::make_unique<Parts>(disks, options)) {
  become({});
  vfs::Filesystem& fs = parts_->fs();
  kernels_ = std::make_unique<MountedKernels>(fs, options.width);
  kernels::MountParams mounting{};
  mounting.fs = &fs;
  run_warp(options.width,
           [&](const simt::Warp& warp) { kernels::mount_body(warp, 0, 1, mounting); });
  up_ = true;
  mount_error_ = mounting.volume.error;
  if (mounting.device.step != nvme::BringUpStep::kDone) mount_error_ = -EIO;
  if (mount_error_ != 0) return;
  if (options.writable && !begin_writing()) return;
  if (!options.served) return;
  served_ = std::make_unique<ServedCalls>(
      fs, ServedCalls::Options{options.kernel_part_bytes, options.one_user});
  kernels_ = std::make_unique<ServedKernels>(*served_, options.width);
}

bool Session::begin_writing() {
  vfs::Filesystem& fs = parts_->fs();
  f2fs::WriterOptions writing;
  writing.discard = options_.discard;
  writing.log_structured = options_.log_structured;
  parts_->writer =
      std::make_unique<f2fs::WriterMemory>(parts_->memory, fs.volume.geometry, writing);
  kernels::BeginWritingParams beginning{};
  beginning.fs = &fs;
  beginning.writer = parts_->writer->writer();
  run_warp(options_.width, [&](const simt::Warp& warp) {
    kernels::read_segments_body(warp, 0, 1, beginning);
    kernels::begin_writing_body(warp, 0, 1, beginning);
  });
  begun_ = beginning.result;
  const int64_t realtime_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  fs.clock = {{{simt::now_ns(), realtime_ns, 0}, {}}, 0};
  return begun_.error == 0;
}

Session::~Session() { (void)unmount(); }

int Session::unmount() {
  if (!up_) return 0;
  up_ = false;
  kernels_.reset();
  served_.reset();
  kernels::UnmountParams leaving{};
  leaving.fs = &parts_->fs();
  run_warp(options_.width,
           [&](const simt::Warp& warp) { kernels::unmount_body(warp, 0, 1, leaving); });
  return leaving.written != 0 ? leaving.written : leaving.result;
}

/// Descriptors are the mount's, whoever has opened them: calls of several users share them.
void Session::become(const Who& who) {
  vfs::Caller caller{{}, vfs::kMountClient};
  vfs::Credentials& credentials = caller.credentials;
  credentials.uid = who.uid;
  credentials.gid = who.gid;
  for (const uint32_t group : who.groups) credentials.groups[credentials.group_count++] = group;
  caller_of_thread() = caller;
}

std::string Session::damage() const {
  const f2fs::CorruptionLog& log = *parts_->fs().volume.corruptions;
  std::string words;
  for (uint32_t i = 0; i < f2fs::kCorruptionsKept; ++i) {
    if (!f2fs::holds_finding(log, i)) continue;
    if (!words.empty()) words += "; ";
    words += host::describe(log.records[i]);
  }
  return words;
}

namespace {

/// A call about `path`, if there is one, and never about what a link at its end leads to.
request::Arguments about(request::Verb verb, const std::string* path = nullptr) {
  request::Arguments call{};
  call.request.verb = verb;
  call.path = path == nullptr ? nullptr : path->c_str();
  call.request.bits = request::kKeepLink;
  return call;
}

request::Arguments about(request::Verb verb, int fd) {
  request::Arguments call = about(verb);
  call.request.descriptor = fd;
  return call;
}

/// A call about a path or, of another kind, about what is open.
request::Arguments about(request::Verb by_path, request::Verb by_descriptor, const About& what) {
  if (what.is_open()) return about(by_descriptor, what.fd);
  request::Arguments call = about(by_path, &what.path);
  call.request.bits = what.follow ? uint16_t{0} : request::kKeepLink;
  return call;
}

/// Bytes that are only read.
void give(request::Arguments& call, std::string_view bytes) {
  call.buffer = const_cast<char*>(bytes.data());
  call.request.bytes = bytes.size();
}

}  // namespace

/// By the body that serves host programs, or by a server.
int64_t Session::perform(const request::Arguments& call) {
  const vfs::Caller& caller = caller_of_thread();
  if (served_ != nullptr) return served_->perform(caller.credentials, call);
  kernels::CallParams params{};
  params.fs = &parts_->fs();
  params.call = call;
  launch(1, options_.width, [&](const simt::Warp& warp, uint32_t) {
    for_caller(warp, caller, [&](const auto& mine) { kernels::call_body(mine, 0, 1, params); });
  });
  return params.answer;
}

int Session::answer(const request::Arguments& call) { return static_cast<int>(perform(call)); }

int Session::open(const std::string& path, uint32_t flags, uint32_t mode) {
  request::Arguments call = about(request::Verb::kOpen, &path);
  call.request.flags = flags;
  call.request.mode = mode;
  return answer(call);
}

int Session::close(int fd) { return answer(about(request::Verb::kClose, fd)); }

int64_t Session::pread(int fd, void* buffer, uint64_t bytes, uint64_t offset) {
  request::Arguments call = about(request::Verb::kPread, fd);
  call.buffer = buffer;
  call.request.bytes = bytes;
  call.request.offset = static_cast<int64_t>(offset);
  return perform(call);
}

int64_t Session::pwrite(int fd, std::string_view bytes, uint64_t offset) {
  request::Arguments call = about(request::Verb::kPwrite, fd);
  give(call, bytes);
  call.request.offset = static_cast<int64_t>(offset);
  return perform(call);
}

int64_t Session::read(int fd, void* buffer, uint64_t bytes) {
  request::Arguments call = about(request::Verb::kAdvance, fd);
  call.request.offset = static_cast<int64_t>(bytes);
  const int64_t offset = perform(call);
  return offset < 0 ? offset : pread(fd, buffer, bytes, static_cast<uint64_t>(offset));
}

int64_t Session::pwritev(int fd, const Buffers& parts, uint64_t offset) {
  return kernels_->pwritev(fd, parts, offset);
}

int64_t Session::writev(int fd, const Buffers& parts) { return kernels_->writev(fd, parts); }

int64_t Session::write(int fd, std::string_view bytes) {
  request::Arguments call = about(request::Verb::kWrite, fd);
  give(call, bytes);
  return perform(call);
}

void Session::pwrite_lanes(int fd, LaneRequests& requests) { kernels_->pwrite_lanes(fd, requests); }

void Session::pread_lanes(int fd, LaneRequests& requests) { kernels_->pread_lanes(fd, requests); }

void Session::write_lanes(int fd, LaneRequests& requests) { kernels_->write_lanes(fd, requests); }

int64_t Session::pwrite_by(Scope scope, int fd, std::string_view bytes, uint64_t offset) {
  if (scope != Scope::kThread) return kernels_->pwrite(scope, fd, bytes, offset);
  LaneRequests one{{offset, std::string(bytes), 0}};
  kernels_->pwrite_lanes(fd, one);
  return one[0].result;
}

int64_t Session::write_by(Scope scope, int fd, std::string_view bytes) {
  if (scope != Scope::kThread) return kernels_->write(scope, fd, bytes);
  LaneRequests one{{0, std::string(bytes), 0}};
  kernels_->write_lanes(fd, one);
  return one[0].result;
}

int64_t Session::pread_by(Scope scope, int fd, void* buffer, uint64_t bytes, uint64_t offset) {
  if (scope != Scope::kThread) return kernels_->pread(scope, fd, buffer, bytes, offset);
  LaneRequests one{{offset, std::string(bytes, '\xee'), 0}};
  kernels_->pread_lanes(fd, one);
  if (one[0].result > 0) one[0].data.copy(static_cast<char*>(buffer), bytes);
  return one[0].result;
}

int Session::start_pwrite(int fd, std::string_view bytes, uint64_t offset) {
  size_t number = 0;
  Parts::Started& mine = parts_->start(std::string(bytes), number);
  mine.ticket = kernels_->start_pwrite(fd, mine.bytes, offset);
  const int64_t result = mine.ticket.result;
  return static_cast<int>(result < 0 ? result : static_cast<int64_t>(number));
}

int64_t Session::wait(int started) {
  Parts::Started& mine = parts_->started_as(static_cast<size_t>(started));
  mine.ended = true;
  const int64_t written = kernels_->wait(mine.ticket);
  mine.bytes = {};  // nobody reads them any more
  return written;
}

void Session::give_up_writes() {
  for (size_t i = 0; i < parts_->started.size(); ++i) {
    Parts::Started& one = parts_->started[i];
    if (one.ended || one.ticket.operation == vfs::Ticket::kNoOperation) continue;
    one.ticket.result = -ECANCELED;
    (void)wait(static_cast<int>(i));
  }
}

int64_t Session::lseek(int fd, int64_t offset, int whence) {
  request::Arguments call = about(request::Verb::kLseek, fd);
  call.request.offset = offset;
  call.request.flags = static_cast<uint32_t>(whence);
  return perform(call);
}

int Session::ftruncate(int fd, uint64_t size) {
  request::Arguments call = about(request::Verb::kFtruncate, fd);
  call.request.bytes = size;
  return answer(call);
}

int Session::truncate(const std::string& path, uint64_t size) {
  request::Arguments call = about(request::Verb::kTruncate, &path);
  call.request.bytes = size;
  return answer(call);
}

int Session::fallocate(int fd, uint32_t mode, uint64_t offset, uint64_t bytes) {
  request::Arguments call = about(request::Verb::kFallocate, fd);
  call.request.flags = mode;
  call.request.offset = static_cast<int64_t>(offset);
  call.request.bytes = bytes;
  return answer(call);
}

int64_t Session::copy_file_range(int from, uint64_t from_offset, int to, uint64_t to_offset,
                                 uint64_t bytes) {
  request::Arguments call = about(request::Verb::kCopyRange, from);
  std::string room(bytes, '\0');
  call.buffer = room.data();
  call.request.bytes = room.size();
  call.request.offset = static_cast<int64_t>(from_offset);
  call.request.other_descriptor = to;
  call.request.other_offset = static_cast<int64_t>(to_offset);
  call.request.length = bytes;
  return perform(call);
}

int Session::mkdir(const std::string& path, uint32_t mode) {
  request::Arguments call = about(request::Verb::kMkdir, &path);
  call.request.mode = mode;
  return answer(call);
}

int Session::mknod(const std::string& path, uint32_t mode, uint32_t major, uint32_t minor) {
  request::Arguments call = about(request::Verb::kMknod, &path);
  call.request.mode = mode;
  call.request.device_major = major;
  call.request.device_minor = minor;
  return answer(call);
}

int Session::symlink(const std::string& target, const std::string& path) {
  request::Arguments call = about(request::Verb::kSymlink, &path);
  call.other = target.c_str();
  return answer(call);
}

int Session::link(const std::string& existing, const std::string& path) {
  request::Arguments call = about(request::Verb::kLink, &path);
  call.other = existing.c_str();
  return answer(call);
}

int Session::unlink(const std::string& path) {
  return answer(about(request::Verb::kUnlink, &path));
}

int Session::rmdir(const std::string& path) { return answer(about(request::Verb::kRmdir, &path)); }

int Session::rename(const std::string& from, const std::string& to, uint32_t flags) {
  request::Arguments call = about(request::Verb::kRename, &to);
  call.other = from.c_str();
  call.request.flags = flags;
  return answer(call);
}

int Session::chmod(const About& what, uint32_t mode) {
  request::Arguments call = about(request::Verb::kChmod, request::Verb::kFchmod, what);
  call.request.mode = mode;
  return answer(call);
}

int Session::chown(const About& what, uint32_t uid, uint32_t gid) {
  request::Arguments call = about(request::Verb::kChown, request::Verb::kFchown, what);
  call.request.uid = uid;
  call.request.gid = gid;
  return answer(call);
}

int Session::utimens(const About& what, const f2fs::TimeStamp& accessed,
                     const f2fs::TimeStamp& modified) {
  request::Arguments call = about(request::Verb::kUtimens, request::Verb::kFutimens, what);
  call.request.accessed = accessed;
  call.request.modified = modified;
  return answer(call);
}

int Session::setxattr(const About& what, const std::string& name, const std::string& value,
                      uint32_t flags) {
  request::Arguments call = about(request::Verb::kSetxattr, request::Verb::kFsetxattr, what);
  call.name = name.c_str();
  give(call, value);
  call.request.flags = flags;
  return answer(call);
}

int Session::removexattr(const About& what, const std::string& name) {
  request::Arguments call = about(request::Verb::kRemovexattr, request::Verb::kFremovexattr, what);
  call.name = name.c_str();
  return answer(call);
}

int64_t Session::getxattr(const About& what, const std::string& name, void* value, uint64_t bytes) {
  request::Arguments call = about(request::Verb::kGetxattr, request::Verb::kFgetxattr, what);
  call.name = name.c_str();
  call.buffer = value;
  call.request.bytes = bytes;
  return perform(call);
}

int64_t Session::listxattr(const About& what, char* list, uint64_t bytes) {
  request::Arguments call = about(request::Verb::kListxattr, request::Verb::kFlistxattr, what);
  call.buffer = list;
  call.request.bytes = bytes;
  return perform(call);
}

int Session::sync() { return answer(about(request::Verb::kSync)); }

int Session::fsync(int fd) { return answer(about(request::Verb::kFsync, fd)); }

int Session::fdatasync(int fd) { return answer(about(request::Verb::kFdatasync, fd)); }

int Session::stat(const About& what, vfs::Stat& out) {
  request::Arguments call = about(request::Verb::kStat, request::Verb::kFstat, what);
  Stat found{};
  call.buffer = &found;
  call.request.bytes = sizeof(found);
  const int error = answer(call);
  if (error == 0) out = found;
  return error;
}

int Session::access(const std::string& path, uint32_t wanted) {
  request::Arguments call = about(request::Verb::kAccess, &path);
  call.request.flags = wanted;
  return answer(call);
}

int Session::readlink(const std::string& path, std::string& target) {
  target.assign(vfs::kPathBytesMax, '\0');
  request::Arguments call = about(request::Verb::kReadlink, &path);
  call.buffer = target.data();
  call.request.bytes = target.size();
  const int64_t bytes = perform(call);
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
    request::Arguments call = about(request::Verb::kReaddir, fd);
    call.buffer = entries.data();
    call.request.bytes = entries.size() * sizeof(f2fs::NamedEntry);
    count = perform(call);
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

int Session::create_batch(const std::string& directory, uint32_t mode,
                          std::vector<BatchItem>& items) {
  return kernels_->create_batch(directory, mode, items);
}

int Session::read_batch(const std::string& directory, std::vector<BatchItem>& items) {
  return kernels_->read_batch(directory, items);
}

int Session::write_batch(const std::string& directory, std::vector<BatchItem>& items) {
  return kernels_->write_batch(directory, items);
}

int Session::collect_garbage(uint32_t segments, uint32_t* emptied) {
  kernels::CleanParams params{};
  params.fs = &parts_->fs();
  params.step = kernels::CleanStep::kRound;
  params.victims = {f2fs::VictimPolicy::kCostBenefit, vfs::kWorthCleaning};
  params.segments_max = segments;
  run_warp(options_.width,
           [&](const simt::Warp& warp) { kernels::clean_body(warp, 0, 1, params); });
  if (emptied != nullptr) *emptied = params.segments;
  return params.error;
}

vfs::FilesystemStat Session::statfs() { return vfs::statfs(parts_->fs()); }

uint32_t Session::moment() {
  if (options_.hosted) return parts_->requests.moment();
  ssd::WriteLog* const log = parts_->controllers.front().controller->write_log;
  if (log == nullptr) return 0;
  ssd::end_posted(*log);
  return simt::load_relaxed(log->events);
}

namespace {

/// The same of what a hosted SSD asks of Linux.
ssd::IoFault fault_below(const ssd::FaultRule& rule) {
  using format::nvme::IoOpcode;
  using Request = ssd::IoRequest::Kind;
  constexpr std::pair<IoOpcode, Request> kBelow[] = {{IoOpcode::kWrite, Request::kWrite},
                                                     {IoOpcode::kRead, Request::kRead},
                                                     {IoOpcode::kFlush, Request::kSync}};
  ssd::IoFault fault;
  for (const auto& [opcode, kind] : kBelow) {
    if (rule.opcode_mask == 1u << static_cast<uint32_t>(opcode)) fault.kind = kind;
  }
  fault.skip = static_cast<uint32_t>(rule.skip);
  fault.count = static_cast<uint32_t>(std::min<uint64_t>(rule.count, ~0u));
  fault.error = rule.action == ssd::FaultAction::kFatal ? -ENODEV : -EIO;
  return fault;
}

}  // namespace

void Session::set_timeout(uint64_t timeout_ns) {
  for (nvme::Device* const device : parts_->devices) {
    device->limits.command_timeout_ns = device->limits.admin_timeout_ns = timeout_ns;
  }
}

void Session::plan_fault(uint32_t disk, const ssd::FaultRule& rule) {
  ssd::FaultRule only_counts = rule;
  only_counts.count = 0;
  for (uint32_t each = 0; each < parts_->faults.size(); ++each) {
    parts_->faults[each].clear();
    parts_->faults[each].add(fault_below(each == disk ? rule : only_counts));
  }
  if (options_.hosted) return;
  for (uint32_t each = 0; each < parts_->controllers.size(); ++each) {
    ssd::clear_faults(parts_->memory, parts_->controllers[each]);
    ssd::add_fault(parts_->memory, parts_->controllers[each], each == disk ? rule : only_counts);
  }
}

std::vector<uint64_t> Session::fault_matches() {
  std::vector<uint64_t> matches;
  for (const ssd::IoFaults& one : parts_->faults) matches.push_back(one.matches());
  if (options_.hosted) return matches;
  for (const ssd::ControllerRef& one : parts_->controllers) {
    matches.push_back(one.controller->faults->entries[0].matches);
  }
  return matches;
}

ssd::WriteTrace Session::trace() {
  if (options_.hosted) return parts_->requests.trace();
  return ssd::read_trace(parts_->memory, parts_->controllers.front());
}

}  // namespace gofs::judges
