// SPDX-License-Identifier: Apache-2.0
//
// gofs mkfs VOL [--size S]: an empty F2FS volume.
#include "host/image/mkfs.h"

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/text.h"
#include "host/messages.h"
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

}  // namespace

void run_mkfs(Session& session, const MkfsOptions& options) {
  auto specs = take(host::parse_volume_specs(session.volume));
  if (specs.size() != 1 || specs.front().path.empty()) {
    throw Failure{session.volume + ": only an image or a device can be made a volume"};
  }
  image::VolumeOptions volume;
  volume.label = options.label;
  volume.feature = feature_bits(options.features);
  volume.overwrite = options.force;
  const std::string& path = specs.front().path;
  const image::Status status = image::make_volume(path, options.size_bytes, volume);
  if (!status.ok()) {
    const bool named = status.message.starts_with(path + ": ");
    throw Failure{named ? status.message : path + ": " + status.message};
  }
}

}  // namespace gofs::cli
