// SPDX-License-Identifier: Apache-2.0
#include "host/ablations.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "host/messages.h"

namespace gofs::host {

namespace {

/// By bit.
constexpr std::string_view kAblationNames[] = {"inode-lock",       "one-log",      "single-blocks",
                                               "single-doorbells", "single-walks", "no-maps"};
static_assert(std::size(kAblationNames) == vfs::kAblations);

}  // namespace

std::vector<std::string> ablation_names(uint32_t ablations) {
  std::vector<std::string> names;
  for (uint32_t bit = 0; bit < vfs::kAblations; ++bit) {
    if ((ablations >> bit & 1u) != 0) names.emplace_back(kAblationNames[bit]);
  }
  return names;
}

std::string parse_ablations(std::string_view text, uint32_t& ablations) {
  uint32_t found = 0;
  for (;;) {
    const size_t length = std::min(text.find(','), text.size());
    const std::string_view name = text.substr(0, length);
    const auto* const known = std::find(std::begin(kAblationNames), std::end(kAblationNames), name);
    if (known == std::end(kAblationNames)) {
      return fmt::format("knows no '{}' ({})", name,
                         joined(ablation_names(vfs::kAblationsKnown), ", "));
    }
    found |= 1u << (known - std::begin(kAblationNames));
    if (length == text.size()) break;
    text.remove_prefix(length + 1);
  }
  ablations = found;
  return {};
}

}  // namespace gofs::host
