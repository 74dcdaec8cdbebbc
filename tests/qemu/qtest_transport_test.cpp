// SPDX-License-Identifier: Apache-2.0
//
// QEMU's NVMe controller through the Transport that drivers have: registers, queues in shared
// memory, commands, and what happens when it goes.
#include "qtest_transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "driver_for_test.h"
#include "errors_for_test.h"
#include "machine_for_test.h"

namespace gofs::ssd {
namespace {

using namespace format::nvme;

/// A machine with one controller, and a transport.
struct OneController {
  explicit OneController(const QemuOptions& options) : machine(options), transport(machine) {}
  uint32_t read(uint32_t offset) { return transport.read_register(offset); }

  QemuMachine machine;
  QtestTransport transport;
};

using QtestTransportTest = QemuTest;

TEST_F(QtestTransportTest, a_controller_says_what_it_can) {
  OneController one(options());
  EXPECT_EQ(one.transport.name(), "QEMU's 00:04.0");
  EXPECT_EQ(one.transport.bar(), nullptr);
  EXPECT_GE(one.transport.bar_bytes(), kDoorbellOffset + 65 * 8);
  const uint32_t cap_high = one.read(offsetof(Registers, cap) + 4);
  EXPECT_GE(one.read(offsetof(Registers, cap)) & 0xffff, 255u);  // entries - 1
  EXPECT_EQ(cap_high >> (kCapStrideShift - 32) & 0xf, 0u);
  EXPECT_EQ(cap_high >> (kCapNvmCommandSetShift - 32) & 1, 1u);
  EXPECT_EQ(cap_high >> 16 & 0xf, 0u);                     // pages of 4 KiB
  EXPECT_GE(one.read(offsetof(Registers, vs)), 0x10000u);  // 1.0
  EXPECT_EQ(one.read(offsetof(Registers, csts)), 0u);
  EXPECT_EQ(one.read(offsetof(Registers, cc)) & kCcEnable, 0u);
}

TEST_F(QtestTransportTest, registers_of_64_bits_take_two_halves) {
  OneController one(options());
  HandDriver driver(one.machine, one.transport);
  const uint64_t value = 0x123456789000;
  driver.write64(offsetof(Registers, asq), value);
  driver.write64(offsetof(Registers, acq), ~uint64_t{4095});
  EXPECT_EQ(driver.read64(offsetof(Registers, asq)), value);
  EXPECT_EQ(driver.read64(offsetof(Registers, acq)), ~uint64_t{4095});
}

TEST_F(QtestTransportTest, identifies_itself_over_an_admin_queue) {
  QemuOptions wanted = options();
  wanted.disks[0].mdts = 5;
  wanted.disks[0].lba_bytes = 4096;
  OneController one(wanted);
  HandDriver driver(one.machine, one.transport);
  ASSERT_TRUE(driver.enable());
  // Longer than the queue, so that the phase turns twice.
  for (uint32_t i = 0; i < 2 * HandDriver::kDepth + 3; ++i) {
    std::memset(driver.data(), 0, HandDriver::kPage);
    ASSERT_EQ(driver.run(0, driver.identify(kIdentifyController, 0)), kSuccess);
    const auto& controller = *reinterpret_cast<const IdentifyController*>(driver.data());
    EXPECT_EQ(controller.vendor_id, 0x1b36u);  // Red Hat's, for QEMU
    EXPECT_EQ(std::string(controller.serial_number, 5), "gofs0");
    EXPECT_EQ(controller.mdts, 5u);
  }
  ASSERT_EQ(driver.run(0, driver.identify(kIdentifyNamespace, 1)), kSuccess);
  const auto& space = *reinterpret_cast<const IdentifyNamespace*>(driver.data());
  EXPECT_EQ(space.lbaf[space.flbas & 0xf].lba_shift, 12u);
  EXPECT_EQ(space.nsze, kDiskBytes / 4096);
  EXPECT_EQ(driver.run(0, driver.identify(kIdentifyNamespace, 1000)), kInvalidNamespace);
  EXPECT_TRUE(driver.disable());
}

TEST_F(QtestTransportTest, writes_that_were_answered_outlive_it) {
  const QemuOptions wanted = options();
  {
    OneController one(wanted);
    HandDriver driver(one.machine, one.transport);
    ASSERT_TRUE(driver.enable());
    driver.create_queues();
    std::memset(driver.data(), 'w', 2 * HandDriver::kPage);
    ASSERT_EQ(driver.run(1, driver.io_entry(IoOpcode::kWrite, 100, 16)), kSuccess);
    ASSERT_EQ(driver.run(1, driver.io_entry(IoOpcode::kFlush, 0, 1)), kSuccess);
    std::memset(driver.data(), 0, 2 * HandDriver::kPage);
    ASSERT_EQ(driver.run(1, driver.io_entry(IoOpcode::kRead, 100, 16)), kSuccess);
    EXPECT_EQ(driver.data()[2 * HandDriver::kPage - 1], 'w');
    one.machine.kill();
  }
  std::ifstream image(wanted.disks[0].image, std::ios::binary);
  std::string bytes(3 * HandDriver::kPage, '\0');
  image.seekg(100 * 512 - HandDriver::kPage / 2);
  image.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const std::string half(HandDriver::kPage / 2, '\0');
  EXPECT_EQ(bytes, half + std::string(2 * HandDriver::kPage, 'w') + half);
}

TEST_F(QtestTransportTest, injected_errors_are_the_status_of_the_commands_they_hit) {
  QemuDisk failing = disk();
  failing.errors = {{.operation = "read", .sector = 80},
                    {.operation = "write", .sector = 200, .error = ENOSPC, .once = true}};
  OneController one(options(failing));
  HandDriver driver(one.machine, one.transport);
  ASSERT_TRUE(driver.enable());
  driver.create_queues();
  EXPECT_EQ(driver.run(1, driver.io_entry(IoOpcode::kRead, 64, 16)), kSuccess);
  EXPECT_EQ(driver.run(1, driver.io_entry(IoOpcode::kRead, 65, 16)), kUnrecoveredReadError);
  EXPECT_EQ(driver.run(1, driver.io_entry(IoOpcode::kRead, 80, 16)), kUnrecoveredReadError);
  EXPECT_EQ(driver.run(1, driver.io_entry(IoOpcode::kRead, 81, 16)), kSuccess);
  EXPECT_EQ(driver.run(1, driver.io_entry(IoOpcode::kWrite, 80, 16)), kSuccess);
  EXPECT_NE(driver.run(1, driver.io_entry(IoOpcode::kWrite, 200, 16)), kSuccess);
  EXPECT_EQ(driver.run(1, driver.io_entry(IoOpcode::kWrite, 200, 16)), kSuccess);
}

TEST_F(QtestTransportTest, memory_that_is_not_the_machines_is_not_mapped) {
  OneController one(options());
  QemuMemory memory(one.machine, 16384);
  alignas(4096) static uint8_t elsewhere[4096];
  const auto refusal = [&](void* at, uint64_t bytes) {
    return trouble_of([&] { one.transport.map(at, bytes); });
  };
  const Trouble outside = refusal(elsewhere, sizeof(elsewhere));
  EXPECT_EQ(outside.error, EINVAL);
  EXPECT_TRUE(outside.says("use QemuMemory")) << outside.text;
  EXPECT_EQ(refusal(memory.base(), uint64_t{1} << 30).error, EINVAL);
  const Trouble crooked = refusal(memory.base() + 512, 4096);
  EXPECT_EQ(crooked.error, EINVAL);
  EXPECT_TRUE(crooked.says("multiple of 4 KiB")) << crooked.text;
  EXPECT_EQ(refusal(memory.base(), 100).error, EINVAL);
  EXPECT_EQ(refusal(memory.base(), 0).error, EINVAL);

  const uint64_t address = one.transport.map(memory.base(), 16384);
  EXPECT_EQ(one.transport.map(memory.base() + 4096, 4096), address + 4096);
  one.transport.unmap(address + 4096, 4096);
  one.transport.unmap(address, 16384);
}

TEST_F(QtestTransportTest, a_transport_that_goes_leaves_the_controller_stopped) {
  QemuMachine machine(options());
  for (int round = 0; round < 2; ++round) {
    QtestTransport transport(machine);
    EXPECT_EQ(transport.read_register(offsetof(Registers, csts)), 0u);
    HandDriver driver(machine, transport);
    ASSERT_TRUE(driver.enable());
    ASSERT_EQ(driver.run(0, driver.identify(kIdentifyController, 0)), kSuccess);
    EXPECT_NE(machine.pci().read({4, kPciCommand}) & kPciBusMaster, 0u);
  }
  EXPECT_EQ(machine.pci().read({4, kPciCommand}) & (kPciBusMaster | kPciMemorySpace), 0u);
}

TEST_F(QtestTransportTest, a_killed_controller_reads_as_all_ones_and_nothing_hangs) {
  auto one = std::make_unique<OneController>(options());
  auto driver = std::make_unique<HandDriver>(one->machine, one->transport);
  ASSERT_TRUE(driver->enable());
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (one->read(offsetof(Registers, csts)) != ~0u) {
        one->transport.write_register(kDoorbellOffset + 4, 0);
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto begin = std::chrono::steady_clock::now();
  one->machine.kill();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(one->read(offsetof(Registers, vs)), ~0u);
  one->transport.write_register(offsetof(Registers, cc), 0);
  driver.reset();
  const Trouble again = trouble_of([&] { QtestTransport other(one->machine); });
  EXPECT_EQ(again.error, ENODEV);
  EXPECT_TRUE(again.says("QEMU is gone")) << again.text;
  one.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(QtestTransportTest, a_machine_has_as_many_controllers_as_disks) {
  QemuOptions wanted = options();
  wanted.disks.push_back(disk());
  wanted.disks[1].lba_bytes = 4096;
  QemuMachine machine(wanted);
  QtestTransport first(machine, 0);
  QtestTransport second(machine, 1);
  EXPECT_EQ(second.name(), "QEMU's 00:05.0");
  HandDriver one(machine, first);
  HandDriver two(machine, second);
  ASSERT_TRUE(one.enable());
  EXPECT_EQ(second.read_register(offsetof(Registers, csts)), 0u);
  ASSERT_TRUE(two.enable());
  ASSERT_EQ(two.run(0, two.identify(kIdentifyController, 0)), kSuccess);
  const auto& controller = *reinterpret_cast<const IdentifyController*>(two.data());
  EXPECT_EQ(std::string(controller.serial_number, 5), "gofs1");
  ASSERT_EQ(one.run(0, one.identify(kIdentifyNamespace, 1)), kSuccess);

  const Trouble none = trouble_of([&] { QtestTransport third(machine, 2); });
  EXPECT_EQ(none.error, ENODEV);
  EXPECT_TRUE(none.says("2 NVMe controllers")) << none.text;
}

TEST_F(QtestTransportTest, two_machines_do_not_share_anything) {
  OneController first(options());
  OneController second(options());
  HandDriver one(first.machine, first.transport);
  ASSERT_TRUE(one.enable());
  EXPECT_EQ(second.read(offsetof(Registers, csts)), 0u);
  // Nor does one reach the other's memory.
  QemuMemory memory(second.machine, 4096);
  EXPECT_EQ(trouble_of([&] { first.transport.map(memory.base(), 4096); }).error, EINVAL);
  first.machine.kill();
  HandDriver two(second.machine, second.transport);
  ASSERT_TRUE(two.enable());
  EXPECT_EQ(two.run(0, two.identify(kIdentifyController, 0)), kSuccess);
}

}  // namespace
}  // namespace gofs::ssd
