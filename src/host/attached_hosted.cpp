// SPDX-License-Identifier: Apache-2.0
#include "host/attached_hosted.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <thread>
#include <utility>

#include "ssd/descriptor.h"

namespace gofs::host {

namespace {

/// Whether the kernel moves data from and to this memory by itself. It does not where pages belong
/// to a device's driver, as those of cudaMallocHost() do. Nothing is read or written: a pipe is
/// given the first and the last byte's pages.
bool takes_memory(void* memory, uint64_t bytes) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const ssd::Descriptor out(ends[0]);
  const ssd::Descriptor in(ends[1]);
  auto* const first = static_cast<char*>(memory);
  const iovec parts[2] = {{first, 1}, {first + bytes - 1, 1}};
  return ::vmsplice(in.get(), parts, 2, 0) == 2;
}

/// Threads that carry commands out: few, since each carries out hundreds of thousands a second.
uint32_t default_threads() { return std::clamp(std::thread::hardware_concurrency() / 4, 1u, 4u); }

/// What carries commands out, for people.
std::string describe(const ssd::HostedController& controller) {
  const std::string& why = controller.why_no_uring();
  const uint32_t threads = controller.threads();
  return fmt::format("{}{}, {}, {} thread{}", controller.engine_name(),
                     why.empty() ? "" : " (" + why + ")", controller.store().access_words(),
                     threads, threads == 1 ? "" : "s");
}

}  // namespace

HostedSsd::HostedSsd(kernels::Backend& backend, const VolumeSpec& spec, bool writable,
                     const nvme::DeviceOptions& options)
    : backend_(backend) {
  auto store = std::make_unique<ssd::BackingStore>(
      spec.path, writable ? ssd::FileAccess::kReadWrite : ssd::FileAccess::kReadOnly);
  ssd::HostedOptions hosted;
  hosted.threads = spec.threads.value_or(default_threads());
  hosted.queue_pairs_max = options.io_queues;
  hosted.queue_entries_max = std::max(options.queue_depth, options.admin_depth);
  hosted.lba_bytes = spec.lba_bytes.value_or(0);
  hosted.always_polls = spec.always_polls;
  hosted.is_nudged = backend.is_host();
  if (spec.transfer_bytes_max) {
    hosted.mdts = static_cast<uint32_t>(std::countr_zero(*spec.transfer_bytes_max / kBlockBytes));
  }
  if (!backend.is_host()) {
    reach_ = std::make_unique<DmaReach>(backend, ssd::make_host_memory(nvme::dma_bytes(options)),
                                        spec.path);
    ssd::MemorySource& source = reach_->source();
    reach_->place_source(reinterpret_cast<uint64_t>(source.base()));
    hosted.buffers = {source.base(), source.bytes()};
  }
  controller_ =
      std::make_unique<ssd::HostedController>(std::move(store), backend.shared_memory(), hosted);
  reference_ = controller_->ref();
  if (reach_ != nullptr) reference_.dma = reach_->map();
  details_ = describe(*controller_);
  bytes_ = controller_->store().traits().bytes;
}

HostedSsd::~HostedSsd() { detach(); }

nvme::DeviceMemory HostedSsd::device_memory() {
  if (reach_ == nullptr) return {backend_.memory()};
  return {backend_.memory(), reach_->memory()};
}

void HostedSsd::detach() {
  detached_ = true;
  if (controller_ != nullptr) controller_->stop();
  const std::lock_guard lock(map_mutex_);  // a buffer may be unregistered at the same time
  if (reach_ != nullptr) reach_->let_go();
}

bool HostedSsd::map_buffer(void* memory, uint64_t bytes) {
  if (reach_ == nullptr) return true;
  const auto begin = reinterpret_cast<uint64_t>(memory);
  if (begin % kBlockBytes != 0 || bytes % kBlockBytes != 0) return false;
  const std::lock_guard lock(map_mutex_);
  if (!backend_.what_else_than_host_memory(memory).empty()) return false;
  if (!reach_->has_room() || !takes_memory(memory, bytes)) return false;
  reach_->add({begin, begin + bytes, begin});
  return true;
}

void HostedSsd::unmap_buffer(void* memory) {
  if (reach_ == nullptr) return;
  const std::lock_guard lock(map_mutex_);
  (void)reach_->remove(memory);
}

}  // namespace gofs::host
