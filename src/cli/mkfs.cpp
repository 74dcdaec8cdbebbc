// SPDX-License-Identifier: Apache-2.0
//
// gofs mkfs VOL [--size S]: an empty F2FS volume.
#include "host/image/mkfs.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/text.h"
#include "host/messages.h"
#include "host/volume_spec.h"

namespace gofs::cli {
namespace {

struct MkfsOptions {
  uint64_t size_bytes = 0;
  std::string label;
  std::vector<std::string> features;
  bool force = false;
};

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

void make(const Session& session, const MkfsOptions& options) {
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

}  // namespace

void add_mkfs(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("mkfs", "Make an empty volume");
  const auto options = std::make_shared<MkfsOptions>();
  add_volume_argument(command, session);
  add_size_option(command, "--size", options->size_bytes,
                  "Its size; if not given, that of the file or device");
  command.add_option("-l,--label", options->label, "Its label, up to 511 characters");
  command.add_option("-O,--features", options->features, "Features, as mkfs.f2fs names them")
      ->delimiter(',')
      ->type_name("NAME,...");
  command.add_flag("-f,--force", options->force, "Overwrite a volume that is there");
  run_command(command, [&session, options] { make(session, *options); });
}

}  // namespace gofs::cli
