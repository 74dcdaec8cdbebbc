// SPDX-License-Identifier: Apache-2.0
#include "host/image/contents.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "host/image/signature.h"
#include "host/image/volume_writer.h"
#include "ssd/media_host.h"

namespace gofs::image {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

/// Looks through ranges for a byte that is not zero.
class Search {
 public:
  explicit Search(int fd) : fd_(fd), block_(kMebibyte) {}

  bool found() const { return found_; }
  int error() const { return error_; }

  void look(uint64_t offset, uint64_t bytes) {
    while (bytes != 0 && !found_ && error_ == 0) {
      const size_t part = std::min<uint64_t>(bytes, block_.size());
      const ssize_t got = pread(fd_, block_.data(), part, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) error_ = -errno;
      if (got <= 0) return;
      const auto end = block_.begin() + got;
      found_ = std::any_of(block_.begin(), end, [](uint8_t byte) { return byte != 0; });
      offset += static_cast<uint64_t>(got);
      bytes -= static_cast<uint64_t>(got);
    }
  }

 private:
  const int fd_;
  std::vector<uint8_t> block_;
  bool found_ = false;
  int error_ = 0;
};

Status search_file(int fd, uint64_t offset, uint64_t bytes, Search& search) {
  const uint64_t end = offset + bytes;
  const int error = ssd::for_each_data_extent(fd, end, [&](uint64_t at, uint64_t extent) {
    const uint64_t from = std::max(at, offset);
    if (from < at + extent) search.look(from, at + extent - from);
  });
  return error == 0 ? Status{} : Status::system_failure(error, "looking for data");
}

}  // namespace

Status find_contents(int fd, uint64_t offset, uint64_t bytes, std::string* found) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return Status::system_failure(-errno, "stat");
  *found = find_signature(fd, offset, bytes);
  if (!found->empty()) return {};
  Search search(fd);
  if (S_ISBLK(about.st_mode)) {
    const uint64_t part = std::min(bytes, kMebibyte);
    search.look(offset, part);
    search.look(offset + bytes - part, part);
  } else {
    GOFS_RETURN_IF_FAILED(search_file(fd, offset, bytes, search));
  }
  if (search.error() != 0) return Status::system_failure(search.error(), "looking for data");
  if (search.found()) *found = "data";
  return {};
}

Status refuse_contents(ImageTarget& target) {
  GOFS_RETURN_IF_FAILED(refuse_existing_volume(target));
  return refuse_contents(target, 0, target.size_bytes());
}

Status refuse_contents(ImageTarget& target, uint64_t offset, uint64_t bytes) {
  std::string found;
  GOFS_RETURN_IF_FAILED(target.find_contents(offset, bytes, &found));
  return found.empty() ? Status{} : Status::failure(-EEXIST, "it already holds " + found);
}

}  // namespace gofs::image
