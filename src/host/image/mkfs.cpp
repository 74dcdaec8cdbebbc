// SPDX-License-Identifier: Apache-2.0
#include "host/image/mkfs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "host/image/image_builder.h"

namespace gofs::image {

namespace {

/// `open` gives the target a size, or leaves it the one that it has if asked for 0 bytes.
template <typename Open>
Status open_checked(uint64_t size_bytes, const VolumeOptions& options, Open open,
                    std::unique_ptr<ImageTarget>* target) {
  if (size_bytes != 0) GOFS_RETURN_IF_FAILED(check_request(size_bytes, options));
  GOFS_RETURN_IF_FAILED(open(uint64_t{0}, target));
  Status status;
  if (!options.overwrite) status = refuse_existing_volume(**target);
  if (status.ok() && size_bytes == 0) status = check_request((*target)->size_bytes(), options);
  if (status.ok() && size_bytes != 0) status = open(size_bytes, target);
  if (!status.ok()) target->reset();
  return status;
}

bool is_missing(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) != 0 && errno == ENOENT;
}

/// The last step of a failure on a path: the words, and no empty file left behind.
Status give_up(const std::string& path, bool was_missing, Status status) {
  if (was_missing) unlink(path.c_str());
  if (!status.message.starts_with(path)) status.message = path + ": " + status.message;
  return status;
}

}  // namespace

Status open_volume_target(const std::string& path, uint64_t size_bytes,
                          const VolumeOptions& options, std::unique_ptr<ImageTarget>* target) {
  const bool was_missing = is_missing(path);
  const auto open = [&path](uint64_t bytes, std::unique_ptr<ImageTarget>* opened) {
    return open_file_target(path, bytes, opened);
  };
  Status status = open_checked(size_bytes, options, open, target);
  return status.ok() ? status : give_up(path, was_missing, std::move(status));
}

Status make_volume(const std::string& path, uint64_t size_bytes, const VolumeOptions& options) {
  const bool was_missing = is_missing(path);
  std::unique_ptr<ImageTarget> target;
  GOFS_RETURN_IF_FAILED(open_volume_target(path, size_bytes, options, &target));
  Status status = make_volume(*target, options);
  return status.ok() ? status : give_up(path, was_missing, std::move(status));
}

Status make_volume(int fd, uint64_t size_bytes, const VolumeOptions& options) {
  const auto open = [fd](uint64_t bytes, std::unique_ptr<ImageTarget>* opened) {
    return open_fd_target(fd, bytes, opened);
  };
  std::unique_ptr<ImageTarget> target;
  GOFS_RETURN_IF_FAILED(open_checked(size_bytes, options, open, &target));
  return make_volume(*target, options);
}

Status make_volume(ImageTarget& target, const VolumeOptions& options) {
  std::unique_ptr<ImageBuilder> builder;
  GOFS_RETURN_IF_FAILED(ImageBuilder::create(target, options, &builder));
  return builder->finish();
}

}  // namespace gofs::image
