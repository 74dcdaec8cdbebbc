// SPDX-License-Identifier: Apache-2.0
//
// gofs mkfs VOL [--size S]: an empty F2FS volume.
#include "host/image/mkfs.h"

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/text.h"
#include "host/image/striped_volume.h"
#include "host/messages.h"
#include "host/stripe_members.h"
#include "host/volume_spec.h"

namespace gofs::cli {
namespace {

uint32_t feature_bits(const std::vector<std::string>& names) {
  uint32_t bits = 0;
  for (const std::string& name : names) {
    uint32_t found = 0;
    for (uint32_t bit = 1; bit != 0 && bit <= format::kFeaturesKnown; bit <<= 1) {
      if (host::feature_names(bit).front() == name) found = bit;
    }
    if (found == 0) throw Failure{"-O " + name + ": no such feature"};
    bits |= found;
  }
  return bits;
}

/// `words`, after the name of what they are about where they do not begin with a path.
std::string with_name(const std::string& name, const std::string& words) {
  const std::string path = words.substr(0, words.find(": "));
  const bool named = path.size() < words.size() && name.find(path) != std::string::npos;
  return named ? words : name + ": " + words;
}

std::vector<std::string> paths_of(const std::vector<host::VolumeSpec>& specs) {
  std::vector<std::string> paths;
  for (const host::VolumeSpec& spec : specs) paths.push_back(spec.path);
  return paths;
}

/// Over several images: on the md array that they are, or one that is made of them.
image::Status make_striped(const std::string& text, std::vector<host::VolumeSpec> specs,
                           uint64_t size_bytes, const image::VolumeOptions& volume) {
  if (!host::has_md_superblock(specs)) {
    const uint64_t chunk_bytes = specs.back().stripe_bytes.value_or(host::kStripeBytesUsual);
    return image::make_array_volume(paths_of(specs), size_bytes, chunk_bytes, volume);
  }
  const format::Stripe stripe = take(host::arrange_stripe(specs));
  if (size_bytes != 0 && size_bytes != format::stripe_bytes(stripe)) {
    throw Failure{fmt::format("{}: an md array of {} bytes, whose size cannot be changed", text,
                              format::stripe_bytes(stripe))};
  }
  return image::make_volume_on_array(paths_of(specs), stripe, volume);
}

}  // namespace

void run_mkfs(Session& session, const MkfsOptions& options) {
  refuse_output_onto_volume(session);
  auto specs = take(host::parse_volume_specs(session.volume));
  for (const host::VolumeSpec& spec : specs) {
    if (!spec.path.empty()) continue;
    if (spec.is_physical()) {
      throw Failure{spec.text + ": give the SSD back to Linux and run mkfs.f2fs on its disk"};
    }
    throw Failure{session.volume + ": only an image or a device can be made a volume"};
  }
  image::VolumeOptions volume;
  volume.label = options.label;
  volume.feature = feature_bits(options.features);
  volume.overwrite = options.force;
  if (specs.size() > 1) {
    const image::Status striped =
        make_striped(session.volume, std::move(specs), options.size_bytes, volume);
    if (!striped.ok()) throw Failure{with_name(session.volume, striped.message)};
    return;
  }
  const std::string& path = specs.front().path;
  const image::Status status = image::make_volume(path, options.size_bytes, volume);
  if (!status.ok()) throw Failure{with_name(path, status.message)};
}

}  // namespace gofs::cli
