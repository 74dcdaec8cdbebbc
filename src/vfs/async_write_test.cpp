// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous writes: files hold what was written as soon as it was waited for and what was there
// before until then, also after a crash; what fails, is never waited for or finds no room changes
// nothing. Beside readers, checkpoints, cleaning and other writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "f2fs/cleaning_for_test.hpp"
#include "f2fs/recover_files.h"
#include "f2fs/writing_for_test.hpp"
#include "vfs/async.h"
#include "vfs/fallocate.h"
#include "vfs/metadata.h"
#include "vfs/open.h"
#include "vfs/remove_file.h"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint64_t kTicketBytes = uint64_t{f2fs::kHeldBlocks} * kBlockBytes;
/// For who waits in vain.
constexpr uint64_t kSoonNs = 30'000'000;

VolumeRigOptions logging_with_faults() {
  VolumeRigOptions options;
  options.ssd.fault_capacity = 1;
  options.ssd.logged_commands = 1 << 14;
  options.ssd.logged_bytes = 64 << 20;
  return options;
}

class AsyncWriteTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  AsyncWriteTest()
      : image_([](image::ImageBuilder& builder) {
          const auto add = [&](const char* name, uint16_t mode, bool inlined, uint64_t bytes) {
            image::FileSpec spec;
            spec.name = name;
            spec.attributes = {.mode = mode, .uid = 7, .gid = 70};
            spec.inline_data = inlined;
            spec.size_bytes = bytes;
            TestImage::must(builder.add_file(builder.root(), spec));
          };
          add("blocks", 0666, false, 0);
          add("inline", 0666, true, 5);
          add("other", 0666, false, 0);
          add("powers", 06777, false, 10);
        }) {
    begin();
  }
  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return writing_->rig().fs(); }
  f2fs::Volume& volume() { return fs().volume; }
  f2fs::Writer& writer() { return *fs().writer; }
  void begin() {
    writing_ = std::make_unique<f2fs::WritingRig>(image_, width(), options_, wanted_);
    ASSERT_EQ(writing_->begin().error, 0);
    fs().writer = &writing_->writer();
  }
  void mount_again() {
    ASSERT_EQ(writing_->checkpoint(true), 0);
    writing_.reset();
    EXPECT_TRUE(f2fs::fsck_likes(image_));
    begin();
  }
  void checkpoint() { ASSERT_EQ(writing_->checkpoint(false), 0); }
  template <typename Body>
  int64_t alone(Body body) {
    int64_t answer = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int64_t mine = body(warp);
      if (warp.thread_rank() == 0) answer = mine;
    });
    return answer;
  }
  int open_file(const char* path, uint32_t flags) {
    const int64_t fd =
        alone([&](const simt::Warp& warp) { return open(warp, fs(), path, flags, 0666); });
    EXPECT_GE(fd, 0) << path;
    return static_cast<int>(fd);
  }
  void close_ok(int fd) {
    EXPECT_EQ(alone([&](const simt::Warp& warp) { return close(warp, fs(), fd); }), 0);
  }
  /// `bytes` is to stay until the ticket was waited for.
  Ticket start_write(int fd, const std::string& bytes, uint64_t offset) {
    Ticket ticket{};
    run_alone(width(), [&](const simt::Warp& warp) {
      const Ticket mine = pwrite_async(warp, fs(), fd, bytes.data(), bytes.size(), offset);
      if (warp.thread_rank() == 0) ticket = mine;
    });
    return ticket;
  }
  int64_t wait_for(const Ticket& ticket) {
    return alone([&](const simt::Warp& warp) { return wait(warp, fs(), ticket); });
  }
  int64_t write_now(int fd, const std::string& bytes, uint64_t offset) {
    return alone([&](const simt::Warp& warp) {
      return pwrite(warp, fs(), fd, bytes.data(), bytes.size(), offset);
    });
  }
  int64_t read_now(int fd, std::string& bytes, uint64_t offset) {
    return alone([&](const simt::Warp& warp) {
      return pread(warp, fs(), fd, bytes.data(), bytes.size(), offset);
    });
  }
  std::string contents_of(const char* path) {
    const int fd = open_file(path, kOpenReadOnly);
    std::string bytes(size_of(path) + 1, '\0');
    const int64_t got = read_now(fd, bytes, 0);
    EXPECT_GE(got, 0);
    bytes.resize(static_cast<size_t>(std::max<int64_t>(got, 0)));
    close_ok(fd);
    return bytes;
  }
  Stat stat_of(const char* path) {
    Stat got{};
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                Stat mine{};
                const int error = stat(warp, fs(), path, LastLink::kKeep, mine);
                if (warp.thread_rank() == 0) got = mine;
                return error;
              }),
              0);
    return got;
  }
  uint64_t size_of(const char* path) { return stat_of(path).size_bytes; }
  /// What is counted as used on the volume: now, and as its segments have it.
  std::pair<uint64_t, uint64_t> used() {
    return {volume().valid_block_count, writing_->valid_blocks()};
  }
  void expect_nothing_held() {
    EXPECT_EQ(writer().promised_blocks, 0u);
    for (uint32_t i = 0; i < writer().held_count; ++i) {
      EXPECT_EQ(writer().held[i].taken, 0u) << i;
      EXPECT_EQ(writer().held[i].count, 0u) << i;
    }
    for (uint32_t i = 0; i < fs().operation_count; ++i) EXPECT_EQ(fs().operations[i].taken, 0u);
    EXPECT_EQ(writer().reserved, 0u);
    EXPECT_EQ(f2fs::count_findings(*volume().corruptions), 0u);
    checkpoint();  // nodes that are new have no blocks before
    EXPECT_EQ(volume().valid_block_count, writing_->valid_blocks());
  }
  /// What the image that a crash would leave now holds, mounted for reading.
  std::string after_crash(const char* path) {
    TestImage left(image_);
    EXPECT_TRUE(f2fs::fsck_likes(left));
    f2fs::WritingRig rig(left, width());
    std::string bytes(4 * kTicketBytes, '\0');
    EXPECT_EQ(rig.begin().error, 0);
    rig.rig().fs().writer = &rig.writer();
    const int64_t got = alone([&](const simt::Warp& warp) -> int64_t {
      const int64_t recovered = f2fs::recover_files(warp, rig.volume(), rig.writer());
      if (recovered < 0) return recovered;
      const int fd = open(warp, rig.rig().fs(), path, kOpenReadOnly);
      return pread(warp, rig.rig().fs(), fd, bytes.data(), bytes.size(), 0);
    });
    EXPECT_GE(got, 0) << path;
    EXPECT_EQ(rig.checkpoint(true), 0);
    EXPECT_TRUE(f2fs::fsck_likes(left));
    bytes.resize(static_cast<size_t>(std::max<int64_t>(got, 0)));
    return bytes;
  }

  VolumeRigOptions options_ = logging_with_faults();
  f2fs::WriterOptions wanted_{0, true};
  TestImage image_;
  std::unique_ptr<f2fs::WritingRig> writing_;
};
GOFS_AT_BOTH_WIDTHS(AsyncWriteTest);

TEST_P(AsyncWriteTest, files_hold_what_was_waited_for) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  for (const char* path : {"/inline", "/blocks"}) {
    std::string model = contents_of(path);
    const int fd = open_file(path, kOpenReadWrite);
    for (uint32_t step = 0; step < 60; ++step) {
      // Of all alignments, one in three such that all of it can be left under way.
      const uint64_t unit = step % 3 == 0 ? kBlockBytes : 1 + random() % 2 * 511;
      const uint64_t offset = step % 4 == 1 ? model.size() : random() % 1000'000 / unit * unit;
      const uint64_t bytes = (1 + random() % (step % 10 == 0 ? 700'000 : 60'000)) / unit * unit;
      const std::string spaced(bytes + 8, static_cast<char>('A' + step % 50));
      const std::string source = spaced.substr(0, bytes);
      const uint64_t skew = step % 5 == 4 ? 1 : 0;  // a source that nothing can be taken from
      const Ticket ticket = [&] {
        Ticket its{};
        run_alone(width(), [&](const simt::Warp& warp) {
          const Ticket mine = pwrite_async(warp, fs(), fd, spaced.data() + skew, bytes, offset);
          if (warp.thread_rank() == 0) its = mine;
        });
        return its;
      }();
      if (unit == kBlockBytes && offset % kBlockBytes == 0 && skew == 0 && bytes != 0) {
        EXPECT_NE(ticket.operation, Ticket::kNoOperation) << step;
      }
      EXPECT_EQ(wait_for(ticket), static_cast<int64_t>(bytes)) << step;
      if (bytes != 0 && model.size() < offset + bytes) model.resize(offset + bytes);
      if (bytes != 0) model.replace(offset, bytes, source);
      if (step % 10 == 9) {
        EXPECT_TRUE(contents_of(path) == model) << path << ' ' << step;
      }
      if (step % 20 == 19) checkpoint();
    }
    close_ok(fd);
    EXPECT_TRUE(contents_of(path) == model) << path;
    expect_nothing_held();
    mount_again();
    EXPECT_TRUE(contents_of(path) == model) << path;
  }
}

TEST_P(AsyncWriteTest, until_then_the_file_is_as_it_was_also_after_a_crash) {
  GOFS_NEED_TOOL("fsck.f2fs");
  const int fd = open_file("/blocks", kOpenReadWrite);
  const std::string old(40 * kBlockBytes, 'o');
  ASSERT_EQ(write_now(fd, old, 0), static_cast<int64_t>(old.size()));
  checkpoint();
  const auto before = used();
  const std::string bytes(48 * kBlockBytes, 'n');
  const Ticket ticket = start_write(fd, bytes, 20 * kBlockBytes);
  ASSERT_EQ(ticket.result, static_cast<int64_t>(bytes.size()));
  ASSERT_NE(ticket.operation, Ticket::kNoOperation);
  EXPECT_EQ(size_of("/blocks"), old.size());
  EXPECT_EQ(writer().promised_blocks, 28u);
  EXPECT_EQ(volume().valid_block_count, before.first + 28) << "there is room for them";
  EXPECT_EQ(writing_->valid_blocks(), before.second);
  for (uint32_t turn = 0; turn < 3; ++turn) {
    checkpoint();
    EXPECT_TRUE(after_crash("/blocks") == old) << turn;
  }
  EXPECT_EQ(wait_for(ticket), static_cast<int64_t>(bytes.size()));
  const std::string both = old.substr(0, 20 * kBlockBytes) + bytes;
  EXPECT_TRUE(contents_of("/blocks") == both);
  EXPECT_TRUE(after_crash("/blocks") == old) << "no checkpoint has it yet";
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return fsync(warp, fs(), fd); }), 0);
  EXPECT_TRUE(after_crash("/blocks") == both) << "but fsync does";
  checkpoint();
  EXPECT_TRUE(after_crash("/blocks") == both);
  expect_nothing_held();
}

// At every moment a crash leaves a volume that fsck.f2fs likes, and a file that is wholly the old
// or the new one.
TEST_P(AsyncWriteTest, a_power_cut_leaves_old_or_new_contents) {
  GOFS_NEED_TOOL("fsck.f2fs");
  const std::string old(12 * kBlockBytes, 'o');
  const std::string fresh(12 * kBlockBytes, 'n');
  const int fd = open_file("/blocks", kOpenReadWrite);
  ASSERT_EQ(write_now(fd, old, 0), static_cast<int64_t>(old.size()));
  mount_again();
  const TestImage before(image_);
  begin();  // with a new log
  const int again = open_file("/blocks", kOpenReadWrite);
  const Ticket ticket = start_write(again, fresh, 0);
  checkpoint();
  EXPECT_EQ(write_now(open_file("/other", kOpenWriteOnly), old, 0),
            static_cast<int64_t>(old.size()));
  checkpoint();
  EXPECT_EQ(wait_for(ticket), static_cast<int64_t>(fresh.size()));
  const auto trace = [&] {
    return ssd::read_trace(writing_->rig().arena().space(), writing_->rig().controller());
  };
  const uint32_t entered = trace().events;
  checkpoint();
  const ssd::WriteTrace log = trace();
  ASSERT_GT(entered, 0u);
  std::mt19937 random(5);
  TestImage left(before);
  uint32_t old_ones = 0;
  for (uint32_t event = 0; event <= log.events; ++event) {
    ssd::PowerCut(log, event).apply({left.data(), left.bytes()}, 512, [&](uint32_t, uint64_t) {
      return random() % 2 == 0;
    });
    {
      VolumeRig reading(left);
      reading.mount_ready(width());
      std::string bytes(old.size() + 1, '\0');
      const int64_t got = alone([&](const simt::Warp& warp) {
        const int its = open(warp, reading.fs(), "/blocks", kOpenReadOnly);
        return pread(warp, reading.fs(), its, bytes.data(), bytes.size(), 0);
      });
      EXPECT_EQ(got, static_cast<int64_t>(old.size()));
      bytes.resize(old.size());
      const bool is_old = bytes == old;
      EXPECT_TRUE(is_old || bytes == fresh) << event;
      EXPECT_TRUE(is_old || event > entered) << event;
      old_ones += is_old ? 1 : 0;
    }
    if (event % 7 == 0) {
      EXPECT_TRUE(f2fs::fsck_likes(left, true)) << event;
    }
    f2fs::put_back(left, before, log);
  }
  EXPECT_GT(old_ones, entered / 2);
  EXPECT_LE(old_ones, log.events) << "the last state has it";
}

TEST_P(AsyncWriteTest, a_command_that_fails_changes_nothing) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  const std::string old(300 * kBlockBytes, 'o');
  ASSERT_EQ(write_now(fd, old, 0), static_cast<int64_t>(old.size()));
  checkpoint();
  const auto before = used();
  ssd::FaultRule rule;
  rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
  rule.status = format::nvme::kWriteFault;
  for (const uint64_t skip : {0, 1, 3}) {
    const std::string bytes(20 * kBlockBytes, 'n');
    const uint64_t offset = skip % 2 == 0 ? 7 * kBlockBytes : 295 * kBlockBytes;
    rule.skip = skip * 4 / width();
    rule.count = 1;
    writing_->rig().add_fault(rule);
    const Ticket ticket = start_write(fd, bytes, offset);
    EXPECT_EQ(wait_for(ticket), -EIO) << skip;
    writing_->rig().clear_faults();
    EXPECT_EQ(wait_for(ticket), -EINVAL) << skip;
    EXPECT_EQ(size_of("/blocks"), old.size());
    EXPECT_EQ(used(), before);
    EXPECT_TRUE(contents_of("/blocks") == old) << skip;
    EXPECT_EQ(wait_for(start_write(fd, old.substr(0, bytes.size()), 0)),
              static_cast<int64_t>(bytes.size()));
    expect_nothing_held();
  }
  mount_again();
  EXPECT_TRUE(contents_of("/blocks") == old);
}

TEST_P(AsyncWriteTest, a_device_that_fails_takes_the_write_with_it_and_lets_the_range_go) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  const std::string bytes(20 * kBlockBytes, 'n');
  ASSERT_EQ(write_now(fd, bytes, 0), static_cast<int64_t>(bytes.size()));
  ssd::FaultRule rule;
  rule.action = ssd::FaultAction::kFatal;
  writing_->rig().device().limits.command_timeout_ns = 50'000'000;
  writing_->rig().device().limits.admin_timeout_ns = 50'000'000;
  writing_->rig().add_fault(rule);
  const Ticket ticket = start_write(fd, bytes, 0);
  EXPECT_EQ(wait_for(ticket), -EIO);
  EXPECT_EQ(wait_for(ticket), -EINVAL);
  const OpenInode& open = fs().open_inodes[fs().descriptors[fd].open_inode];
  EXPECT_EQ(open.lock.holder_counts, 0u);
  EXPECT_EQ(open.lock.detached_count, 0u);
  EXPECT_EQ(open.references, 1u);
  const Ticket later = start_write(fd, bytes, 0);
  EXPECT_EQ(later.result, -EIO);
  EXPECT_EQ(later.operation, Ticket::kNoOperation);
  EXPECT_EQ(open.lock.holder_counts, 0u);
  EXPECT_EQ(open.references, 1u);
}

TEST_P(AsyncWriteTest, what_is_not_waited_for_has_not_happened) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  const std::string old(10 * kBlockBytes, 'o');
  ASSERT_EQ(write_now(fd, old, 0), static_cast<int64_t>(old.size()));
  const std::string bytes(20 * kBlockBytes, 'n');
  ASSERT_GT(start_write(fd, bytes, 0).result, 0);
  mount_again();
  EXPECT_TRUE(contents_of("/blocks") == old);
  EXPECT_EQ(used().first, used().second);
  expect_nothing_held();
}

TEST_P(AsyncWriteTest, its_range_waits_and_nothing_else) {
  fs().lock_timeout_ns = kSoonNs;
  const int fd = open_file("/blocks", kOpenReadWrite);
  const std::string old(100 * kBlockBytes, 'o');
  ASSERT_EQ(write_now(fd, old, 0), static_cast<int64_t>(old.size()));
  const std::string bytes(10 * kBlockBytes, 'n');
  const Ticket ticket = start_write(fd, bytes, 10 * kBlockBytes);
  std::string read(kBlockBytes, '\0');
  EXPECT_EQ(read_now(fd, read, 19 * kBlockBytes), -ETIMEDOUT);
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              return pread_lanes(warp, fs(), {fd, read.data(), 1, 12 * kBlockBytes});
            }),
            -ETIMEDOUT);
  EXPECT_EQ(write_now(fd, "x", 10 * kBlockBytes), -ETIMEDOUT);
  EXPECT_EQ(start_write(fd, bytes, 11 * kBlockBytes).result, -ETIMEDOUT);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd, 5); }),
            -ETIMEDOUT);
  // More of them than the ring has entries.
  for (uint32_t i = 0; i < 2 * kRangeRingEntries; ++i) {
    ASSERT_EQ(read_now(fd, read, 9 * kBlockBytes), static_cast<int64_t>(kBlockBytes));
    ASSERT_EQ(write_now(fd, "y", 20 * kBlockBytes), 1);
  }
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              return pread_lanes(warp, fs(), {fd, read.data(), 1, 21 * kBlockBytes});
            }),
            1);
  EXPECT_EQ(wait_for(ticket), static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(read_now(fd, read, 19 * kBlockBytes), static_cast<int64_t>(kBlockBytes));
  EXPECT_EQ(read, std::string(kBlockBytes, 'n'));
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd, 5); }), 0);
  EXPECT_EQ(contents_of("/blocks"), "ooooo");
  expect_nothing_held();
}

TEST_P(AsyncWriteTest, appending_grows_the_file_when_it_is_waited_for) {
  fs().lock_timeout_ns = kSoonNs;
  const int fd = open_file("/other", kOpenWriteOnly | kOpenAppend);
  std::string model;
  for (uint32_t turn = 0; turn < 4; ++turn) {
    const std::string bytes((5 + 60 * turn) * kBlockBytes, static_cast<char>('a' + turn));
    const Ticket ticket = start_write(fd, bytes, 12'345);
    EXPECT_NE(ticket.operation, Ticket::kNoOperation);
    EXPECT_EQ(size_of("/other"), model.size());
    EXPECT_EQ(start_write(fd, bytes, 0).result, -ETIMEDOUT) << "one after the other";
    EXPECT_EQ(wait_for(ticket), static_cast<int64_t>(bytes.size()));
    model += bytes;
    EXPECT_EQ(size_of("/other"), model.size());
  }
  // From an end that is no block's, all of it at once.
  EXPECT_EQ(wait_for(start_write(fd, "end", 0)), 3);
  const std::string more(3 * kBlockBytes, 'm');
  EXPECT_EQ(wait_for(start_write(fd, more, 0)), static_cast<int64_t>(more.size()));
  model += "end" + more;
  // Far behind the end.
  const int beyond = open_file("/other", kOpenWriteOnly);
  const uint64_t offset = simt::align_up(model.size(), uint64_t{kBlockBytes}) + 5 * kBlockBytes;
  EXPECT_EQ(wait_for(start_write(beyond, more, offset)), static_cast<int64_t>(more.size()));
  model.resize(offset);
  model += more;
  EXPECT_TRUE(contents_of("/other") == model);
  mount_again();
  EXPECT_TRUE(contents_of("/other") == model);
}

TEST_P(AsyncWriteTest, many_tickets_of_one_file_and_no_more_than_there_is_room_for) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  constexpr uint32_t kMany = kDetachedRanges;
  const std::string old(2 * (kMany + 1) * kBlockBytes, 'o');
  ASSERT_EQ(write_now(fd, old, 0), static_cast<int64_t>(old.size()));
  std::string model = old;
  std::vector<std::string> sources;
  for (uint32_t i = 0; i <= kMany; ++i) {
    sources.emplace_back(2 * kBlockBytes, static_cast<char>('A' + i % 26));
  }
  std::vector<Ticket> tickets(kMany);
  run_alone(width(), [&](const simt::Warp& warp) {
    for (uint32_t i = 0; i < kMany - 1; ++i) {
      const Ticket its = pwrite_async(warp, fs(), fd, sources[i].data(), 2 * kBlockBytes,
                                      uint64_t{i} * 2 * kBlockBytes);
      EXPECT_EQ(its.result, 2 * kBlockBytes);
      if (warp.thread_rank() == 0) tickets[i] = its;
    }
    warp.sync();
    // The operations of all files: small_tables() has 64.
    const Ticket last = pwrite_async(warp, fs(), fd, sources[kMany].data(), 2 * kBlockBytes,
                                     2 * kMany * kBlockBytes);
    EXPECT_EQ(last.result, 2 * kBlockBytes);
    const Ticket refused =
        pwrite_async(warp, fs(), fd, sources[0].data(), kBlockBytes, (2 * kMany - 1) * kBlockBytes);
    EXPECT_EQ(refused.result, -EAGAIN);
    EXPECT_TRUE(poll(warp, fs(), refused));
    EXPECT_EQ(wait(warp, fs(), refused), -EAGAIN);
    EXPECT_EQ(wait(warp, fs(), last), 2 * kBlockBytes);
    EXPECT_EQ(wait(warp, fs(), last), -EINVAL);
    EXPECT_TRUE(poll(warp, fs(), last));
    for (uint32_t i = kMany - 1; i-- != 0;) {  // the last one first
      while (!poll(warp, fs(), tickets[i])) simt::Backoff().pause();
      EXPECT_EQ(wait(warp, fs(), tickets[i]), 2 * kBlockBytes);
    }
  });
  for (uint32_t i = 0; i <= kMany; ++i) {
    if (i != kMany - 1) model.replace(i * 2 * kBlockBytes, 2 * kBlockBytes, sources[i]);
  }
  EXPECT_TRUE(contents_of("/blocks") == model);
  expect_nothing_held();
  mount_again();
  EXPECT_TRUE(contents_of("/blocks") == model);
}

TEST_P(AsyncWriteTest, where_there_is_no_room_for_more_under_way_it_is_written_at_once) {
  options_.filesystem.operations = 256;
  wanted_.held_writes = kDetachedRanges + 5;
  mount_again();
  const std::string old(2 * kDetachedRanges * kBlockBytes, 'o');
  const int fd = open_file("/blocks", kOpenReadWrite);
  const int other = open_file("/other", kOpenReadWrite);
  ASSERT_EQ(write_now(fd, old, 0), static_cast<int64_t>(old.size()));
  ASSERT_EQ(write_now(other, old, 0), static_cast<int64_t>(old.size()));
  const std::string block(kBlockBytes, 'n');
  std::vector<Ticket> tickets;
  const auto start_many = [&](int to, uint32_t count) {
    for (uint32_t i = 0; i <= count; ++i) {
      const Ticket ticket = start_write(to, block, uint64_t{i} * kBlockBytes);
      EXPECT_EQ(ticket.result, static_cast<int64_t>(kBlockBytes)) << i;
      EXPECT_EQ(ticket.operation == Ticket::kNoOperation, i == count) << i;
      tickets.push_back(ticket);
    }
  };
  start_many(fd, kDetachedRanges);  // of the file
  start_many(other, 5);             // of the volume
  EXPECT_EQ(writer().held_count, kDetachedRanges + 5);
  std::string read(kBlockBytes, '\0');
  EXPECT_EQ(read_now(fd, read, kDetachedRanges * kBlockBytes), static_cast<int64_t>(kBlockBytes));
  EXPECT_EQ(read, block);
  for (const Ticket& ticket : tickets) {
    EXPECT_EQ(wait_for(ticket), static_cast<int64_t>(kBlockBytes));
  }
  expect_nothing_held();
  mount_again();
  EXPECT_EQ(contents_of("/blocks"), std::string((kDetachedRanges + 1) * kBlockBytes, 'n') +
                                        old.substr((kDetachedRanges + 1) * kBlockBytes));
}

TEST_P(AsyncWriteTest, a_large_write_leaves_its_end_under_way) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  const uint64_t bytes = 2 * kTicketBytes + 7 * kBlockBytes;
  std::string source(bytes, '\0');
  for (uint64_t i = 0; i < bytes; ++i) source[i] = static_cast<char>(i * 7 + i / 4096);
  const Ticket ticket = start_write(fd, source, 0);
  EXPECT_EQ(size_of("/blocks"), bytes - kTicketBytes);
  EXPECT_EQ(writer().promised_blocks, f2fs::kHeldBlocks);
  EXPECT_EQ(wait_for(ticket), static_cast<int64_t>(bytes));
  EXPECT_TRUE(contents_of("/blocks") == source);
  // Ends that are no blocks' are there at once, if the file does not grow.
  const uint64_t from = 3 * kBlockBytes - 100;
  const uint64_t length = 10 * kBlockBytes;
  const std::string part(length, 'p');
  const Ticket uneven = start_write(fd, part, from);
  EXPECT_NE(uneven.operation, Ticket::kNoOperation);
  EXPECT_EQ(wait_for(uneven), static_cast<int64_t>(length));
  source.replace(from, length, length, 'p');
  EXPECT_TRUE(contents_of("/blocks") == source);
  mount_again();
  EXPECT_TRUE(contents_of("/blocks") == source);
}

TEST_P(AsyncWriteTest, who_closes_a_file_may_wait_for_it_afterwards) {
  const std::string bytes(30 * kBlockBytes, 'n');
  const int fd = open_file("/blocks", kOpenWriteOnly);
  const uint32_t place = fs().descriptors[fd].open_inode;
  const Ticket ticket = start_write(fd, bytes, 0);
  close_ok(fd);
  EXPECT_NE(fs().open_inodes[place].ino, 0u);
  EXPECT_EQ(wait_for(ticket), static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(fs().open_inodes[place].ino, 0u);
  EXPECT_TRUE(contents_of("/blocks") == bytes);
  // A file without a name lives as long.
  checkpoint();
  const auto before = used();
  const int gone = open_file("/gone", kOpenWriteOnly | kOpenCreate);
  const Ticket last = start_write(gone, bytes, 0);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return unlink(warp, fs(), "/gone"); }), 0);
  close_ok(gone);
  checkpoint();
  EXPECT_GT(used().first, before.first);
  EXPECT_EQ(wait_for(last), static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(used(), before);
  expect_nothing_held();
  mount_again();
}

TEST_P(AsyncWriteTest, what_is_to_be_durable_is_when_it_was_waited_for) {
  GOFS_NEED_TOOL("fsck.f2fs");
  checkpoint();
  const int fd = open_file("/blocks", kOpenWriteOnly | kOpenDataSync);
  const std::string bytes(9 * kBlockBytes, 'd');
  const Ticket ticket = start_write(fd, bytes, 0);
  EXPECT_EQ(after_crash("/blocks"), "");
  EXPECT_EQ(wait_for(ticket), static_cast<int64_t>(bytes.size()));
  EXPECT_TRUE(after_crash("/blocks") == bytes);
}

TEST_P(AsyncWriteTest, what_cannot_be_written_is_refused) {
  const int reading = open_file("/blocks", kOpenReadOnly);
  const int fd = open_file("/blocks", kOpenReadWrite);
  const std::string bytes(kBlockBytes, 'x');
  EXPECT_EQ(start_write(reading, bytes, 0).result, -EBADF);
  EXPECT_EQ(start_write(-1, bytes, 0).result, -EBADF);
  EXPECT_EQ(start_write(fd, bytes, kOffsetMax).result, -EINVAL);
  EXPECT_EQ(start_write(fd, bytes, uint64_t{1} << 63).result, -EINVAL);
  EXPECT_EQ(start_write(fd, bytes, uint64_t{1} << 60).result, -EFBIG);
  const Ticket nothing = start_write(fd, "", 0);
  EXPECT_EQ(nothing.result, 0);
  EXPECT_EQ(wait_for(nothing), 0);
  fs().credentials = who(8, 8);
  const int setid = open_file("/powers", kOpenWriteOnly);
  const Ticket ticket = start_write(setid, bytes, 0);
  EXPECT_EQ(wait_for(ticket), static_cast<int64_t>(kBlockBytes));
  EXPECT_EQ(stat_of("/powers").mode & format::kModePermissionMask, 0777u);
  writer().failed = -EIO;
  EXPECT_EQ(start_write(fd, bytes, 0).result, -EROFS);
  writer().failed = 0;
  EXPECT_EQ(size_of("/blocks"), 0u);
  expect_nothing_held();
}

TEST_P(AsyncWriteTest, a_full_volume_refuses_and_keeps_what_it_promised) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  const int other = open_file("/other", kOpenReadWrite);
  const std::string part(kTicketBytes, 'f');
  const std::string promised(100 * kBlockBytes, 'p');
  ASSERT_EQ(write_now(other, "o", 4'000'000), 1);
  const Ticket early = start_write(other, promised, 0);
  ASSERT_EQ(early.result, static_cast<int64_t>(promised.size()));
  uint64_t written = 0;
  Ticket last{};
  for (;;) {
    last = start_write(fd, part, written);
    const int64_t got = wait_for(last);
    if (got < 0) break;
    written += static_cast<uint64_t>(got);
    ASSERT_LE(written, image_.bytes());
  }
  EXPECT_EQ(last.result, -ENOSPC);
  EXPECT_EQ(size_of("/blocks"), written);
  EXPECT_LE(volume().valid_block_count, volume().user_block_count);
  EXPECT_EQ(wait_for(early), static_cast<int64_t>(promised.size()));
  // Nothing of a write that has no room for its blocks: not its end either, which has a block.
  const std::string over_the_end(76 * kBlockBytes + 4'000'001 % kBlockBytes, 'e');
  EXPECT_EQ(start_write(other, over_the_end, 900 * kBlockBytes).result, -ENOSPC);
  EXPECT_TRUE(contents_of("/other").substr(900 * kBlockBytes) ==
              std::string(4'000'000 - 900 * kBlockBytes, '\0') + "o");
  checkpoint();
  const auto full = used();
  EXPECT_EQ(full.first, full.second);
  // What is there already can be written again, as far as there are blocks that no checkpoint has.
  EXPECT_EQ(wait_for(start_write(other, promised, 0)), static_cast<int64_t>(promised.size()));
  EXPECT_EQ(used(), full);
  expect_nothing_held();
  mount_again();
  EXPECT_TRUE(contents_of("/other").substr(0, promised.size()) == promised);
  EXPECT_EQ(contents_of("/blocks"), std::string(written, 'f'));
}

// Cleaning, discarding and all logs leave blocks alone that are under way, however many checkpoints
// there are.
TEST_P(AsyncWriteTest, no_other_file_gets_the_blocks_meanwhile) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  const int other = open_file("/other", kOpenReadWrite);
  const std::string old(700 * kBlockBytes, 'o');
  ASSERT_EQ(write_now(fd, old, 0), static_cast<int64_t>(old.size()));
  ASSERT_EQ(write_now(other, old, 0), static_cast<int64_t>(old.size()));
  std::string model = old;
  std::vector<std::string> sources;
  std::vector<Ticket> tickets;
  for (uint32_t i = 0; i < 8; ++i) {
    sources.emplace_back(20 * kBlockBytes, static_cast<char>('A' + i));
    tickets.push_back(start_write(fd, sources[i], i * 80 * kBlockBytes));
    ASSERT_GT(tickets[i].result, 0);
    // So that they lie in segments that have become partly free.
    for (uint32_t k = 0; k < 40; ++k) {
      ASSERT_EQ(write_now(other, std::string(3 * kBlockBytes, 'p'), (i * 80 + k * 2) * kBlockBytes),
                static_cast<int64_t>(3 * kBlockBytes));
    }
    model.replace(i * 80 * kBlockBytes, 20 * kBlockBytes, sources[i]);
  }
  std::set<uint32_t> held;
  for (uint32_t i = 0; i < writer().held_count; ++i) {
    const f2fs::HeldBlocks& one = writer().held[i];
    held.insert(one.blocks, one.blocks + one.count);
  }
  EXPECT_EQ(held.size(), 160u);
  const uint32_t all = volume().geometry.main_segments;
  const CleanWish wish{{f2fs::VictimPolicy::kGreedy, format::kBlocksPerSegment - 1}, all, all};
  for (uint32_t turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                reset_stuck(warp, fs());
                return clean_segments(warp, fs(), wish).error;
              }),
              0);
    checkpoint();
    for (const uint32_t block : held) {
      const uint32_t segno = volume().geometry.segno_of(block);
      const uint32_t offset = volume().geometry.offset_in_segment(block);
      const f2fs::SegmentInfo& segment = writer().segments.segments[segno];
      EXPECT_EQ(segment.valid[offset / 32] >> offset % 32 & 1u, 0u);
      EXPECT_EQ(segment.committed[offset / 32] >> offset % 32 & 1u, 1u);
      EXPECT_FALSE(f2fs::detail::segment_bit(writer().free_map, segno));
    }
  }
  EXPECT_GT(writer().cleaning.counts.data_blocks, 0u);
  // Others use what they can get, but these.
  int64_t filled = 0;
  for (int64_t got = 1; got > 0; filled += std::max<int64_t>(got, 0)) {
    got = write_now(other, std::string(kTicketBytes, 'q'),
                    old.size() + static_cast<uint64_t>(filled));
  }
  EXPECT_GT(filled, 0);
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(wait_for(tickets[i]), static_cast<int64_t>(20 * kBlockBytes));
  }
  EXPECT_TRUE(contents_of("/blocks") == model);
  expect_nothing_held();
  f2fs::expect_right_owners(*writing_, width());
  mount_again();
  EXPECT_TRUE(contents_of("/blocks") == model);
}

// Each warp has two buffers: while one is under way, it fills the other. All in one file, beside
// checkpoints, cleaning and readers.
TEST_P(AsyncWriteTest, warps_fill_one_buffer_while_the_other_is_under_way) {
  constexpr uint32_t kWriters = 3;
  constexpr uint32_t kTurns = 24;
  constexpr uint64_t kPart = 6 * kBlockBytes;
  constexpr uint64_t kOfOne = 8 * kPart;
  const int fd = open_file("/blocks", kOpenReadWrite);
  ASSERT_EQ(write_now(fd, std::string(kWriters * kOfOne, '0'), 0),
            static_cast<int64_t>(kWriters * kOfOne));
  std::atomic<uint32_t> writing{kWriters};
  std::vector<std::string> buffers(2 * kWriters + 1, std::string(kPart, '\0'));
  run_crowd({kWriters + 3, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const auto goes_on = [&] { return warp.shfl(writing.load(std::memory_order_relaxed), 0) != 0; };
    if (index < kWriters) {
      Ticket tickets[2] = {};
      for (uint32_t turn = 0; turn < kTurns; ++turn) {
        std::string& buffer = buffers[2 * index + turn % 2];
        Ticket& ticket = tickets[turn % 2];
        if (turn >= 2) {
          EXPECT_EQ(wait(warp, fs(), ticket), static_cast<int64_t>(kPart));
        }
        for (uint64_t i = warp.thread_rank(); i < kPart; i += warp.size()) {
          buffer[i] = static_cast<char>('A' + turn);
        }
        warp.sync();
        ticket =
            pwrite_async(warp, fs(), fd, buffer.data(), kPart, index * kOfOne + turn % 8 * kPart);
        EXPECT_EQ(ticket.result, static_cast<int64_t>(kPart));
      }
      for (const Ticket& ticket : tickets) {
        EXPECT_EQ(wait(warp, fs(), ticket), static_cast<int64_t>(kPart));
      }
      warp.sync();
      if (warp.thread_rank() == 0) --writing;
    } else if (index == kWriters) {
      while (goes_on()) EXPECT_EQ(sync(warp, fs()), 0);
    } else if (index == kWriters + 1) {
      const uint32_t all = volume().geometry.main_segments;
      const CleanWish wish{{f2fs::VictimPolicy::kGreedy, format::kBlocksPerSegment - 1}, all, 2};
      while (goes_on()) {
        reset_stuck(warp, fs());
        EXPECT_EQ(clean_segments(warp, fs(), wish).error, 0);
      }
    } else {
      std::string& buffer = buffers[2 * kWriters];
      for (uint64_t turn = 0; goes_on(); ++turn) {
        const uint64_t part = turn * 7 % (8 * kWriters);
        EXPECT_EQ(pread(warp, fs(), fd, buffer.data(), kPart, part * kPart),
                  static_cast<int64_t>(kPart));
        warp.sync();
        if (warp.thread_rank() == 0) {
          EXPECT_EQ(std::count(buffer.begin(), buffer.end(), buffer[0]),
                    static_cast<ptrdiff_t>(kPart));
        }
        warp.sync();
      }
    }
  });
  std::string model;
  for (uint32_t index = 0; index < kWriters; ++index) {
    for (uint32_t part = 0; part < 8; ++part) {
      model += std::string(kPart, static_cast<char>('A' + kTurns - 8 + part));
    }
  }
  EXPECT_TRUE(contents_of("/blocks") == model);
  expect_nothing_held();
  f2fs::expect_right_owners(*writing_, width());
  mount_again();
  EXPECT_TRUE(contents_of("/blocks") == model);
}

// A ticket is whoever's it was handed to.
TEST_P(AsyncWriteTest, one_warp_starts_and_another_waits) {
  constexpr uint32_t kPairs = 20;
  const int fd = open_file("/blocks", kOpenReadWrite);
  ASSERT_EQ(write_now(fd, std::string(4 * kBlockBytes, '0'), 0), 4 * kBlockBytes);
  const std::string bytes(4 * kBlockBytes, 'w');
  Ticket handed{};
  std::atomic<uint32_t> turn{0};
  run_crowd({2, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t i = 0; i < kPairs; ++i) {
      while (warp.shfl(turn.load(std::memory_order_acquire), 0) != 2 * i + index) {
        simt::Backoff().pause();
      }
      warp.sync();
      if (index == 0) {
        const Ticket mine = pwrite_async(warp, fs(), fd, bytes.data(), bytes.size(), 0);
        EXPECT_EQ(mine.result, 4 * kBlockBytes);
        if (warp.thread_rank() == 0) handed = mine;
      } else {
        EXPECT_EQ(wait(warp, fs(), handed), 4 * kBlockBytes);
      }
      warp.sync();
      if (warp.thread_rank() == 0) turn.store(2 * i + index + 1, std::memory_order_release);
    }
  });
  EXPECT_TRUE(contents_of("/blocks") == bytes);
  expect_nothing_held();
  mount_again();
}

}  // namespace
}  // namespace gofs::vfs
