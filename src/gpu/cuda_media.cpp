// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda_media.h"

#include <cuda_runtime.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "gpu/cuda_error.h"

namespace gofs::gpu {

namespace {

/// Memory of one kind, zeroed, freed when it goes.
class Allocation {
 public:
  Allocation() = default;
  Allocation(Allocation&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), on_device_(other.on_device_) {}
  Allocation& operator=(Allocation&&) = delete;
  ~Allocation() {
    if (memory_ == nullptr) return;
    if (on_device_) {
      cudaFree(memory_);
    } else {
      cudaFreeHost(memory_);
    }
  }

  /// Empty, or why not.
  std::string take(uint64_t bytes, bool on_device) {
    on_device_ = on_device;
    cudaError_t error =
        on_device ? cudaMalloc(&memory_, bytes)
                  : cudaHostAlloc(&memory_, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
    if (error == cudaSuccess && on_device) error = cudaMemset(memory_, 0, bytes);
    if (error == cudaSuccess && !on_device) std::memset(memory_, 0, bytes);
    return cuda_error_text(error, on_device ? "memory on the GPU" : "pinned memory");
  }
  uint8_t* get() const { return static_cast<uint8_t*>(memory_); }

 private:
  void* memory_ = nullptr;
  bool on_device_ = false;
};

class CudaMedia final : public work::LoadedMedia {
 public:
  const ssd::Media& media() const override { return media_; }
  std::string sync() override { return {}; }

  std::string make_contiguous(uint64_t bytes, bool on_device) {
    media_.bytes = bytes;
    on_device_ = on_device;
    std::string error = add(bytes, on_device);
    if (error.empty()) media_.base = allocations_.back().get();
    return error;
  }

  /// Fills contiguous memory from an open file.
  std::string load_contiguous(int fd) {
    return for_each_extent(fd, [this, fd](uint64_t start, uint64_t end) {
      return copy_in(fd, start, media_.base + start, end - start);
    });
  }

  /// Keeps only the chunks in which the file has data.
  std::string load_chunks(int fd, uint64_t bytes, bool on_device) {
    media_.bytes = bytes;
    on_device_ = on_device;
    const uint64_t count = simt::divide_up(bytes, ssd::kChunkBytes);
    std::vector<uint64_t> table(count, 0);
    uint64_t needed = 0;
    std::string error = for_each_extent(fd, [&](uint64_t start, uint64_t end) {
      for (uint64_t chunk = start >> ssd::kChunkShift; chunk << ssd::kChunkShift < end; ++chunk) {
        if (table[chunk] == 0) table[chunk] = ++needed;
      }
      return std::string();
    });
    if (error.empty()) error = add(simt::max(needed, uint64_t{1}) << ssd::kChunkShift, on_device);
    if (!error.empty()) return error;
    const uint8_t* slab = allocations_.back().get();
    for (uint64_t& entry : table) {
      if (entry != 0) entry = reinterpret_cast<uint64_t>(slab + ((entry - 1) << ssd::kChunkShift));
    }
    error = for_each_extent(fd, [&](uint64_t start, uint64_t end) {
      std::string problem;
      while (start < end && problem.empty()) {
        const uint64_t in_chunk = start & (ssd::kChunkBytes - 1);
        const uint64_t part = simt::min(end - start, ssd::kChunkBytes - in_chunk);
        problem =
            copy_in(fd, start,
                    reinterpret_cast<uint8_t*>(table[start >> ssd::kChunkShift]) + in_chunk, part);
        start += part;
      }
      return problem;
    });
    if (error.empty()) error = add(count * sizeof(uint64_t), true);
    if (!error.empty()) return error;
    media_.chunks = reinterpret_cast<uint64_t*>(allocations_.back().get());
    return cuda_error_text(
        cudaMemcpy(media_.chunks, table.data(), count * sizeof(uint64_t), cudaMemcpyHostToDevice),
        "chunk table");
  }

  void set_read_only() { media_.read_only = true; }

 private:
  std::string add(uint64_t bytes, bool on_device) {
    return allocations_.emplace_back().take(bytes, on_device);
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

  std::string copy_in(int fd, uint64_t offset, uint8_t* target, uint64_t bytes) {
    if (on_device_ && staging_.empty()) staging_.resize(16 << 20);
    while (bytes != 0) {
      const size_t part = on_device_ ? simt::min<uint64_t>(bytes, staging_.size()) : bytes;
      uint8_t* const to = on_device_ ? staging_.data() : target;
      const ssize_t got = pread(fd, to, part, static_cast<off_t>(offset));
      if (got <= 0)
        return std::string("reading: ") + (got < 0 ? strerror(errno) : "file too short");
      if (on_device_) {
        std::string error = cuda_error_text(
            cudaMemcpy(target, to, static_cast<size_t>(got), cudaMemcpyHostToDevice), "copy");
        if (!error.empty()) return error;
      }
      offset += static_cast<uint64_t>(got);
      target += got;
      bytes -= static_cast<uint64_t>(got);
    }
    return {};
  }

  ssd::Media media_;
  bool on_device_ = false;
  std::vector<Allocation> allocations_;
  std::vector<uint8_t> staging_;
};

/// Closes a file when it goes.
struct FileDescriptor {
  int fd;
  ~FileDescriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

std::unique_ptr<work::LoadedMedia> load_cuda_media(const work::MediaRequest& request,
                                                   std::string& error) {
  auto loaded = std::make_unique<CudaMedia>();
  if (request.path.empty()) {
    error = loaded->make_contiguous(request.bytes, request.device_memory);
    return error.empty() ? std::move(loaded) : nullptr;
  }
  if (request.writable) {
    error = "an image cannot be written through the GPU yet";
    return nullptr;
  }
  const FileDescriptor file{::open(request.path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  if (file.fd < 0 || fstat(file.fd, &status) < 0) {
    error = strerror(errno);
    return nullptr;
  }
  uint64_t bytes = static_cast<uint64_t>(status.st_size);
  if (S_ISBLK(status.st_mode) && ioctl(file.fd, BLKGETSIZE64, &bytes) < 0) {
    error = strerror(errno);
    return nullptr;
  }
  if (!S_ISBLK(status.st_mode) && !S_ISREG(status.st_mode)) {
    error = S_ISDIR(status.st_mode) ? "is a directory" : "neither a file nor a block device";
    return nullptr;
  }
  bytes &= ~uint64_t{kBlockBytes - 1};
  if (bytes == 0) {
    error = "too small to be a volume";
    return nullptr;
  }
  // Contiguous memory takes no look-up, so it is used where it costs little more than the data.
  const uint64_t data_bytes = static_cast<uint64_t>(status.st_blocks) * 512;
  if (bytes <= uint64_t{1} << 30 || data_bytes >= bytes / 2) {
    error = loaded->make_contiguous(bytes, request.device_memory);
    if (error.empty()) error = loaded->load_contiguous(file.fd);
  } else {
    error = loaded->load_chunks(file.fd, bytes, request.device_memory);
  }
  loaded->set_read_only();
  return error.empty() ? std::move(loaded) : nullptr;
}

}  // namespace gofs::gpu
