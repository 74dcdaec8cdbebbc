// SPDX-License-Identifier: Apache-2.0
//
// QEMU as a process: how it comes up, how it goes, and what is said when it does not come up.
#include "qemu_machine.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "errors_for_test.h"
#include "machine_for_test.h"
#include "qemu_memory.h"

namespace gofs::ssd {
namespace {

using QemuMachineTest = QemuTest;

TEST_F(QemuMachineTest, shares_its_memory_both_ways) {
  QemuMachine machine(options());
  QemuMemory memory(machine, 100);
  EXPECT_EQ(memory.bytes(), 4096u);
  EXPECT_EQ(memory.description(), "4 KiB of a QEMU machine's memory");
  const uint64_t address = machine.ram().guest_address(memory.base(), 4096).value_or(0);
  ASSERT_EQ(address, GuestRam::kReservedBytes);
  const uint64_t stored = 0x0123456789abcdef;
  std::memcpy(memory.base() + 8, &stored, sizeof(stored));
  EXPECT_EQ(machine.qtest().readq(address + 8), stored);
  machine.qtest().writel(address + 4092, 0x13579bdf);
  EXPECT_EQ(machine.qtest().readl(address + 4092), 0x13579bdfu);
  uint32_t seen = 0;
  std::memcpy(&seen, memory.base() + 4092, sizeof(seen));
  EXPECT_EQ(seen, 0x13579bdfu);
  EXPECT_EQ(machine.messages(), "");
}

TEST_F(QemuMachineTest, a_killed_one_reads_as_all_ones_at_once) {
  QemuMachine machine(options());
  EXPECT_TRUE(machine.running());
  EXPECT_EQ(machine.pci().read({0, kPciIdentity}) & 0xffff, 0x8086u);  // q35 itself
  machine.kill();
  EXPECT_FALSE(machine.running());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(machine.qtest().readl(0xfffffff0), ~0u);
  EXPECT_EQ(machine.pci().read({0, kPciIdentity}), ~0u);
  machine.qtest().writel(0x100000, 1);
  EXPECT_TRUE(machine.qtest().gone());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(QemuMachineTest, a_kill_ends_the_waits_of_all_threads) {
  QemuMachine machine(options());
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&machine, i] {
      while (!machine.qtest().gone()) {
        if (i % 2 == 0) {
          machine.qtest().readl(0xfffffff0);
        } else {
          machine.qtest().writel(0x100000 + 4 * i, i);
        }
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  machine.kill();
  for (std::thread& thread : threads) thread.join();
}

TEST_F(QemuMachineTest, two_live_side_by_side) {
  QemuMachine first(options());
  QemuMachine second(options());
  first.qtest().writel(0x200000, 1);
  second.qtest().writel(0x200000, 2);
  EXPECT_EQ(first.qtest().readl(0x200000), 1u);
  first.kill();
  EXPECT_EQ(second.qtest().readl(0x200000), 2u);
}

TEST_F(QemuMachineTest, has_no_files_that_could_be_left_behind) {
  QemuMachine machine(options());
  // Mapped files that were removed are marked so.
  std::ifstream mappings("/proc/self/maps");
  int found = 0;
  for (std::string line; std::getline(mappings, line);) {
    const size_t path = line.find("/gofs-qemu-");
    if (path == std::string::npos) continue;
    ++found;
    EXPECT_TRUE(line.ends_with("/ram (deleted)")) << line;
    const size_t begin = line.find('/');
    EXPECT_FALSE(std::filesystem::exists(line.substr(begin, line.rfind('/') - begin))) << line;
  }
  EXPECT_EQ(found, 1);
}

TEST_F(QemuMachineTest, one_that_does_not_come_up_says_why) {
  QemuOptions no_image = options();
  no_image.disks[0].image = file("missing");
  const Trouble image = trouble_of([&] { QemuMachine machine(no_image); });
  EXPECT_EQ(image.error, ENODEV);
  EXPECT_TRUE(image.says("ended with status 1") && image.says(file("missing"))) << image.text;

  QemuOptions no_binary = options();
  no_binary.binary = "gofs-no-such-qemu";
  const Trouble binary = trouble_of([&] { QemuMachine machine(no_binary); });
  EXPECT_EQ(binary.error, ENOENT);
  EXPECT_TRUE(binary.says("gofs-no-such-qemu")) << binary.text;

  QemuOptions odd_block = options();
  odd_block.disks[0].lba_bytes = 1000;
  const Trouble block = trouble_of([&] { QemuMachine machine(odd_block); });
  EXPECT_EQ(block.error, ENODEV);
  EXPECT_TRUE(block.says("logical_block_size")) << block.text;
}

TEST_F(QemuMachineTest, options_that_make_no_machine_are_refused) {
  QemuOptions no_disk = options();
  no_disk.disks.clear();
  EXPECT_EQ(trouble_of([&] { QemuMachine machine(no_disk); }).error, EINVAL);
  QemuOptions many_disks = options();
  many_disks.disks.resize(kQemuDisksMax + 1);
  EXPECT_EQ(trouble_of([&] { QemuMachine machine(many_disks); }).error, EINVAL);
  QemuOptions no_ram = options();
  no_ram.ram_bytes = 0;
  EXPECT_EQ(trouble_of([&] { QemuMachine machine(no_ram); }).error, EINVAL);
}

TEST_F(QemuMachineTest, a_comma_in_a_path_is_part_of_it) {
  QemuOptions wanted = options();
  const std::string path = file("a,b=c");
  std::filesystem::rename(wanted.disks[0].image, path);
  wanted.disks[0].image = path;
  QemuMachine machine(wanted);
  EXPECT_TRUE(machine.running());
}

}  // namespace
}  // namespace gofs::ssd
