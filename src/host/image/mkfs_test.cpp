// SPDX-License-Identifier: Apache-2.0
//
// New volumes of many sizes: fsck.f2fs must find nothing in them, and the numbers in superblock and
// checkpoint must be those that mkfs.f2fs writes for the same size. Files are sparse.
#include "host/image/mkfs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "host/image/fsck_for_test.h"
#include "host/image/reader_for_test.h"
#include "host/image/signature.h"
#include "host/image/striped_volume.h"
#include "ssd/claimed_image.h"

namespace gofs::image {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kTiB = uint64_t{1} << 40;

VolumeOptions quick_options() {
  VolumeOptions options;
  options.flush = false;
  options.overwrite = true;
  return options;
}

/// Without -f.
VolumeOptions careful_options() {
  VolumeOptions options = quick_options();
  options.overwrite = false;
  return options;
}

/// What a superblock and the first checkpoint of an image say.
struct Heads {
  format::Superblock super{};
  format::Checkpoint checkpoint{};
};

Heads read_heads(const std::string& path) {
  Heads heads;
  const int fd = open(path.c_str(), O_RDONLY);
  EXPECT_GE(fd, 0);
  EXPECT_EQ(pread(fd, &heads.super, sizeof(heads.super), format::kSuperOffset),
            static_cast<ssize_t>(sizeof(heads.super)));
  const off_t at = static_cast<off_t>(heads.super.cp_blkaddr) * kBlockBytes;
  EXPECT_EQ(pread(fd, &heads.checkpoint, sizeof(heads.checkpoint), at),
            static_cast<ssize_t>(sizeof(heads.checkpoint)));
  close(fd);
  return heads;
}

class SizeTest : public testing::TestWithParam<uint64_t> {};

TEST_P(SizeTest, fsck_finds_nothing) {
  GOFS_NEED_TOOL("fsck.f2fs");
  const TemporaryPath image;
  const Status status = make_volume(image.path(), GetParam(), quick_options());
  ASSERT_TRUE(status.ok()) << status.message;
  struct stat about {};
  ASSERT_EQ(stat(image.path().c_str(), &about), 0);
  EXPECT_EQ(static_cast<uint64_t>(about.st_size), GetParam());
  EXPECT_LT(static_cast<uint64_t>(about.st_blocks) * 512, 4 * kMiB);  // sparse
  EXPECT_TRUE(fsck_is_clean(image.path()));
}

TEST_P(SizeTest, numbers_are_those_of_mkfs_f2fs) {
  GOFS_NEED_TOOL("mkfs.f2fs");
  const TemporaryPath ours;
  const TemporaryPath theirs;
  const Status status = make_volume(ours.path(), GetParam(), quick_options());
  ASSERT_TRUE(status.ok()) << status.message;
  ASSERT_EQ(truncate(theirs.path().c_str(), static_cast<off_t>(GetParam())), 0);
  const ToolAnswer made = run_tool("mkfs.f2fs -f -t 0 '" + theirs.path() + "'");
  ASSERT_EQ(made.exit_code, 0) << made.output;

  const Heads a = read_heads(ours.path());
  const Heads b = read_heads(theirs.path());
  // Everything from log_sectorsize to meta_ino.
  constexpr size_t kFirst = offsetof(format::Superblock, log_sectorsize);
  constexpr size_t kEnd = offsetof(format::Superblock, uuid);
  const auto* super_a = reinterpret_cast<const uint8_t*>(&a.super);
  const auto* super_b = reinterpret_cast<const uint8_t*>(&b.super);
  for (size_t at = kFirst; at < kEnd; ++at) {
    EXPECT_EQ(super_a[at], super_b[at]) << "superblock byte " << at;
  }
  EXPECT_EQ(a.super.cp_payload.value(), b.super.cp_payload.value());
  EXPECT_EQ(a.super.feature.value(), b.super.feature.value());
  EXPECT_EQ(a.checkpoint.user_block_count.value(), b.checkpoint.user_block_count.value());
  EXPECT_EQ(a.checkpoint.valid_block_count.value(), b.checkpoint.valid_block_count.value());
  EXPECT_EQ(a.checkpoint.rsvd_segment_count.value(), b.checkpoint.rsvd_segment_count.value());
  EXPECT_EQ(a.checkpoint.overprov_segment_count.value(),
            b.checkpoint.overprov_segment_count.value());
  EXPECT_EQ(a.checkpoint.free_segment_count.value(), b.checkpoint.free_segment_count.value());
  EXPECT_EQ(a.checkpoint.valid_node_count.value(), b.checkpoint.valid_node_count.value());
  EXPECT_EQ(a.checkpoint.valid_inode_count.value(), b.checkpoint.valid_inode_count.value());
  EXPECT_EQ(a.checkpoint.sit_ver_bitmap_bytesize.value(),
            b.checkpoint.sit_ver_bitmap_bytesize.value());
  EXPECT_EQ(a.checkpoint.nat_ver_bitmap_bytesize.value(),
            b.checkpoint.nat_ver_bitmap_bytesize.value());
}

// 4 TiB and up keep the SIT version bitmap in payload blocks.
INSTANTIATE_TEST_SUITE_P(sizes, SizeTest,
                         testing::Values(64 * kMiB, 65 * kMiB, 66 * kMiB + 4096, 100 * kMiB,
                                         512 * kMiB, 1 * kGiB, 3 * kGiB + 12288, 16 * kGiB,
                                         100 * kGiB, 1 * kTiB, 4 * kTiB));

class FeatureTest : public testing::TestWithParam<uint32_t> {};

TEST_P(FeatureTest, fsck_finds_nothing) {
  GOFS_NEED_TOOL("fsck.f2fs");
  const TemporaryPath image;
  VolumeOptions options = quick_options();
  options.feature = GetParam();
  const Status status = make_volume(image.path(), 100 * kMiB, options);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_TRUE(fsck_is_clean(image.path()));
  const Heads heads = read_heads(image.path());
  EXPECT_EQ(heads.super.feature.value(), GetParam());
  if ((GetParam() & format::kFeatureSuperChecksum) != 0) {
    EXPECT_EQ(heads.super.crc,
              format::crc32(format::kSuperMagic, &heads.super, format::kSuperChecksumOffset));
  }
}

constexpr uint32_t kExtra = format::kFeatureExtraAttr;
INSTANTIATE_TEST_SUITE_P(features, FeatureTest,
                         testing::Values(0, kExtra, kExtra | format::kFeatureInodeChecksum,
                                         kExtra | format::kFeatureFlexibleInlineXattr,
                                         kExtra | format::kFeatureInodeCrtime,
                                         format::kFeatureSuperChecksum, format::kFeatureLostFound,
                                         kFeaturesOffered));

TEST(Mkfs, the_judge_sees_a_wrong_bit) {
  GOFS_NEED_TOOL("fsck.f2fs");
  const TemporaryPath image;
  ASSERT_TRUE(make_volume(image.path(), 64 * kMiB, quick_options()).ok());
  const int fd = open(image.path().c_str(), O_RDWR);
  ASSERT_GE(fd, 0);
  const Heads heads = read_heads(image.path());
  const off_t at = static_cast<off_t>(heads.super.sit_blkaddr) * kBlockBytes;
  const uint8_t one = 1;
  ASSERT_EQ(pwrite(fd, &one, 1, at + 40), 1);  // in the valid map of segment 0
  close(fd);
  EXPECT_FALSE(fsck_is_clean(image.path()));
}

TEST(Mkfs, lost_and_found_is_inode_4) {
  std::vector<uint8_t> memory(64 * kMiB);
  const auto target = make_memory_target(memory.data(), memory.size());
  VolumeOptions options;
  options.feature = kFeaturesOffered;
  ASSERT_TRUE(make_volume(*target, options).ok());
  TestReader reader(*target);
  const auto directory = reader.at("/lost+found");
  EXPECT_EQ(directory.ino, 4u);
  EXPECT_EQ(directory.inode().i_mode, 040700);
  EXPECT_EQ(reader.at("/").inode().i_links, 3u);
}

TEST(Mkfs, label_becomes_utf16) {
  std::vector<uint8_t> memory(64 * kMiB);
  const auto target = make_memory_target(memory.data(), memory.size());
  VolumeOptions options;
  options.label = "d\xc3\xa9j\xe2\x82\xac\xf0\x9f\x98\x80";  // one of each length
  ASSERT_TRUE(make_volume(*target, options).ok());
  const TestReader reader(*target);
  const uint16_t expected[] = {'d', 0xe9, 'j', 0x20ac, 0xd83d, 0xde00, 0};
  for (size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(reader.super().volume_name[i], expected[i]);
  }
}

TEST(Mkfs, refuses_bad_labels_and_features) {
  std::vector<uint8_t> memory(64 * kMiB);
  const auto target = make_memory_target(memory.data(), memory.size());
  const auto error_of = [&](const std::string& label, uint32_t feature) {
    VolumeOptions options;
    options.label = label;
    options.feature = feature;
    const Status status = make_volume(*target, options);
    EXPECT_EQ(status.ok(), status.message.empty());
    return status.error;
  };
  for (const char* label : {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80",
                            "\xf4\x90\x80\x80", "\xff", "a\xe2\x82"}) {
    EXPECT_EQ(error_of(label, 0), -EINVAL);
  }
  EXPECT_EQ(error_of(std::string(512, 'x'), 0), -EINVAL);
  EXPECT_EQ(error_of("", format::kFeatureInodeChecksum), -EINVAL);
  EXPECT_EQ(error_of("", format::kFeatureFlexibleInlineXattr), -EINVAL);
  EXPECT_EQ(error_of("", format::kFeatureInodeCrtime), -EINVAL);
  for (const uint32_t feature :
       {format::kFeatureEncrypt, format::kFeatureZoned, format::kFeatureQuota,
        format::kFeatureCasefold, format::kFeatureCompression, format::kFeatureReadOnly}) {
    EXPECT_EQ(error_of("", feature), -EOPNOTSUPP);
  }
  EXPECT_EQ(error_of("", 0x8000), -EOPNOTSUPP);
  EXPECT_EQ(error_of(std::string(511, 'x'), 0), 0);
}

TEST(Mkfs, refuses_sizes_that_f2fs_cannot_have_and_removes_the_file) {
  const TemporaryPath image;
  for (const uint64_t size : {uint64_t{4096}, 64 * kMiB - 1}) {
    unlink(image.path().c_str());
    const Status status = make_volume(image.path(), size, {});
    EXPECT_EQ(status.error, -ENOSPC);
    EXPECT_NE(status.message.find(image.path()), std::string::npos);
    EXPECT_NE(access(image.path().c_str(), F_OK), 0);
  }
  unlink(image.path().c_str());
  // Too large for the host's file systems or for F2FS: refused by whoever notices first.
  EXPECT_EQ(make_volume(image.path(), 16 * kTiB + kMiB, {}).error, -EFBIG);
  EXPECT_EQ(make_volume("/", 64 * kMiB, {}).error, -EISDIR);
  EXPECT_EQ(make_volume("/dev/null", 64 * kMiB, {}).error, -EINVAL);
  EXPECT_EQ(make_volume("/nowhere/at/all", 64 * kMiB, {}).error, -ENOENT);
}

TEST(Mkfs, a_refused_file_keeps_its_size_and_bytes) {
  const TemporaryPath image;
  ASSERT_TRUE(make_volume(image.path(), 100 * kMiB, quick_options()).ok());
  const Heads before = read_heads(image.path());
  for (const uint64_t size : {uint64_t{4096}, 64 * kMiB, 16 * kTiB + kMiB}) {
    EXPECT_FALSE(make_volume(image.path(), size, {}).ok());
    struct stat about {};
    ASSERT_EQ(stat(image.path().c_str(), &about), 0);
    EXPECT_EQ(static_cast<uint64_t>(about.st_size), 100 * kMiB);
  }
  const Heads after = read_heads(image.path());
  EXPECT_EQ(std::memcmp(&before, &after, sizeof(before)), 0);
}

/// Writes `bytes` at `offset` of a file, and makes it no shorter than `size`.
void put_bytes(const std::string& path, uint64_t offset, const std::string& bytes, uint64_t size) {
  const int fd = open(path.c_str(), O_RDWR);
  ASSERT_EQ(ftruncate(fd, static_cast<off_t>(size)), 0);
  ASSERT_EQ(pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
            static_cast<ssize_t>(bytes.size()));
  close(fd);
}

TEST(Mkfs, a_file_with_any_byte_in_it_is_replaced_only_on_demand) {
  for (const uint64_t at : {uint64_t{0}, 40 * kMiB + 77, 100 * kMiB - 1}) {
    const TemporaryPath image;
    put_bytes(image.path(), at, "x", 100 * kMiB);
    const Status status = make_volume(image.path(), 64 * kMiB, careful_options());
    EXPECT_EQ(status.error, -EEXIST);
    EXPECT_EQ(status.message, image.path() + ": it already holds data");
    struct stat about {};
    ASSERT_EQ(stat(image.path().c_str(), &about), 0);
    EXPECT_EQ(static_cast<uint64_t>(about.st_size), 100 * kMiB) << "it was touched";
    EXPECT_TRUE(make_volume(image.path(), 0, quick_options()).ok());
  }
}

TEST(Mkfs, zeros_are_nothing) {
  const TemporaryPath image;
  put_bytes(image.path(), 0, std::string(3 * kMiB, '\0'), 64 * kMiB);
  EXPECT_TRUE(make_volume(image.path(), 0, careful_options()).ok());
}

TEST(Mkfs, names_the_file_system_that_it_would_replace) {
  GOFS_NEED_TOOL("mkfs.ext4");
  const TemporaryPath image;
  put_bytes(image.path(), 0, "", 64 * kMiB);
  ASSERT_EQ(run_tool("mkfs.ext4 -qF " + image.path()).exit_code, 0);
  const Status status = make_volume(image.path(), 0, careful_options());
  EXPECT_EQ(status.error, -EEXIST);
  if (!knows_signatures()) GTEST_SKIP() << "built without libblkid";
  EXPECT_EQ(status.message, image.path() + ": it already holds ext4");
}

TEST(Mkfs, an_image_that_is_in_use_is_replaced_by_no_means) {
  const TemporaryPath image;
  ASSERT_TRUE(make_volume(image.path(), 64 * kMiB, quick_options()).ok());
  for (const auto access : {ssd::FileAccess::kReadOnly, ssd::FileAccess::kReadWrite}) {
    const ssd::ClaimedImage mounted(image.path(), access);
    const Heads before = read_heads(image.path());
    const Status status = make_volume(image.path(), 100 * kMiB, quick_options());
    EXPECT_EQ(status.error, -EBUSY);
    EXPECT_TRUE(status.message.starts_with(image.path() + ": in use")) << status.message;
    const Heads after = read_heads(image.path());
    EXPECT_EQ(std::memcmp(&before, &after, sizeof(before)), 0);
  }
}

TEST(Mkfs, all_members_of_an_array_are_looked_at_before_the_first_is_touched) {
  const TemporaryPath first;
  const TemporaryPath second;
  put_bytes(first.path(), 0, "", 64 * kMiB);
  put_bytes(second.path(), 64 * kMiB - 1, "x", 64 * kMiB);
  const std::vector<std::string> both = {first.path(), second.path()};
  const Status status = make_array_volume(both, 100 * kMiB, 64 << 10, careful_options());
  EXPECT_EQ(status.error, -EEXIST);
  EXPECT_EQ(status.message, second.path() + ": it already holds data");
  struct stat about {};
  ASSERT_EQ(stat(first.path().c_str(), &about), 0);
  EXPECT_EQ(static_cast<uint64_t>(about.st_size), 64 * kMiB);
  EXPECT_EQ(about.st_blocks, 0);
  const ssd::ClaimedImage mounted(second.path(), ssd::FileAccess::kReadOnly);
  EXPECT_EQ(make_array_volume(both, 100 * kMiB, 64 << 10, quick_options()).error, -EBUSY);
  ASSERT_EQ(stat(first.path().c_str(), &about), 0);
  EXPECT_EQ(about.st_blocks, 0);
}

TEST(Mkfs, an_existing_volume_is_replaced_only_on_demand) {
  std::vector<uint8_t> memory(64 * kMiB);
  const auto target = make_memory_target(memory.data(), memory.size());
  VolumeOptions options;
  options.seed = 1;
  ASSERT_TRUE(make_volume(*target, options).ok());
  const std::vector<uint8_t> before = memory;
  options.seed = 2;
  EXPECT_EQ(make_volume(*target, options).error, -EEXIST);
  EXPECT_EQ(memory, before);
  options.overwrite = true;
  EXPECT_TRUE(make_volume(*target, options).ok());
  EXPECT_NE(memory, before);
}

TEST(Mkfs, what_was_there_before_does_not_matter) {
  GOFS_NEED_TOOL("fsck.f2fs");
  const TemporaryPath image;
  const std::vector<uint8_t> rubbish(kMiB, 0xa5);
  const int fd = open(image.path().c_str(), O_RDWR);
  ASSERT_GE(fd, 0);
  for (uint64_t at = 0; at < 64; ++at) {
    ASSERT_EQ(pwrite(fd, rubbish.data(), rubbish.size(), static_cast<off_t>(at * kMiB)),
              static_cast<ssize_t>(rubbish.size()));
  }
  EXPECT_EQ(make_volume(fd, 0, careful_options()).error, -EEXIST);
  const Status status = make_volume(fd, 0, quick_options());
  close(fd);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_TRUE(fsck_is_clean(image.path()));
}

TEST(Mkfs, equal_seeds_and_times_give_equal_volumes) {
  const auto make = [](uint64_t seed, int64_t time_s) {
    std::vector<uint8_t> memory(64 * kMiB);
    const auto target = make_memory_target(memory.data(), memory.size());
    VolumeOptions options;
    options.seed = seed;
    options.time_s = time_s;
    EXPECT_TRUE(make_volume(*target, options).ok());
    return memory;
  };
  const auto first = make(1, 1000);
  EXPECT_EQ(first, make(1, 1000));
  EXPECT_NE(first, make(1, 1001));
  EXPECT_NE(first, make(2, 1000));
}

TEST(Mkfs, uuid_is_taken_as_given) {
  std::vector<uint8_t> memory(64 * kMiB);
  const auto target = make_memory_target(memory.data(), memory.size());
  VolumeOptions options;
  options.uuid = std::array<uint8_t, 16>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  ASSERT_TRUE(make_volume(*target, options).ok());
  const TestReader reader(*target);
  EXPECT_EQ(std::memcmp(reader.super().uuid, options.uuid->data(), 16), 0);
}

}  // namespace
}  // namespace gofs::image
