// SPDX-License-Identifier: Apache-2.0
//
// A volume in memory, mounted by the CPU backend's bodies, and calls on it by host code. All
// functions but those that mount and unmount may be called from several threads. Answers are those
// of vfs/: a result or a negative errno.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "f2fs/writer.h"
#include "ssd/fault.h"
#include "ssd/power_cut.h"
#include "vfs/metadata.h"

namespace gofs::work {
struct BatchParams;
struct CallParams;
}  // namespace gofs::work

namespace gofs::judges {

struct SessionOptions {
  bool writable = true;
  uint32_t width = 1;          // lanes of a warp
  uint32_t cache_pages = 512;  // metadata blocks in memory
  uint64_t log_bytes = 0;      // not 0: the SSD keeps what is written, up to as much
  uint32_t descriptors = 64;
  bool faults = false;  // one can be planned
};

class Session {
 public:
  /// Mounts the image, which is the caller's and outlives this. mounted() and begun() say how it
  /// went.
  Session(uint8_t* image, uint64_t bytes, const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// 0, or why the volume could not be mounted at all.
  int mounted() const { return mount_error_; }
  /// Of one that was to be written to: whether it can be.
  const f2fs::WriteResult& begun() const { return begun_; }
  /// How many findings of damage there were since it was mounted.
  uint32_t findings() const;

  int open(const std::string& path, uint32_t flags, uint32_t mode = 0644);
  int close(int fd);
  int64_t pread(int fd, void* buffer, uint64_t bytes, uint64_t offset);
  int64_t pwrite(int fd, std::string_view bytes, uint64_t offset);
  int64_t write(int fd, std::string_view bytes);
  int64_t lseek(int fd, int64_t offset, int whence);
  int ftruncate(int fd, uint64_t size);
  int fallocate(int fd, uint32_t mode, uint64_t offset, uint64_t bytes);
  int fsync(int fd);
  int truncate(const std::string& path, uint64_t size);
  int mkdir(const std::string& path, uint32_t mode);
  int mknod(const std::string& path, uint32_t mode, uint32_t major, uint32_t minor);
  int symlink(const std::string& target, const std::string& path);
  int link(const std::string& existing, const std::string& path);
  int unlink(const std::string& path);
  int rmdir(const std::string& path);
  int rename(const std::string& from, const std::string& to, uint32_t flags);
  int chmod(const std::string& path, uint32_t mode);
  // From here on, a link at the end of a path stands for itself.
  int chown(const std::string& path, uint32_t uid, uint32_t gid);
  int utimens(const std::string& path, const f2fs::TimeStamp& accessed,
              const f2fs::TimeStamp& modified);
  int setxattr(const std::string& path, const std::string& name, const std::string& value,
               uint32_t flags);
  int removexattr(const std::string& path, const std::string& name);
  int stat(const std::string& path, vfs::Stat& out);
  int readlink(const std::string& path, std::string& target);
  /// Name -> (ino, type). -EEXIST where a name comes twice.
  using Names = std::map<std::string, std::pair<uint32_t, uint8_t>>;
  int list(const std::string& path, Names& names);
  using Xattrs = std::map<std::string, std::string>;
  int xattrs(const std::string& path, Xattrs& values);

  /// Makes files with contents, by one warp. 0, or the first error, of a file or all.
  int batch_create(const std::string& directory, const std::vector<std::string>& names,
                   const std::vector<std::string>& contents);
  /// Writes to the beginning of files. As batch_create().
  int batch_write(const std::string& directory, const std::vector<std::string>& names,
                  const std::vector<std::string>& contents);
  /// As host::VolumeState does it, by one warp: rounds, and a checkpoint behind each.
  int collect_garbage();

  int sync();
  /// As work::unmount_body() does: what was written is durable then.
  int unmount();

  /// A moment of the log, if there is one: all commands that have ended have done so by then.
  uint32_t moment();
  ssd::WriteTrace trace();

  /// From now on; replaces the one before.
  void plan_fault(const ssd::FaultRule& rule);
  /// Commands that the planned fault was about, hit or not.
  uint64_t fault_matches();

  vfs::FilesystemStat statfs();

 private:
  struct Parts;
  int64_t perform(work::CallParams& params);
  int answer(work::CallParams params);
  int batch_step(work::BatchParams& params);

  const SessionOptions options_;
  std::unique_ptr<Parts> parts_;
  int mount_error_ = 0;
  f2fs::WriteResult begun_{};
  bool up_ = false;
};

}  // namespace gofs::judges
