// SPDX-License-Identifier: Apache-2.0
#include "host/probe_ssd.h"

#include <cerrno>
#include <memory>
#include <new>
#include <string>
#include <system_error>

#include "host/backends.h"
#include "host/messages.h"
#include "host/providers.h"
#include "nvme/bring_up.h"
#include "nvme/execute.h"
#include "nvme/layout.h"
#include "nvme/shut_down.h"
#include "simt/host_memory.h"
#include "ssd/dma_memory.h"
#include "ssd/register_relay.h"

namespace gofs::host {

namespace {

nvme::DeviceOptions probe_options(const VolumeSpec& spec) {
  nvme::DeviceOptions options;
  options.io_queues = 1;
  options.queue_depth = 2;
  options.admin_depth = 4;
  options.nsid = spec.nsid;
  options.command_timeout_ns = spec.command_timeout_ns.value_or(options.command_timeout_ns);
  return options;
}

/// The SSD with the driver's device on it, whose warp is the calling thread.
class Probe {
 public:
  Probe(const VolumeSpec& spec, work::Backend& backend)
      : options_(probe_options(spec)),
        opened_(open_physical(spec, nvme::dma_bytes(options_) + kBlockBytes, backend)),
        dma_memory_(*opened_.memory) {
    const ssd::MemorySource& memory = *opened_.memory;
    const auto begin = reinterpret_cast<uint64_t>(memory.base());
    dma_map_.ranges[0] = {begin, begin + memory.bytes(),
                          opened_.transport->map(memory.base(), memory.bytes())};
    dma_map_.count = 1;
    try {
      block_ = static_cast<uint8_t*>(dma_memory_.allocate(kBlockBytes));
      copy_ = static_cast<uint8_t*>(
          space_.allocate(ssd::RegisterRelay::copy_bytes(options_.io_queues)));
      relay_ = std::make_unique<ssd::RegisterRelay>(*opened_.transport, copy_, options_.io_queues);
      device_ = nvme::create_device({space_, dma_memory_}, {copy_, nullptr, &dma_map_}, options_);
    } catch (...) {
      release();
      throw;
    }
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() { release(); }

  nvme::Device& device() { return *device_; }
  const uint8_t* block() const { return block_; }

  nvme::BringUpResult bring_up() { return nvme::bring_up(simt::Warp(), *device_); }
  /// Into block().
  nvme::CommandStatus read_block(uint64_t offset) {
    const nvme::Command read{
        format::nvme::IoOpcode::kRead, false,  kBlockBytes >> device_->lba_shift,
        offset >> device_->lba_shift,  block_, kBlockBytes};
    return nvme::execute(simt::Warp(), *device_, device_->io[0], 1u, read);
  }
  /// Nothing was written: whether it ends in time does not matter.
  void shut_down() { (void)nvme::shut_down(simt::Warp(), *device_); }

 private:
  void release() {
    relay_.reset();
    opened_.transport.reset();  // it stops the controller, which then reaches nothing any more
    if (device_ != nullptr) {
      nvme::destroy_device({space_, dma_memory_}, device_, options_.io_queues);
    }
    space_.release(copy_);
    dma_memory_.release(block_);
  }

  const nvme::DeviceOptions options_;
  OpenedSsd opened_;
  ssd::DmaMemory dma_memory_;
  ssd::DmaMap dma_map_{};
  simt::HostMemorySpace space_;
  uint8_t* block_ = nullptr;
  uint8_t* copy_ = nullptr;  // of the registers
  std::unique_ptr<ssd::RegisterRelay> relay_;
  nvme::Device* device_ = nullptr;
};

}  // namespace

Expected<ProbedSsd> probe_ssd(const VolumeSpec& spec, uint64_t offset) {
  VolumeSpec here = spec;  // whatever memory the volume will use: the host reads this
  here.queue_place = here.data_place = "host";
  std::string problem;
  const std::unique_ptr<work::Backend> backend = make_backend("cpu", problem);
  if (backend == nullptr) return make_error(ENODEV, spec.text, problem);
  try {
    Probe probe(here, *backend);
    const nvme::BringUpResult result = probe.bring_up();
    if (result.step != nvme::BringUpStep::kDone) {
      return make_error(EIO, spec.text, describe(result));
    }
    const nvme::Device& device = probe.device();
    ProbedSsd found{device.lba_count << device.lba_shift, device.lba_bytes(), {}};
    if (found.bytes < offset + kBlockBytes) return found;
    const nvme::CommandStatus status = probe.read_block(offset);
    if (status != 0) return make_error(nvme::to_errno(status), spec.text, describe(status));
    probe.shut_down();
    found.block.assign(probe.block(), probe.block() + kBlockBytes);
    return found;
  } catch (const std::system_error& trouble) {
    return Error{trouble.code().value(), spec.text + ": " + trouble.what()};
  } catch (const std::bad_alloc&) {
    return make_error(ENOMEM, spec.text);
  }
}

}  // namespace gofs::host
