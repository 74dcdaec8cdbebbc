// SPDX-License-Identifier: Apache-2.0
//
// How much of the memory that a mounted file system has is in use. There are no counts of that:
// whoever asks goes through the tables. Others go on meanwhile, so what they change may be counted
// or not.
#pragma once

#include "simt/memory_part.h"
#include "vfs/batch_names.h"

namespace gofs::vfs {

/// All in bytes.
struct MemoryUse {
  /// Of pages in memory, by f2fs::PageKind.
  struct Pages {
    uint64_t valid;
    uint64_t dirty;  // of these: newer than the disk
  };
  Pages pages[f2fs::kPageKinds];
  uint64_t parts[simt::kMemoryParts];  // by simt::MemoryPart
  uint32_t told;                       // a bit for each part of which it is known; the others are 0
};

namespace detail {

/// Notes what all lanes together have counted. Collective.
GOFS_HD inline void tell_use(simt::AnyWarp auto warp, MemoryUse& use, simt::MemoryPart part,
                             uint64_t bytes) {
  const auto index = static_cast<uint32_t>(part);
  use.parts[index] += simt::reduce_add(warp, bytes);
  use.told |= 1u << index;
}

GOFS_HD inline void count_pages(simt::AnyWarp auto warp, const f2fs::PageCache& cache,
                                MemoryUse& use) {
  MemoryUse::Pages pages[f2fs::kPageKinds]{};
  for (uint32_t frame = warp.thread_rank(); frame < cache.frame_count(); frame += warp.size()) {
    const uint32_t state = simt::load_relaxed(cache.state(frame));
    if ((state & f2fs::kFrameValid) == 0) continue;
    const uint64_t key =
        simt::load_relaxed(cache.sets[frame / f2fs::kWays].keys[frame % f2fs::kWays]);
    const auto kind = static_cast<uint32_t>(f2fs::kind_of(key));
    if (kind >= f2fs::kPageKinds) continue;
    pages[kind].valid += kBlockBytes;
    if ((state & f2fs::kFrameDirty) != 0) pages[kind].dirty += kBlockBytes;
  }
  uint64_t all = 0;
  for (uint32_t kind = 0; kind < f2fs::kPageKinds; ++kind) {
    use.pages[kind] = {simt::reduce_add(warp, pages[kind].valid),
                       simt::reduce_add(warp, pages[kind].dirty)};
    all += pages[kind].valid;
  }
  tell_use(warp, use, simt::MemoryPart::kPageCache, all);
}

template <typename Table>
GOFS_HD void count_names(simt::AnyWarp auto warp, const Table& table, MemoryUse& use) {
  uint64_t bytes = 0;
  for (uint32_t i = warp.thread_rank(); i <= table.mask; i += warp.size()) {
    if (simt::load_relaxed(table.entries[i].value) != 0) bytes += sizeof(typename Table::Entry);
  }
  tell_use(warp, use, simt::MemoryPart::kNames, bytes);
}

/// Open files, and the inodes behind them.
GOFS_HD inline void count_open_files(simt::AnyWarp auto warp, Filesystem& fs, MemoryUse& use) {
  const uint32_t places = fs.open_inode_set_count * kOpenInodeWays;
  uint64_t inodes = 0;
  for (uint32_t i = warp.thread_rank(); i < places; i += warp.size()) {
    if (simt::load_relaxed(fs.open_inodes[i].ino) != 0) ++inodes;
  }
  tell_use(warp, use, simt::MemoryPart::kOpenInodes,
           inodes * (sizeof(OpenInode) - sizeof(RangeLock)));
  tell_use(warp, use, simt::MemoryPart::kRangeLocks,
           inodes * sizeof(RangeLock) +
               ring_bytes_used(*fs.range_rings, warp.thread_rank(), warp.size()));
  uint64_t descriptors = 0;
  for (uint32_t i = warp.thread_rank(); i < fs.descriptor_count; i += warp.size()) {
    if (simt::load_relaxed(fs.descriptors[i].state) == kDescriptorOpen) ++descriptors;
  }
  tell_use(warp, use, simt::MemoryPart::kDescriptors, descriptors * sizeof(Descriptor));
  tell_use(warp, use, simt::MemoryPart::kBlockMaps,
           warp.thread_rank() == 0 ? fs.volume.maps.bytes_used() : 0);
}

/// What is taken for batches. By one lane.
GOFS_HD inline uint64_t batch_bytes_used(BatchTable& table) {
  constexpr uint64_t kFileBytes = sizeof(BatchEntry) + kNameSlotsPerFile * sizeof(uint32_t);
  constexpr uint64_t kBatchBytes = sizeof(Batch) + kBatchPartsMax * sizeof(BatchPart);
  uint64_t bytes = 0;
  lock_table(table.lock);
  for (uint32_t i = 0; i < kBatchesMax; ++i) {
    const Batch& batch = table.batches[i];
    if (batch.taken != 0) bytes += kBatchBytes + batch.count * kFileBytes;
  }
  simt::unlock(table.lock);
  return bytes;
}

/// What is taken for a moment.
GOFS_HD inline void count_borrowed(simt::AnyWarp auto warp, const Filesystem& fs, MemoryUse& use) {
  uint64_t operations = 0;
  for (uint32_t i = warp.thread_rank(); i < fs.operation_count; i += warp.size()) {
    if (simt::load_relaxed(fs.operations[i].taken) != 0) operations += sizeof(AsyncOperation);
  }
  tell_use(warp, use, simt::MemoryPart::kOperations, operations);
  uint64_t spares = 0;
  for (uint32_t i = warp.thread_rank(); i < fs.pool.count; i += warp.size()) {
    if (simt::load_relaxed(fs.pool.locks[i]) != 0) spares += kBlockBytes;
  }
  tell_use(warp, use, simt::MemoryPart::kSpareBlocks, spares);
  tell_use(warp, use, simt::MemoryPart::kBounces, bounce_bytes_used(warp, fs.bounces));
  uint64_t records = 0;
  for (uint32_t i = warp.thread_rank(); i < fs.records.count; i += warp.size()) {
    const RecordBuffer& buffer = fs.records.buffers[i];
    if (simt::load_relaxed(buffer.owner) != 0) {
      records += RecordBuffer::memory_for(buffer.bytes) + buffer.entry_count * sizeof(uint64_t);
    }
  }
  tell_use(warp, use, simt::MemoryPart::kRecords, records);
}

}  // namespace detail

/// Counts what is in use now. Collective, uniform; `use` is the same on all lanes.
GOFS_NOINLINE GOFS_HD inline void count_memory(simt::AnyWarp auto warp, Filesystem& fs,
                                               MemoryUse& use) {
  use = MemoryUse{};
  const bool leader = warp.thread_rank() == 0;
  detail::count_pages(warp, fs.volume.cache, use);
  detail::count_names(warp, fs.dentries, use);
  detail::count_names(warp, fs.paths, use);
  detail::count_open_files(warp, fs, use);
  detail::count_borrowed(warp, fs, use);
  detail::tell_use(warp, use, simt::MemoryPart::kBatches,
                   leader ? detail::batch_bytes_used(*fs.batches) : 0);
  // Who writes makes the next checkpoint beside the last one.
  const uint64_t checkpoints = fs.writer != nullptr ? 2 : 1;
  detail::tell_use(
      warp, use, simt::MemoryPart::kCheckpoint,
      leader ? checkpoints * (1 + uint64_t{fs.volume.geometry.cp_payload}) * kBlockBytes : 0);
}

}  // namespace gofs::vfs
