// SPDX-License-Identifier: Apache-2.0
//
// A volume in memory, on one SSD or several, mounted by the CPU backend's bodies, and calls on it
// by host code. All functions but those that mount and unmount may be called from several threads;
// become() is about the calls of its thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calls.h"
#include "disk.h"
#include "f2fs/begin_writing.h"
#include "kernel_calls.h"
#include "ssd/fault.h"

namespace gofs::request {
struct Arguments;
}  // namespace gofs::request

namespace gofs::judges {

class ServedCalls;

struct SessionOptions {
  bool writable = true;
  uint32_t width = 1;          // lanes of a warp
  uint32_t cache_pages = 512;  // metadata blocks in memory
  uint64_t log_bytes = 0;      // not 0: the SSDs keep what is written, up to as much
  uint32_t descriptors = 64;
  uint32_t lba_shift = 9;  // the SSD's blocks: 512 bytes, or 12 for 4096
  uint32_t queue_depth = 64;
  uint32_t spare_blocks = 128;
  uint64_t timeout_ns = 60'000'000'000;  // of a command: the machine has other things to do
  int64_t time_granularity_ns = 1;
  bool faults = false;                             // can be planned
  bool log_structured = false;                     // nothing is written over where it lies
  bool discard = true;                             // the SSDs are told what is free, and forget it
  bool served = false;                             // calls go through channels
  uint64_t kernel_part_bytes = uint64_t{2} << 20;  // if so: what a call of kernels takes at most
  bool one_user = false;  // and all calls are by one, whose descriptors are its own
  bool hosted = false;    // the SSDs are threads over what the disks hold
};

class Session : public Calls {
 public:
  /// Mounts what the disks hold, which are the caller's and outlive this. mounted() and begun() say
  /// how it went.
  Session(Disks& disks, const SessionOptions& options);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// 0, or why the volume could not be mounted at all.
  int mounted() const { return mount_error_; }
  /// Of one that was to be written to: whether it can be.
  const f2fs::WriteResult& begun() const { return begun_; }
  /// What damage was found since it was mounted, in words. Empty: none.
  std::string damage() const;

  bool is_gofs() const override { return true; }
  /// Whether what is changed later has a later time.
  bool clock_is_exact() const { return options_.time_granularity_ns == 1; }
  /// Whether kernels are those of a server's client.
  bool is_served() const { return options_.served; }
  /// What one call of kernels takes at most.
  uint64_t kernel_part_bytes() const {
    return options_.served ? options_.kernel_part_bytes : vfs::kOffsetMax;
  }
  void become(const Who& who) override;

  using Calls::open;
  int open(const std::string& path, uint32_t flags, uint32_t mode) override;
  int close(int fd) override;
  int64_t pread(int fd, void* buffer, uint64_t bytes, uint64_t offset) override;
  int64_t read(int fd, void* buffer, uint64_t bytes) override;
  int64_t pwrite(int fd, std::string_view bytes, uint64_t offset) override;
  int64_t write(int fd, std::string_view bytes) override;
  int64_t pwritev(int fd, const Buffers& parts, uint64_t offset) override;
  int64_t writev(int fd, const Buffers& parts) override;
  int64_t lseek(int fd, int64_t offset, int whence) override;
  int ftruncate(int fd, uint64_t size) override;
  int truncate(const std::string& path, uint64_t size) override;
  int fallocate(int fd, uint32_t mode, uint64_t offset, uint64_t bytes) override;
  int64_t copy_file_range(int from, uint64_t from_offset, int to, uint64_t to_offset,
                          uint64_t bytes) override;
  int fsync(int fd) override;
  int fdatasync(int fd) override;
  int sync() override;
  int mkdir(const std::string& path, uint32_t mode) override;
  int mknod(const std::string& path, uint32_t mode, uint32_t major, uint32_t minor) override;
  int symlink(const std::string& target, const std::string& path) override;
  int link(const std::string& existing, const std::string& path) override;
  int unlink(const std::string& path) override;
  int rmdir(const std::string& path) override;
  int rename(const std::string& from, const std::string& to, uint32_t flags) override;
  int chmod(const About& about, uint32_t mode) override;
  int chown(const About& about, uint32_t uid, uint32_t gid) override;
  int utimens(const About& about, const f2fs::TimeStamp& accessed,
              const f2fs::TimeStamp& modified) override;
  int setxattr(const About& about, const std::string& name, const std::string& value,
               uint32_t flags) override;
  int removexattr(const About& about, const std::string& name) override;
  int64_t getxattr(const About& about, const std::string& name, void* value,
                   uint64_t bytes) override;
  int64_t listxattr(const About& about, char* list, uint64_t bytes) override;
  int stat(const About& about, vfs::Stat& out) override;
  int access(const std::string& path, uint32_t wanted) override;
  int readlink(const std::string& path, std::string& target) override;
  int list(const std::string& path, Names& names) override;

  // What only GoFS has.
  /// New files of a directory, with their contents; each has its error.
  int create_batch(const std::string& directory, uint32_t mode, std::vector<BatchItem>& items);
  /// Files of a directory by their names, all of them at once: read, or written to from their
  /// beginning on.
  int read_batch(const std::string& directory, std::vector<BatchItem>& items);
  int write_batch(const std::string& directory, std::vector<BatchItem>& items);
  /// Requests of lanes, as many at a time as a warp has.
  void pwrite_lanes(int fd, LaneRequests& requests);
  void pread_lanes(int fd, LaneRequests& requests);
  void write_lanes(int fd, LaneRequests& requests);
  /// The same calls as above, made by a thread, a warp, a block or a grid of three warps, each of
  /// which is a host thread.
  int64_t pwrite_by(Scope scope, int fd, std::string_view bytes, uint64_t offset);
  int64_t write_by(Scope scope, int fd, std::string_view bytes);
  int64_t pread_by(Scope scope, int fd, void* buffer, uint64_t bytes, uint64_t offset);
  /// An asynchronous write of whole blocks: a number for wait(), or a negative errno. The bytes are
  /// kept until somebody has waited, or the session ends.
  int start_pwrite(int fd, std::string_view bytes, uint64_t offset);
  int64_t wait(int started);
  /// Ends those that nobody has waited for, as if they had failed.
  void give_up_writes();
  /// Empties up to `segments` segments; `emptied`, if it is not null, is told how many were tried.
  int collect_garbage(uint32_t segments, uint32_t* emptied = nullptr);
  /// As kernels::unmount_body() does: what was written is durable then.
  int unmount();

  /// A moment of the log, if there is one: all commands that have ended have done so by then, on
  /// all disks.
  uint32_t moment();
  ssd::WriteTrace trace();

  vfs::FilesystemStat statfs();

  /// How long a command may take from now on.
  void set_timeout(uint64_t timeout_ns);
  /// From now on, of one disk; replaces what was planned before.
  void plan_fault(uint32_t disk, const ssd::FaultRule& rule);
  /// How many commands each disk got of the kind that the planned fault is about, hit or not.
  std::vector<uint64_t> fault_matches();

 private:
  struct Parts;
  bool begin_writing();
  int64_t perform(const request::Arguments& call);
  int answer(const request::Arguments& call);

  const SessionOptions options_;
  std::unique_ptr<Parts> parts_;
  std::unique_ptr<ServedCalls> served_;
  std::unique_ptr<KernelCalls> kernels_;
  int mount_error_ = 0;
  f2fs::WriteResult begun_{};
  bool up_ = false;
};

}  // namespace gofs::judges
