// SPDX-License-Identifier: Apache-2.0
//
// Blocks that are appended the fast path: what they leave in the file and in the counts, what makes
// them go the other way, and that both get on beside each other.
#include "vfs/append.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "vfs/changes_for_test.hpp"
#include "vfs/fallocate.h"
#include "vfs/write_lanes.h"

namespace gofs::vfs {
namespace {

constexpr uint64_t kBlocks = 20;

class AppendTest : public ChangesTest {
 protected:
  AppendTest()
      : ChangesTest(
            [](image::ImageBuilder& builder) {
              image::FileSpec spec;
              spec.name = "file";
              spec.attributes = {.mode = 0666, .uid = 0, .gid = 0};
              spec.size_bytes = kBlocks * kBlockBytes;
              spec.content = image::pattern_content(9);
              TestImage::must(builder.add_file(builder.root(), spec));
            },
            testing::with_a_fault(), 0, uint64_t{256} << 20) {
    model_ = contents("/file");
    reopen();
  }
  void reopen() {
    // The seconds of all times are the same, whatever the test takes.
    fs().time_granularity_ns = 1'000'000'000'000'000;
    fd_ = open_file("/file", kOpenReadWrite | kOpenAppend);
    plain_ = open_file("/file", kOpenReadWrite);
  }
  f2fs::Writer& writer() { return *fs().writer; }
  OpenInode& opened() { return fs().open_inodes[fs().descriptors[fd_].open_inode]; }
  uint64_t used() { return fs().volume.valid_block_count; }
  /// Has the file's nodes in memory, newer than the disk, with the times of now.
  void append_once() {
    append_model(1, next_);
    EXPECT_EQ(pwrite_file(fd_, std::string(kBlockBytes, next_), 0), int64_t{kBlockBytes});
    take_next_letter();
  }
  void take_next_letter() { next_ = static_cast<char>('a' + (next_ - 'a' + 1) % 20); }
  int64_t sync_all() {
    return alone([&](const simt::Warp& warp) { return sync(warp, fs()); });
  }
  int64_t overwrite(const simt::Warp& warp, const std::string& bytes, uint64_t offset) {
    return pwrite_lanes(warp, fs(), {plain_, bytes.data(), bytes.size(), offset});
  }
  void append_model(uint64_t blocks, char letter) { model_.append(blocks * kBlockBytes, letter); }
  /// Appends a block by each of the first `lanes` lanes; whether that went the fast path.
  bool goes_straight(uint32_t lanes) {
    std::vector<std::string> blocks(width());
    std::vector<uint64_t> places(width());
    for (uint32_t lane = 0; lane < width(); ++lane) {
      blocks[lane].assign(kBlockBytes, static_cast<char>(next_ + lane));
    }
    const bool straight = alone([&](const simt::Warp& warp) {
                            const uint32_t lane = warp.thread_rank();
                            WriteRequest request{fd_, blocks[lane].data(), kBlockBytes, 0};
                            const bool done = detail::try_to_append(
                                warp, fs(), opened(), warp.ballot(lane < lanes), true, request);
                            places[lane] = request.offset;
                            return done ? 1 : 0;
                          }) != 0;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      EXPECT_EQ(places[lane], straight ? model_.size() : 0);
      if (straight) append_model(1, static_cast<char>(next_ + lane));
    }
    take_next_letter();
    expect_nothing_held();
    return straight;
  }
  void expect_nothing_held() {
    EXPECT_EQ(opened().lock.holder_counts, 0u);
    EXPECT_EQ(opened().lock.growing, 0u);
    EXPECT_EQ(opened().inode.times_lock, 0u);
    for (const auto& side : writer().checkpoint_lock.sides) EXPECT_EQ(side.inside, 0u);
  }
  void expect_contents() {
    EXPECT_TRUE(contents("/file") == model_);
    EXPECT_EQ(opened().inode.size_bytes, model_.size());
  }

  int fd_ = -1;
  int plain_ = -1;  // without that it appends
  std::string model_;
  char next_ = 'a';
};
INSTANTIATE_TEST_SUITE_P(width, AppendTest, ::testing::ValuesIn(gofs::testing::widths({1, 4, 32})),
                         ::testing::PrintToStringParamName());

TEST_P(AppendTest, blocks_are_there_and_counted) {
  append_once();
  const uint64_t before = used();
  const uint64_t file_blocks = stat_of_path("/file").blocks_512;
  uint64_t added = 0;
  for (const uint32_t lanes : {1u, width(), (width() + 1) / 2, width()}) {
    ASSERT_TRUE(goes_straight(lanes));
    added += lanes;
    EXPECT_EQ(used(), before + added);
    EXPECT_EQ(stat_of_path("/file").blocks_512, file_blocks + 8 * added);
  }
  expect_contents();
  mount_again();
  reopen();
  expect_contents();
}

// Through all kinds of leaves, by whichever way it goes.
TEST_P(AppendTest, a_file_grows_from_node_to_node) {
  const uint64_t blocks = 923 + 2 * 1018 + 40;
  uint64_t straight = 0;
  while (model_.size() < blocks * kBlockBytes) {
    if (goes_straight(width())) {
      ++straight;
    } else {
      append_once();
    }
  }
  EXPECT_GT(straight * width(), blocks - kBlocks - 5 * width() - 100);
  expect_contents();
  mount_again();
  reopen();
  expect_contents();
}

TEST_P(AppendTest, one_write_deals_its_blocks_to_the_lanes) {
  append_once();
  const uint64_t free_before = writer().open[0].entered;
  const std::string text(width() * kBlockBytes, 'z');
  EXPECT_EQ(pwrite_file(fd_, text, 77), static_cast<int64_t>(text.size()));
  append_model(width(), 'z');
  // By write(), which also moves the position.
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              return write(warp, fs(), fd_, text.data(), kBlockBytes);
            }),
            int64_t{kBlockBytes});
  append_model(1, 'z');
  EXPECT_EQ(fs().descriptors[fd_].position, model_.size());
  // At the end without being asked for it, and behind the end.
  const int other = open_file("/file", kOpenReadWrite);
  EXPECT_EQ(pwrite_file(other, text, model_.size()), static_cast<int64_t>(text.size()));
  append_model(width(), 'z');
  EXPECT_EQ(pwrite_file(other, text, model_.size() + kBlockBytes),
            static_cast<int64_t>(text.size()));
  append_model(1, '\0');
  append_model(width(), 'z');
  EXPECT_EQ(close_file(other), 0);
  EXPECT_GT(writer().open[0].entered, free_before);
  expect_contents();
  mount_again();
  reopen();
  expect_contents();
}

TEST_P(AppendTest, places_that_were_reserved_are_counted_once) {
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              return fallocate(warp, fs(), fd_, kFallocateKeepSize, kBlocks * kBlockBytes,
                               2 * kBlockBytes);
            }),
            0);
  append_once();
  const uint64_t before = used();
  const uint64_t file_blocks = stat_of_path("/file").blocks_512;
  ASSERT_TRUE(goes_straight(width()));
  EXPECT_EQ(used(), before + width() - 1);
  EXPECT_EQ(stat_of_path("/file").blocks_512, file_blocks + 8 * (width() - 1));
  expect_contents();
  mount_again();
}

TEST_P(AppendTest, it_is_left_where_something_stands_in_it) {
  EXPECT_FALSE(goes_straight(1));  // its nodes are as on the disk
  append_once();
  const uint64_t before = used();
  // Not a block, not at the end, or not where the device can take it from.
  const std::string text(2 * kBlockBytes, 'x');
  const auto attempt = [&](bool append, const char* from, uint64_t bytes, uint64_t offset) {
    return alone([&](const simt::Warp& warp) {
             WriteRequest request{fd_, from, bytes, offset};
             return detail::try_to_append(warp, fs(), opened(), 1u, append, request) ? 1 : 0;
           }) != 0;
  };
  const auto goes = [&](const char* from, uint64_t bytes, uint64_t offset) {
    return attempt(false, from, bytes, offset);
  };
  const auto appends = [&] { return attempt(true, text.data(), kBlockBytes, 0); };
  const uint64_t end = model_.size();
  EXPECT_FALSE(goes(text.data(), 512, end));
  EXPECT_FALSE(goes(text.data(), 2 * kBlockBytes, end));
  EXPECT_FALSE(goes(text.data() + 1, kBlockBytes, end));
  EXPECT_FALSE(goes(nullptr, kBlockBytes, end));
  EXPECT_FALSE(goes(text.data(), kBlockBytes, end - kBlockBytes));
  EXPECT_FALSE(goes(text.data(), kBlockBytes, end + kBlockBytes));
  // Others have what it needs.
  OpenInode& open = opened();
  for (uint32_t* const word : {&open.lock.growing, &open.inode.times_lock, &open.lock.ring_readers,
                               &writer().cleaning.overwriters_awaited}) {
    *word = 1;
    EXPECT_FALSE(appends());
    EXPECT_EQ(*word, 1u);
    *word = 0;
  }
  for (const uint64_t holder : {uint64_t{1}, detail::kOneWriter}) {
    open.lock.holder_counts = holder;
    EXPECT_FALSE(appends());
    EXPECT_EQ(open.lock.holder_counts, holder);
    open.lock.holder_counts = 0;
  }
  for (auto& side : writer().checkpoint_lock.sides) side.inside = f2fs::CheckpointLock::kKeptOut;
  EXPECT_FALSE(appends());
  for (auto& side : writer().checkpoint_lock.sides) {
    EXPECT_EQ(side.inside, f2fs::CheckpointLock::kKeptOut);
    side.inside = 0;
  }
  writer().failed = -EIO;
  EXPECT_FALSE(goes_straight(1));
  writer().failed = 0;
  open.inode.advise = format::kAdviseHot;
  EXPECT_FALSE(goes_straight(1));
  open.inode.advise = 0;
  // Times of another second are not a matter of words.
  fs().clock.lines[0].realtime_ns += 1'000'000'000'000'000;
  EXPECT_FALSE(goes_straight(1));
  fs().clock.lines[0].realtime_ns -= 1'000'000'000'000'000;
  EXPECT_EQ(used(), before);
  ASSERT_TRUE(goes_straight(1));
  EXPECT_EQ(sync_all(), 0);
  EXPECT_FALSE(goes_straight(1));
  expect_contents();
  mount_again();
}

TEST_P(AppendTest, what_the_device_refuses_is_not_there) {
  append_once();
  const uint64_t before = used();
  ssd::FaultRule rule;
  rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
  rule.count = 1;
  writing_->rig().add_fault(rule);
  EXPECT_FALSE(goes_straight(width()));
  writing_->rig().clear_faults();
  EXPECT_EQ(used(), before);
  expect_contents();
  EXPECT_TRUE(goes_straight(width()));
  expect_contents();
  mount_again();
}

TEST_P(AppendTest, an_append_clears_the_set_id_bits) {
  append_once();
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return chmod(warp, fs(), "/file", 04777); }), 0);
  append_once();
  EXPECT_TRUE(goes_straight(1));
  EXPECT_EQ(stat_of_path("/file").mode & 07777u, 04777u);  // which user 0 may leave
  fs().credentials = who(1000, 1000);
  EXPECT_FALSE(goes_straight(1));
  append_once();
  EXPECT_EQ(stat_of_path("/file").mode & 07777u, 0777u);
  EXPECT_TRUE(goes_straight(1));
  fs().credentials = who(0, 0);
  expect_contents();
  mount_again();
}

// Some append, some write over what is there, and one makes all of it durable: no block is lost,
// none is there twice, and each is whole.
TEST_P(AppendTest, many_append_and_others_write_and_sync) {
  fs().time_granularity_ns = 4'000'000;
  constexpr uint32_t kWarps = 5;
  const uint32_t steps = width() == 1 ? 300 : 30;
  std::vector<std::vector<std::string>> buffers(
      kWarps, std::vector<std::string>(width(), std::string(kBlockBytes, ' ')));
  std::atomic<uint32_t> wrong = 0;
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    std::string& mine = buffers[index][warp.thread_rank()];
    for (uint32_t step = 0; step < steps; ++step) {
      if (index == 0) {
        const int error = step % 2 == 0 ? fsync(warp, fs(), fd_) : sync(warp, fs());
        if (error != 0) ++wrong;
        continue;
      }
      // Each block says who has written it, and as his how manieth.
      mine.assign(kBlockBytes, static_cast<char>('A' + index));
      format::store_u64(reinterpret_cast<uint8_t*>(mine.data()),
                        uint64_t{index} << 32 | warp.thread_rank() << 16 | step);
      if (index == 1) {
        const uint64_t place = (step + warp.thread_rank() * 3) % kBlocks * kBlockBytes;
        if (overwrite(warp, mine, place) != int64_t{kBlockBytes}) ++wrong;
      } else if (pwrite_lanes(warp, fs(), {fd_, mine.data(), kBlockBytes, 0}) !=
                 int64_t{kBlockBytes}) {
        ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
  expect_nothing_held();
  const std::string found = contents("/file");
  const uint64_t appended = uint64_t{kWarps - 2} * width() * steps;
  ASSERT_EQ(found.size(), (kBlocks + appended) * kBlockBytes);
  std::set<uint64_t> stamps;
  for (uint64_t block = kBlocks; block < kBlocks + appended; ++block) {
    const std::string bytes = found.substr(block * kBlockBytes, kBlockBytes);
    const uint64_t stamp = format::load_u64(reinterpret_cast<const uint8_t*>(bytes.data()));
    EXPECT_TRUE(stamps.insert(stamp).second);
    EXPECT_EQ(bytes.find_first_not_of(static_cast<char>('A' + (stamp >> 32)), 8),
              std::string::npos);
  }
  mount_again();
  EXPECT_TRUE(contents("/file") == found);
}

}  // namespace
}  // namespace gofs::vfs
