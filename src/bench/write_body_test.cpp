// SPDX-License-Identifier: Apache-2.0
//
// The writes that the benchmark measures: each lands where it should, and one that did not is found
// out.
#include "bench/write_body.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/cpu_api.hpp"
#include "bench/pauses_body.h"
#include "vfs/changes_for_test.hpp"

namespace gofs::bench {
namespace {

constexpr uint32_t kWriters = 2;  // warps
constexpr uint32_t kTurns = 5;    // writes of each lane or warp
constexpr uint64_t kFileBlocks = 32;
constexpr uint64_t kLongNs = 60'000'000'000;

class WriteBodiesTest : public vfs::ChangesTest {
 protected:
  WriteBodiesTest() : ChangesTest([](image::ImageBuilder&) {}) {}

  /// Files of their own for the warps, or one.
  void open_files(uint32_t count, uint32_t flags) {
    descriptors_.clear();
    for (uint32_t i = 0; i < count; ++i) {
      const std::string path = "/file" + std::to_string(i);
      const int fd = open_file(path, vfs::kOpenReadWrite | vfs::kOpenCreate | flags);
      ASSERT_GE(fd, 0);
      descriptors_.push_back(fd);
      if ((flags & vfs::kOpenAppend) != 0) continue;
      const std::string zeros(kFileBlocks * kBlockBytes, '\0');
      ASSERT_EQ(pwrite_file(fd, zeros, 0), static_cast<int64_t>(zeros.size()));
    }
  }
  void close_files() {
    for (const int fd : descriptors_) EXPECT_EQ(close_file(fd), 0);
  }

  WriteParams params_of(WritePattern pattern, WriteScope scope) {
    WriteParams params{};
    params.fs = &fs();
    params.pattern = pattern;
    params.scope = scope;
    params.warps = kWriters;
    params.lanes_per_warp = scope == WriteScope::kWarp ? 1 : width();
    params.operations = kTurns;
    params.time_ns = kLongNs;
    params.block_bytes = params.command_bytes = kBlockBytes;
    params.span_bytes = kFileBlocks * kBlockBytes;
    params.descriptors = descriptors_.data();
    params.files = static_cast<uint32_t>(descriptors_.size());
    params.run = ++run_;
    const uint64_t actors = detail::actor_count(params);
    buffers_.assign(actors * kBlockBytes / sizeof(uint64_t), 0);
    done_.assign(actors, 0);
    params.buffers = reinterpret_cast<uint8_t*>(buffers_.data());
    params.done = done_.data();
    return params;
  }
  template <typename Body>
  WriteResults run(const WriteParams& params, Body body) const {
    WriteJob job{params, {}};
    testing::run_crowd({kWriters, width()}, [&](const simt::Warp& warp, uint32_t index) {
      body(warp, index, kWriters, job);
    });
    return job.results;
  }
  WriteResults run_files(const WriteParams& params) const {
    return run(params, [](const simt::Warp& warp, uint32_t index, uint32_t count, WriteJob& job) {
      file_write_body<CpuApi>(warp, index, count, job);
    });
  }
  WriteResults run_raw(const WriteParams& params) const {
    return run(params, [](const simt::Warp& warp, uint32_t index, uint32_t count, WriteJob& job) {
      raw_write_body(warp, index, count, job);
    });
  }
  /// Writes, all of which succeed.
  void write_files(const WriteParams& params) const {
    const WriteResults results = run_files(params);
    EXPECT_EQ(results.error, 0);
    EXPECT_EQ(results.writes, kTurns * detail::actor_count(params));
    EXPECT_GT(results.longest_ns, 0u);
    EXPECT_LT(results.first_ns, results.last_ns);
  }
  /// Blocks that are not what they should be.
  uint64_t wrong_after(WriteParams params) const {
    params.step = WriteStep::kCheck;
    const WriteResults results = run_files(params);
    EXPECT_EQ(results.error, 0);
    return results.wrong;
  }

  std::vector<int> descriptors_;
  std::vector<uint64_t> buffers_;
  std::vector<uint32_t> done_;
  uint64_t run_ = 0;
};

GOFS_AT_BOTH_WIDTHS(WriteBodiesTest);

TEST_P(WriteBodiesTest, every_write_is_where_it_should_be) {
  for (const uint32_t files : {1u, kWriters}) {
    open_files(files, 0);
    for (const WriteScope scope : {WriteScope::kThread, WriteScope::kWarp}) {
      for (const WritePattern pattern : {WritePattern::kSequential, WritePattern::kRandom}) {
        const WriteParams params = params_of(pattern, scope);
        write_files(params);
        EXPECT_EQ(wrong_after(params), 0u);
      }
    }
    close_files();
  }
  mount_again();
}

TEST_P(WriteBodiesTest, what_another_wrote_over_is_found_out) {
  open_files(kWriters, 0);
  const WriteParams params = params_of(WritePattern::kSequential, WriteScope::kThread);
  write_files(params);
  ASSERT_EQ(wrong_after(params), 0u);
  const std::string zeros(kFileBlocks * kBlockBytes, '\0');
  ASSERT_GT(pwrite_file(descriptors_[1], zeros, 0), 0);
  EXPECT_EQ(wrong_after(params), uint64_t{width()});  // the last write of each lane of one warp
  // Nor does what an earlier run wrote pass for this one's.
  WriteParams later = params;
  later.run = ++run_;
  EXPECT_EQ(wrong_after(later), uint64_t{kWriters} * width());
  close_files();
}

TEST_P(WriteBodiesTest, appended_files_have_all_that_was_appended) {
  for (const WriteScope scope : {WriteScope::kThread, WriteScope::kWarp}) {
    open_files(kWriters, vfs::kOpenAppend | vfs::kOpenTruncate);
    const WriteParams params = params_of(WritePattern::kAppend, scope);
    write_files(params);
    EXPECT_EQ(wrong_after(params), 0u);
    ASSERT_EQ(pwrite_file(descriptors_[0], "x", 0), 1);
    EXPECT_EQ(wrong_after(params), 1u);  // its size
    close_files();
  }
}

TEST_P(WriteBodiesTest, raw_writes_stay_in_their_range) {
  constexpr uint64_t kGuard = 0x5555555555555555;
  const format::Geometry& geometry = fs().volume.geometry;
  const uint32_t segment = geometry.main_segments - 1;  // in which nothing lies
  ASSERT_EQ(fs().writer->segments.segments[segment].valid_count, 0u);
  const uint32_t first = geometry.main_blkaddr + segment * format::kBlocksPerSegment;
  for (const uint64_t block : {uint64_t{first}, first + kFileBlocks + 1}) {
    std::memset(image_.block(static_cast<uint32_t>(block)), 0x55, kBlockBytes);
  }
  WriteParams params = params_of(WritePattern::kRandom, WriteScope::kThread);
  params.files = 0;
  params.start_byte = (uint64_t{first} + 1) * kBlockBytes;
  const WriteResults written = run_raw(params);
  EXPECT_EQ(written.error, 0);
  EXPECT_EQ(written.writes, kTurns * detail::actor_count(params));
  params.step = WriteStep::kCheck;
  const WriteResults checked = run_raw(params);
  EXPECT_EQ(checked.error, 0);
  EXPECT_EQ(checked.wrong, 0u);
  EXPECT_EQ(format::load_u64(image_.block(first) + kBlockBytes - 8), kGuard);
  EXPECT_EQ(format::load_u64(image_.block(first + 1 + kFileBlocks)), kGuard);
  for (uint32_t i = 0; i < kFileBlocks; ++i) {
    std::memset(image_.block(first + 1 + i), 0, kBlockBytes);
  }
  EXPECT_EQ(run_raw(params).wrong, detail::actor_count(params));
}

TEST_P(WriteBodiesTest, checkpoints_are_made_beside_writers) {
  open_files(kWriters, 0);
  uint32_t stop = 0;
  WriteAndSyncParams params{};
  WriteParams& writes = params.writes.params;
  writes = params_of(WritePattern::kRandom, WriteScope::kWarp);
  writes.operations = UINT32_MAX;  // until they are told
  writes.stop = &stop;
  params.syncs = 3;
  params.gap_ns = 2'000'000;
  const uint64_t version = fs().volume.checkpoint_version;
  testing::run_crowd({kWriters + 1, width()}, [&](const simt::Warp& warp, uint32_t index) {
    write_and_sync_body<CpuApi>(warp, index, kWriters + 1, params);
  });
  EXPECT_EQ(params.error, 0);
  EXPECT_EQ(params.writes.results.error, 0);
  EXPECT_EQ(params.syncs_done, 3u);
  EXPECT_GE(fs().volume.checkpoint_version, version + 3);
  EXPECT_GT(params.dirty_pages, 0u);
  EXPECT_GE(params.sync_ns, params.sync_longest_ns);
  EXPECT_GE(params.writes.results.writes, uint64_t{kWriters});
  writes.stop = nullptr;
  EXPECT_EQ(wrong_after(writes), 0u);
  close_files();
  mount_again();
}

}  // namespace
}  // namespace gofs::bench
