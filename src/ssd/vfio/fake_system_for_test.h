// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a folder that looks like the sysfs, procfs and /dev of a machine with PCI
// functions.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace gofs::ssd::vfio {

class FakeSystem {
 public:
  FakeSystem() {
    const char* const folder = std::getenv("TMPDIR");
    root_ = std::string(folder != nullptr ? folder : "/tmp") + "/gofs-system-XXXXXX";
    if (mkdtemp(root_.data()) == nullptr) throw std::runtime_error("no folder for a test");
  }
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;
  ~FakeSystem() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  const std::string& root() const { return root_; }

  void write(const std::string& path, const std::string& text) {
    const std::string full = root_ + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::ofstream(full, std::ios::trunc) << text;
  }
  void link(const std::string& path, const std::string& target) {
    const std::string full = root_ + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::filesystem::remove(full);
    std::filesystem::create_directories(root_ + target);
    std::filesystem::create_symlink(root_ + target, full);
  }
  void remove(const std::string& path) { std::filesystem::remove_all(root_ + path); }

  /// A function below a root port; "" for one on the root bus.
  void add_function(const std::string& address, const std::string& class_code,
                    const std::string& root_port = "") {
    std::string real = "/sys/devices/pci0000:00/";
    if (!root_port.empty()) real += root_port + "/";
    real += address;
    link(folder(address), real);
    write(folder(address) + "/class", class_code + "\n");
    write(folder(address) + "/vendor", "0x1b36\n");
    write(folder(address) + "/device", "0x0010\n");
    write(folder(address) + "/numa_node", "-1\n");
    write(folder(address) + "/resource",
          "0x00000000fea00000 0x00000000fea03fff 0x0000000000140204\n"
          "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
  }
  void set_driver(const std::string& address, const std::string& driver) {
    link(folder(address) + "/driver", "/sys/bus/pci/drivers/" + driver);
  }
  void set_group(const std::string& address, int group) {
    const std::string real = "/sys/kernel/iommu_groups/" + std::to_string(group);
    link(folder(address) + "/iommu_group", real);
    link(real + "/devices/" + address, folder(address));
  }
  /// A namespace of a controller that nvme drives.
  void add_disk(const std::string& address, const std::string& name, const std::string& number) {
    const std::string real = folder(address) + "/nvme/nvme0/" + name;
    write(real + "/dev", number + "\n");
    write(real + "/size", "2048\n");
    link("/sys/class/block/" + name, real);
  }

  static std::string folder(const std::string& address) {
    return "/sys/bus/pci/devices/" + address;
  }

 private:
  std::string root_;
};

/// An SSD that is ready for VFIO, alone in group 7 below root port 0000:00:01.0.
inline constexpr const char* kSsd = "0000:65:00.0";
inline void add_ready_ssd(FakeSystem& system) {
  system.add_function(kSsd, "0x010802", "0000:00:01.0");
  system.set_driver(kSsd, "vfio-pci");
  system.set_group(kSsd, 7);
}

}  // namespace gofs::ssd::vfio
