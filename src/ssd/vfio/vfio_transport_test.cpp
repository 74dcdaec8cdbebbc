// SPDX-License-Identifier: Apache-2.0
//
// What can be seen without an SSD: that each thing that is missing is named, with what would mend
// it. Everything else is tests/physical's.
#include "ssd/vfio/vfio_transport.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "ssd/vfio/fake_system_for_test.h"

namespace gofs::ssd::vfio {
namespace {

/// Opening fails with that error, and its text has all of the words.
void expect_refusal(const FakeSystem& system, const std::string& address, int error,
                    const std::vector<std::string>& words) {
  try {
    VfioTransport transport(address, system.root());
  } catch (const std::system_error& problem) {
    EXPECT_EQ(problem.code().value(), error) << problem.what();
    for (const std::string& word : words) {
      EXPECT_NE(std::string(problem.what()).find(word), std::string::npos)
          << "no '" << word << "' in: " << problem.what();
    }
    return;
  }
  ADD_FAILURE() << "it was opened";
}

TEST(VfioTransport, text_that_is_no_address_is_refused) {
  FakeSystem system;
  expect_refusal(system, "/dev/nvme0n1", EINVAL, {"/dev/nvme0n1", "0000:65:00.0"});
}

TEST(VfioTransport, an_address_where_nothing_is_says_so) {
  FakeSystem system;
  expect_refusal(system, "66:00.0", ENODEV, {"0000:66:00.0", "lspci"});
}

TEST(VfioTransport, what_is_no_nvme_ssd_is_refused) {
  FakeSystem system;
  system.add_function("0000:01:00.0", "0x030000");
  system.set_driver("0000:01:00.0", "vfio-pci");
  system.set_group("0000:01:00.0", 3);
  expect_refusal(system, "0000:01:00.0", ENOTSUP, {"0000:01:00.0", "no NVMe SSD"});
}

TEST(VfioTransport, without_an_iommu_it_says_how_to_boot) {
  FakeSystem system;
  system.add_function(kSsd, "0x010802");
  expect_refusal(system, kSsd, ENODEV, {kSsd, "IOMMU is off", "intel_iommu=on"});
}

TEST(VfioTransport, one_that_another_driver_has_says_how_to_bind_it) {
  FakeSystem system;
  add_ready_ssd(system);
  system.set_driver(kSsd, "nvme");
  expect_refusal(
      system, kSsd, EBUSY,
      {"not bound to vfio-pci but to nvme", "driver_override", "driver/unbind", "drivers_probe"});
  system.remove(FakeSystem::folder(kSsd) + "/driver");
  expect_refusal(system, kSsd, EBUSY, {"no driver", "driver_override"});
}

TEST(VfioTransport, a_shared_group_names_who_shares_it) {
  FakeSystem system;
  add_ready_ssd(system);
  system.add_function("0000:65:00.1", "0x030000");
  system.set_driver("0000:65:00.1", "nvidia");
  system.set_group("0000:65:00.1", 7);
  expect_refusal(system, kSsd, EPERM, {"IOMMU group 7", "0000:65:00.1 (nvidia)"});
}

TEST(VfioTransport, missing_modules_are_named) {
  FakeSystem system;
  add_ready_ssd(system);
  expect_refusal(system, kSsd, ENOENT, {"/dev/vfio/vfio is missing", "modprobe vfio-pci"});
}

TEST(VfioTransport, a_file_that_is_not_vfio_is_refused) {
  FakeSystem system;
  add_ready_ssd(system);
  system.write("/dev/vfio/vfio", "");
  expect_refusal(system, kSsd, ENOTTY, {"/dev/vfio/vfio is not VFIO"});
}

TEST(VfioTransport, who_may_not_open_it_is_told_how) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may open everything";
  FakeSystem system;
  add_ready_ssd(system);
  system.write("/dev/vfio/vfio", "");
  std::filesystem::permissions(system.root() + "/dev/vfio/vfio", std::filesystem::perms::none);
  expect_refusal(system, kSsd, EACCES, {"may not be opened", "chmod"});
}

}  // namespace
}  // namespace gofs::ssd::vfio
