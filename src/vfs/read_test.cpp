// SPDX-License-Identifier: Apache-2.0
//
// Reads of open files by every way there is: one warp, lanes each for itself, several warps
// together, asynchronous. Each is compared with the file's contents byte by byte, over a table of
// ranges around every edge; buffers have guards on both sides.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "host/image/pattern.h"
#include "vfs/async.h"
#include "vfs/open.h"
#include "vfs/read_together.h"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint64_t kGuardBytes = 64;
constexpr uint8_t kGuard = 0xa5;
constexpr uint32_t kWarpsTogether = 3;

struct File {
  const char* name;
  uint64_t bytes;
  bool inline_data = false;
  std::vector<image::FileRange> ranges{};  // not empty: holes between them
  uint32_t run_blocks = 0;
};

const std::vector<File>& files() {
  static const std::vector<File> list = {
      {"empty", 0},
      {"inlined", 3000, true},
      {"block", 4096},
      {"odd", 5 * 4096 + 77},
      // Data, a hole, data, a hole, data that ends within its block.
      {"holes", 9 * 4096 + 1000, false, {{0, 2}, {5, 1}, {9, 1}}},
      {"hole", 3 * 4096 + 5, false, {{3, 1}}},
      {"scattered", 70 * 4096 + 513, false, {}, 1},
  };
  return list;
}

/// What `file` holds at `offset`, as far as it goes.
std::vector<uint8_t> content(const File& file, uint64_t offset, uint64_t bytes) {
  if (offset >= file.bytes) return {};
  std::vector<uint8_t> wanted(std::min(bytes, file.bytes - offset));
  image::fill_pattern(file.bytes, offset, wanted.data(), wanted.size());
  for (size_t i = 0; !file.ranges.empty() && i < wanted.size(); ++i) {
    const uint64_t block = (offset + i) / kBlockBytes;
    const auto holds = [block](const image::FileRange& range) {
      return block >= range.first_block && block < range.first_block + range.block_count;
    };
    if (std::none_of(file.ranges.begin(), file.ranges.end(), holds)) wanted[i] = 0;
  }
  return wanted;
}

void fill_kinds(image::ImageBuilder& builder) {
  for (const File& file : files()) {
    image::FileSpec spec;
    spec.name = file.name;
    spec.size_bytes = file.bytes;
    spec.content = image::pattern_content(file.bytes);
    spec.inline_data = file.inline_data;
    spec.sparse = !file.ranges.empty();
    spec.ranges = file.ranges;
    TestImage::must(builder.add_file(builder.root(), spec, {.run_blocks = file.run_blocks}));
  }
  image::Directory directory;
  TestImage::must(builder.add_directory(builder.root(), "directory", {}, {}, &directory));
}

struct Range {
  uint64_t offset;
  uint64_t bytes;
};

/// Every pair of an offset near an edge and a length.
std::vector<Range> ranges_of(const File& file) {
  std::vector<uint64_t> offsets = {0, 1, 511, 4096, 5 * 4096 - 1};
  for (const uint64_t end : {file.bytes / 4096 * 4096, file.bytes}) {
    for (const uint64_t offset : {end - 1, end, end + 1}) offsets.push_back(offset);
  }
  std::vector<Range> ranges;
  for (const uint64_t offset : offsets) {
    if (offset > kOffsetMax) continue;  // of an empty file
    for (const uint64_t bytes : {1u, 512u, 4097u, 400'000u}) {
      ranges.push_back({offset, bytes});
    }
  }
  return ranges;
}

/// A buffer that starts `shift` bytes past a block boundary, with guards around what was asked for.
class GuardedBuffer {
 public:
  GuardedBuffer(TestArena& arena, uint64_t bytes_max)
      : memory_(arena.bytes(bytes_max + 2 * kBlockBytes)), all_(bytes_max + 2 * kBlockBytes) {}

  uint8_t* prepare(uint64_t bytes, uint32_t shift) {
    std::memset(memory_, kGuard, all_);
    bytes_ = bytes;
    shift_ = shift;
    return data();
  }
  uint8_t* data() { return memory_ + kBlockBytes + shift_; }

  ::testing::AssertionResult holds(const std::vector<uint8_t>& wanted) {
    if (!std::equal(wanted.begin(), wanted.end(), data())) {
      return ::testing::AssertionFailure() << "other bytes than the file's";
    }
    for (uint64_t i = 1; i <= kGuardBytes; ++i) {
      if (*(data() - i) != kGuard) return ::testing::AssertionFailure() << i << " bytes before";
      if (data()[bytes_ + i - 1] != kGuard) return ::testing::AssertionFailure() << "past the end";
    }
    return ::testing::AssertionSuccess();
  }

 private:
  uint8_t* memory_;
  uint64_t all_;
  uint64_t bytes_ = 0;
  uint32_t shift_ = 0;
};

class ReadTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  static void SetUpTestSuite() { image_ = std::make_unique<TestImage>(fill_kinds); }
  static void TearDownTestSuite() { image_.reset(); }

  void SetUp() override {
    VolumeRigOptions options;
    options.filesystem.operations = kOperations;
    options.ssd.fault_capacity = 1;
    rig_ = std::make_unique<VolumeRig>(*image_, options);
    rig_->mount_ready(width());
  }
  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return rig_->fs(); }

  int open_file(const std::string& path) {
    int fd = -1;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int mine = open(warp, fs(), path.c_str(), kOpenReadOnly);
      if (warp.thread_rank() == 0) fd = mine;
    });
    EXPECT_GE(fd, 0) << path;
    return fd;
  }

  using Read = std::function<int64_t(int fd, uint8_t* buffer, const Range& range)>;

  /// Reads every range of every file with `read`, to buffers that are aligned and that are not.
  void expect_contents(const Read& read) {
    GuardedBuffer buffer(rig_->arena(), 400'000);
    for (const File& file : files()) {
      const int fd = open_file(std::string("/") + file.name);
      uint32_t turn = 0;
      for (const Range& range : ranges_of(file)) {
        SCOPED_TRACE(::testing::Message()
                     << file.name << ", " << range.bytes << " bytes at " << range.offset);
        const uint32_t shift = std::array{0u, 4u, 1u}[turn++ % 3];
        const int64_t got = read(fd, buffer.prepare(range.bytes, shift), range);
        const std::vector<uint8_t> wanted = content(file, range.offset, range.bytes);
        ASSERT_EQ(got, static_cast<int64_t>(wanted.size()));
        ASSERT_TRUE(buffer.holds(wanted));
      }
    }
  }

  static constexpr uint32_t kOperations = 4;
  std::unique_ptr<VolumeRig> rig_;

 private:
  static std::unique_ptr<TestImage> image_;
};
std::unique_ptr<TestImage> ReadTest::image_;
GOFS_AT_BOTH_WIDTHS(ReadTest);

TEST_P(ReadTest, one_warp_reads_what_the_file_holds) {
  expect_contents([this](int fd, uint8_t* buffer, const Range& range) {
    int64_t got = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int64_t mine = pread(warp, fs(), fd, buffer, range.bytes, range.offset);
      if (warp.thread_rank() == 0) got = mine;
    });
    return got;
  });
}

TEST_P(ReadTest, lanes_read_their_parts_of_a_range) {
  expect_contents([this](int fd, uint8_t* buffer, const Range& range) {
    std::vector<int64_t> got(width());
    run_alone(width(), [&](const simt::Warp& warp) {
      // The last lane takes what is left over.
      const uint32_t rank = warp.thread_rank();
      const uint64_t each = range.bytes / warp.size();
      const uint64_t mine = rank + 1 < warp.size() ? each : range.bytes - each * rank;
      got[rank] =
          pread_lanes(warp, fs(), {fd, buffer + rank * each, mine, range.offset + rank * each});
    });
    int64_t sum = 0;
    for (const int64_t part : got) sum += part;
    return sum;
  });
}

TEST_P(ReadTest, several_warps_read_one_range_together) {
  expect_contents([this](int fd, uint8_t* buffer, const Range& range) {
    std::vector<int64_t> got(kWarpsTogether);
    run_crowd({kWarpsTogether, width()}, [&](const simt::Warp& warp, uint32_t index) {
      GridMeeting& meeting = fs().grid;
      const simt::GridCrew crew(warp, index, kWarpsTogether, meeting.point);
      const int64_t mine =
          pread_together(crew, fs(), meeting.read, fd, buffer, range.bytes, range.offset);
      if (warp.thread_rank() == 0) got[index] = mine;
    });
    EXPECT_EQ(std::count(got.begin(), got.end(), got[0]), kWarpsTogether);
    return got[0];
  });
}

TEST_P(ReadTest, what_was_started_is_there_after_wait) {
  expect_contents([this](int fd, uint8_t* buffer, const Range& range) {
    int64_t got = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const Ticket ticket = pread_async(warp, fs(), fd, buffer, range.bytes, range.offset);
      const int64_t mine = wait(warp, fs(), ticket);
      if (warp.thread_rank() == 0) got = mine;
    });
    return got;
  });
}

// --- Refusals. -----------------------------------------------------------------------------------

TEST_P(ReadTest, what_cannot_be_read_is_refused_by_every_way) {
  const int file = open_file("/odd");
  const int directory = open_file("/directory");
  struct Case {
    int fd;
    uint64_t bytes;
    uint64_t offset;
    int64_t result;
  };
  const std::vector<Case> cases = {
      {-1, 1, 0, -EBADF},
      {1'000'000, 1, 0, -EBADF},
      {directory, 1, 0, -EISDIR},
      {file, kOffsetMax + 1, 0, -EINVAL},
      {file, 1, kOffsetMax + 1, -EINVAL},
      {file, 0, 0, 0},
      {file, 1, kOffsetMax, 0},
  };
  uint8_t byte = kGuard;
  run_crowd({1, width()}, [&](const simt::Warp& warp, uint32_t) {
    for (const Case& one : cases) {
      EXPECT_EQ(pread(warp, fs(), one.fd, &byte, one.bytes, one.offset), one.result);
      EXPECT_EQ(pread_lanes(warp, fs(), {one.fd, &byte, one.bytes, one.offset}), one.result);
      const simt::GridCrew crew(warp, 0, 1, fs().grid.point);
      EXPECT_EQ(pread_together(crew, fs(), fs().grid.read, one.fd, &byte, one.bytes, one.offset),
                one.result);
      const Ticket ticket = pread_async(warp, fs(), one.fd, &byte, one.bytes, one.offset);
      EXPECT_EQ(ticket.result, one.result);
      EXPECT_EQ(wait(warp, fs(), ticket), one.result);
    }
  });
  EXPECT_EQ(byte, kGuard);
}

TEST_P(ReadTest, each_lane_has_the_answer_to_its_own_request) {
  const int file = open_file("/odd");
  const int inlined = open_file("/inlined");
  uint8_t* const buffers = rig_->arena().bytes(4 * kBlockBytes);
  const ReadRequest requests[4] = {{file, buffers, 4096, 4096},
                                   {-1, buffers + 4096, 4096, 0},
                                   {inlined, buffers + 2 * 4096, 4096, 2990},
                                   {file, buffers + 3 * 4096, 0, 0}};
  const int64_t answers[4] = {4096, -EBADF, 10, 0};
  run_alone(width(), [&](const simt::Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    for (uint32_t first = 0; first < 4; first += warp.size()) {
      EXPECT_EQ(pread_lanes(warp, fs(), requests[first + rank]), answers[first + rank]);
    }
  });
  const std::vector<uint8_t> block = content(files()[3], 4096, 4096);
  EXPECT_EQ(std::memcmp(buffers, block.data(), block.size()), 0);
  const std::vector<uint8_t> end = content(files()[1], 2990, 4096);
  EXPECT_EQ(std::memcmp(buffers + 2 * 4096, end.data(), end.size()), 0);
}

// --- Blocks that cannot be read. -----------------------------------------------------------------

class UnreadableBlockTest : public ReadTest {
 protected:
  /// Makes block `index` of /scattered unreadable, which is then open.
  int spoil(uint32_t index) {
    const int fd = open_file("/scattered");
    uint8_t* const buffer = rig_->arena().bytes(kFileBytes);
    run_alone(width(), [&](const simt::Warp& warp) {
      (void)pread(warp, fs(), fd, buffer, kFileBytes, 0);  // fills the map
    });
    const f2fs::Inode& inode = fs().open_inodes[fs().descriptors[fd].open_inode].inode;
    rig_->add_fault(
        VolumeRig::reads_of_block(inode.block_map[index], 9, ssd::FaultAction::kStatus));
    return fd;
  }
  static constexpr uint64_t kFileBytes = 70 * 4096 + 513;
};
GOFS_AT_BOTH_WIDTHS(UnreadableBlockTest);

TEST_P(UnreadableBlockTest, ends_a_read_where_it_lies) {
  constexpr uint32_t kBad = 37;
  const int fd = spoil(kBad);
  uint8_t* const buffer = rig_->arena().bytes(kFileBytes);
  const auto read_all = [&](uint64_t offset) {
    std::vector<int64_t> got(kWarpsTogether);
    run_crowd({kWarpsTogether, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const simt::GridCrew crew(warp, index, kWarpsTogether, fs().grid.point);
      const int64_t mine =
          pread_together(crew, fs(), fs().grid.read, fd, buffer, kFileBytes, offset);
      if (warp.thread_rank() == 0) got[index] = mine;
    });
    EXPECT_EQ(std::count(got.begin(), got.end(), got[0]), kWarpsTogether);
    return got[0];
  };
  const File& file = files().back();
  EXPECT_EQ(read_all(10), int64_t{kBad} * 4096 - 10);
  const std::vector<uint8_t> wanted = content(file, 10, kBad * 4096 - 10);
  EXPECT_EQ(std::memcmp(buffer, wanted.data(), wanted.size()), 0);
  EXPECT_EQ(read_all(uint64_t{kBad} * 4096), -EIO);
  EXPECT_EQ(read_all((kBad + 1) * 4096), static_cast<int64_t>(kFileBytes) - (kBad + 1) * 4096);
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(pread(warp, fs(), fd, buffer, kFileBytes, 10), int64_t{kBad} * 4096 - 10);
    EXPECT_EQ(pread(warp, fs(), fd, buffer, 1, kBad * 4096 + 5), -EIO);
    const Ticket ticket = pread_async(warp, fs(), fd, buffer, 8 * 4096, (kBad - 4) * 4096);
    EXPECT_EQ(wait(warp, fs(), ticket), -EIO);
  });
  // No hold was left behind: a writer gets the whole file.
  run_alone(width(), [&](const simt::Warp& warp) {
    RangeHold hold{};
    RangeLock& lock = fs().open_inodes[fs().descriptors[fd].open_inode].lock;
    const simt::Deadline deadline = simt::Deadline::after_ns(1'000'000'000);
    EXPECT_EQ(lock_exclusive(warp, lock, {0, kOffsetMax}, deadline, hold), 0);
    unlock_exclusive(warp, lock, hold);
  });
}

// --- Locks. --------------------------------------------------------------------------------------

TEST_P(ReadTest, a_writer_who_does_not_let_go_is_waited_for_until_the_deadline) {
  const int fd = open_file("/odd");
  fs().lock_timeout_ns = 1'000'000;
  uint8_t* const buffer = rig_->arena().bytes(kBlockBytes);
  RangeLock& lock = fs().open_inodes[fs().descriptors[fd].open_inode].lock;
  run_crowd({1, width()}, [&](const simt::Warp& warp, uint32_t) {
    RangeHold hold{};
    ASSERT_EQ(lock_exclusive(warp, lock, {0, 4096}, simt::Deadline::after_ns(1), hold), 0);
    const simt::GridCrew crew(warp, 0, 1, fs().grid.point);
    EXPECT_EQ(pread(warp, fs(), fd, buffer, 100, 0), -ETIMEDOUT);
    EXPECT_EQ(pread_together(crew, fs(), fs().grid.read, fd, buffer, 100, 0), -ETIMEDOUT);
    EXPECT_EQ(pread(warp, fs(), fd, buffer, 100, 4096), 100);
    EXPECT_EQ(pread_together(crew, fs(), fs().grid.read, fd, buffer, 100, 4096), 100);
    unlock_exclusive(warp, lock, hold);
    EXPECT_EQ(pread(warp, fs(), fd, buffer, 100, 0), 100);
    EXPECT_EQ(pread_lanes(warp, fs(), {fd, buffer, 0, 0}), 0);
  });
}

// --- Tickets. ------------------------------------------------------------------------------------

// Else two warps, each with a place in the ring that the other one wants, wait for ever.
TEST_P(ReadTest, lanes_lock_their_files_in_one_order_whichever_is_whose) {
  if (width() < 2) return;  // a lane reads one file
  const int fds[] = {open_file("/block"), open_file("/odd")};
  const auto lock_of = [&](int fd) {
    return &fs().open_inodes[fs().descriptors[fd].open_inode].lock;
  };
  RangeLock* const first = std::min(lock_of(fds[0]), lock_of(fds[1]));
  RangeLock* const second = std::max(lock_of(fds[0]), lock_of(fds[1]));
  std::vector<uint8_t> bytes(kBlockBytes * width());
  for (const uint32_t turned : {0u, 1u}) {
    std::atomic<bool> held{false};
    run_crowd({2, width()}, [&](const simt::Warp& warp, uint32_t index) {
      if (index == 0) {
        RangeHold hold{};
        const auto deadline = simt::Deadline::after_ns(10'000'000'000);
        EXPECT_EQ(lock_exclusive(warp, *first, {0, kOffsetMax}, deadline, hold), 0);
        held = true;
        while (!warp.any(simt::load_relaxed(first->ring_readers) != 0)) simt::Backoff().pause();
        warp.sync();
        // The reader waits for us there, and has nothing elsewhere.
        EXPECT_EQ(simt::load_relaxed(second->gate), 0u);
        EXPECT_EQ(simt::load_relaxed(second->next_ticket), 0u);
        unlock_exclusive(warp, *first, hold);
        return;
      }
      while (!held) simt::Backoff().pause();
      warp.sync();
      const uint32_t lane = warp.thread_rank();
      const int fd = fds[(lane + turned) % 2];
      EXPECT_EQ(pread_lanes(warp, fs(), {fd, &bytes[lane * kBlockBytes], 100, 0}), 100);
    });
  }
}

TEST_P(ReadTest, more_reads_under_way_than_there_are_operations_are_refused) {
  const int fd = open_file("/scattered");
  uint8_t* const buffers = rig_->arena().bytes((kOperations + 1) * kBlockBytes);
  run_alone(width(), [&](const simt::Warp& warp) {
    Ticket tickets[kOperations];
    for (uint32_t i = 0; i < kOperations; ++i) {
      tickets[i] = pread_async(warp, fs(), fd, buffers + i * kBlockBytes, 4096, i * 4096);
      EXPECT_EQ(tickets[i].result, 4096);
    }
    uint8_t* const spare = buffers + kOperations * kBlockBytes;
    const Ticket refused = pread_async(warp, fs(), fd, spare, 4096, 0);
    EXPECT_EQ(refused.result, -EAGAIN);
    EXPECT_TRUE(poll(warp, fs(), refused));
    EXPECT_EQ(wait(warp, fs(), refused), -EAGAIN);
    // Out of order; each makes room for one.
    EXPECT_EQ(wait(warp, fs(), tickets[2]), 4096);
    const Ticket late = pread_async(warp, fs(), fd, spare, 4096, kOperations * 4096);
    EXPECT_EQ(wait(warp, fs(), late), 4096);
    for (const uint32_t i : {3u, 0u, 1u}) EXPECT_EQ(wait(warp, fs(), tickets[i]), 4096);
  });
  for (uint32_t i = 0; i <= kOperations; ++i) {
    const std::vector<uint8_t> wanted = content(files().back(), i * 4096, 4096);
    EXPECT_EQ(std::memcmp(buffers + i * kBlockBytes, wanted.data(), 4096), 0) << i;
  }
}

TEST_P(ReadTest, a_ticket_counts_once) {
  const int fd = open_file("/odd");
  uint8_t* const buffer = rig_->arena().bytes(2 * kBlockBytes);
  run_alone(width(), [&](const simt::Warp& warp) {
    const Ticket ticket = pread_async(warp, fs(), fd, buffer, 4096, 0);
    EXPECT_EQ(wait(warp, fs(), ticket), 4096);
    EXPECT_EQ(wait(warp, fs(), ticket), -EINVAL);
    EXPECT_TRUE(poll(warp, fs(), ticket));
    // Nor does it count for those who have its operation after it.
    Ticket others[kOperations];
    for (Ticket& other : others) {
      other = pread_async(warp, fs(), fd, buffer + kBlockBytes, 4096, 4096);
    }
    EXPECT_EQ(wait(warp, fs(), ticket), -EINVAL);
    for (const Ticket& other : others) EXPECT_EQ(wait(warp, fs(), other), 4096);
  });
}

}  // namespace
}  // namespace gofs::vfs
