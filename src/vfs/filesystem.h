// SPDX-License-Identifier: Apache-2.0
//
// A mounted file system as kernels see it: the F2FS volume and what is known about it in memory.
// Lives in the backend's memory; the host lays it out (layout.h).
#pragma once

#include "f2fs/directory_locks.h"
#include "f2fs/file_maps.h"
#include "f2fs/listing.h"
#include "f2fs/read.h"
#include "f2fs/writer.h"
#include "simt/shared_lock.h"
#include "simt/warp_group.h"
#include "vfs/bounce_pool.h"
#include "vfs/credentials.h"
#include "vfs/descriptor_numbers.h"
#include "vfs/name_cache.h"
#include "vfs/path_readers.h"
#include "vfs/real_clock.h"
#include "vfs/record_pool.h"
#include "vfs/write_plan.h"

namespace gofs::vfs {

/// An inode that is open. Several descriptors share it.
struct alignas(128) OpenInode {
  uint32_t ino;         // 0: free
  uint32_t references;  // descriptors, and writes under way
  uint32_t removed;     // 1: no name leads to it; it goes with the last reference
  uint32_t records;     // the buffer of what is appended to it (record_buffers.h): number + 1
  f2fs::Inode inode;
  f2fs::FileMaps maps;  // `inode.maps`, if it keeps them
  RangeLock lock;
};
static_assert(sizeof(OpenInode) == 512);

inline constexpr uint32_t kOpenInodeWays = 8;

/// Eight places of the table of open inodes, and what is known about the inodes that belong there
/// by their numbers (open_inodes.h).
struct OpenInodeSet {
  uint32_t lock;       // of the inodes that belong here, wherever they are
  uint32_t elsewhere;  // how many of them found this set full
  uint32_t reach;      // places from here on among which these are
  uint32_t closings;   // how often one of them was closed by the last who had it open
};

/// Those who write one of the blocks that share it (block_queue.h).
struct BlockQueue {
  uint32_t next;     // ticket of who comes next; wraps around
  uint32_t serving;  // of whose turn it is
};

/// Who shares a volume: the mount is client 0, others have numbers (caller.h).
inline constexpr uint32_t kMountClient = 0;
inline constexpr uint32_t kClientsMax = 0xfffe;

/// Says of what a client has that it has it: 0 is none.
GOFS_HD constexpr uint32_t owner_of_client(uint32_t client) { return client + 1; }

/// Descriptor states. A descriptor number may be used again at once after close. One that is open
/// is its owner's, with the number of calls that hold it (clients.h) above that.
enum DescriptorState : uint32_t {
  kDescriptorClosed = 0,
  kDescriptorOpen = 1,  // of the mount
  kDescriptorOwner = 0xffff,
  kDescriptorHold = 0x10000,     // one of them
  kDescriptorLeaving = 1u << 31  // closed, but held
};

struct alignas(32) Descriptor {
  uint32_t state;
  uint32_t open_inode;  // index
  uint32_t flags;       // of open()
  uint32_t unused;
  uint64_t position;  // of read() and lseek(); of readdir(): a DirectoryCursor
  uint64_t unused2;
};

/// What ending an asynchronous write needs (async_write.h).
struct PendingWrite {
  uint32_t held;        // number of its blocks (held_blocks.h); f2fs::kNoHeldBlocks: it is a read
  uint32_t open_inode;  // index, of which it is a user
  uint32_t detached;    // its detached range there
  uint32_t flags;       // of the descriptor: whether it is to be durable when it ends
  uint64_t first;       // the file block of its first block
};

/// Where an asynchronous operation reports.
struct alignas(32) AsyncOperation {
  uint32_t taken;
  uint32_t generation;
  uint32_t owner;  // owner_of_client(); 0 before it is the owner's
  uint32_t queue;  // of its ticket
  nvme::Mailbox mailbox;
  PendingWrite write;
};

struct BatchTable;  // batch.h

/// Calls of some processors (call_counts.h).
struct alignas(128) CallCounts {
  OutcomeCounts calls[kCallKinds];
  uint64_t bytes_read;
  uint64_t bytes_written;
};

/// What inodes share by their numbers (inode_lock.h).
struct InodeLock {
  simt::SharedLock users;  // alone who changes the inode; together those who add or remove names
  f2fs::DirectoryLocks entries;  // of these, who makes blocks of a directory, or sets its times
};

/// What the warps of a block or grid tell each other about the read under way (read_together.h), in
/// memory that all of them reach. It needs no first value.
struct SharedRead {
  int error;        // from the start: then nothing is read
  uint64_t bytes;   // that the file has of those asked for
  OpenInode* open;  // null: there is nothing to read, and nothing locked
  RangeHold hold;
  uint64_t failure;  // the first one in the range
};

/// The same of a write (write_request.h).
struct SharedWrite {
  int64_t result;   // a negative errno from the start: nothing is written; in the end, the answer
  uint64_t bytes;   // that the file has room for of those given
  uint64_t offset;  // that of the end, where it appends
  uint64_t settled_before;
  uint64_t begins_to;    // not 0: the first operation prepares the file for a write up to there,
  uint64_t begins_from;  // and from there, or 0, where nothing is to be cleared before it
  WriteHold hold;
  uint64_t failure;  // the first one in the range
  bool in_place;     // over the only block that it writes to
  bool in_inode;     // too little to be shared
};

/// Where the warps of a grid meet in a call.
struct alignas(128) GridMeeting {
  int64_t answer;
  SharedRead read;
  SharedWrite write;
};

inline constexpr uint32_t kGridCalls = 256;

/// Those of a volume (grid_call.h).
struct GridCalls {
  alignas(128) uint64_t users[kGridCalls];  // whose each is, and how many of its blocks have not
                                            // left [V21]
  GridMeeting meetings[kGridCalls];
};

struct Filesystem {
  f2fs::Volume volume;
  f2fs::PagePool pool;
  Credentials credentials;
  DentryTable dentries;
  PathTable paths;

  OpenInode* open_inodes;
  OpenInodeSet* open_inode_sets;
  uint32_t open_inode_set_count;
  RangeRings* range_rings;

  Descriptor* descriptors;
  uint32_t descriptor_count;
  DescriptorNumbers descriptor_numbers;

  AsyncOperation* operations;
  uint32_t operation_count;  // a power of two
  alignas(128) uint32_t operation_cursor;

  f2fs::Writer* writer;         // null: mounted for reading
  RealClock clock;              // of time stamps, where the volume is written to
  int64_t time_granularity_ns;  // time stamps are multiples of this
  BlockQueue* block_queues;     // block_queue.h
  uint32_t block_queue_mask;    // their number - 1, a power of two
  InodeLock* inode_locks;       // inode_lock.h
  uint32_t inode_lock_mask;     // their number - 1, a power of two
  uint32_t name_lock_mask;      // the same of these, at most 65,535
  uint32_t* name_locks;         // inode_lock.h
  uint32_t path_generation;     // of what `paths` knows: names, links and permissions have changed
  uint32_t rename_lock;         // of who moves a directory elsewhere (rename.h)
  PathReaders path_readers;     // where the volume is written to

  BatchTable* batches;
  CallCounts* call_counts;  // simt::kCountPlaces
  GridCalls grids;
  BouncePool bounces;
  RecordPool records;

  uint64_t lock_timeout_ns;  // of range locks and table locks
};

/// Takes a short lock of a table; the holder does no I/O. Called by one lane.
GOFS_HD inline void lock_table(uint32_t& lock) {
  simt::Backoff backoff;
  // Held for a few instructions by a lane that waits for nothing: the wait is bounded by that.
  while (!simt::try_lock(lock)) backoff.pause();
}

}  // namespace gofs::vfs

namespace gofs {

/// The handle of a file system, or of none.
GOFS_HD inline VolumeHandle handle_of(vfs::Filesystem* fs) { return {fs}; }

/// What a handle that is not null leads to.
GOFS_HD inline vfs::Filesystem& operator*(VolumeHandle volume) {
  return *static_cast<vfs::Filesystem*>(const_cast<void*>(volume.state));
}

}  // namespace gofs
