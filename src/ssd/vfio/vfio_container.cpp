// SPDX-License-Identifier: Apache-2.0
#include "ssd/vfio/vfio_container.h"

#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "ssd/system_failure.h"

namespace gofs::ssd::vfio {

namespace {

constexpr const char* kContainerPath = "/dev/vfio/vfio";
constexpr uint32_t kInfoBytesMax = 1u << 20;

std::string locked_memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "no limit";
  return std::to_string(limit.rlim_cur >> 10) + " KiB";
}

/// Why a mapping was refused, and what would mend it.
std::string words_for_map(int error) {
  switch (error) {
    case ENOMEM:
      return "; more memory than this user may lock (now " + locked_memory_limit() +
             "): 'ulimit -l unlimited' as root, LimitMEMLOCK=infinity for a service, or a line "
             "'USER - memlock unlimited' in /etc/security/limits.conf";
    case EFAULT:
      return "; these pages cannot be pinned: only memory that was mapped for sharing, or a BAR "
             "that is enabled, can be a controller's";
    case ENOSPC:
      return "; VFIO counts too many mappings: echo 1048576 > "
             "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit before the volume is mounted";
    default:
      return {};
  }
}

/// The capability at `at` of the answer, as far as the answer goes.
std::vector<IovaRange> read_ranges_at(const std::vector<uint8_t>& info, size_t at) {
  using List = vfio_iommu_type1_info_cap_iova_range;
  std::vector<IovaRange> ranges;
  if (at + sizeof(List) > info.size()) return ranges;
  uint32_t count = 0;
  std::memcpy(&count, info.data() + at + offsetof(List, nr_iovas), sizeof count);
  size_t offset = at + sizeof(List);
  vfio_iova_range range{};
  for (uint32_t i = 0; i < count && offset + sizeof range <= info.size(); ++i) {
    std::memcpy(&range, info.data() + offset, sizeof range);
    ranges.push_back({range.start, range.end});
    offset += sizeof range;
  }
  return ranges;
}

}  // namespace

std::vector<IovaRange> ranges_in_iommu_info(const std::vector<uint8_t>& info) {
  vfio_iommu_type1_info head{};
  if (info.size() < sizeof head) return IovaSpace::cautious_ranges();
  std::memcpy(&head, info.data(), sizeof head);
  uint32_t at = (head.flags & VFIO_IOMMU_INFO_CAPS) != 0 ? head.cap_offset : 0;
  // Each capability lies behind the one before it in what the kernel writes: this ends.
  while (at != 0 && at + sizeof(vfio_info_cap_header) <= info.size()) {
    vfio_info_cap_header header{};
    std::memcpy(&header, info.data() + at, sizeof header);
    if (header.id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE) return read_ranges_at(info, at);
    at = header.next > at ? header.next : 0;
  }
  return IovaSpace::cautious_ranges();
}

VfioContainer::VfioContainer(const std::string& root, const PciFunction& function)
    : name_(function.address) {
  open_container(root);
  open_group(root, function);
  choose_iommu();
  read_ranges();
}

void VfioContainer::open_container(const std::string& root) {
  const std::string path = root + kContainerPath;
  container_ = Descriptor::open(path, O_RDWR);
  if (!container_.is_open()) {
    const int error = errno;
    const std::string mend =
        error == ENOENT || error == ENODEV
            ? " is missing: 'modprobe vfio-pci', in a kernel that has CONFIG_VFIO_CONTAINER"
        : error == EACCES ? " may not be opened: run as root, or 'chmod 0666 /dev/vfio/vfio'"
                          : " cannot be opened";
    fail_with(error, name_ + ": " + path + mend);
  }
  const int version = ::ioctl(container_.get(), VFIO_GET_API_VERSION);
  if (version != VFIO_API_VERSION) {
    fail_with(version < 0 ? errno : ENOTSUP,
              name_ + ": " + path + " is not VFIO of version " + std::to_string(VFIO_API_VERSION));
  }
}

void VfioContainer::open_group(const std::string& root, const PciFunction& function) {
  const std::string number = std::to_string(function.iommu_group.value_or(0));
  const std::string path = root + "/dev/vfio/" + number;
  group_ = Descriptor::open(path, O_RDWR);
  if (!group_.is_open()) {
    const int error = errno;
    const std::string mend = error == ENOENT ? " is missing: " + bind_command(function)
                             : error == EACCES
                                 ? " may not be opened: run as root, or 'chown USER " + path + "'"
                             : error == EBUSY ? ": another process has it"
                                              : " cannot be opened";
    fail_with(error, name_ + ": " + path + mend);
  }
  vfio_group_status status{};
  status.argsz = sizeof status;
  if (::ioctl(group_.get(), VFIO_GROUP_GET_STATUS, &status) != 0) {
    fail_with(errno, name_ + ": " + path + " does not say its state");
  }
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    const std::string who = who_keeps_group(function);
    fail_with(EPERM, name_ + ": IOMMU group " + number +
                         " is not VFIO's alone; unbind from their " +
                         "drivers: " + (who.empty() ? "the others in it" : who));
  }
  const int container = container_.get();
  if (::ioctl(group_.get(), VFIO_GROUP_SET_CONTAINER, &container) != 0) {
    fail_with(errno, name_ + ": IOMMU group " + number + " cannot be put into a container");
  }
}

void VfioContainer::choose_iommu() {
  for (const int type : {VFIO_TYPE1v2_IOMMU, VFIO_TYPE1_IOMMU}) {
    if (::ioctl(container_.get(), VFIO_CHECK_EXTENSION, type) != 1) continue;
    if (::ioctl(container_.get(), VFIO_SET_IOMMU, type) == 0) return;
    const int error = errno;
    fail_with(error,
              name_ + ": VFIO does not give out the IOMMU" +
                  (error == EPERM ? ", which cannot remap interrupts: turn interrupt remapping "
                                    "on in the firmware, or, where all devices are trusted, echo "
                                    "1 > /sys/module/vfio_iommu_type1/parameters/"
                                    "allow_unsafe_interrupts"
                                  : ""));
  }
  fail_with(ENOTSUP, name_ + ": VFIO has no type1 IOMMU: modprobe vfio_iommu_type1");
}

void VfioContainer::read_ranges() {
  std::vector<uint8_t> info(sizeof(vfio_iommu_type1_info));
  // The first call says how long the answer is.
  for (int round = 0; round < 2; ++round) {
    vfio_iommu_type1_info head{};
    head.argsz = static_cast<uint32_t>(info.size());
    std::memcpy(info.data(), &head, sizeof head);
    if (::ioctl(container_.get(), VFIO_IOMMU_GET_INFO, info.data()) != 0) {
      fail_with(errno, name_ + ": the IOMMU does not say what it can do");
    }
    std::memcpy(&head, info.data(), sizeof head);
    if ((head.flags & VFIO_IOMMU_INFO_PGSIZES) != 0 &&
        (head.iova_pgsizes & IovaSpace::kPageBytes) == 0) {
      fail_with(ENOTSUP, name_ + ": the IOMMU has no pages of 4 KiB");
    }
    if (head.argsz <= info.size() || head.argsz > kInfoBytesMax) break;
    info.assign(head.argsz, 0);
  }
  space_ = IovaSpace(ranges_in_iommu_info(info));
}

Descriptor VfioContainer::open_device(const std::string& address) {
  Descriptor device(::ioctl(group_.get(), VFIO_GROUP_GET_DEVICE_FD, address.c_str()));
  if (!device.is_open()) {
    fail_with(errno, address + ": VFIO does not open it; the kernel's log (dmesg) says why");
  }
  return device;
}

uint64_t VfioContainer::map(void* memory, uint64_t bytes) {
  const auto address = space_.take(bytes);
  if (!address) {
    fail_with(ENOSPC,
              name_ + ": the IOMMU has no free range of " + std::to_string(bytes) + " bytes");
  }
  vfio_iommu_type1_dma_map request{};
  request.argsz = sizeof request;
  request.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
  request.vaddr = reinterpret_cast<uint64_t>(memory);
  request.iova = *address;
  request.size = bytes;
  if (::ioctl(container_.get(), VFIO_IOMMU_MAP_DMA, &request) != 0) {
    const int error = errno;
    space_.release(*address, bytes);
    fail_with(error, name_ + ": " + std::to_string(bytes) + " bytes cannot be mapped for it" +
                         words_for_map(error));
  }
  return *address;
}

void VfioContainer::unmap(uint64_t address, uint64_t bytes) {
  if (!space_.release(address, bytes)) {
    fail_with(EINVAL, name_ + ": unmapping what was not mapped");
  }
  vfio_iommu_type1_dma_unmap request{};
  request.argsz = sizeof request;
  request.iova = address;
  request.size = bytes;
  if (::ioctl(container_.get(), VFIO_IOMMU_UNMAP_DMA, &request) != 0 || request.size != bytes) {
    fail_with(errno, name_ + ": memory cannot be taken from it");
  }
}

}  // namespace gofs::ssd::vfio
