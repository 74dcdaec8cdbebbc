// SPDX-License-Identifier: Apache-2.0
//
// The I/O commands: their statuses, every shape of PRPs, LBAs of both sizes, and a long random run
// against a plain array of bytes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "ssd/media_host.h"
#include "ssd/prp_buffer.h"
#include "ssd/test_driver.h"
#include "testing/teams.hpp"

namespace gofs::ssd {
namespace {

using namespace format::nvme;

constexpr uint64_t kIoMediaBytes = 4 << 20;

class IoCommands : public ::testing::TestWithParam<uint32_t> {
 protected:
  IoCommands() {
    const std::vector<uint8_t> data = pattern(kIoMediaBytes, 1);
    std::memcpy(base(), data.data(), data.size());
    driver_.enable_ready();
    queue_ = driver_.create_pair(1, 16);
  }

  VirtualSsdConfig config() const {
    VirtualSsdConfig config;
    config.lba_shift = GetParam();
    config.queue_pairs_max = 2;
    return config;
  }
  uint8_t* base() { return media_.media().base; }
  uint32_t lba_bytes() const { return 1u << GetParam(); }
  uint64_t lba_count() const { return kIoMediaBytes >> GetParam(); }
  Status run(const SubmissionEntry& entry) { return driver_.run(queue_, entry); }
  std::vector<uint8_t> media_bytes(uint64_t offset, uint64_t bytes) {
    return {base() + offset, base() + offset + bytes};
  }

  TestMemory memory_;
  MemoryMedia media_{memory_.space(), kIoMediaBytes};
  TestDriver driver_{config(), media_.media()};
  TestQueue queue_;
};

INSTANTIATE_TEST_SUITE_P(LbaShift, IoCommands, ::testing::Values(9u, 12u));

TEST_P(IoCommands, lbas_are_checked_in_64_bits) {
  uint8_t* const data = memory_.bytes(2 * 4096);
  const auto read = [&](uint64_t lba, uint32_t count) {
    return run(TestDriver::io_entry(IoOpcode::kRead, lba, count, data, data + 4096));
  };
  EXPECT_EQ(read(lba_count() - 1, 1), kSuccess);
  EXPECT_EQ(read(lba_count() - 2, 2), kSuccess);
  EXPECT_EQ(read(lba_count(), 1), kLbaOutOfRange);
  EXPECT_EQ(read(lba_count() - 1, 2), kLbaOutOfRange);
  EXPECT_EQ(read(uint64_t{1} << 32, 1), kLbaOutOfRange);
  EXPECT_EQ(read(~uint64_t{0}, 1), kLbaOutOfRange);
  EXPECT_EQ(read(~uint64_t{0}, 2), kLbaOutOfRange);
  const auto zero = [&](uint64_t lba, uint32_t count) {
    return run(TestDriver::io_entry(IoOpcode::kWriteZeroes, lba, count));
  };
  EXPECT_EQ(zero(lba_count() - 1, 1), kSuccess);
  EXPECT_EQ(zero(lba_count() - 1, 2), kLbaOutOfRange);
  EXPECT_EQ(zero(uint64_t{1} << 63, 1), kLbaOutOfRange);
}

TEST_P(IoCommands, a_refused_write_changes_nothing) {
  const std::vector<uint8_t> before = media_bytes(0, kIoMediaBytes);
  uint8_t* const data = memory_.bytes(4096);
  EXPECT_EQ(run(TestDriver::io_entry(IoOpcode::kWrite, lba_count() - 1, 2, data, data)),
            kLbaOutOfRange);
  EXPECT_EQ(run(TestDriver::io_entry(IoOpcode::kWrite, 0, 1, data + 1)), kInvalidPrpOffset);
  EXPECT_EQ(media_bytes(0, kIoMediaBytes), before);
}

TEST_P(IoCommands, transfers_above_mdts_are_invalid) {
  const uint32_t max_bytes = 4096 << 7;
  const uint32_t max_lbas = max_bytes / lba_bytes();
  PrpBuffer buffer(memory_, 512, max_bytes);
  auto entry = TestDriver::io_entry(IoOpcode::kRead, 0, max_lbas);
  buffer.set_prps(entry);
  EXPECT_EQ(run(entry), kSuccess);
  EXPECT_EQ(buffer.collect(), media_bytes(0, max_bytes));
  entry.cdw12 = max_lbas;  // one more
  EXPECT_EQ(run(entry), kInvalidField);
  entry.opcode = static_cast<uint8_t>(IoOpcode::kWrite);
  EXPECT_EQ(run(entry), kInvalidField);
  // Not a transfer: no such limit.
  EXPECT_EQ(
      run(TestDriver::io_entry(IoOpcode::kWriteZeroes, 0,
                               static_cast<uint32_t>(std::min<uint64_t>(lba_count(), 65536)))),
      kSuccess);
}

TEST_P(IoCommands, namespaces_opcodes_and_flags_are_checked) {
  uint8_t* const data = memory_.bytes(4096);
  for (const auto opcode : {IoOpcode::kRead, IoOpcode::kWrite, IoOpcode::kWriteZeroes,
                            IoOpcode::kFlush, IoOpcode::kDatasetManagement}) {
    auto entry = TestDriver::io_entry(opcode, 0, 1, data);
    for (const uint32_t nsid : {0u, 2u, 0xffffffffu}) {
      entry.nsid = nsid;
      const bool valid = opcode == IoOpcode::kFlush && nsid == 0xffffffff;
      EXPECT_EQ(run(entry), valid ? kSuccess : kInvalidNamespace);
    }
    entry.nsid = 1;
    for (const int flags : {1, 2, 0x40, 0x80}) {
      entry.flags = static_cast<uint8_t>(flags);
      EXPECT_EQ(run(entry), kInvalidField);
    }
  }
  for (uint32_t opcode = 0; opcode < 256; ++opcode) {
    if (opcode <= 2 || opcode == 8 || opcode == 9) continue;
    EXPECT_EQ(run(TestDriver::io_entry(static_cast<IoOpcode>(opcode), 0, 1, data)), kInvalidOpcode);
  }
}

TEST_P(IoCommands, errors_say_do_not_retry) {
  auto entry = TestDriver::io_entry(IoOpcode::kRead, lba_count(), 1, memory_.bytes(4096));
  driver_.submit(queue_, entry);
  EXPECT_NE(driver_.wait(queue_).status >> 1 & kDoNotRetry, 0);
}

TEST_P(IoCommands, data_may_start_at_every_dword_of_a_page) {
  const uint32_t bytes = 4096;
  const uint32_t count = bytes / lba_bytes();
  for (uint32_t offset = 0; offset < 4096; offset += 4) {
    PrpBuffer in(memory_, offset, bytes);
    auto entry = TestDriver::io_entry(IoOpcode::kRead, count, count);
    in.set_prps(entry);
    ASSERT_EQ(run(entry), kSuccess) << offset;
    ASSERT_EQ(in.collect(), media_bytes(bytes, bytes)) << offset;
    ASSERT_TRUE(in.guards_intact()) << offset;
    if (offset % 64 != 4) continue;
    PrpBuffer out(memory_, offset, bytes);
    const std::vector<uint8_t> data = pattern(bytes, offset);
    out.fill(data);
    entry = TestDriver::io_entry(IoOpcode::kWrite, 2 * count, count);
    out.set_prps(entry);
    ASSERT_EQ(run(entry), kSuccess) << offset;
    ASSERT_EQ(media_bytes(2 * bytes, bytes), data) << offset;
  }
}

TEST_P(IoCommands, transfers_of_1_to_66_pages_with_lists_of_every_shape) {
  const std::vector<uint8_t> before = media_bytes(0, kIoMediaBytes);
  for (uint32_t pages = 1; pages <= 65; ++pages) {
    const uint32_t bytes = pages * 4096;
    const uint32_t count = bytes / lba_bytes();
    for (const uint32_t offset : {0u, 8u, 2048u, 4092u}) {
      // 511: nothing but a pointer to the next list page; 510 and 449: chained in the middle.
      for (const uint32_t list_offset : {0u, 1u, 449u, 510u, 511u}) {
        PrpBuffer in(memory_, offset, bytes, list_offset);
        auto entry = TestDriver::io_entry(IoOpcode::kRead, 1, count);
        in.set_prps(entry);
        ASSERT_EQ(run(entry), kSuccess) << pages << " " << offset << " " << list_offset;
        ASSERT_EQ(in.collect(), media_bytes(lba_bytes(), bytes));
        ASSERT_TRUE(in.guards_intact());
      }
    }
    PrpBuffer out(memory_, 16, bytes, 500);
    const std::vector<uint8_t> data = pattern(bytes, pages);
    out.fill(data);
    auto entry = TestDriver::io_entry(IoOpcode::kWrite, 3, count);
    out.set_prps(entry);
    ASSERT_EQ(run(entry), kSuccess);
    ASSERT_EQ(media_bytes(3 * lba_bytes(), bytes), data);
    std::memcpy(base(), before.data(), before.size());
  }
}

TEST_P(IoCommands, lists_may_go_over_several_pages) {
  VirtualSsdConfig config = this->config();
  config.mdts = 0;
  TestDriver driver(config, media_.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 4);
  // All of the media in one command: 1025 pages and a list that starts at its page's end.
  PrpBuffer in(memory_, 4, kIoMediaBytes, 511);
  ASSERT_GE(in.list_pages().size(), 3u);
  auto entry = TestDriver::io_entry(IoOpcode::kRead, 0, static_cast<uint32_t>(lba_count()));
  in.set_prps(entry);
  EXPECT_EQ(driver.run(queue, entry), kSuccess);
  EXPECT_EQ(in.collect(), media_bytes(0, kIoMediaBytes));
}

TEST_P(IoCommands, prps_are_checked) {
  const uint32_t count = 65 * 4096 / lba_bytes();
  const auto read = [&](auto spoil) {
    PrpBuffer buffer(memory_, 0, 65 * 4096, 500);
    auto entry = TestDriver::io_entry(IoOpcode::kRead, 0, count);
    buffer.set_prps(entry);
    spoil(entry, buffer.list_pages());
    return run(entry);
  };
  using Lists = std::vector<uint64_t*>;
  EXPECT_EQ(read([](auto&, Lists&) {}), kSuccess);
  EXPECT_EQ(read([](auto& e, Lists&) { e.prp1 += 2; }), kInvalidPrpOffset);
  EXPECT_EQ(read([](auto& e, Lists&) { e.prp1 = 0; }), kDataTransferError);
  EXPECT_EQ(read([](auto& e, Lists&) { e.prp2 += 4; }), kInvalidPrpOffset);
  EXPECT_EQ(read([](auto& e, Lists&) { e.prp2 = 0; }), kDataTransferError);
  EXPECT_EQ(read([](auto&, Lists& lists) { lists[0][500] += 4; }), kInvalidPrpOffset);
  EXPECT_EQ(read([](auto&, Lists& lists) { lists[0][501] = 0; }), kDataTransferError);
  EXPECT_EQ(read([](auto&, Lists& lists) { lists[0][511] += 8; }), kInvalidPrpOffset);
  EXPECT_EQ(read([](auto&, Lists& lists) { lists[0][511] = 0; }), kDataTransferError);
  EXPECT_EQ(read([](auto&, Lists& lists) { lists[1][7] += 512; }), kInvalidPrpOffset);
  // Two pages: the second is page-aligned.
  uint8_t* const data = memory_.bytes(3 * 4096);
  const uint32_t two = 8192 / lba_bytes();
  EXPECT_EQ(run(TestDriver::io_entry(IoOpcode::kRead, 0, two, data, data + 4096 + 8)),
            kInvalidPrpOffset);
  EXPECT_EQ(run(TestDriver::io_entry(IoOpcode::kRead, 0, two, data, nullptr)), kDataTransferError);
  // One page: the second entry means nothing.
  EXPECT_EQ(run(TestDriver::io_entry(IoOpcode::kRead, 0, 1, data, data + 5)), kSuccess);
}

TEST_P(IoCommands, write_zeroes) {
  std::vector<uint8_t> expected = media_bytes(0, kIoMediaBytes);
  const uint32_t count = 3;
  EXPECT_EQ(run(TestDriver::io_entry(IoOpcode::kWriteZeroes, 5, count)), kSuccess);
  std::fill_n(expected.begin() + 5 * lba_bytes(), count * lba_bytes(), uint8_t{0});
  EXPECT_EQ(media_bytes(0, kIoMediaBytes), expected);
}

TEST_P(IoCommands, deallocated_blocks_read_zeros) {
  std::vector<uint8_t> expected = media_bytes(0, kIoMediaBytes);
  for (const uint32_t offset : {0u, 4092u, 4096u - 24u, 100u}) {
    PrpBuffer ranges(memory_, offset, 256 * sizeof(DatasetRange));
    std::vector<uint8_t> bytes(256 * sizeof(DatasetRange));
    for (uint32_t i = 0; i < 256; ++i) {
      const DatasetRange range{0, i % 2, (i * 7 + offset) % lba_count()};
      std::memcpy(bytes.data() + i * sizeof(range), &range, sizeof(range));
      std::fill_n(expected.begin() + static_cast<ptrdiff_t>(range.lba * lba_bytes()),
                  range.lba_count * lba_bytes(), uint8_t{0});
    }
    ranges.fill(bytes);
    auto entry = TestDriver::io_entry(IoOpcode::kDatasetManagement);
    entry.cdw10 = 255;
    entry.cdw11 = kDeallocate;
    entry.cdw12 = 0;
    ranges.set_prps(entry);
    EXPECT_EQ(run(entry), kSuccess);
    ASSERT_EQ(media_bytes(0, kIoMediaBytes), expected) << offset;
  }
}

TEST_P(IoCommands, dataset_management_checks_all_ranges_first) {
  const std::vector<uint8_t> before = media_bytes(0, kIoMediaBytes);
  auto* const ranges = reinterpret_cast<DatasetRange*>(memory_.bytes(4096));
  ranges[0] = {0, 4, 0};
  ranges[1] = {0, 2, lba_count() - 1};
  auto entry = TestDriver::io_entry(IoOpcode::kDatasetManagement, 0, 1, ranges);
  entry.cdw10 = 1;
  entry.cdw11 = kDeallocate;
  EXPECT_EQ(run(entry), kLbaOutOfRange);
  EXPECT_EQ(media_bytes(0, kIoMediaBytes), before);
  // Only a hint: nothing happens.
  entry.cdw11 = 1;
  EXPECT_EQ(run(entry), kSuccess);
  EXPECT_EQ(media_bytes(0, kIoMediaBytes), before);
  entry.cdw11 = kDeallocate;
  entry.prp1 += 2;
  EXPECT_EQ(run(entry), kInvalidPrpOffset);
  entry.prp1 = address_of(ranges) + 4092;
  entry.prp2 = 0;
  EXPECT_EQ(run(entry), kDataTransferError);
}

TEST_P(IoCommands, flush_and_fua_ask_for_durability) {
  uint8_t* const data = memory_.bytes(4096);
  const auto flushes = [&] {
    return read_counters(driver_.memory().space(), driver_.ref()).flush_requests;
  };
  run(TestDriver::io_entry(IoOpcode::kWrite, 0, 1, data));
  run(TestDriver::io_entry(IoOpcode::kRead, 0, 1, data));
  EXPECT_EQ(flushes(), 0u);
  run(TestDriver::io_entry(IoOpcode::kFlush));
  EXPECT_EQ(flushes(), 1u);
  auto forced = TestDriver::io_entry(IoOpcode::kWrite, 0, 1, data);
  forced.cdw12 |= kForceUnitAccess;
  EXPECT_EQ(run(forced), kSuccess);
  EXPECT_EQ(flushes(), 2u);
}

TEST_P(IoCommands, read_only_media_refuses_writes) {
  Media media = media_.media();
  media.read_only = true;
  TestDriver driver(config(), media);
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 4);
  const std::vector<uint8_t> before = media_bytes(0, kIoMediaBytes);
  uint8_t* const data = memory_.bytes(4096);
  for (const auto opcode :
       {IoOpcode::kWrite, IoOpcode::kWriteZeroes, IoOpcode::kDatasetManagement}) {
    auto entry = TestDriver::io_entry(opcode, 0, 1, data);
    if (opcode == IoOpcode::kDatasetManagement) entry.cdw11 = kDeallocate;
    EXPECT_EQ(driver.run(queue, entry), kNamespaceWriteProtected);
  }
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kFlush)), kSuccess);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kRead, 0, 1, data)), kSuccess);
  EXPECT_EQ(media_bytes(0, kIoMediaBytes), before);
}

// Commands that a warp takes together, of different kinds and sizes, one of them failing.
class MixedCommands : public IoCommands {
 protected:
  void carry_out_together(uint32_t width);
};
INSTANTIATE_TEST_SUITE_P(LbaShift, MixedCommands, ::testing::Values(9u, 12u));

void MixedCommands::carry_out_together(uint32_t width) {
  const std::vector<uint8_t> before = media_bytes(0, kIoMediaBytes);
  PrpBuffer large(memory_, 2048, 70 * 4096, 511);
  PrpBuffer broken(memory_, 0, 5 * 4096);
  broken.list_pages()[0][3] += 8;
  PrpBuffer out(memory_, 100, 4096);
  const std::vector<uint8_t> data = pattern(4096, 5);
  out.fill(data);
  const auto entry = [&](IoOpcode opcode, uint64_t block, uint32_t blocks, const PrpBuffer* buffer,
                         uint16_t cid) {
    const uint32_t per_block = 4096 / lba_bytes();
    auto made = TestDriver::io_entry(opcode, block * per_block, blocks * per_block);
    if (buffer != nullptr) buffer->set_prps(made);
    made.cid = cid;
    return made;
  };
  TestDriver::put(queue_, entry(IoOpcode::kRead, 1, 70, &large, 0));
  TestDriver::put(queue_, entry(IoOpcode::kWrite, 100, 1, &out, 1));
  TestDriver::put(queue_, entry(IoOpcode::kRead, 0, 5, &broken, 2));
  TestDriver::put(queue_, entry(IoOpcode::kWriteZeroes, 110, 3, nullptr, 3));
  driver_.ring(queue_);
  testing::run_teams(1, width, [&](const simt::Warp& warp, uint32_t) {
    for (uint32_t taken = 0; taken < 4; taken += width) driver_.step(warp, 1);
  });
  Status status[4] = {1, 1, 1, 1};
  for (int i = 0; i < 4; ++i) {
    const auto done = TestDriver::take(queue_);
    ASSERT_TRUE(done) << i;
    ASSERT_LT(done->cid, 4);
    status[done->cid] = TestDriver::status_of(*done);
  }
  EXPECT_EQ(status[0], kSuccess);
  EXPECT_EQ(status[1], kSuccess);
  EXPECT_EQ(status[2], kInvalidPrpOffset);
  EXPECT_EQ(status[3], kSuccess);
  EXPECT_EQ(large.collect(),
            std::vector<uint8_t>(before.begin() + 4096, before.begin() + 71 * 4096));
  EXPECT_EQ(media_bytes(100 * 4096, 4096), data);
  EXPECT_EQ(media_bytes(110 * 4096, 3 * 4096), std::vector<uint8_t>(3 * 4096, 0));
}

TEST_P(MixedCommands, by_a_team_of_3) { carry_out_together(3); }
TEST_P(MixedCommands, by_a_team_of_4) { carry_out_together(4); }
TEST_P(MixedCommands, by_a_team_of_13) { carry_out_together(13); }

struct RandomCase {
  const char* name;
  uint32_t lba_shift;
  uint32_t width;
  bool sparse;
  const char* model;
};

class RandomCommands : public ::testing::TestWithParam<RandomCase> {};

INSTANTIATE_TEST_SUITE_P(Cases, RandomCommands,
                         ::testing::Values(RandomCase{"Direct512", 9, 1, false, "none"},
                                           RandomCase{"Direct4096", 12, 1, false, "none"},
                                           RandomCase{"DirectTeam", 9, 4, false, "none"},
                                           RandomCase{"Sparse", 9, 1, true, "none"},
                                           RandomCase{"SparseTeam", 9, 4, true, "none"},
                                           RandomCase{"Timed", 9, 1, false, "990pro"}),
                         [](const auto& test) { return std::string(test.param.name); });

// Up to a queue full of commands to ranges that do not overlap, in random order and shape, compared
// with an array of bytes.
TEST_P(RandomCommands, agree_with_an_array_of_bytes) {
  const RandomCase& parameter = GetParam();
  const char* const from_environment = std::getenv("GOFS_SEED");
  const uint32_t seed = from_environment != nullptr
                            ? static_cast<uint32_t>(std::strtoul(from_environment, nullptr, 0))
                            : std::random_device{}();
  SCOPED_TRACE("rerun: GOFS_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };

  constexpr uint64_t kBytes = 5 * kChunkBytes / 2;
  TestMemory memory;
  MemoryMedia plain(memory.space(), kBytes);
  SparseMedia sparse(memory.space(), kBytes);
  // One a chunk, and for each lane that meets others at a hole one to hold for a moment.
  for (uint32_t i = 0; i < 3 + parameter.width; ++i) sparse.add_spare(memory.bytes(kChunkBytes));
  std::vector<uint8_t> model(kBytes, 0);

  VirtualSsdConfig config;
  config.lba_shift = parameter.lba_shift;
  config.model = parse_timing_model(parameter.model);
  config.virtual_clock = !config.model.is_none();
  config.queue_pairs_max = 1;
  TestDriver driver(config, parameter.sparse ? sparse.media() : plain.media());
  driver.enable_ready();
  constexpr uint32_t kDepth = 11;
  TestQueue queue = driver.create_pair(1, kDepth);
  const uint32_t lba_bytes = 1u << parameter.lba_shift;
  const auto lba_count = static_cast<uint32_t>(kBytes / lba_bytes);
  const uint32_t slice = lba_count / (kDepth - 1);

  for (uint32_t round = 0; round < 60; ++round) {
    struct Issued {
      std::unique_ptr<PrpBuffer> buffer;
      IoOpcode opcode;
      uint64_t offset;
      uint64_t bytes;
    };
    TestMemory buffers;
    std::vector<Issued> issued;
    const uint32_t count = 1 + below(kDepth - 1);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t first = i * slice + below(slice);
      const uint32_t most = std::min((i + 1) * slice - first, 70 * 4096 / lba_bytes);
      const uint32_t blocks = 1 + below(most);
      const uint32_t bytes = blocks * lba_bytes;
      constexpr IoOpcode kOpcodes[] = {IoOpcode::kRead,        IoOpcode::kWrite,
                                       IoOpcode::kRead,        IoOpcode::kWrite,
                                       IoOpcode::kWriteZeroes, IoOpcode::kDatasetManagement};
      const IoOpcode opcode = kOpcodes[below(6)];
      auto entry = TestDriver::io_entry(opcode, first, blocks);
      entry.cid = static_cast<uint16_t>(i);
      Issued command{nullptr, opcode, uint64_t{first} * lba_bytes, bytes};
      const auto model_at = model.begin() + static_cast<ptrdiff_t>(command.offset);
      if (opcode == IoOpcode::kRead || opcode == IoOpcode::kWrite) {
        command.buffer = std::make_unique<PrpBuffer>(buffers, below(1024) * 4, bytes, below(512));
        command.buffer->set_prps(entry);
      }
      if (opcode == IoOpcode::kWrite) {
        const std::vector<uint8_t> data = pattern(bytes, static_cast<uint32_t>(random()));
        command.buffer->fill(data);
        std::copy(data.begin(), data.end(), model_at);
      } else if (opcode != IoOpcode::kRead) {
        std::fill_n(model_at, bytes, uint8_t{0});
      }
      if (opcode == IoOpcode::kDatasetManagement) {
        const DatasetRange range{0, blocks, first};
        command.buffer = std::make_unique<PrpBuffer>(buffers, below(1024) * 4, sizeof(range));
        std::vector<uint8_t> bytes_of(sizeof(range));
        std::memcpy(bytes_of.data(), &range, sizeof(range));
        command.buffer->fill(bytes_of);
        command.buffer->set_prps(entry);
        entry.cdw10 = 0;
        entry.cdw11 = kDeallocate;
        entry.cdw12 = 0;
      }
      TestDriver::put(queue, entry);
      issued.push_back(std::move(command));
    }
    driver.ring(queue);
    const auto step = [&](const simt::Warp& warp, uint32_t) {
      for (uint32_t i = 0; i < 200; ++i) driver.step(warp, 1);
    };
    if (parameter.width == 1) {
      step(simt::Warp(), 0);
    } else {
      testing::run_teams(2, parameter.width, [&](const simt::Warp& warp, uint32_t) {
        for (uint32_t i = 0; i < 12; ++i) driver.step(warp, 1);
      });
    }
    for (uint32_t i = 0; i < count; ++i) {
      const auto done = TestDriver::take(queue);
      ASSERT_TRUE(done) << round << " " << i;
      ASSERT_EQ(TestDriver::status_of(*done), kSuccess);
      driver.ring_completion(queue);
      ASSERT_LT(done->cid, count);
      Issued& command = issued[done->cid];
      ASSERT_NE(command.bytes, 0u) << "completed twice";
      if (command.opcode == IoOpcode::kRead) {
        const auto model_at = model.begin() + static_cast<ptrdiff_t>(command.offset);
        ASSERT_TRUE(
            command.buffer->collect() ==
            std::vector<uint8_t>(model_at, model_at + static_cast<ptrdiff_t>(command.bytes)));
      }
      if (command.buffer != nullptr) {
        ASSERT_TRUE(command.buffer->guards_intact());
      }
      command.bytes = 0;
    }
  }
}

}  // namespace
}  // namespace gofs::ssd
