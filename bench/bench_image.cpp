// SPDX-License-Identifier: Apache-2.0
//
// Makes the volume that gofs_read_matrix reads (host/bench_volume.h).
//
// usage: gofs_bench_image IMAGE[+IMAGE...] [LARGE_MIB [SMALL_COUNT [SMALL_BYTES]]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "host/bench_volume.h"

namespace {

std::vector<std::string> split(const std::string& images) {
  std::vector<std::string> paths;
  for (size_t at = 0; at <= images.size();) {
    const size_t end = std::min(images.find('+', at), images.size());
    paths.push_back(images.substr(at, end - at));
    at = end + 1;
  }
  return paths;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 5) {
    std::fprintf(stderr, "usage: %s IMAGE[+IMAGE...] [LARGE_MIB [SMALL_COUNT [SMALL_BYTES]]]\n",
                 argv[0]);
    return 2;
  }
  gofs::host::BenchContents contents;
  contents.scattered = true;
  if (argc > 2) contents.large_bytes = std::strtoull(argv[2], nullptr, 10) << 20;
  if (argc > 3) contents.small_count = static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10));
  if (argc > 4) contents.small_bytes = static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10));
  const auto made = gofs::host::make_bench_volume(split(argv[1]), contents);
  if (made) return 0;
  std::fprintf(stderr, "gofs_bench_image: %s\n", made.error().message.c_str());
  return 1;
}
