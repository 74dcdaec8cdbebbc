// SPDX-License-Identifier: Apache-2.0
#include "cli/source_file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cli/interruption.h"
#include "cli/named_path.h"
#include "cli/objects.h"

namespace gofs::cli {
namespace {

constexpr uint64_t kReadBytesMax = uint64_t{1} << 20;  // files of /proc/sys refuse 4 MiB

}  // namespace

SourceFile SourceFile::open_named(const std::string& path) {
  if (const auto number = own_descriptor(path)) {
    ssd::Descriptor again(::fcntl(*number, F_DUPFD_CLOEXEC, 3));
    if (!again.is_open()) fail_with_errno(path);
    return {path, std::move(again), false};
  }
  for (;;) {
    stop_if_interrupted();
    ssd::Descriptor opened = ssd::Descriptor::open(path, O_RDONLY | O_NOCTTY);
    if (opened.is_open()) return {path, std::move(opened), true};
    if (errno != EINTR) fail_with_errno(path);
  }
}

SourceFile SourceFile::open_in(int directory, const std::string& name, const std::string& path) {
  // A pipe that has taken its place must not be waited for.
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  ssd::Descriptor opened(::openat(directory, name.c_str(), kFlags));
  if (!opened.is_open()) fail_with_errno(path);
  SourceFile file(path, std::move(opened), true);
  if (!S_ISREG(file.status_.st_mode)) {
    throw ObjectFailure{path + ": is another file than it was"};
  }
  return file;
}

SourceFile::SourceFile(std::string path, ssd::Descriptor descriptor, bool from_start)
    : path_(std::move(path)), descriptor_(std::move(descriptor)) {
  if (::fstat(descriptor_.get(), &status_) != 0) fail_with_errno(path_);
  if (!from_start || !S_ISREG(status_.st_mode) || status_.st_size == 0) return;
  const off_t hole = ::lseek(descriptor_.get(), 0, SEEK_HOLE);
  has_holes_ = hole >= 0 && hole < status_.st_size;
  if (hole > 0 && ::lseek(descriptor_.get(), 0, SEEK_SET) != 0) fail_with_errno(path_);
}

uint64_t SourceFile::read(uint8_t* to, uint64_t bytes) {
  offset_ = position_;
  if (has_holes_ && position_ == row_end_ && !find_data()) return 0;
  const uint64_t wanted = has_holes_ ? std::min(bytes, row_end_ - position_) : bytes;
  const uint64_t got = read_row(to, wanted);
  position_ += got;
  if (got != 0) return got;
  note_end();
  return 0;
}

/// Goes to the next data. False at the end of the file.
bool SourceFile::find_data() {
  const off_t data = ::lseek(descriptor_.get(), static_cast<off_t>(position_), SEEK_DATA);
  if (data < 0 && errno != ENXIO) fail_with_errno(path_);
  const off_t hole = data < 0 ? 0 : ::lseek(descriptor_.get(), data, SEEK_HOLE);
  if (data < 0 || (hole < 0 && errno == ENXIO)) {  // nothing but a hole; or it has become shorter
    note_end();
    return false;
  }
  if (hole < 0 || ::lseek(descriptor_.get(), data, SEEK_SET) != data) fail_with_errno(path_);
  offset_ = position_ = static_cast<uint64_t>(data);
  row_end_ = static_cast<uint64_t>(hole);
  return true;
}

uint64_t SourceFile::read_row(uint8_t* to, uint64_t bytes) {
  uint64_t done = 0;
  while (done < bytes) {
    stop_if_interrupted();
    const uint64_t wanted = std::min(bytes - done, kReadBytesMax);
    const ssize_t got = ::read(descriptor_.get(), to + done, wanted);
    if (got > 0) {
      done += static_cast<uint64_t>(got);
    } else if (got == 0) {
      break;
    } else if (errno == EAGAIN) {
      pollfd wait{descriptor_.get(), POLLIN, 0};
      (void)::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      fail_with_errno(path_);
    }
  }
  return done;
}

void SourceFile::note_end() {
  struct stat now;
  if (::fstat(descriptor_.get(), &now) != 0) fail_with_errno(path_);
  size_ = position_;
  if (!S_ISREG(now.st_mode)) return;
  // What a hole at the end adds; the files of /proc and /sys have a size that says nothing.
  if (has_holes_) size_ = std::max(size_, static_cast<uint64_t>(now.st_size));
  has_become_shorter_ = now.st_size < status_.st_size;
}

}  // namespace gofs::cli
