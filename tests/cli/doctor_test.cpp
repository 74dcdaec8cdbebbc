// SPDX-License-Identifier: Apache-2.0
//
// gofs doctor ADDRESS, on machines that are folders.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "run_gofs.h"
#include "ssd/vfio/fake_system_for_test.h"

namespace gofs::cli_test {
namespace {

using ssd::vfio::FakeSystem;
using ssd::vfio::kSsd;
using Json = nlohmann::json;

/// A machine and what gofs says of it.
class DoctorSsd : public testing::Test {
 protected:
  DoctorSsd() { ::setenv("GOFS_SYSTEM_ROOT", system_.root().c_str(), 1); }
  ~DoctorSsd() override { ::unsetenv("GOFS_SYSTEM_ROOT"); }

  /// The line of that name, "yes ..." or "no ..."; empty if there is none.
  std::string line(const std::string& name) {
    const Answer answer = run_gofs({"doctor", kSsd, "--json"});
    EXPECT_EQ(answer.err, "");
    status_ = answer.status;
    for (const Json& finding : Json::parse(answer.out)) {
      if (finding["name"] != name) continue;
      return (finding["ok"].get<bool>() ? "yes " : "no ") + finding["detail"].get<std::string>();
    }
    return {};
  }
  void expect(const std::string& name, const std::string& start,
              const std::vector<std::string>& words = {}) {
    const std::string text = line(name);
    EXPECT_TRUE(text.starts_with(start)) << name << ": " << text;
    for (const std::string& word : words) {
      EXPECT_NE(text.find(word), std::string::npos)
          << name << " without '" << word << "': " << text;
    }
  }
  void add_gpu(const std::string& address, const std::string& root_port, const char* bar_last) {
    system_.add_function(address, "0x030200", root_port);
    system_.write(FakeSystem::folder(address) + "/vendor", "0x10de\n");
    system_.write(FakeSystem::folder(address) + "/resource",
                  "0x00000000b0000000 0x00000000b0ffffff 0x40200\n0x0000002000000000 " +
                      std::string(bar_last) + " 0x14220c\n");
  }

  FakeSystem system_;
  int status_ = -1;
};

TEST_F(DoctorSsd, one_that_linux_has_is_told_how_to_be_bound) {
  system_.add_function(kSsd, "0x010802");
  system_.set_driver(kSsd, "nvme");
  system_.set_group(kSsd, 7);
  system_.add_disk(kSsd, "nvme0n1", "259:0");
  expect("NVMe SSD", "yes 0000:65:00.0");
  expect("disks", "yes nvme0n1 (1.0 MiB, contents unknown");
  expect("IOMMU", "yes on, the SSD is in group 7");
  expect("IOMMU group", "yes nothing else");
  expect("vfio-pci", "no nvme has it", {"driver_override", "drivers_probe"});
  EXPECT_EQ(line("VFIO access"), "");
  EXPECT_EQ(line("controller"), "");
  EXPECT_EQ(status_, 1);
}

TEST_F(DoctorSsd, a_disk_that_is_mounted_is_left_to_linux) {
  system_.add_function(kSsd, "0x010802");
  system_.set_driver(kSsd, "nvme");
  system_.set_group(kSsd, 7);
  system_.add_disk(kSsd, "nvme0n1", "259:0");
  system_.write("/proc/self/mountinfo", "1 0 259:0 / / rw - ext4 /dev/nvme0n1 rw\n");
  expect("disks", "no nvme0n1", {"mounted at /", "leave it to Linux"});
  expect("vfio-pci", "no nvme has it", {"in use"});
  EXPECT_EQ(line("vfio-pci").find("driver_override"), std::string::npos);
}

TEST_F(DoctorSsd, a_file_system_is_a_warning) {
  system_.add_function(kSsd, "0x010802");
  system_.set_driver(kSsd, "nvme");
  system_.set_group(kSsd, 7);
  system_.add_disk(kSsd, "nvme0n1", "259:0");
  system_.write("/run/udev/data/b259:0", "E:ID_FS_TYPE=xfs\n");
  expect("disks", "no nvme0n1 (1.0 MiB, xfs)", {"lost"});
  expect("vfio-pci", "no nvme has it", {"driver_override"});
}

TEST_F(DoctorSsd, what_is_not_on_or_shared_is_named) {
  system_.add_function(kSsd, "0x010802");
  expect("IOMMU", "no off", {"intel_iommu=on"});
  EXPECT_EQ(line("IOMMU group"), "");
  system_.set_group(kSsd, 7);
  system_.add_function("0000:65:00.1", "0x020000");
  system_.set_driver("0000:65:00.1", "mlx5_core");
  system_.set_group("0000:65:00.1", 7);
  expect("IOMMU group", "no shared with 0000:65:00.1 (mlx5_core)", {"driver/unbind"});
}

TEST_F(DoctorSsd, one_that_is_bound_but_cannot_be_opened_says_why) {
  add_ready_ssd(system_);
  expect("vfio-pci", "yes bound", {"drivers_probe"});
  expect("VFIO access", "no ", {"/dev/vfio/vfio is missing"});
  EXPECT_EQ(line("controller"), "");
  system_.write("/dev/vfio/vfio", "");
  system_.write("/dev/vfio/7", "");
  expect("VFIO access", "yes ");
  expect("controller", "no 0000:65:00.0", {"is not VFIO"});
  EXPECT_EQ(status_, 1);
}

TEST_F(DoctorSsd, links_that_are_slower_than_they_could_be_are_told) {
  add_ready_ssd(system_);
  const std::string folder = FakeSystem::folder(kSsd);
  expect("link", "yes not known");
  for (const char* const which : {"current", "max"}) {
    system_.write(folder + "/" + which + "_link_speed", "32.0 GT/s PCIe\n");
    system_.write(folder + "/" + which + "_link_width", "4\n");
  }
  expect("link", "yes 4 lanes at 32.0 GT/s PCIe");
  system_.write(folder + "/current_link_width", "2\n");
  expect("link", "no 2 lanes at 32.0 GT/s PCIe, and the SSD could have 4");
}

TEST_F(DoctorSsd, memory_and_options_are_looked_at) {
  add_ready_ssd(system_);
  expect("huge pages", "no 0 of 2 MiB", {"nr_hugepages"});
  system_.write("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "1024\n");
  expect("huge pages", "yes 1024 of 2 MiB");
  expect("kernel options", "no without iommu=pt", {"doorbell=cpu"});
  system_.write("/proc/cmdline", "quiet intel_iommu=on iommu=pt\n");
  expect("kernel options", "yes iommu=pt");
  EXPECT_NE(line("locked memory"), "");
}

TEST_F(DoctorSsd, gpus_are_looked_at) {
  add_ready_ssd(system_);
  expect("GPU", "no there is none");
  add_gpu("0000:66:00.0", "0000:00:01.0", "0x0000003fffffffff");
  expect("GPU", "yes 0000:66:00.0, BAR1 of 128.0 GiB, below one root port");
  EXPECT_NE(line("GPU doorbells"), "");
  add_gpu("0000:66:00.0", "0000:00:02.0", "0x000000200fffffff");
  expect("GPU", "no 0000:66:00.0, BAR1 of 256.0 MiB, no common root port", {"Resizable BAR"});
}

TEST_F(DoctorSsd, other_devices_and_none_are_refused) {
  system_.add_function(kSsd, "0x030000");
  expect("NVMe SSD", "no 0000:65:00.0", {"030000"});
  EXPECT_EQ(line("IOMMU"), "");
  EXPECT_EQ(status_, 1);
  EXPECT_NE(run_gofs({"doctor", "66:00.0"}).err.find("no such PCI function"), std::string::npos);
  EXPECT_NE(run_gofs({"doctor", "nvme0"}).err.find("no address of a PCI function"),
            std::string::npos);
}

TEST_F(DoctorSsd, the_machine_names_its_ssds) {
  const auto physical = [] {
    const Json list = Json::parse(gofs_says({"doctor", "--json"}));
    for (const Json& finding : list) {
      if (finding["name"] == "physical SSD") return finding["detail"].get<std::string>();
    }
    return std::string();
  };
  EXPECT_EQ(physical(), "this machine has no NVMe SSD");
  system_.add_function(kSsd, "0x010802");
  EXPECT_NE(physical().find("none is bound"), std::string::npos);
  add_ready_ssd(system_);
  EXPECT_EQ(physical(), "0000:65:00.0 (bound to vfio-pci)");
}

}  // namespace
}  // namespace gofs::cli_test
