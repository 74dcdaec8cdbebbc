// SPDX-License-Identifier: Apache-2.0
//
// Controller warps: commands complete that those who gave them never step for, data is as without
// them, and they end with the workers, whatever becomes of these.
#include "bench/controller_warps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "bench/cpu_api.hpp"
#include "bench/write_body.h"
#include "vfs/changes_for_test.hpp"

namespace gofs::bench {
namespace {

using gofs::testing::all_lanes;
using gofs::testing::run_crowd;
using gofs::testing::SsdRig;
using gofs::testing::SsdRigOptions;

constexpr uint32_t kServed = 2;  // workers
constexpr uint32_t kServers = 3;
/// A launch has two more warps: one between workers and controller warps, as in a block that is not
/// full of workers, and one behind all of them.
constexpr uint32_t kLaunched = kServed + 1 + kServers + 1;
constexpr uint64_t kServedTooLateNs = 30'000'000'000;

/// Two SSDs with two queues each.
class ServedArray {
 public:
  explicit ServedArray(const SsdRigOptions& options) {
    array_.count = 2;
    for (uint32_t disk = 0; disk < array_.count; ++disk) {
      rigs_.push_back(std::make_unique<SsdRig>(options));
      rigs_.back()->bring_up_ready();
      array_.devices[disk] = &rigs_.back()->device();
    }
  }
  SsdRig& rig(uint32_t disk) { return *rigs_[disk]; }
  nvme::Array& array() { return array_; }
  ControllerWarps controllers() { return {kServed + 1, kServers, &left_}; }
  uint32_t left() const { return left_; }

 private:
  std::vector<std::unique_ptr<SsdRig>> rigs_;
  nvme::Array array_{};
  uint32_t left_ = 0;
};

/// Reads with all lanes of a warp, which waits for it but does not step. False if it is too late.
/// What another warp kept it from ringing, it rings while it waits, as all do who wait.
bool read_without_stepping(const simt::Warp& warp, SsdRig& rig, nvme::QueuePair& queue,
                           const nvme::Command& command) {
  nvme::Token token{};
  const uint32_t lanes = all_lanes(warp);
  if (nvme::submit(warp, rig.device(), queue, lanes, command, nullptr, token) != 0) return false;
  const simt::Deadline deadline = simt::Deadline::after_ns(kServedTooLateNs);
  nvme::CommandStatus status = 0;
  bool done = false;
  for (simt::Backoff backoff;;) {
    nvme::ring(warp, queue);
    nvme::reap(warp, queue);
    if (!done && nvme::completed(queue, token, status)) {
      nvme::retire(queue, token);
      done = true;
    }
    if (warp.all(done)) return warp.all(status == 0);
    if (warp.any(deadline.passed())) return false;
    backoff.pause();
  }
}

class ControllerWarpsTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  /// Each worker reads from each queue of each SSD. Reads that did not work.
  uint32_t read_everywhere(ServedArray& served, uint32_t turns) const {
    std::vector<uint8_t*> buffers;
    for (uint32_t i = 0; i < kServed * width(); ++i) {
      buffers.push_back(served.rig(0).arena().bytes(kBlockBytes));
    }
    std::atomic<uint32_t> wrong{0};
    run_crowd({kLaunched, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const ControllerWarps controllers = served.controllers();
      if (index >= kServed) {
        play_controller(warp, index, kServed, controllers, served.array());
        return;
      }
      const uint32_t who = index * width() + warp.thread_rank();
      for (uint32_t turn = 0; turn < turns * 4; ++turn) {
        SsdRig& rig = served.rig(turn % 2);
        const uint64_t lba = (who * 64 + turn) * 8 % 2048;
        const bool done = read_without_stepping(warp, rig, rig.queue(turn / 2 % 2),
                                                rig.read(lba, 8, buffers[who]));
        if (!done || !rig.holds(buffers[who], lba, 8)) ++wrong;
        if (!done) break;  // all lanes alike
      }
      leave_controllers(warp, controllers);
    });
    EXPECT_EQ(served.left(), kServed);
    return wrong;
  }
};
GOFS_AT_BOTH_WIDTHS(ControllerWarpsTest);

TEST_P(ControllerWarpsTest, commands_complete_that_nobody_else_steps_for) {
  SsdRigOptions options;
  options.ssd.lba_shift = 9;
  {
    ServedArray served(options);
    EXPECT_EQ(read_everywhere(served, 8), 0u);
  }
  // With completions that become due later.
  options.ssd.model = ssd::parse_timing_model("p5800x");
  ServedArray served(options);
  EXPECT_EQ(read_everywhere(served, 8), 0u);
}

TEST_P(ControllerWarpsTest, they_leave_when_nothing_happens) {
  SsdRigOptions options;
  options.device.command_timeout_ns = 1'000'000;
  ServedArray served(options);
  run_crowd({kLaunched, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index >= kServed) {
      play_controller(warp, index, kServed, served.controllers(), served.array());
    }
  });
  EXPECT_EQ(served.left(), 0u);
}

TEST_P(ControllerWarpsTest, an_ssd_that_works_by_itself_is_left_alone) {
  ServedArray served{SsdRigOptions()};
  for (uint32_t disk = 0; disk < 2; ++disk) {
    served.rig(disk).device().controller.controller = nullptr;
  }
  run_crowd({kLaunched, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index < kServed) {
      leave_controllers(warp, served.controllers());
    } else {
      play_controller(warp, index, kServed, served.controllers(), served.array());
    }
  });
  EXPECT_EQ(served.left(), kServed);
}

/// The bodies of measurements, with controller warps.
class ServedBodiesTest : public vfs::ChangesTest {
 protected:
  ServedBodiesTest() : ChangesTest([](image::ImageBuilder&) {}) {}

  template <typename Job, typename Body>
  void launch(Job& job, Body body) {
    left_ = 0;
    run_crowd({kLaunched, width()},
              [&](const simt::Warp& warp, uint32_t index) { body(warp, index, kLaunched, job); });
    EXPECT_EQ(left_, kServed);
  }
  uint8_t* buffers() {
    buffers_.assign(uint64_t{kServed} * width() * kBlockBytes / sizeof(uint64_t), 0);
    return reinterpret_cast<uint8_t*>(buffers_.data());
  }
  /// Of a range or file of `blocks`.
  BenchJob read_job(uint64_t blocks) {
    BenchJob job{};
    BenchParams& params = job.params;
    params.fs = &fs();
    params.pattern = Pattern::kRandom;
    params.warps = kServed;
    params.lanes_per_warp = width();
    params.operations = 20;
    params.block_bytes = params.command_bytes = kBlockBytes;
    params.span_bytes = blocks * kBlockBytes;
    params.buffers = buffers();
    params.controllers = {kServed + 1, kServers, &left_};
    return job;
  }
  WriteJob write_job(const int* descriptors, uint64_t blocks) {
    WriteJob job{};
    WriteParams& params = job.params;
    params.fs = &fs();
    params.pattern = WritePattern::kRandom;
    params.warps = kServed;
    params.lanes_per_warp = width();
    params.operations = 5;
    params.time_ns = 2 * kServedTooLateNs;
    params.block_bytes = params.command_bytes = kBlockBytes;
    params.span_bytes = blocks * kBlockBytes;
    params.descriptors = descriptors;
    params.files = descriptors != nullptr ? 1 : 0;
    params.run = 1;
    params.buffers = buffers();
    done_.assign(uint64_t{kServed} * width(), 0);
    params.done = done_.data();
    params.controllers = {kServed + 1, kServers, &left_};
    return job;
  }

  uint32_t left_ = 0;
  std::vector<uint64_t> buffers_;
  std::vector<uint32_t> done_;
};
GOFS_AT_BOTH_WIDTHS(ServedBodiesTest);

constexpr auto kReadRaw = [](const simt::Warp& warp, uint32_t index, uint32_t count,
                             BenchJob& job) { raw_read_body(warp, index, count, job); };
constexpr auto kReadFile = [](const simt::Warp& warp, uint32_t index, uint32_t count,
                              BenchJob& job) { file_read_body<CpuApi>(warp, index, count, job); };
constexpr auto kWriteRaw = [](const simt::Warp& warp, uint32_t index, uint32_t count,
                              WriteJob& job) { raw_write_body(warp, index, count, job); };
constexpr auto kWriteFile = [](const simt::Warp& warp, uint32_t index, uint32_t count,
                               WriteJob& job) { file_write_body<CpuApi>(warp, index, count, job); };

TEST_P(ServedBodiesTest, read_and_write_as_without_them) {
  constexpr uint64_t kBlocks = 32;
  std::string bytes(kBlocks * kBlockBytes, '\0');
  for (uint64_t block = 0; block < kBlocks; ++block) {
    format::store_u64(reinterpret_cast<uint8_t*>(bytes.data()) + block * kBlockBytes, block);
  }
  const int fd = open_file("/served", vfs::kOpenReadWrite | vfs::kOpenCreate);
  ASSERT_EQ(pwrite_file(fd, bytes, 0), static_cast<int64_t>(bytes.size()));
  BenchJob read = read_job(kBlocks);
  read.params.descriptor = fd;
  read.params.stamp_check = 1;
  launch(read, kReadFile);
  EXPECT_EQ(read.results.error, 0);
  EXPECT_EQ(read.results.wrong_stamps, 0u);
  EXPECT_EQ(read.results.bytes, uint64_t{kServed} * width() * 20 * kBlockBytes);

  WriteJob write = write_job(&fd, kBlocks);
  launch(write, kWriteFile);
  EXPECT_EQ(write.results.error, 0);
  EXPECT_EQ(write.results.writes, uint64_t{kServed} * width() * 5);
  write.params.step = WriteStep::kCheck;
  launch(write, kWriteFile);
  EXPECT_EQ(write.results.error, 0);
  EXPECT_EQ(write.results.wrong, 0u);
  EXPECT_EQ(close_file(fd), 0);
  mount_again();
}

TEST_P(ServedBodiesTest, commands_read_and_write_as_without_them) {
  const format::Geometry& geometry = fs().volume.geometry;
  const uint32_t unused = geometry.main_segments - 1;  // in which nothing lies
  ASSERT_EQ(fs().writer->segments.segments[unused].valid_count, 0u);
  WriteJob write = write_job(nullptr, 32);
  write.params.start_byte =
      uint64_t{geometry.main_blkaddr + unused * format::kBlocksPerSegment} * kBlockBytes;
  launch(write, kWriteRaw);
  EXPECT_EQ(write.results.error, 0);
  EXPECT_EQ(write.results.writes, uint64_t{kServed} * width() * 5);
  write.params.step = WriteStep::kCheck;
  launch(write, kWriteRaw);
  EXPECT_EQ(write.results.error, 0);
  EXPECT_EQ(write.results.wrong, 0u);
  BenchJob read = read_job(32);
  read.params.start_byte = write.params.start_byte;
  launch(read, kReadRaw);
  EXPECT_EQ(read.results.error, 0);
  EXPECT_EQ(read.results.bytes, uint64_t{kServed} * width() * 20 * kBlockBytes);
}

TEST_P(ServedBodiesTest, workers_that_fail_take_them_along) {
  BenchJob read = read_job(32);
  read.params.start_byte = fs().volume.array.lba_count << fs().volume.array.lba_shift;
  launch(read, kReadRaw);
  EXPECT_LT(read.results.error, 0) << "LBAs that the SSD does not have";
  BenchJob closed = read_job(32);
  closed.params.descriptor = -1;
  launch(closed, kReadFile);
  EXPECT_EQ(closed.results.error, -EBADF);
  WriteJob raw = write_job(nullptr, 32);
  raw.params.start_byte = read.params.start_byte;
  launch(raw, kWriteRaw);
  EXPECT_LT(raw.results.error, 0);
  const int descriptor = -1;
  WriteJob write = write_job(&descriptor, 32);
  launch(write, kWriteFile);
  EXPECT_EQ(write.results.error, -EBADF);
}

}  // namespace
}  // namespace gofs::bench
