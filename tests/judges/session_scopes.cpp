// SPDX-License-Identifier: Apache-2.0
//
// The calls that move data, by each scope that can make them.
#include <cerrno>

#include "session.h"
#include "simt/workers.h"
#include "testing/teams.hpp"
#include "vfs/grid_call.h"
#include "vfs/read_together.h"
#include "vfs/write_together.h"

namespace gofs::judges {

namespace {

constexpr uint32_t kGridWarps = 3;

template <typename Work>
void launch(uint32_t warps, uint32_t width, const Work& work) {
  if (width != 1) {
    testing::run_teams(warps, width, work);
  } else if (warps != 1) {
    simt::run_workers(warps, work);
  } else {
    work(simt::Warp(), 0);
  }
}

vfs::IoVector part_of(std::string_view bytes) {
  return {const_cast<char*>(bytes.data()), bytes.size()};
}

/// `call(group)`, by a group that works for `caller`, if it is not null.
template <typename Group, typename Call>
int64_t for_caller(const Group& group, const vfs::Caller* caller, const Call& call) {
  return caller == nullptr ? call(group) : call(vfs::CallerGroup<Group>(group, *caller));
}

}  // namespace

const char* name_of(Scope scope) {
  constexpr const char* kScopeNames[] = {"thread", "warp", "block", "grid"};
  return kScopeNames[static_cast<size_t>(scope)];
}

/// `call(grid, meeting)` by all warps of a grid.
template <typename Call>
int64_t Session::on_grid(const Call& call) {
  simt::Barrier place{};
  int64_t result = 0;
  const vfs::Caller* const caller = Session::caller();
  launch(kGridWarps, options_.width, [&](const simt::Warp& warp, uint32_t index) {
    const simt::GridGroup grid(warp, index, kGridWarps, place);
    vfs::GridMeeting* const meeting = vfs::begin_grid_call(grid, fs());
    const int64_t mine =
        meeting == nullptr
            ? -EBUSY
            : for_caller(grid, caller, [&](const auto& all) { return call(all, *meeting); });
    if (meeting != nullptr) vfs::end_grid_call(grid, fs(), *meeting);
    if (index == 0 && warp.thread_rank() == 0) result = mine;
  });
  return result;
}

/// `call(block)` by a block of one warp.
template <typename Call>
int64_t Session::on_block(const Call& call) {
  int64_t result = 0;
  const vfs::Caller* const caller = Session::caller();
  launch(1, options_.width, [&](const simt::Warp& warp, uint32_t) {
    const auto block = simt::BlockGroup<simt::Warp>::current(warp);
    const int64_t mine = for_caller(block, caller, call);
    if (warp.thread_rank() == 0) result = mine;
  });
  return result;
}

int64_t Session::pwrite_by(Scope scope, int fd, std::string_view bytes, uint64_t offset) {
  const vfs::IoVector part = part_of(bytes);
  if (scope == Scope::kGrid) {
    return on_grid([&](const auto& grid, vfs::GridMeeting& meeting) {
      return vfs::pwritev_by_all(grid, fs(), meeting.write, fd, &part, 1, offset);
    });
  }
  if (scope == Scope::kWarp) return pwrite(fd, bytes, offset);
  if (scope == Scope::kThread) {
    std::vector<LaneRequest> one{{offset, std::string(bytes), 0}};
    pwrite_lanes(fd, one);
    return one[0].result;
  }
  vfs::SharedWrite shared{};
  return on_block([&](const auto& block) {
    return vfs::pwritev_together(block, fs(), shared, fd, &part, 1, offset);
  });
}

int64_t Session::write_by(Scope scope, int fd, std::string_view bytes) {
  const vfs::IoVector part = part_of(bytes);
  if (scope == Scope::kGrid) {
    return on_grid([&](const auto& grid, vfs::GridMeeting& meeting) {
      return vfs::writev_by_all(grid, fs(), meeting.write, fd, &part, 1);
    });
  }
  if (scope == Scope::kWarp) return write(fd, bytes);
  if (scope == Scope::kThread) {
    std::vector<LaneRequest> one{{0, std::string(bytes), 0}};
    write_lanes(fd, one);
    return one[0].result;
  }
  vfs::SharedWrite shared{};
  return on_block(
      [&](const auto& block) { return vfs::writev_together(block, fs(), shared, fd, &part, 1); });
}

int64_t Session::pread_by(Scope scope, int fd, void* buffer, uint64_t bytes, uint64_t offset) {
  if (scope == Scope::kGrid) {
    return on_grid([&](const auto& grid, vfs::GridMeeting& meeting) {
      return vfs::pread_by_all(grid, fs(), meeting.read, fd, buffer, bytes, offset);
    });
  }
  if (scope == Scope::kWarp) return pread(fd, buffer, bytes, offset);
  if (scope == Scope::kThread) {
    std::vector<LaneRequest> one{{offset, std::string(bytes, '\xee'), 0}};
    pread_lanes(fd, one);
    if (one[0].result > 0) one[0].data.copy(static_cast<char*>(buffer), bytes);
    return one[0].result;
  }
  vfs::SharedRead shared{};
  return on_block([&](const auto& block) {
    return vfs::pread_together(block, fs(), shared, fd, buffer, bytes, offset);
  });
}

}  // namespace gofs::judges
