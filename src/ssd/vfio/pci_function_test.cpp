// SPDX-License-Identifier: Apache-2.0
#include "ssd/vfio/pci_function.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <system_error>

#include "ssd/vfio/block_devices.h"
#include "ssd/vfio/fake_system_for_test.h"

namespace gofs::ssd::vfio {
namespace {

TEST(PciAddress, is_completed_and_written_in_small_letters) {
  EXPECT_EQ(full_pci_address("0000:65:00.0"), "0000:65:00.0");
  EXPECT_EQ(full_pci_address("65:00.0"), "0000:65:00.0");
  EXPECT_EQ(full_pci_address("ABCD:Ef:1f.7"), "abcd:ef:1f.7");
}

TEST(PciAddress, other_text_is_none) {
  for (const char* const text :
       {"", "65", "65:00", "65:00.8", "65:20.0", "0000:65:00.00", "0000:65:00.0 ", "g5:00.0",
        "0000-65-00.0", "../../../..", "00000:65:00.0", "/dev/nvme0n1"}) {
    EXPECT_FALSE(full_pci_address(text).has_value()) << text;
  }
}

TEST(PciFunction, says_what_sysfs_says) {
  FakeSystem system;
  add_ready_ssd(system);
  const std::string folder = FakeSystem::folder(kSsd);
  system.write(folder + "/current_link_speed", "8.0 GT/s PCIe\n");
  system.write(folder + "/current_link_width", "2\n");
  system.write(folder + "/max_link_speed", "16.0 GT/s PCIe\n");
  system.write(folder + "/max_link_width", "4\n");
  system.write(folder + "/numa_node", "1\n");
  const PciFunction ssd = read_pci_function(system.root(), "65:00.0");
  EXPECT_EQ(ssd.address, kSsd);
  EXPECT_TRUE(ssd.is_nvme());
  EXPECT_TRUE(ssd.is_bound_to_vfio());
  EXPECT_EQ(ssd.vendor, 0x1b36u);
  EXPECT_EQ(ssd.iommu_group, 7u);
  EXPECT_TRUE(ssd.group_members.empty());
  EXPECT_EQ(ssd.bar_bytes[0], 0x4000u);
  EXPECT_EQ(ssd.bar_bytes[1], 0u);
  EXPECT_EQ(ssd.link.speed, "8.0 GT/s PCIe");
  EXPECT_EQ(ssd.link.width, 2u);
  EXPECT_EQ(ssd.link_max.speed, "16.0 GT/s PCIe");
  EXPECT_EQ(ssd.link_max.width, 4u);
  EXPECT_EQ(ssd.numa_node, 1);
  EXPECT_EQ(ssd.root_port, "0000:00:01.0");
}

TEST(PciFunction, what_sysfs_does_not_say_is_empty) {
  FakeSystem system;
  system.add_function(kSsd, "0x010802");
  const PciFunction ssd = read_pci_function(system.root(), kSsd);
  EXPECT_EQ(ssd.driver, "");
  EXPECT_FALSE(ssd.iommu_group.has_value());
  EXPECT_EQ(ssd.root_port, "");  // it is on the root bus itself
  EXPECT_EQ(ssd.link.width, 0u);
  EXPECT_EQ(ssd.numa_node, -1);
}

TEST(PciFunction, one_that_is_not_there_or_no_address_is_refused) {
  FakeSystem system;
  const auto error_of = [&system](const char* address) {
    try {
      read_pci_function(system.root(), address);
    } catch (const std::system_error& problem) {
      EXPECT_NE(std::string(problem.what()).find(address), std::string::npos) << problem.what();
      return problem.code().value();
    }
    return 0;
  };
  EXPECT_EQ(error_of("0000:65:00.0"), ENODEV);
  EXPECT_EQ(error_of("nvme0"), EINVAL);
}

TEST(PciFunction, bridges_and_functions_without_a_driver_do_not_keep_the_group) {
  FakeSystem system;
  add_ready_ssd(system);
  system.add_function("0000:00:01.0", "0x060400");
  system.set_driver("0000:00:01.0", "shpchp");
  system.set_group("0000:00:01.0", 7);
  system.add_function("0000:65:00.1", "0x020000");
  system.set_group("0000:65:00.1", 7);
  const PciFunction ssd = read_pci_function(system.root(), kSsd);
  ASSERT_EQ(ssd.group_members.size(), 2u);
  EXPECT_TRUE(ssd.group_members[0].bridge);
  EXPECT_EQ(who_keeps_group(ssd), "");
  system.set_driver("0000:65:00.1", "nvidia");
  EXPECT_EQ(who_keeps_group(read_pci_function(system.root(), kSsd)), "0000:65:00.1 (nvidia)");
}

TEST(PciFunction, commands_name_the_driver_to_be_left_only_where_there_is_one) {
  FakeSystem system;
  system.add_function(kSsd, "0x010802");
  EXPECT_EQ(bind_command(read_pci_function(system.root(), kSsd)),
            "modprobe vfio-pci; echo vfio-pci > /sys/bus/pci/devices/0000:65:00.0/driver_override; "
            "echo 0000:65:00.0 > /sys/bus/pci/drivers_probe");
  system.set_driver(kSsd, "nvme");
  const PciFunction bound = read_pci_function(system.root(), kSsd);
  EXPECT_NE(bind_command(bound).find("/driver/unbind; "), std::string::npos);
  EXPECT_NE(release_command(bound).find("echo > "), std::string::npos);
}

TEST(BlockDevices, are_the_namespaces_and_their_partitions) {
  FakeSystem system;
  system.add_function(kSsd, "0x010802");
  system.add_disk(kSsd, "nvme0n1", "259:0");
  system.write("/sys/class/block/nvme0n1/nvme0n1p1/size", "8\n");
  system.link("/sys/class/block/nvme0n1p1", "/sys/class/block/nvme0n1/nvme0n1p1");
  const auto devices = read_block_devices(system.root(), read_pci_function(system.root(), kSsd));
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "nvme0n1");
  EXPECT_EQ(devices[0].bytes, 2048u * 512);
  EXPECT_EQ(devices[1].name, "nvme0n1p1");
  EXPECT_EQ(what_is_in_use(devices), "");
  EXPECT_EQ(devices[0].contents, "");
  EXPECT_FALSE(devices[0].is_known());
}

TEST(BlockDevices, a_disk_that_is_used_says_for_what) {
  FakeSystem system;
  system.add_function(kSsd, "0x010802");
  system.add_disk(kSsd, "nvme0n1", "259:0");
  const auto use = [&system] {
    return what_is_in_use(
        read_block_devices(system.root(), read_pci_function(system.root(), kSsd)));
  };
  system.write("/proc/self/mountinfo",
               "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
               "23 22 259:0 / /mnt/two\\040words rw shared:1 - f2fs /dev/root rw\n");
  EXPECT_EQ(use(), "nvme0n1 is mounted at /mnt/two words");
  system.write("/proc/self/mountinfo", "23 22 0:44 / /data rw - btrfs /dev/nvme0n1 rw\n");
  EXPECT_EQ(use(), "nvme0n1 is mounted at /data");
  system.remove("/proc/self/mountinfo");
  system.write("/proc/swaps", "Filename Type Size Used Priority\n/dev/nvme0n1 partition 9 0 -2\n");
  EXPECT_EQ(use(), "nvme0n1 is used for swap");
  system.remove("/proc/swaps");
  system.write("/sys/class/block/nvme0n1/holders/md127/x", "");
  EXPECT_EQ(use(), "nvme0n1 is part of md127");
}

TEST(BlockDevices, one_of_several_ways_to_a_disk_is_that_disk) {
  FakeSystem system;
  system.add_function(kSsd, "0x010802");
  system.write(FakeSystem::folder(kSsd) + "/nvme/nvme0/nvme2c0n1/size", "1\n");
  system.write("/sys/class/block/nvme2n1/size", "2048\n");
  const auto devices = read_block_devices(system.root(), read_pci_function(system.root(), kSsd));
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].name, "nvme2n1");
  EXPECT_EQ(devices[0].bytes, 2048u * 512);
}

TEST(BlockDevices, contents_are_what_udev_found) {
  FakeSystem system;
  system.add_function(kSsd, "0x010802");
  system.add_disk(kSsd, "nvme0n1", "259:0");
  const auto contents = [&system] {
    return read_block_devices(system.root(), read_pci_function(system.root(), kSsd)).at(0).contents;
  };
  system.write("/run/udev/data/b259:0", "S:disk/by-id/x\nE:ID_FS_TYPE=f2fs\n");
  EXPECT_EQ(contents(), "f2fs");
  system.write("/run/udev/data/b259:0", "E:ID_PART_TABLE_TYPE=gpt\n");
  EXPECT_EQ(contents(), "gpt partition table");
  system.write("/run/udev/data/b259:0", "S:disk/by-id/x\n");
  EXPECT_EQ(contents(), "nothing known");
}

}  // namespace
}  // namespace gofs::ssd::vfio
