// SPDX-License-Identifier: Apache-2.0
//
// Streaming large files: new ones, over what is there, and back, by whole grids, blocks, warps and
// threads that share one file or have one each, beside the same bytes as raw NVMe commands, on a
// volume of its own. All that was written is read back and compared.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/spread.hpp"
#include "bench/stream_body.h"
#include "gofs/expected.hpp"
#include "host/volume_state.h"

namespace gofs::bench {

enum class StreamWork : uint32_t {
  kNew,        // an empty file is written
  kTruncated,  // the same where ftruncate has set its size before
  kAllocated,  // the same where fallocate has
  kShuffled,   // an empty file is written in another order than from front to back
  kOver,       // what is there is written over
  kRead,
};
inline constexpr uint32_t kStreamWorks = 6;
/// "new", "truncated", "allocated", "shuffled", "over", "read".
const char* name_of(StreamWork work);
/// "grid", "block", "warp", "thread".
const char* name_of(StreamActor actor);

/// Who streams, how much at a time.
struct StreamShape {
  StreamActor actor;
  uint32_t piece_bytes;
  bool own_files;  // one for each actor

  friend bool operator==(const StreamShape&, const StreamShape&) = default;
};

/// Those that are measured if nothing else is asked for.
std::vector<StreamShape> usual_shapes();

struct StreamOptions {
  std::string folder;  // takes the image meanwhile: some four times `file_bytes`
  std::string backend = "auto";
  std::vector<std::string> models = {"none"};
  std::vector<StreamShape> shapes = usual_shapes();
  std::vector<StreamWork> works = {StreamWork::kNew,       StreamWork::kTruncated,
                                   StreamWork::kAllocated, StreamWork::kShuffled,
                                   StreamWork::kOver,      StreamWork::kRead};
  uint64_t file_bytes = uint64_t{4} << 30;  // of all files together; cut to whole pieces for each
  uint32_t runs = 5;                        // of each row, of which the median counts
};

struct StreamRow {
  std::string model;
  StreamShape shape;
  StreamWork work;
  uint32_t actors;
  uint64_t bytes;        // of one run
  Spread raw;            // bytes a second
  Spread file;           // without the fsync
  Spread fsync_seconds;  // of the one that follows, by a host call; all 0 of reads

  double ratio() const { return raw.median > 0 ? file.median / raw.median : 0; }
};

struct StreamSinks {
  std::function<void(const host::VolumeState&)> volume = [](const host::VolumeState&) {};
  std::function<void(const StreamRow&)> row = [](const StreamRow&) {};
};

/// Errors: those of the calls; EIO: a block did not hold what was written to it; EINVAL.
Expected<void> run_streams(const StreamOptions& options, const StreamSinks& sinks);

}  // namespace gofs::bench
