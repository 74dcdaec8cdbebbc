// SPDX-License-Identifier: Apache-2.0
//
// For tests only: an image with a bit of everything in it, whose contents are known.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/image/image_builder.h"
#include "host/image/pattern.h"

namespace gofs::host {

struct SampleFile {
  uint64_t seed;
  uint64_t size_bytes;
};

/// A volume of 64 MiB:
///   /empty /tiny /block /odd /large /holes /data/file0000 ... (regular files of pattern_content,
///   the seed of each in files()) /again (a second name of /odd)   /link -> data   /dangling ->
///   nowhere   /loop -> loop /locked (mode 0700, uid 7)   /locked/secret (mode 0600, uid 7)   /fifo
///   /device (8, 1)
///   "/new\nline" "/bad\xff" (names that need care)
/// /block has extended attributes: user.colour, user.long, trusted.mark and an ACL; /data has
/// user.colour.
class SampleVolume {
 public:
  static constexpr uint32_t kDataFiles = 300;
  static constexpr uint64_t kHoleAt = 3 * 4096;  // of /holes: a block of data on both sides
  static constexpr uint64_t kHolesBytes = uint64_t{5} << 30;

  explicit SampleVolume(uint32_t features = 0) {
    const auto must = [](const image::Status& status) {
      if (!status.ok()) throw std::runtime_error("the sample volume: " + status.message);
    };
    std::unique_ptr<image::ImageTarget> target;
    must(image::open_file_target(file_.path(), uint64_t{64} << 20, &target));
    image::VolumeOptions options;
    options.label = "sämple";
    options.feature = features;
    options.seed = 1;
    options.time_s = 1'700'000'000;
    options.overwrite = true;
    options.flush = false;
    std::unique_ptr<image::ImageBuilder> builder;
    must(image::ImageBuilder::create(*target, options, &builder));
    const image::Directory root = builder->root();
    const auto add = [&](image::Directory parent, const std::string& folder,
                         const std::string& name, uint64_t bytes, image::FileSpec spec = {}) {
      const uint64_t seed = ++seed_;
      spec.name = name;
      spec.size_bytes = bytes;
      spec.content = image::pattern_content(seed);
      image::FileHandle handle;
      must(builder->add_file(parent, spec, {}, &handle));
      files_[folder + name] = {seed, bytes};
      return handle;
    };
    add(root, "/", "empty", 0);
    image::FileSpec inlined;
    inlined.inline_data = true;
    add(root, "/", "tiny", 11, inlined);
    image::FileSpec marked;
    marked.inline_xattr = true;
    marked.xattrs = {{format::kXattrUser, "colour", "green"},
                     {format::kXattrTrusted, "mark", std::string("\0\xff", 2)},
                     {format::kXattrUser, "long", long_value()},
                     {format::kXattrAclAccess, "",
                      std::string("\1\0\0\0"
                                  "\1\0\6\0"
                                  "\2\0\4\0\7\0\0\0"
                                  "\4\0\4\0"
                                  "\x10\0\4\0"
                                  "\x20\0\4\0",
                                  28)}};
    add(root, "/", "block", 4096, marked);
    const image::FileHandle odd = add(root, "/", "odd", 10'007);
    add(root, "/", "large", (uint64_t{9} << 20) + 123);
    add(root, "/", "new\nline", 5);
    add(root, "/", "bad\xff", 6);
    image::FileSpec holes;
    holes.sparse = true;
    holes.ranges = {{0, 3}, {4, 1}, {static_cast<uint32_t>(kHolesBytes / 4096 - 1), 1}};
    add(root, "/", "holes", kHolesBytes, holes);
    must(builder->add_link(root, "again", odd));
    image::Directory data;
    image::DirectoryOptions coloured;
    coloured.xattrs = {{format::kXattrUser, "colour", "red"}};
    must(builder->add_directory(root, "data", {.mode = 0755}, coloured, &data));
    for (uint32_t i = 0; i < kDataFiles; ++i) {
      char name[16];
      std::snprintf(name, sizeof(name), "file%04u", i);
      image::FileSpec spec;
      spec.inline_data = i % 2 == 0;
      add(data, "/data/", name, i * 97, spec);
    }
    must(builder->add_symlink(root, "link", "data", {}));
    must(builder->add_symlink(root, "dangling", "nowhere", {}, true));
    must(builder->add_symlink(root, "loop", "loop", {}));
    image::Directory locked;
    must(builder->add_directory(root, "locked", {.mode = 0700, .uid = 7, .gid = 7}, {}, &locked));
    image::FileSpec secret;
    secret.attributes = {.mode = 0600, .uid = 7, .gid = 7};
    add(locked, "/locked/", "secret", 100, secret);
    must(builder->add_special(root, "fifo", format::kModeFifo, {}, {.mode = 0644}));
    must(builder->add_special(root, "device", format::kModeBlockDevice, {8, 1}, {.mode = 0640}));
    must(builder->finish());
  }

  /// Of user.long: more than an inode has room for.
  static std::string long_value() { return std::string(1500, 'l') + std::string(1500, 'g'); }

  const std::string& path() const { return file_.path(); }
  /// Of each regular file, under its first name.
  const std::map<std::string, SampleFile>& files() const { return files_; }

  /// Whether `bytes` are those of the file at `offset`.
  ::testing::AssertionResult has(const std::string& file, const void* bytes, uint64_t count,
                                 uint64_t offset) const {
    const std::vector<uint8_t> expected = content(file, offset, count);
    const auto* const got = static_cast<const uint8_t*>(bytes);
    const auto wrong = std::mismatch(expected.begin(), expected.end(), got);
    if (wrong.first == expected.end()) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << file << ": byte " << offset + static_cast<uint64_t>(wrong.first - expected.begin())
           << " is " << int{*wrong.second} << " instead of " << int{*wrong.first};
  }

  /// What the file holds from `offset` on.
  std::vector<uint8_t> content(const std::string& file, uint64_t offset, uint64_t count) const {
    std::vector<uint8_t> bytes(count);
    image::fill_pattern(files_.at(file).seed, offset, bytes.data(), count);
    if (file != "/holes") return bytes;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t block = (offset + i) / 4096;
      if (block == 3 || (block > 4 && block != kHolesBytes / 4096 - 1)) bytes[i] = 0;
    }
    return bytes;
  }

 private:
  const image::TemporaryPath file_;
  std::map<std::string, SampleFile> files_;
  uint64_t seed_ = 0;
};

/// Made once for all tests of a program that only read it.
inline const SampleVolume& sample_volume() {
  static const SampleVolume volume;
  return volume;
}

}  // namespace gofs::host
