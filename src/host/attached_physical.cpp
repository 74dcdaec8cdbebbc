// SPDX-License-Identifier: Apache-2.0
#include "host/attached_physical.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "ssd/system_failure.h"

namespace gofs::host {

PhysicalSsd::PhysicalSsd(kernels::Backend& backend, const VolumeSpec& spec,
                         const nvme::DeviceOptions& options)
    : backend_(backend), name_(spec.provider + ":" + spec.address) {
  OpenedSsd opened = open_physical(spec, nvme::dma_bytes(options), backend);
  transport_ = std::move(opened.transport);
  memory_description_ = opened.memory->description();
  try {
    reach_ = std::make_unique<DmaReach>(backend, std::move(opened.memory), name_);
    ssd::MemorySource& memory = reach_->source();
    reach_->place_source(transport_->map(memory.base(), memory.bytes()));
    controller_.dma = reach_->map();
    reach_registers(spec.doorbells, options.io_queues);
  } catch (...) {
    detach();
    throw;
  }
}

PhysicalSsd::~PhysicalSsd() { detach(); }

void PhysicalSsd::reach_registers(Doorbells doorbells, uint32_t io_queues) {
  ssd::Transport& transport = *transport_;
  uint8_t* const bar = transport.bar();
  if (doorbells != Doorbells::kCpu && bar != nullptr) {
    // A page that was not touched yet has no mapping that could be handed on.
    for (uint64_t offset = 0; offset < transport.bar_bytes(); offset += kBlockBytes) {
      (void)simt::load_system_relaxed(*reinterpret_cast<uint32_t*>(bar + offset));
    }
    const std::string problem =
        backend_.reach(bar, transport.bar_bytes(), kernels::HostRange::kRegisters);
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
  // A buffer may be unregistered at the same time.
  const std::lock_guard lock(map_mutex_);
  transport_.reset();  // it stops the controller, which then reaches nothing any more
  views_.clear();
  if (reach_ != nullptr) reach_->let_go();
  backend_.shared_memory().release(std::exchange(copy_, nullptr));
}

bool PhysicalSsd::map_buffer(void* memory, uint64_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(memory);
  if (begin % kBlockBytes != 0 || bytes % kBlockBytes != 0) return false;
  const std::lock_guard lock(map_mutex_);
  if (!reach_->has_room() || transport_ == nullptr) return false;
  try {
    // Where all is to be in the GPU's memory, so are buffers: VFIO maps what the host sees of them.
    std::unique_ptr<ssd::MemorySource> view;
    void* seen = memory;
    if (is_of_gpu(reach_->source())) {
      view = backend_.view_device_memory(memory, bytes);
      seen = view->base();
    }
    const uint64_t address = transport_->map(seen, bytes);
    if (view != nullptr) views_[begin] = std::move(view);
    reach_->add({begin, begin + bytes, address});
  } catch (const std::system_error&) {
    return false;  // it goes through staging
  }
  return true;
}

void PhysicalSsd::unmap_buffer(void* memory) {
  const std::lock_guard lock(map_mutex_);
  const ssd::DmaRange range = reach_->remove(memory);
  if (range.end == range.begin) return;
  if (transport_ != nullptr) transport_->unmap(range.address, range.end - range.begin);
  views_.erase(range.begin);
}

}  // namespace gofs::host
