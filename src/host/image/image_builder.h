// SPDX-License-Identifier: Apache-2.0
//
// Builds whole F2FS volumes with files in them, in one pass and without f2fs-tools, kernel or
// mount: images for tests and benchmarks. What it makes, fsck.f2fs and Linux accept as their own.
// To put a tree of the host in, see host_tree.h; for an empty volume, mkfs.h.
//
//   std::unique_ptr<ImageBuilder> builder;
//   ImageBuilder::create(*target, {.label = "bench"}, &builder);
//   FileSpec file{.name = "a", .size_bytes = 16384, .content = pattern_content(1)};
//   builder->add_file(builder->root(), file);
//   builder->finish();                       // before this the target holds no volume
//
// Data is written as files are added; directories are written by finish(), so memory grows with the
// number of names (about 24 bytes each, and the name), and with 12 bytes per fragment of the file,
// or batch of files, that is being added. The first failure is final: every later call returns it.
// Not thread safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/dentry.h"
#include "format/inode_layout.h"
#include "host/image/directory_layout.h"
#include "host/image/node_tree.h"
#include "host/image/volume_writer.h"

namespace gofs::image {

/// Gives the bytes of a file: fills `target` with those from `offset_bytes` on. Called for ranges
/// that hold data, in the order in which they are laid out. Returns 0 or a negative errno.
using Content = std::function<int(uint64_t offset_bytes, void* target, size_t bytes)>;

/// Content that pattern.h can check.
Content pattern_content(uint64_t seed);
/// A copy of `bytes`.
Content string_content(std::string bytes);

/// An extended attribute; `index` is a format::XattrIndex, `name` what follows its prefix.
struct Xattr {
  uint8_t index;
  std::string name;
  std::string value;
};

/// Part of a file that has blocks.
struct FileRange {
  uint32_t first_block;
  uint32_t block_count;
  bool reserved = false;  // allocated, never written: reads as zeros
};

struct FileSpec {
  std::string_view name;
  uint64_t size_bytes = 0;
  Content content{};  // none: zeros
  Attributes attributes{};
  /// Only `ranges` have blocks, what lies between them is a hole. They ascend, do not overlap and
  /// lie within the size.
  bool sparse = false;
  std::vector<FileRange> ranges{};
  bool inline_data = false;   // keep the data in the inode, if it fits
  bool inline_xattr = false;  // keep room for xattrs in the inode
  std::vector<Xattr> xattrs{};
};

/// How the blocks of the files of one call lie on the volume.
struct FileLayout {
  /// 0: each file's blocks one after another, as far as segments go. Else they are cut into runs of
  /// so many blocks, and the files take turns, a run each.
  uint32_t run_blocks = 0;
  /// The runs of each file are in random order as well (always so if there is one file only).
  bool shuffle = false;
  uint64_t seed = 1;
  format::Log log = format::kWarmData;
};

struct DirectoryOptions {
  bool inline_dentries = false;  // keep the entries in the inode, if they fit
  uint8_t dir_level = 0;         // the first hash level has 2^dir_level buckets
  std::vector<Xattr> xattrs{};
};

/// A directory of the volume being built.
struct Directory {
  uint32_t index = 0;
};

/// Anything but a directory.
struct FileHandle {
  uint32_t ino = 0;
  format::FileType type = format::kTypeUnknown;
};

class ImageBuilder {
 public:
  /// `target` outlives the builder. Errors: as make_volume.
  static Status create(ImageTarget& target, const VolumeOptions& options,
                       std::unique_ptr<ImageBuilder>* builder);

  Directory root() const { return Directory{0}; }

  // Errors of all that follow: EINVAL and ENAMETOOLONG (name), ENOSPC (blocks, node ids), EFBIG
  // (size), whatever the content or the target returns. A name that is given twice in a directory
  // is found by finish() only: EEXIST. Handles are filled if not null.

  Status add_directory(Directory parent, std::string_view name, const Attributes& attributes,
                       const DirectoryOptions& options, Directory* directory);
  void set_attributes(Directory directory, const Attributes& attributes);

  Status add_file(Directory parent, const FileSpec& file, const FileLayout& layout = {},
                  FileHandle* handle = nullptr);
  /// Several files at once, so that layout can interleave them. `handles` may be empty.
  Status add_files(Directory parent, std::span<const FileSpec> files, const FileLayout& layout,
                   std::span<FileHandle> handles = {});
  /// Inline if it fits and `inline_data` is set. The mode's permission bits are kept as given.
  Status add_symlink(Directory parent, std::string_view name, std::string_view target,
                     const Attributes& attributes, bool inline_data = false,
                     FileHandle* handle = nullptr);
  /// Character and block devices, FIFOs and sockets.
  Status add_special(Directory parent, std::string_view name, format::FileMode type,
                     format::DeviceNumber device, const Attributes& attributes,
                     FileHandle* handle = nullptr);
  /// A further name of a file.
  Status add_link(Directory parent, std::string_view name, FileHandle file);

  /// Writes directories and tables. Nothing may be added afterwards.
  Status finish();

  /// Blocks that users may still fill; directories that are not written yet are not counted.
  uint64_t free_block_count() const { return writer_.free_block_count(); }

 private:
  struct PendingDirectory {
    uint32_t ino;
    uint32_t parent_ino;
    std::string name;
    Attributes attributes;
    DirectoryOptions options;
    uint32_t subdirectories = 0;
    EntryList entries;
  };
  struct OpenFile;
  struct InodeRequest;

  explicit ImageBuilder(ImageTarget& target) : writer_(target) {}

  Status begin(const VolumeOptions& options);
  template <typename Action>
  Status guarded(Action action);

  Status allocate_ino(uint32_t* ino);
  void fill_inode(const InodeRequest& request, format::NodeBlock* block) const;
  Status write_inode(uint32_t ino, bool of_directory, const std::vector<Xattr>& xattrs,
                     format::NodeBlock* block);
  Status write_simple(Directory parent, std::string_view name, uint16_t type,
                      const Attributes& attributes, format::DeviceSlots slots, FileHandle* handle);

  Status open_file(Directory parent, const FileSpec& spec, uint16_t type, OpenFile* file);
  Status write_inline_data(OpenFile* file);
  Status write_run(OpenFile* file, uint32_t first_block, uint32_t count, format::Log log);
  Status write_batch(std::span<OpenFile> files, const FileLayout& layout);
  Status close_file(Directory parent, OpenFile* file, FileHandle* handle);
  Status add_files_now(Directory parent, std::span<const FileSpec> files, uint16_t type,
                       const FileLayout& layout, std::span<FileHandle> handles);

  Status write_directory(PendingDirectory* directory);
  Status write_dentry_blocks(const PendingDirectory& directory, const DirectoryLayout& layout,
                             const NodeTree& tree, std::vector<BlockRun>* runs);

  VolumeWriter writer_;
  Status failed_;
  bool finished_ = false;
  std::vector<PendingDirectory> directories_;
  std::unordered_map<uint32_t, uint32_t> extra_links_;  // ino -> names after the first
};

}  // namespace gofs::image
