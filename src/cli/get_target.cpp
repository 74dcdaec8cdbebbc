// SPDX-License-Identifier: Apache-2.0
#include "cli/get_target.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "cli/host_entry.h"
#include "cli/interruption.h"
#include "cli/objects.h"

namespace gofs::cli {
namespace {

[[noreturn]] void fail_with(int error, const std::string& path) {
  throw ObjectFailure{host::make_error(error, path).message};
}

/// A name that leads to nothing.
GetTarget find_new(const std::string& host_path, const GetSource& source) {
  const SplitPath split = split_path(host_path);
  if (!is_plain_name(split.name)) fail_with(ENOENT, host_path);
  if (split.ends_with_slash && !source.is_directory) fail_with(ENOTDIR, host_path);
  struct stat link;
  if (source.is_file && ::lstat(host_path.c_str(), &link) == 0) {
    throw ObjectFailure{host_path + ": is a symbolic link that leads to nothing"};
  }
  // Here, where the path as the user wrote it is known.
  if (!split.directory.empty() && ::access(split.directory.c_str(), F_OK) != 0) {
    fail_with_errno(host_path);
  }
  return {.place = split};
}

/// Whether files can be made in the directory of `place`, and may take that of the file there.
bool admits_another(const SplitPath& place, const struct stat& file) {
  const auto directory = ssd::Descriptor::open(place.directory, O_RDONLY | O_DIRECTORY);
  struct stat status;
  if (!directory.is_open() || ::fstat(directory.get(), &status) != 0) return false;
  const uid_t self = ::geteuid();
  const bool is_kept =
      (status.st_mode & S_ISVTX) != 0 && self != 0 && self != status.st_uid && self != file.st_uid;
  return !is_kept && NewHostFile(directory.get(), place.name).make();
}

GetTarget open_in_place(const std::string& host_path, const struct stat& expected) {
  // Not a device that is in use, as one that is mounted.
  const int flags = O_WRONLY | O_NOCTTY | (S_ISBLK(expected.st_mode) ? O_EXCL : 0);
  GetTarget target;
  for (;;) {
    stop_if_interrupted();
    target.stream = ssd::Descriptor::open(host_path, flags);  // of a pipe: waits for a reader
    if (target.stream->is_open()) break;
    if (errno != EINTR) fail_with_errno(host_path);
  }
  struct stat opened;
  if (::fstat(target.stream->get(), &opened) != 0) fail_with_errno(host_path);
  if (opened.st_dev != expected.st_dev || opened.st_ino != expected.st_ino) {
    throw ObjectFailure{host_path + ": is another file than it was"};
  }
  if (!S_ISREG(opened.st_mode)) return target;
  // What /proc and /sys have cannot be emptied.
  if (::ftruncate(target.stream->get(), 0) != 0 && errno != EINVAL) fail_with_errno(host_path);
  target.takes_attributes = ::geteuid() == 0 || ::geteuid() == opened.st_uid;
  return target;
}

/// A regular file goes to what is there, and is no directory.
GetTarget find_for_file(const std::string& host_path, const struct stat& there) {
  if (const auto number = own_descriptor(host_path)) {
    GetTarget target;
    target.stream = ssd::Descriptor(::fcntl(*number, F_DUPFD_CLOEXEC, 3));
    if (!target.stream->is_open()) fail_with_errno(host_path);
    return target;
  }
  if (S_ISREG(there.st_mode)) {
    const auto place = place_of_file(host_path);
    if (place && admits_another(*place, there)) return {.place = *place};
  }
  return open_in_place(host_path, there);
}

}  // namespace

void refuse_storage(const host::StorageIdentity& storage, const struct stat& status,
                    const std::string& path) {
  if (storage.has(status)) throw ObjectFailure{path + ": the volume lies on it"};
}

GetTarget find_get_target(const std::string& host_path, const GetSource& source,
                          const host::StorageIdentity& storage) {
  struct stat there;
  if (::stat(host_path.c_str(), &there) != 0) {
    if (errno != ENOENT) fail_with_errno(host_path);
    return find_new(host_path, source);
  }
  if (S_ISDIR(there.st_mode)) {
    // What ends with . or .. is the directory itself, as cp has it.
    return {.place = {host_path, is_plain_name(source.name) ? source.name : ""}};
  }
  refuse_storage(storage, there, host_path);
  if (source.is_file) return find_for_file(host_path, there);
  // A name that others write to by.
  if (S_ISCHR(there.st_mode) || S_ISBLK(there.st_mode) || own_descriptor(host_path)) {
    throw ObjectFailure{host_path + ": exists and is a device or a descriptor"};
  }
  return {.place = split_path(host_path)};
}

}  // namespace gofs::cli
