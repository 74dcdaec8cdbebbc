// SPDX-License-Identifier: Apache-2.0
#include "pci_config.h"

#include "simt/platform.h"

namespace gofs::ssd {

namespace {

constexpr uint16_t kAddressPort = 0xcf8;
constexpr uint16_t kDataPort = 0xcfc;

uint32_t address_of_register(PciRegister at) {
  GOFS_ASSERT(at.device < kPciDevices && at.offset < 256 && at.offset % 4 == 0);
  constexpr uint32_t kEnable = 1u << 31;
  return kEnable | at.device << 11 | at.offset;
}

}  // namespace

uint32_t PciConfig::read(PciRegister at) {
  const std::lock_guard lock(mutex_);
  client_.outl(kAddressPort, address_of_register(at));
  return client_.inl(kDataPort);
}

void PciConfig::write(PciRegister at, uint32_t value) {
  const std::lock_guard lock(mutex_);
  client_.outl(kAddressPort, address_of_register(at));
  client_.outl(kDataPort, value);
}

}  // namespace gofs::ssd
