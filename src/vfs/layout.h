// SPDX-License-Identifier: Apache-2.0
//
// Host side: places a file system's tables in a backend's memory. mount fills them, over there.
#pragma once

#include <array>
#include <bit>
#include <vector>

#include "nvme/layout.h"
#include "vfs/ablations.h"
#include "vfs/batch_names.h"
#include "vfs/block_span.h"

namespace gofs::vfs {

struct FilesystemOptions {
  uint32_t cache_pages = 16384;      // metadata blocks in memory; at least 64
  uint32_t pool_pages = 4096;        // spare blocks; at least 32
  uint64_t bounce_bytes = 16 << 20;  // for buffers that are not in global memory; at least 128 KiB
  uint32_t record_buffers = 8;       // of files that records are appended to; at most 32
  uint64_t record_bytes = kRecordBufferBytesMax;  // of each; a power of two, at least 128 KiB
  uint32_t descriptors =
      65'536 + 1024;            // as many as a GPU has threads at a time, and some for others
  uint32_t range_rings = 0;     // 0: as many as suit them (range_rings_for)
  uint32_t operations = 16384;  // asynchronous reads and writes under way
  uint32_t dentry_entries = 65536;
  uint32_t path_entries = 16384;
  uint32_t batch_files = 262144;  // of all open batches together, 40 bytes each
  uint64_t map_bytes = 64 << 20;  // block maps of open files, 1/1024 of the files' size
  uint64_t lock_timeout_ns = 30'000'000'000;
  // Time stamps are multiples of this, as Linux's are of its ticks: what is changed again within
  // one need not say so again.
  int64_t time_granularity_ns = 4'000'000;
  Credentials credentials{};  // user 0
  uint32_t ablations = 0;     // those of Ablation that are about the file system's tables
};

/// Rings for the range locks of so many open files: one for each of some thousand, of which each
/// may be locked by several at a time; of more than that, each 32nd may.
constexpr uint32_t range_rings_for(uint32_t descriptors) {
  constexpr uint32_t kOneForEach = 2048;
  return simt::min(simt::max(descriptors / 32, simt::min(descriptors, kOneForEach)),
                   detail::kRingsMax);
}

/// Sets of places for so many open inodes, three eighths more, so that few find theirs full.
constexpr uint32_t open_inode_sets_for(uint32_t descriptors) {
  const uint64_t places = uint64_t{descriptors} + uint64_t{descriptors} * 3 / 8;
  return static_cast<uint32_t>(simt::divide_up(places, kOpenInodeWays));
}

/// The memory of one file system. Frees it when it goes; nothing uses the file system any more.
class FilesystemMemory {
 public:
  /// `array` names the devices, which need not have been brought up. Throws std::bad_alloc.
  FilesystemMemory(simt::MemorySpace& memory, const nvme::Array& array,
                   const FilesystemOptions& options)
      : own_(memory) {
    using simt::MemoryPart;
    Filesystem fs{};
    fs.volume.array = array;
    fs.volume.array.single_blocks = (options.ablations & kAblateMergedBlocks) != 0 ? 1 : 0;
    nvme::limit_runs(fs.volume.array);
    const uint32_t sets = std::bit_ceil(simt::max(options.cache_pages, 64u)) / f2fs::kWays;
    fs.volume.cache.sets = own_.take<f2fs::FrameSet>(sets, MemoryPart::kPageCache);
    fs.volume.cache.pages =
        own_.take<uint8_t>(uint64_t{sets} * f2fs::kWays * kBlockBytes, MemoryPart::kPageCache);
    fs.volume.cache.set_mask = sets - 1;
    fs.volume.cache.single_walks = (options.ablations & kAblateLevelWalks) != 0 ? 1 : 0;
    fs.volume.cache.dirty_maps = own_.take<uint32_t>(
        uint64_t{f2fs::kPageKinds} * fs.volume.cache.map_words(), MemoryPart::kPageCache);
    fs.volume.cache_counts = own_.take<f2fs::CacheCounts>(simt::kCountPlaces, MemoryPart::kVolume);
    fs.call_counts = own_.take<CallCounts>(simt::kCountPlaces, MemoryPart::kVolume);
    fs.volume.corruptions = own_.take<f2fs::CorruptionLog>(1, MemoryPart::kVolume);
    fs.volume.checkpoint_blocks = own_.take<uint8_t>(
        uint64_t{f2fs::kCheckpointBlocksMax} * kBlockBytes, MemoryPart::kCheckpoint);
    fs.volume.scratch = own_.take<uint8_t>(2 * kBlockBytes, MemoryPart::kVolume);
    fs.pool.count = std::bit_ceil(simt::max(options.pool_pages, 32u));
    fs.pool.pages =
        own_.take<uint8_t>(uint64_t{fs.pool.count} * kBlockBytes, MemoryPart::kSpareBlocks);
    fs.pool.locks = own_.take<uint32_t>(fs.pool.count, MemoryPart::kSpareBlocks);
    fs.bounces = make_bounces(options.bounce_bytes);
    fs.records = make_records(memory, options);
    fs.credentials = options.credentials;
    fs.dentries.mask = std::bit_ceil(simt::max(options.dentry_entries, 1u)) - 1;
    fs.dentries.entries =
        own_.take<DentryTable::Entry>(uint64_t{fs.dentries.mask} + 1, MemoryPart::kNames);
    fs.paths.mask = std::bit_ceil(simt::max(options.path_entries, 1u)) - 1;
    fs.paths.entries = own_.take<PathTable::Entry>(uint64_t{fs.paths.mask} + 1, MemoryPart::kNames);
    fs.descriptor_count = simt::max(options.descriptors, 1u);
    fs.descriptors = own_.take<Descriptor>(fs.descriptor_count, MemoryPart::kDescriptors);
    fs.descriptor_numbers = make_numbers(memory, fs.descriptor_count);
    const uint32_t inode_sets = open_inode_sets_for(fs.descriptor_count);
    fs.open_inodes =
        own_.take<OpenInode>(uint64_t{inode_sets} * kOpenInodeWays, MemoryPart::kOpenInodes);
    memory.count_as(fs.open_inodes, MemoryPart::kRangeLocks,
                    uint64_t{inode_sets} * kOpenInodeWays * sizeof(RangeLock));
    fs.range_rings = make_rings(memory, options.range_rings != 0
                                            ? simt::min(options.range_rings, detail::kRingsMax)
                                            : range_rings_for(fs.descriptor_count));
    if ((options.ablations & kAblateRangeLocks) != 0) {
      const uint32_t places = inode_sets * kOpenInodeWays;
      std::vector<OpenInode> some(simt::min(places, 4096u));
      for (OpenInode& open : some) hold_whole_files(open.lock);
      for (uint32_t i = 0; i < places; i += static_cast<uint32_t>(some.size())) {
        memory.write(fs.open_inodes + i, some.data(),
                     simt::min<uint64_t>(some.size(), places - i) * sizeof(OpenInode));
      }
    }
    fs.open_inode_sets = own_.take<OpenInodeSet>(inode_sets, MemoryPart::kOpenInodes);
    fs.open_inode_set_count = inode_sets;
    fs.operation_count = std::bit_ceil(simt::max(options.operations, 1u));
    fs.operations = own_.take<AsyncOperation>(fs.operation_count, MemoryPart::kOperations);
    constexpr uint32_t kInodeLocks = 4096;
    fs.inode_locks = own_.take<InodeLock>(kInodeLocks, MemoryPart::kLocks);
    fs.inode_lock_mask = kInodeLocks - 1;
    // Many for each warp there may be: names that share one are made one after the other.
    constexpr uint32_t kNameLocks = 16384;
    fs.name_locks = own_.take<uint32_t>(kNameLocks, MemoryPart::kLocks);
    fs.name_lock_mask = kNameLocks - 1;
    // Some for each of the 32,768 blocks that a GPU's threads write at a time. A writer of several
    // contiguous blocks meets others sooner: of 1,024 threads with 16 blocks each, one in eight.
    constexpr uint32_t kBlockQueues = 262'144;
    static_assert(kBlockQueues >= detail::kSpanBlocksMax);
    fs.block_queues = own_.take<BlockQueue>(kBlockQueues, MemoryPart::kLocks);
    fs.block_queue_mask = kBlockQueues - 1;
    BatchTable batches{};
    batches.capacity = simt::max(options.batch_files, 1u);
    batches.files = own_.take<BatchEntry>(batches.capacity, MemoryPart::kBatches);
    batches.parts = own_.take<BatchPart>(kBatchesMax * kBatchPartsMax, MemoryPart::kBatches);
    batches.name_slots = own_.take<uint32_t>(uint64_t{detail::kNameSlotsPerFile} * batches.capacity,
                                             MemoryPart::kBatches);
    fs.batches = own_.take<BatchTable>(1, MemoryPart::kBatches);
    memory.write_object(fs.batches, batches);
    const bool has_maps = (options.ablations & kAblateBlockMaps) == 0;
    const uint64_t map_words = has_maps ? options.map_bytes / sizeof(uint32_t) : 0;
    f2fs::MapArena& maps = fs.volume.maps;
    maps.unit_count =
        static_cast<uint32_t>(simt::align_up(f2fs::MapArena::units_for(map_words), 32));
    maps.words = own_.take<uint32_t>(uint64_t{maps.unit_count} * f2fs::MapArena::kUnitWords,
                                     MemoryPart::kBlockMaps);
    maps.used = own_.take<uint32_t>(maps.unit_count / 32, MemoryPart::kBlockMaps);
    fs.lock_timeout_ns = options.lock_timeout_ns;
    fs.time_granularity_ns = options.time_granularity_ns;
    filesystem_ = own_.take<Filesystem>(1, MemoryPart::kVolume);
    memory.write_object(filesystem_, fs);
  }

  Filesystem* filesystem() const { return filesystem_; }

 private:
  /// A quarter of `bytes` for each of the smaller sizes, the rest for the largest: two of these at
  /// least.
  BouncePool make_bounces(uint64_t bytes) {
    BouncePool pool{};
    for (uint32_t size = 0; size < kBounceSizes; ++size) {
      BouncePieces& pieces = pool.sizes[size];
      const bool largest = size + 1 == kBounceSizes;
      pieces.shift = bounce_shift(size);
      const uint64_t count = (largest ? bytes / 2 : bytes / 4) >> pieces.shift;
      pieces.count = static_cast<uint32_t>(simt::max<uint64_t>(count, largest ? 2 : 1));
      pieces.memory =
          own_.take<uint8_t>(uint64_t{pieces.count} << pieces.shift, simt::MemoryPart::kBounces);
      pieces.taken = own_.take<uint32_t>(pieces.words(), simt::MemoryPart::kBounces);
    }
    return pool;
  }

  RecordPool make_records(simt::MemorySpace& memory, const FilesystemOptions& options) {
    using simt::MemoryPart;
    constexpr uint64_t kBytesForEach = 256;  // entry: a record is rarely shorter
    RecordPool pool{nullptr, simt::min(options.record_buffers, 32u)};
    pool.buffers = own_.take<RecordBuffer>(simt::max(pool.count, 1u), MemoryPart::kRecords);
    for (uint32_t i = 0; i < pool.count; ++i) {
      RecordBuffer buffer{};
      buffer.stream = detail::kStreamClosed;
      buffer.first_tag = 1;
      buffer.bytes = std::bit_floor(
          simt::min(simt::max(options.record_bytes, 2 * kRecordBytesMax), kRecordBufferBytesMax));
      buffer.entry_count = static_cast<uint32_t>(buffer.bytes / kBytesForEach);
      buffer.tickets_max = detail::kStreamTicketsMax;
      buffer.data =
          own_.take<uint8_t>(RecordBuffer::memory_for(buffer.bytes), MemoryPart::kRecords);
      buffer.entries = own_.take<uint64_t>(buffer.entry_count, MemoryPart::kRecords);
      memory.write_object(&pool.buffers[i], buffer);
    }
    return pool;
  }

  DescriptorNumbers make_numbers(simt::MemorySpace& memory, uint32_t count) {
    DescriptorNumbers numbers{};
    numbers.words = static_cast<uint32_t>(simt::divide_up(count, 32));
    numbers.taken = own_.take<uint32_t>(numbers.words, simt::MemoryPart::kDescriptors);
    memory.write_object(&numbers.taken[numbers.words - 1], numbers_beyond(count));
    numbers.cursors = own_.take<uint32_t>(kNumberCursors, simt::MemoryPart::kDescriptors);
    // Neighbours begin far from each other.
    std::array<uint32_t, kNumberCursors> starts{};
    for (uint32_t i = 0; i < kNumberCursors; ++i) starts[i] = i * 67 % numbers.words;
    memory.write(numbers.cursors, starts.data(), sizeof(starts));
    return numbers;
  }

  RangeRings* make_rings(simt::MemorySpace& memory, uint32_t count) {
    auto* const rings = reinterpret_cast<RangeRings*>(
        own_.take<uint8_t>(RangeRings::bytes_for(count), simt::MemoryPart::kRangeLocks));
    memory.write_object(rings, RangeRings{count, 0});
    return rings;
  }

  simt::Allocations own_;
  Filesystem* filesystem_ = nullptr;
};

}  // namespace gofs::vfs
