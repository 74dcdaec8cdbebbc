// SPDX-License-Identifier: Apache-2.0
//
// The owners of media on the host: a range of memory, a mapped image file, a sparse table of
// chunks. Each gives out a Media, which is good as long as its owner lives. Host only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simt/memory.h"
#include "ssd/media.h"

namespace gofs::ssd {

/// A zeroed range of a backend's memory. Lost when it goes.
class MemoryMedia {
 public:
  /// Throws std::bad_alloc.
  MemoryMedia(simt::MemorySpace& memory, uint64_t bytes);
  ~MemoryMedia();
  MemoryMedia(const MemoryMedia&) = delete;
  MemoryMedia& operator=(const MemoryMedia&) = delete;

  Media media() const;

 private:
  simt::MemorySpace& memory_;
  uint8_t* base_;
  uint64_t bytes_;
};

enum class FileAccess { kReadOnly, kReadWrite };

/// Takes the image that `descriptor` has open for this process: with others who only read it, or,
/// to write to it, alone. Until the descriptor is closed. Throws std::system_error (EBUSY).
void claim_image(int descriptor, const std::string& path, FileAccess access);

/// An image file or block device, claimed and mapped into this process. Flush and FUA writes wait
/// until the file's data is on its device; a failure of that is reported to the command that asked,
/// and to all later ones, since the data that was lost is not known.
class FileMedia {
 public:
  /// Throws std::system_error, whose text says which file and what is wrong with it.
  FileMedia(const std::string& path, FileAccess access);
  ~FileMedia();
  FileMedia(const FileMedia&) = delete;
  FileMedia& operator=(const FileMedia&) = delete;

  Media media();
  /// Returns 0 or a negative errno.
  int sync();

 private:
  static int sync_function(void* self);

  int descriptor_ = -1;
  void* base_ = nullptr;
  uint64_t bytes_ = 0;
  FileAccess access_;
  std::atomic<int> sync_error_{0};
};

/// A table of chunks of kChunkBytes, of which only some exist. The chunks are the caller's memory;
/// the table lies in `memory`. First add chunks and spares, then take media().
class SparseMedia {
 public:
  SparseMedia(simt::MemorySpace& memory, uint64_t bytes);
  ~SparseMedia();
  SparseMedia(const SparseMedia&) = delete;
  SparseMedia& operator=(const SparseMedia&) = delete;

  /// `chunk` holds the data at offset `index` * kChunkBytes.
  void set_chunk(uint64_t index, void* chunk);
  /// `chunk` is zeroed; the first write to a place without chunk takes one. Writers
  /// that meet there hold one each for a moment, and a write that finds none fails: some more than
  /// there are places.
  void add_spare(void* chunk);

  Media media(bool read_only = false);

  /// The chunk at `index` as it is now, or null: for writing back. Nobody steps meanwhile.
  void* chunk(uint64_t index);
  uint64_t chunk_count() const { return chunks_.size(); }

 private:
  simt::MemorySpace& memory_;
  uint64_t bytes_;
  std::vector<uint64_t> chunks_;
  std::vector<ChunkPool::Entry> spares_;
  uint64_t* table_at_ = nullptr;
  ChunkPool* pool_at_ = nullptr;
  ChunkPool::Entry* entries_at_ = nullptr;
};

/// Calls `visit(offset, bytes)` for each range of the file that holds data, in order; the rest
/// reads zeros. A file system that cannot tell, or a block device, gives one range. Returns the
/// length of the file. Throws std::system_error.
uint64_t for_each_data_extent(const std::string& path,
                              const std::function<void(uint64_t offset, uint64_t bytes)>& visit);

}  // namespace gofs::ssd
