// SPDX-License-Identifier: Apache-2.0
#include "host/providers.h"

#include <map>
#include <utility>

#include "ssd/vfio/vfio_transport.h"

namespace gofs::host {

namespace {

/// Memory at the place that the options name.
std::unique_ptr<ssd::MemorySource> make_memory(const VolumeSpec& spec, uint64_t bytes,
                                               kernels::Backend& backend) {
  if (spec.data_place == "host") return ssd::make_host_memory(bytes);
  if (spec.data_place == "gpu") return backend.make_device_source(bytes);
  return ssd::make_file_memory(spec.data_place);
}

OpenedSsd open_vfio(const VolumeSpec& spec, uint64_t bytes, kernels::Backend& backend) {
  OpenedSsd opened;
  opened.memory = make_memory(spec, bytes, backend);
  opened.transport = std::make_unique<ssd::vfio::VfioTransport>(spec.address);
  return opened;
}

std::map<std::string, Provider>& providers() {
  static std::map<std::string, Provider> all = {{"vfio", open_vfio}};
  return all;
}

}  // namespace

void add_provider(const std::string& name, Provider provider) {
  providers()[name] = std::move(provider);
}

std::string provider_of(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {};
  const std::string name(text.substr(0, colon));
  return providers().contains(name) ? name : std::string();
}

OpenedSsd open_physical(const VolumeSpec& spec, uint64_t bytes, kernels::Backend& backend) {
  return providers().at(spec.provider)(spec, bytes, backend);
}

}  // namespace gofs::host
