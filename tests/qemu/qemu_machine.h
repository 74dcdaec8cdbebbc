// SPDX-License-Identifier: Apache-2.0
//
// A QEMU process that has NVMe controllers, memory, and no guest: its processor halts at once, and
// this process takes its place over qtest. For tests of the driver against a controller that is not
// of this project. Host only.
#pragma once

#include <memory>
#include <string>

#include "child_process.h"
#include "guest_ram.h"
#include "pci_config.h"
#include "qemu_options.h"
#include "qtest_client.h"
#include "ssd/descriptor.h"

namespace gofs::ssd {

/// Goes after all transports and memory that were made of it. QEMU ends with it, and also when the
/// thread that made it ends (ChildProcess). Leaves no files behind, even if this process is killed.
class QemuMachine {
 public:
  /// Returns when QEMU has come up, in about 0.1 s. Throws std::system_error, whose text has what
  /// QEMU said.
  explicit QemuMachine(const QemuOptions& options);
  QemuMachine(const QemuMachine&) = delete;
  QemuMachine& operator=(const QemuMachine&) = delete;

  QtestClient& qtest() { return *qtest_; }
  PciConfig& pci() { return *pci_; }
  GuestRam& ram() { return *ram_; }

  /// At once, as when the power fails or the SSD is pulled out: what the image has now, it keeps.
  /// The memory stays readable. From any thread, also while others use the machine.
  void kill() { process_->kill(); }
  bool running() { return process_->running(); }
  /// What QEMU has printed.
  std::string messages() const;

 private:
  /// The folder that the machine's files are in for a moment is made in `parent`.
  void start(const QemuOptions& options, const std::string& parent);
  void connect(const std::string& socket);
  /// "qemu-system-x86_64 ended with status 1: ...".
  std::string description_of_end();

  std::string binary_;
  std::unique_ptr<GuestRam> ram_;
  Descriptor output_;
  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<QtestClient> qtest_;
  std::unique_ptr<PciConfig> pci_;
};

}  // namespace gofs::ssd
