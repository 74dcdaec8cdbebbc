// SPDX-License-Identifier: Apache-2.0
//
// gofs cat VOL PATH [--offset N] [--length N]: the bytes of a file.
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"

namespace gofs::cli {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

}  // namespace

void run_cat(Session& session, const CatOptions& options) {
  Volume volume = open_volume(session);
  const int fd = take(volume.open(options.path));
  std::vector<uint8_t> chunk(std::min(kChunkBytes, std::max<uint64_t>(options.length, 1)));
  uint64_t offset = options.offset;
  uint64_t left = options.length;
  while (left != 0) {
    const uint64_t wanted = std::min<uint64_t>(left, chunk.size());
    const uint64_t got = take(volume.pread(fd, chunk.data(), wanted, offset));
    if (got == 0) break;
    print_bytes(chunk.data(), got);
    offset += got;
    left -= got;
  }
}

}  // namespace gofs::cli
