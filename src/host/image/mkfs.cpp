// SPDX-License-Identifier: Apache-2.0
#include "host/image/mkfs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "host/image/image_builder.h"

namespace gofs::image {

Status make_volume(const std::string& path, uint64_t size_bytes, const VolumeOptions& options) {
  struct stat about{};
  const bool was_missing = stat(path.c_str(), &about) != 0 && errno == ENOENT;
  Status status;
  {
    std::unique_ptr<ImageTarget> target;
    status = open_file_target(path, size_bytes, &target);
    if (target != nullptr) {
      status = make_volume(*target, options);
      if (!status.ok()) status.message = path + ": " + status.message;
    }
  }
  if (!status.ok() && was_missing) unlink(path.c_str());
  return status;
}

Status make_volume(int fd, uint64_t size_bytes, const VolumeOptions& options) {
  std::unique_ptr<ImageTarget> target;
  GOFS_RETURN_IF_FAILED(open_fd_target(fd, size_bytes, &target));
  return make_volume(*target, options);
}

Status make_volume(ImageTarget& target, const VolumeOptions& options) {
  std::unique_ptr<ImageBuilder> builder;
  GOFS_RETURN_IF_FAILED(ImageBuilder::create(target, options, &builder));
  return builder->finish();
}

}  // namespace gofs::image
