// SPDX-License-Identifier: Apache-2.0
//
// GoFS for host programs: mount a volume, hand it to kernels, or read it from here with the names
// that the device API (gofs.cuh) uses. All calls are carried out by the backend's own warps through
// the same NVMe queues.
//
//   auto volume = gofs::Volume::mount("vol.img");
//   if (!volume) { fprintf(stderr, "%s\n", volume.error().message.c_str()); return 1; }
//   my_kernel<<<grid, block>>>(volume->device());
//
// C++17 or later. All functions may be called from several threads at once. Kernels that use the
// volume must have ended before it is destroyed or moved to. One that was moved from can only be
// destroyed or moved to.
//
// Errors have an errno and a sentence. Besides those that POSIX has for a call, each may fail with
// EIO (the SSD), EUCLEAN (the volume contradicts itself), ETIMEDOUT (a lock or a command), EBUSY or
// ENOMEM (others have all of what it needs for a while), and ENODEV once the volume is unmounted.
//
// A volume belongs to the process that has mounted it. In a child of fork() every call fails at
// once with ENODEV and words that say so; info() knows the spec alone, warnings() has that
// sentence, and counts are 0. exit(), the destructor and unmount() return there without waiting,
// free nothing, and nothing of it reaches the image. A child may mount volumes of its own, once the
// parent has released the image. vfork() and posix_spawn() are not affected.
//
// A fault of any kernel of the process (an illegal address, a trap, a device assert) takes the GPU
// from it. Every call then fails with EIO, CUDA's words and the hint that only another process can
// mount the volume again; unmount() and the destructor return without waiting, and warnings() has
// that sentence. The image is as the last sync(), fsync() or fdatasync() from the host left it, and
// mounting it recovers that. In that process "auto" mounts nothing any more, rather than by the
// CPU.
//
// Where the host's storage fails (its disk is full or broken, or the image has been cut), the
// call under way fails with EIO and the host's words. After a full disk all goes on as soon as
// there is room; after the others nothing more is written to the image, and unmount() says so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gofs/expected.hpp"
#include "gofs/export.h"
#include "gofs/types.h"

struct CUstream_st;  // what CUDA's cudaStream_t points to

namespace gofs {

namespace host {  // GoFS's own
class AnyVolume;
class RangeWork;
struct VolumeAccess;
}  // namespace host

/// Ranges that Volume::read_ranges() or write_ranges() has begun. From any thread; copies are the
/// same. To let it go waits for nothing.
class GOFS_API RangeCall {
 public:
  /// Whether the stream has come by, so that wait() returns at once.
  bool is_done() const;
  /// Of each range how many bytes were moved, or a negative errno: that of some part of it. What
  /// was read is in memory then, also without this where the stream goes on. An error where the
  /// ranges were not carried out; also after the volume is unmounted, which waits for them. ENODEV
  /// in a child of fork(), at once.
  Expected<std::vector<int64_t>> wait() const;

 private:
  friend class Volume;
  GOFS_INTERNAL explicit RangeCall(std::shared_ptr<host::RangeWork> work);

  std::shared_ptr<host::RangeWork> work_;
};

/// How to mount. What a spec says after its `?` wins over what is said here; 0 means the default.
struct MountOptions {
  std::string backend = "auto";  // "auto": a GPU if one answers, else the CPU; "cpu"; "cuda"
  bool read_only = true;         // else the image is locked for other mounts
  uint32_t uid = 0;              // whose permissions all calls have, on the device as well
  uint32_t gid = 0;
  std::vector<uint32_t> groups{};   // supplementary ones, at most kGroupsMax
  uint64_t cache_bytes = 0;         // memory for metadata blocks; 64 MiB, and on a GPU a 64th of
                                    // a virtual SSD up to 1 GiB: a third of it may be newer than
                                    // the SSD
  uint32_t queues = 0;              // NVMe I/O queue pairs; 16
  uint32_t queue_depth = 0;         // entries in each; 1,024, of a physical SSD 128
  uint64_t command_timeout_ns = 0;  // until an NVMe command counts as lost; 5 s
  uint64_t lock_timeout_ns = 0;     // until the lock of a file or directory is given up; 30 s
  uint32_t descriptors = 0;         // files open at once; 66,560, about 1 KB each
  uint32_t clean_percent = 0;       // of the segments: a write cleans where fewer are free; 5
  // What the volume does by itself, from a thread of this process; what fails is tried again a
  // period later, and sync() says why it does. On a GPU it runs as kernels, so it waits where
  // kernels of the program leave no room for others.
  uint64_t checkpoint_period_ns = 0;  // a checkpoint after each, if anything has changed; 0: none
  uint32_t idle_clean_percent = 0;    // of the segments: where fewer are free, and the SSD had
                                      // nothing to do for a period (1 s if 0), some are cleaned
  uint64_t clock_period_ns = 0;       // how often the clock of time stamps is set by the host's; 10
                                      // minutes
  bool discard = true;                // tell the SSD which segments are free, if it wants to know
  bool log_structured = false;  // as Linux's mode=lfs: all that is written goes to new blocks,
                                // so that after a power cut nothing is there that no fsync or
                                // sync has made durable; writing over files is slower
  uint32_t ablations = 0;       // bits of Ablation: what to do without, to see what it brings
};

/// How to attach to a server.
struct AttachOptions {
  // Where the server has ended: how long a call waits for another to come
  uint64_t attach_timeout_ns = 10'000'000'000;
};

/// What collect_garbage() may do.
struct CleaningOptions {
  uint32_t segments_max = 0;    // that are emptied; 0: all that are worth it
  bool emptiest_first = false;  // else old ones, which are not likely to empty by themselves
};

/// What it has done.
struct CleaningReport {
  uint64_t segments = 0;     // that were emptied
  uint64_t data_blocks = 0;  // that were moved: of files,
  uint64_t directory_blocks = 0;
  uint64_t node_blocks = 0;
  uint64_t left_blocks = 0;  // in segments that could not be emptied
  uint64_t free_segments_before = 0;
  uint64_t free_segments = 0;
};

/// How the clock of a mounted volume, by which warps set time stamps, goes with the host's.
struct ClockReport {
  uint64_t looks = 0;     // at both clocks, so far; 0 where the volume is read only
  uint64_t error_ns = 0;  // of the last look, at most
  int64_t late_ns = 0;    // how late time stamps were by then; below 0: early
  double drift_ppm = 0;   // how much faster the host's clock goes, which is made up for
};

/// What mount() found.
struct VolumeInfo {
  std::string spec;
  std::string backend;         // "cpu" or "cuda"
  std::string backend_detail;  // the processor or GPU
  std::string ssd;             // what the volume lies on, and its timing model
  uint64_t ssd_bytes = 0;
  uint32_t lba_bytes = 0;
  uint32_t queues = 0;
  uint32_t queue_depth = 0;
  uint32_t transfer_bytes_max = 0;
  std::string mode;                    // as Linux names it, of a mount for writing: "adaptive",
                                       // parts of a block are written over where they lie; or
                                       // "lfs", as it was asked for, or the SSDs may leave a block
                                       // half written when the power fails (AWUPF)
  std::vector<std::string> ablations;  // what the mount does without, as a spec names it

  std::string label;  // UTF-8
  std::string uuid;
  std::string writer;  // the kernel or tool that wrote the superblock
  std::vector<std::string> features;
  uint64_t block_count = 0;  // of 4 KiB, as the superblock says
  uint32_t segment_count = 0;
  uint32_t main_segments = 0;
  uint32_t free_segments = 0;

  uint64_t checkpoint_version = 0;
  uint32_t checkpoint_pack = 0;  // 0 or 1
  uint32_t checkpoint_flags = 0;
  bool clean = false;  // it had been unmounted properly
};

/// What one part of a mounted volume takes of memory; all in bytes.
struct MemoryPartReport {
  std::string name;                  // as `gofs info` has it: "page_cache"
  bool of_ssd = false;               // a virtual SSD's own, and not the file system's
  uint64_t device_bytes = 0;         // allocated in the backend's memory
  uint64_t host_bytes = 0;           // on a GPU: allocated in pinned memory of the host
  std::optional<uint64_t> in_use{};  // of these, where it can be told

  uint64_t bytes() const { return device_bytes + host_bytes; }
};

/// Metadata blocks of one kind in the page cache.
struct CachedPages {
  std::string kind;          // "nodes", "directories", "nat" or "others"
  uint64_t bytes = 0;        // in memory
  uint64_t dirty_bytes = 0;  // of these: newer than the disk
};

/// What a mounted volume takes of memory. The parts have all that the backend has allocated.
struct MemoryReport {
  std::vector<MemoryPartReport> parts;
  std::vector<CachedPages> cached;
  uint64_t filesystem_bytes = 0;  // sum of the parts, but for the virtual SSD's
  uint64_t ssd_bytes = 0;         // sum of these
};

/// As readdir gives it. The name may hold any bytes but '/' and NUL.
struct DirectoryEntry {
  uint64_t ino = 0;
  uint8_t type = kTypeUnknown;  // FileType
  std::string name;
};

/// A file that Volume::batch_create() makes. `data` lives until it returns.
struct NewFile {
  std::string name;
  const void* data = nullptr;
  uint64_t bytes = 0;
};

/// Memory that was registered; see Volume::register_buffer.
struct BufferHandle {
  uint64_t id = 0;
};

class GOFS_API Volume {
 public:
  /// `spec` is an image, a block device, ram:SIZE or vfio:ADDRESS, or several with a `+` between
  /// them for a volume that is striped over them. Options follow a `?`, as in
  /// "vol.img?model=990pro&queues=16"; `gofs --help` shows more of them. Errors name what is
  /// missing, malformed or not supported.
  static Expected<Volume> mount(const std::string& spec, const MountOptions& options = {});

  /// A volume that a server has mounted (gofsd), at its socket. Calls are made as the user that
  /// this process is to Linux, and go through memory that both share. batch_create() makes its
  /// files by calls, some at once; register_buffer() is for memory of the server's GPU. unmount()
  /// is sync(), and this program goes.
  ///
  /// Kernels have a channel of their own, which the first device() opens: of a server on the same
  /// GPU, where MPS runs both at the same time (gofsd --mps), or of one on the CPU.
  /// They share descriptors with the host. device() is false where there is none, and warnings()
  /// says why. Such kernels are linked with libgofs_device, or with libgofs_client, which can do
  /// nothing else and takes fewer registers. A range of more than 256 KiB is several calls, between
  /// which others may read and write, and each file of a batch has calls of its own (gofs.cuh).
  ///
  /// Where the server ends, the next call attaches to the one that comes instead, or fails with
  /// ENOTCONN. Descriptors of before answer ESTALE; so does a call that was under way and may have
  /// had an effect, and the next sync() after changes that may be lost. What fsync() or sync() had
  /// made durable is there. Kernels get -ESTALE from then on; device() has another handle.
  static Expected<Volume> attach(const std::string& path, const AttachOptions& options = {});

  Volume(Volume&&) noexcept;
  Volume& operator=(Volume&&) noexcept;
  /// unmount(), whose errors are lost here.
  ~Volume();

  /// For kernels: valid until unmount(), or until this object is destroyed; a volume that is moved
  /// keeps it.
  VolumeHandle device() const;

  /// Flags as in <fcntl.h>; EROFS for what would write where the volume is mounted for reading.
  /// `mode`: the permissions of a file that is made (O_CREAT); there is no umask.
  Expected<int> open(const std::string& path, uint32_t flags = 0, uint32_t mode = 0666);
  /// Opens the file or directory of which identity() said `file`, whatever its name is by now, as
  /// open_by_handle_at(2) does, also after the volume was mounted again. The directories above it
  /// are not asked, so this is for those who may search all of them: EPERM for other users than 0
  /// (MountOptions::uid, of an attached volume the user of the program). Permissions and flags of
  /// the inode itself count as by open(). A file without names is found while it is open.
  ///
  /// ESTALE: no inode of this volume has the number and the generation, since the file has been
  /// removed, also where its number is another's now, or it is another volume's. EINVAL for flags
  /// that make or empty files; ELOOP for a symbolic link, unless it is O_PATH.
  Expected<int> open_inode(const Identity& file, uint32_t flags = 0);
  /// EBADF where it is not open. What was written is not made durable by this.
  Expected<void> close(int fd);
  /// Bytes read: fewer than asked at the end of the file only. An error says nothing of how much
  /// of the buffer was filled before it.
  Expected<uint64_t> pread(int fd, void* buffer, uint64_t bytes, uint64_t offset);
  /// pread at the descriptor's position, which moves on by what the file has left (at most
  /// `bytes`), whether or not all of it can be read.
  Expected<uint64_t> read(int fd, void* buffer, uint64_t bytes);
  /// Reads ranges of open files straight into memory of the host or of the GPU, in the order of a
  /// stream: after what the program has put into `stream` before, and before what it puts there
  /// later. Returns when that is begun; null is CUDA's default stream. Into memory of the host that
  /// CUDA has not given, and where no GPU of this program has mounted the volume, the ranges are
  /// read before this returns; memory of a GPU is then copied through the host's, unless it is
  /// registered and the server reaches it. The descriptors stay open, and the memory is used for
  /// nothing else, until the stream has come by. EFAULT for memory that is null, of another GPU
  /// than the volume's, or that ends before its range does; EOPNOTSUPP while `stream` is captured.
  Expected<RangeCall> read_ranges(const std::vector<IoRange>& ranges,
                                  CUstream_st* stream = nullptr);
  Expected<Stat> stat(const std::string& path);
  Expected<Stat> lstat(const std::string& path);
  Expected<Stat> fstat(int fd);
  /// What open_inode() finds the file by, which stays the same until it is removed. It is durable
  /// as the file is: after sync(), or fsync() of the file. Of any descriptor, also of O_PATH, by
  /// any user. EBADF where it is not open.
  Expected<Identity> identity(int fd);
  /// stat(), open() and close() of many files: of each what that call would answer, in their order.
  /// On a GPU some thousands are made by one launch, so they take no longer than a few calls do;
  /// of one file that is given twice either may be first.
  std::vector<Expected<Stat>> stat_many(const std::vector<std::string>& paths);
  std::vector<Expected<int>> open_many(const std::vector<std::string>& paths, uint32_t flags = 0,
                                       uint32_t mode = 0666);
  std::vector<Expected<void>> close_many(const std::vector<int>& fds);
  /// `mode` is made of R_OK, W_OK and X_OK, or F_OK.
  Expected<void> access(const std::string& path, int mode);
  Expected<std::string> readlink(const std::string& path);
  /// The value of an extended attribute; `name` has its prefix, as in "user.colour". ENODATA where
  /// there is no such attribute or the caller may not know of it. ACLs come in the form of Linux's
  /// system calls.
  Expected<std::string> getxattr(const std::string& path, const std::string& name);
  Expected<std::string> lgetxattr(const std::string& path, const std::string& name);
  Expected<std::string> fgetxattr(int fd, const std::string& name);
  /// The names of all extended attributes that the caller may know of, with their prefixes.
  Expected<std::vector<std::string>> listxattr(const std::string& path);
  Expected<std::vector<std::string>> llistxattr(const std::string& path);
  Expected<std::vector<std::string>> flistxattr(int fd);
  /// A descriptor for readdir; close() closes it.
  Expected<int> opendir(const std::string& path);
  /// The next entries, without `.` and `..`; none at the end. If something in the directory had to
  /// be left out, one call returns an error before the end, after all other entries: EUCLEAN where
  /// entries cannot be, or the errno of what could not be read. warnings() has the rest of it.
  Expected<std::vector<DirectoryEntry>> readdir(int fd);
  /// The same into memory of the caller, which has room for `count` entries: EINVAL for fewer than
  /// kReaddirEntriesMin. How many; 0 means the end.
  Expected<uint64_t> readdir(int fd, NamedEntry* entries, uint64_t count);
  /// `whence` is SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA or SEEK_HOLE.
  Expected<uint64_t> lseek(int fd, int64_t offset, int whence);
  Expected<FilesystemStat> statfs();

  // Changes of a volume that is mounted for writing; else EROFS. Others see them at once; they are
  // durable after sync() or unmount(). EPERM and EACCES as chmod(2) and its like have them.

  /// Bytes written: fewer than asked only where the volume is full or the SSD fails in between. A
  /// descriptor that was opened to append writes at the end.
  Expected<uint64_t> pwrite(int fd, const void* buffer, uint64_t bytes, uint64_t offset);
  /// As read_ranges(): writes the memory's bytes, as they are when the stream comes to them. Ranges
  /// are written side by side: of those that overlap either may win, and parts of one that a
  /// descriptor appends come in any order.
  Expected<RangeCall> write_ranges(const std::vector<IoRange>& ranges,
                                   CUstream_st* stream = nullptr);
  /// pwrite at the descriptor's position, which moves on by `bytes`. Portions of more than 1 MiB of
  /// several threads may mix on a GPU.
  Expected<uint64_t> write(int fd, const void* buffer, uint64_t bytes);
  /// Makes many files of the directory `path` with their contents, by all warps of the backend. For
  /// each file 0 or why it could not be made: EEXIST, EINVAL (a name with a slash), ENOSPC, ... One
  /// that was made is there with all that it holds, also after a crash, up to some 3.6 MiB.
  Expected<std::vector<int>> batch_create(const std::string& path,
                                          const std::vector<NewFile>& files, uint32_t mode = 0666);
  /// `mode`: its permissions; there is no umask.
  Expected<void> mkdir(const std::string& path, uint32_t mode = 0777);
  /// A FIFO, a socket, a device or an empty file, as the type in `mode` says.
  Expected<void> mknod(const std::string& path, uint32_t mode, uint32_t major = 0,
                       uint32_t minor = 0);
  Expected<void> symlink(const std::string& target, const std::string& path);
  /// `path` becomes another name of `existing`.
  Expected<void> link(const std::string& existing, const std::string& path);
  /// Removes a name of a file that is not a directory. A file without names is freed, at the latest
  /// when it is closed last.
  Expected<void> unlink(const std::string& path);
  /// Removes an empty directory.
  Expected<void> rmdir(const std::string& path);
  /// Renames `from` to `to`, which replaces what had that name. `flags`: 0, kRenameNoReplace
  /// (EEXIST if something has it) or kRenameExchange (each gets the other's name).
  Expected<void> rename(const std::string& from, const std::string& to, uint32_t flags = 0);
  /// The file gets shorter, or longer with zeros.
  Expected<void> truncate(const std::string& path, uint64_t size);
  Expected<void> ftruncate(int fd, uint64_t size);
  /// fallocate(2), with the modes of <fcntl.h>: 0 or FALLOC_FL_KEEP_SIZE reserve what the range
  /// lacks, FALLOC_FL_ZERO_RANGE (with or without KEEP_SIZE) also makes zeros of it, and
  /// FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE makes a hole. EOPNOTSUPP for others; ENOSPC before
  /// anything is changed.
  Expected<void> fallocate(int fd, uint32_t mode, uint64_t offset, uint64_t bytes);
  /// copy_file_range(2), within the volume: bytes that were copied, fewer than asked only at the
  /// end of `from` and where the volume is full. Data passes through no memory of the caller's;
  /// holes are copied as zeros. EINVAL where parts of one file overlap; EBADF where `to` was opened
  /// to append.
  Expected<uint64_t> copy_file_range(int from, uint64_t from_offset, int to, uint64_t to_offset,
                                     uint64_t bytes);
  /// The permissions of `mode`; an access list follows them.
  Expected<void> chmod(const std::string& path, uint32_t mode);
  Expected<void> fchmod(int fd, uint32_t mode);
  /// kKeepId: as it is.
  Expected<void> chown(const std::string& path, uint32_t uid, uint32_t gid);
  Expected<void> lchown(const std::string& path, uint32_t uid, uint32_t gid);
  Expected<void> fchown(int fd, uint32_t uid, uint32_t gid);
  /// Nanoseconds may be kTimeNow, or kTimeOmit: as it is.
  Expected<void> utimens(const std::string& path, const TimeStamp& accessed,
                         const TimeStamp& modified);
  Expected<void> lutimens(const std::string& path, const TimeStamp& accessed,
                          const TimeStamp& modified);
  Expected<void> futimens(int fd, const TimeStamp& accessed, const TimeStamp& modified);
  /// `flags`: 0, kXattrCreate (EEXIST) or kXattrReplace (ENODATA). ENOSPC also where the inode has
  /// no more room. Access lists come in the form of Linux's system calls; EINVAL for one that
  /// contradicts itself.
  Expected<void> setxattr(const std::string& path, const std::string& name,
                          const std::string& value, uint32_t flags = 0);
  Expected<void> lsetxattr(const std::string& path, const std::string& name,
                           const std::string& value, uint32_t flags = 0);
  Expected<void> fsetxattr(int fd, const std::string& name, const std::string& value,
                           uint32_t flags = 0);
  Expected<void> removexattr(const std::string& path, const std::string& name);
  Expected<void> lremovexattr(const std::string& path, const std::string& name);
  Expected<void> fremovexattr(int fd, const std::string& name);

  /// Empties segments that are only partly in use, so that what is written later is contiguous, and
  /// makes that durable. Others may use the volume meanwhile. EUCLEAN where the volume contradicts
  /// itself: the segments that are sound are emptied all the same.
  Expected<CleaningReport> collect_garbage(const CleaningOptions& options = {});

  /// What all cleaning since the volume was mounted has done: by collect_garbage(), by writes that
  /// found too little room, and while nothing else happened. The segments that are free are those
  /// of now; how many were free before is not reported. All 0 where the volume is mounted for
  /// reading. Counts go on while others write.
  CleaningReport cleaning_totals() const;

  /// How exact time stamps are.
  ClockReport clock() const;

  /// Makes all changes that have returned durable, in the image as well. After an error they are
  /// still in memory, and the image is as it was after the last success. On a GPU kernels that want
  /// to change the volume wait while what has changed of the SSD's memory is copied, for which the
  /// host needs as much memory; where it has too little they wait until the image is written.
  Expected<void> sync();
  /// The same for one file: its contents, its attributes and, if it is new, its name; of a
  /// directory, as sync(). Also for descriptors that are open for reading.
  Expected<void> fsync(int fd);
  /// fsync(), but for the times of the last change where they are all that has changed in the
  /// inode.
  Expected<void> fdatasync(int fd);
  /// sync(), and releases the image, after the calls under way: those of other threads that begin
  /// later return ENODEV. Kernels that use the volume must have ended. Where the GPU has no room to
  /// try it, the volume stays mounted, and the error says so. Where the image lacks what is in a
  /// GPU's memory, since the host's disk is full, calls return ENODEV, the image is not released
  /// yet, and another unmount() writes it.
  Expected<void> unmount();

  VolumeInfo info() const;
  /// What the volume takes of memory, and how much of that is in use now: counted when it is asked
  /// for, by going through the tables, which takes some milliseconds. What others change meanwhile
  /// may be counted or not. Buffers of kernels are not the volume's; an image of the CPU backend is
  /// a file and no memory.
  Expected<MemoryReport> memory();
  /// What the volume has done since it was mounted, and how it is now. The counts are those of the
  /// file system: of a volume that a server has mounted, of all its clients. Takes some
  /// microseconds for each thousand segments.
  Expected<Statistics> statistics();
  /// What a call would say of `path` that has just failed with `code`, an errno: of those that
  /// answer with numbers alone, batch_create() and the ranges of a RangeCall. Here are words for
  /// what ran full, what is damaged and what the SSD said.
  Error explain(int code, const std::string& path);
  /// What the user should know although nothing failed: an unclean volume, damage that was met.
  /// Sentences; those that were returned before are not repeated.
  std::vector<std::string> warnings();

  /// Lets what moves the volume's data, an SSD or a server, reach memory of the program by itself,
  /// in calls that begin after this has returned, until unregister_buffer(). The program does not
  /// free it before. Where it cannot be reached its data is copied, as that of other memory is.
  ///
  /// A virtual SSD reaches whatever a kernel reaches, so that this only keeps a record. A physical
  /// one reaches memory of the host at multiples of 4 KiB, but for what cudaHostAlloc gave, and
  /// memory of a GPU at multiples of 64 KiB where the volume has its queues there
  /// (queues=gpu&data=gpu): the first 255 buffers of a mount.
  ///
  /// A server (attach()) reaches memory of the GPU that it runs on, 63 buffers of a client at a
  /// time: where one allocation has all of the buffer, of cudaMalloc, or mapped and exportable as a
  /// POSIX descriptor, and the server is of the program's user. Kernels, read_ranges() and
  /// write_ranges() then move its bytes without a copy. The server keeps the allocation meanwhile;
  /// after a call that gave ETIMEDOUT its bytes may still change, until the server ends.
  /// EINVAL for no bytes; EEXIST where a part of them is registered.
  Expected<BufferHandle> register_buffer(void* memory, uint64_t bytes);
  /// No call may use the buffer any more. EINVAL where it is not registered.
  Expected<void> unregister_buffer(BufferHandle buffer);

 private:
  friend struct host::VolumeAccess;

  GOFS_INTERNAL explicit Volume(std::unique_ptr<host::AnyVolume> state);

  std::unique_ptr<host::AnyVolume> state_;
};

}  // namespace gofs
