// SPDX-License-Identifier: Apache-2.0
//
// What a QEMU machine of ours is made of, and how QEMU's command line says so. Host only.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gofs::ssd {

/// Block devices of the host that fail, by QEMU's blkdebug: from the start on.
struct InjectedError {
  std::string operation = "read";  // or "write", "write-zeroes", "discard", "flush"
  std::optional<uint64_t> sector;  // of 512 bytes: commands that touch it; else all
  int error = EIO;                 // errno
  bool once = false;               // the first such command alone
};

/// An NVMe controller with one namespace.
struct QemuDisk {
  std::string image;  // a raw image, which exists; written to
  uint32_t lba_bytes = 512;
  uint32_t mdts = 7;  // commands transfer at most 4 KiB << mdts; 0: no limit
  uint32_t max_ioqpairs = 64;
  std::vector<InjectedError> errors;
};

struct QemuOptions {
  std::vector<QemuDisk> disks;
  uint64_t ram_bytes = uint64_t{256} << 20;

  std::string binary = "qemu-system-x86_64";  // path, or a name that PATH knows
  std::vector<std::string> environment;       // "NAME=value": added to this process's
  std::string firmware_folder;                // -L; empty: QEMU's own
};

inline constexpr size_t kQemuDisksMax = 16;

/// Sets binary, environment and firmware folder to those of a QEMU that is not installed, but lies
/// in `folder` with all it needs: scripts/qemu_bundle.sh.
void use_qemu_bundle(QemuOptions& options, const std::string& folder);

/// Files of one machine.
struct QemuFiles {
  std::string ram;
  std::string firmware;
  std::string socket;
};

/// The firmware: the processor halts at its first instruction, so that nothing but us and the
/// controllers ever touches the machine.
inline constexpr size_t kFirmwareBytes = 65536;
inline constexpr char kHaltInstruction = '\xf4';

/// The PCI device number of a disk, on bus 0. Number 0 is q35's own, and so are 30 and 31.
inline constexpr uint32_t pci_device_of_disk(size_t disk) {
  return 4 + static_cast<uint32_t>(disk);
}

/// Without the name of the program. Throws std::system_error (EINVAL) for options that make no
/// machine.
std::vector<std::string> qemu_arguments(const QemuOptions& options, const QemuFiles& files);

}  // namespace gofs::ssd
