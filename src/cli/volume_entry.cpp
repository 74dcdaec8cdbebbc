// SPDX-License-Identifier: Apache-2.0
#include "cli/volume_entry.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "cli/named_path.h"
#include "cli/objects.h"
#include "host/tree.h"
#include "host/volume_access.h"

namespace gofs::cli {
namespace {

/// A name beside `path` that nothing has.
std::string unused_name_beside(Volume& volume, const std::string& path) {
  std::string beside = path_beside(path);
  for (int i = 1; volume.lstat(beside); ++i) beside = path_beside(path) + "-" + std::to_string(i);
  return beside;
}

}  // namespace

std::string end_of_links(Volume& volume, const std::string& path) {
  std::string at = path;
  for (uint32_t i = 0; i <= vfs::kSymlinksMax; ++i) {
    const auto there = volume.lstat(at);
    if (!there && i != 0 && there.error().code == ENOENT) {
      throw ObjectFailure{path + ": is a symbolic link that leads to nothing"};
    }
    if (!there || !S_ISLNK(there->mode)) return at;
    const std::string target = take_object(volume.readlink(at));
    at = target.starts_with('/') ? target : host::joined_path(split_path(at).directory, target);
  }
  throw ObjectFailure{host::make_error(ELOOP, path).message};
}

void look_at_place_of_file(Volume& volume, const std::string& path) {
  const auto there = volume.lstat(path);
  if (!there || S_ISREG(there->mode)) return;  // what is wrong will be met once more
  if (S_ISDIR(there->mode)) throw ObjectFailure{host::make_error(EISDIR, path).message};
  if (S_ISLNK(there->mode)) throw ObjectFailure{host::make_error(ELOOP, path).message};
  throw ObjectFailure{path + ": exists and is not a regular file"};
}

void make_in_place(Volume& volume, const std::string& path,
                   const std::function<Expected<void>(const std::string& path)>& make) {
  const auto made = make(path);
  if (made) return;
  if (made.error().code != EEXIST) throw ObjectFailure{made.error().message};
  const std::string beside = unused_name_beside(volume, path);
  take_object(make(beside));
  const auto moved = volume.rename(beside, path);
  (void)volume.unlink(beside);  // also where both were names of one file already
  if (!moved) throw ObjectFailure{host::make_error(moved.error().code, path).message};
}

NewVolumeFile::NewVolumeFile(Volume& volume, const std::string& path)
    : volume_(volume), path_(path), hidden_(unused_name_beside(volume, path)) {
  constexpr uint32_t kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  const auto opened = volume_.open(hidden_, kFlags, 0600);
  if (!opened) {
    // The user knows nothing of the other name.
    const std::string& message = opened.error().message;
    throw ObjectFailure{message.starts_with(hidden_) ? path_ + message.substr(hidden_.size())
                                                     : message};
  }
  descriptor_ = *opened;
  host::any_of(volume_).name_descriptor(descriptor_, path_);
}

NewVolumeFile::~NewVolumeFile() {
  if (descriptor_ >= 0) (void)volume_.close(descriptor_);
  if (!is_placed_) (void)volume_.unlink(hidden_);
}

void NewVolumeFile::write(const uint8_t* data, uint64_t bytes, uint64_t offset) {
  for (uint64_t done = 0; done < bytes;) {
    done += take_object(volume_.pwrite(descriptor_, data + done, bytes - done, offset + done));
  }
}

void NewVolumeFile::finish(uint64_t bytes) { take_object(volume_.ftruncate(descriptor_, bytes)); }

void NewVolumeFile::place() {
  take_object(volume_.close(std::exchange(descriptor_, -1)));
  const auto moved = volume_.rename(hidden_, path_);
  if (!moved) throw ObjectFailure{host::make_error(moved.error().code, path_).message};
  is_placed_ = true;
}

}  // namespace gofs::cli
