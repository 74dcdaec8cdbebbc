// SPDX-License-Identifier: Apache-2.0
//
// Calls that the lanes of a warp make together, each with a request of its own.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "walker.h"

namespace gofs::judges {

namespace {

constexpr size_t kLanesMost = 12;
/// As large as files become by other calls: small volumes would be full else.
constexpr uint64_t kLaneFileBytes = 60 * uint64_t{kBlockBytes};

/// What the lanes did together: bytes, or what the first of them heard if there are none.
int64_t sum_of(const std::vector<LaneRequest>& requests) {
  int64_t sum = 0;
  for (const LaneRequest& one : requests) sum += std::max<int64_t>(one.result, 0);
  return sum == 0 ? requests[0].result : sum;
}

}  // namespace

/// Writes of one file, each of other blocks, in any order.
void Walker::pwrite_lanes() {
  const OpenFile* const file = some_open();
  if (file == nullptr || (file->flags & vfs::kOpenAppend) != 0) return;
  const uint64_t size = model_.at(file->id).content.size();
  const bool in_a_row = one_in(4);
  std::vector<LaneRequest> writes;
  for (uint64_t offset = below(size / 2 + 1); writes.size() < kLanesMost;) {
    if (one_in(2)) offset -= offset % kBlockBytes;
    uint64_t count = one_in(3) ? 1 + below(kBlockBytes) : 1 + below(50'000);
    if (one_in(2)) count += (2 * kBlockBytes - offset % kBlockBytes - count % kBlockBytes);
    if (one_in(2)) count = std::min(count, offset < size ? size - offset : count);
    if (offset + count > kLaneFileBytes) break;
    writes.push_back({offset, bytes(count), 0});
    offset = (offset + count + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    if (!in_a_row) offset += below(3 * kBlockBytes);
  }
  if (writes.empty()) return;
  if (!in_a_row) std::shuffle(writes.begin(), writes.end(), random_);

  const bool may = vfs::may_write(file->flags) && (file->flags & vfs::kOpenPath) == 0;
  both(
      fmt::format("{} times pwrite by lanes, the first at {} of {}", writes.size(),
                  writes[0].offset, model_.path_of(file->id)),
      [&] {
        gofs_->pwrite_lanes(file->fd, writes);
        return sum_of(writes);
      },
      [&](int64_t answer) -> int64_t {
        if (!may) return -EBADF;
        bool full = false;
        int64_t written = 0;
        for (const LaneRequest& one : writes) {
          const auto wanted = static_cast<int64_t>(one.data.size());
          const bool has_room = one.result != -ENOSPC && (one.result <= 0 || one.result >= wanted);
          const int64_t count = has_room ? wanted : std::max<int64_t>(one.result, 0);
          full = full || !has_room;
          if (count == 0) continue;
          model_.write(file->id, one.offset,
                       std::string_view(one.data).substr(0, static_cast<size_t>(count)));
          written += count;
        }
        if (full) {
          ++full_;
          model_.forget_times();
        }
        return written == 0 ? answer : written;
      });
}

/// Reads of one file, of any parts of it.
void Walker::pread_lanes() {
  const OpenFile* const file = some_open();
  if (file == nullptr) return;
  const Object& object = model_.at(file->id);
  std::vector<LaneRequest> reads(1 + below(kLanesMost));
  for (LaneRequest& one : reads) {
    one.offset = some_offset(object.content.size());
    one.data.assign(below(one_in(4) ? 200'000 : 20'000), '\xee');
  }
  const std::string what =
      fmt::format("{} times pread by lanes, the first {} bytes at {} of {}", reads.size(),
                  reads[0].data.size(), reads[0].offset, model_.path_of(file->id));
  const int64_t got = both(
      what,
      [&] {
        gofs_->pread_lanes(file->fd, reads);
        return sum_of(reads);
      },
      [&](int64_t) -> int64_t {
        if (!vfs::may_read(file->flags) || (file->flags & vfs::kOpenPath) != 0) return -EBADF;
        if (object.is_directory()) return -EISDIR;
        int64_t sum = 0;
        for (const LaneRequest& one : reads) {
          sum += static_cast<int64_t>(object.content.read(one.offset, one.data.size()).size());
        }
        return sum;
      });
  if (got < 0) return;
  for (const LaneRequest& one : reads) {
    const std::string wanted = object.content.read(one.offset, one.data.size());
    const bool right = one.result == static_cast<int64_t>(wanted.size()) &&
                       std::equal(wanted.begin(), wanted.end(), one.data.begin());
    if (!right) differ(fmt::format("{}: {} bytes at {}", what, one.data.size(), one.offset));
  }
}

}  // namespace gofs::judges
