// SPDX-License-Identifier: Apache-2.0
#include "host/probe_ssd.h"

#include <cerrno>
#include <memory>
#include <new>
#include <string>

#include "host/attached_ssd.h"
#include "host/backends.h"
#include "host/messages.h"
#include "nvme/bring_up.h"
#include "nvme/execute.h"
#include "nvme/layout.h"
#include "nvme/shut_down.h"

namespace gofs::host {

namespace {

/// The driver's device on an SSD, whose warp is the calling thread. It goes before the SSD does.
class ProbingDevice {
 public:
  ProbingDevice(AttachedSsd& ssd, const nvme::DeviceOptions& options)
      : ssd_(ssd), device_(nvme::create_device(ssd.device_memory(), ssd.controller(), options)) {}
  ~ProbingDevice() {
    ssd_.detach();  // it reaches the queues no more
    nvme::destroy_device(ssd_.device_memory(), device_);
  }
  ProbingDevice(const ProbingDevice&) = delete;
  ProbingDevice& operator=(const ProbingDevice&) = delete;

  nvme::Device& operator*() { return *device_; }

 private:
  AttachedSsd& ssd_;
  nvme::Device* const device_;
};

}  // namespace

Expected<ProbedSsd> probe_ssd(const VolumeSpec& spec, uint64_t offset) {
  VolumeSpec here = spec;  // whatever memory the volume will use: the host reads this
  here.queue_place = here.data_place = "host";
  std::string problem;
  const std::unique_ptr<kernels::Backend> backend = make_backend("cpu", problem);
  if (backend == nullptr) return make_error(ENODEV, spec.text, problem);
  nvme::DeviceOptions options;
  options.io_queues = 1;
  options.queue_depth = 2;
  options.admin_depth = 4;
  options.command_timeout_ns = spec.command_timeout_ns.value_or(options.command_timeout_ns);
  try {
    auto ssd = attach_ssd(*backend, here, false, options);
    if (!ssd) return ssd.error();
    ProbingDevice probing(**ssd, options);
    nvme::Device& device = *probing;
    const nvme::BringUpResult result = nvme::bring_up(simt::Warp(), device);
    if (result.step != nvme::BringUpStep::kDone) {
      return make_error(EIO, spec.text, describe(result));
    }
    ProbedSsd found{device.lba_count << device.lba_shift, device.lba_bytes(), {}};
    if (found.bytes < offset + kBlockBytes) return found;
    found.block.resize(kBlockBytes);
    const nvme::Command read{format::nvme::IoOpcode::kRead,
                             false,
                             kBlockBytes >> device.lba_shift,
                             offset >> device.lba_shift,
                             found.block.data(),
                             kBlockBytes};
    const nvme::CommandStatus status = nvme::execute(simt::Warp(), device, device.io[0], 1u, read);
    if (status != 0) return make_error(nvme::to_errno(status), spec.text, describe(status));
    // Nothing was written: whether it ends in time does not matter.
    (void)nvme::shut_down(simt::Warp(), device);
    return found;
  } catch (const std::bad_alloc&) {
    return make_error(ENOMEM, spec.text);
  }
}

}  // namespace gofs::host
