// SPDX-License-Identifier: Apache-2.0
#include "gofs/mkfs.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "host/image/mkfs.h"
#include "host/image/striped_volume.h"
#include "host/messages.h"
#include "host/stripe_members.h"
#include "host/volume_spec.h"

namespace gofs {
namespace {

Expected<uint32_t> feature_bits(const std::vector<std::string>& names) {
  uint32_t bits = 0;
  for (const std::string& name : names) {
    uint32_t found = 0;
    for (uint32_t bit = 1; bit != 0 && bit <= format::kFeaturesKnown; bit <<= 1) {
      if (host::feature_names(bit).front() == name) found = bit;
    }
    if (found == 0) return Error{EINVAL, name + ": no such feature"};
    bits |= found;
  }
  return bits;
}

/// The words of `status`, after the name of what they are about where they do not begin with a
/// path.
Expected<void> answer(const std::string& name, const image::Status& status) {
  if (status.ok()) return {};
  const std::string& words = status.message;
  const std::string path = words.substr(0, words.find(": "));
  const bool named = path.size() < words.size() && name.find(path) != std::string::npos;
  return Error{-status.error, named ? words : name + ": " + words};
}

std::vector<std::string> paths_of(const std::vector<host::VolumeSpec>& specs) {
  std::vector<std::string> paths;
  for (const host::VolumeSpec& spec : specs) paths.push_back(spec.path);
  return paths;
}

/// Over several images: on the md array that they are, or one that is made of them.
Expected<void> make_striped(const std::string& text, std::vector<host::VolumeSpec> specs,
                            uint64_t size_bytes, const image::VolumeOptions& volume) {
  if (!host::has_md_superblock(specs)) {
    const uint64_t chunk_bytes = specs.back().stripe_bytes.value_or(host::kStripeBytesUsual);
    return answer(text, image::make_array_volume(paths_of(specs), size_bytes, chunk_bytes, volume));
  }
  const auto stripe = host::arrange_stripe(specs);
  if (!stripe) return stripe.error();
  if (size_bytes != 0 && size_bytes != format::stripe_bytes(*stripe)) {
    return Error{EINVAL, fmt::format("{}: an md array of {} bytes, whose size cannot be changed",
                                     text, format::stripe_bytes(*stripe))};
  }
  return answer(text, image::make_volume_on_array(paths_of(specs), *stripe, volume));
}

}  // namespace

Expected<void> mkfs(const std::string& spec, const MkfsOptions& options) {
  auto members = host::parse_volume_specs(spec);
  if (!members) return members.error();
  for (const host::VolumeSpec& member : *members) {
    if (!member.path.empty()) continue;
    const char* words = member.is_physical()
                            ? "give the SSD back to Linux and run mkfs.f2fs on its disk"
                            : "only an image or a device can be made a volume";
    return Error{EINVAL, (member.is_physical() ? member.text : spec) + ": " + words};
  }
  const auto feature = feature_bits(options.features);
  if (!feature) return feature.error();
  image::VolumeOptions volume;
  volume.label = options.label;
  volume.feature = *feature;
  volume.overwrite = options.overwrite;
  if (members->size() > 1) {
    return make_striped(spec, std::move(*members), options.size_bytes, volume);
  }
  const std::string& path = members->front().path;
  return answer(path, image::make_volume(path, options.size_bytes, volume));
}

}  // namespace gofs
