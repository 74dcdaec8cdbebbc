// SPDX-License-Identifier: Apache-2.0
#include "host/image/mkfs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "host/image/contents.h"
#include "host/image/image_builder.h"

namespace gofs::image {

namespace {

/// What is refused is refused before the file of an open target gets another size.
Status check_and_resize(uint64_t size_bytes, const VolumeOptions& options, ImageTarget& target) {
  if (!options.overwrite) GOFS_RETURN_IF_FAILED(refuse_contents(target));
  if (size_bytes == 0) return check_request(target.size_bytes(), options);
  return target.resize(size_bytes);
}

bool is_missing(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) != 0 && errno == ENOENT;
}

Status name_path(const std::string& path, Status status) {
  if (!status.ok() && !status.message.starts_with(path)) {
    status.message = path + ": " + status.message;
  }
  return status;
}

/// The last step of a failure on a path: the words, and no empty file left behind.
Status give_up(const std::string& path, bool was_missing, Status status) {
  if (was_missing) remove_made(path);
  return name_path(path, std::move(status));
}

}  // namespace

Status open_volume_target(const std::string& path, uint64_t size_bytes,
                          const VolumeOptions& options, std::unique_ptr<ImageTarget>* target) {
  if (size_bytes != 0) GOFS_RETURN_IF_FAILED(name_path(path, check_request(size_bytes, options)));
  const bool was_missing = is_missing(path);
  GOFS_RETURN_IF_FAILED(open_file_target(path, 0, target));
  Status status = check_and_resize(size_bytes, options, **target);
  if (status.ok()) return status;
  target->reset();
  return give_up(path, was_missing, std::move(status));
}

Status make_volume(const std::string& path, uint64_t size_bytes, const VolumeOptions& options) {
  const bool was_missing = is_missing(path);
  std::unique_ptr<ImageTarget> target;
  GOFS_RETURN_IF_FAILED(open_volume_target(path, size_bytes, options, &target));
  Status status = make_volume(*target, options);
  return status.ok() ? status : give_up(path, was_missing, std::move(status));
}

Status make_volume(int fd, uint64_t size_bytes, const VolumeOptions& options) {
  if (size_bytes != 0) GOFS_RETURN_IF_FAILED(check_request(size_bytes, options));
  std::unique_ptr<ImageTarget> target;
  GOFS_RETURN_IF_FAILED(open_fd_target(fd, 0, &target));
  GOFS_RETURN_IF_FAILED(check_and_resize(size_bytes, options, *target));
  return make_volume(*target, options);
}

Status make_volume(ImageTarget& target, const VolumeOptions& options) {
  std::unique_ptr<ImageBuilder> builder;
  GOFS_RETURN_IF_FAILED(ImageBuilder::create(target, options, &builder));
  return builder->finish();
}

}  // namespace gofs::image
