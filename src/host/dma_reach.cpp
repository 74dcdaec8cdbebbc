// SPDX-License-Identifier: Apache-2.0
#include "host/dma_reach.h"

#include <cerrno>
#include <utility>

#include "ssd/system_failure.h"

namespace gofs::host {

DmaReach::DmaReach(kernels::Backend& backend, std::unique_ptr<ssd::MemorySource> source,
                   const std::string& name)
    : backend_(backend), source_(std::move(source)), memory_(*source_) {
  if (!is_of_gpu(*source_)) {
    const std::string problem =
        backend.reach(source_->base(), source_->bytes(), kernels::HostRange::kMemory);
    if (!problem.empty()) ssd::fail_with(EIO, name + ": its memory: " + problem);
    reached_ = true;
  }
  try {
    placed_ = backend.memory().allocate_array<ssd::DmaMap>(1, simt::MemoryPart::kQueues);
  } catch (...) {
    let_go();
    throw;
  }
}

DmaReach::~DmaReach() {
  let_go();
  backend_.memory().release(placed_);
}

void DmaReach::place_source(uint64_t address) {
  const auto begin = reinterpret_cast<uint64_t>(source_->warp_base());
  map_.ranges[0] = {begin, begin + source_->bytes(), address};
  map_.count = 1;
  backend_.memory().write_object(placed_, map_);
}

/// Sets a word that warps look at meanwhile.
template <typename T>
void DmaReach::publish(T& placed, T value) {
  if (backend_.is_host()) {
    simt::store_system_release(placed, value);
  } else {
    backend_.memory().write_object(&placed, value);
  }
}

void DmaReach::add(const ssd::DmaRange& range) {
  map_.ranges[map_.count] = range;
  backend_.memory().write_object(&placed_->ranges[map_.count], range);
  publish(placed_->count, ++map_.count);  // [N6]
}

/// A range that has gone is not used again: who looks may still see some of it.
ssd::DmaRange DmaReach::remove(const void* begin) {
  for (uint32_t i = 1; i < map_.count; ++i) {
    ssd::DmaRange& range = map_.ranges[i];
    if (range.begin != reinterpret_cast<uint64_t>(begin) || range.end == range.begin) continue;
    const ssd::DmaRange was = range;
    range.end = range.begin;
    publish(placed_->ranges[i].end, range.end);
    return was;
  }
  return {};
}

void DmaReach::let_go() {
  if (std::exchange(reached_, false)) backend_.forget(source_->base());
}

}  // namespace gofs::host
