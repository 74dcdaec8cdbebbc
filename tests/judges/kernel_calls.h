// SPDX-License-Identifier: Apache-2.0
//
// Calls of a session that kernels make and host programs have no way to: of a mounted file system
// (mounted_kernels.h), or through channels (served_kernels.h). Their warps are played by threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "calls.h"
#include "simt/warp.h"
#include "vfs/caller.h"
#include "vfs/ticket.h"

namespace gofs::judges {

/// Who makes a call together.
enum class Scope : uint8_t { kThread, kWarp, kBlock, kGrid };
inline constexpr Scope kScopes[] = {Scope::kThread, Scope::kWarp, Scope::kBlock, Scope::kGrid};
const char* name_of(Scope scope);

/// What one lane asks for, and its answer. A read has as many bytes as are asked for.
struct LaneRequest {
  uint64_t offset = 0;
  std::string data;
  int64_t result = 0;
};
using LaneRequests = std::vector<LaneRequest>;

/// All of them may be made by several threads, each for whom it works (Session::become()).
class KernelCalls {
 public:
  virtual ~KernelCalls() = default;

  /// By a warp.
  virtual int64_t pwritev(int fd, const Calls::Buffers& parts, uint64_t offset) = 0;
  virtual int64_t writev(int fd, const Calls::Buffers& parts) = 0;
  /// The bytes stay where they are until wait() has answered. `result` below 0: nothing is started.
  virtual vfs::Ticket start_pwrite(int fd, std::string_view bytes, uint64_t offset) = 0;
  virtual int64_t wait(const vfs::Ticket& ticket) = 0;
  /// Requests of lanes, as many at a time as a warp has.
  virtual void pwrite_lanes(int fd, LaneRequests& requests) = 0;
  virtual void pread_lanes(int fd, LaneRequests& requests) = 0;
  virtual void write_lanes(int fd, LaneRequests& requests) = 0;
  /// By a warp, a block or a grid; not by a thread, which is a lane.
  virtual int64_t pwrite(Scope scope, int fd, std::string_view bytes, uint64_t offset) = 0;
  virtual int64_t write(Scope scope, int fd, std::string_view bytes) = 0;
  virtual int64_t pread(Scope scope, int fd, void* buffer, uint64_t bytes, uint64_t offset) = 0;
  /// As Session has them.
  virtual int create_batch(const std::string& directory, uint32_t mode,
                           std::vector<BatchItem>& items) = 0;
  virtual int read_batch(const std::string& directory, std::vector<BatchItem>& items) = 0;
  virtual int write_batch(const std::string& directory, std::vector<BatchItem>& items) = 0;
};

/// For whom the calling thread makes calls.
vfs::Caller& caller_of_thread();

inline constexpr uint32_t kGridWarps = 3;

/// Runs `work(warp, index)` by all warps of a kernel.
void launch(uint32_t warps, uint32_t width,
            const std::function<void(const simt::Warp&, uint32_t)>& work);

/// Runs `work(warp, request)` for each request, by as many lanes at a time as a warp has; a lane
/// without a request has null.
void launch_lanes(uint32_t width, LaneRequests& requests,
                  const std::function<void(const simt::Warp&, LaneRequest*)>& work);

/// The parts of a vector as calls take them.
std::vector<IoVector> vectors(const Calls::Buffers& parts);

/// What the items of a batch are, as the calls take them.
struct BatchArrays {
  explicit BatchArrays(const std::vector<BatchItem>& items);
  uint32_t count() const { return static_cast<uint32_t>(names.size()); }
  /// What was read becomes that of the items, each of which has as many bytes as it has room for.
  void give_back(std::vector<BatchItem>& items) const;

  std::vector<const char*> names;
  std::vector<uint64_t> offsets;
  std::vector<uint64_t> sizes;
  std::vector<uint8_t> buffer;
};

}  // namespace gofs::judges
