// SPDX-License-Identifier: Apache-2.0
//
// gofs doctor ADDRESS: what a physical SSD lacks to be a volume of GoFS.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <system_error>

#include "cli/finding.h"
#include "cli/text.h"
#include "host/volume_state.h"
#include "nvme/bring_up.h"
#include "ssd/admin_probe.h"
#include "ssd/memory_source.h"
#include "ssd/vfio/block_devices.h"
#include "ssd/vfio/pci_function.h"
#include "ssd/vfio/system_files.h"
#include "ssd/vfio/vfio_transport.h"

namespace gofs::cli {
namespace {

using namespace ssd::vfio;
using format::nvme::IdentifyController;
using format::nvme::IdentifyNamespace;

constexpr uint32_t kNvidia = 0x10de;
constexpr uint32_t kDisplayClass = 0x03;
constexpr uint64_t kLockedBytesMin = uint64_t{256} << 20;  // queues, their pages, staging
constexpr int64_t kHugePagesMin = 128;                     // the same in pages of 2 MiB
// What GPUs show of their memory where Resizable BAR is off.
constexpr uint64_t kSmallBar = uint64_t{256} << 20;

Finding look_at_function(const PciFunction& ssd) {
  const std::string what = fmt::format("{:04x}:{:04x}", ssd.vendor, ssd.device);
  if (ssd.is_nvme()) return {"NVMe SSD", true, ssd.address + ", " + what, true};
  return {"NVMe SSD", false,
          fmt::format("{} ({}) has PCI class {:06x}, NVMe SSDs have {:06x}", ssd.address, what,
                      ssd.class_code, kNvmeClass),
          true};
}

Finding look_at_link(const PciFunction& ssd) {
  if (ssd.link.width == 0) return {"link", true, "not known"};
  const std::string now = fmt::format("{} lanes at {}", ssd.link.width, ssd.link.speed);
  if (ssd.link.width == ssd.link_max.width && ssd.link.speed == ssd.link_max.speed) {
    return {"link", true, now};
  }
  return {"link", false,
          fmt::format("{}, and the SSD could have {} at {}: try another slot; some slow down while "
                      "they are idle",
                      now, ssd.link_max.width, ssd.link_max.speed)};
}

Finding look_at_disks(const std::string& root, const PciFunction& ssd) {
  const std::vector<BlockDevice> disks = read_block_devices(root, ssd);
  if (disks.empty()) return {"disks", true, "Linux has none of it"};
  std::string list;
  bool free = true;
  for (const BlockDevice& disk : disks) {
    const std::string contents =
        disk.contents.empty() ? "contents unknown, ask blkid" : disk.contents;
    list += fmt::format("{}{} ({}, {}{})", list.empty() ? "" : "; ", disk.name,
                        size_text(disk.bytes), contents, disk.use.empty() ? "" : ", " + disk.use);
    free = free && disk.use.empty() && !disk.is_known();
  }
  if (free) return {"disks", true, list};
  const bool used = !what_is_in_use(disks).empty();
  return {"disks", false,
          list + (used ? ": in use, so leave it to Linux"
                       : ": what is there is lost if it is written to as a volume of another kind"),
          used};
}

std::vector<Finding> look_at_iommu(const PciFunction& ssd) {
  if (!ssd.iommu_group) {
    return {{"IOMMU", false,
             "off: turn VT-d or AMD-Vi on in the firmware, and boot with intel_iommu=on iommu=pt "
             "(AMD: iommu=pt)",
             true}};
  }
  const Finding on = {"IOMMU", true, fmt::format("on, the SSD is in group {}", *ssd.iommu_group)};
  const std::string who = who_keeps_group(ssd);
  if (who.empty()) return {on, {"IOMMU group", true, "nothing else needs it", true}};
  return {on,
          {"IOMMU group", false,
           "shared with " + who +
               ": unbind these from their drivers (echo ADDRESS > "
               "/sys/bus/pci/devices/ADDRESS/driver/unbind), or move the SSD to another slot",
           true}};
}

Finding look_at_driver(const PciFunction& ssd, bool in_use) {
  if (ssd.is_bound_to_vfio()) {
    return {"vfio-pci", true, "bound; back to Linux: " + release_command(ssd), true};
  }
  const std::string driver = ssd.driver.empty() ? "no driver has it" : ssd.driver + " has it";
  if (in_use) return {"vfio-pci", false, driver + ", and its disks are in use", true};
  return {"vfio-pci", false, driver + "; as root: " + bind_command(ssd), true};
}

Finding look_at_access(const std::string& root, const PciFunction& ssd) {
  const std::string container = root + "/dev/vfio/vfio";
  const std::string group = root + "/dev/vfio/" + std::to_string(ssd.iommu_group.value_or(0));
  for (const std::string& path : {container, group}) {
    if (!file_exists(path)) {
      return {"VFIO access", false, path + " is missing: modprobe vfio-pci, and bind the SSD to it",
              true};
    }
    if (::access(path.c_str(), R_OK | W_OK) != 0) {
      return {"VFIO access", false,
              path + " may not be opened: as root, " +
                  (path == container ? "chmod 0666 " : "chown USER ") + path,
              true};
    }
  }
  return {"VFIO access", true, group + " may be opened", true};
}

Finding look_at_huge_pages(const std::string& root) {
  const std::string folder = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  const int64_t free = file_number(root + folder + "free_hugepages").value_or(0);
  const std::string text = fmt::format("{} of 2 MiB are free", free);
  if (free >= kHugePagesMin) return {"huge pages", true, text};
  return {"huge pages", false,
          fmt::format("{}, ordinary ones serve instead: echo 256 > {}nr_hugepages", text, folder)};
}

Finding look_at_locked_memory() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  if (::geteuid() == 0) return {"locked memory", true, "root has no limit"};
  if (limit.rlim_cur == RLIM_INFINITY) return {"locked memory", true, "no limit"};
  const std::string text = "up to " + size_text(limit.rlim_cur);
  if (limit.rlim_cur >= kLockedBytesMin) return {"locked memory", true, text};
  return {"locked memory", false,
          text +
              ": 'ulimit -l unlimited' as root, LimitMEMLOCK=infinity for a service, or 'USER - "
              "memlock unlimited' in /etc/security/limits.conf"};
}

Finding look_at_kernel_options(const std::string& root) {
  const std::string options = " " + file_text(root + "/proc/cmdline") + " ";
  const bool passes_through = options.find(" iommu=pt ") != std::string::npos;
  if (passes_through) return {"kernel options", true, "iommu=pt"};
  return {"kernel options", false,
          "without iommu=pt a GPU's stores to doorbells are translated, which has not been tried: "
          "boot with it, or use doorbell=cpu"};
}

Finding look_at_gpu_doorbells(const std::string& root) {
  const std::string name = "GPU doorbells";
  if (::geteuid() == 0) return {name, true, "root may register doorbells with the GPU"};
  for (const std::string& line : file_lines(root + "/proc/driver/nvidia/params")) {
    if (line.rfind("RegistryDwords:", 0) == 0 &&
        line.find("PeerMappingOverride=1") != std::string::npos) {
      return {name, true, "PeerMappingOverride=1: everybody may register doorbells with the GPU"};
    }
  }
  return {name, false,
          "only root may register doorbells with the GPU: put 'options nvidia "
          "NVreg_RegistryDwords=\"PeerMappingOverride=1\"' into /etc/modprobe.d/nvidia.conf and "
          "load the driver again, or use doorbell=cpu"};
}

Finding look_at_gpu(const PciFunction& gpu, const PciFunction& ssd) {
  const uint64_t bar = gpu.bar_bytes[1];
  const bool near = !gpu.root_port.empty() && gpu.root_port == ssd.root_port;
  std::string text = fmt::format("{}, BAR1 of {}, {} with the SSD", gpu.address, size_text(bar),
                                 near ? "below one root port" : "no common root port");
  if (gpu.numa_node >= 0 && ssd.numa_node >= 0 && gpu.numa_node != ssd.numa_node) {
    text += ", on another NUMA node";
  }
  if (bar > kSmallBar) return {"GPU", true, text};
  return {"GPU", false,
          text +
              ": turn Resizable BAR and Above-4G decoding on in the firmware, or keep data in "
              "host memory"};
}

std::vector<Finding> look_at_gpus(const std::string& root, const PciFunction& ssd) {
  std::vector<Finding> findings;
  for (const std::string& address : pci_addresses(root)) {
    try {
      const PciFunction function = read_pci_function(root, address);
      if (function.vendor != kNvidia || function.class_code >> 16 != kDisplayClass) continue;
      findings.push_back(look_at_gpu(function, ssd));
    } catch (const std::system_error&) {
      // It went away meanwhile.
    }
  }
  if (findings.empty()) return {{"GPU", false, "there is none of NVIDIA's"}};
  findings.push_back(look_at_gpu_doorbells(root));
  return findings;
}

/// Text of a fixed size, padded with blanks.
template <size_t kLength>
std::string padded_text(const char (&text)[kLength]) {
  std::string plain(text, kLength);
  plain.erase(plain.find_last_not_of(std::string(" \0", 2)) + 1);
  return plain;
}

Finding describe_namespace(ssd::AdminProbe& probe) {
  const IdentifyNamespace space = probe.identify_namespace(1);
  const uint32_t in_use = nvme::lba_format_in_use(space);
  std::string formats;
  for (uint32_t i = 0; i <= std::min<uint32_t>(space.nlbaf, std::size(space.lbaf) - 1); ++i) {
    const auto& lba = space.lbaf[i];
    if (lba.lba_shift == 0 || lba.lba_shift > 31) continue;
    formats += fmt::format("{}{}{}{}", formats.empty() ? "" : ", ", 1u << lba.lba_shift,
                           lba.metadata_bytes != 0 ? fmt::format("+{}", lba.metadata_bytes) : "",
                           i == in_use ? " (in use)" : "");
  }
  const uint64_t bytes = space.nsze << (space.lbaf[in_use].lba_shift & 31);
  const std::string text = fmt::format("{}, LBAs of {} bytes", size_text(bytes), formats);
  if (nvme::is_usable(space.lbaf[in_use])) return {"namespace", true, text, true};
  return {"namespace", false,
          text +
              ": GoFS takes 512 to 4096 without metadata; 'nvme format' while Linux has the SSD "
              "changes it, and erases everything",
          true};
}

/// Asks the SSD itself. It is reset on the way.
std::vector<Finding> look_at_controller(const std::string& root, const PciFunction& ssd) {
  try {
    VfioTransport transport(ssd.address, root);
    const auto memory = ssd::make_host_memory(ssd::AdminProbe::kMemoryBytes);
    const uint64_t address = transport.map(memory->base(), memory->bytes());
    ssd::AdminProbe probe(transport, memory->base(), address);
    const IdentifyController controller = probe.identify_controller();
    const uint32_t entries = (transport.read_register(0) & 0xffff) + 1;
    const std::string transfers =
        controller.mdts == 0 ? "any size" : "up to " + size_text(uint64_t{4096} << controller.mdts);
    return {{"controller", true,
             fmt::format("{}, firmware {}, {} I/O queues of up to {} entries, transfers of {}",
                         padded_text(controller.model_number),
                         padded_text(controller.firmware_revision), probe.io_queue_count(), entries,
                         transfers),
             true},
            describe_namespace(probe)};
  } catch (const std::system_error& problem) {
    return {{"controller", false, problem.what(), true}};
  }
}

/// Brings the SSD up by warps that write its registers themselves: all admin commands of a mount.
Finding try_doorbells(const PciFunction& ssd) {
  const std::string spec = "vfio:" + ssd.address + "?doorbell=gpu&queues=1";
  const auto state = host::VolumeState::mount(spec, {}, host::MountKind::kDeviceOnly);
  if (state) return {"doorbells", true, (*state)->info().ssd};
  return {"doorbells", false, state.error().message + ": use doorbell=cpu"};
}

}  // namespace

std::vector<Finding> examine_ssd(const std::string& root, const std::string& address) {
  const PciFunction ssd = read_pci_function(root, address);
  std::vector<Finding> findings = {look_at_function(ssd)};
  if (!ssd.is_nvme()) return findings;
  const auto append = [&findings](const std::vector<Finding>& more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  const Finding disks = look_at_disks(root, ssd);
  append({look_at_link(ssd), disks});
  append(look_at_iommu(ssd));
  append({look_at_driver(ssd, !disks.ok && disks.needed)});
  if (ssd.is_bound_to_vfio()) append({look_at_access(root, ssd)});
  append({look_at_huge_pages(root), look_at_locked_memory(), look_at_kernel_options(root)});
  append(look_at_gpus(root, ssd));
  const bool possible = std::all_of(findings.begin(), findings.end(),
                                    [](const Finding& one) { return one.ok || !one.needed; });
  if (!possible) return findings;
  append(look_at_controller(root, ssd));
  if (findings.back().ok) append({try_doorbells(ssd)});
  return findings;
}

Finding look_for_ssds(const std::string& root) {
  std::string bound;
  std::string others;
  for (const std::string& address : pci_addresses(root)) {
    try {
      const PciFunction function = read_pci_function(root, address);
      if (!function.is_nvme()) continue;
      std::string& list = function.is_bound_to_vfio() ? bound : others;
      list += (list.empty() ? "" : ", ") + address;
    } catch (const std::system_error&) {
      // It went away meanwhile.
    }
  }
  if (!bound.empty()) return {"physical SSD", true, bound + " (bound to vfio-pci)"};
  if (others.empty()) return {"physical SSD", false, "this machine has no NVMe SSD"};
  return {"physical SSD", false,
          "none is bound to vfio-pci; 'gofs doctor ADDRESS' says what that takes, of " + others};
}

}  // namespace gofs::cli
