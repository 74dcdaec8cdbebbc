// SPDX-License-Identifier: Apache-2.0
#include "ssd/admin_probe.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "ssd/test_driver.h"

namespace gofs::ssd {
namespace {

namespace nvme = format::nvme;

/// The virtual controller behind the interface of a physical one: it works whenever one of its
/// registers is read or written.
class VirtualTransport final : public Transport {
 public:
  VirtualTransport() : ref_(create_virtual_controller(memory_.space(), config(), media())) {}
  ~VirtualTransport() override { destroy_virtual_controller(memory_.space(), ref_); }

  const std::string& name() const override { return name_; }
  uint8_t* bar() const override { return nullptr; }
  uint64_t bar_bytes() const override { return 0x2000; }
  uint32_t read_register(uint32_t offset) override {
    if (gone) return ~uint32_t{0};
    if (!stuck) ref_.step(simt::Warp(), 0);
    const uint32_t value = simt::load_system_acquire(*at(offset));
    // So that nobody waits long for one that is stuck: CAP.TO is 0.
    return offset == 0 ? value & 0xffffff : value;
  }
  void write_register(uint32_t offset, uint32_t value) override {
    if (gone) return;
    simt::store_system_release(*at(offset), value);
    if (!stuck) ref_.step(simt::Warp(), 0);
  }
  uint64_t map(void* memory, uint64_t) override { return address_of(memory); }
  void unmap(uint64_t, uint64_t) override {}

  TestMemory& memory() { return memory_; }
  bool gone = false;
  bool stuck = false;

 private:
  static VirtualSsdConfig config() { return {}; }
  Media media() {
    Media media;
    media.base = memory_.bytes(1 << 20);
    media.bytes = 1 << 20;
    return media;
  }
  uint32_t* at(uint32_t offset) { return reinterpret_cast<uint32_t*>(ref_.bar + offset); }

  std::string name_ = "virtual";
  TestMemory memory_;
  ControllerRef ref_;
};

TEST(AdminProbe, says_what_the_controller_is) {
  VirtualTransport transport;
  uint8_t* const memory = transport.memory().bytes(AdminProbe::kMemoryBytes);
  AdminProbe probe(transport, memory, transport.map(memory, AdminProbe::kMemoryBytes));
  EXPECT_EQ(probe.identify_controller().nn, 1u);
  const nvme::IdentifyNamespace space = probe.identify_namespace(1);
  EXPECT_EQ(space.nsze << space.lbaf[space.flbas & 0xf].lba_shift, uint64_t{1} << 20);
  EXPECT_GE(probe.io_queue_count(), 1u);
}

TEST(AdminProbe, goes_on_around_the_ring) {
  VirtualTransport transport;
  uint8_t* const memory = transport.memory().bytes(AdminProbe::kMemoryBytes);
  AdminProbe probe(transport, memory, address_of(memory));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(probe.identify_controller().nn, 1u);
}

TEST(AdminProbe, a_command_that_fails_says_its_status) {
  VirtualTransport transport;
  uint8_t* const memory = transport.memory().bytes(AdminProbe::kMemoryBytes);
  AdminProbe probe(transport, memory, address_of(memory));
  nvme::SubmissionEntry entry{};
  entry.opcode = 0xff;
  EXPECT_EQ(AdminProbe::status_of(probe.execute(entry)), nvme::kInvalidOpcode);
  EXPECT_THROW(probe.identify_namespace(77), std::system_error);
}

TEST(AdminProbe, leaves_the_controller_disabled_and_can_come_again) {
  VirtualTransport transport;
  uint8_t* const memory = transport.memory().bytes(AdminProbe::kMemoryBytes);
  for (int i = 0; i < 3; ++i) {
    {
      AdminProbe probe(transport, memory, address_of(memory));
    }
    EXPECT_EQ(transport.read_register(offsetof(nvme::Registers, csts)) & nvme::kCstsReady, 0u);
  }
}

TEST(AdminProbe, a_controller_that_is_gone_or_does_not_stop_is_an_error) {
  VirtualTransport transport;
  uint8_t* const memory = transport.memory().bytes(AdminProbe::kMemoryBytes);
  const auto error = [&] {
    try {
      AdminProbe probe(transport, memory, address_of(memory));
    } catch (const std::system_error& problem) {
      return problem.code().value();
    }
    return 0;
  };
  transport.gone = true;
  EXPECT_EQ(error(), EIO);
  transport.gone = false;
  transport.stuck = true;
  EXPECT_EQ(error(), ETIMEDOUT);
}

}  // namespace
}  // namespace gofs::ssd
