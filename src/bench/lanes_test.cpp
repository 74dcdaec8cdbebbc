// SPDX-License-Identifier: Apache-2.0
//
// Which lanes make the calls that are measured: those that take part, and no others.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "bench/write_body.h"
#include "testing/crowd.hpp"

namespace gofs::bench {
namespace {

constexpr uint32_t kLaneWidth = 4;
constexpr uint32_t kLaneWarps = 3;
constexpr uint32_t kLaneTurns = 5;

std::atomic<uint32_t> calls{0};
std::atomic<uint32_t> empty_calls{0};

/// Notes who calls, and answers as if all was well, or once as if not.
struct NotingApi {
  static inline std::atomic<uint32_t> failing_call{~0u};

  static int64_t note(uint64_t bytes) {
    if (bytes == 0) ++empty_calls;
    return calls++ == failing_call ? -EIO : static_cast<int64_t>(bytes);
  }
  static int64_t pread_by_thread(vfs::Filesystem&, int, void*, uint64_t bytes, uint64_t) {
    return note(bytes);
  }
  static int64_t pwrite_by_thread(vfs::Filesystem&, int, const void*, uint64_t bytes, uint64_t) {
    return note(bytes);
  }
  static int64_t pread_by_warp(const simt::Warp& warp, vfs::Filesystem&, int, void*, uint64_t bytes,
                               uint64_t) {
    return warp.thread_rank() == 0 ? note(bytes) : static_cast<int64_t>(bytes);
  }
  static int64_t pwrite_by_warp(const simt::Warp& warp, vfs::Filesystem&, int, const void*,
                                uint64_t bytes, uint64_t) {
    return warp.thread_rank() == 0 ? note(bytes) : static_cast<int64_t>(bytes);
  }
  static int fsync_by_warp(const simt::Warp&, vfs::Filesystem&, int) { return 0; }
  static int fstat_by_warp(const simt::Warp&, vfs::Filesystem&, int, vfs::Stat*) { return 0; }
};

class LanesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  LanesTest() {
    calls = 0;
    empty_calls = 0;
    NotingApi::failing_call = ~0u;
  }
  /// At their head is the file system, which none of the calls looks at.
  uint8_t* buffers() {
    memory_.assign(uint64_t{kLaneWarps} * kLaneWidth * kBlockBytes / sizeof(uint64_t), 0);
    return reinterpret_cast<uint8_t*>(memory_.data());
  }
  BenchResults read() {
    BenchJob job{};
    BenchParams& params = job.params;
    params.warps = kLaneWarps;
    params.lanes_per_warp = GetParam();
    params.operations = kLaneTurns;
    params.block_bytes = kBlockBytes;
    params.span_bytes = 64 * kBlockBytes;
    params.buffers = buffers();
    params.fs = reinterpret_cast<vfs::Filesystem*>(params.buffers);
    launch([&](const simt::Warp& warp, uint32_t index) {
      file_read_body<NotingApi>(warp, index, kLaneWarps, job);
    });
    return job.results;
  }
  WriteResults write(WriteStep step) {
    WriteJob job{};
    WriteParams& params = job.params;
    params.step = step;
    params.warps = kLaneWarps;
    params.lanes_per_warp = GetParam();
    params.operations = kLaneTurns;
    params.time_ns = 60'000'000'000;
    params.block_bytes = kBlockBytes;
    params.span_bytes = 64 * kBlockBytes;
    params.descriptors = &descriptor_;
    params.files = 1;
    params.run = 1;
    params.buffers = buffers();
    params.fs = reinterpret_cast<vfs::Filesystem*>(params.buffers);
    params.done = done_;
    launch([&](const simt::Warp& warp, uint32_t index) {
      file_write_body<NotingApi>(warp, index, kLaneWarps, job);
    });
    return job.results;
  }

  const int descriptor_ = 3;
  uint32_t done_[kLaneWarps * kLaneWidth] = {};

 private:
  template <typename Work>
  static void launch(Work work) {
    gofs::testing::run_crowd({kLaneWarps, kLaneWidth}, work);
  }
  std::vector<uint64_t> memory_;
};

TEST_P(LanesTest, only_those_that_read_call) {
  const BenchResults results = read();
  EXPECT_EQ(results.error, 0);
  EXPECT_EQ(calls, kLaneWarps * GetParam() * kLaneTurns);
  EXPECT_EQ(results.bytes, uint64_t{calls} * kBlockBytes);
  EXPECT_EQ(empty_calls, 0u);
}

TEST_P(LanesTest, only_those_that_write_call) {
  const WriteResults results = write(WriteStep::kWrite);
  EXPECT_EQ(results.error, 0);
  EXPECT_EQ(calls, kLaneWarps * GetParam() * kLaneTurns);
  EXPECT_EQ(results.writes, calls);
  EXPECT_EQ(empty_calls, 0u);
}

TEST_P(LanesTest, only_those_that_have_written_look) {
  done_[0] = 1;  // of all actors the first alone
  const WriteResults results = write(WriteStep::kCheck);
  EXPECT_EQ(results.wrong, 1u);  // nothing was read
  EXPECT_EQ(calls, 1u);
}

TEST_P(LanesTest, one_that_fails_calls_no_more_and_others_go_on) {
  NotingApi::failing_call = 0;
  const WriteResults results = write(WriteStep::kWrite);
  EXPECT_EQ(results.error, -EIO);
  EXPECT_EQ(results.writes, (kLaneWarps * GetParam() - 1) * kLaneTurns);
  EXPECT_EQ(calls, results.writes + 1);
}

INSTANTIATE_TEST_SUITE_P(lanes, LanesTest, ::testing::Values(1u, 2u, kLaneWidth),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace gofs::bench
