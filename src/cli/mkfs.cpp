// SPDX-License-Identifier: Apache-2.0
//
// gofs mkfs VOL [--size S]: an empty F2FS volume.
#include "gofs/mkfs.hpp"

#include "cli/commands.h"

namespace gofs::cli {

void run_mkfs(Session& session, const MkfsOptions& options) {
  refuse_socket(session);
  refuse_output_onto_volume(session);
  gofs::MkfsOptions volume;
  volume.size_bytes = options.size_bytes;
  volume.label = options.label;
  volume.features = options.features;
  volume.overwrite = options.force;
  take(mkfs(session.volume, volume));
}

}  // namespace gofs::cli
