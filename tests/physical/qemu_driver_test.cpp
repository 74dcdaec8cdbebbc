// SPDX-License-Identifier: Apache-2.0
//
// The driver on an NVMe controller that is not ours: QEMU's. What it learns of it, queues of every
// number and depth over many laps, buffers of every shape, straight and through staging areas, what
// becomes durable, and what happens when the disk fails, or all of QEMU. What was written is read
// back, and compared with the image on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "../qemu/machine_for_test.h"
#include "host/image/pattern.h"
#include "nvme/execute.h"
#include "qemu_driver_rig.hpp"
#include "testing/ssd_rig.hpp"

namespace gofs::tests {
namespace {

using format::nvme::IoOpcode;
using gofs::testing::all_lanes;
using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using nvme::BringUpStep;
using nvme::CommandStatus;
using nvme::Mailbox;
using nvme::to_errno;

constexpr uint64_t kMillisecond = 1'000'000;

/// Long enough for a machine that has other things to do.
constexpr uint64_t kLongNs = 120'000 * kMillisecond;

class QemuDriverTest : public ssd::QemuTest {
 protected:
  /// A disk full of a pattern that depends on the place alone.
  QemuRigOptions with_disk(uint32_t lba_bytes = 512) {
    QemuRigOptions rig;
    rig.machine = options();
    rig.machine.ram_bytes = uint64_t{64} << 20;
    rig.machine.disks[0].lba_bytes = lba_bytes;
    std::vector<uint8_t> contents(kDiskBytes);
    image::fill_pattern(kSeed, 0, contents.data(), contents.size());
    const int file = ::open(rig.machine.disks[0].image.c_str(), O_WRONLY | O_CLOEXEC);
    EXPECT_EQ(::pwrite(file, contents.data(), contents.size(), 0),
              static_cast<ssize_t>(contents.size()));
    ::close(file);
    rig.device.io_queues = 2;
    rig.device.queue_depth = 64;
    rig.device.admin_depth = 16;
    rig.device.command_timeout_ns = rig.device.admin_timeout_ns = kLongNs;
    return rig;
  }
  /// Whether `buffer` has what such a disk has from `offset` on.
  static bool holds(const void* buffer, uint64_t offset, uint64_t bytes) {
    std::vector<uint8_t> wanted(bytes);
    image::fill_pattern(kSeed, offset, wanted.data(), bytes);
    return std::memcmp(buffer, wanted.data(), bytes) == 0;
  }

  static constexpr uint64_t kSeed = 7;
};

/// How many warps of how many lanes do `turns` turns each.
struct Load {
  uint32_t warps;
  uint32_t width;
  uint32_t turns;
};

/// What an LBA was given last: a part of a pattern. Seed 0: nothing.
struct Written {
  uint64_t seed;
  uint32_t lba;  // within the pattern
};

/// Each lane writes to a stretch of its own, reads that back, and in the end all that it wrote; by
/// buffers that the controller reaches, and by others where there is staging. How many commands
/// failed or had wrong data.
uint32_t write_and_read(QemuRig& rig, const Load& load, uint64_t seed) {
  constexpr uint32_t kLbasMax = 4;
  const uint32_t lba_bytes = rig.lba_bytes();
  const uint32_t room = kLbasMax * lba_bytes;
  const bool staged = rig.queue().staging.areas != nullptr;
  const uint64_t stretch = rig.device().lba_count / (load.warps * load.width);
  std::atomic<uint32_t> wrong{0};
  run_crowd({load.warps, load.width}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t who = index * load.width + warp.thread_rank();
    nvme::QueuePair& first = rig.queue(index % rig.device().io_queue_count);
    nvme::QueuePair& second = rig.queue((index + 1) % rig.device().io_queue_count);
    std::vector<uint8_t> own(2 * room);
    std::vector<Written> written(stretch);
    std::vector<uint8_t> wanted(room);
    for (uint32_t turn = 0; turn < load.turns; ++turn) {
      const uint64_t random = image::pattern_word(seed + who, turn);
      const uint32_t count = static_cast<uint32_t>(random % kLbasMax) + 1;
      const uint64_t at = (random >> 8) % (stretch - count + 1);
      const bool straight = !staged || (random >> 4 & 1) != 0;
      uint8_t* const out = straight ? rig.data() + uint64_t{who} * 2 * room : own.data();
      uint8_t* const in = out + room;
      image::fill_pattern(random, 0, out, room);
      for (uint32_t i = 0; i < count; ++i) written[at + i] = {random, i};
      nvme::Command command = rig.write(who * stretch + at, count, out);
      command.force_unit_access = (random >> 5 & 7) == 0;
      const uint32_t all = all_lanes(warp);
      if (nvme::execute(warp, rig.device(), first, all, command) != 0) ++wrong;
      std::memset(in, 0xa5, room);
      const nvme::Command again = rig.read(who * stretch + at, count, in);
      if (nvme::execute(warp, rig.device(), second, all, again) != 0) ++wrong;
      if (std::memcmp(in, out, count * lba_bytes) != 0) ++wrong;
      // What a command did not ask for stays.
      if (std::any_of(in + count * lba_bytes, in + room, [](uint8_t b) { return b != 0xa5; })) {
        ++wrong;
      }
    }
    for (uint64_t at = 0; at < stretch; ++at) {
      const bool mine = written[at].seed != 0;
      const uint32_t lanes = warp.ballot(mine);
      if (lanes == 0) continue;
      uint8_t* const in = rig.data() + uint64_t{who} * 2 * room;
      const nvme::Command command = rig.read(who * stretch + at, 1, in);
      const CommandStatus status = nvme::execute(warp, rig.device(), first, lanes, command);
      if (!mine) continue;
      image::fill_pattern(written[at].seed, uint64_t{written[at].lba} * lba_bytes, wanted.data(),
                          lba_bytes);
      if (status != 0 || std::memcmp(in, wanted.data(), lba_bytes) != 0) ++wrong;
    }
  });
  return wrong;
}

void expect_idle(const nvme::QueuePair& queue) {
  EXPECT_EQ(queue.tail, queue.next_ticket);
  EXPECT_EQ(queue.head, queue.next_ticket);
  EXPECT_EQ(queue.spurious, 0u);
  EXPECT_EQ(gofs::testing::failed_commands(queue), 0u);
}

TEST_F(QemuDriverTest, bring_up_learns_what_the_controller_is) {
  for (const uint32_t lba_bytes : {512u, 4096u}) {
    for (const uint32_t mdts : {0u, 1u, 5u, 7u}) {
      QemuRigOptions options = with_disk(lba_bytes);
      options.machine.disks[0].mdts = mdts;
      QemuRig rig(options);
      rig.bring_up_ready(mdts == 5 ? 4 : 1);
      const nvme::Device& device = rig.device();
      EXPECT_EQ(device.lba_bytes(), lba_bytes);
      EXPECT_EQ(device.lba_count, kDiskBytes / lba_bytes);
      EXPECT_EQ(device.transfer_bytes_max,
                mdts == 0 || mdts > 6 ? nvme::kPrpBytesMax : uint32_t{kBlockBytes} << mdts);
      EXPECT_EQ(device.volatile_write_cache, 1u);
      EXPECT_EQ(device.dataset_management, 1u);
      EXPECT_EQ(rig.run(rig.read(3, 1, rig.data())), 0u);
      EXPECT_TRUE(holds(rig.data(), 3 * lba_bytes, lba_bytes));
    }
  }
}

TEST_F(QemuDriverTest, as_many_queue_pairs_as_are_asked_for_and_granted) {
  for (const auto& [wanted, has] :
       {std::pair{1u, 64u}, {2u, 64u}, {5u, 64u}, {16u, 16u}, {16u, 5u}, {3u, 1u}}) {
    QemuRigOptions options = with_disk();
    options.machine.disks[0].max_ioqpairs = has;
    options.device.io_queues = wanted;
    options.device.queue_depth = 7;
    QemuRig rig(options);
    rig.bring_up_ready();
    ASSERT_EQ(rig.device().io_queue_count, std::min(wanted, has));
    EXPECT_EQ(write_and_read(rig, {6, 1, 60}, wanted), 0u);
    for (uint32_t i = 0; i < rig.device().io_queue_count; ++i) expect_idle(rig.queue(i));
  }
}

TEST_F(QemuDriverTest, queues_are_no_deeper_than_the_controller_takes) {
  QemuRigOptions options = with_disk();
  options.device.io_queues = 1;
  options.device.queue_depth = 10'000;
  QemuRig rig(options);
  rig.bring_up_ready();
  EXPECT_EQ(rig.queue().depth(), 2048u);  // CAP.MQES of QEMU, plus one
  EXPECT_EQ(write_and_read(rig, {4, 1, 100}, 3), 0u);
  expect_idle(rig.queue());
}

class QemuDepthTest : public QemuDriverTest,
                      public ::testing::WithParamInterface<std::tuple<uint32_t, uint32_t, bool>> {
 protected:
  uint32_t depth() const { return std::get<0>(GetParam()); }
  uint32_t width() const { return std::get<1>(GetParam()); }
  bool staged() const { return std::get<2>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(depth, QemuDepthTest,
                         ::testing::Combine(::testing::Values(2u, 3u, 7u, 100u, 1023u),
                                            ::testing::Values(1u, 4u), ::testing::Bool()),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_width_" +
                                  std::to_string(std::get<1>(test.param)) +
                                  (std::get<2>(test.param) ? "_staged" : "_straight");
                         });

TEST_P(QemuDepthTest, what_was_written_is_read_over_many_laps) {
  QemuRigOptions options = with_disk(depth() % 2 == 0 ? 4096 : 512);
  options.device.queue_depth = depth();
  options.device.io_queues = depth() == 1023 ? 1 : 2;
  if (staged()) options.device.staging_bytes = 16384;
  QemuRig rig(options);
  rig.bring_up_ready(width());
  ASSERT_EQ(rig.queue().depth(), depth());
  const Load load = width() == 1 ? Load{8, 1, 150} : Load{3, 4, 100};
  EXPECT_EQ(write_and_read(rig, load, depth()), 0u);
  for (uint32_t i = 0; i < rig.device().io_queue_count; ++i) expect_idle(rig.queue(i));
}

// Nothing but reads of one LBA, so that the ring goes round fast.
TEST_P(QemuDepthTest, phase_tags_hold_over_many_laps) {
  QemuRigOptions options = with_disk();
  options.device.queue_depth = depth();
  options.device.io_queues = 1;
  if (staged()) options.device.staging_bytes = 4096;
  QemuRig rig(options);
  rig.bring_up_ready(width());
  const uint32_t warps = width() == 1 ? 8 : 4;
  const uint32_t turns = 3000 / (warps * width());
  std::atomic<uint32_t> wrong{0};
  run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t who = index * width() + warp.thread_rank();
    std::vector<uint8_t> own(512);
    uint8_t* const buffer = staged() ? own.data() : rig.data() + who * 512;
    for (uint32_t turn = 0; turn < turns; ++turn) {
      const uint64_t lba = (who * 1009 + turn) % 30'000;
      if (nvme::execute(warp, rig.device(), rig.queue(), all_lanes(warp),
                        rig.read(lba, 1, buffer)) != 0 ||
          !holds(buffer, lba * 512, 512)) {
        ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(rig.queue().head, uint64_t{turns} * warps * width());
  expect_idle(rig.queue());
}

TEST_F(QemuDriverTest, buffers_of_every_dword_offset_and_up_to_65_pages) {
  QemuRigOptions options = with_disk();
  options.device.queue_depth = 5;
  QemuRig rig(options);
  rig.bring_up_ready();
  ASSERT_EQ(rig.device().transfer_bytes_max, nvme::kPrpBytesMax);
  constexpr uint32_t kRoom = nvme::kPrpBytesMax + 2 * kBlockBytes;
  constexpr uint32_t kLbasMax = nvme::kPrpBytesMax / 512;
  const uint64_t seed = printed_seed();
  uint8_t* const room = rig.data();
  run_alone(1, [&](const simt::Warp& warp) {
    for (uint32_t turn = 0; turn < kBlockBytes / 4; ++turn) {
      const uint64_t random = image::pattern_word(seed, turn);
      const uint32_t offset = turn * 4;
      const uint32_t count =
          turn % 16 == 1 ? kLbasMax : static_cast<uint32_t>(random >> 20) % 40 + 1;
      const uint64_t lba = (random >> 40) % (rig.device().lba_count - count);
      std::memset(room, 0x5c, offset + count * 512 + 512);
      ASSERT_EQ(nvme::execute(warp, rig.device(), rig.queue(turn % 2), 1u,
                              rig.read(lba, count, room + offset)),
                0u);
      ASSERT_TRUE(holds(room + offset, lba * 512, count * 512)) << offset << ", " << count;
      const auto is_left = [](uint8_t byte) { return byte == 0x5c; };
      ASSERT_TRUE(std::all_of(room, room + offset, is_left)) << offset;
      const uint8_t* const end = room + offset + count * 512;
      ASSERT_TRUE(std::all_of(end, end + 512, is_left)) << offset;
    }
    // And from there: what was read is written elsewhere, from another offset.
    for (uint32_t turn = 0; turn < 200; ++turn) {
      const uint64_t random = image::pattern_word(seed + 1, turn);
      const uint32_t offset = static_cast<uint32_t>(random % 1024) * 4;
      const uint32_t count =
          turn % 8 == 0 ? kLbasMax : static_cast<uint32_t>(random >> 20) % 40 + 1;
      const uint64_t lba = (random >> 40) % (rig.device().lba_count - count);
      ASSERT_LE(offset + count * 512, kRoom);
      image::fill_pattern(random, 0, room + offset, count * 512);
      ASSERT_EQ(
          nvme::execute(warp, rig.device(), rig.queue(), 1u, rig.write(lba, count, room + offset)),
          0u);
      ASSERT_EQ(nvme::execute(warp, rig.device(), rig.queue(1), 1u,
                              nvme::Command{IoOpcode::kFlush, false, 0, 0, nullptr, 0}),
                0u);
      const std::vector<uint8_t> stored = rig.image(lba * 512, count * 512);
      ASSERT_EQ(std::memcmp(stored.data(), room + offset, stored.size()), 0) << offset;
    }
  });
}

TEST_F(QemuDriverTest, buffers_that_the_controller_does_not_reach_go_through_staging) {
  QemuRigOptions options = with_disk();
  options.device.queue_depth = 9;
  options.device.staging_bytes = 32768;
  QemuRig rig(options);
  rig.bring_up_ready(4);
  ASSERT_EQ(rig.device().transfer_bytes_max, 32768u);
  const uint64_t seed = printed_seed();
  run_crowd({3, 4}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t who = index * 4 + warp.thread_rank();
    std::vector<uint8_t> own(32768 + 4096 + 512);
    for (uint32_t turn = 0; turn < 120; ++turn) {
      const uint64_t random = image::pattern_word(seed + who, turn);
      const uint32_t offset = static_cast<uint32_t>(random % 1024) * 4;
      const uint32_t count = static_cast<uint32_t>(random >> 20) % 64 + 1;
      const uint64_t lba = (random >> 40) % (rig.device().lba_count - count);
      std::fill(own.begin(), own.end(), 0x5c);
      ASSERT_EQ(nvme::execute(warp, rig.device(), rig.queue(index % 2), all_lanes(warp),
                              rig.read(lba, count, own.data() + offset)),
                0u);
      ASSERT_TRUE(holds(own.data() + offset, lba * 512, count * 512));
      ASSERT_EQ(std::count(own.begin(), own.begin() + offset, 0x5c), offset);
      ASSERT_EQ(own[offset + count * 512], 0x5c);
    }
  });
}

TEST_F(QemuDriverTest, what_was_flushed_is_in_the_image) {
  for (const uint32_t staging_bytes : {0u, 16384u}) {
    QemuRigOptions options = with_disk(4096);
    options.device.staging_bytes = staging_bytes;
    QemuRig rig(options);
    rig.bring_up_ready();
    for (uint32_t block = 0; block < 300; ++block) {
      image::fill_pattern(1000 + block, 0, rig.data(), 4096);
      nvme::Command command = rig.write(block * 3, 1, rig.data());
      command.force_unit_access = block % 2 == 0;
      ASSERT_EQ(rig.run(command), 0u);
    }
    EXPECT_EQ(rig.flush(), 0);
    std::vector<uint8_t> wanted(kDiskBytes);
    image::fill_pattern(kSeed, 0, wanted.data(), wanted.size());
    for (uint32_t block = 0; block < 300; ++block) {
      image::fill_pattern(1000 + block, 0, wanted.data() + uint64_t{block} * 3 * 4096, 4096);
    }
    EXPECT_TRUE(rig.image(0, kDiskBytes) == wanted);
  }
}

TEST_F(QemuDriverTest, deallocated_blocks_read_as_zeros_and_others_as_before) {
  for (const uint32_t staging_bytes : {0u, 4096u}) {
    QemuRigOptions options = with_disk(4096);
    options.device.staging_bytes = staging_bytes;
    QemuRig rig(options);
    rig.bring_up_ready();
    nvme::Array array = nvme::array_of(rig.device());
    std::vector<format::nvme::DatasetRange> own(256);
    auto* const ranges = staging_bytes != 0
                             ? own.data()
                             : reinterpret_cast<format::nvme::DatasetRange*>(rig.data() + 8192);
    for (uint32_t i = 0; i < 256; ++i) ranges[i] = {0, 2, 10 + uint64_t{i} * 5};
    run_alone(4, [&](const simt::Warp& warp) {
      EXPECT_EQ(nvme::deallocate(warp, array, ranges, 256, nullptr), 0);
    });
    for (uint64_t lba = 0; lba < 1400; ++lba) {
      ASSERT_EQ(rig.run(rig.read(lba, 1, rig.data())), 0u);
      const bool gone = lba >= 10 && lba < 10 + 256 * 5 && (lba - 10) % 5 < 2;
      if (gone) {
        ASSERT_EQ(std::count(rig.data(), rig.data() + 4096, 0), 4096) << lba;
      } else {
        ASSERT_TRUE(holds(rig.data(), lba * 4096, 4096)) << lba;
      }
    }
  }
}

TEST_F(QemuDriverTest, commands_report_to_a_mailbox) {
  QemuRigOptions options = with_disk();
  options.device.staging_bytes = 4096;
  QemuRig rig(options);
  rig.bring_up_ready(4);
  std::vector<Mailbox> mailboxes(4);
  run_crowd({4, 4}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t who = index * 4 + warp.thread_rank();
    Mailbox& mailbox = mailboxes[index];
    std::vector<uint8_t> own(8 * 512);
    for (uint32_t turn = 0; turn < 40; ++turn) {
      warp.sync();
      if (warp.thread_rank() == 0) mailbox = Mailbox{};
      warp.sync();
      for (uint32_t i = 0; i < 8; ++i) {
        ASSERT_EQ(nvme::start(warp, rig.device(), rig.queue(index % 2), all_lanes(warp),
                              rig.read(who * 100 + turn * 8 + i, 1, own.data() + i * 512), mailbox),
                  0);
      }
      while (warp.any(simt::load_acquire(mailbox.remaining) != 0)) {
        nvme::progress(warp, rig.device(), rig.queue(index % 2));
      }
      warp.sync();
      ASSERT_EQ(simt::load_relaxed(mailbox.status), 0u);
      ASSERT_TRUE(holds(own.data(), (who * 100 + turn * 8) * uint64_t{512}, own.size()));
    }
  });
}

TEST_F(QemuDriverTest, errors_of_the_disk_are_those_of_their_commands) {
  const struct {
    const char* operation;
    CommandStatus status;
  } cases[] = {{"read", format::nvme::kUnrecoveredReadError}, {"write", format::nvme::kWriteFault}};
  for (const auto& one : cases) {
    QemuRigOptions options = with_disk();
    options.device.staging_bytes = 4096;
    ssd::InjectedError error;
    error.operation = one.operation;
    error.sector = 800;
    options.machine.disks[0].errors = {error};
    QemuRig rig(options);
    rig.bring_up_ready();
    const bool reads = std::strcmp(one.operation, "read") == 0;
    std::vector<uint8_t> own(2048);
    for (uint32_t turn = 0; turn < 20; ++turn) {
      std::fill(own.begin(), own.end(), 0x77);
      const nvme::Command bad =
          reads ? rig.read(798, 4, own.data()) : rig.write(798, 4, own.data());
      const CommandStatus status = rig.run(bad);
      EXPECT_EQ(status & format::nvme::kStatusCodeMask, one.status) << nvme::status_name(status);
      EXPECT_EQ(to_errno(status), -EIO);
      EXPECT_EQ(std::count(own.begin(), own.end(), 0x77), 2048);  // of a read as well
      const uint64_t lba = turn % 2 == 0 ? 790 : 801;
      EXPECT_EQ(rig.run(rig.read(lba, 4, own.data())), 0u);
      EXPECT_TRUE(holds(own.data(), lba * 512, 2048));
    }
    EXPECT_EQ(gofs::testing::failed_commands(rig.queue()), 20u);
    const auto noted = nvme::FailedCommand::unpacked(rig.device().last_failure);
    EXPECT_EQ(noted.lba, 798u);
    EXPECT_EQ(noted.opcode, reads ? IoOpcode::kRead : IoOpcode::kWrite);
  }
}

TEST_F(QemuDriverTest, a_flush_that_fails_is_eio_and_the_next_one_may_succeed) {
  QemuRigOptions options = with_disk();
  ssd::InjectedError error;
  error.operation = "flush";
  error.once = true;
  options.machine.disks[0].errors = {error};
  QemuRig rig(options);
  rig.bring_up_ready();
  EXPECT_EQ(rig.run(rig.write(5, 1, rig.data())), 0u);
  EXPECT_EQ(rig.flush(), -EIO);
  EXPECT_EQ(rig.flush(), 0);
  EXPECT_EQ(rig.run(rig.read(5, 1, rig.data())), 0u);
}

TEST_F(QemuDriverTest, lbas_behind_the_end_are_the_devices_to_refuse) {
  QemuRig rig(with_disk());
  rig.bring_up_ready();
  const uint64_t end = rig.device().lba_count;
  run_alone(4, [&](const simt::Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    const uint64_t lbas[] = {end - 1, end - 2, end, ~uint64_t{0} - 1};
    for (uint32_t turn = 0; turn < 50; ++turn) {
      uint8_t* const buffer = rig.data() + rank * 4096;
      const CommandStatus status = nvme::execute(warp, rig.device(), rig.queue(), all_lanes(warp),
                                                 rig.read(lbas[rank], 2, buffer));
      EXPECT_EQ(to_errno(status), rank == 1 ? 0 : -ENOSPC) << nvme::status_name(status);
      if (rank == 1) {
        EXPECT_TRUE(holds(buffer, lbas[rank] * 512, 1024));
      }
    }
  });
  EXPECT_EQ(gofs::testing::failed_commands(rig.queue()), 150u);
}

TEST_F(QemuDriverTest, another_driver_resets_a_controller_that_is_in_use) {
  QemuRigOptions options = with_disk();
  options.device.queue_depth = 7;
  QemuRig rig(options);
  for (uint32_t round = 0; round < 4; ++round) {
    rig.bring_up_ready();
    EXPECT_EQ(write_and_read(rig, {4, 1, 20 + round}, round), 0u);
    rig.start_anew();
  }
}

TEST_F(QemuDriverTest, a_shutdown_completes_and_the_controller_comes_up_again) {
  QemuRigOptions options = with_disk();
  QemuRig rig(options);
  for (uint32_t round = 0; round < 3; ++round) {
    rig.bring_up_ready();
    image::fill_pattern(round + 50, 0, rig.data(), 512);
    EXPECT_EQ(rig.run(rig.write(round, 1, rig.data())), 0u);
    EXPECT_EQ(rig.shut_down(), 0);
    EXPECT_EQ(rig.transport().read_register(offsetof(format::nvme::Registers, csts)) &
                  format::nvme::kCstsReady,
              0u);
    EXPECT_EQ(rig.run(rig.read(0, 1, rig.data())), nvme::kStatusDeviceFailed);
    std::vector<uint8_t> wanted(512);
    image::fill_pattern(round + 50, 0, wanted.data(), 512);
    EXPECT_TRUE(rig.image(round * 512, 512) == wanted);
    rig.start_anew();
  }
}

TEST_F(QemuDriverTest, a_number_that_no_namespace_may_have_is_refused) {
  QemuRigOptions options = with_disk();
  options.device.nsid = 5000;
  QemuRig rig(options);
  const nvme::BringUpResult result = rig.bring_up();
  EXPECT_EQ(result.step, BringUpStep::kIdentifyNamespace);
  EXPECT_EQ(to_errno(result.status), -ENODEV);
}

// QEMU has room for 256, and answers zeros for those that are not there.
TEST_F(QemuDriverTest, a_namespace_that_is_not_active_is_refused) {
  QemuRigOptions options = with_disk();
  options.device.nsid = 2;
  QemuRig rig(options);
  EXPECT_EQ(rig.bring_up().step, BringUpStep::kNoNamespace);
}

// As when the SSD is pulled out. All who wait are told, and whoever comes later.
TEST_F(QemuDriverTest, who_waits_for_a_qemu_that_is_killed_is_told_in_time) {
  for (const uint32_t width : {1u, 4u}) {
    QemuRigOptions options = with_disk();
    options.device.queue_depth = 16;
    options.device.staging_bytes = 4096;
    QemuRig rig(options);
    rig.bring_up_ready(width);
    rig.device().limits = {300 * kMillisecond, 300 * kMillisecond};
    std::atomic<uint32_t> done{0};
    std::atomic<uint32_t> wrong{0};
    std::thread killer([&] {
      while (done < 400) std::this_thread::yield();
      rig.machine().kill();
    });
    const auto begin = std::chrono::steady_clock::now();
    run_crowd({6, width}, [&](const simt::Warp& warp, uint32_t index) {
      const uint32_t who = index * width + warp.thread_rank();
      std::vector<uint8_t> own(4096);
      CommandStatus status = 0;
      for (uint32_t turn = 0; !warp.any(status != 0); ++turn) {
        const uint64_t lba = (who * 997 + turn) % 30'000;
        status = nvme::execute(warp, rig.device(), rig.queue(index % 2), all_lanes(warp),
                               rig.read(lba, 8, own.data()));
        if (status == 0 && !holds(own.data(), lba * 512, 4096)) ++wrong;
        ++done;
      }
      status = nvme::execute(warp, rig.device(), rig.queue(), all_lanes(warp),
                             rig.read(0, 1, own.data()));
      if (status != nvme::kStatusDeviceFailed) ++wrong;
    });
    killer.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(rig.device().failure, uint32_t{nvme::kFailed});
    EXPECT_EQ(rig.shut_down(), -EIO);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(1));
  }
}

}  // namespace
}  // namespace gofs::tests
