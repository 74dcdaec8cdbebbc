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
#include <random>
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
      {"runs", 400 * 4096 + 512, false, {}, 100},
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
  simt::Barrier barrier_{};  // of warps that play a grid
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
      GridMeeting& meeting = fs().grids.meetings[0];
      const simt::GridGroup group(warp, index, kWarpsTogether, barrier_);
      const int64_t mine =
          pread_together(group, fs(), meeting.read, fd, buffer, range.bytes, range.offset);
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

// --- Runs of blocks. -----------------------------------------------------------------------------

class ReadRunsTest : public ReadTest {
 protected:
  /// Opens /runs and looks at all of it, so that its map is known.
  void open_runs() {
    fd_ = open_file("/runs");
    std::vector<uint8_t> bytes(kRunsBytes);
    run_alone(width(), [&](const simt::Warp& warp) {
      EXPECT_EQ(pread(warp, fs(), fd_, bytes.data(), kRunsBytes, 0), int64_t{kRunsBytes});
    });
  }
  f2fs::Inode& inode() { return fs().open_inodes[fs().descriptors[fd_].open_inode].inode; }
  /// What the file's map says of block `index`.
  uint32_t word_of(uint64_t index) {
    return *f2fs::detail::find_block_word(fs().volume, inode(), index);
  }
  /// Reads as many bytes a lane, each `apart` bytes behind the one before it, which are there, to
  /// buffers `shift` bytes past an address for the device. Commands that it took.
  uint64_t read_apart(uint64_t offset, uint64_t bytes, uint64_t apart, uint64_t shift = 0) {
    std::vector<std::vector<uint8_t>> found(width(),
                                            std::vector<uint8_t>(shift + bytes + 1, kGuard));
    const uint64_t before = rig_->counters().read_commands;
    run_alone(width(), [&](const simt::Warp& warp) {
      const uint32_t lane = warp.thread_rank();
      EXPECT_EQ(
          pread_lanes(warp, fs(), {fd_, found[lane].data() + shift, bytes, offset + lane * apart}),
          static_cast<int64_t>(bytes));
    });
    for (uint32_t lane = 0; lane < width(); ++lane) {
      EXPECT_EQ(found[lane].back(), kGuard);
      found[lane].pop_back();
      found[lane].erase(found[lane].begin(), found[lane].begin() + static_cast<int64_t>(shift));
      EXPECT_TRUE(found[lane] == content(*runs(), offset + lane * apart, bytes)) << lane;
    }
    return rig_->counters().read_commands - before;
  }
  static const File* runs() {
    const auto found = std::find_if(files().begin(), files().end(), [](const File& file) {
      return file.name == std::string("runs");
    });
    return &*found;
  }
  static constexpr uint64_t kRunsBytes = 400 * 4096 + 512;
  int fd_ = -1;
};
GOFS_AT_BOTH_WIDTHS(ReadRunsTest);

TEST_P(ReadRunsTest, what_lies_in_a_row_is_one_command_of_each_lane) {
  open_runs();
  constexpr uint64_t kBlock = kBlockBytes;
  EXPECT_EQ(read_apart(10 * kBlock, 4 * kBlock, 20 * kBlock), width());
  EXPECT_EQ(read_apart(0, 30 * kBlock, 22 * kBlock), width());
  // From the middle of a block to the middle of one, in LBAs.
  EXPECT_EQ(read_apart(512, 6 * kBlock, 20 * kBlock), width());
  // From there on they lie elsewhere.
  uint64_t row = 1;
  while (word_of(row) == word_of(0) + row) ++row;
  ASSERT_LT(row, 300u);
  EXPECT_EQ(read_apart((row - 1) * kBlock, 2 * kBlock, 0), 2 * width());
  EXPECT_EQ(read_apart((row - 50) * kBlock, 80 * kBlock, 0), 2 * width());
  // The device moves no more at a time.
  const uint64_t most = rig_->volume().array.run_bytes_max;
  ASSERT_LT(most, row * kBlock);
  ASSERT_GT(2 * most, row * kBlock);
  EXPECT_EQ(read_apart(0, row * kBlock, 0), 2 * width());
  EXPECT_EQ(read_apart(0, most, 0), width());
  EXPECT_EQ(read_apart(kBlock / 2, most, 0), 2 * width());
  // The end of an LBA is copied.
  EXPECT_EQ(read_apart(0, 3 * kBlock + 5, 20 * kBlock), 2 * width());
}

TEST_P(ReadRunsTest, what_has_to_be_single_blocks_is) {
  open_runs();
  rig_->volume().array.run_bytes_max = kBlockBytes;
  EXPECT_EQ(read_apart(0, 4 * kBlockBytes, 5 * kBlockBytes), 4 * width());
  EXPECT_EQ(read_apart(1024, 4 * kBlockBytes, 7 * kBlockBytes), 5 * width());
}

// A run may go to an address that is a multiple of 4.
TEST_P(ReadRunsTest, what_cannot_go_where_it_is_wanted_is_copied_block_by_block) {
  open_runs();
  EXPECT_EQ(read_apart(0, 4 * kBlockBytes, 5 * kBlockBytes, 4), width());
  EXPECT_EQ(read_apart(0, 4 * kBlockBytes, 5 * kBlockBytes, 2), 4 * width());
  EXPECT_EQ(read_apart(100, 4 * kBlockBytes, 5 * kBlockBytes, 2), 5 * width());
}

// What lies behind the words of a map is another file's.
TEST_P(ReadRunsTest, a_run_goes_no_further_than_the_map) {
  open_runs();
  for (uint64_t index = 60; index < 80; ++index) ASSERT_EQ(word_of(index), word_of(0) + index);
  constexpr uint64_t kBlock = kBlockBytes;
  EXPECT_EQ(read_apart(60 * kBlock, 20 * kBlock, 0), width()) << "over the end of a segment of it";
  uint32_t& home = fs().open_inodes[fs().descriptors[fd_].open_inode].maps.blocks[2];
  const uint32_t kept = home;
  home = f2fs::MapArena::kNoHome;  // of blocks 64 to 127
  EXPECT_EQ(read_apart(60 * kBlock, 4 * kBlock, 0), width());
  EXPECT_EQ(read_apart(60 * kBlock, 6 * kBlock, 0), 3 * width());
  home = kept;
}

TEST_P(ReadRunsTest, a_run_ends_where_another_ssd_begins) {
  open_runs();
  rig_->volume().array.chunk_mask = 7;
  const uint32_t first = word_of(0);
  const uint64_t to_chunk = 8 - first % 8;
  EXPECT_EQ(read_apart(0, (to_chunk + 1) * kBlockBytes, 0), 2 * width());
  EXPECT_EQ(read_apart(to_chunk * kBlockBytes, 8 * kBlockBytes, 0), width());
  EXPECT_EQ(read_apart(to_chunk * kBlockBytes, 24 * kBlockBytes, 0), 3 * width());
}

TEST_P(ReadRunsTest, a_run_that_cannot_be_read_ends_where_its_block_lies) {
  open_runs();
  constexpr uint64_t kBad = 37;
  rig_->add_fault(VolumeRig::reads_of_block(word_of(kBad), 9, ssd::FaultAction::kStatus));
  std::vector<std::vector<uint8_t>> found(width(), std::vector<uint8_t>(20 * kBlockBytes, kGuard));
  run_alone(width(), [&](const simt::Warp& warp) {
    // Another number of blocks before it; one lane does not come to it, the last begins with it.
    const uint32_t lane = warp.thread_rank();
    const uint64_t before = lane == 0 ? 21 : lane + 1 == warp.size() ? 0 : 3 * lane;
    const uint64_t offset = (kBad - before) * kBlockBytes;
    const int64_t got =
        pread_lanes(warp, fs(), {fd_, found[lane].data(), 20 * kBlockBytes, offset});
    const auto wanted = static_cast<int64_t>(std::min<uint64_t>(before, 20) * kBlockBytes);
    EXPECT_EQ(got, wanted == 0 ? -EIO : wanted) << lane;
    if (got < 0) return;
    found[lane].resize(static_cast<size_t>(wanted));
    EXPECT_TRUE(found[lane] == content(*runs(), offset, found[lane].size())) << lane;
  });
}

TEST_P(ReadRunsTest, any_mixture_of_requests_is_answered) {
  std::mt19937 random(static_cast<uint32_t>(testing::printed_seed()));
  std::vector<int> fds;
  for (const File& file : files()) fds.push_back(open_file(std::string("/") + file.name));
  rig_->volume().array.chunk_mask = 31;
  std::vector<std::vector<uint8_t>> found(width());
  for (uint32_t step = 0; step < 400; ++step) {
    std::vector<ReadRequest> requests(width());
    std::vector<std::vector<uint8_t>> wanted(width());
    std::vector<int64_t> answers(width());
    const size_t all = random() % files().size();
    const bool one_file = random() % 2 == 0;
    for (uint32_t lane = 0; lane < width(); ++lane) {
      const size_t which = one_file ? all : random() % files().size();
      const File& file = files()[which];
      const uint64_t unit = std::array{1u, 4u, 512u, 4096u}[random() % 4];
      const uint64_t bytes = random() % (random() % 3 == 0 ? 700'000 : 40'000) / unit * unit;
      const uint64_t offset = random() % (file.bytes + 5000) / unit * unit;
      const uint32_t shift = std::array{0u, 0u, 4u, 1u}[random() % 4];
      found[lane].assign(bytes + shift + 1, kGuard);
      requests[lane] = {fds[which], found[lane].data() + shift, bytes, offset};
      wanted[lane] = content(file, offset, bytes);
    }
    run_alone(width(), [&](const simt::Warp& warp) {
      const uint32_t lane = warp.thread_rank();
      answers[lane] = pread_lanes(warp, fs(), requests[lane]);
    });
    for (uint32_t lane = 0; lane < width(); ++lane) {
      ASSERT_EQ(answers[lane], static_cast<int64_t>(wanted[lane].size())) << "step " << step;
      const auto* const got = static_cast<const uint8_t*>(requests[lane].buffer);
      ASSERT_TRUE(std::equal(wanted[lane].begin(), wanted[lane].end(), got)) << "step " << step;
      ASSERT_EQ(found[lane].back(), kGuard) << "step " << step;
    }
  }
  for (const int fd : fds) {
    EXPECT_EQ(fs().open_inodes[fs().descriptors[fd].open_inode].lock.holder_counts, 0u);
  }
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
      const simt::GridGroup group(warp, 0, 1, barrier_);
      EXPECT_EQ(pread_together(group, fs(), fs().grids.meetings[0].read, one.fd, &byte, one.bytes,
                               one.offset),
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
    rig_->add_fault(VolumeRig::reads_of_block(
        *f2fs::detail::find_block_word(fs().volume, inode, index), 9, ssd::FaultAction::kStatus));
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
      const simt::GridGroup group(warp, index, kWarpsTogether, barrier_);
      const int64_t mine =
          pread_together(group, fs(), fs().grids.meetings[0].read, fd, buffer, kFileBytes, offset);
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
    const simt::GridGroup group(warp, 0, 1, barrier_);
    EXPECT_EQ(pread(warp, fs(), fd, buffer, 100, 0), -ETIMEDOUT);
    EXPECT_EQ(pread_together(group, fs(), fs().grids.meetings[0].read, fd, buffer, 100, 0),
              -ETIMEDOUT);
    EXPECT_EQ(pread(warp, fs(), fd, buffer, 100, 4096), 100);
    EXPECT_EQ(pread_together(group, fs(), fs().grids.meetings[0].read, fd, buffer, 100, 4096), 100);
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
        EXPECT_EQ(simt::load_relaxed(second->holder_counts), 0u);
        EXPECT_EQ(simt::load_relaxed(second->turns), 0u);
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
