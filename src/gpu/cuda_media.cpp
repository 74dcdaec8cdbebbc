// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda_media.h"

#include <cuda_runtime.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "gpu/copy_stream.h"
#include "gpu/cuda_error.h"
#include "gpu/image_copy.h"
#include "ssd/claimed_image.h"
#include "ssd/file_back_end.h"

namespace gofs::gpu {

namespace {

class CudaMedia final : public kernels::LoadedMedia {
 public:
  explicit CudaMedia(const MediaMemory& memory)
      : health_(memory.health), on_gpu_(memory.device), pinned_(memory.pinned) {}

  const ssd::Media& media() const override { return media_; }
  const kernels::MediaRoom* room() const override { return room_ ? &*room_ : nullptr; }

  bool is_copy() const override { return changes_.has_value(); }
  std::string collect(kernels::MemoryCopier* warp) override {
    if (!changes_) return {};
    if (health_.lost()) return health_.words();
    // Pinned memory is there whatever happens to the GPU.
    const bool in_place = warp == nullptr && !on_device_;
    return changes_->collect(in_place ? 0 : copied_bytes_max(), warp != nullptr ? *warp : by_cuda_);
  }
  bool is_in_place() const override { return changes_ && changes_->is_in_place(); }
  /// Once collect() has taken what has changed it is written, even where the GPU has a fault
  /// meanwhile. After one nothing is taken any more, though what is pinned is there still: it has
  /// halves of blocks that a warp was writing, and what was marked is lost. The image is as the
  /// last call left it.
  std::string sync() override { return changes_ ? changes_->write() : std::string(); }
  bool may_try_again() const override {
    return changes_ && !changes_->has_given_up() && !health_.lost();
  }

  /// Marks what changes from now on.
  std::string make_writable() {
    const uint64_t units = simt::divide_up(media_.bytes, uint64_t{1} << ssd::kMarkShift);
    std::string error = add(units * sizeof(uint32_t), true);
    if (!error.empty()) return error;
    media_.marks = reinterpret_cast<uint32_t*>(newest_);
    changes_.emplace(ImageCopy::Source{media_, !on_device_}, *file_);
    return {};
  }

  std::string make_contiguous(uint64_t bytes, bool on_device) {
    media_.bytes = bytes;
    on_device_ = on_device;
    std::string error = add(bytes, on_device);
    if (error.empty()) media_.base = newest_;
    return error;
  }

  /// Fills contiguous memory from the file.
  std::string load_contiguous(int fd) {
    return for_each_extent(fd, [this](uint64_t start, uint64_t end) {
      return copy_in(start, media_.base + start, end - start);
    });
  }

  /// Keeps only the chunks in which the file has data, and spares for those that can be written.
  std::string load_chunks(int fd, uint64_t bytes, const kernels::MediaRequest& request) {
    media_.bytes = bytes;
    const bool on_device = on_device_ = request.device_memory;
    uint64_t spares = request.spare_bytes >> ssd::kChunkShift;
    const bool writable = request.writable;
    const uint64_t count = simt::divide_up(bytes, ssd::kChunkBytes);
    std::vector<uint64_t> table(count, 0);
    uint64_t needed = 0;
    std::string error = for_each_extent(fd, [&](uint64_t start, uint64_t end) {
      for (uint64_t chunk = start >> ssd::kChunkShift; chunk << ssd::kChunkShift < end; ++chunk) {
        if (table[chunk] == 0) table[chunk] = ++needed;
      }
      return std::string();
    });
    spares = simt::min(spares, count - needed);
    room_.emplace(kernels::MediaRoom{std::vector<bool>(count), spares});
    for (uint64_t chunk = 0; chunk < count; ++chunk) room_->there[chunk] = table[chunk] != 0;
    if (!writable) spares = 0;
    if (error.empty()) {
      error = add(simt::max(needed + spares, uint64_t{1}) << ssd::kChunkShift, on_device);
    }
    if (!error.empty()) return error;
    const uint8_t* slab = newest_;
    for (uint64_t& entry : table) {
      if (entry != 0) entry = reinterpret_cast<uint64_t>(slab + ((entry - 1) << ssd::kChunkShift));
    }
    error = for_each_extent(fd, [&](uint64_t start, uint64_t end) {
      std::string problem;
      while (start < end && problem.empty()) {
        const uint64_t in_chunk = start & (ssd::kChunkBytes - 1);
        const uint64_t part = simt::min(end - start, ssd::kChunkBytes - in_chunk);
        problem = copy_in(
            start, reinterpret_cast<uint8_t*>(table[start >> ssd::kChunkShift]) + in_chunk, part);
        start += part;
      }
      return problem;
    });
    if (error.empty()) error = add(count * sizeof(uint64_t), true);
    if (!error.empty()) return error;
    media_.chunks = reinterpret_cast<uint64_t*>(newest_);
    error = copy(media_.chunks, table.data(), count);
    if (error.empty() && spares != 0) {
      error = add_spares(slab + (needed << ssd::kChunkShift), spares);
    }
    return error;
  }

  void set_read_only() { media_.read_only = true; }

  void use_file(std::unique_ptr<ssd::FileBackEnd> file) { file_ = std::move(file); }

 private:
  /// Where no kernel waits for it.
  struct ByCuda final : kernels::MemoryCopier {
    explicit ByCuda(CudaMedia& cuda) : media(cuda) {}
    std::string pull(void* to_host, const void* from, uint64_t bytes) override {
      return media.copy(static_cast<uint8_t*>(to_host), static_cast<const uint8_t*>(from), bytes);
    }
    CudaMedia& media;
  };

  /// Takes zeroed memory: `newest_`. Empty, or why not.
  std::string add(uint64_t bytes, bool on_device) {
    try {
      simt::Allocations& memory = on_device ? on_gpu_ : pinned_;
      newest_ = memory.take<uint8_t>(bytes, simt::MemoryPart::kMedia);
    } catch (const std::bad_alloc&) {
      if (health_.lost()) return health_.words();
      return cuda_error_text(cudaErrorMemoryAllocation,
                             on_device ? "memory on the GPU" : "pinned memory");
    }
    return {};
  }

  /// Makes `count` zeroed chunks from `first` on the pool for places that have none.
  std::string add_spares(const uint8_t* first, uint64_t count) {
    std::vector<ssd::ChunkPool::Entry> entries(count);
    for (uint32_t i = 0; i < count; ++i) {
      entries[i] = {reinterpret_cast<uint64_t>(first + (uint64_t{i} << ssd::kChunkShift)), i, 0};
    }
    const size_t bytes = count * sizeof(ssd::ChunkPool::Entry);
    std::string error = add(bytes, true);
    if (!error.empty()) return error;
    const ssd::ChunkPool pool{count, reinterpret_cast<ssd::ChunkPool::Entry*>(newest_)};
    error = copy(pool.entries, entries.data(), count);
    if (error.empty()) error = add(sizeof(pool), true);
    if (!error.empty()) return error;
    media_.pool = reinterpret_cast<ssd::ChunkPool*>(newest_);
    return copy(media_.pool, &pool, 1);
  }

  template <typename T>
  std::string copy(T* to, const T* from, size_t count) {
    if (count == 0) return {};
    if (health_.lost()) return health_.words();
    return cuda_error_text(health_.note(copies_.copy(to, from, count * sizeof(T)), "copy"), "copy");
  }

  /// Calls `visit(start, end)` for each part of the file that may hold data.
  template <typename Visit>
  std::string for_each_extent(int fd, Visit visit) const {
    uint64_t position = 0;
    while (position < media_.bytes) {
      const off_t data = lseek(fd, static_cast<off_t>(position), SEEK_DATA);
      if (data < 0 && errno == ENXIO) return {};
      uint64_t start = position;
      uint64_t end = media_.bytes;
      if (data >= 0) {  // else: a device or file system without holes
        start = static_cast<uint64_t>(data);
        const off_t hole = lseek(fd, data, SEEK_HOLE);
        if (hole >= 0) end = simt::min(end, static_cast<uint64_t>(hole));
      }
      if (start >= media_.bytes) return {};
      if (std::string error = visit(start, end); !error.empty()) return error;
      position = end;
    }
    return {};
  }

  std::string copy_in(uint64_t offset, uint8_t* target, uint64_t bytes) {
    if (on_device_ && staging_.empty()) staging_.resize(16 << 20);
    while (bytes != 0) {
      const size_t size = on_device_ ? simt::min<uint64_t>(bytes, staging_.size()) : bytes;
      const iovec part{on_device_ ? staging_.data() : target, size};
      const int failed = file_->read(offset, {&part, 1});
      if (failed != 0) return "reading: " + ssd::file_error_words(failed);
      if (on_device_) {
        std::string error = copy(target, staging_.data(), size);
        if (!error.empty()) return error;
      }
      offset += size;
      target += size;
      bytes -= size;
    }
    return {};
  }

  ContextHealth& health_;
  CopyStream copies_;
  ByCuda by_cuda_{*this};
  ssd::Media media_;
  std::optional<kernels::MediaRoom> room_;
  bool on_device_ = false;
  simt::Allocations on_gpu_;
  simt::Allocations pinned_;
  uint8_t* newest_ = nullptr;  // of these
  std::vector<uint8_t> staging_;
  std::unique_ptr<ssd::FileBackEnd> file_;  // of an image, while it is loaded or written
  std::optional<ImageCopy> changes_;        // of an image that is written
};

}  // namespace

std::unique_ptr<kernels::LoadedMedia> load_cuda_media(const MediaMemory& memory,
                                                      const kernels::MediaRequest& request,
                                                      std::string& error) {
  auto loaded = std::make_unique<CudaMedia>(memory);
  if (request.path.empty()) {
    error = loaded->make_contiguous(request.bytes, request.device_memory);
    return error.empty() ? std::move(loaded) : nullptr;
  }
  ssd::ClaimedImage image;
  try {
    image = ssd::ClaimedImage(
        request.path, request.writable ? ssd::FileAccess::kReadWrite : ssd::FileAccess::kReadOnly);
  } catch (const std::system_error& problem) {
    error = problem.what();
    return nullptr;
  }
  const int fd = image.get();
  struct stat status {};
  if (fstat(fd, &status) < 0) {
    error = strerror(errno);
    return nullptr;
  }
  const uint64_t bytes = image.bytes() & ~uint64_t{kBlockBytes - 1};
  if (bytes == 0) {
    error = "too small to be a volume";
    return nullptr;
  }
  loaded->use_file(ssd::make_positional_file(std::move(image)));
  // Contiguous memory takes no look-up, so it is used where it costs little more than the data.
  const uint64_t data_bytes = static_cast<uint64_t>(status.st_blocks) * 512;
  const uint64_t contiguous_max = uint64_t{1} << (request.writable ? 33 : 30);
  const bool all_wanted = request.writable && request.spare_bytes >= bytes;
  if (bytes <= contiguous_max || data_bytes >= bytes / 2 || all_wanted) {
    error = loaded->make_contiguous(bytes, request.device_memory);
    if (error.empty()) error = loaded->load_contiguous(fd);
  } else {
    error = loaded->load_chunks(fd, bytes, request);
  }
  if (!request.writable) {
    loaded->set_read_only();
    loaded->use_file(nullptr);  // all of it is here
  } else if (error.empty()) {
    error = loaded->make_writable();
  }
  return error.empty() ? std::move(loaded) : nullptr;
}

}  // namespace gofs::gpu
