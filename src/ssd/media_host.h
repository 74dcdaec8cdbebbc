// SPDX-License-Identifier: Apache-2.0
//
// The owners of media on the host: a range of memory, an image file, a sparse table of chunks. Each
// gives out a Media, which is good as long as its owner lives. Host only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "simt/memory.h"
#include "ssd/claimed_image.h"
#include "ssd/file_back_end.h"
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

/// An image file or block device, claimed. Each command moves its data by the file's back end and
/// completes with a media error where that fails, which problem() then has in words. Flush and FUA
/// writes wait until the file's data is on its device. After a failure of that, or when the image
/// was cut, it is not known what was lost: from then on all writes and flushes fail.
class FileMedia {
 public:
  /// Throws std::system_error, whose text says which file and what is wrong with it.
  FileMedia(const std::string& path, FileAccess access);
  FileMedia(std::unique_ptr<FileBackEnd> file, FileAccess access);
  FileMedia(const FileMedia&) = delete;
  FileMedia& operator=(const FileMedia&) = delete;

  Media media();
  /// Returns 0 or a negative errno.
  int sync();
  /// What the host has said to the last transfer that failed; empty: none did.
  std::string problem() const;

 private:
  static int sync_function(void* self);
  static int transfer_function(void* transfer);
  format::nvme::Status carry_out(const MediaTransfer& transfer);
  format::nvme::Status move_data(const MediaTransfer& transfer);
  format::nvme::Status outcome(MediaTransfer::Kind kind, int error);

  const std::unique_ptr<FileBackEnd> file_;
  const FileAccess access_;
  std::mutex syncing_;
  std::atomic<int> lost_{0};  // why what was written may not be there
  std::atomic<int> last_error_{0};
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
  /// `chunk` is zeroed; the first write to a place without chunk takes one. A write that finds none
  /// fails with Capacity Exceeded.
  void add_spare(void* chunk);

  Media media(bool read_only = false);

  /// The chunk at `index` as it is now, or null: for writing back. The controller is not stepped
  /// meanwhile.
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

using ExtentVisitor = std::function<void(uint64_t offset, uint64_t bytes)>;

/// Calls `visit(offset, bytes)` for each range of the file that holds data, in order; the rest
/// reads zeros. A file system that cannot tell, or a block device, gives one range. Returns the
/// length of the file. Throws std::system_error.
uint64_t for_each_data_extent(const std::string& path, const ExtentVisitor& visit);

/// The same of the first `bytes` of an open file or device. 0 or a negative errno.
int for_each_data_extent(int descriptor, uint64_t bytes, const ExtentVisitor& visit);

}  // namespace gofs::ssd
