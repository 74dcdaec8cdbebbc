// SPDX-License-Identifier: Apache-2.0
//
// Makes the volume that the benchmarks read, without f2fs-tools: one large file, one large file in
// scattered runs, and a directory of many small ones. Every 4 KiB block of a large file begins with
// its index in the file, so that a read of the wrong block is found out. On several images, with a
// + between them, the volume is striped over an md array of them.
//
// usage: gofs_bench_image IMAGE[+IMAGE...] [LARGE_MIB [SMALL_COUNT [SMALL_BYTES]]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "host/image/image_builder.h"
#include "host/image/mkfs.h"
#include "host/image/striped_volume.h"

namespace {

using gofs::image::ImageBuilder;
using gofs::image::Status;

/// The place of the volume; `disks` are those that it lies on, if it is striped.
Status open_target(const std::string& images, uint64_t bytes,
                   const gofs::image::VolumeOptions& options,
                   std::vector<std::unique_ptr<gofs::image::ImageTarget>>* disks,
                   std::unique_ptr<gofs::image::ImageTarget>* target) {
  std::vector<std::string> paths;
  for (size_t at = 0; at <= images.size();) {
    const size_t end = std::min(images.find('+', at), images.size());
    paths.push_back(images.substr(at, end - at));
    at = end + 1;
  }
  if (paths.size() == 1) return open_volume_target(paths[0], bytes, options, target);
  constexpr uint64_t kChunkBytes = 512 << 10;
  gofs::format::Stripe stripe{};
  GOFS_RETURN_IF_FAILED(
      gofs::image::make_array(paths, bytes, kChunkBytes, options, disks, &stripe));
  *target = gofs::image::make_striped_target(*disks, stripe);
  return {};
}

Status build(const std::string& path, uint64_t large_bytes, uint32_t small_count,
             uint32_t small_bytes) {
  const uint64_t small_total = uint64_t{small_count} * (small_bytes / 4096 + 3) * 4096;
  const uint64_t volume_bytes = ((2 * large_bytes + small_total) / 4 * 5 + (uint64_t{512} << 20)) &
                                ~((uint64_t{2} << 20) - 1);
  gofs::image::VolumeOptions options;
  options.label = "bench";
  options.seed = 1;
  options.overwrite = true;
  options.flush = false;
  std::vector<std::unique_ptr<gofs::image::ImageTarget>> disks;
  std::unique_ptr<gofs::image::ImageTarget> target;
  GOFS_RETURN_IF_FAILED(open_target(path, volume_bytes, options, &disks, &target));
  std::unique_ptr<ImageBuilder> builder;
  GOFS_RETURN_IF_FAILED(ImageBuilder::create(*target, options, &builder));

  const auto stamps = [](uint64_t offset, void* to, size_t bytes) {
    auto* out = static_cast<uint8_t*>(to);
    std::memset(out, 0x5a, bytes);
    for (size_t at = 0; at + 8 <= bytes; at += 4096) {
      const uint64_t index = (offset + at) / 4096;
      std::memcpy(out + at, &index, sizeof(index));
    }
    return 0;
  };
  gofs::image::FileSpec file;
  file.name = "large";
  file.size_bytes = large_bytes;
  file.content = stamps;
  GOFS_RETURN_IF_FAILED(builder->add_file(builder->root(), file));
  file.name = "scattered";
  gofs::image::FileLayout scattered;
  scattered.run_blocks = 1;
  scattered.shuffle = true;
  file.size_bytes = large_bytes;
  GOFS_RETURN_IF_FAILED(builder->add_file(builder->root(), file, scattered));

  gofs::image::Directory small;
  GOFS_RETURN_IF_FAILED(builder->add_directory(builder->root(), "small", {}, {}, &small));
  for (uint32_t i = 0; i < small_count; ++i) {
    char name[32];
    std::snprintf(name, sizeof(name), "file%07u", i);
    gofs::image::FileSpec spec;
    spec.name = name;
    spec.size_bytes = small_bytes;
    spec.content = stamps;
    GOFS_RETURN_IF_FAILED(builder->add_file(small, spec));
  }
  return builder->finish();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 5) {
    std::fprintf(stderr, "usage: %s IMAGE[+IMAGE...] [LARGE_MIB [SMALL_COUNT [SMALL_BYTES]]]\n",
                 argv[0]);
    return 2;
  }
  const uint64_t large_mib = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 4096;
  const uint64_t small_count = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 100000;
  const uint64_t small_bytes = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 16384;
  const Status status = build(argv[1], large_mib << 20, static_cast<uint32_t>(small_count),
                              static_cast<uint32_t>(small_bytes));
  if (!status.ok()) {
    std::fprintf(stderr, "gofs_bench_image: %s\n", status.message.c_str());
    return 1;
  }
  return 0;
}
