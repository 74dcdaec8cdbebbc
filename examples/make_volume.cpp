// SPDX-License-Identifier: Apache-2.0
//
// Makes a volume that holds a folder of the host, for the other examples to read. (mkfs.f2fs, mount
// and cp do the same where the system knows F2FS.)
//
//   make_volume IMAGE FOLDER
#include <cstdio>
#include <memory>

#include "host/image/host_tree.h"
#include "host/image/mkfs.h"

namespace {

constexpr uint64_t kVolumeBytes = uint64_t{256} << 20;  // a sparse file

gofs::image::Status make(const char* path, const char* folder) {
  gofs::image::VolumeOptions options;
  options.label = "example";
  options.overwrite = true;
  std::unique_ptr<gofs::image::ImageTarget> target;
  std::unique_ptr<gofs::image::ImageBuilder> builder;
  GOFS_RETURN_IF_FAILED(gofs::image::open_volume_target(path, kVolumeBytes, options, &target));
  GOFS_RETURN_IF_FAILED(gofs::image::ImageBuilder::create(*target, options, &builder));
  GOFS_RETURN_IF_FAILED(gofs::image::add_host_tree(*builder, builder->root(), folder, {}));
  return builder->finish();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s IMAGE FOLDER\n", argv[0]);
    return 2;
  }
  const gofs::image::Status status = make(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "make_volume: %s\n", status.message.c_str());
  return status.ok() ? 0 : 1;
}
