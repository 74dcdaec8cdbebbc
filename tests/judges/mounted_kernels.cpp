// SPDX-License-Identifier: Apache-2.0
#include "mounted_kernels.h"

#include <cerrno>

#include "kernels/batch.h"
#include "vfs/async_write.h"
#include "vfs/grid_call.h"
#include "vfs/read_together.h"
#include "vfs/write_lanes.h"
#include "vfs/write_together.h"

namespace gofs::judges {

namespace {

IoVector part_of(std::string_view bytes) { return {const_cast<char*>(bytes.data()), bytes.size()}; }

}  // namespace

template <typename Call>
int64_t MountedKernels::on_warp(const Call& call) {
  int64_t result = 0;
  const vfs::Caller& caller = caller_of_thread();
  launch(1, width_, [&](const simt::Warp& warp, uint32_t) {
    const int64_t mine = for_caller(warp, caller, call);
    if (warp.thread_rank() == 0) result = mine;
  });
  return result;
}

/// `call(block)` by a block of one warp.
template <typename Call>
int64_t MountedKernels::on_block(const Call& call) {
  int64_t result = 0;
  const vfs::Caller& caller = caller_of_thread();
  launch(1, width_, [&](const simt::Warp& warp, uint32_t) {
    const auto block = simt::BlockGroup<simt::Warp>::current(warp);
    const int64_t mine = for_caller(block, caller, call);
    if (warp.thread_rank() == 0) result = mine;
  });
  return result;
}

/// `call(grid, meeting)` by all warps of a grid.
template <typename Call>
int64_t MountedKernels::on_grid(const Call& call) {
  simt::Barrier place{};
  int64_t result = 0;
  const vfs::Caller& caller = caller_of_thread();
  launch(kGridWarps, width_, [&](const simt::Warp& warp, uint32_t index) {
    const simt::GridGroup grid(warp, index, kGridWarps, place);
    vfs::GridMeeting* const meeting = vfs::begin_grid_call(grid, fs_);
    const int64_t mine =
        meeting == nullptr
            ? -EBUSY
            : for_caller(grid, caller, [&](const auto& all) { return call(all, *meeting); });
    if (meeting != nullptr) vfs::end_grid_call(grid, fs_, *meeting);
    if (index == 0 && warp.thread_rank() == 0) result = mine;
  });
  return result;
}

int64_t MountedKernels::pwritev(int fd, const Calls::Buffers& parts, uint64_t offset) {
  const std::vector<IoVector> all = vectors(parts);
  return on_warp([&](const auto& warp) {
    return vfs::pwritev(warp, fs_, fd, all.data(), static_cast<int>(all.size()), offset);
  });
}

int64_t MountedKernels::writev(int fd, const Calls::Buffers& parts) {
  const std::vector<IoVector> all = vectors(parts);
  return on_warp([&](const auto& warp) {
    return vfs::writev(warp, fs_, fd, all.data(), static_cast<int>(all.size()));
  });
}

vfs::Ticket MountedKernels::start_pwrite(int fd, std::string_view bytes, uint64_t offset) {
  vfs::Ticket started{};
  on_warp([&](const auto& warp) -> int64_t {
    const vfs::Ticket ticket = vfs::pwrite_async(warp, fs_, fd, bytes.data(), bytes.size(), offset);
    if (warp.thread_rank() == 0) started = ticket;
    return 0;
  });
  return started;
}

int64_t MountedKernels::wait(const vfs::Ticket& ticket) {
  return on_warp([&](const auto& warp) { return vfs::wait(warp, fs_, ticket); });
}

/// `call(warp, request)` of each request; a lane without one has one of nothing.
template <typename Call>
void MountedKernels::on_lanes(LaneRequests& requests, const Call& call) {
  const vfs::Caller& caller = caller_of_thread();
  launch_lanes(width_, requests, [&](const simt::Warp& warp, LaneRequest* one) {
    LaneRequest nothing;
    LaneRequest& request = one != nullptr ? *one : nothing;
    request.result =
        for_caller(warp, caller, [&](const auto& mine) { return call(mine, request); });
  });
}

void MountedKernels::pwrite_lanes(int fd, LaneRequests& requests) {
  on_lanes(requests, [&](const auto& warp, LaneRequest& one) {
    return vfs::pwrite_lanes(warp, fs_, {fd, one.data.data(), one.data.size(), one.offset});
  });
}

void MountedKernels::pread_lanes(int fd, LaneRequests& requests) {
  on_lanes(requests, [&](const auto& warp, LaneRequest& one) {
    return vfs::pread_lanes(warp, fs_, {fd, one.data.data(), one.data.size(), one.offset});
  });
}

void MountedKernels::write_lanes(int fd, LaneRequests& requests) {
  on_lanes(requests, [&](const auto& warp, LaneRequest& one) {
    return vfs::write_lanes(warp, fs_, {fd, one.data.data(), one.data.size(), 0});
  });
}

int64_t MountedKernels::pwrite(Scope scope, int fd, std::string_view bytes, uint64_t offset) {
  const IoVector part = part_of(bytes);
  if (scope == Scope::kGrid) {
    return on_grid([&](const auto& grid, vfs::GridMeeting& meeting) {
      return vfs::pwritev_by_all(grid, fs_, meeting.write, fd, &part, 1, offset);
    });
  }
  if (scope == Scope::kWarp) {
    return on_warp([&](const auto& warp) {
      return vfs::pwrite(warp, fs_, fd, bytes.data(), bytes.size(), offset);
    });
  }
  vfs::SharedWrite shared{};
  return on_block([&](const auto& block) {
    return vfs::pwritev_together(block, fs_, shared, fd, &part, 1, offset);
  });
}

int64_t MountedKernels::write(Scope scope, int fd, std::string_view bytes) {
  const IoVector part = part_of(bytes);
  if (scope == Scope::kGrid) {
    return on_grid([&](const auto& grid, vfs::GridMeeting& meeting) {
      return vfs::writev_by_all(grid, fs_, meeting.write, fd, &part, 1);
    });
  }
  if (scope == Scope::kWarp) {
    return on_warp(
        [&](const auto& warp) { return vfs::write(warp, fs_, fd, bytes.data(), bytes.size()); });
  }
  vfs::SharedWrite shared{};
  return on_block(
      [&](const auto& block) { return vfs::writev_together(block, fs_, shared, fd, &part, 1); });
}

int64_t MountedKernels::pread(Scope scope, int fd, void* buffer, uint64_t bytes, uint64_t offset) {
  if (scope == Scope::kGrid) {
    return on_grid([&](const auto& grid, vfs::GridMeeting& meeting) {
      return vfs::pread_by_all(grid, fs_, meeting.read, fd, buffer, bytes, offset);
    });
  }
  if (scope == Scope::kWarp) {
    return on_warp(
        [&](const auto& warp) { return vfs::pread(warp, fs_, fd, buffer, bytes, offset); });
  }
  vfs::SharedRead shared{};
  return on_block([&](const auto& block) {
    return vfs::pread_together(block, fs_, shared, fd, buffer, bytes, offset);
  });
}

/// A step of a batch, by one warp.
int64_t MountedKernels::perform(kernels::BatchParams& params) {
  params.fs = &fs_;
  on_warp([&](const auto& warp) -> int64_t {
    kernels::batch_body(warp, 0, 1, params);
    return 0;
  });
  return params.result;
}

int MountedKernels::create_batch(const std::string& directory, uint32_t mode,
                                 std::vector<BatchItem>& items) {
  BatchArrays arrays(items);
  std::vector<int> errors(items.size());
  kernels::BatchParams params{};
  params.step = kernels::BatchStep::kCreate;
  params.path = directory.c_str();
  params.names = arrays.names.data();
  params.count = arrays.count();
  params.permissions = mode;
  params.buffer = arrays.buffer.data();
  params.offsets = arrays.offsets.data();
  params.sizes = arrays.sizes.data();
  params.errors = errors.data();
  const auto made = static_cast<int>(perform(params));
  for (size_t i = 0; i < items.size(); ++i) items[i].error = made < 0 ? made : errors[i];
  return made;
}

/// Opens the files as a batch, has `work(params, files)` done with it, and closes it.
template <typename Work>
int MountedKernels::with_batch(const std::string& directory, std::vector<BatchItem>& items,
                               const Work& work) {
  const BatchArrays arrays(items);
  kernels::BatchParams params{};
  params.path = directory.c_str();
  params.names = arrays.names.data();
  params.count = arrays.count();
  params.descriptor = static_cast<int>(perform(params));
  if (params.descriptor < 0) return params.descriptor;
  for (const auto step : {kernels::BatchStep::kFind, kernels::BatchStep::kLoad}) {
    params.step = step;
    perform(params);
  }
  vfs::BatchTable& table = *fs_.batches;
  vfs::BatchEntry* const files = table.files + table.batches[params.descriptor].first;
  work(params, files);
  for (size_t i = 0; i < items.size(); ++i) items[i].error = files[i].error;
  params.step = kernels::BatchStep::kEnd;
  return static_cast<int>(perform(params));
}

int MountedKernels::read_batch(const std::string& directory, std::vector<BatchItem>& items) {
  return with_batch(directory, items,
                    [&](kernels::BatchParams& params, const vfs::BatchEntry* files) {
                      for (size_t i = 0; i < items.size(); ++i) {
                        items[i].bytes.assign(files[i].error < 0 ? 0 : files[i].size_bytes, '\xee');
                      }
                      BatchArrays arrays(items);
                      params.step = kernels::BatchStep::kRead;
                      params.buffer = arrays.buffer.data();
                      params.offsets = arrays.offsets.data();
                      perform(params);
                      arrays.give_back(items);
                    });
}

int MountedKernels::write_batch(const std::string& directory, std::vector<BatchItem>& items) {
  return with_batch(directory, items, [&](kernels::BatchParams& params, const vfs::BatchEntry*) {
    BatchArrays arrays(items);
    params.step = kernels::BatchStep::kWrite;
    params.buffer = arrays.buffer.data();
    params.offsets = arrays.offsets.data();
    params.sizes = arrays.sizes.data();
    perform(params);
  });
}

}  // namespace gofs::judges
