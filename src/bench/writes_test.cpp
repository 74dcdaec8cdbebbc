// SPDX-License-Identifier: Apache-2.0
//
// The measurements of writing as programs call them: what they leave behind is sound, and what
// cannot be measured is refused.
#include "bench/writes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "bench/names.hpp"
#include "host/image/fsck_for_test.h"
#include "host/image/mkfs.h"

namespace gofs::bench {
namespace {

constexpr uint64_t kVolumeBytes = uint64_t{128} << 20;
constexpr uint64_t kRawBytes = uint64_t{4} << 20;
constexpr uint32_t kOwnFiles = 4;
constexpr uint64_t kOwnBytes = 64 << 12;

class WriteMeasurementTest : public ::testing::Test {
 protected:
  WriteMeasurementTest() {
    image::VolumeOptions options;
    options.flush = false;
    EXPECT_TRUE(image::make_volume(image_.path(), kVolumeBytes, options).ok());
    EXPECT_EQ(truncate(image_.path().c_str(), kVolumeBytes + kRawBytes), 0);
    MountOptions mount;
    mount.backend = "cpu";
    mount.read_only = false;
    mount.queues = 4;
    volume_ = host::VolumeState::mount(image_.path(), mount, host::MountKind::kVolume).value();
  }
  ~WriteMeasurementTest() override {
    EXPECT_TRUE(volume_->unmount());
    volume_.reset();
    // Only the volume: fsck.f2fs takes what is behind it for a part that is missing.
    EXPECT_EQ(truncate(image_.path().c_str(), kVolumeBytes), 0);
    EXPECT_TRUE(image::fsck_is_clean(image_.path()));
  }

  static WritePlan short_plan(WritePattern pattern) {
    WritePlan plan;
    plan.pattern = pattern;
    plan.outstanding = 2;
    plan.seconds = 0.005;
    plan.bytes_max = 1 << 20;
    return plan;
  }
  std::unique_ptr<BenchFiles> files(uint32_t count, uint64_t bytes) {
    auto made = BenchFiles::make(*volume_, "/files" + std::to_string(count), count, false).value();
    EXPECT_TRUE(made->resize(bytes));
    const auto filled = made->fill(2);
    EXPECT_TRUE(filled) << filled.error().message;
    EXPECT_EQ(filled->writes * filled->block_bytes, count * bytes);
    return made;
  }

  const image::TemporaryPath image_;
  std::unique_ptr<host::VolumeState> volume_;
};

TEST_F(WriteMeasurementTest, overwrites_are_counted_as_the_ssd_counts_them) {
  const auto own = files(kOwnFiles, kOwnBytes);
  const auto one = files(1, kOwnFiles * kOwnBytes);
  for (const auto pattern : {WritePattern::kSequential, WritePattern::kRandom}) {
    for (const BenchFiles* const target : {own.get(), one.get()}) {
      const uint64_t before = volume_->ssd_counters().blocks_written;
      const auto measured = measure_file_writes(*volume_, short_plan(pattern), *target);
      ASSERT_TRUE(measured) << measured.error().message;
      EXPECT_GT(measured->writes, 0u);
      EXPECT_GT(measured->seconds, 0);
      EXPECT_LE(measured->writes * kBlockBytes, uint64_t{1} << 20);
      EXPECT_GE((volume_->ssd_counters().blocks_written - before) / 8, measured->writes);
    }
    const auto raw = measure_raw_writes(*volume_, short_plan(pattern), kVolumeBytes, kRawBytes);
    ASSERT_TRUE(raw) << raw.error().message;
    EXPECT_GT(raw->writes, 0u);
  }
}

TEST_F(WriteMeasurementTest, files_are_appended_to_again_and_again) {
  const auto appended = BenchFiles::make(*volume_, "/append", kOwnFiles, true).value();
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(appended->resize(0));
    const auto measured =
        measure_file_writes(*volume_, short_plan(WritePattern::kAppend), *appended);
    ASSERT_TRUE(measured) << measured.error().message;
    EXPECT_GT(measured->writes, 0u);
  }
  // Not emptied before: the sizes are wrong.
  const auto measured = measure_file_writes(*volume_, short_plan(WritePattern::kAppend), *appended);
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().code, EIO);
}

TEST_F(WriteMeasurementTest, what_cannot_be_measured_is_refused) {
  const auto own = files(kOwnFiles, kOwnBytes);
  WritePlan odd = short_plan(WritePattern::kRandom);
  odd.block_bytes = 1000;
  EXPECT_EQ(measure_file_writes(*volume_, odd, *own).error().code, EINVAL);
  WritePlan large = short_plan(WritePattern::kRandom);
  large.block_bytes = 2 * kOwnBytes;
  EXPECT_EQ(measure_file_writes(*volume_, large, *own).error().code, EINVAL);
  const auto one = BenchFiles::make(*volume_, "/one", 1, true).value();
  const auto measured = measure_file_writes(*volume_, short_plan(WritePattern::kAppend), *one);
  // With one thread there is no other to share it with.
  const bool alone = actors_by_lane(volume_->backend(), 2).count == 1;
  EXPECT_EQ(measured.has_value(), alone);
}

TEST_F(WriteMeasurementTest, checkpoints_and_fsync_are_measured) {
  const auto own = files(kOwnFiles, kOwnBytes);
  WritePlan plan = short_plan(WritePattern::kSequential);
  plan.scope = WriteScope::kWarp;
  plan.sync_each = true;
  const auto synced = measure_file_writes(*volume_, plan, *own);
  ASSERT_TRUE(synced) << synced.error().message;
  EXPECT_GT(synced->writes, 0u);
  EXPECT_GT(time_checkpoint(*volume_).value(), 0);
  if (actors_by_warp(volume_->backend(), 2).count < 2) return;
  plan = short_plan(WritePattern::kRandom);
  plan.outstanding = 1;
  plan.bytes_max = ~uint64_t{0};
  const auto pauses = measure_pauses(*volume_, plan, *own, 2);
  ASSERT_TRUE(pauses) << pauses.error().message;
  EXPECT_EQ(pauses->syncs, 2u);
  EXPECT_GT(pauses->writes.writes, 0u);
  EXPECT_GT(pauses->writes.longest_ns, 0u);
  EXPECT_GE(pauses->sync_longest_seconds, pauses->sync_seconds);
}

TEST_F(WriteMeasurementTest, names_are_made_and_removed_in_batches_and_one_by_one) {
  constexpr uint32_t kBytes = 8192;
  NamesBench names(*volume_, 2, kBytes);
  ASSERT_TRUE(names.make_homes());
  using enum NameKind;
  using enum NamePlace;
  for (const NamesPlan& plan : {NamesPlan{kFile, kOwnHome, 2, kBytes, 0.005, 100},
                                NamesPlan{kDirectory, kOwnHome, 2, 0, 0.005, 100},
                                NamesPlan{kFile, kFirstHome, 2, 0, 0.005, 100}}) {
    const auto done = names.make_and_remove(plan);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_GE(done->names, done->warps);
    EXPECT_LE(done->names, 100u);
    EXPECT_GT(done->remove_seconds, 0);
  }
  EXPECT_EQ(names.make_and_remove({kFile, kOwnHome, 2, 2 * kBytes, 0, 1}).error().code, EINVAL);
  for (const uint32_t bytes : {0u, kBytes}) {
    const std::string directory = "/batch" + std::to_string(bytes);
    const auto batch = measure_batch_creation(*volume_, directory, 300, bytes);
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(batch->bytes, uint64_t{300} * bytes);
    EXPECT_GT(batch->seconds, 0);
    EXPECT_EQ(measure_batch_creation(*volume_, directory, 1, 0).error().code, EEXIST);
  }
}

TEST_F(WriteMeasurementTest, cleaning_is_told_in_total) {
  EXPECT_EQ(volume_->cleaning_totals().segments, 0u);
  const auto own = files(kOwnFiles, kOwnBytes);
  for (uint32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(measure_file_writes(*volume_, short_plan(WritePattern::kRandom), *own).has_value());
    ASSERT_TRUE(time_checkpoint(*volume_));
  }
  const CleaningReport before = volume_->cleaning_totals();
  const auto cleaned = volume_->collect_garbage({.emptiest_first = true});
  ASSERT_TRUE(cleaned) << cleaned.error().message;
  const CleaningReport after = volume_->cleaning_totals();
  EXPECT_EQ(after.segments - before.segments, cleaned->segments);
  EXPECT_EQ(after.data_blocks - before.data_blocks, cleaned->data_blocks);
  EXPECT_EQ(after.node_blocks - before.node_blocks, cleaned->node_blocks);
  EXPECT_EQ(after.free_segments, cleaned->free_segments);
}

}  // namespace
}  // namespace gofs::bench
