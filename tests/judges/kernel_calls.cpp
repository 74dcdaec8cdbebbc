// SPDX-License-Identifier: Apache-2.0
#include "kernel_calls.h"

#include <algorithm>

#include "simt/workers.h"
#include "testing/teams.hpp"

namespace gofs::judges {

const char* name_of(Scope scope) {
  constexpr const char* kScopeNames[] = {"thread", "warp", "block", "grid"};
  return kScopeNames[static_cast<size_t>(scope)];
}

vfs::Caller& caller_of_thread() {
  thread_local vfs::Caller caller{{}, vfs::kMountClient};
  return caller;
}

void launch(uint32_t warps, uint32_t width,
            const std::function<void(const simt::Warp&, uint32_t)>& work) {
  if (width != 1) {
    testing::run_teams(warps, width, work);
  } else if (warps != 1) {
    simt::run_workers(warps, work);
  } else {
    work(simt::Warp(), 0);
  }
}

void launch_lanes(uint32_t width, LaneRequests& requests,
                  const std::function<void(const simt::Warp&, LaneRequest*)>& work) {
  for (size_t first = 0; first < requests.size(); first += width) {
    launch(1, width, [&](const simt::Warp& warp, uint32_t) {
      const size_t number = first + warp.thread_rank();
      work(warp, number < requests.size() ? &requests[number] : nullptr);
    });
  }
}

std::vector<IoVector> vectors(const Calls::Buffers& parts) {
  std::vector<IoVector> made;
  for (const std::string_view part : parts) {
    made.push_back({const_cast<char*>(part.data()), part.size()});
  }
  return made;
}

BatchArrays::BatchArrays(const std::vector<BatchItem>& items) {
  uint64_t all = 0;
  for (const BatchItem& item : items) {
    names.push_back(item.name.c_str());
    offsets.push_back(all);
    sizes.push_back(item.bytes.size());
    all += simt::align_up(item.bytes.size(), uint64_t{kBlockBytes});
  }
  buffer.resize(all);
  for (size_t i = 0; i < items.size(); ++i) {
    std::copy(items[i].bytes.begin(), items[i].bytes.end(),
              buffer.begin() + static_cast<ptrdiff_t>(offsets[i]));
  }
}

void BatchArrays::give_back(std::vector<BatchItem>& items) const {
  for (size_t i = 0; i < items.size(); ++i) {
    std::copy_n(buffer.begin() + static_cast<ptrdiff_t>(offsets[i]), items[i].bytes.size(),
                items[i].bytes.begin());
  }
}

}  // namespace gofs::judges
