// SPDX-License-Identifier: Apache-2.0
#include "host/providers.h"

#include <cerrno>
#include <map>
#include <system_error>
#include <utility>

namespace gofs::host {

namespace {

std::map<std::string, Provider>& providers() {
  static std::map<std::string, Provider> all;
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

OpenedSsd open_physical(const VolumeSpec& spec, uint64_t bytes) {
  return providers().at(spec.provider)(spec, bytes);
}

}  // namespace gofs::host
