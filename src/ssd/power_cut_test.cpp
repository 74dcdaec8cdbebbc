// SPDX-License-Identifier: Apache-2.0
//
// Power cuts: what the log says was written, which of it a cut leaves alone, and that every state
// built from it is one that the promises of NVMe allow.
#include "ssd/power_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "ssd/media_host.h"
#include "ssd/test_driver.h"
#include "testing/teams.hpp"

namespace gofs::ssd {
namespace {

using namespace format::nvme;

constexpr uint32_t kCutBlocks = 64;  // of the media, LBAs of 512 bytes
constexpr uint32_t kLbaBytes = 512;

class PowerCuts : public ::testing::Test {
 protected:
  PowerCuts() {
    driver_.enable_ready();
    queue_ = driver_.create_pair(1, 16);
  }
  static VirtualSsdConfig logging() {
    VirtualSsdConfig config;
    config.queue_pairs_max = 2;
    config.logged_commands = 4096;
    config.logged_bytes = 4 << 20;
    return config;
  }

  /// Each LBA that is written gets bytes of its own.
  static uint8_t mark(uint32_t stamp, uint64_t lba) {
    return static_cast<uint8_t>(1 + (stamp * 37 + lba) % 251);
  }
  SubmissionEntry write_entry(uint64_t lba, uint32_t count, uint32_t stamp, bool fua = false) {
    for (uint32_t i = 0; i < count; ++i) {
      std::memset(data_ + i * kLbaBytes, mark(stamp, lba + i), kLbaBytes);
    }
    SubmissionEntry entry = TestDriver::io_entry(IoOpcode::kWrite, lba, count, data_);
    if (fua) entry.cdw12 |= kForceUnitAccess;
    return entry;
  }
  void write(uint64_t lba, uint32_t count, uint32_t stamp, bool fua = false) {
    EXPECT_EQ(driver_.run(queue_, write_entry(lba, count, stamp, fua)), kSuccess);
  }
  void zero(uint64_t lba, uint32_t count) {
    EXPECT_EQ(driver_.run(queue_, TestDriver::io_entry(IoOpcode::kWriteZeroes, lba, count)),
              kSuccess);
  }
  void trim(uint64_t lba, uint32_t count) {
    const DatasetRange range{0, count, lba};
    std::memcpy(data_, &range, sizeof(range));
    SubmissionEntry entry = TestDriver::io_entry(IoOpcode::kDatasetManagement, 0, 1, data_);
    entry.cdw10 = 0;
    entry.cdw11 = kDeallocate;
    EXPECT_EQ(driver_.run(queue_, entry), kSuccess);
  }
  void flush() { EXPECT_EQ(driver_.run(queue_, TestDriver::io_entry(IoOpcode::kFlush)), kSuccess); }
  WriteTrace trace() { return read_trace(driver_.memory().space(), driver_.ref()); }

  using Blocks = std::array<uint8_t, kCutBlocks>;  // the byte that each LBA is full of
  static Blocks blocks_of(const std::vector<uint8_t>& media) {
    Blocks blocks{};
    for (uint32_t lba = 0; lba < kCutBlocks; ++lba) {
      const uint8_t* const block = media.data() + size_t{lba} * kLbaBytes;
      blocks[lba] = block[0];
      EXPECT_TRUE(std::all_of(block, block + kLbaBytes, [&](uint8_t b) { return b == block[0]; }));
    }
    return blocks;
  }
  /// The media after a cut, from what was there at first: zeros.
  static Blocks after_cut(const PowerCut& cut, const PowerCut::Survives& survives) {
    std::vector<uint8_t> media(size_t{kCutBlocks} * kLbaBytes);
    cut.apply(media, kLbaBytes, survives);
    return blocks_of(media);
  }
  Blocks now() {
    std::vector<uint8_t> media(size_t{kCutBlocks} * kLbaBytes);
    std::memcpy(media.data(), media_.media().base, media.size());
    return blocks_of(media);
  }

  static bool all(uint32_t, uint64_t) { return true; }
  static bool none(uint32_t, uint64_t) { return false; }

  TestMemory memory_;
  MemoryMedia media_{memory_.space(), uint64_t{kCutBlocks} * kLbaBytes};
  TestDriver driver_{logging(), media_.media()};
  TestQueue queue_;
  uint8_t* const data_ = memory_.bytes(8192);
};

TEST_F(PowerCuts, what_was_not_flushed_may_go) {
  write(3, 2, 1);
  const WriteTrace done = trace();
  const PowerCut cut(done, done.events);
  EXPECT_EQ(cut.unsafe().size(), 1u);
  EXPECT_EQ(after_cut(cut, none), Blocks{});
  EXPECT_EQ(after_cut(cut, all), now());
}

TEST_F(PowerCuts, what_was_flushed_stays) {
  write(3, 2, 1);
  flush();
  write(4, 2, 2);
  const WriteTrace done = trace();
  const PowerCut cut(done, done.events);
  ASSERT_EQ(cut.unsafe().size(), 1u);
  Blocks wanted{};
  wanted[3] = mark(1, 3);
  wanted[4] = mark(1, 4);
  EXPECT_EQ(after_cut(cut, none), wanted);
  wanted[5] = mark(2, 5);
  EXPECT_EQ(after_cut(cut, [](uint32_t, uint64_t unit) { return unit == 1; }), wanted) << "torn";
}

/// A second SSD, which logs into the first one's log.
class OtherDisk {
 public:
  OtherDisk(simt::MemorySpace& memory, ControllerRef first)
      : media_(memory, uint64_t{kCutBlocks} * kLbaBytes),
        driver_(config_of(first), media_.media()) {
    driver_.enable_ready();
    queue_ = driver_.create_pair(1, 16);
  }
  auto run(const SubmissionEntry& entry) { return driver_.run(queue_, entry); }

 private:
  static VirtualSsdConfig config_of(ControllerRef first) {
    VirtualSsdConfig config;
    config.queue_pairs_max = 2;
    config.log_of = first;
    config.log_disk = 1;
    return config;
  }

  MemoryMedia media_;
  TestDriver driver_;
  TestQueue queue_;
};

// A cut between two SSDs' commands finds both at that moment, and a flush of one saves nothing of
// the other.
TEST_F(PowerCuts, of_disks_that_keep_one_log_each_has_its_own_flushes) {
  OtherDisk other(memory_.space(), driver_.ref());
  const auto after = [](const PowerCut& cut, uint32_t disk) {
    std::vector<uint8_t> media(size_t{kCutBlocks} * kLbaBytes);
    cut.apply(media, kLbaBytes, none, disk);
    return blocks_of(media);
  };
  write(3, 1, 1);
  EXPECT_EQ(other.run(write_entry(4, 1, 2)), kSuccess);
  flush();
  const uint32_t between = trace().events;
  EXPECT_EQ(other.run(TestDriver::io_entry(IoOpcode::kFlush)), kSuccess);
  const WriteTrace done = trace();
  ASSERT_EQ(done.commands.size(), 4u);
  Blocks mine{};
  mine[3] = mark(1, 3);
  Blocks others{};
  others[4] = mark(2, 4);
  EXPECT_EQ(after(PowerCut(done, 0), 0), Blocks{});
  EXPECT_EQ(after(PowerCut(done, between), 0), mine);
  EXPECT_EQ(after(PowerCut(done, between), 1), Blocks{});
  EXPECT_EQ(after(PowerCut(done, done.events), 1), others);
}

// The host waits for one SSD's flush before it goes on with the next: no cut lies the other way.
TEST_F(PowerCuts, of_disks_that_keep_one_log_one_begins_after_the_other_has_ended) {
  OtherDisk other(memory_.space(), driver_.ref());
  flush();
  EXPECT_EQ(other.run(write_entry(4, 1, 2)), kSuccess);
  const WriteTrace done = trace();
  ASSERT_EQ(done.commands.size(), 2u);
  EXPECT_EQ(done.commands[1].disk, 1u);
  EXPECT_LT(done.commands[0].ended, done.commands[1].began);
}

TEST_F(PowerCuts, an_ssd_that_has_no_log_cannot_lend_it) {
  VirtualSsdConfig config;
  TestDriver without(config, media_.media());
  config.log_disk = 1;
  EXPECT_THROW(TestDriver(config, media_.media()), std::invalid_argument);
  config.log_of = without.ref();
  EXPECT_THROW(TestDriver(config, media_.media()), std::invalid_argument);
  config.log_of = driver_.ref();
  config.logged_commands = 1;
  EXPECT_THROW(TestDriver(config, media_.media()), std::invalid_argument);
}

TEST_F(PowerCuts, forced_writes_protect_themselves_alone) {
  write(0, 1, 1);
  write(1, 1, 2, true);
  const WriteTrace done = trace();
  const PowerCut cut(done, done.events);
  Blocks wanted{};
  wanted[1] = mark(2, 1);
  EXPECT_EQ(after_cut(cut, none), wanted);
}

TEST_F(PowerCuts, zeroes_and_deallocation_may_be_undone) {
  write(0, 8, 1);
  flush();
  const Blocks before = now();
  zero(1, 2);
  trim(4, 3);
  Blocks zeroed = before;
  for (const uint32_t lba : {1, 2, 4, 5, 6}) zeroed[lba] = 0;
  ASSERT_EQ(now(), zeroed);
  const WriteTrace done = trace();
  const PowerCut cut(done, done.events);
  EXPECT_EQ(after_cut(cut, none), before);
  EXPECT_EQ(after_cut(cut, all), zeroed);
}

// Both are in the ring when a warp takes them: the write has not ended when the flush begins.
TEST_F(PowerCuts, a_flush_covers_only_what_had_ended_before_it_began) {
  TestDriver::put(queue_, write_entry(7, 1, 1));
  TestDriver::put(queue_, TestDriver::io_entry(IoOpcode::kFlush));
  driver_.ring(queue_);
  testing::run_teams(1, 4, [&](const simt::Warp& warp, uint32_t) { driver_.step(warp, 1); });
  driver_.wait(queue_);
  driver_.wait(queue_);
  const WriteTrace together = trace();
  ASSERT_EQ(together.commands.size(), 2u);
  for (const LoggedCommand& command : together.commands) EXPECT_NE(command.ended, 0u);
  EXPECT_EQ(after_cut(PowerCut(together, together.events), none), Blocks{});
  flush();
  const WriteTrace flushed = trace();
  EXPECT_EQ(after_cut(PowerCut(flushed, flushed.events), none), now());
}

TEST_F(PowerCuts, a_completion_that_is_late_is_covered_late) {
  VirtualSsdConfig config = logging();
  config.fault_capacity = 1;
  config.virtual_clock = true;
  TestDriver driver(config, media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);
  FaultRule rule;
  rule.opcode_mask = 1u << static_cast<uint32_t>(IoOpcode::kWrite);
  rule.action = FaultAction::kHold;
  rule.hold_commands = 1;
  add_fault(driver.memory().space(), driver.ref(), rule);
  TestDriver::put(queue, write_entry(7, 1, 1));
  TestDriver::put(queue, TestDriver::io_entry(IoOpcode::kFlush));
  driver.ring(queue);
  driver.wait(queue);
  driver.wait(queue);
  const WriteTrace done = read_trace(driver.memory().space(), driver.ref());
  EXPECT_EQ(after_cut(PowerCut(done, done.events), none), Blocks{});
}

TEST_F(PowerCuts, a_command_that_is_refused_leaves_no_trace) {
  EXPECT_EQ(driver_.run(queue_, TestDriver::io_entry(IoOpcode::kWrite, kCutBlocks, 1, data_)),
            kLbaOutOfRange);
  EXPECT_TRUE(trace().commands.empty());
}

TEST_F(PowerCuts, without_a_volatile_cache_nothing_is_lost) {
  VirtualSsdConfig config = logging();
  config.volatile_write_cache = false;
  TestDriver driver(config, media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 4);
  EXPECT_EQ(driver.run(queue, write_entry(9, 4, 3)), kSuccess);
  const WriteTrace done = read_trace(driver.memory().space(), driver.ref());
  const PowerCut cut(done, done.events);
  EXPECT_TRUE(cut.unsafe().empty());
  EXPECT_EQ(after_cut(cut, none), now());
}

TEST_F(PowerCuts, a_log_that_ran_over_says_so) {
  VirtualSsdConfig config = logging();
  config.logged_bytes = 3 * kLbaBytes;
  TestDriver driver(config, media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 4);
  EXPECT_EQ(driver.run(queue, write_entry(0, 2, 1)), kSuccess);
  EXPECT_EQ(read_trace(driver.memory().space(), driver.ref()).commands.size(), 1u);
  EXPECT_EQ(driver.run(queue, write_entry(0, 2, 1)), kSuccess);
  EXPECT_THROW(read_trace(driver.memory().space(), driver.ref()), std::length_error);
}

// Against a model that knows nothing of events: commands one after another, so that at each moment
// what was flushed is known, and so is what each LBA may hold.
class RandomPowerCuts : public PowerCuts, public ::testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Seed, RandomPowerCuts, ::testing::Range(1u, 9u));

TEST_P(RandomPowerCuts, leave_a_state_that_was_promised) {
  std::mt19937 random(GetParam());
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  struct Moment {
    uint32_t event;
    Blocks durable;
    std::array<std::vector<uint8_t>, kCutBlocks> later;  // written since, and not safe
  };
  std::vector<Moment> moments;
  Moment model{};
  Blocks current{};
  for (uint32_t stamp = 0; stamp < 300; ++stamp) {
    const uint32_t lba = below(kCutBlocks - 8);
    const uint32_t count = 1 + below(8);
    const uint32_t what = below(10);
    if (what == 0) {
      flush();
      model.durable = current;
      for (auto& values : model.later) values.clear();
    } else {
      const bool zeroes = what == 1;
      const bool fua = what == 2;
      zeroes ? zero(lba, count) : write(lba, count, stamp, fua);
      for (uint32_t i = lba; i < lba + count; ++i) {
        current[i] = zeroes ? 0 : mark(stamp, i);
        if (fua) {
          model.durable[i] = current[i];
          model.later[i].clear();
        } else {
          model.later[i].push_back(current[i]);
        }
      }
    }
    model.event = trace().events;
    moments.push_back(model);
  }
  const WriteTrace done = trace();
  for (const Moment& moment : moments) {
    const PowerCut cut(done, moment.event);
    EXPECT_EQ(after_cut(cut, none), moment.durable);
    const Blocks some = after_cut(cut, [&](uint32_t, uint64_t) { return below(2) == 0; });
    for (uint32_t lba = 0; lba < kCutBlocks; ++lba) {
      const auto& later = moment.later[lba];
      EXPECT_TRUE(some[lba] == moment.durable[lba] ||
                  std::find(later.begin(), later.end(), some[lba]) != later.end());
    }
  }
  EXPECT_EQ(after_cut(PowerCut(done, done.events), all), now());
}

}  // namespace
}  // namespace gofs::ssd
