// SPDX-License-Identifier: Apache-2.0
#include "ssd/admin_probe.h"

#include <gtest/gtest.h>

#include <system_error>

#include "ssd/test_driver.h"
#include "testing/virtual_transport.hpp"

namespace gofs::ssd {
namespace {

namespace nvme = format::nvme;

/// A virtual controller of 1 MiB behind the interface of a physical one.
struct Rig {
  Rig() : driver({}, media(memory)), transport(driver.ref(), 0) {}
  static Media media(TestMemory& memory) {
    Media media;
    media.base = memory.bytes(kMediaBytes);
    media.bytes = kMediaBytes;
    return media;
  }

  static constexpr uint64_t kMediaBytes = 1 << 20;
  TestMemory memory;
  TestDriver driver;
  testing::VirtualTransport transport;
  uint8_t* const pages = memory.bytes(AdminProbe::kMemoryBytes);
};

TEST(AdminProbe, says_what_the_controller_is) {
  Rig rig;
  AdminProbe probe(rig.transport, rig.pages, address_of(rig.pages));
  EXPECT_EQ(probe.identify_controller().nn, 1u);
  const nvme::IdentifyNamespace space = probe.identify_namespace(1);
  EXPECT_EQ(space.nsze << space.lbaf[space.flbas & 0xf].lba_shift, Rig::kMediaBytes);
  EXPECT_GE(probe.io_queue_count(), 1u);
}

TEST(AdminProbe, goes_on_around_the_ring) {
  Rig rig;
  AdminProbe probe(rig.transport, rig.pages, address_of(rig.pages));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(probe.identify_controller().nn, 1u);
}

TEST(AdminProbe, a_command_that_fails_says_its_status) {
  Rig rig;
  AdminProbe probe(rig.transport, rig.pages, address_of(rig.pages));
  nvme::SubmissionEntry entry{};
  entry.opcode = 0xff;
  EXPECT_EQ(AdminProbe::status_of(probe.execute(entry)), nvme::kInvalidOpcode);
  EXPECT_THROW(probe.identify_namespace(77), std::system_error);
}

TEST(AdminProbe, leaves_the_controller_disabled_and_can_come_again) {
  Rig rig;
  for (int i = 0; i < 3; ++i) {
    {
      AdminProbe probe(rig.transport, rig.pages, address_of(rig.pages));
    }
    EXPECT_EQ(rig.transport.read_register(offsetof(nvme::Registers, csts)) & nvme::kCstsReady, 0u);
  }
}

TEST(AdminProbe, a_controller_that_is_gone_is_an_error) {
  Rig rig;
  rig.transport.remove();
  EXPECT_THROW(AdminProbe(rig.transport, rig.pages, address_of(rig.pages)), std::system_error);
}

TEST(AdminProbe, one_that_goes_meanwhile_is_an_error) {
  Rig rig;
  AdminProbe probe(rig.transport, rig.pages, address_of(rig.pages));
  rig.transport.remove();
  EXPECT_THROW(probe.identify_controller(), std::system_error);
}

}  // namespace
}  // namespace gofs::ssd
