// SPDX-License-Identifier: Apache-2.0
//
// The place where file system code runs: host threads, or a GPU. A backend offers memory, launches
// bodies (body.h) on many warps, and loads an SSD's contents to where its warps
// reach them. There are two: host/cpu_backend.h and gpu/cuda_backend.h.
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/body.h"
#include "simt/memory.h"
#include "ssd/descriptor.h"
#include "ssd/media.h"
#include "ssd/memory_source.h"
#include "ssd/system_failure.h"

namespace gofs::kernels {

/// What can be written of media for parts of which there is no memory yet.
struct MediaRoom {
  std::vector<bool> there;  // each chunk of ssd::kChunkBytes: it has memory
  uint64_t spares;          // of the others so many can be had
};

/// Copies to memory of the host, any of it, what only the backend's warps reach. Empty, or why not.
class MemoryCopier {
 public:
  virtual ~MemoryCopier() = default;
  virtual std::string pull(void* to_host, const void* from, uint64_t bytes) = 0;
};

/// Contents of an SSD as the backend's warps reach them; frees them when it goes.
class LoadedMedia {
 public:
  virtual ~LoadedMedia() = default;
  virtual const ssd::Media& media() const = 0;
  /// Makes what was written durable. Empty, or what went wrong.
  virtual std::string sync() = 0;
  /// Whether it is a copy in memory: then sync() brings to where it lasts what collect() has found
  /// before, and both are called by one thread at a time.
  virtual bool is_copy() const { return false; }
  /// Finds what has changed, and keeps it as it is in this moment if there is memory for that; else
  /// is_in_place(), and nothing may change until sync() returns. Nothing changes meanwhile: a warp
  /// sees to that, which also copies, as long as this thread asks nothing else of the backend.
  /// Null: no warp uses the volume any more, and less is kept. Empty, or what went wrong.
  virtual std::string collect(MemoryCopier* warp) {
    (void)warp;
    return {};
  }
  virtual bool is_in_place() const { return false; }
  /// Whether another sync() may do better after one that has failed.
  virtual bool may_try_again() const { return false; }
  /// What the host has said to the last command that failed for its sake; empty: none did.
  virtual std::string problem() const { return {}; }
  /// As it was loaded, for writing; null: all of it can be written.
  virtual const MediaRoom* room() const { return nullptr; }
};

/// What can be written to the holes of an image, if nothing is said.
inline constexpr uint64_t kSpareBytes = uint64_t{4} << 30;

struct MediaRequest {
  std::string path;    // an image or block device; empty: memory
  uint64_t bytes = 0;  // of memory; 0 with a path: the file's size
  bool writable = false;
  bool device_memory = false;  // media=hbm: in the GPU's own memory
  /// What can be written to the holes of an image that is kept in memory without them; one that is
  /// only read takes none of it, but says what could be.
  uint64_t spare_bytes = kSpareBytes;
};

/// Memory of a GPU that warps of several processes reach, each by an address of its own; freed when
/// the last of them has let it go.
class WarpMemory {
 public:
  virtual ~WarpMemory() = default;
  virtual uint8_t* data() const = 0;  // for the warps of this process
  virtual uint64_t bytes() const = 0;
};

/// The same, to be handed to another process.
class SharedWarpMemory : public WarpMemory {
 public:
  virtual const ssd::Descriptor& descriptor() const = 0;
};

/// Memory that another process has for its kernels, by a name that the process has given for it: a
/// handle or a descriptor.
struct ForeignMemory {
  std::string handle;          // a cudaIpcMemHandle_t: cudaMalloc gave it
  ssd::Descriptor descriptor;  // open: it was mapped by CUDA's virtual memory management
  uint64_t whole_bytes;        // of that; a handle says by itself
};

/// What memory of the host is, for Backend::reach().
enum class HostRange {
  kMemory,
  kRegisters,  // of a device, mapped; nothing may be cached
};

/// A launch that was begun (Backend::begin). By one thread at a time.
class Begun {
 public:
  virtual ~Begun() = default;
  virtual bool is_over() = 0;
  /// Waits. False: it has failed, Backend::error() says why.
  virtual bool wait() = 0;
};

class BegunAtOnce final : public Begun {
 public:
  bool is_over() override { return true; }
  bool wait() override { return true; }
};

/// How a backend's warps reach a buffer of the program, and all that lies beside it in one piece.
struct BufferReach {
  bool reached;          // as they reach their own memory; else threads of the host do, unless
  std::string problem;   // they do not either, for this reason
  const uint8_t* begin;  // the same goes for all in between
  const uint8_t* end;

  bool holds(const void* memory, uint64_t bytes) const {
    const auto* const first = static_cast<const uint8_t*>(memory);
    return begin <= first && first <= end && bytes <= static_cast<uint64_t>(end - first);
  }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;         // "cpu" or "cuda"
  virtual std::string description() const = 0;  // for people: processor or GPU, driver
  /// True if its warps reach all memory of this process by the same pointers: a CPU.
  virtual bool is_host() const { return false; }
  /// Lanes of a warp.
  virtual uint32_t warp_width() const = 0;
  /// A grid that fills the machine without oversubscribing it.
  virtual Grid full_grid() const = 0;
  /// Memory of the file system's state: fast for the backend's warps.
  virtual simt::MemorySpace& memory() = 0;
  /// Memory that host code and the backend's warps both use by the same pointers: arguments,
  /// results, buffers of host programs.
  virtual simt::MemorySpace& shared_memory() = 0;
  /// From now on warps use `bytes` at `begin`, which were mapped into this process, by the same
  /// pointers as the host, until forget(). Empty, or why they cannot.
  virtual std::string reach(void* begin, uint64_t bytes, HostRange what) = 0;
  /// As reach() had it.
  virtual void forget(void* begin) = 0;
  /// Whether a buffer of a host program is memory that this thread can copy from and to, as far as
  /// the backend knows. Empty, or what it is instead.
  virtual std::string what_else_than_host_memory(const void* buffer) const {
    (void)buffer;
    return {};
  }
  /// Memory of its own for an SSD to read and write by itself, or a view of some that a program
  /// has. Throws std::system_error, which says what that lacks.
  virtual std::unique_ptr<ssd::MemorySource> make_device_source(uint64_t bytes) = 0;
  virtual std::unique_ptr<ssd::MemorySource> view_device_memory(void* memory, uint64_t bytes) = 0;
  /// Memory that warps of other processes can reach too, zeroed; or what one of them has made.
  /// Throw std::system_error: also ENOTSUP, where such warps and ours do not run at the same time.
  virtual std::unique_ptr<SharedWarpMemory> share_memory(uint64_t bytes) {
    (void)bytes;
    ssd::fail_with(ENOTSUP, "warps of the host have no memory of their own");
  }
  virtual std::unique_ptr<SharedWarpMemory> map_shared_memory(ssd::Descriptor descriptor,
                                                              uint64_t bytes) {
    (void)descriptor;
    return share_memory(bytes);
  }
  /// Maps memory of another process for this one's warps. It lasts as long as what is returned,
  /// also where the process frees it, or ends. Throws std::system_error: EINVAL for no handle,
  /// EXDEV for memory of another GPU, EIO, ENOTSUP.
  virtual std::unique_ptr<WarpMemory> reach_foreign(ForeignMemory memory) {
    (void)memory;
    ssd::fail_with(ENOTSUP, "warps of the host have no memory of other processes");
  }
  /// Null on failure, `error` then says why.
  virtual std::unique_ptr<LoadedMedia> load_media(const MediaRequest& request,
                                                  std::string& error) = 0;
  /// Runs `body` on `grid` and waits for it, beside what other threads run. `params` lies in
  /// memory() or shared_memory(). False on failure: error() says what. It is this launch alone that
  /// has failed, for want of memory perhaps, unless has_failed().
  virtual bool run(const Body& body, const Grid& grid, void* params) = 0;
  /// As run(), but does not wait. Null on failure. (What runs on processors runs at once.)
  virtual std::unique_ptr<Begun> begin_apart(const Body& body, const Grid& grid, void* params) {
    return run(body, grid, params) ? std::make_unique<BegunAtOnce>() : nullptr;
  }
  /// As begin_apart(), but it runs after what the program has put into `stream` before,
  /// and before what comes there later. Null is CUDA's default stream.
  virtual std::unique_ptr<Begun> begin(const Body& body, const Grid& grid, void* params,
                                       CUstream_st* stream) {
    (void)stream;
    return run(body, grid, params) ? std::make_unique<BegunAtOnce>() : nullptr;
  }
  /// Whether what comes into the stream becomes part of a graph, and is not run.
  virtual bool is_capturing(CUstream_st* stream) const {
    (void)stream;
    return false;
  }
  /// How its warps reach a buffer of the program.
  virtual BufferReach reach_of(const void* memory, uint64_t bytes) const {
    const auto* const begin = static_cast<const uint8_t*>(memory);
    return {true, {}, begin, begin + bytes};
  }
  /// Makes ready for a launch of `body` what can be, so that it does not fail for want of memory
  /// then. False: as run().
  virtual bool prepare(const Body& body) {
    (void)body;
    return true;
  }
  /// Of the last launch that has failed.
  virtual std::string error() const = 0;
  /// Why it runs nothing any more in this process, and what memory() held is lost: a GPU after a
  /// fault of any kernel, ours or not. Empty: it works. From any thread, as has_failed() is, which
  /// is cheap.
  virtual std::string failure() const { return {}; }
  virtual bool has_failed() const { return false; }
};

}  // namespace gofs::kernels
