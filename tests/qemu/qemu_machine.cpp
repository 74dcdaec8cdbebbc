// SPDX-License-Identifier: Apache-2.0
#include "qemu_machine.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "hexadecimal.h"
#include "scratch_folder.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

// It takes 0.1 s; a busy machine, or sanitizers beside it, may take a hundred times as long.
constexpr std::chrono::seconds kStartTimeout{60};
constexpr std::chrono::milliseconds kConnectPause{2};

// Where a processor begins: in the last 16 bytes of the firmware.
constexpr uint64_t kResetVector = 0xfffffff0;
constexpr uint32_t kFourHalts = 0xf4f4f4f4;

void write_firmware(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << std::string(kFirmwareBytes, kHaltInstruction);
  file.close();
  if (!file) fail_with(EIO, path + ": cannot write the firmware");
}

}  // namespace

QemuMachine::QemuMachine(const QemuOptions& options) : binary_(options.binary) {
  // Memory that is a file on a disk would be written back to it for nothing. In containers the
  // folder for memory may be small, or not there.
  constexpr char kMemoryFolder[] = "/dev/shm";
  const std::string disk_folder = std::filesystem::temp_directory_path();
  try {
    start(options, kMemoryFolder);
  } catch (const std::system_error&) {
    if (ram_ != nullptr) throw;
    start(options, disk_folder);
  }
}

void QemuMachine::start(const QemuOptions& options, const std::string& parent) {
  const ScratchFolder folder(parent);
  const QemuFiles files{folder.file("ram"), folder.file("firmware"), folder.file("qtest")};
  const std::string output = folder.file("output");
  ram_ = std::make_unique<GuestRam>(files.ram, options.ram_bytes);
  write_firmware(files.firmware);
  output_ = Descriptor(::open(output.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!output_.is_open()) fail_with(errno, output);
  process_ = std::make_unique<ChildProcess>(ChildCommand{
      options.binary, qemu_arguments(options, files), options.environment, output_.get()});
  connect(files.socket);
  pci_ = std::make_unique<PciConfig>(*qtest_);
  // QEMU answers when the machine is made. It has opened all of its files by then, so that their
  // folder can go.
  const uint32_t instructions = qtest_->readl(kResetVector);
  if (qtest_->gone()) fail_with(ENODEV, description_of_end());
  if (instructions != kFourHalts) {
    fail_with(EPROTO, "QEMU's firmware is not ours: " + hexadecimal(instructions));
  }
}

void QemuMachine::connect(const std::string& socket) {
  const auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
  for (;;) {
    const bool running = process_->running();
    try {
      qtest_ = std::make_unique<QtestClient>(socket);
      return;
    } catch (const std::system_error& error) {
      const int code = error.code().value();
      if (code != ENOENT && code != ECONNREFUSED) throw;
      if (!running) fail_with(ENODEV, description_of_end());
      if (std::chrono::steady_clock::now() >= deadline) {
        fail_with(ETIMEDOUT, "QEMU has not come up in 60 s: " + messages());
      }
    }
    std::this_thread::sleep_for(kConnectPause);
  }
}

std::string QemuMachine::description_of_end() {
  // It closes its socket a moment before it ends.
  const auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
  while (process_->running() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kConnectPause);
  }
  return binary_ + ' ' + process_->state() + ": " + messages();
}

std::string QemuMachine::messages() const {
  std::string text;
  char part[4096];
  ssize_t count = 0;
  while ((count = ::pread(output_.get(), part, sizeof(part), static_cast<off_t>(text.size()))) >
         0) {
    text.append(part, static_cast<size_t>(count));
  }
  return text;
}

}  // namespace gofs::ssd
