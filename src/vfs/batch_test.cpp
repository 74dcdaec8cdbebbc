// SPDX-License-Identifier: Apache-2.0
//
// Batches: every kind of file in one, opened by a list of names and read by one warp or by several.
// A file that fails says so by itself and leaves the others alone.
#include "vfs/batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/image/pattern.h"
#include "simt/warp_group.h"
#include "testing/near_memory.hpp"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint32_t kBatchUser = 1000;
constexpr uint8_t kUntouched = 0xa5;

struct BatchedFile {
  uint64_t bytes;
  bool inline_data = false;
  uint32_t run_blocks = 0;
  std::vector<image::FileRange> ranges{};  // not empty: holes between them
  uint16_t mode = 0644;
};

/// The regular files of /set. The contents' seed is the size.
const std::map<std::string, BatchedFile>& batched() {
  static const std::map<std::string, BatchedFile> list = {
      {"empty", {0}},
      {"inlined", {1000, true}},
      {"one", {4096}},
      {"odd", {3 * 4096 + 5}},
      {"scattered", {9 * 4096 + 100, false, 1}},
      {"holes", {6 * 4096, false, 0, {{1, 1}, {4, 2}}}},
      {"secret", {100, false, 0, {}, 0600}},
  };
  return list;
}

std::vector<uint8_t> batched_content(const BatchedFile& file) {
  std::vector<uint8_t> bytes(file.bytes);
  image::fill_pattern(file.bytes, 0, bytes.data(), bytes.size());
  for (size_t i = 0; !file.ranges.empty() && i < bytes.size(); ++i) {
    const uint64_t block = i / kBlockBytes;
    if (block != 1 && block != 4 && block != 5) bytes[i] = 0;
  }
  return bytes;
}

void fill_batches(image::ImageBuilder& builder) {
  image::Directory set;
  TestImage::must(builder.add_directory(builder.root(), "set", {.mode = 0755}, {}, &set));
  for (const auto& [name, file] : batched()) {
    image::FileSpec spec;
    spec.name = name;
    spec.size_bytes = file.bytes;
    spec.content = image::pattern_content(file.bytes);
    spec.attributes.mode = file.mode;
    spec.sparse = !file.ranges.empty();
    spec.ranges = file.ranges;
    spec.inline_data = file.inline_data;
    TestImage::must(builder.add_file(set, spec, {.run_blocks = file.run_blocks}));
  }
  image::Directory inner;
  TestImage::must(builder.add_directory(set, "inner", {.mode = 0755}, {}, &inner));
  TestImage::must(builder.add_symlink(set, "link", "one", {}));
}

class BatchTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  simt::Barrier barrier_{};  // of warps that play a grid
  static void SetUpTestSuite() { image_ = std::make_unique<TestImage>(fill_batches); }
  static void TearDownTestSuite() { image_.reset(); }

  void SetUp() override {
    VolumeRigOptions options;
    options.filesystem.credentials.uid = options.filesystem.credentials.gid = kBatchUser;
    options.ssd.fault_capacity = 1;
    rig_ = std::make_unique<VolumeRig>(*image_, options);
    rig_->mount_ready(width());
  }
  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return rig_->fs(); }
  BatchTable& table() { return *fs().batches; }

  /// What each file must be like after a read; a name that is not here must not be touched.
  using Expected = std::map<std::string, int>;

  int begin(const char* path, uint32_t count) {
    int bd = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int mine = begin_batch(warp, fs(), table(), path, count);
      if (warp.thread_rank() == 0) bd = mine;
    });
    return bd;
  }
  int end(int bd) {
    int result = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int mine = end_batch(warp, table(), bd);
      if (warp.thread_rank() == 0) result = mine;
    });
    return result;
  }

  /// Opens `names` of /set by `warps` warps, reads them and compares errors and contents.
  void expect_reads(const std::vector<std::string>& names, const Expected& errors, uint32_t warps) {
    const int bd = begin("/set", static_cast<uint32_t>(names.size()));
    ASSERT_GE(bd, 0);
    std::vector<const char*> pointers;
    std::vector<uint64_t> offsets;
    uint64_t total = 0;
    uint64_t readable = 0;
    for (const std::string& name : names) {
      pointers.push_back(name.c_str());
      // One of them where the device cannot put it in place.
      offsets.push_back(total + (name == "odd" ? 1 : 0));
      if (!batched().contains(name)) continue;
      total += simt::align_up(batched().at(name).bytes + 1, kBlockBytes);
      if (!errors.contains(name)) readable += batched().at(name).bytes;
    }
    uint8_t* const buffer = rig_->arena().bytes(total + kBlockBytes);
    std::memset(buffer, kUntouched, total + kBlockBytes);
    std::atomic<uint64_t> read = 0;
    Batch& batch = *find_batch_descriptor(table(), bd);
    run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const simt::GridGroup group(warp, index, warps, barrier_);
      find_batch(warp, fs(), table(), batch, pointers.data(), index, warps);
      group.sync();
      load_batch(warp, fs(), table(), batch, index, warps);
      group.sync();
      const uint64_t bytes =
          read_batch(warp, fs(), table(), batch, buffer, offsets.data(), index, warps);
      if (warp.thread_rank() == 0) read += bytes;
    });
    EXPECT_EQ(read, readable);
    for (size_t i = 0; i < names.size(); ++i) {
      SCOPED_TRACE(names[i]);
      const BatchEntry& entry = table().files[batch.first + i];
      EXPECT_EQ(entry.error, errors.contains(names[i]) ? errors.at(names[i]) : 0);
      if (errors.contains(names[i])) continue;
      const std::vector<uint8_t> wanted = batched_content(batched().at(names[i]));
      EXPECT_EQ(entry.size_bytes, wanted.size());
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), buffer + offsets[i]));
      EXPECT_EQ(buffer[offsets[i] + wanted.size()], kUntouched);
    }
    EXPECT_EQ(end(bd), 0);
    EXPECT_EQ(end(bd), -EBADF);
  }

  std::unique_ptr<VolumeRig> rig_;

 private:
  static std::unique_ptr<TestImage> image_;
};
std::unique_ptr<TestImage> BatchTest::image_;
GOFS_AT_BOTH_WIDTHS(BatchTest);

const std::vector<std::string> kNames = {"odd",       "missing", "inlined", "inner",
                                         "holes",     "empty",   "secret",  "link",
                                         "scattered", "one",     "odd",     ""};
const std::map<std::string, int> kErrors = {{"missing", -ENOENT},
                                            {"", -ENOENT},
                                            {"inner", -EISDIR},
                                            {"link", -EINVAL},
                                            {"secret", -EACCES}};

TEST_P(BatchTest, one_warp_reads_all_that_can_be_read) { expect_reads(kNames, kErrors, 1); }

TEST_P(BatchTest, several_warps_read_all_that_can_be_read) {
  for (const uint32_t warps : {2u, 3u}) expect_reads(kNames, kErrors, warps);
}

TEST_P(BatchTest, a_block_that_cannot_be_read_is_an_error_of_its_file) {
  ssd::FaultRule rule;
  {
    const int bd = begin("/set", 1);
    const char* const names[] = {"odd"};
    Batch& batch = *find_batch_descriptor(table(), bd);
    run_alone(width(), [&](const simt::Warp& warp) {
      find_batch(warp, fs(), table(), batch, names, 0, 1);
      warp.sync();
      load_batch(warp, fs(), table(), batch, 0, 1);
    });
    const BatchEntry& odd = table().files[batch.first];
    ASSERT_EQ(odd.kind, BatchEntryKind::kRuns);
    rule = VolumeRig::reads_of_block(odd.runs[0].block + 2, 9, ssd::FaultAction::kStatus);
    EXPECT_EQ(end(bd), 0);
  }
  rig_->add_fault(rule);
  const int bd = begin("/set", 2);
  const char* const names[] = {"odd", "one"};
  const uint64_t offsets[] = {0, 8 * kBlockBytes};
  uint8_t* const buffer = rig_->arena().bytes(9 * kBlockBytes);
  Batch& batch = *find_batch_descriptor(table(), bd);
  run_alone(width(), [&](const simt::Warp& warp) {
    find_batch(warp, fs(), table(), batch, names, 0, 1);
    warp.sync();
    load_batch(warp, fs(), table(), batch, 0, 1);
    warp.sync();
    (void)read_batch(warp, fs(), table(), batch, buffer, offsets, 0, 1);
  });
  EXPECT_EQ(table().files[batch.first].error, -EIO);
  EXPECT_EQ(table().files[batch.first + 1].error, 0);
  const std::vector<uint8_t> one = batched_content(batched().at("one"));
  EXPECT_EQ(std::memcmp(buffer + offsets[1], one.data(), one.size()), 0);
  EXPECT_EQ(end(bd), 0);
}

TEST_P(BatchTest, a_name_that_not_all_warps_reach_is_an_error_of_its_file) {
  testing::NearMemory memory({4096, 1, width()});
  std::strcpy(reinterpret_cast<char*>(memory.in_block()), "one");
  const int bd = begin("/set", 3);
  const char* const names[] = {nullptr, "one", reinterpret_cast<const char*>(memory.of_block())};
  Batch& batch = *find_batch_descriptor(table(), bd);
  run_alone(width(),
            [&](const simt::Warp& warp) { find_batch(warp, fs(), table(), batch, names, 0, 1); });
  EXPECT_EQ(table().files[batch.first].error, -EFAULT);
  EXPECT_EQ(table().files[batch.first + 1].error, 0);
  EXPECT_EQ(table().files[batch.first + 2].error, -EFAULT);
  EXPECT_EQ(end(bd), 0);
}

TEST_P(BatchTest, what_cannot_be_opened_is_refused) {
  EXPECT_EQ(begin("/none", 1), -ENOENT);
  EXPECT_EQ(begin("/set/one", 1), -ENOTDIR);
  EXPECT_EQ(begin("/set", table().capacity + 1), -ENOMEM);
  for (const int bd : {-1, 0, 64, 1000}) {
    EXPECT_EQ(end(bd), -EBADF);
    EXPECT_EQ(find_batch_descriptor(table(), bd), nullptr);
  }
}

TEST_P(BatchTest, all_batches_and_all_room_can_be_used_and_come_back) {
  for (int round = 0; round < 2; ++round) {
    const uint32_t each = table().capacity / kBatchesMax;
    std::vector<int> open;
    for (uint32_t i = 0; i < kBatchesMax; ++i) open.push_back(begin("/set", each));
    for (const int bd : open) ASSERT_GE(bd, 0);
    EXPECT_EQ(begin("/set", 0), -EMFILE);
    // A gap serves requests that fit into it, and no others.
    EXPECT_EQ(end(open[5]), 0);
    EXPECT_EQ(begin("/set", each + 1), -ENOMEM);
    open[5] = begin("/set", each);
    EXPECT_GE(open[5], 0);
    for (const int bd : open) EXPECT_EQ(end(bd), 0);
  }
}

}  // namespace
}  // namespace gofs::vfs
