// SPDX-License-Identifier: Apache-2.0
//
// Small writes by callers of every kind: whether one goes over the block that the file has depends
// on the request alone, not on the scope that asks, on the number of parts, or on what the lanes
// beside it ask for.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "vfs/changes_for_test.hpp"
#include "vfs/fallocate.h"
#include "vfs/near_group.h"

namespace gofs::vfs {
namespace {

constexpr uint64_t kStayingBlocks = 200;
constexpr uint64_t kStayingTail = 700;  // of the last block
constexpr uint32_t kStayingSharers = 3;

/// A call that writes `bytes` at `offset`, where the position of `fd` is, too.
struct SmallCall {
  const char* name;
  std::function<int64_t(int fd, const std::string& bytes, uint64_t offset)> write;
};

class WriteInPlaceTest : public ChangesTest {
 protected:
  WriteInPlaceTest()
      : ChangesTest([](image::ImageBuilder& builder) {
          image::FileSpec spec;
          spec.name = "file";
          spec.attributes = {.mode = 0666, .uid = 0, .gid = 0};
          spec.size_bytes = kStayingBlocks * kBlockBytes + kStayingTail;
          spec.content = image::pattern_content(5);
          TestImage::must(builder.add_file(builder.root(), spec));
        }) {
    fd_ = open_file("/file", kOpenReadWrite);
    model_ = contents("/file");
  }
  OpenInode& opened() { return fs().open_inodes[fs().descriptors[fd_].open_inode]; }
  uint32_t block_of(uint64_t index) {
    uint32_t block = 0;
    alone([&](const simt::Warp& warp) {
      f2fs::BlockPlace place{};
      EXPECT_EQ(f2fs::map_blocks(warp, fs().volume, 1u, opened().inode, index, place), 0);
      if (warp.thread_rank() == 0) block = place.block;
      return 0;
    });
    return block;
  }
  std::vector<uint32_t> blocks_of(const std::vector<WriteRequest>& requests) {
    std::vector<uint32_t> blocks;
    for (const WriteRequest& request : requests) {
      blocks.push_back(block_of(request.offset / kBlockBytes));
    }
    return blocks;
  }
  /// The times are set already, as most find them within one tick of the clock.
  void note_times() {
    opened().inode.times_set_ns = f2fs::nanoseconds_of(time_now(fs())) + 500'000'000;
  }
  std::string next_bytes(uint64_t count) {
    letter_ = letter_ == 'z' ? 'a' : static_cast<char>(letter_ + 1);
    return std::string(count, letter_);
  }
  void put_in_model(const std::string& bytes, uint64_t offset) {
    if (model_.size() < offset + bytes.size()) model_.resize(offset + bytes.size());
    model_.replace(offset, bytes.size(), bytes);
  }
  /// Writes so; whether that went over what was there.
  bool stays(const SmallCall& call, uint64_t offset, uint64_t count) {
    const std::string bytes = next_bytes(count);
    const uint64_t index = offset / kBlockBytes;
    const uint32_t before = block_of(index);
    alone([&](const simt::Warp& warp) {
      return lseek(warp, fs(), fd_, static_cast<int64_t>(offset), kSeekSet);
    });
    EXPECT_EQ(call.write(fd_, bytes, offset), static_cast<int64_t>(count)) << call.name;
    EXPECT_EQ(opened().lock.holder_counts, 0u) << call.name;
    put_in_model(bytes, offset);
    return block_of(index) == before;
  }
  /// Each lane writes its request. They are in the model afterwards.
  void write_lanes_of(const std::vector<WriteRequest>& requests) {
    run_alone(width(), [&](const simt::Warp& warp) {
      const WriteRequest& mine = requests[warp.thread_rank()];
      EXPECT_EQ(pwrite_lanes(warp, fs(), mine), static_cast<int64_t>(mine.bytes));
    });
    EXPECT_EQ(opened().lock.holder_counts, 0u);
    for (const WriteRequest& request : requests) {
      put_in_model({static_cast<const char*>(request.buffer), request.bytes}, request.offset);
    }
  }
  WriteRequest request(uint64_t offset, uint64_t bytes) {
    texts_.push_back(std::make_unique<std::string>(next_bytes(bytes)));
    return {fd_, texts_.back()->data(), bytes, offset};
  }
  void expect_contents() { EXPECT_TRUE(contents("/file") == model_); }

  /// By the first lane of a warp, the others ask for nothing.
  SmallCall by_lane(const char* name, bool at_position) {
    return {name, [this, at_position](int fd, const std::string& bytes, uint64_t offset) {
              return alone([&](const simt::Warp& warp) {
                const uint64_t count = warp.thread_rank() == 0 ? bytes.size() : 0;
                const WriteRequest mine{fd, bytes.data(), count, offset};
                return at_position ? write_lanes(warp, fs(), mine) : pwrite_lanes(warp, fs(), mine);
              });
            }};
  }
  /// `call(warp, fs, fd, parts, count, offset)` by a warp, of parts of `part_bytes`.
  template <typename Call>
  SmallCall by_warp(const char* name, uint64_t part_bytes, Call call) {
    return {name, [this, part_bytes, call](int fd, const std::string& bytes, uint64_t offset) {
              const std::vector<IoVector> parts = divide(bytes, part_bytes);
              return alone([&](const simt::Warp& warp) {
                return call(warp, fs(), fd, parts.data(), static_cast<int>(parts.size()), offset);
              });
            }};
  }
  /// The same by several warps, as those of a grid.
  template <typename Call>
  SmallCall by_group(const char* name, uint64_t part_bytes, Call call) {
    return {name, [this, part_bytes, call](int fd, const std::string& bytes, uint64_t offset) {
              const std::vector<IoVector> parts = divide(bytes, part_bytes);
              return answer_of_group(kStayingSharers, width(), barrier_,
                                     [&](const simt::GridGroup& group) {
                                       return call(group, fs(), fd, parts.data(),
                                                   static_cast<int>(parts.size()), offset);
                                     });
            }};
  }
  static std::vector<IoVector> divide(const std::string& bytes, uint64_t part_bytes) {
    std::vector<IoVector> parts;
    for (uint64_t from = 0; from < bytes.size(); from += part_bytes) {
      parts.push_back({const_cast<char*>(bytes.data()) + from,
                       simt::min<uint64_t>(part_bytes, bytes.size() - from)});
      if (part_bytes < kBlockBytes) parts.push_back({nullptr, 0});
    }
    return parts;
  }
  /// Calls of a warp or of a lane with one part.
  std::vector<SmallCall> lone_calls() {
    return {
        by_lane("pwrite_lanes", false),
        by_lane("write_lanes", true),
        by_warp("pwrite", kBlockBytes,
                [](auto warp, Filesystem& on, int fd, const IoVector* parts, int, uint64_t offset) {
                  return pwrite(warp, on, fd, parts->base, parts->bytes, offset);
                }),
        by_warp("write", kBlockBytes,
                [](auto warp, Filesystem& on, int fd, const IoVector* parts, int, uint64_t) {
                  return write(warp, on, fd, parts->base, parts->bytes);
                }),
        by_warp("pwritev", kBlockBytes, pwritev_of_warp),
        by_warp("writev", kBlockBytes, writev_of_warp),
        by_warp("pwritev_near", kBlockBytes,
                [](auto warp, Filesystem& on, int fd, const IoVector* parts, int count,
                   uint64_t offset) { return pwritev_near(warp, on, fd, parts, count, offset); }),
        by_warp("writev_near", kBlockBytes,
                [](auto warp, Filesystem& on, int fd, const IoVector* parts, int count, uint64_t) {
                  return writev_near(warp, on, fd, parts, count);
                }),
    };
  }
  /// Those of several warps, and of several parts.
  std::vector<SmallCall> shared_calls() {
    return {
        by_warp("pwritev of parts", 100, pwritev_of_warp),
        by_warp("writev of parts", 100, writev_of_warp),
        by_group("pwritev_together", kBlockBytes, pwritev_of_group),
        by_group("pwritev_together of parts", 100, pwritev_of_group),
        by_group("writev_together", kBlockBytes,
                 [this](const simt::GridGroup& group, Filesystem& on, int fd, const IoVector* parts,
                        int count, uint64_t) {
                   return writev_together(group, on, shared_, fd, parts, count);
                 }),
        by_group("pwritev_together_near", kBlockBytes,
                 [this](const simt::GridGroup& group, Filesystem& on, int fd, const IoVector* parts,
                        int count, uint64_t offset) {
                   return pwritev_together_near(group, on, bounce_, shared_, fd, parts, count,
                                                offset);
                 }),
        {"pwritev_together of a block",
         [this](int fd, const std::string& bytes, uint64_t offset) {
           const IoVector part = detail::one_part(bytes.data(), bytes.size());
           return alone([&](const simt::Warp& warp) {
             const auto group = simt::BlockGroup<simt::Warp>::current(warp);
             return pwritev_together(group, fs(), shared_, fd, &part, 1, offset);
           });
         }},
    };
  }

  int fd_ = -1;
  std::string model_;
  char letter_ = 'a';
  std::vector<std::unique_ptr<std::string>> texts_;
  simt::Barrier barrier_{};
  SharedWrite shared_{};
  SharedBounce bounce_{};

  static int64_t pwritev_of_warp(const simt::Warp& warp, Filesystem& on, int fd,
                                 const IoVector* parts, int count, uint64_t offset) {
    return pwritev(warp, on, fd, parts, count, offset);
  }
  static int64_t writev_of_warp(const simt::Warp& warp, Filesystem& on, int fd,
                                const IoVector* parts, int count, uint64_t) {
    return writev(warp, on, fd, parts, count);
  }
  static int64_t pwritev_of_group(const simt::GridGroup& group, Filesystem& on, int fd,
                                  const IoVector* parts, int count, uint64_t offset) {
    return pwritev_together(group, on, on.grids.meetings[0].write, fd, parts, count, offset);
  }
};
INSTANTIATE_TEST_SUITE_P(width, WriteInPlaceTest,
                         ::testing::ValuesIn(gofs::testing::widths({1, 4, 32})),
                         ::testing::PrintToStringParamName());

// Every other way notes that it has looked for a capability of the file.
TEST_P(WriteInPlaceTest, a_lone_part_takes_the_straight_way_by_every_call) {
  for (const SmallCall& call : lone_calls()) {
    note_times();
    opened().inode.capability_looks = 0;
    EXPECT_TRUE(stays(call, 3 * kBlockBytes, kBlockBytes)) << call.name;
    EXPECT_TRUE(stays(call, 5 * kBlockBytes + 512, 1024)) << call.name;
    EXPECT_EQ(opened().inode.capability_looks, 0u) << call.name;
  }
  expect_contents();
}

TEST_P(WriteInPlaceTest, a_small_write_stays_whoever_asks) {
  std::vector<SmallCall> calls = lone_calls();
  for (SmallCall& call : shared_calls()) calls.push_back(std::move(call));
  const uint64_t used = fs().volume.valid_block_count;
  for (const SmallCall& call : calls) {
    for (const bool noted : {false, true}) {
      opened().inode.times_set_ns = 0;
      if (noted) note_times();
      EXPECT_TRUE(stays(call, 7 * kBlockBytes, kBlockBytes)) << call.name;
      EXPECT_TRUE(stays(call, 8 * kBlockBytes + 77, 301)) << call.name;
      EXPECT_TRUE(stays(call, 9 * kBlockBytes + kBlockBytes - 1, 1)) << call.name;
      EXPECT_TRUE(stays(call, kStayingBlocks * kBlockBytes, kStayingTail)) << call.name;
      EXPECT_EQ(fs().volume.valid_block_count, used) << call.name;
    }
  }
  expect_contents();
  mount_again();
  expect_contents();
}

TEST_P(WriteInPlaceTest, what_may_not_be_written_over_goes_to_new_blocks_whoever_asks) {
  std::vector<SmallCall> calls = lone_calls();
  for (SmallCall& call : shared_calls()) calls.push_back(std::move(call));
  uint64_t end = model_.size();
  uint64_t hole = 100 * kBlockBytes;
  for (const SmallCall& call : calls) {
    note_times();
    EXPECT_FALSE(stays(call, 12 * kBlockBytes - 100, 200)) << call.name;  // of two blocks
    EXPECT_FALSE(stays(call, end - 10, 20)) << call.name;                 // behind the end
    end += 10;
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                return fallocate(warp, fs(), fd_, kFallocatePunchHole | kFallocateKeepSize, hole,
                                 kBlockBytes);
              }),
              0);
    model_.replace(hole, kBlockBytes, std::string(kBlockBytes, '\0'));
    EXPECT_FALSE(stays(call, hole + 512, 512)) << call.name;
    EXPECT_TRUE(stays(call, hole + 1024, 512)) << call.name;
    hole += kBlockBytes;
    fs().writer->writes_over = 0;  // mode=lfs
    EXPECT_FALSE(stays(call, 20 * kBlockBytes, 512)) << call.name;
    fs().writer->writes_over = 1;
    EXPECT_TRUE(stays(call, 20 * kBlockBytes, 512)) << call.name;
  }
  EXPECT_EQ(stat_of_path("/file").size_bytes, end);
  expect_contents();
  mount_again();
  expect_contents();
}

TEST_P(WriteInPlaceTest, small_appends_of_several_warps_follow_each_other) {
  const int appending = open_file("/file", kOpenWriteOnly | kOpenAppend);
  for (const uint64_t count : {100u, 4096u}) {
    const std::string bytes = next_bytes(count);
    const IoVector part = detail::one_part(bytes.data(), bytes.size());
    const auto write_by_all = [&](bool at_position) {
      return answer_of_group(kStayingSharers, width(), barrier_, [&](const simt::GridGroup& group) {
        return at_position ? writev_together(group, fs(), shared_, appending, &part, 1)
                           : pwritev_together(group, fs(), shared_, appending, &part, 1, 0);
      });
    };
    for (const bool at_position : {false, true}) {
      EXPECT_EQ(write_by_all(at_position), static_cast<int64_t>(count));
      put_in_model(bytes, model_.size());
    }
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                return lseek(warp, fs(), appending, 0, kSeekCurrent);
              }),
              static_cast<int64_t>(model_.size()));
  }
  expect_contents();
  const std::string one = "x";
  const int reading = open_file("/file", kOpenReadOnly);
  for (const SmallCall& call : shared_calls()) {
    EXPECT_EQ(call.write(reading, one, 0), -EBADF) << call.name;
    EXPECT_EQ(call.write(-1, one, 0), -EBADF) << call.name;
  }
  expect_contents();
}

TEST_P(WriteInPlaceTest, small_parts_are_one_command_wherever_they_go) {
  fs().writer->writes_over = 0;
  const std::vector<SmallCall> calls = shared_calls();
  stays(calls[0], 60 * kBlockBytes, kBlockBytes);  // whatever is done once
  for (const SmallCall& call : calls) {
    const uint64_t before = writing_->rig().counters().write_commands;
    EXPECT_FALSE(stays(call, 60 * kBlockBytes, kBlockBytes)) << call.name;
    EXPECT_EQ(writing_->rig().counters().write_commands, before + 1) << call.name;
  }
  expect_contents();
}

TEST_P(WriteInPlaceTest, without_spare_memory_small_parts_are_written_one_by_one) {
  std::vector<Bounce> taken;
  for (;;) {
    const Bounce bounce = try_take_bounce(fs().bounces, 1, 1);
    if (bounce.bytes == 0) break;
    taken.push_back(bounce);
  }
  const uint64_t patience_ns = fs().lock_timeout_ns;
  fs().lock_timeout_ns = 2'000'000;
  for (const SmallCall& call : shared_calls()) {
    if (std::string(call.name).find("near") != std::string::npos) continue;
    stays(call, 61 * kBlockBytes + 100, 500);
    stays(call, model_.size() - 10, 350);
  }
  fs().lock_timeout_ns = patience_ns;
  expect_contents();
  for (const Bounce& bounce : taken) release_bounce(bounce);
  EXPECT_TRUE(stays(shared_calls()[0], 61 * kBlockBytes, 500));
  EXPECT_EQ(bounce_bytes_used(simt::Warp(), fs().bounces), 0u);
  expect_contents();
}

TEST_P(WriteInPlaceTest, lanes_that_write_parts_of_one_block_stay) {
  std::vector<WriteRequest> requests;
  for (uint32_t lane = 0; lane < width(); ++lane) {
    requests.push_back(request(30 * kBlockBytes + lane * 100, 100));
  }
  const uint32_t before = block_of(30);
  write_lanes_of(requests);
  EXPECT_EQ(block_of(30), before);
  expect_contents();
}

TEST_P(WriteInPlaceTest, a_lane_stays_beside_those_that_ask_for_several_blocks) {
  for (const bool in_a_row : {false, true}) {
    // One request of a block, the others are behind it, or anywhere.
    std::vector<WriteRequest> requests;
    for (uint32_t lane = 0; lane < width(); ++lane) {
      const uint64_t index = lane == 0 ? 40 : in_a_row ? 39 + 2 * lane : 42 + 4 * lane;
      requests.push_back(request(index * kBlockBytes, lane == 0 ? kBlockBytes : 2 * kBlockBytes));
    }
    const std::vector<uint32_t> before = blocks_of(requests);
    write_lanes_of(requests);
    const std::vector<uint32_t> after = blocks_of(requests);
    for (uint32_t lane = 0; lane < width(); ++lane) {
      EXPECT_EQ(after[lane] == before[lane], lane == 0) << lane << (in_a_row ? " in a row" : "");
    }
  }
  expect_contents();
}

TEST_P(WriteInPlaceTest, lanes_stay_beside_those_behind_the_end) {
  std::vector<WriteRequest> requests;
  for (uint32_t lane = 0; lane < width(); ++lane) {
    const uint64_t index = lane % 2 == 0 ? lane : kStayingBlocks + 1 + lane;
    requests.push_back(request(index * kBlockBytes, 512));
  }
  const std::vector<uint32_t> before = blocks_of(requests);
  write_lanes_of(requests);
  const std::vector<uint32_t> after = blocks_of(requests);
  for (uint32_t lane = 0; lane < width(); ++lane) {
    EXPECT_EQ(after[lane] == before[lane], lane % 2 == 0) << lane;
  }
  expect_contents();
  mount_again();
  expect_contents();
}

TEST_P(WriteInPlaceTest, lanes_stay_beside_those_that_fill_holes) {
  const auto punch = [&](uint64_t index) {
    model_.replace(index * kBlockBytes, kBlockBytes, std::string(kBlockBytes, '\0'));
    return alone([&](const simt::Warp& warp) {
      return fallocate(warp, fs(), fd_, kFallocatePunchHole | kFallocateKeepSize,
                       index * kBlockBytes, kBlockBytes);
    });
  };
  std::vector<WriteRequest> requests;
  for (uint32_t lane = 0; lane < width(); ++lane) {
    EXPECT_EQ(lane % 3 == 1 ? punch(50 + lane) : 0, 0);
    requests.push_back(request((50 + lane) * kBlockBytes + 512, 1024));
  }
  const std::vector<uint32_t> before = blocks_of(requests);
  write_lanes_of(requests);
  const std::vector<uint32_t> after = blocks_of(requests);
  for (uint32_t lane = 0; lane < width(); ++lane) {
    EXPECT_EQ(after[lane] == before[lane], lane % 3 != 1) << lane;
  }
  expect_contents();
}

}  // namespace
}  // namespace gofs::vfs
