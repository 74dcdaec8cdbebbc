// SPDX-License-Identifier: Apache-2.0
//
// The types, flags and limits of GoFS, for kernels (gofs.cuh) and for host programs (volume.hpp)
// alike: C++17 or later, with or without CUDA, and nothing but the standard library.
//
// Structs are plain data: trivially copyable, with the same layout on the host and on the device,
// so that a kernel may leave them in memory that the host reads. Bytes that pad them have no
// meaning. Numbers of flags are those of Linux, so that programs may use <fcntl.h> as well.
#pragma once

#include <cerrno>
#include <cstdint>

/// Code for both sides where nvcc compiles it, host code elsewhere.
#if defined(__CUDACC__)
#define GOFS_HD __host__ __device__
#else
#define GOFS_HD
#endif

namespace gofs {

// --- Handles. ------------------------------------------------------------------------------------

/// A mounted volume, as kernels know it: Volume::device() gives it, and it is passed to kernels by
/// value. Valid from then on until the volume is unmounted or destroyed, also in several kernels at
/// once; it may be copied. A null handle refers to no volume, and must not be passed to a call.
///
/// What it refers to is internal: the file system's state in memory of the GPU, or a channel to the
/// process that has mounted the volume (Volume::attach).
struct VolumeHandle {
  const void* state = nullptr;  // neither read nor written by programs

  GOFS_HD constexpr explicit operator bool() const { return state != nullptr; }
  friend GOFS_HD constexpr bool operator==(VolumeHandle a, VolumeHandle b) {
    return a.state == b.state;
  }
  friend GOFS_HD constexpr bool operator!=(VolumeHandle a, VolumeHandle b) { return !(a == b); }
};

/// An asynchronous read or write under way, as pread_async() and pwrite_async() give it. It is to
/// be waited for exactly once, by wait(), from the same kind of group; its buffer belongs to the
/// SSD until then. One with a negative `result` is not: nothing was started.
struct Ticket {
  int64_t result;      // bytes that will have been moved if all goes well, or a negative errno;
                       // wait() has the final result
  uint32_t operation;  // this and the next are GoFS's own
  uint32_t generation;
  uint32_t queue;

  /// An `operation` that says that no command is under way.
  static constexpr uint32_t kNoOperation = 0xffffffffu;
};

// --- What calls take and give. -------------------------------------------------------------------

/// A point in time, UTC. In what utimens() takes, `nanoseconds` may be kTimeNow or kTimeOmit.
struct TimeStamp {
  int64_t seconds;       // since 1970; negative before
  uint32_t nanoseconds;  // below 1,000,000,000
};

/// Nanoseconds of a time stamp that stand for the present, and for the one that there is: UTIME_NOW
/// and UTIME_OMIT of Linux. The seconds beside them are not looked at.
inline constexpr uint32_t kTimeNow = 0x3fffffff;
inline constexpr uint32_t kTimeOmit = 0x3ffffffe;

/// A user or group that chown() leaves as it is.
inline constexpr uint32_t kKeepId = 0xffffffff;

/// As struct stat, with F2FS's extras. What calls that had returned before have changed is in it;
/// of what others change at the same time there may be a part.
struct Stat {
  uint64_t ino;         // number of the inode; unique in the volume
  uint64_t size_bytes;  // of a symbolic link: of its target
  uint64_t blocks_512;  // st_blocks: 512-byte units in use, without the inode itself
  uint32_t mode;        // type and permissions, as in <sys/stat.h>
  uint32_t links;       // names; 0: it goes when it is closed
  uint32_t uid;
  uint32_t gid;
  uint32_t device_major;  // of character and block devices; else 0
  uint32_t device_minor;
  TimeStamp accessed;
  TimeStamp modified;
  TimeStamp changed;
  TimeStamp created;    // 0 where the volume does not keep it
  uint32_t flags;       // i_flags: FS_*_FL of <linux/fs.h>
  uint32_t advise;      // i_advise of F2FS
  uint32_t project_id;  // of quotas; 0 where the volume does not keep it
  uint32_t generation;  // tells a file from one that had the same number before; i_generation
};

/// What a file is known by as long as there is one, whatever its names are: Volume::identity()
/// gives it, and Volume::open_inode() takes it, in another mount and another process too. No two
/// files of any volumes have the same, unless one volume is a copy of the other.
struct Identity {
  uint8_t uuid[16];     // of the volume, as its superblock has it
  uint64_t ino;         // number of the inode
  uint32_t generation;  // as Stat has it
  uint32_t unused;      // 0; not looked at
};

/// As struct statvfs, with the numbers that Linux gives. Each is right at some moment of the call.
struct FilesystemStat {
  uint64_t block_bytes;       // what all counts of blocks are in
  uint64_t blocks;            // from segment 0 on: what users cannot have counts as used
  uint64_t blocks_free;       // that users can have
  uint64_t blocks_available;  // that can be written: fewer where the SSD has no room for all
  uint64_t files;             // inodes that could exist
  uint64_t files_free;        // inodes that could still be made
  uint64_t files_used;
  uint32_t name_bytes_max;  // kNameBytesMax
};

/// What calls do, as they are counted. Calls that take several parts, and calls of a batch, are one
/// each; what is started now and waited for later counts when it is started. A long read or write
/// of a host program, and one that ends before all is there, may be made by several.
enum class CallKind : uint32_t {
  kOpen,
  kClose,
  kRead,
  kWrite,
  kSync,  // fsync, fdatasync, sync
  kStat,  // also access, readlink, statfs, and reading extended attributes
  kReaddir,
  kName,       // mkdir, mknod, symlink, link, unlink, rmdir, rename; and making a batch of files
  kAttribute,  // permissions, owners, times, extended attributes
  kResize,     // truncate, fallocate
};
inline constexpr uint32_t kCallKinds = 10;
/// NVMe commands, but for those of the admin queue.
enum class CommandKind : uint32_t { kRead, kWrite, kFlush, kDeallocate };
inline constexpr uint32_t kCommandKinds = 4;
/// What is looked up in memory first. A miss of a page reads it from the SSD; the others are names
/// in their directories, and whole paths.
enum class CacheKind : uint32_t { kNodes, kDirectories, kNat, kOthers, kNames, kPaths };
inline constexpr uint32_t kCacheKinds = 6;
/// Of a segment of the main area, in F2FS's words: nothing lies in it; the same, and it can be used
/// after the next checkpoint; some blocks lie in it; all its blocks are in use.
enum class SegmentState : uint32_t { kFree, kPrefree, kDirty, kValid };
inline constexpr uint32_t kSegmentStates = 4;

struct OutcomeCounts {
  uint64_t succeeded;
  uint64_t failed;
};
struct LookupCounts {
  uint64_t hits;
  uint64_t misses;
};

/// What a volume has done since it was mounted, by whomever, and how it is now. Counts only grow.
/// Others go on meanwhile: what they do at the moment may be counted or not.
struct Statistics {
  OutcomeCounts calls[kCallKinds];        // by CallKind; of kernels and of host programs
  uint64_t bytes_read;                    // by calls
  uint64_t bytes_written;                 // by calls
  OutcomeCounts commands[kCommandKinds];  // by CommandKind; that have completed, on all SSDs
  uint64_t ssd_bytes_read;                // by commands, also of the file system for itself
  uint64_t ssd_bytes_written;             // by commands
  uint64_t command_timeouts;              // commands that did not complete in time
  uint64_t commands_under_way;            // now
  LookupCounts lookups[kCacheKinds];      // by CacheKind
  uint64_t cache_pages;                   // blocks of metadata that the page cache has room for
  uint64_t dirty_pages;                   // of these: newer than the disk, now
  uint64_t dirty_node_pages;              // of these: nodes
  uint64_t segments[kSegmentStates];      // by SegmentState; 0 where it is mounted for reading
  uint64_t checkpoints;                   // that were made
  uint64_t cleaned_segments;              // that cleaning has emptied
  uint64_t moved_blocks;                  // by cleaning
};

/// The names of these kinds, for people and programs.
inline constexpr const char* kCallKindNames[kCallKinds] = {
    "open", "close", "read", "write", "sync", "stat", "readdir", "name", "attribute", "resize"};
inline constexpr const char* kCommandKindNames[kCommandKinds] = {"read", "write", "flush",
                                                                 "deallocate"};
inline constexpr const char* kCacheKindNames[kCacheKinds] = {"nodes",  "directories", "nat",
                                                             "others", "names",       "paths"};
inline constexpr const char* kSegmentStateNames[kSegmentStates] = {"free", "prefree", "dirty",
                                                                   "valid"};

/// One part of a read or write in several parts, as struct iovec. What is written from is not
/// changed.
struct IoVector {
  void* base;  // may be anything where `bytes` is 0
  uint64_t bytes;
};

/// A range of an open file, and the program's memory for its bytes.
struct IoRange {
  int fd;
  void* memory;
  uint64_t bytes;
  uint64_t offset;
};

/// Types of directory entries, as F2FS has them on the disk. (Not the DT_* of <dirent.h>.)
enum FileType : uint8_t {
  kTypeUnknown = 0,
  kTypeRegular = 1,
  kTypeDirectory = 2,
  kTypeCharDevice = 3,
  kTypeBlockDevice = 4,
  kTypeFifo = 5,
  kTypeSocket = 6,
  kTypeSymlink = 7,
};

/// Bytes of a name in a directory, without a NUL: NAME_MAX of Linux. -ENAMETOOLONG beyond.
inline constexpr uint32_t kNameBytesMax = 255;

/// One entry of a directory, as readdir() gives it. A name may hold any bytes but '/' and NUL.
struct NamedEntry {
  uint32_t ino;
  uint8_t type;  // FileType
  uint8_t unused;
  uint16_t name_length;          // in bytes, without the NUL
  char name[kNameBytesMax + 1];  // ends with a NUL
};

/// One file of an open batch, as batch_file() gives it. The size is that of the moment at which the
/// batch was opened, and what the batch itself has written since.
struct BatchFile {
  uint64_t size_bytes;
  uint32_t ino;      // 0: there is no such regular file; `error` says why
  int32_t error;     // of this file alone: 0 or a negative errno
  uint32_t created;  // 1: by batch_create(), as the batch was opened
  uint32_t unused;
};

// --- Flags of open(). ----------------------------------------------------------------------------
// One of the first three, with any of the others. Those of Linux that are not here are ignored
// (O_NONBLOCK, O_DIRECT, O_CLOEXEC, ...); -EOPNOTSUPP for O_TMPFILE, -EINVAL for what Linux does
// not have.

inline constexpr uint32_t kOpenReadOnly = 0;
inline constexpr uint32_t kOpenWriteOnly = 1;
inline constexpr uint32_t kOpenReadWrite = 2;
/// The bits of those three: O_ACCMODE.
inline constexpr uint32_t kOpenAccessMask = 3;
/// Makes a regular file where there is none.
inline constexpr uint32_t kOpenCreate = 0100;
/// With kOpenCreate: -EEXIST where there is something, a dangling symbolic link too.
inline constexpr uint32_t kOpenExclusive = 0200;
/// Makes the file empty, if it is a regular one.
inline constexpr uint32_t kOpenTruncate = 01000;
/// Every write goes to the end of the file, wherever that is then.
inline constexpr uint32_t kOpenAppend = 02000;
/// Every write is durable when it returns, as if fdatasync() had followed.
inline constexpr uint32_t kOpenDataSync = 010000;
/// -ENOTDIR for what is not a directory.
inline constexpr uint32_t kOpenDirectory = 0200000;
/// -ELOOP for a symbolic link; with kOpenPath, a descriptor of the link itself.
inline constexpr uint32_t kOpenNoFollow = 0400000;
/// As kOpenDataSync, with fsync().
inline constexpr uint32_t kOpenSync = 04000000 | kOpenDataSync;
/// -EPERM for those who neither own the file nor are user 0. GoFS sets no times of access anyway.
inline constexpr uint32_t kOpenNoAtime = 01000000;
/// A descriptor for fstat() and close() alone, which needs no permissions of the file itself.
inline constexpr uint32_t kOpenPath = 010000000;

// --- Flags of other calls. -----------------------------------------------------------------------

/// Where lseek() starts from. The last two look for the next data, or the next hole, at or behind
/// the offset: -ENXIO where there is none.
enum Whence : int { kSeekSet = 0, kSeekCurrent = 1, kSeekEnd = 2, kSeekData = 3, kSeekHole = 4 };

/// What access() asks for; 0 asks whether the file is there. As X_OK, W_OK and R_OK.
enum AccessBits : uint32_t { kMayExecute = 1, kMayWrite = 2, kMayRead = 4 };

/// rename(): -EEXIST where something has the new name; each gets the other's name (-ENOENT where
/// there is no other). Not both.
inline constexpr uint32_t kRenameNoReplace = 1;
inline constexpr uint32_t kRenameExchange = 2;

/// fallocate(): the size of the file stays as it is; the range becomes a hole (only with the
/// first); the range becomes zeros (with or without the first). -EOPNOTSUPP for other modes.
inline constexpr uint32_t kFallocateKeepSize = 0x01;
inline constexpr uint32_t kFallocatePunchHole = 0x02;
inline constexpr uint32_t kFallocateZeroRange = 0x10;

/// setxattr(): -EEXIST where there is such an attribute; -ENODATA where there is none.
inline constexpr uint32_t kXattrCreate = 1;
inline constexpr uint32_t kXattrReplace = 2;

/// Bits of MountOptions::ablations: mechanisms that a mounted volume can do without, to see what
/// each of them brings, and to find out in which one a fault is. All calls have the same results,
/// and what is on the disk is as sound. A spec has them by name (`?ablate=inode-lock,one-log`).
enum Ablation : uint32_t {
  /// `inode-lock`: a file is locked as a whole, shared by readers, exclusively by one writer;
  /// without it ranges and single blocks are.
  kAblateRangeLocks = 1u << 0,
  /// `one-log`: data of files goes to the log for it, as of all processors, instead of a segment of
  /// each.
  kAblateOpenSegments = 1u << 1,
  /// `single-blocks`: a command for each block of file data, also where neighbours are contiguous.
  kAblateMergedBlocks = 1u << 2,
  /// `single-doorbells`: a doorbell for each command, where it is one for all that are ready.
  kAblateSharedDoorbells = 1u << 3,
  /// `single-walks`: the lanes of a warp go down the tree of nodes one after the other, instead of
  /// level by level together.
  kAblateLevelWalks = 1u << 4,
  /// `no-maps`: open files have no block maps, so each block is found through the nodes.
  kAblateBlockMaps = 1u << 5,
};

// --- Limits. -------------------------------------------------------------------------------------

/// Bytes of a block, the unit in which files lie on the SSD. Data at multiples of it, in memory at
/// multiples of 4 bytes, is moved without a copy.
inline constexpr uint32_t kBlockBytes = 4096;
/// Bytes of a path, with its NUL: PATH_MAX of Linux. -ENAMETOOLONG beyond.
inline constexpr uint32_t kPathBytesMax = 4096;
/// Symbolic links that a path may lead over. -ELOOP beyond.
inline constexpr uint32_t kSymlinksMax = 40;
/// Offsets and lengths are at most this, as off_t and ssize_t. -EINVAL beyond. The longest file is
/// shorter: -EFBIG for what would be behind its end.
inline constexpr uint64_t kOffsetMax = 0x7fffffffffffffff;
/// Parts that one call may have: IOV_MAX of Linux. -EINVAL beyond.
inline constexpr int kIoVectorsMax = 1024;
/// Bytes of a request with memory that is not global (gofs.cuh) that are moved in one go: a longer
/// request is several, between which others may read and write.
inline constexpr uint64_t kBounceBytesMax = 64 << 10;
/// Entries that readdir() has room for, at least. -EINVAL below.
inline constexpr uint32_t kReaddirEntriesMin = 32;
/// Batches of a volume that are open at once. -EMFILE beyond; -ENOMEM for more files than all
/// batches together have room for.
inline constexpr uint32_t kBatchesMax = 64;
/// Bytes of an extended attribute's name, with its prefix and without a NUL. -ERANGE beyond.
inline constexpr uint32_t kXattrNameBytesMax = 255;
/// Bytes of its value: XATTR_SIZE_MAX of Linux. -E2BIG beyond; -ENOSPC for more than the inode has
/// room for, which is less.
inline constexpr uint64_t kXattrValueBytesMax = 65536;
/// Bytes that the names of all extended attributes of a file fit in, and so does each value.
inline constexpr uint32_t kXattrListBytesMax = 32768;
/// Supplementary groups of a mount (MountOptions::groups). EINVAL beyond.
inline constexpr uint32_t kGroupsMax = 64;

// --- Errors. -------------------------------------------------------------------------------------

// clang-format off: a table
/// What a call's negative result means, in a few words, for printf() in a kernel too: those of
/// strerror() for every errno that calls of GoFS return. "Success" for what is not negative, and
/// "Unknown error" for all else. The text lives as long as the program.
GOFS_HD constexpr const char* error_text(int64_t result) {
  if (result >= 0) return "Success";
  if (result < -4095) return "Unknown error";
  switch (static_cast<int>(-result)) {
    case EPERM:
      return "Operation not permitted";
    case ENOENT:
      return "No such file or directory";
    case EINTR:
      return "Interrupted system call";
    case EIO:
      return "Input/output error";
    case ENXIO:
      return "No such device or address";
    case E2BIG:
      return "Argument list too long";
    case EBADF:
      return "Bad file descriptor";
    case EAGAIN:
      return "Resource temporarily unavailable";
    case ENOMEM:
      return "Cannot allocate memory";
    case EACCES:
      return "Permission denied";
    case EFAULT:
      return "Bad address";
    case EBUSY:
      return "Device or resource busy";
    case EEXIST:
      return "File exists";
    case EXDEV:
      return "Invalid cross-device link";
    case ENODEV:
      return "No such device";
    case ENOTDIR:
      return "Not a directory";
    case EISDIR:
      return "Is a directory";
    case EINVAL:
      return "Invalid argument";
    case ENFILE:
      return "Too many open files in system";
    case EMFILE:
      return "Too many open files";
    case EFBIG:
      return "File too large";
    case ENOSPC:
      return "No space left on device";
    case ESPIPE:
      return "Illegal seek";
    case EROFS:
      return "Read-only file system";
    case EMLINK:
      return "Too many links";
    case ERANGE:
      return "Numerical result out of range";
    case ENAMETOOLONG:
      return "File name too long";
    case ENOSYS:
      return "Function not implemented";
    case ENOTEMPTY:
      return "Directory not empty";
    case ELOOP:
      return "Too many levels of symbolic links";
    case ENODATA:
      return "No data available";
    case EPROTO:
      return "Protocol error";
    case EOVERFLOW:
      return "Value too large for defined data type";
    case EOPNOTSUPP:
      return "Operation not supported";
    case ENOBUFS:
      return "No buffer space available";
    case ENOTCONN:
      return "Transport endpoint is not connected";
    case ETIMEDOUT:
      return "Connection timed out";
    case ECONNREFUSED:
      return "Connection refused";
    case ESTALE:
      return "Stale file handle";
    case EUCLEAN:
      return "Structure needs cleaning";
    case EDQUOT:
      return "Disk quota exceeded";
    default:
      return "Unknown error";
  }
}
// clang-format on

}  // namespace gofs
