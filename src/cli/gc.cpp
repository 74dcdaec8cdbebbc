// SPDX-License-Identifier: Apache-2.0
//
// gofs gc VOL: empties segments that are only partly in use.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output.h"
#include "format/sit.h"

namespace gofs::cli {

void run_gc(Session& session, const GcOptions& options) {
  Volume volume = open_volume(session, Access::kReadWrite);
  const CleaningReport report = take(volume.collect_garbage(
      {.segments_max = options.segments_max, .emptiest_first = options.emptiest_first}));
  close_volume(session, volume);
  const uint64_t moved = report.data_blocks + report.directory_blocks + report.node_blocks;
  // An emptied segment takes new blocks for all that it had; those that were moved take room
  // elsewhere. Who fills the rest has so many blocks written for each of his own.
  const uint64_t emptied = report.segments * format::kBlocksPerSegment;
  const double amplification =
      emptied > moved ? static_cast<double>(emptied) / static_cast<double>(emptied - moved) : 0;
  if (session.json) {
    nlohmann::ordered_json object;
    object["segments"] = report.segments;
    object["blocks_moved"] = {{"data", report.data_blocks},
                              {"directories", report.directory_blocks},
                              {"nodes", report.node_blocks}};
    object["blocks_left"] = report.left_blocks;
    object["free_segments_before"] = report.free_segments_before;
    object["free_segments"] = report.free_segments;
    object["write_amplification"] = amplification;
    print(object.dump(2) + "\n");
    return;
  }
  print(
      fmt::format("emptied {} segments: {} blocks moved ({} of files, {} of directories, {} "
                  "nodes), {} left\n",
                  report.segments, moved, report.data_blocks, report.directory_blocks,
                  report.node_blocks, report.left_blocks));
  print(fmt::format("free segments: {}, were {}\n", report.free_segments,
                    report.free_segments_before));
  if (amplification != 0) {
    print(fmt::format("write amplification: {:.2f}\n", amplification));
  }
}

}  // namespace gofs::cli
