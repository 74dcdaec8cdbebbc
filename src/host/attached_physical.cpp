// SPDX-License-Identifier: Apache-2.0
#include "host/attached_physical.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "ssd/system_failure.h"

namespace gofs::host {

namespace {

bool is_of_gpu(const ssd::MemorySource& memory) { return memory.warp_base() != memory.base(); }

}  // namespace

PhysicalSsd::PhysicalSsd(work::Backend& backend, const VolumeSpec& spec,
                         const nvme::DeviceOptions& options)
    : backend_(backend),
      name_(spec.provider + ":" + spec.address),
      opened_(open_physical(spec, nvme::dma_bytes(options), backend)) {
  memory_description_ = opened_.memory->description();
  try {
    reach_memory();
    reach_registers(spec.doorbells, options.io_queues);
  } catch (...) {
    detach();
    backend_.memory().release(placed_);
    throw;
  }
}

PhysicalSsd::~PhysicalSsd() {
  detach();
  backend_.memory().release(placed_);
}

void PhysicalSsd::reach_memory() {
  ssd::MemorySource& memory = *opened_.memory;
  if (!is_of_gpu(memory)) {
    const std::string problem =
        backend_.reach(memory.base(), memory.bytes(), work::HostRange::kMemory);
    if (!problem.empty()) ssd::fail_with(EIO, name_ + ": its memory: " + problem);
    memory_reached_ = true;
  }
  const auto begin = reinterpret_cast<uint64_t>(memory.warp_base());
  map_.ranges[0] = {begin, begin + memory.bytes(),
                    opened_.transport->map(memory.base(), memory.bytes())};
  map_.count = 1;
  placed_ = backend_.memory().allocate_array<ssd::DmaMap>(1, simt::MemoryPart::kQueues);
  backend_.memory().write_object(placed_, map_);
  controller_.dma = placed_;
  dma_memory_ = std::make_unique<ssd::DmaMemory>(memory);
}

void PhysicalSsd::reach_registers(Doorbells doorbells, uint32_t io_queues) {
  ssd::Transport& transport = *opened_.transport;
  uint8_t* const bar = transport.bar();
  if (doorbells != Doorbells::kCpu && bar != nullptr) {
    // A page that nobody has touched yet has no mapping that could be handed on.
    for (uint64_t offset = 0; offset < transport.bar_bytes(); offset += kBlockBytes) {
      (void)simt::load_system_relaxed(*reinterpret_cast<uint32_t*>(bar + offset));
    }
    const std::string problem =
        backend_.reach(bar, transport.bar_bytes(), work::HostRange::kRegisters);
    if (problem.empty()) {
      registers_ = bar;
      controller_.bar = bar;
      tries_doorbells_ = doorbells == Doorbells::kAuto && !backend_.is_host();
      return;
    }
    if (doorbells == Doorbells::kGpu) ssd::fail_with(EIO, name_ + ": its registers: " + problem);
  }
  if (doorbells == Doorbells::kGpu) {
    ssd::fail_with(EOPNOTSUPP,
                   name_ + ": its registers cannot be mapped, which doorbell=gpu needs");
  }
  copy_ = static_cast<uint8_t*>(backend_.shared_memory().allocate(
      ssd::RegisterRelay::copy_bytes(io_queues), simt::MemoryPart::kQueues));
  relay_ = std::make_unique<ssd::RegisterRelay>(transport, copy_, io_queues);
  controller_.bar = copy_;
}

std::string PhysicalSsd::details() const {
  const char* who = "the GPU";
  if (copy_ != nullptr) who = "a thread of the host";
  if (copy_ == nullptr && backend_.is_host()) who = "those who wait";
  return fmt::format("{}, doorbells by {}, {}", name_, who, memory_description_);
}

void PhysicalSsd::detach() {
  relay_.reset();
  if (registers_ != nullptr) backend_.forget(std::exchange(registers_, nullptr));
  opened_.transport.reset();  // it stops the controller, which then reaches nothing any more
  views_.clear();
  if (std::exchange(memory_reached_, false)) backend_.forget(opened_.memory->base());
  backend_.shared_memory().release(std::exchange(copy_, nullptr));
}

/// Sets a word that warps look at meanwhile.
template <typename T>
void PhysicalSsd::publish(T& placed, T value) {
  if (backend_.is_host()) {
    simt::store_system_release(placed, value);
  } else {
    backend_.memory().write_object(&placed, value);
  }
}

bool PhysicalSsd::map_buffer(void* memory, uint64_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(memory);
  if (begin % kBlockBytes != 0 || bytes % kBlockBytes != 0) return false;
  const std::lock_guard lock(map_mutex_);
  // A range that has gone is not used again: who looks may still see some of it.
  if (map_.count == ssd::DmaMap::kRangesMax || opened_.transport == nullptr) return false;
  ssd::DmaRange& range = map_.ranges[map_.count];
  try {
    // Where all is to be in the GPU's memory, so are buffers: VFIO maps what the host sees of them.
    std::unique_ptr<ssd::MemorySource> view;
    void* seen = memory;
    if (is_of_gpu(*opened_.memory)) {
      view = backend_.view_device_memory(memory, bytes);
      seen = view->base();
    }
    range = {begin, begin + bytes, opened_.transport->map(seen, bytes)};
    if (view != nullptr) views_[begin] = std::move(view);
  } catch (const std::system_error&) {
    return false;  // it goes through staging
  }
  backend_.memory().write_object(&placed_->ranges[map_.count], range);
  publish(placed_->count, ++map_.count);  // [N6]
  return true;
}

void PhysicalSsd::unmap_buffer(void* memory) {
  const auto begin = reinterpret_cast<uint64_t>(memory);
  const std::lock_guard lock(map_mutex_);
  for (uint32_t i = 1; i < map_.count; ++i) {
    ssd::DmaRange& range = map_.ranges[i];
    if (range.begin != begin || range.end == begin) continue;
    const uint64_t bytes = range.end - begin;
    range.end = begin;
    publish(placed_->ranges[i].end, range.end);
    if (opened_.transport != nullptr) opened_.transport->unmap(range.address, bytes);
    views_.erase(begin);
  }
}

}  // namespace gofs::host
