// SPDX-License-Identifier: Apache-2.0
//
// Writes that the lanes of a warp ask for, each for itself: against a model, whatever mixture of
// files, blocks, ends and bad descriptors they are, from several warps, and where the disk fails.
#include "vfs/write_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>
#include <vector>

#include "vfs/changes_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint64_t kLaneBlocks = 200;

class WriteLanesTest : public ChangesTest {
 protected:
  WriteLanesTest()
      : ChangesTest(
            [](image::ImageBuilder& builder) {
              image::FileSpec spec;
              spec.name = "large";
              spec.size_bytes = kLaneBlocks * kBlockBytes;
              spec.content = image::pattern_content(3);
              TestImage::must(builder.add_file(builder.root(), spec));
              spec.name = "other";
              TestImage::must(builder.add_file(builder.root(), spec));
              spec.name = "small";
              spec.size_bytes = 100;
              spec.inline_data = true;
              TestImage::must(builder.add_file(builder.root(), spec));
            },
            testing::with_a_fault()) {}
  /// Calls pwrite_lanes() with a request a lane. Their answers.
  std::vector<int64_t> write_all(const std::vector<WriteRequest>& requests) {
    std::vector<int64_t> answers(requests.size());
    run_alone(width(), [&](const simt::Warp& warp) {
      const uint32_t rank = warp.thread_rank();
      answers[rank] = pwrite_lanes(warp, fs(), requests[rank]);
    });
    return answers;
  }
  /// Leaves bytes behind the end of a file, where it ends within a block.
  void spoil_behind_end(int fd, uint64_t size) {
    f2fs::Volume& volume = fs().volume;
    std::vector<uint8_t> bytes(kBlockBytes);
    run_alone(1, [&](const simt::Warp& warp) {
      const f2fs::Inode& inode =
          fs().open_inodes[find_file(simt::Warp(), fs(), fd)->open_inode].inode;
      f2fs::BlockPlace place{};
      if (size % kBlockBytes == 0 || inode.has_inline_data()) return;
      ASSERT_EQ(f2fs::map_blocks(warp, volume, 1u, inode, size / kBlockBytes, place), 0);
      if (!volume.is_main_block(place.block)) return;
      ASSERT_EQ(f2fs::read_blocks(warp, volume, 1u, place.block, bytes.data()), 0);
      std::fill(bytes.begin() + static_cast<int64_t>(size % kBlockBytes), bytes.end(), 0xEE);
      ASSERT_EQ(f2fs::write_blocks(warp, volume, 1u, place.block, bytes.data()), 0);
    });
  }
};
GOFS_AT_BOTH_WIDTHS(WriteLanesTest);

TEST_P(WriteLanesTest, any_mixture_agrees_with_a_model) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const std::vector<std::string> paths = {"/large", "/other", "/small"};
  std::vector<std::string> models;
  std::vector<int> descriptors;
  for (const std::string& path : paths) {
    models.push_back(contents(path));
    descriptors.push_back(open_file(path, kOpenReadWrite));
    ASSERT_GE(descriptors.back(), 0);
  }
  const int reading = open_file("/large", kOpenReadOnly);
  for (uint32_t step = 0; step < 300; ++step) {
    std::vector<std::string> bytes(width());
    std::vector<WriteRequest> requests(width());
    std::vector<int64_t> wanted(width());
    const uint64_t run = random() % (kLaneBlocks + 4);
    const bool in_a_row = random() % 2 == 0;
    for (uint32_t lane = 0; lane < width(); ++lane) {
      const size_t which = in_a_row ? 0 : random() % paths.size();
      // Each lane other bytes, though not always another block.
      const uint64_t part = kBlockBytes / 4;
      uint64_t offset = (run + lane) * kBlockBytes;
      uint64_t count = kBlockBytes;
      if (!in_a_row) {
        const uint64_t block = which == 2 ? 0 : random() % (kLaneBlocks / width()) * width() + lane;
        offset = block * kBlockBytes + random() % part;
        count = random() % 5 == 0 ? 0 : 1 + random() % (which == 2 ? 20 : 2 * part);
        if (which == 2) offset = lane * 25;
      }
      bytes[lane].assign(count, static_cast<char>('a' + (step + lane) % 26));
      requests[lane] = {descriptors[which], bytes[lane].data(), count, offset};
      wanted[lane] = static_cast<int64_t>(count);
      if (random() % 20 == 0) {
        requests[lane].fd = random() % 2 == 0 ? reading : 1000;
        wanted[lane] = -EBADF;
      } else if (count != 0) {
        std::string& model = models[which];
        if (model.size() < offset + count) model.resize(offset + count);
        model.replace(offset, count, bytes[lane]);
      }
    }
    EXPECT_EQ(write_all(requests), wanted) << "step " << step;
    if (step % 50 != 49) continue;
    for (size_t i = 0; i < paths.size(); ++i) {
      EXPECT_TRUE(contents(paths[i]) == models[i]) << paths[i] << " after step " << step;
    }
  }
  mount_again();
  for (size_t i = 0; i < paths.size(); ++i) EXPECT_TRUE(contents(paths[i]) == models[i]);
}

TEST_P(WriteLanesTest, neighbours_that_become_new_blocks_go_out_in_one_command) {
  fs().writer->writes_over = 0;
  const int fd = open_file("/large", kOpenReadWrite);
  const std::string bytes(uint64_t{width()} * kBlockBytes, 'n');
  std::vector<WriteRequest> requests(width());
  for (uint32_t lane = 0; lane < width(); ++lane) {
    requests[lane] = {fd, bytes.data() + lane * kBlockBytes, kBlockBytes, lane * kBlockBytes};
  }
  write_all(requests);  // whatever is done once
  const uint64_t before = writing_->rig().counters().write_commands;
  EXPECT_EQ(write_all(requests), std::vector<int64_t>(width(), kBlockBytes));
  EXPECT_EQ(writing_->rig().counters().write_commands, before + 1);
  EXPECT_EQ(contents("/large").substr(0, bytes.size()), bytes);
}

TEST_P(WriteLanesTest, of_writes_to_one_block_none_is_lost) {
  const int fd = open_file("/large", kOpenReadWrite);
  std::string model = contents("/large");
  std::vector<std::string> bytes(width());
  std::vector<WriteRequest> requests(width());
  for (uint32_t lane = 0; lane < width(); ++lane) {
    bytes[lane].assign(100, static_cast<char>('A' + lane));
    const uint64_t offset = 7 * kBlockBytes + lane * 100;
    requests[lane] = {fd, bytes[lane].data(), 100, offset};
    model.replace(offset, 100, bytes[lane]);
  }
  EXPECT_EQ(write_all(requests), std::vector<int64_t>(width(), 100));
  EXPECT_TRUE(contents("/large") == model);
}

TEST_P(WriteLanesTest, appends_follow_each_other) {
  const int fd = open_file("/small", kOpenWriteOnly | kOpenAppend);
  const std::string before = contents("/small");
  std::vector<std::string> bytes(width());
  std::vector<WriteRequest> requests(width());
  for (uint32_t lane = 0; lane < width(); ++lane) {
    bytes[lane].assign(3000, static_cast<char>('A' + lane));
    requests[lane] = {fd, bytes[lane].data(), 3000, 0};
  }
  EXPECT_EQ(write_all(requests), std::vector<int64_t>(width(), 3000));
  const std::string after = contents("/small");
  ASSERT_EQ(after.size(), before.size() + 3000 * width());
  for (uint32_t lane = 0; lane < width(); ++lane) {
    EXPECT_NE(after.find(bytes[lane], before.size()), std::string::npos) << lane;
  }
}

TEST_P(WriteLanesTest, blocks_that_lanes_append_go_out_in_one_command) {
  const int fd = open_file("/large", kOpenReadWrite | kOpenAppend);
  const std::string before = contents("/large");
  std::string bytes;
  std::vector<WriteRequest> requests(width());
  for (uint32_t lane = 0; lane < width(); ++lane) {
    bytes.append(kBlockBytes, static_cast<char>('A' + lane));
  }
  for (uint32_t lane = 0; lane < width(); ++lane) {
    requests[lane] = {fd, bytes.data() + lane * kBlockBytes, kBlockBytes, 0};
  }
  write_all(requests);  // whatever is done once
  const uint64_t commands = writing_->rig().counters().write_commands;
  EXPECT_EQ(write_all(requests), std::vector<int64_t>(width(), kBlockBytes));
  EXPECT_EQ(writing_->rig().counters().write_commands, commands + 1);
  mount_again();
  EXPECT_TRUE(contents("/large") == before + bytes + bytes);
}

TEST_P(WriteLanesTest, rows_of_several_blocks_go_out_together) {
  constexpr uint64_t kEach = 3;
  const int fd = open_file("/large", kOpenReadWrite);
  std::string bytes;
  std::vector<WriteRequest> requests(width());
  for (uint32_t lane = 0; lane < width(); ++lane) {
    bytes.append(kEach * kBlockBytes, static_cast<char>('A' + lane));
  }
  for (uint32_t lane = 0; lane < width(); ++lane) {
    const uint64_t offset = lane * kEach * kBlockBytes;
    requests[lane] = {fd, bytes.data() + offset, kEach * kBlockBytes, offset};
  }
  write_all(requests);  // whatever is done once
  const uint64_t commands = writing_->rig().counters().write_commands;
  EXPECT_EQ(write_all(requests), std::vector<int64_t>(width(), kEach * kBlockBytes));
  EXPECT_EQ(writing_->rig().counters().write_commands, commands + 1);
  EXPECT_TRUE(contents("/large").substr(0, bytes.size()) == bytes);
}

TEST_P(WriteLanesTest, rows_agree_with_a_model) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const int fds[] = {open_file("/large", kOpenReadWrite),
                     open_file("/other", kOpenReadWrite | kOpenAppend)};
  std::string models[] = {contents("/large"), contents("/other")};
  for (uint32_t step = 0; step < 200; ++step) {
    const bool append = random() % 2 == 0;
    std::string& model = models[append ? 1 : 0];
    const bool aligned = random() % 4 != 0;
    const bool blind = append && random() % 2 == 0;  // to where the file ends
    uint64_t at = append ? model.size() : random() % (kLaneBlocks * kBlockBytes);
    if (!append && aligned) at &= ~uint64_t{kBlockBytes - 1};
    // The next one may begin elsewhere, or within a block, or be too large to be contiguous.
    std::vector<std::string> bytes(width());
    std::vector<WriteRequest> requests(width());
    std::vector<int64_t> wanted(width());
    for (uint32_t lane = 0; lane < width(); ++lane) {
      const uint64_t in_block = blind ? 0 : at % kBlockBytes;
      const uint64_t to_block = in_block == 0 ? 0 : kBlockBytes - in_block;
      uint64_t count = to_block + random() % 4 * kBlockBytes;
      if (random() % 8 == 0) count += random() % kBlockBytes;
      if (random() % 16 == 0) count += uint64_t{width()} * kBlockBytes;
      bytes[lane].assign(count, static_cast<char>('a' + (step + lane) % 26));
      requests[lane] = {fds[append ? 1 : 0], bytes[lane].data(), count, append ? 0 : at};
      wanted[lane] = static_cast<int64_t>(count);
      if (random() % 16 == 0) {
        requests[lane].fd = 1000;
        wanted[lane] = -EBADF;
        continue;
      }
      if (!append && count != 0) {
        model.resize(std::max<size_t>(model.size(), at + count));
        model.replace(at, count, bytes[lane]);
      }
      at += count + (random() % 8 == 0 ? kBlockBytes : 0);
    }
    EXPECT_EQ(write_all(requests), wanted) << "step " << step;
    if (append) {
      // In any order; each of them whole.
      const std::string after = contents("/other");
      std::vector<std::string> left;
      uint64_t total = 0;
      for (uint32_t lane = 0; lane < width(); ++lane) {
        if (wanted[lane] <= 0) continue;
        total += bytes[lane].size();
        left.push_back(bytes[lane]);
      }
      ASSERT_EQ(after.size(), model.size() + total) << "step " << step;
      for (uint64_t from = model.size(); from < after.size();) {
        const auto found = std::find_if(left.begin(), left.end(), [&](const std::string& one) {
          return after.compare(from, one.size(), one) == 0;
        });
        ASSERT_NE(found, left.end()) << "step " << step;
        from += found->size();
        left.erase(found);
      }
      model = after;
    } else if (step % 8 == 0) {
      ASSERT_TRUE(contents("/large") == model) << "step " << step;
    }
    if (model.size() > 3 * kLaneBlocks * kBlockBytes) {
      const uint64_t size = random() % (kLaneBlocks * kBlockBytes);
      run_alone(1, [&](const simt::Warp& warp) {
        EXPECT_EQ(ftruncate(warp, fs(), fds[append ? 1 : 0], size), 0);
      });
      model.resize(size);
    }
  }
  mount_again();
  EXPECT_TRUE(contents("/large") == models[0]);
  EXPECT_TRUE(contents("/other") == models[1]);
}

TEST_P(WriteLanesTest, of_a_row_on_a_failing_disk_each_lane_learns_what_is_there) {
  constexpr uint64_t kEach = 3;
  const int fd = open_file("/large", kOpenReadWrite);
  std::string model = contents("/large");
  // A lane alone has a command for the part of a block, and one for the row behind it; several have
  // one piece more than there are lanes.
  for (uint64_t commands = 0; commands < (width() == 1 ? 2 : 3); ++commands) {
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
    rule.status = format::nvme::kWriteFault;
    rule.skip = commands;
    writing_->rig().add_fault(rule);
    std::vector<std::string> bytes(width());
    std::vector<WriteRequest> requests(width());
    for (uint32_t lane = 0; lane < width(); ++lane) {
      bytes[lane].assign(kEach * kBlockBytes, static_cast<char>('A' + lane + commands));
      requests[lane] = {fd, bytes[lane].data(), bytes[lane].size(),
                        lane * kEach * kBlockBytes + 100};
      if (lane != 0) requests[lane].offset -= 100;
    }
    requests[0].bytes -= 100;
    const std::vector<int64_t> answers = write_all(requests);
    bool failed = false;
    for (uint32_t lane = 0; lane < width(); ++lane) {
      failed = failed || answers[lane] != static_cast<int64_t>(requests[lane].bytes);
      if (answers[lane] <= 0) {
        EXPECT_EQ(answers[lane], -EIO) << lane;
        continue;
      }
      const auto good = static_cast<uint64_t>(answers[lane]);
      model.replace(requests[lane].offset, good, bytes[lane].substr(0, good));
    }
    EXPECT_TRUE(failed) << commands;
    writing_->rig().clear_faults();
    EXPECT_TRUE(contents("/large") == model) << commands;
  }
  mount_again();
  EXPECT_TRUE(contents("/large") == model);
}

// What lies behind the end of a file, in its last block as well, does not come back.
TEST_P(WriteLanesTest, a_file_grows_by_blocks_anywhere_behind_its_end) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const int fd = open_file("/other", kOpenReadWrite);
  std::string model = contents("/other");
  for (uint32_t step = 0; step < 150; ++step) {
    const uint64_t size = random() % 4 == 0 ? random() % 200 : random() % (40 * kBlockBytes);
    run_alone(1, [&](const simt::Warp& warp) { EXPECT_EQ(ftruncate(warp, fs(), fd, size), 0); });
    model.resize(size);
    spoil_behind_end(fd, size);
    const uint64_t first = size / kBlockBytes + random() % 4;
    std::vector<std::string> bytes(width());
    std::vector<WriteRequest> requests(width());
    std::vector<int64_t> wanted(width());
    for (uint32_t lane = 0; lane < width(); ++lane) {
      const uint64_t back = random() % 3 == 0 ? simt::min<uint64_t>(first, 3) : 0;
      const uint64_t block = first - back + (random() % 2 == 0 ? lane : 3 * lane);
      const uint64_t from = random() % 2 == 0 ? 0 : random() % kBlockBytes;
      const uint64_t count = 1 + random() % (kBlockBytes - from);
      // Of lanes that meet in a block, all write the same.
      bytes[lane].assign(count, static_cast<char>('a' + block % 26));
      requests[lane] = {fd, bytes[lane].data(), count, block * kBlockBytes + from};
      wanted[lane] = static_cast<int64_t>(count);
      model.resize(std::max<size_t>(model.size(), requests[lane].offset + count));
      model.replace(requests[lane].offset, count, bytes[lane]);
    }
    EXPECT_EQ(write_all(requests), wanted) << "step " << step;
    ASSERT_TRUE(contents("/other") == model) << "step " << step;
  }
  mount_again();
  EXPECT_TRUE(contents("/other") == model);
}

/// The blocks of a file from `offset` on, in the order of their contents.
std::vector<std::string> sorted_blocks(const std::string& contents, uint64_t offset,
                                       uint64_t count) {
  std::vector<std::string> blocks;
  for (uint64_t i = 0; i < count; ++i) {
    blocks.push_back(contents.substr(offset + i * kBlockBytes, kBlockBytes));
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

TEST_P(WriteLanesTest, each_write_at_a_position_has_a_range_of_its_own) {
  const int appending = open_file("/other", kOpenWriteOnly | kOpenAppend);
  const int from_start = open_file("/large", kOpenWriteOnly);
  const std::string other = contents("/other");
  std::vector<std::string> appended;
  std::vector<std::string> overwritten;
  std::vector<std::string> bytes(width());
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t lane = 0; lane < width(); ++lane) {
      bytes[lane].assign(kBlockBytes, static_cast<char>(1 + round * width() + lane));
      if (lane % 5 != 4) ((lane + round) % 2 == 0 ? appended : overwritten).push_back(bytes[lane]);
    }
    run_alone(width(), [&](const simt::Warp& warp) {
      const uint32_t lane = warp.thread_rank();
      const int fd = lane % 5 == 4 ? 1000 : (lane + round) % 2 == 0 ? appending : from_start;
      EXPECT_EQ(write_lanes(warp, fs(), {fd, bytes[lane].data(), kBlockBytes, 0}),
                fd == 1000 ? -EBADF : int64_t{kBlockBytes})
          << lane;
    });
    run_alone(1, [&](const simt::Warp& warp) {
      EXPECT_EQ(lseek(warp, fs(), from_start, 0, kSeekCurrent),
                static_cast<int64_t>(overwritten.size() * kBlockBytes));
      if (!appended.empty()) {
        EXPECT_EQ(lseek(warp, fs(), appending, 0, kSeekCurrent),
                  static_cast<int64_t>(other.size() + appended.size() * kBlockBytes));
      }
    });
  }
  std::sort(appended.begin(), appended.end());
  std::sort(overwritten.begin(), overwritten.end());
  EXPECT_EQ(contents("/other").size(), other.size() + appended.size() * kBlockBytes);
  EXPECT_TRUE(sorted_blocks(contents("/other"), other.size(), appended.size()) == appended);
  EXPECT_TRUE(sorted_blocks(contents("/large"), 0, overwritten.size()) == overwritten);
}

TEST_P(WriteLanesTest, a_disk_that_fails_is_told_to_those_it_fails_for) {
  const int fd = open_file("/large", kOpenReadWrite);
  std::string model = contents("/large");
  ssd::FaultRule rule;
  rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
  rule.status = format::nvme::kWriteFault;
  rule.count = 2;
  writing_->rig().add_fault(rule);
  std::vector<std::string> bytes(width());
  std::vector<WriteRequest> requests(width());
  for (uint32_t lane = 0; lane < width(); ++lane) {
    bytes[lane].assign(kBlockBytes, static_cast<char>('A' + lane));
    requests[lane] = {fd, bytes[lane].data(), kBlockBytes, 2 * lane * kBlockBytes};
  }
  const std::vector<int64_t> answers = write_all(requests);
  uint32_t failed = 0;
  for (uint32_t lane = 0; lane < width(); ++lane) {
    if (answers[lane] == -EIO) {
      ++failed;
      continue;
    }
    EXPECT_EQ(answers[lane], kBlockBytes) << lane;
    model.replace(2 * lane * kBlockBytes, kBlockBytes, bytes[lane]);
  }
  EXPECT_LE(failed, 2u);
  if (width() == 1) {
    EXPECT_EQ(failed, 1u);
  }
  writing_->rig().clear_faults();
  EXPECT_TRUE(contents("/large") == model);
  mount_again();
  EXPECT_TRUE(contents("/large") == model);
}

TEST_P(WriteLanesTest, warps_write_one_file_side_by_side) {
  constexpr uint32_t kWarps = 4;
  const int fd = open_file("/large", kOpenReadWrite);
  const std::string before = contents("/large");
  const uint64_t each = kLaneBlocks / (kWarps * width());
  std::vector<std::string> blocks(kWarps * width());
  testing::run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t number = index * width() + warp.thread_rank();
    blocks[number].assign(kBlockBytes, static_cast<char>('a' + number));
    for (uint64_t i = 0; i < each; ++i) {
      const uint64_t block = i * kWarps * width() + number;
      EXPECT_EQ(
          pwrite_lanes(warp, fs(), {fd, blocks[number].data(), kBlockBytes, block * kBlockBytes}),
          int64_t{kBlockBytes});
    }
  });
  std::string model = before;
  for (uint64_t block = 0; block < each * kWarps * width(); ++block) {
    model.replace(block * kBlockBytes, kBlockBytes, blocks[block % (kWarps * width())]);
  }
  EXPECT_TRUE(contents("/large") == model);
  mount_again();
  EXPECT_TRUE(contents("/large") == model);
}

// Each block is always what one write has left there, whoever else writes it or reads it, and
// however much at once.
TEST_P(WriteLanesTest, blocks_that_many_write_are_whole) {
  constexpr uint32_t kWarps = 4;
  constexpr uint64_t kHotBlocks = 6;
  const uint32_t turns = width() == 1 ? 120 : 40;
  const int fd = open_file("/large", kOpenReadWrite);
  {
    const std::string even(kHotBlocks * kBlockBytes, 'x');
    ASSERT_EQ(pwrite_file(fd, even, 0), static_cast<int64_t>(even.size()));
  }
  const uint64_t seed = printed_seed();
  std::vector<std::string> buffers(kWarps * width(), std::string(3 * kBlockBytes, '\0'));
  testing::run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t number = index * width() + warp.thread_rank();
    std::string& own = buffers[number];
    for (uint32_t turn = 0; turn < turns; ++turn) {
      const uint64_t random = warp.shfl(image::pattern_word(seed + index, turn), 0);
      if (index == 0 && turn % 4 == 0) {
        // Three blocks at once, by the warp.
        std::string& all = buffers[index * width()];
        if (warp.thread_rank() == 0)
          all.assign(3 * kBlockBytes, static_cast<char>('A' + turn % 26));
        warp.sync();
        const uint64_t at = random % (kHotBlocks - 2) * kBlockBytes;
        EXPECT_EQ(pwrite(warp, fs(), fd, all.data(), 3 * kBlockBytes, at),
                  3 * int64_t{kBlockBytes});
      } else if (index == 1 && turn % 3 == 0) {
        const uint64_t at = (random + warp.thread_rank()) % kHotBlocks * kBlockBytes;
        EXPECT_EQ(pread_lanes(warp, fs(), {fd, own.data(), kBlockBytes, at}), int64_t{kBlockBytes});
        EXPECT_EQ(own.find_first_not_of(own[0], 0), kBlockBytes) << turn;
      } else {
        own.assign(kBlockBytes, static_cast<char>('a' + (turn + number) % 26));
        own.append(2 * kBlockBytes, '\0');
        const uint64_t at = (random >> 8 * (warp.thread_rank() % 4)) % kHotBlocks * kBlockBytes;
        EXPECT_EQ(pwrite_lanes(warp, fs(), {fd, own.data(), kBlockBytes, at}),
                  int64_t{kBlockBytes});
      }
    }
  });
  const std::string after = contents("/large");
  for (uint64_t block = 0; block < kHotBlocks; ++block) {
    const std::string one = after.substr(block * kBlockBytes, kBlockBytes);
    EXPECT_EQ(one, std::string(kBlockBytes, one[0])) << block;
  }
  const std::string model = after;
  mount_again();
  EXPECT_TRUE(contents("/large") == model);
}

}  // namespace
}  // namespace gofs::vfs
