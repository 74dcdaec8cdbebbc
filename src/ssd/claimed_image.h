// SPDX-License-Identifier: Apache-2.0
//
// An image file or block device that this process has open, with others who only read it or, to
// write to it, alone. Host only.
//
// Alone means: no other mount or command of GoFS has it (flock), nor the file that a loop device
// has, Linux has not mounted the device nor made it part of another (O_EXCL), and no loop device
// has the file. Others who open a file by themselves are not kept out.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ssd/descriptor.h"

namespace gofs::ssd {

enum class FileAccess { kReadOnly, kReadWrite };

/// What to do where there is no file.
enum class IfMissing { kFail, kMake };

class ClaimedImage {
 public:
  ClaimedImage() = default;
  /// Throws std::system_error, whose text says which file, and what is wrong with it or who has it:
  /// EBUSY; EISDIR; ENODEV (neither a regular file nor a block device); those of open(2).
  ClaimedImage(const std::string& path, FileAccess access, IfMissing missing = IfMissing::kFail);
  ClaimedImage(ClaimedImage&& other) noexcept = default;
  ClaimedImage& operator=(ClaimedImage&& other) noexcept = default;
  /// The claim ends, also where a child of fork() still has the descriptor; one that was inherited
  /// stays.
  ~ClaimedImage();

  int get() const { return file_.get(); }
  bool is_open() const { return file_.is_open(); }
  bool is_device() const { return device_; }
  /// As it was when it was opened.
  uint64_t bytes() const { return bytes_; }
  /// Whether the file, or that of a loop device, has become shorter since.
  bool was_cut() const;
  /// What another process inherits to share the claim.
  std::vector<int> descriptors() const;

 private:
  void refuse_used(const std::string& path, const struct stat& status) const;
  void lock_below(const std::string& path, const struct stat& status, FileAccess access);

  Descriptor file_;
  Descriptor below_;  // the file of a loop device
  bool is_inherited_ = false;
  bool device_ = false;
  uint64_t bytes_ = 0;
  uint64_t end_ = 0;  // up to where the file, or the one below, is needed
};

/// From now on this process shares the claims that another one has made to write, and gives up none
/// of them: whoever made them keeps them when this process dies. Called once, before the first
/// ClaimedImage.
void inherit_claims(std::vector<Descriptor> claims);

}  // namespace gofs::ssd
