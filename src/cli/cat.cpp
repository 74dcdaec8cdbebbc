// SPDX-License-Identifier: Apache-2.0
//
// gofs cat VOL PATH [--offset N] [--length N]: the bytes of a file.
#include <vector>

#include "cli/command.h"
#include "cli/output.h"

namespace gofs::cli {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

struct CatOptions {
  std::string path;
  uint64_t offset = 0;
  uint64_t length = ~uint64_t{0};
};

void copy_to_output(const Session& session, const CatOptions& options) {
  Volume volume = mount_volume(session);
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

}  // namespace

void add_cat(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("cat", "Print a file's bytes");
  const auto options = std::make_shared<CatOptions>();
  add_volume_options(command, session);
  command.add_option("PATH", options->path, "File")->required()->type_name("");
  add_size_option(command, "--offset", options->offset, "Where to begin");
  add_size_option(command, "--length", options->length, "How many bytes at most");
  run_command(command, [&session, options] { copy_to_output(session, *options); });
}

}  // namespace gofs::cli
