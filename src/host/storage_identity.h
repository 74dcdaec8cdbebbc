// SPDX-License-Identifier: Apache-2.0
//
// Whether a file or block device of the host is what a volume lies on, by whichever name: another
// path, a hard link, a loop device of the image or the image of a loop device, a partition or its
// disk, a device mapper's or md's device or one that it lies on.
#pragma once

#include <sys/stat.h>

#include <compare>
#include <set>
#include <string>
#include <vector>

namespace gofs::host {

class StorageIdentity {
 public:
  /// `paths` are those of a volume's images and devices (VolumeState::storage_paths); one that
  /// names nothing is passed over.
  explicit StorageIdentity(const std::vector<std::string>& paths);

  /// Whether writing to or reading from what `status` is of would be writing to or reading from the
  /// volume.
  bool has(const struct stat& status) const;

 private:
  struct Piece {
    bool is_device;
    dev_t device;  // of a device its own, else that the file is on
    ino_t inode;   // 0 of a device

    auto operator<=>(const Piece&) const = default;
  };
  /// What something lies on, itself included.
  struct Pieces {
    std::set<Piece> whole;  // of all of which it is
    std::set<Piece> disks;  // of which it is a partition, and what these lie on
  };

  static void add(Pieces& pieces, const struct stat& status);
  static void add_device(Pieces& pieces, dev_t device);

  Pieces volume_;
};

}  // namespace gofs::host
