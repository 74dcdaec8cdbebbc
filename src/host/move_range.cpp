// SPDX-License-Identifier: Apache-2.0
//
// One range of a file and of memory that threads of the host read and write, or the driver of a
// GPU: by calls that take some of it each.
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <span>

#include "host/any_volume.h"
#include "host/gpu_memory.h"

namespace gofs::host {

namespace {

/// What goes at once between a file and memory of a GPU.
constexpr uint64_t kStagingBytes = uint64_t{4} << 20;

/// A pread() of so many parts at once as are read together; what one of them would have answered.
int64_t read_parts(AnyVolume& volume, const CallRequest& whole, uint64_t part_bytes) {
  constexpr size_t kPartsAtOnce = 8;
  std::array<CallRequest, kPartsAtOnce> parts;
  std::array<CallAnswer, kPartsAtOnce> answers;
  size_t count = 0;
  for (uint64_t at = 0; at < whole.bytes && count < kPartsAtOnce; at += part_bytes) {
    CallRequest& part = parts[count++];
    part = whole;
    part.buffer = static_cast<uint8_t*>(whole.buffer) + at;
    part.bytes = std::min(part_bytes, whole.bytes - at);
    part.offset += static_cast<int64_t>(at);
  }
  volume.call_all(std::span(parts).first(count), std::span(answers).first(count));
  int64_t done = 0;
  for (size_t i = 0; i < count; ++i) {
    if (answers[i].result < 0) return done != 0 ? done : answers[i].result;
    done += answers[i].result;
    if (static_cast<uint64_t>(answers[i].result) < parts[i].bytes) break;
  }
  return done;
}

/// As move_range(), of memory of a GPU: through the host's, since no warp of the volume's reaches
/// it.
int64_t move_by_copies(AnyVolume& volume, bool writes, const IoRange& range, const GpuMemory& gpu,
                       CUstream_st* stream) {
  if (gpu.is_captured(stream)) return -EOPNOTSUPP;
  const auto staging =
      std::make_unique_for_overwrite<uint8_t[]>(std::min(range.bytes, kStagingBytes));
  uint64_t moved = 0;
  while (moved < range.bytes) {
    auto* const memory = static_cast<uint8_t*>(range.memory) + moved;
    const uint64_t wanted = std::min(range.bytes - moved, kStagingBytes);
    const IoRange part{range.fd, staging.get(), wanted, range.offset + moved};
    if (writes && !gpu.copy(part.memory, memory, wanted, stream)) return -EFAULT;
    const int64_t result = volume.move_range(writes, part);
    if (result < 0) return result;
    const auto bytes = static_cast<uint64_t>(result);
    if (!writes && !gpu.copy(memory, part.memory, bytes, stream)) return -EFAULT;
    moved += bytes;
    if (bytes < wanted) break;
  }
  return static_cast<int64_t>(moved);
}

}  // namespace

int64_t AnyVolume::move_range(bool writes, const IoRange& range) {
  // A call may take less than all of it: what goes through a staging buffer goes in portions.
  const uint64_t most = part_bytes();
  uint64_t moved = 0;
  do {
    CallRequest request{.verb = writes ? request::Verb::kPwrite : request::Verb::kPread,
                        .descriptor = range.fd,
                        .bytes = range.bytes - moved,
                        .offset = static_cast<int64_t>(range.offset + moved)};
    auto* const memory = static_cast<uint8_t*>(range.memory) + moved;
    if (writes) {
      request.input = memory;
    } else {
      request.buffer = memory;
    }
    const int64_t result =
        writes || request.bytes <= most ? call(request).result : read_parts(*this, request, most);
    if (result < 0) return result;
    if (result == 0) break;
    moved += static_cast<uint64_t>(result);
  } while (moved < range.bytes);
  return static_cast<int64_t>(moved);
}

int64_t AnyVolume::move_range(bool writes, const IoRange& range, CUstream_st* stream) {
  const auto gpu = range.bytes != 0 ? GpuMemory::at(range.memory) : std::nullopt;
  const int64_t result =
      gpu ? move_by_copies(*this, writes, range, *gpu, stream) : move_range(writes, range);
  return result == kNotRun ? -EIO : result;
}

}  // namespace gofs::host
