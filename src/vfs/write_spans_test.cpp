// SPDX-License-Identifier: Apache-2.0
//
// Requests of several blocks that the lanes of a warp write at any places of a file: against a
// model, and where many warps write over each other, whether what is left is what some order of
// whole requests leaves. Warps of 3 lanes are like those parts of one that CUDA leaves together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "vfs/changes_for_test.hpp"
#include "vfs/write_lanes.h"

namespace gofs::vfs {
namespace {

constexpr uint64_t kFileBlocks = 400;
constexpr uint64_t kWordBytes = 8;
/// The fewest that there may be: many blocks share one, and spans go over the table's end.
constexpr uint32_t kFewQueues = detail::kSpanBlocksMax;

class WriteSpansTest : public ChangesTest {
 protected:
  WriteSpansTest()
      : ChangesTest(
            [](image::ImageBuilder& builder) {
              image::FileSpec spec;
              spec.size_bytes = kFileBlocks * kBlockBytes;
              spec.content = image::pattern_content(3);
              for (const char* const name : {"one", "two"}) {
                spec.name = name;
                TestImage::must(builder.add_file(builder.root(), spec));
              }
            },
            testing::with_a_fault()) {}
  std::vector<int64_t> write_all(const std::vector<WriteRequest>& requests) {
    std::vector<int64_t> answers(requests.size());
    run_alone(width(), [&](const simt::Warp& warp) {
      const uint32_t rank = warp.thread_rank();
      answers[rank] = pwrite_lanes(warp, fs(), requests[rank]);
    });
    return answers;
  }
  void expect_lock_free(int fd) {
    const RangeLock& lock = fs().open_inodes[find_file(simt::Warp(), fs(), fd)->open_inode].lock;
    EXPECT_EQ(lock.holder_counts, 0u);
    for (uint32_t i = 0; i <= fs().block_queue_mask; ++i) {
      EXPECT_EQ(fs().block_queues[i].next, fs().block_queues[i].serving) << i;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(width, WriteSpansTest,
                         ::testing::ValuesIn(gofs::testing::widths({3, 4, 32})),
                         ::testing::PrintToStringParamName());

TEST_P(WriteSpansTest, any_mixture_agrees_with_a_model) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const int fds[] = {open_file("/one", kOpenReadWrite), open_file("/two", kOpenReadWrite)};
  std::string models[] = {contents("/one"), contents("/two")};
  for (uint32_t step = 0; step < 120; ++step) {
    if (step % 40 == 0) fs().block_queue_mask = (step % 80 == 0 ? kFewQueues : 65536) - 1;
    // Each lane has a part of one of the files, and of the last one the file's end.
    const uint64_t part = models[0].size() / width() & ~(kBlockBytes - 1);
    std::vector<std::string> bytes(width());
    std::vector<WriteRequest> requests(width());
    std::vector<int64_t> wanted(width());
    for (uint32_t lane = 0; lane < width(); ++lane) {
      const size_t which = random() % 8 == 0 ? 1 : 0;
      const bool aligned = random() % 2 == 0;
      uint64_t from = random() % part;
      uint64_t count = random() % (random() % 4 == 0 ? part : 6 * kBlockBytes);
      if (aligned) from &= ~uint64_t{kBlockBytes - 1};
      if (aligned && count > kBlockBytes) count &= ~uint64_t{kBlockBytes - 1};
      // Whole blocks are a lane's own: who writes parts of one at the same time has an order.
      count = std::min(count, part - from);
      const bool grows = lane + 1 == width() && random() % 8 == 0;
      if (grows) count += kBlockBytes + random() % kBlockBytes;
      bytes[lane].assign(count, static_cast<char>('a' + (step + lane) % 26));
      for (uint64_t i = 0; i < count; i += 61) bytes[lane][i] = static_cast<char>(random());
      const uint64_t offset = lane * part + from;
      requests[lane] = {fds[which], bytes[lane].data(), count, offset};
      wanted[lane] = static_cast<int64_t>(count);
      if (random() % 16 == 0) {
        requests[lane].fd = 1000;
        wanted[lane] = -EBADF;
        continue;
      }
      if (count == 0) continue;
      models[which].resize(std::max<size_t>(models[which].size(), offset + count));
      models[which].replace(offset, count, bytes[lane]);
    }
    EXPECT_EQ(write_all(requests), wanted) << "step " << step;
    if (step % 8 != 7) continue;
    ASSERT_TRUE(contents("/one") == models[0]) << "step " << step;
    ASSERT_TRUE(contents("/two") == models[1]) << "step " << step;
  }
  for (const int fd : fds) expect_lock_free(fd);
  mount_again();
  EXPECT_TRUE(contents("/one") == models[0]);
  EXPECT_TRUE(contents("/two") == models[1]);
}

// Neighbouring lanes' buffers follow each other, and so do new blocks: one round, one command.
TEST_P(WriteSpansTest, blocks_of_all_lanes_fill_rounds) {
  constexpr uint64_t kEach = 2;
  const int fd = open_file("/one", kOpenReadWrite);
  std::string model = contents("/one");
  std::string bytes;
  std::vector<WriteRequest> requests(width());
  for (uint32_t lane = 0; lane < width(); ++lane) {
    bytes.append(kEach * kBlockBytes, static_cast<char>('A' + lane));
  }
  for (uint32_t lane = 0; lane < width(); ++lane) {
    const uint64_t offset = (lane * 7 + 5) % (kFileBlocks / 10) * 10 * kBlockBytes;
    const char* const from = bytes.data() + lane * kEach * kBlockBytes;
    requests[lane] = {fd, from, kEach * kBlockBytes, offset};
    model.replace(offset, kEach * kBlockBytes, from, kEach * kBlockBytes);
  }
  write_all(requests);  // whatever is done once
  const uint64_t commands = writing_->rig().counters().write_commands;
  EXPECT_EQ(write_all(requests), std::vector<int64_t>(width(), kEach * kBlockBytes));
  EXPECT_EQ(writing_->rig().counters().write_commands, commands + 1);
  EXPECT_TRUE(contents("/one") == model);
}

// Requests of all sizes beside each other, over holes and blocks, around the ends of nodes.
TEST_P(WriteSpansTest, rows_of_lanes_agree_with_a_model) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  constexpr uint64_t kBlocks = 2100;
  const int fd = open_file("/one", kOpenReadWrite);
  std::string model = contents("/one");
  model.resize(kBlocks * kBlockBytes);
  ASSERT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd, model.size()); }),
            0);
  const uint64_t part = kBlocks / width();
  for (uint32_t step = 0; step < 40; ++step) {
    fs().volume.array.chunk_mask = step % 4 == 3 ? 3 : ~0u;
    const uint64_t most = simt::min<uint64_t>(part, step % 2 == 0 ? 33 : 5);
    std::vector<std::string> bytes(width());
    std::vector<WriteRequest> requests(width());
    std::vector<int64_t> wanted(width());
    for (uint32_t lane = 0; lane < width(); ++lane) {
      const uint64_t blocks = 1 + random() % most;
      const uint64_t skipped = random() % 4 == 0 ? random() % kBlockBytes : 0;
      const uint64_t cut = random() % 4 == 0 ? random() % (kBlockBytes - skipped) : 0;
      const uint64_t count = blocks * kBlockBytes - skipped - cut;
      const uint64_t offset =
          (lane * part + random() % (part - blocks + 1)) * kBlockBytes + skipped;
      const uint64_t odd = random() % 6 == 0 ? 1 : 0;  // memory that the device does not take
      bytes[lane].resize(odd + count);
      std::generate(bytes[lane].begin(), bytes[lane].end(),
                    [&] { return static_cast<char>(random()); });
      requests[lane] = {fd, bytes[lane].data() + odd, count, offset};
      wanted[lane] = static_cast<int64_t>(count);
      model.replace(offset, count, bytes[lane], odd, count);
    }
    EXPECT_EQ(write_all(requests), wanted) << "step " << step;
    if (step % 8 == 7) {
      ASSERT_TRUE(contents("/one") == model) << "step " << step;
    }
  }
  fs().volume.array.chunk_mask = ~0u;
  expect_lock_free(fd);
  mount_again();
  EXPECT_TRUE(contents("/one") == model);
}

// A thread that holds the file exclusively, or reads it, is waited for as by all others.
TEST_P(WriteSpansTest, who_reads_the_file_is_waited_for) {
  const int fd = open_file("/one", kOpenReadWrite);
  RangeLock& lock = fs().open_inodes[find_file(simt::Warp(), fs(), fd)->open_inode].lock;
  const std::string before = contents("/one");
  const std::string bytes(3 * kBlockBytes, 'w');
  std::vector<WriteRequest> requests(width());
  for (uint32_t lane = 0; lane < width(); ++lane) {
    requests[lane] = {fd, bytes.data(), bytes.size(), (lane * 5 + 1) * kBlockBytes};
  }
  fs().lock_timeout_ns = 1'000'000;
  RangeHold hold{};
  run_alone(width(), [&](const simt::Warp& warp) {
    RangeHold mine{};
    const auto deadline = simt::Deadline::after_ns(1'000'000'000);
    EXPECT_EQ(lock_shared(warp, lock, whole_file(), deadline, mine), 0);
    if (warp.thread_rank() == 0) hold = mine;
  });
  EXPECT_EQ(write_all(requests), std::vector<int64_t>(width(), -ETIMEDOUT));
  run_alone(width(), [&](const simt::Warp& warp) { unlock_shared(warp, lock, hold); });
  EXPECT_TRUE(contents("/one") == before);
  EXPECT_EQ(write_all(requests), std::vector<int64_t>(width(), 3 * kBlockBytes));
  expect_lock_free(fd);
}

// The command of one round fails, and as many of those by which lanes go on alone.
TEST_P(WriteSpansTest, on_a_failing_disk_each_lane_learns_what_is_there) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const int fd = open_file("/one", kOpenReadWrite);
  std::string model = contents("/one");
  const uint64_t part = kFileBlocks / width();
  uint32_t short_writes = 0;
  uint32_t failures = 0;
  uint32_t recovered = 0;
  for (uint32_t step = 0; step < 60; ++step) {
    // So that there is room for all that is written below: a checkpoint whose last command failed
    // would be the last one, and the volume could only be read from then on.
    ASSERT_EQ(writing_->checkpoint(false), 0);
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
    rule.status = format::nvme::kWriteFault;
    rule.skip = random() % (3 * width());
    rule.count = 1 + random() % (step % 2 == 0 ? 2 : 2 * width());
    writing_->rig().add_fault(rule);
    std::vector<std::string> bytes(width());
    std::vector<WriteRequest> requests(width());
    for (uint32_t lane = 0; lane < width(); ++lane) {
      const uint64_t blocks = 2 + random() % (simt::min<uint64_t>(part, 20) - 3);
      const uint64_t from = random() % (part - blocks) * kBlockBytes + random() % 3 * 100;
      bytes[lane].assign(blocks * kBlockBytes - 200, static_cast<char>('A' + lane + step));
      requests[lane] = {fd, bytes[lane].data(), bytes[lane].size(),
                        lane * part * kBlockBytes + from};
    }
    const std::vector<int64_t> answers = write_all(requests);
    writing_->rig().clear_faults();
    bool all_good = true;
    for (uint32_t lane = 0; lane < width(); ++lane) {
      if (answers[lane] < 0) {
        EXPECT_EQ(answers[lane], -EIO) << lane;
        ++failures;
        all_good = false;
        continue;
      }
      EXPECT_NE(answers[lane], 0) << lane;
      const auto good = static_cast<uint64_t>(answers[lane]);
      ASSERT_LE(good, bytes[lane].size()) << lane;
      if (good < bytes[lane].size()) ++short_writes;
      all_good = all_good && good == bytes[lane].size();
      model.replace(requests[lane].offset, good, bytes[lane].substr(0, good));
    }
    if (all_good) ++recovered;
    ASSERT_TRUE(contents("/one") == model) << "step " << step;
  }
  EXPECT_NE(failures, 0u);
  EXPECT_NE(short_writes, 0u);
  EXPECT_NE(recovered, 0u);
  expect_lock_free(fd);
  mount_again();
  EXPECT_TRUE(contents("/one") == model);
}

// --- Many warps. ---------------------------------------------------------------------------------

/// A request that was written: all of its words say which one it was.
struct Put {
  uint64_t first;  // words
  uint64_t count;
  uint32_t writer;
  uint32_t turn;  // of its writer's, who begins the next when this one is done
};

/// Whether `words`, which were 0, are what `puts` leave in some order, each of them whole. Number
/// i + 1 is that of puts[i].
bool is_some_order(const std::vector<uint64_t>& words, const std::vector<Put>& puts) {
  std::set<uint64_t> edges{0, words.size()};
  for (const Put& put : puts) edges.insert({put.first, put.first + put.count});
  // Who comes before whom; behind the puts, a node for each turn of a writer.
  std::map<std::pair<uint32_t, uint32_t>, size_t> turns;
  for (const Put& put : puts) turns.try_emplace({put.writer, put.turn}, puts.size() + turns.size());
  std::vector<std::set<size_t>> later(puts.size() + turns.size());
  for (size_t i = 0; i < puts.size(); ++i) {
    const auto turn = turns.find({puts[i].writer, puts[i].turn});
    later[i].insert(turn->second);
    const auto next = turns.find({puts[i].writer, puts[i].turn + 1});
    if (next != turns.end()) later[turn->second].insert(next->second);
    const auto former = turns.find({puts[i].writer, puts[i].turn - 1});
    if (former != turns.end()) later[former->second].insert(i);
  }
  for (auto edge = edges.begin(); std::next(edge) != edges.end(); ++edge) {
    const uint64_t last = words[*edge];
    for (uint64_t i = *edge; i < *std::next(edge); ++i) {
      if (words[i] != last) return false;
    }
    bool found = last == 0;
    for (size_t i = 0; i < puts.size(); ++i) {
      if (*edge < puts[i].first || *edge >= puts[i].first + puts[i].count) continue;
      if (last == 0) return false;
      if (i + 1 == last) {
        found = true;
      } else {
        later[i].insert(last - 1);
      }
    }
    if (!found) return false;
  }
  std::vector<uint32_t> earlier(later.size());
  for (const auto& those : later) {
    for (const size_t one : those) ++earlier[one];
  }
  std::vector<size_t> free;
  for (size_t i = 0; i < later.size(); ++i) {
    if (earlier[i] == 0) free.push_back(i);
  }
  size_t done = 0;
  for (; !free.empty(); ++done) {
    const size_t one = free.back();
    free.pop_back();
    for (const size_t after : later[one]) {
      if (--earlier[after] == 0) free.push_back(after);
    }
  }
  return done == later.size();
}

TEST(SomeOrder, is_told_from_none) {
  const std::vector<Put> crossed = {{0, 4, 0, 0}, {2, 4, 1, 0}};
  EXPECT_TRUE(is_some_order({1, 1, 1, 1, 2, 2, 0}, crossed));
  EXPECT_TRUE(is_some_order({1, 1, 2, 2, 2, 2, 0}, crossed));
  EXPECT_FALSE(is_some_order({1, 1, 1, 2, 2, 2, 0}, crossed)) << "half of each";
  EXPECT_FALSE(is_some_order({1, 1, 2, 2, 2, 0, 0}, crossed)) << "lost";
  EXPECT_FALSE(is_some_order({1, 1, 2, 2, 2, 2, 1}, crossed)) << "none wrote there";
  const std::vector<Put> three = {{0, 2, 0, 0}, {1, 2, 1, 0}, {0, 3, 2, 0}};
  EXPECT_TRUE(is_some_order({1, 2, 2}, three));
  EXPECT_FALSE(is_some_order({1, 3, 2}, three)) << "the third one both before and after";
  EXPECT_FALSE(is_some_order({1, 1}, {{0, 2, 0, 0}, {0, 2, 0, 1}})) << "the second came later";
  EXPECT_TRUE(is_some_order({2, 2}, {{0, 2, 0, 0}, {0, 2, 0, 1}}));
}

/// What the warps of a storm do: all have spans of up to `blocks_max` blocks, of the first
/// `hot_blocks`; some of them, now and then, something else.
struct SpanStorm {
  uint64_t hot_blocks;
  uint64_t blocks_max;
  bool mixed;  // single blocks, whole warps' writes, readers
};

class WriteSpansStorm : public WriteSpansTest {
 protected:
  void run(const SpanStorm& storm) {
    const uint32_t warps = width() == 32 ? 3 : 4;
    const uint32_t turns = width() == 32 ? 12 : 40;
    const uint64_t seed = printed_seed();
    const int fd = open_file("/one", kOpenReadWrite);
    ASSERT_EQ(pwrite_file(fd, std::string(storm.hot_blocks * kBlockBytes, '\0'), 0),
              static_cast<int64_t>(storm.hot_blocks * kBlockBytes));
    std::vector<Put> puts(uint64_t{warps} * turns * width());
    std::vector<std::vector<uint64_t>> buffers(warps * width());
    run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const uint32_t lane = warp.thread_rank();
      std::vector<uint64_t>& buffer = buffers[index * width() + lane];
      for (uint32_t turn = 0; turn < turns; ++turn) {
        const uint64_t number = (uint64_t{index} * turns + turn) * width() + lane;
        std::mt19937_64 random(seed + number);
        const uint64_t kind = warp.shfl(static_cast<uint64_t>(random()), 0) % 8;
        const uint64_t words_max = storm.blocks_max * kBlockBytes / kWordBytes;
        const uint64_t hot_words = storm.hot_blocks * kBlockBytes / kWordBytes;
        const uint64_t block_words = kBlockBytes / kWordBytes;
        Put put{random() % hot_words, 1 + random() % words_max, index, turn};
        if (random() % 2 == 0) put.first &= ~(block_words - 1);
        if (random() % 2 == 0) put.count = simt::align_up(put.count, block_words);
        const bool single = storm.mixed && kind == 0;
        if (single) put.count = std::min(put.count, block_words - put.first % block_words);
        put.count = std::min(put.count, hot_words - put.first);
        const bool by_warp = storm.mixed && kind == 1;
        // Of a warp that writes together, its first lane's.
        if (by_warp && lane != 0) put.count = 0;
        puts[number] = put;
        buffer.assign(put.count, number + 1);
        if (by_warp) {
          const uint64_t source = warp.shfl(reinterpret_cast<uint64_t>(buffer.data()), 0);
          const uint64_t bytes = warp.shfl(put.count, 0) * kWordBytes;
          const uint64_t offset = warp.shfl(put.first, 0) * kWordBytes;
          EXPECT_EQ(pwrite(warp, fs(), fd, reinterpret_cast<const void*>(source), bytes, offset),
                    static_cast<int64_t>(bytes));
        } else {
          const uint64_t bytes = put.count * kWordBytes;
          EXPECT_EQ(pwrite_lanes(warp, fs(), {fd, buffer.data(), bytes, put.first * kWordBytes}),
                    static_cast<int64_t>(bytes));
        }
        if (!storm.mixed || kind != 2) continue;
        const uint64_t bytes = put.count * kWordBytes;
        EXPECT_EQ(pread_lanes(warp, fs(), {fd, buffer.data(), bytes, put.first * kWordBytes}),
                  static_cast<int64_t>(bytes));
      }
    });
    const std::string after = contents("/one");
    std::vector<uint64_t> words(storm.hot_blocks * kBlockBytes / kWordBytes);
    std::copy_n(after.data(), words.size() * kWordBytes, reinterpret_cast<char*>(words.data()));
    EXPECT_TRUE(is_some_order(words, puts));
    expect_lock_free(fd);
    mount_again();
    EXPECT_TRUE(contents("/one") == after);
  }
};
INSTANTIATE_TEST_SUITE_P(width, WriteSpansStorm,
                         ::testing::ValuesIn(gofs::testing::widths({3, 4, 32})),
                         ::testing::PrintToStringParamName());

TEST_P(WriteSpansStorm, requests_that_overlap_are_written_in_some_order) { run({24, 8, false}); }

TEST_P(WriteSpansStorm, so_they_are_where_they_are_large) { run({100, 32, false}); }

TEST_P(WriteSpansStorm, so_they_are_where_blocks_share_queues) {
  fs().block_queue_mask = kFewQueues - 1;
  run({120, 16, false});
}

TEST_P(WriteSpansStorm, so_they_are_beside_all_others) { run({24, 8, true}); }

TEST_P(WriteSpansStorm, so_they_are_beside_all_others_where_blocks_share_queues) {
  fs().block_queue_mask = kFewQueues - 1;
  run({60, 12, true});
}

}  // namespace
}  // namespace gofs::vfs
