// SPDX-License-Identifier: Apache-2.0
#include "cli/host_entry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <utility>

#include "cli/objects.h"

namespace gofs::cli {

HiddenEntry::HiddenEntry(int directory) : directory_(::fcntl(directory, F_DUPFD_CLOEXEC, 3)) {}

HiddenEntry::~HiddenEntry() {
  if (!name_.empty()) ::unlinkat(directory_.get(), name_.c_str(), 0);
}

std::string HiddenEntry::random_name() {
  static std::random_device random;
  return fmt::format(".gofs-{:08x}", random());
}

ssd::Descriptor HiddenEntry::look() const {
  return ssd::Descriptor(
      ::openat(directory_.get(), name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

bool HiddenEntry::place(const std::string& name) {
  if (::renameat(directory_.get(), name_.c_str(), directory_.get(), name.c_str()) != 0) {
    return false;
  }
  // Where both are names of one file already, both stay.
  struct stat status;
  if (::fstatat(directory_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) name_.clear();
  return true;
}

NewHostFile::NewHostFile(int directory, std::string path)
    : path_(std::move(path)), entry_(directory) {}

bool NewHostFile::make() {
  return entry_.make([&](int directory, const char* name) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    file_ = ssd::Descriptor(::openat(directory, name, kFlags, 0600));
    return file_.is_open() ? 0 : -1;
  });
}

void NewHostFile::write(const uint8_t* data, uint64_t bytes, uint64_t offset) {
  while (bytes != 0) {
    const ssize_t written = ::pwrite(file_.get(), data, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with_errno(path_);
    data += written;
    offset += static_cast<uint64_t>(written);
    bytes -= static_cast<uint64_t>(written);
  }
}

void NewHostFile::finish(uint64_t bytes) {
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) fail_with_errno(path_);
}

void NewHostFile::place(const std::string& name) {
  if (::close(file_.release()) != 0 && errno != EINTR) fail_with_errno(path_);
  if (!entry_.place(name)) fail_with_errno(path_);
}

}  // namespace gofs::cli
