// SPDX-License-Identifier: Apache-2.0
//
// GoFS for host programs in C (C99 and later) and for what stands on C, such as bindings for other
// languages: the calls of gofs/volume.hpp with plain types.
//
//   gofs_mount_options_t options = {.struct_bytes = sizeof(options), .writable = 1};
//   gofs_volume* volume;
//   if (gofs_mount("vol.img", &options, &volume) < 0) { puts(gofs_last_error()); return 1; }
//   int fd = gofs_open(volume, "/data/a", O_RDWR | O_CREAT, 0644);
//   int64_t got = gofs_pread(volume, fd, buffer, sizeof(buffer), 0);
//   gofs_close(volume, fd);
//   if (gofs_unmount(volume) < 0) puts(gofs_last_error());
//   gofs_volume_free(volume);
//
// Results: 0, a descriptor or a count; below 0 a negative errno, of which gofs_last_error() has the
// sentence. Besides the errors that POSIX has for a call, each may fail with -EIO (the SSD),
// -EUCLEAN (the volume contradicts itself), -ETIMEDOUT (a lock or a command), -EBUSY or -ENOMEM
// (others have all of what it needs for a while), and -ENODEV once the volume is unmounted. -EINVAL
// for a pointer that is null and must not be; -EFAULT for a null buffer of `bytes` above 0.
//
// Threads: all calls may be made by several threads at once, also with the same volume, but for
// gofs_volume_free(), which ends it. No thread may be cancelled (pthread_cancel) in a call.
//
// fork(): a volume belongs to the process that has mounted it. In a child of fork() calls with it
// fail at once with -ENODEV and words that say so, and gofs_volume_free() returns without waiting;
// nothing of it reaches the image. Those that only report know the spec alone, count 0, and warn of
// that. A child may mount volumes of its own, once the parent has released the image.
//
// What becomes of a volume where a GPU or the host's storage fails is said in gofs/volume.hpp.
//
// Text and values that a call gives go to `buffer`, which has room for `bytes`; the result is their
// length. Where `bytes` is 0 they go nowhere, `buffer` may be null, and only the length is
// returned. -ERANGE where there is too little room. Text ends with a NUL, for which there must be
// room and which its length does not count.
//
// Structs that begin with `struct_bytes` may grow at their end in later versions. Set it to the
// struct's size, and what is not used to 0. A program that was compiled with an older version has a
// shorter one; what it does not have is as if it were 0. One that was compiled with a newer version
// may be refused: -E2BIG where what this library does not know is not 0. All other structs, and all
// numbers, stay as they are.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gofs/export.h"
#include "gofs/version.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- The library. --------------------------------------------------------------------------------

/// The version of the library that is linked, as "1.2.3"; GOFS_VERSION_MAJOR and the like are that
/// of this header. The text lives as long as the program.
GOFS_API const char* gofs_version(void);

/// Why the last call of this thread that failed has failed: a sentence without a newline of its
/// own, which names the path or structure at fault; the middle of one of more than 4,095 bytes is
/// left out. A path has the bytes that it was passed with, which need not be UTF-8. "" where none
/// has failed. Valid until this thread's next call of GoFS.
GOFS_API const char* gofs_last_error(void);

/// The negative errno of that call; 0 where none has failed.
GOFS_API int gofs_last_errno(void);

/// What a negative result means in a few words, as strerror(). "Success" for what is not negative.
/// The text lives as long as the program.
GOFS_API const char* gofs_error_text(int64_t result);

// --- Volumes. ------------------------------------------------------------------------------------

/// A mounted volume.
typedef struct gofs_volume gofs_volume;

/// How to mount. What a spec says after its `?` wins over what is said here; 0 and null mean the
/// default.
typedef struct gofs_mount_options_t {
  uint64_t struct_bytes;   // sizeof(gofs_mount_options_t)
  const char* backend;     // "auto": a GPU if one answers, else the CPU; "cpu"; "cuda"
  uint32_t writable;       // not 0: mounted for writing, and the image is locked for other mounts
  uint32_t uid;            // whose permissions all calls have, on the device as well
  uint32_t gid;            //
  uint32_t group_count;    // of `groups`: at most GOFS_GROUPS_MAX, -EINVAL beyond
  const uint32_t* groups;  // supplementary ones
  uint64_t cache_bytes;    // memory for metadata blocks; by default 64 MiB, and on a GPU a 64th of
                           // a virtual SSD up to 1 GiB
  uint32_t queues;         // NVMe I/O queue pairs; 16
  uint32_t queue_depth;    // entries in each; 1,024, of a physical SSD 128
  uint64_t command_timeout_ns;    // until an NVMe command counts as lost; 5 s
  uint64_t lock_timeout_ns;       // until the lock of a file or directory is given up; 30 s
  uint32_t descriptors;           // files open at once; 66,560, about 1 KB each
  uint32_t clean_percent;         // of the segments: a write cleans where fewer are free; 5
  uint64_t checkpoint_period_ns;  // a checkpoint after each, if anything has changed; none
  uint64_t clock_period_ns;       // how often the clock of time stamps is set; 10 minutes
  uint32_t idle_clean_percent;    // of the segments: where fewer are free and the SSD has nothing
                                  // to do, some are cleaned; none
  uint32_t no_discard;            // not 0: the SSD is not told which segments are free
  uint32_t log_structured;        // not 0: as Linux's mode=lfs, all that is written goes to new
                                  // blocks
  uint32_t ablations;             // enum Ablation of gofs/types.h: mechanisms to do without
} gofs_mount_options_t;

#define GOFS_GROUPS_MAX 64

/// Mounts `spec`: an image, a block device, ram:SIZE or vfio:ADDRESS, or several with a `+` between
/// them for a volume that is striped over them, with options behind a `?`. `options` may be null.
/// `*volume` is null after an error. -EBUSY where the image is mounted already and either mount is
/// for writing.
GOFS_API int gofs_mount(const char* spec, const gofs_mount_options_t* options,
                        gofs_volume** volume);

/// The volume that the server (gofsd) at the socket `path` has mounted, with calls as the user that
/// this process is to Linux: Volume::attach() of gofs/volume.hpp. `*volume` is null after an error.
/// Kernels cannot use it.
GOFS_API int gofs_attach(const char* path, gofs_volume** volume);

/// Makes all changes durable and releases the image, after the calls under way: those of other
/// threads that begin later return -ENODEV. Kernels that use the volume must have ended. Where the
/// GPU has no room to try it, the volume stays mounted, and the error says so. Where the image
/// lacks what is in a GPU's memory, since the host's disk is full, the image is not released yet,
/// and another gofs_unmount() writes it.
GOFS_API int gofs_unmount(gofs_volume* volume);

/// Unmounts the volume if it is still mounted, ignoring errors, and frees it. No other call may use
/// it meanwhile or afterwards. Null is ignored.
GOFS_API void gofs_volume_free(gofs_volume* volume);

/// Makes all changes that have returned durable, in the image as well. After an error they are
/// still in memory, and the image is as it was after the last success.
GOFS_API int gofs_sync(gofs_volume* volume);

/// What functions of device code (gofs/gofs_device.h) take as their volume; VolumeHandle::state in
/// C++. Valid in kernels until gofs_unmount() or gofs_volume_free(). Null after an error: -ENODEV
/// where the volume is not mounted on a GPU, or not any more; -EIO where the GPU has failed.
GOFS_API const void* gofs_volume_device_pointer(const gofs_volume* volume);

/// Calls `each` with every sentence that the user should know although nothing failed (an unclean
/// volume, damage that was met), but for those that were passed before. Returns how many. A
/// sentence is valid until `each` returns, which may make other calls of GoFS, and neither throws
/// nor jumps.
GOFS_API int64_t gofs_warnings(gofs_volume* volume,
                               void (*each)(void* context, const char* sentence), void* context);

// --- What is mounted. ----------------------------------------------------------------------------

enum gofs_info_text_t {
  GOFS_INFO_SPEC = 0,
  GOFS_INFO_BACKEND = 1,         // "cpu" or "cuda"
  GOFS_INFO_BACKEND_DETAIL = 2,  // the processor or GPU
  GOFS_INFO_SSD = 3,             // what the volume lies on, and its timing model
  GOFS_INFO_MODE = 4,            // of a mount for writing, as Linux names it: "adaptive" or "lfs"
  GOFS_INFO_ABLATIONS = 5,       // what the mount does without: "no-maps,one-log"
  GOFS_INFO_LABEL = 6,           // UTF-8
  GOFS_INFO_UUID = 7,
  GOFS_INFO_WRITER = 8,    // the kernel or tool that wrote the superblock
  GOFS_INFO_FEATURES = 9,  // as mkfs.f2fs has them: "extra_attr,inode_checksum"
};

enum gofs_info_number_t {
  GOFS_INFO_SSD_BYTES = 0,
  GOFS_INFO_LBA_BYTES = 1,
  GOFS_INFO_QUEUES = 2,
  GOFS_INFO_QUEUE_DEPTH = 3,
  GOFS_INFO_TRANSFER_BYTES_MAX = 4,
  GOFS_INFO_BLOCK_COUNT = 5,  // of 4 KiB, as the superblock says
  GOFS_INFO_SEGMENT_COUNT = 6,
  GOFS_INFO_MAIN_SEGMENTS = 7,
  GOFS_INFO_FREE_SEGMENTS = 8,  // when it was mounted
  GOFS_INFO_CHECKPOINT_VERSION = 9,
  GOFS_INFO_CHECKPOINT_PACK = 10,  // 0 or 1
  GOFS_INFO_CHECKPOINT_FLAGS = 11,
  GOFS_INFO_CLEAN = 12,  // 1: it had been unmounted properly
};

/// What was found when the volume was mounted. `what`: gofs_info_text_t; -EINVAL for others.
GOFS_API int64_t gofs_info_text(const gofs_volume* volume, int what, char* buffer, uint64_t bytes);

/// `what`: gofs_info_number_t; -EINVAL for others.
GOFS_API int gofs_info_number(const gofs_volume* volume, int what, uint64_t* number);

/// As struct statvfs, with the numbers that Linux gives. Each is right at some moment of the call.
typedef struct gofs_filesystem_stat_t {
  uint64_t block_bytes;       // what all counts of blocks are in
  uint64_t blocks;            // what users cannot have counts as used
  uint64_t blocks_free;       // that users can have
  uint64_t blocks_available;  // that can be written: fewer where the SSD has no room for all
  uint64_t files;             // inodes that could exist
  uint64_t files_free;        // inodes that could still be made
  uint64_t files_used;
  uint32_t name_bytes_max;
} gofs_filesystem_stat_t;

GOFS_API int gofs_statfs(gofs_volume* volume, gofs_filesystem_stat_t* stat);

/// How the clock of a mounted volume, by which time stamps are set, goes with the host's.
typedef struct gofs_clock_report_t {
  uint64_t struct_bytes;  // sizeof(gofs_clock_report_t), set by the caller
  uint64_t looks;         // at both clocks, so far; 0 where the volume is read only
  uint64_t error_ns;      // of the last look, at most
  int64_t late_ns;        // how late time stamps were by then; below 0: early
  double drift_ppm;       // how much faster the host's clock goes, which is made up for
} gofs_clock_report_t;

GOFS_API int gofs_clock(const gofs_volume* volume, gofs_clock_report_t* report);

/// What one part of a mounted volume takes of memory.
typedef struct gofs_memory_part_t {
  char name[32];          // as `gofs info` has it: "page_cache"
  uint64_t device_bytes;  // allocated in the backend's memory
  uint64_t host_bytes;    // on a GPU: allocated in pinned memory of the host
  int64_t in_use_bytes;   // of both; below 0 where it cannot be told
  uint64_t of_ssd;        // 1: a virtual SSD's own, and not the file system's
} gofs_memory_part_t;

/// Fills `parts`, which has room for `count`, with all parts that fit. How many there are, whatever
/// `count` is. What is in use is counted now, which takes some milliseconds.
GOFS_API int64_t gofs_memory(gofs_volume* volume, gofs_memory_part_t* parts, uint64_t count);

/// Metadata blocks of one kind in the page cache.
typedef struct gofs_cached_pages_t {
  char kind[32];         // "nodes", "directories", "nat" or "others"
  uint64_t bytes;        // in memory
  uint64_t dirty_bytes;  // of these: newer than the disk
} gofs_cached_pages_t;

/// As gofs_memory(), of what the page cache holds.
GOFS_API int64_t gofs_cached_pages(gofs_volume* volume, gofs_cached_pages_t* kinds, uint64_t count);

/// What calls do, as they are counted: CallKind of gofs/types.h.
enum {
  GOFS_CALL_OPEN,
  GOFS_CALL_CLOSE,
  GOFS_CALL_READ,
  GOFS_CALL_WRITE,
  GOFS_CALL_SYNC,
  GOFS_CALL_STAT,
  GOFS_CALL_READDIR,
  GOFS_CALL_NAME,
  GOFS_CALL_ATTRIBUTE,
  GOFS_CALL_RESIZE,
  GOFS_CALL_KINDS
};
/// NVMe commands, but for those of the admin queue.
enum {
  GOFS_COMMAND_READ,
  GOFS_COMMAND_WRITE,
  GOFS_COMMAND_FLUSH,
  GOFS_COMMAND_DEALLOCATE,
  GOFS_COMMAND_KINDS
};
/// What is looked up in memory first: CacheKind of gofs/types.h.
enum {
  GOFS_CACHE_NODES,
  GOFS_CACHE_DIRECTORIES,
  GOFS_CACHE_NAT,
  GOFS_CACHE_OTHERS,
  GOFS_CACHE_NAMES,
  GOFS_CACHE_PATHS,
  GOFS_CACHE_KINDS
};
/// Of a segment of the main area: SegmentState of gofs/types.h.
enum {
  GOFS_SEGMENTS_FREE,
  GOFS_SEGMENTS_PREFREE,
  GOFS_SEGMENTS_DIRTY,
  GOFS_SEGMENTS_VALID,
  GOFS_SEGMENT_STATES
};

typedef struct gofs_outcome_counts_t {
  uint64_t succeeded;
  uint64_t failed;
} gofs_outcome_counts_t;

typedef struct gofs_lookup_counts_t {
  uint64_t hits;
  uint64_t misses;
} gofs_lookup_counts_t;

/// What a volume has done since it was mounted, by whomever, and how it is now. Counts only grow.
typedef struct gofs_statistics_t {
  uint64_t struct_bytes;  // sizeof(gofs_statistics_t), set by the caller
  gofs_outcome_counts_t calls[GOFS_CALL_KINDS];
  uint64_t bytes_read;                                 // by calls
  uint64_t bytes_written;                              // by calls
  gofs_outcome_counts_t commands[GOFS_COMMAND_KINDS];  // that have completed, on all SSDs
  uint64_t ssd_bytes_read;      // by commands, also of the file system for itself
  uint64_t ssd_bytes_written;   // by commands
  uint64_t command_timeouts;    // commands that did not complete in time
  uint64_t commands_under_way;  // now
  gofs_lookup_counts_t lookups[GOFS_CACHE_KINDS];
  uint64_t cache_pages;                    // blocks of metadata that the page cache has room for
  uint64_t dirty_pages;                    // of these: newer than the disk, now
  uint64_t dirty_node_pages;               // of these: nodes
  uint64_t segments[GOFS_SEGMENT_STATES];  // 0 where it is mounted for reading
  uint64_t checkpoints;                    // that were made
  uint64_t cleaned_segments;               // that cleaning has emptied
  uint64_t moved_blocks;                   // by cleaning
} gofs_statistics_t;

GOFS_API int gofs_statistics(gofs_volume* volume, gofs_statistics_t* statistics);

// --- Cleaning. -----------------------------------------------------------------------------------

/// What gofs_collect_garbage() may do.
typedef struct gofs_cleaning_options_t {
  uint64_t struct_bytes;    // sizeof(gofs_cleaning_options_t)
  uint32_t segments_max;    // that are emptied; 0: all that are worth it
  uint32_t emptiest_first;  // 0: old ones, which are not likely to empty by themselves
} gofs_cleaning_options_t;

/// What it has done.
typedef struct gofs_cleaning_report_t {
  uint64_t struct_bytes;  // sizeof(gofs_cleaning_report_t), set by the caller
  uint64_t segments;      // that were emptied
  uint64_t data_blocks;   // that were moved: of files,
  uint64_t directory_blocks;
  uint64_t node_blocks;
  uint64_t left_blocks;  // in segments that could not be emptied
  uint64_t free_segments_before;
  uint64_t free_segments;
} gofs_cleaning_report_t;

/// Empties segments that are only partly in use, so that what is written later is contiguous, and
/// makes that durable. Others may use the volume meanwhile. -EUCLEAN where the volume contradicts
/// itself: the segments that are sound are emptied all the same. `options` and `report` may be
/// null.
GOFS_API int gofs_collect_garbage(gofs_volume* volume, const gofs_cleaning_options_t* options,
                                  gofs_cleaning_report_t* report);

/// What all cleaning since the volume was mounted has done, whatever started it.
/// `free_segments_before` is 0; all is 0 where the volume is mounted for reading.
GOFS_API int gofs_cleaning_totals(const gofs_volume* volume, gofs_cleaning_report_t* report);

// --- Memory that an SSD or a server reaches. -----------------------------------------------------

/// Lets an SSD, or a server on the same GPU, reach memory until gofs_unregister_buffer(), as
/// Volume::register_buffer() of gofs/volume.hpp, which says for which memory that is possible.
/// -EINVAL for no bytes; -EEXIST where a part of them is registered.
GOFS_API int gofs_register_buffer(gofs_volume* volume, void* memory, uint64_t bytes, uint64_t* id);
/// No call may use the buffer any more. -EINVAL where it is not registered.
GOFS_API int gofs_unregister_buffer(gofs_volume* volume, uint64_t id);

// --- Files. --------------------------------------------------------------------------------------
// Paths end with a NUL and begin with a slash. Changes want a volume that is mounted for writing,
// else -EROFS. Other threads and kernels see them at once; they are durable after a sync.

/// Flags of gofs_open(): those of <fcntl.h>, which may be used as well. Others of Linux are ignored
/// (O_NONBLOCK, O_DIRECT, O_CLOEXEC, ...); -EOPNOTSUPP for O_TMPFILE, -EINVAL for what Linux has
/// not.
enum gofs_open_flags_t {
  GOFS_OPEN_READ_ONLY = 0,
  GOFS_OPEN_WRITE_ONLY = 1,
  GOFS_OPEN_READ_WRITE = 2,
  GOFS_OPEN_CREATE = 0100,
  GOFS_OPEN_EXCLUSIVE = 0200,
  GOFS_OPEN_TRUNCATE = 01000,
  GOFS_OPEN_APPEND = 02000,
  GOFS_OPEN_DATA_SYNC = 010000,
  GOFS_OPEN_DIRECTORY = 0200000,
  GOFS_OPEN_NO_FOLLOW = 0400000,
  GOFS_OPEN_NO_ATIME = 01000000,
  GOFS_OPEN_SYNC = 04010000,
  GOFS_OPEN_PATH = 010000000,
};

/// A descriptor, which kernels may use as well; it is not one of the operating system. `mode`: the
/// permissions of a file that is made; there is no umask.
GOFS_API int gofs_open(gofs_volume* volume, const char* path, uint32_t flags, uint32_t mode);

/// What a file is known by as long as there is one, whatever its names are, in another mount and
/// another process too. No two files of any volumes have the same, unless one volume is a copy of
/// the other.
typedef struct gofs_identity_t {
  uint8_t uuid[16];     // of the volume
  uint64_t ino;         // number of the inode
  uint32_t generation;  // as gofs_stat_t has it
  uint32_t unused;      // 0; not looked at
} gofs_identity_t;

/// The identity of what `fd` has open, which stays the same until it is removed. It is durable as
/// the file is: after a sync. Of any descriptor, by any user. `*identity` stays as it is after an
/// error.
GOFS_API int gofs_identity(gofs_volume* volume, int fd, gofs_identity_t* identity);
/// Opens a file or a directory by it, as open_by_handle_at(2) does. The directories above it are
/// not asked: -EPERM for other users than 0. Permissions of the file itself count as by
/// gofs_open(). A file without names is found while it is open.
///
/// -ESTALE: no inode of this volume has the number and the generation, since the file has been
/// removed, or it is another volume's. -EINVAL for flags that make or empty files; -ELOOP for a
/// symbolic link, unless it is GOFS_OPEN_PATH.
GOFS_API int gofs_open_inode(gofs_volume* volume, const gofs_identity_t* file, uint32_t flags);

/// -EBADF where it is not open. What was written is not made durable by this.
GOFS_API int gofs_close(gofs_volume* volume, int fd);

/// Bytes read: fewer than asked at the end of the file only. `buffer` is memory of the host.
GOFS_API int64_t gofs_pread(gofs_volume* volume, int fd, void* buffer, uint64_t bytes,
                            uint64_t offset);
/// The same at the descriptor's position, which moves on by what the file has left (at most
/// `bytes`), whether or not all of it can be read.
GOFS_API int64_t gofs_read(gofs_volume* volume, int fd, void* buffer, uint64_t bytes);
/// Bytes written: fewer than asked only where the volume is full or the SSD fails in between. A
/// descriptor that was opened to append writes at the end.
GOFS_API int64_t gofs_pwrite(gofs_volume* volume, int fd, const void* buffer, uint64_t bytes,
                             uint64_t offset);
/// The same at the descriptor's position, which moves on by `bytes`. Portions of more than 1 MiB of
/// several threads may mix on a GPU.
GOFS_API int64_t gofs_write(gofs_volume* volume, int fd, const void* buffer, uint64_t bytes);

enum gofs_whence_t {
  GOFS_SEEK_SET = 0,
  GOFS_SEEK_CURRENT = 1,
  GOFS_SEEK_END = 2,
  GOFS_SEEK_DATA = 3,  // the next data at or behind the offset: -ENXIO where there is none
  GOFS_SEEK_HOLE = 4,
};
/// The new position, in bytes. `whence`: gofs_whence_t, or as <unistd.h> has it.
GOFS_API int64_t gofs_lseek(gofs_volume* volume, int fd, int64_t offset, int whence);

/// The file gets shorter, or longer with zeros.
GOFS_API int gofs_truncate(gofs_volume* volume, const char* path, uint64_t size_bytes);
GOFS_API int gofs_ftruncate(gofs_volume* volume, int fd, uint64_t size_bytes);

enum gofs_fallocate_mode_t {
  GOFS_FALLOCATE_KEEP_SIZE = 0x01,
  GOFS_FALLOCATE_PUNCH_HOLE = 0x02,  // only with GOFS_FALLOCATE_KEEP_SIZE
  GOFS_FALLOCATE_ZERO_RANGE = 0x10,  // with it or without
};
/// fallocate(2). `mode`: 0 or gofs_fallocate_mode_t; -EOPNOTSUPP for others. -ENOSPC before
/// anything is changed.
GOFS_API int gofs_fallocate(gofs_volume* volume, int fd, uint32_t mode, uint64_t offset,
                            uint64_t bytes);

/// copy_file_range(2), within the volume: bytes that were copied, fewer than asked only at the end
/// of `from` and where the volume is full. Holes are copied as zeros. -EINVAL where parts of one
/// file overlap; -EBADF where `to` was opened to append.
GOFS_API int64_t gofs_copy_file_range(gofs_volume* volume, int from, uint64_t from_offset, int to,
                                      uint64_t to_offset, uint64_t bytes);

/// Makes one file durable: its contents, its attributes and, if it is new, its name; of a
/// directory, as gofs_sync(). Also for descriptors that are open for reading.
GOFS_API int gofs_fsync(gofs_volume* volume, int fd);
/// The same, but for the times of the last change where they are all that has changed in the inode.
GOFS_API int gofs_fdatasync(gofs_volume* volume, int fd);

// --- Names. --------------------------------------------------------------------------------------

/// What gofs_access() asks for; 0 asks whether the file is there. As X_OK, W_OK and R_OK.
enum gofs_access_bits_t { GOFS_MAY_EXECUTE = 1, GOFS_MAY_WRITE = 2, GOFS_MAY_READ = 4 };
/// 0, or why access is denied: -EACCES, -EROFS, -ENOENT. `mode`: any of gofs_access_bits_t
/// together.
GOFS_API int gofs_access(gofs_volume* volume, const char* path, int mode);
/// `mode`: its permissions; there is no umask.
GOFS_API int gofs_mkdir(gofs_volume* volume, const char* path, uint32_t mode);
/// A FIFO, a socket, a device or an empty file, as the type in `mode` says.
GOFS_API int gofs_mknod(gofs_volume* volume, const char* path, uint32_t mode, uint32_t device_major,
                        uint32_t device_minor);
GOFS_API int gofs_symlink(gofs_volume* volume, const char* target, const char* path);
/// The target of a symbolic link, as text: at most 4,095 bytes.
GOFS_API int64_t gofs_readlink(gofs_volume* volume, const char* path, char* buffer, uint64_t bytes);
/// `path` becomes another name of `existing`.
GOFS_API int gofs_link(gofs_volume* volume, const char* existing, const char* path);
/// Removes a name of a file that is not a directory. A file without names is freed, at the latest
/// when it is closed last.
GOFS_API int gofs_unlink(gofs_volume* volume, const char* path);
/// Removes an empty directory.
GOFS_API int gofs_rmdir(gofs_volume* volume, const char* path);

enum gofs_rename_flags_t {
  GOFS_RENAME_NO_REPLACE = 1,  // -EEXIST if something has the new name
  GOFS_RENAME_EXCHANGE = 2,    // each gets the other's name
};
/// Renames `from` to `to`, which replaces what had that name. `flags`: 0 or one of
/// gofs_rename_flags_t.
GOFS_API int gofs_rename(gofs_volume* volume, const char* from, const char* to, uint32_t flags);

/// A file that gofs_batch_create() makes.
typedef struct gofs_new_file_t {
  const char* name;  // in the directory
  const void* data;
  uint64_t bytes;
} gofs_new_file_t;

/// Makes `count` files of the directory `path` with their contents, by all warps of the backend.
/// How many were made. `errors`, which may be null, has for each file 0 or why it could not be
/// made: -EEXIST, -EINVAL (a name with a slash), -ENOSPC, ... One that was made is there with all
/// that it holds, also after a crash, up to some 3.6 MiB. Below 0: of more than 16,384 files, or 64
/// MiB, the first may have been made all the same.
GOFS_API int64_t gofs_batch_create(gofs_volume* volume, const char* path,
                                   const gofs_new_file_t* files, uint64_t count, uint32_t mode,
                                   int* errors);

// --- Directories. --------------------------------------------------------------------------------

/// Types of entries, as F2FS has them on the disk. (Not the DT_* of <dirent.h>.)
enum gofs_file_type_t {
  GOFS_TYPE_UNKNOWN = 0,
  GOFS_TYPE_REGULAR = 1,
  GOFS_TYPE_DIRECTORY = 2,
  GOFS_TYPE_CHAR_DEVICE = 3,
  GOFS_TYPE_BLOCK_DEVICE = 4,
  GOFS_TYPE_FIFO = 5,
  GOFS_TYPE_SOCKET = 6,
  GOFS_TYPE_SYMLINK = 7,
};

#define GOFS_NAME_BYTES_MAX 255

/// One entry of a directory. A name may hold any bytes but '/' and NUL.
typedef struct gofs_directory_entry_t {
  uint32_t ino;
  uint8_t type;  // gofs_file_type_t
  uint8_t unused;
  uint16_t name_length;                // in bytes, without the NUL
  char name[GOFS_NAME_BYTES_MAX + 1];  // ends with a NUL
} gofs_directory_entry_t;

/// `count` of gofs_readdir() at least.
#define GOFS_READDIR_ENTRIES_MIN 32

/// A descriptor for gofs_readdir(); gofs_close() closes it.
GOFS_API int gofs_opendir(gofs_volume* volume, const char* path);
/// The next entries, without `.` and `..`, to `entries`, which has room for `count`: -EINVAL for
/// fewer than GOFS_READDIR_ENTRIES_MIN. How many; 0 means the end. If something in the directory
/// had to be left out, one call returns an error before the end, after all other entries.
GOFS_API int64_t gofs_readdir(gofs_volume* volume, int fd, gofs_directory_entry_t* entries,
                              uint64_t count);

// --- Attributes. ---------------------------------------------------------------------------------

/// A point in time, UTC.
typedef struct gofs_time_stamp_t {
  int64_t seconds;       // since 1970; negative before
  uint32_t nanoseconds;  // below 1,000,000,000
} gofs_time_stamp_t;

/// As struct stat, with F2FS's extras.
typedef struct gofs_stat_t {
  uint64_t ino;         // number of the inode; unique in the volume
  uint64_t size_bytes;  // of a symbolic link: of its target
  uint64_t blocks_512;  // st_blocks: 512-byte units in use, without the inode itself
  uint32_t mode;        // type and permissions, as in <sys/stat.h>
  uint32_t links;       // names; 0: it goes when it is closed
  uint32_t uid;
  uint32_t gid;
  uint32_t device_major;  // of character and block devices; else 0
  uint32_t device_minor;
  gofs_time_stamp_t accessed;
  gofs_time_stamp_t modified;
  gofs_time_stamp_t changed;
  gofs_time_stamp_t created;  // 0 where the volume does not keep it
  uint32_t flags;             // FS_*_FL of <linux/fs.h>
  uint32_t advise;            // i_advise of F2FS
  uint32_t project_id;        // of quotas; 0 where the volume does not keep it
  uint32_t generation;        // tells a file from one that had the same number before
} gofs_stat_t;

/// What the inode of a name or descriptor says. `*stat` stays as it is after an error.
GOFS_API int gofs_stat(gofs_volume* volume, const char* path, gofs_stat_t* stat);
/// Of a symbolic link itself.
GOFS_API int gofs_lstat(gofs_volume* volume, const char* path, gofs_stat_t* stat);
GOFS_API int gofs_fstat(gofs_volume* volume, int fd, gofs_stat_t* stat);

/// The permissions of `mode`; an access list follows them.
GOFS_API int gofs_chmod(gofs_volume* volume, const char* path, uint32_t mode);
GOFS_API int gofs_fchmod(gofs_volume* volume, int fd, uint32_t mode);

/// A user or group that is left as it is.
#define GOFS_KEEP_ID UINT32_C(0xffffffff)
/// The owner and the group; -EPERM where the user may not change them.
GOFS_API int gofs_chown(gofs_volume* volume, const char* path, uint32_t uid, uint32_t gid);
GOFS_API int gofs_lchown(gofs_volume* volume, const char* path, uint32_t uid, uint32_t gid);
GOFS_API int gofs_fchown(gofs_volume* volume, int fd, uint32_t uid, uint32_t gid);

/// Nanoseconds that stand for the present, and for the time that there is: UTIME_NOW and
/// UTIME_OMIT.
enum gofs_special_time_t { GOFS_TIME_NOW = 0x3fffffff, GOFS_TIME_OMIT = 0x3ffffffe };
/// Sets the times of the last access (times[0]) and of the last change of the contents (times[1]),
/// as utimensat(2). `times` may be null: both are the present.
GOFS_API int gofs_utimens(gofs_volume* volume, const char* path, const gofs_time_stamp_t times[2]);
GOFS_API int gofs_lutimens(gofs_volume* volume, const char* path, const gofs_time_stamp_t times[2]);
GOFS_API int gofs_futimens(gofs_volume* volume, int fd, const gofs_time_stamp_t times[2]);

// --- Extended attributes. ------------------------------------------------------------------------
// Names have their prefix, as "user.colour". Access lists have the form of Linux's system calls.

/// Length of the attribute's value, which goes to `buffer`. -ENODATA where there is no such
/// attribute or the caller may not know of it.
GOFS_API int64_t gofs_getxattr(gofs_volume* volume, const char* path, const char* name,
                               void* buffer, uint64_t bytes);
GOFS_API int64_t gofs_lgetxattr(gofs_volume* volume, const char* path, const char* name,
                                void* buffer, uint64_t bytes);
GOFS_API int64_t gofs_fgetxattr(gofs_volume* volume, int fd, const char* name, void* buffer,
                                uint64_t bytes);
/// The names of all extended attributes that the caller may know of, each with a NUL behind it: the
/// length of all of them.
GOFS_API int64_t gofs_listxattr(gofs_volume* volume, const char* path, char* buffer,
                                uint64_t bytes);
GOFS_API int64_t gofs_llistxattr(gofs_volume* volume, const char* path, char* buffer,
                                 uint64_t bytes);
GOFS_API int64_t gofs_flistxattr(gofs_volume* volume, int fd, char* buffer, uint64_t bytes);

enum gofs_xattr_flags_t {
  GOFS_XATTR_CREATE = 1,   // -EEXIST where there is such an attribute
  GOFS_XATTR_REPLACE = 2,  // -ENODATA where there is none
};
/// `flags`: 0 or one of gofs_xattr_flags_t. -ENOSPC also where the inode has no more room. -EINVAL
/// for an access list that contradicts itself.
GOFS_API int gofs_setxattr(gofs_volume* volume, const char* path, const char* name,
                           const void* value, uint64_t bytes, uint32_t flags);
GOFS_API int gofs_lsetxattr(gofs_volume* volume, const char* path, const char* name,
                            const void* value, uint64_t bytes, uint32_t flags);
GOFS_API int gofs_fsetxattr(gofs_volume* volume, int fd, const char* name, const void* value,
                            uint64_t bytes, uint32_t flags);
/// -ENODATA where there is no such attribute.
GOFS_API int gofs_removexattr(gofs_volume* volume, const char* path, const char* name);
GOFS_API int gofs_lremovexattr(gofs_volume* volume, const char* path, const char* name);
GOFS_API int gofs_fremovexattr(gofs_volume* volume, int fd, const char* name);

#ifdef __cplusplus
}  // extern "C"
#endif
