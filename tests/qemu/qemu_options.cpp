// SPDX-License-Identifier: Apache-2.0
#include "qemu_options.h"

#include "hexadecimal.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

/// In a list of options, a comma that belongs to a value is written twice.
std::string option_value(const std::string& text) {
  std::string value;
  for (const char character : text) value.append(character == ',' ? 2 : 1, character);
  return value;
}

std::string block_device(const QemuDisk& disk, const std::string& node) {
  std::string text = "driver=raw,discard=unmap,node-name=" + node;
  std::string file = ",file.";
  if (!disk.errors.empty()) {
    text += ",file.driver=blkdebug";
    for (size_t i = 0; i < disk.errors.size(); ++i) {
      const InjectedError& error = disk.errors[i];
      const std::string rule = ",file.inject-error." + std::to_string(i) + '.';
      // No event of the block driver, but the command itself.
      text += rule + "event=none" + rule + "iotype=" + error.operation;
      text += rule + "errno=" + std::to_string(error.error);
      text += rule + "once=" + (error.once ? "on" : "off");
      if (error.sector) text += rule + "sector=" + std::to_string(*error.sector);
    }
    file = ",file.image.";
  }
  return text + file + "driver=file" + file + "filename=" + option_value(disk.image);
}

std::string controller(const QemuDisk& disk, const std::string& node, size_t index) {
  const std::string lba_bytes = std::to_string(disk.lba_bytes);
  return "nvme,serial=gofs" + std::to_string(index) + ",drive=" + node +
         ",addr=" + hexadecimal(pci_device_of_disk(index)) + ",logical_block_size=" + lba_bytes +
         ",physical_block_size=" + lba_bytes + ",mdts=" + std::to_string(disk.mdts) +
         ",max_ioqpairs=" + std::to_string(disk.max_ioqpairs);
}

}  // namespace

void use_qemu_bundle(QemuOptions& options, const std::string& folder) {
  options.binary = folder + "/qemu-system-x86_64";
  options.environment = {"LD_LIBRARY_PATH=" + folder + "/lib",
                         "QEMU_MODULE_DIR=" + folder + "/modules"};
  options.firmware_folder = folder + "/firmware";
}

std::vector<std::string> qemu_arguments(const QemuOptions& options, const QemuFiles& files) {
  if (options.disks.empty() || options.disks.size() > kQemuDisksMax) {
    fail_with(EINVAL, "a QEMU machine has 1 to " + std::to_string(kQemuDisksMax) +
                          " disks, and not " + std::to_string(options.disks.size()));
  }
  std::vector<std::string> arguments = {
      "-nodefaults", "-display", "none", "-no-user-config",
      // The accelerator does not matter, as the processor halts; this one is everywhere.
      "-accel", "tcg", "-machine", "q35,memory-backend=ram0", "-object",
      "memory-backend-file,id=ram0,share=on,size=" + std::to_string(options.ram_bytes) +
          ",mem-path=" + option_value(files.ram),
      "-bios", files.firmware, "-qtest",
      "unix:" + option_value(files.socket) + ",server=on,wait=off",
      // Else each request is printed.
      "-qtest-log", "/dev/null"};
  if (!options.firmware_folder.empty()) {
    arguments.insert(arguments.end(), {"-L", options.firmware_folder});
  }
  for (size_t i = 0; i < options.disks.size(); ++i) {
    const std::string node = "disk" + std::to_string(i);
    arguments.insert(arguments.end(), {"-blockdev", block_device(options.disks[i], node), "-device",
                                       controller(options.disks[i], node, i)});
  }
  return arguments;
}

}  // namespace gofs::ssd
