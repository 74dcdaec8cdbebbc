// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes whose buffers only a block or a lane reaches: by lanes, by warps and by warps
// together, of every size and alignment, where spare memory is short, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "testing/near_memory.hpp"
#include "vfs/batch_names.h"
#include "vfs/changes_for_test.hpp"
#include "vfs/memory_use.h"
#include "vfs/near_group.h"
#include "vfs/rename.h"
#include "vfs/set_xattr.h"

namespace gofs::vfs {
namespace {

using gofs::testing::NearMemory;
using gofs::testing::NearMemoryOptions;

constexpr uint64_t kFileBytes = 100 * kBlockBytes + 77;
constexpr uint32_t kSharers = 3;
constexpr uint64_t kNearBytes = 200'000;

class NearTest : public ChangesTest {
 protected:
  NearTest()
      : ChangesTest([](image::ImageBuilder& builder) {
          image::FileSpec spec;
          spec.name = "large";
          spec.size_bytes = kFileBytes;
          spec.content = image::pattern_content(3);
          TestImage::must(builder.add_file(builder.root(), spec));
          spec.name = "small";
          spec.size_bytes = 100;
          spec.inline_data = true;
          TestImage::must(builder.add_file(builder.root(), spec));
        }) {}
  ~NearTest() override { EXPECT_EQ(bounces_used(), 0u); }

  /// Of one warp.
  NearMemoryOptions of_a_warp() const { return {kNearBytes, 1, width()}; }
  uint64_t bounces_used() { return bounce_bytes_used(simt::Warp(), fs().bounces); }
  int64_t position(int fd) {
    return alone([&](const simt::Warp& warp) { return lseek(warp, fs(), fd, 0, kSeekCurrent); });
  }
  /// What `call(group, warp index)` says to all warps of a block, which is the same.
  template <typename Call>
  int64_t together(Call call) {
    return answer_of_group(kSharers, width(), barrier_, call);
  }
  int64_t pread_shared(int fd, void* buffer, uint64_t bytes, uint64_t offset) {
    return together([&](const simt::GridGroup& group) {
      return pread_together_near(group, fs(), bounce_, read_, fd, buffer, bytes, offset);
    });
  }
  int64_t pwritev_shared(int fd, const std::vector<IoVector>& parts, uint64_t offset) {
    return together([&](const simt::GridGroup& group) {
      return pwritev_together_near(group, fs(), bounce_, write_, fd, parts.data(),
                                   static_cast<int>(parts.size()), offset);
    });
  }
  int64_t writev_shared(int fd, const std::vector<IoVector>& parts) {
    return together([&](const simt::GridGroup& group) {
      return writev_together_near(group, fs(), bounce_, write_, fd, parts.data(),
                                  static_cast<int>(parts.size()));
    });
  }
  static std::string random_bytes(std::mt19937& random, size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  }
  static std::string text(const uint8_t* bytes, uint64_t count) {
    return {reinterpret_cast<const char*>(bytes), count};
  }

  SharedBounce bounce_{};
  simt::Barrier barrier_{};
  SharedRead read_{};
  SharedWrite write_{};
};
GOFS_AT_BOTH_WIDTHS(NearTest);

/// Sizes around those of pieces and blocks, and any.
uint64_t some_size(std::mt19937& random) {
  constexpr uint64_t kSizes[] = {1,    2,     15,    16,    17,    511,   512,    4095,   4096,
                                 4097, 16384, 16385, 65535, 65536, 65537, 131072, 140'000};
  return random() % 3 == 0 ? 1 + random() % 10'000 : kSizes[random() % std::size(kSizes)];
}

TEST_P(NearTest, each_lane_reads_into_memory_of_its_own_at_one_address) {
  NearMemory memory(of_a_warp());
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const std::string model = contents("/large");
  const int fd = open_file("/large", kOpenReadOnly);
  for (uint32_t step = 0; step < 40; ++step) {
    const uint64_t shift = random() % 32;
    std::vector<ReadRequest> requests(width());
    for (ReadRequest& request : requests) {
      const uint64_t bytes = some_size(random);
      request = {fd, memory.of_lane() + shift, bytes, random() % (kFileBytes + 100)};
      if (random() % 2 == 0) request.offset &= ~uint64_t{4095};
    }
    std::vector<int64_t> got(width());
    run_alone(width(), [&](const simt::Warp& warp) {
      got[warp.thread_rank()] = pread_lanes_near(warp, fs(), requests[warp.thread_rank()]);
    });
    for (uint32_t lane = 0; lane < width(); ++lane) {
      const ReadRequest& request = requests[lane];
      const std::string wanted =
          request.offset < model.size() ? model.substr(request.offset, request.bytes) : "";
      ASSERT_EQ(got[lane], static_cast<int64_t>(wanted.size())) << "step " << step;
      ASSERT_TRUE(text(memory.in_lane(0, lane) + shift, wanted.size()) == wanted)
          << "step " << step << ", lane " << lane << ": " << request.bytes << " bytes at "
          << request.offset;
    }
  }
}

TEST_P(NearTest, lanes_write_from_memory_of_all_kinds_at_once) {
  NearMemory memory(of_a_warp());
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  std::string model = contents("/large");
  const int fd = open_file("/large", kOpenReadWrite);
  // Each lane has a part of the file to itself.
  const uint64_t part = 1 << 18;
  for (uint32_t step = 0; step < 24; ++step) {
    std::vector<std::string> bytes(width());
    std::vector<WriteRequest> requests(width());
    for (uint32_t lane = 0; lane < width(); ++lane) {
      const bool in_block = random() % 3 == 0;  // where lanes have parts of one range
      const uint64_t room = kNearBytes / width() - 64;
      const uint64_t count = in_block ? simt::min(some_size(random), room) : some_size(random);
      bytes[lane] = random_bytes(random, count);
      const uint64_t shift = random() % 20 + (in_block ? lane * (kNearBytes / width()) : 0);
      requests[lane] = {fd, bytes[lane].data(), count, lane * part + random() % (part - count)};
      if (in_block) {
        std::memcpy(memory.in_block() + shift, bytes[lane].data(), count);
        requests[lane].buffer = memory.of_block() + shift;
      } else if (random() % 3 != 0) {
        std::memcpy(memory.in_lane(0, lane) + shift, bytes[lane].data(), count);
        requests[lane].buffer = memory.of_lane() + shift;
      }
    }
    std::vector<int64_t> got(width());
    run_alone(width(), [&](const simt::Warp& warp) {
      got[warp.thread_rank()] = pwrite_lanes_near(warp, fs(), requests[warp.thread_rank()]);
    });
    for (uint32_t lane = 0; lane < width(); ++lane) {
      const WriteRequest& request = requests[lane];
      ASSERT_EQ(got[lane], static_cast<int64_t>(request.bytes)) << "step " << step;
      if (model.size() < request.offset + request.bytes) {
        model.resize(request.offset + request.bytes);
      }
      model.replace(request.offset, request.bytes, bytes[lane]);
    }
  }
  EXPECT_TRUE(contents("/large") == model);
  mount_again();
  EXPECT_TRUE(contents("/large") == model);
}

TEST_P(NearTest, what_no_lane_reaches_is_refused_and_others_are_served) {
  NearMemory memory(of_a_warp());
  const int fd = open_file("/large", kOpenReadWrite);
  const std::string before = contents("/large");
  std::string here(100, 'x');
  struct Case {
    void* buffer;
    uint64_t bytes;
    int fd;
    int64_t read;
    int64_t written;
  };
  const std::vector<Case> cases = {
      {nullptr, 1, fd, -EFAULT, -EFAULT},
      {nullptr, 0, fd, 0, 0},
      {reinterpret_cast<void*>(8), 100, fd, -EFAULT, -EFAULT},
      {reinterpret_cast<void*>(~uint64_t{0} - 5000), 100, fd, -EFAULT, -EFAULT},
      {memory.of_lane(), kNearBytes + 1, fd, -EFAULT, -EFAULT},
      {memory.of_block() + kNearBytes - 1, 2, fd, -EFAULT, -EFAULT},
      {memory.of_block() + kNearBytes - 1, 1, fd, 1, 1},
      {memory.of_lane() + 7, 100, fd, 100, 100},
      {here.data(), 100, fd, 100, 100},
      {memory.of_lane(), 100, 50, -EBADF, -EBADF},
      {memory.of_lane(), 0, 50, -EBADF, -EBADF},
  };
  for (size_t first = 0; first < cases.size(); ++first) {
    std::vector<int64_t> read(width());
    std::vector<int64_t> written(width());
    run_alone(width(), [&](const simt::Warp& warp) {
      const uint32_t rank = warp.thread_rank();
      const Case& mine = cases[(first + rank) % cases.size()];
      read[rank] = pread_lanes_near(warp, fs(), {mine.fd, mine.buffer, mine.bytes, 8});
      // What was read, to the same place.
      written[rank] = pwrite_lanes_near(warp, fs(), {mine.fd, mine.buffer, mine.bytes, 8});
    });
    for (uint32_t rank = 0; rank < width(); ++rank) {
      const size_t which = (first + rank) % cases.size();
      EXPECT_EQ(read[rank], cases[which].read) << which;
      EXPECT_EQ(written[rank], cases[which].written) << which;
    }
  }
  EXPECT_TRUE(contents("/large") == before);
}

TEST_P(NearTest, a_refused_write_leaves_the_position_where_it_is) {
  NearMemory memory(of_a_warp());
  const int fd = open_file("/large", kOpenReadWrite);
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(write_lanes_near(warp, fs(), {fd, nullptr, 100, 0}), -EFAULT);
    EXPECT_EQ(write_lanes_near(warp, fs(), {fd, memory.of_lane(), kNearBytes + 1, 0}), -EFAULT);
    const IoVector part{memory.of_block(), kNearBytes + 1};
    EXPECT_EQ(writev_near(warp, fs(), fd, &part, 1), -EFAULT);
    const IoVector parts[2] = {{memory.of_block(), 10}, {nullptr, 1}};
    EXPECT_EQ(writev_near(warp, fs(), fd, parts, 2), -EFAULT);
  });
  EXPECT_EQ(position(fd), 0);
}

TEST_P(NearTest, a_warp_has_no_memory_of_one_lane) {
  NearMemory memory(of_a_warp());
  const int fd = open_file("/large", kOpenReadWrite);
  run_alone(width(), [&](const simt::Warp& warp) {
    const IoVector part{memory.of_lane(), 100};
    const int64_t wanted = warp.size() == 1 ? 100 : -EFAULT;
    EXPECT_EQ(pread_near(warp, fs(), fd, memory.of_lane(), 100, 0), wanted);
    EXPECT_EQ(pwritev_near(warp, fs(), fd, &part, 1, 0), wanted);
  });
}

TEST_P(NearTest, a_warp_reads_and_writes_memory_of_its_block) {
  NearMemory memory(of_a_warp());
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  std::string model = contents("/large");
  const int fd = open_file("/large", kOpenReadWrite);
  for (uint32_t step = 0; step < 20; ++step) {
    const uint64_t shift = random() % 32;
    const uint64_t bytes = some_size(random);
    const uint64_t offset = random() % (kFileBytes - bytes);
    const int64_t got = alone([&](const simt::Warp& warp) {
      return pread_near(warp, fs(), fd, memory.of_block() + shift, bytes, offset);
    });
    ASSERT_EQ(got, static_cast<int64_t>(bytes));
    ASSERT_TRUE(text(memory.in_block() + shift, bytes) == model.substr(offset, bytes));
    const std::string fresh = random_bytes(random, bytes);
    std::memcpy(memory.in_block() + shift, fresh.data(), bytes);
    const IoVector part{memory.of_block() + shift, bytes};
    ASSERT_EQ(alone([&](const simt::Warp& warp) {
                return pwritev_near(warp, fs(), fd, &part, 1, offset);
              }),
              static_cast<int64_t>(bytes));
    model.replace(offset, bytes, fresh);
  }
  EXPECT_TRUE(contents("/large") == model);
}

TEST_P(NearTest, the_warps_of_a_block_share_reads_and_writes_of_its_memory) {
  NearMemory memory({kNearBytes, kSharers, width()});
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  std::string model = contents("/large");
  const int fd = open_file("/large", kOpenReadWrite);
  for (uint32_t step = 0; step < 12; ++step) {
    const uint64_t shift = random() % 32;
    const uint64_t bytes = some_size(random);
    const uint64_t offset = random() % (kFileBytes - bytes);
    ASSERT_EQ(pread_shared(fd, memory.of_block() + shift, bytes, offset),
              static_cast<int64_t>(bytes));
    ASSERT_TRUE(text(memory.in_block() + shift, bytes) == model.substr(offset, bytes));
    const std::string fresh = random_bytes(random, bytes);
    std::memcpy(memory.in_block() + shift, fresh.data(), bytes);
    ASSERT_EQ(pwritev_shared(fd, {{memory.of_block() + shift, bytes}}, offset),
              static_cast<int64_t>(bytes));
    model.replace(offset, bytes, fresh);
  }
  EXPECT_TRUE(contents("/large") == model);
  EXPECT_EQ(pread_shared(fd, memory.of_lane(), 10, 0), -EFAULT);
  EXPECT_EQ(pread_shared(fd, memory.of_block(), 10, kFileBytes), 0);
  EXPECT_EQ(pread_shared(77, memory.of_block(), 10, 0), -EBADF);
  EXPECT_EQ(pwritev_shared(fd, {{memory.of_lane(), 10}}, 0), -EFAULT);
}

TEST_P(NearTest, parts_may_lie_in_memory_of_all_kinds) {
  NearMemory memory({kNearBytes, kSharers, width()});
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const int fd = open_file("/parts", kOpenReadWrite | kOpenCreate);
  for (const uint64_t middle : {1ul, 4096ul, 70'000ul}) {
    const std::string one = random_bytes(random, 3001);
    const std::string two = random_bytes(random, middle);
    const std::string three = random_bytes(random, 5);
    std::memcpy(memory.in_block() + 3, two.data(), two.size());
    const std::vector<IoVector> parts = {{const_cast<char*>(one.data()), one.size()},
                                         {nullptr, 0},
                                         {memory.of_block() + 3, two.size()},
                                         {const_cast<char*>(three.data()), three.size()}};
    const std::string all = one + two + three;
    const auto bytes = static_cast<int64_t>(all.size());
    EXPECT_EQ(pwritev_shared(fd, parts, 0), bytes);
    EXPECT_TRUE(contents("/parts").substr(0, all.size()) == all);
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                return pwritev_near(warp, fs(), fd, parts.data(), 4, 100'000);
              }),
              bytes);
    EXPECT_TRUE(contents("/parts").substr(100'000) == all);
    ASSERT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd, 0); }), 0);
  }
  const std::vector<IoVector> none(kIoVectorsMax + 1);
  EXPECT_EQ(pwritev_shared(fd, none, 0), -EINVAL);
  EXPECT_EQ(pwritev_shared(fd, {}, 0), 0);
}

TEST_P(NearTest, a_write_moves_the_position_past_all_of_it_at_once) {
  NearMemory memory({kNearBytes, kSharers, width()});
  const int fd = open_file("/positions", kOpenReadWrite | kOpenCreate);
  std::memset(memory.in_block(), 'b', kNearBytes);
  const uint64_t bytes = 150'000;  // three calls
  EXPECT_EQ(writev_shared(fd, {{memory.of_block(), bytes}}), static_cast<int64_t>(bytes));
  EXPECT_EQ(position(fd), static_cast<int64_t>(bytes));
  EXPECT_EQ(writev_shared(fd, {{memory.of_block(), 7}}), 7);
  EXPECT_EQ(position(fd), static_cast<int64_t>(bytes) + 7);
  // Lanes that write at the same time get ranges of their own.
  for (uint32_t lane = 0; lane < width(); ++lane) {
    std::memset(memory.in_lane(0, lane), 'p' + static_cast<int>(lane), kNearBytes);
  }
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(write_lanes_near(warp, fs(), {fd, memory.of_lane(), bytes, 0}),
              static_cast<int64_t>(bytes));
  });
  const std::string all = contents("/positions");
  ASSERT_EQ(all.size(), bytes + 7 + width() * bytes);
  std::set<char> letters;
  for (uint32_t lane = 0; lane < width(); ++lane) {
    const std::string one = all.substr(bytes + 7 + lane * bytes, bytes);
    EXPECT_EQ(one, std::string(bytes, one[0]));
    letters.insert(one[0]);
  }
  EXPECT_EQ(letters.size(), width());
}

TEST_P(NearTest, records_of_a_piece_that_are_appended_stay_whole) {
  constexpr uint32_t kWarps = 3;
  constexpr uint64_t kRecord = kBounceBytesMax - 5;
  NearMemory memory({kNearBytes, kWarps, width()});
  const int fd = open_file("/log", kOpenWriteOnly | kOpenCreate | kOpenAppend);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const auto letter = static_cast<int>('a' + index * warp.size() + warp.thread_rank());
    std::memset(memory.in_lane(index, warp.thread_rank()), letter, kRecord);
    EXPECT_EQ(write_lanes_near(warp, fs(), {fd, memory.of_lane(), kRecord, 0}),
              static_cast<int64_t>(kRecord));
  });
  const std::string all = contents("/log");
  ASSERT_EQ(all.size(), kWarps * width() * kRecord);
  std::set<char> letters;
  for (uint64_t at = 0; at < all.size(); at += kRecord) {
    EXPECT_EQ(all.substr(at, kRecord), std::string(kRecord, all[at]));
    letters.insert(all[at]);
  }
  EXPECT_EQ(letters.size(), kWarps * width());
}

TEST_P(NearTest, many_lanes_share_little_spare_memory) {
  constexpr uint32_t kWarps = 6;
  NearMemory memory({kNearBytes, kWarps, width()});
  const std::string model = contents("/large");
  const int fd = open_file("/large", kOpenReadOnly);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t rank = warp.thread_rank();
    for (const uint64_t bytes : {60'000ul, 4096ul, 9000ul, 130'000ul}) {
      const uint64_t offset = (index * 7 + rank) * 1000;
      ASSERT_EQ(pread_lanes_near(warp, fs(), {fd, memory.of_lane(), bytes, offset}),
                static_cast<int64_t>(bytes));
      ASSERT_TRUE(text(memory.in_lane(index, rank), bytes) == model.substr(offset, bytes));
    }
  });
}

TEST_P(NearTest, many_warps_share_little_spare_memory) {
  constexpr uint32_t kWarps = 6;
  NearMemory memory({kNearBytes, 1, width(), kWarps});
  const std::string model = contents("/large");
  const int fd = open_file("/large", kOpenReadOnly);
  const int out = open_file("/out", kOpenReadWrite | kOpenCreate);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (const uint64_t bytes : {60'000ul, 4096ul, 130'000ul}) {
      const uint64_t offset = index * 7000;
      ASSERT_EQ(pread_near(warp, fs(), fd, memory.of_block(), bytes, offset),
                static_cast<int64_t>(bytes));
      const IoVector part{memory.of_block(), bytes};
      ASSERT_EQ(pwritev_near(warp, fs(), out, &part, 1, index * kNearBytes),
                static_cast<int64_t>(bytes));
    }
  });
  const std::string all = contents("/out");
  for (uint32_t index = 0; index < kWarps; ++index) {
    const std::string wanted = model.substr(index * 7000, 130'000);
    EXPECT_TRUE(text(memory.in_block(index), wanted.size()) == wanted);
    EXPECT_TRUE(all.substr(index * kNearBytes, wanted.size()) == wanted);
  }
}

/// Targets that fit in an inode and, from some 3,400 bytes on, that do not: of whole 16 bytes,
/// which are copied by other instructions, of whole LBAs, which an SSD moves itself, and any.
std::vector<uint32_t> target_lengths() {
  std::vector<uint32_t> lengths = {1, 16, 59, 3390, 3505, 3583, 3585, 3999, 4081, 4095};
  for (uint32_t length = 3504; length <= 4080; length += 16) lengths.push_back(length);
  return lengths;
}

TEST_P(NearTest, links_of_any_length_are_made_and_read_where_only_the_caller_is) {
  NearMemory memory(of_a_warp());
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const bool in_lane = width() == 1;  // a warp has no memory of one lane
  uint8_t* const begin = in_lane ? memory.of_lane() : memory.of_block();
  uint8_t* const there = in_lane ? memory.in_lane(0, 0) : memory.in_block();
  const auto* const path = reinterpret_cast<const char*>(begin + 3);
  for (const uint32_t length : target_lengths()) {
    const std::string name = "/link" + std::to_string(length);
    std::memcpy(there + 3, name.c_str(), name.size() + 1);
    std::string target(length, ' ');
    for (char& letter : target) letter = static_cast<char>('a' + random() % 26);
    const uint64_t shift = 1024 + (length % 3 == 0 ? random() % 16 : 0);
    std::memcpy(there + shift, target.c_str(), length + 1);
    ASSERT_EQ(alone([&](const simt::Warp& warp) {
                return symlink(warp, fs(), reinterpret_cast<const char*>(begin + shift), path);
              }),
              0)
        << length;
    for (const uint64_t capacity : {uint64_t{4096}, uint64_t{512}, uint64_t{3584}, uint64_t{17}}) {
      const uint64_t to = 8192 + (length % 5 == 0 ? random() % 16 : 0);
      std::memset(there + 8192, '#', 8192);
      const std::string wanted = target.substr(0, capacity);
      ASSERT_EQ(alone([&](const simt::Warp& warp) {
                  return readlink(warp, fs(), path, reinterpret_cast<char*>(begin + to), capacity);
                }),
                static_cast<int64_t>(wanted.size()));
      ASSERT_EQ(text(there + to, wanted.size()), wanted);
      ASSERT_EQ(there[to + wanted.size()], '#') << "nothing is written behind it";
    }
  }
  mount_again();  // fsck.f2fs likes them
}

TEST_P(NearTest, a_link_to_a_target_there_needs_spare_memory) {
  NearMemory memory(of_a_warp());
  fs().lock_timeout_ns = 2'000'000;
  std::vector<Bounce> taken;
  for (;;) {
    taken.push_back(try_take_bounce(fs().bounces, 1, kBounceBytesOfLanes));
    if (taken.back().bytes == 0) break;
  }
  taken.pop_back();
  std::memset(memory.in_block(), 't', 3600);
  const auto make = [&] {
    return alone([&](const simt::Warp& warp) {
      return symlink(warp, fs(), reinterpret_cast<const char*>(memory.of_block()), "/link");
    });
  };
  EXPECT_EQ(make(), -EBUSY);
  for (const Bounce& bounce : taken) release_bounce(bounce);
  EXPECT_EQ(make(), 0);
  EXPECT_EQ(make(), -EEXIST);
}

TEST_P(NearTest, names_values_and_entries_may_lie_there) {
  NearMemory memory(of_a_warp());
  const bool in_lane = width() == 1;
  uint8_t* const begin = in_lane ? memory.of_lane() : memory.of_block();
  uint8_t* const there = in_lane ? memory.in_lane(0, 0) : memory.in_block();
  const auto put = [&](uint64_t at, const std::string& what) {
    std::memcpy(there + at, what.c_str(), what.size() + 1);
    return reinterpret_cast<const char*>(begin + at);
  };
  const char* const directory = put(1, "/directory");
  const char* const file = put(101, "/directory/file");
  const char* const moved = put(201, "/directory/other");
  const char* const key = put(301, "user.colour");
  const char* const value = put(401, "blue and green");
  auto* const out = reinterpret_cast<char*>(begin + 501);
  auto* const entries = reinterpret_cast<f2fs::NamedEntry*>(begin + 4096);
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(mkdir(warp, fs(), directory, 0755), 0);
    int fd = open(warp, fs(), file, kOpenReadWrite | kOpenCreate, 0644);
    EXPECT_GE(fd, 0);
    EXPECT_EQ(close(warp, fs(), fd), 0);
    EXPECT_EQ(rename(warp, fs(), file, moved, 0), 0);
    EXPECT_EQ(setxattr(warp, fs(), moved, LastLink::kFollow, key, value, 14, 0), 0);
    EXPECT_EQ(getxattr(warp, fs(), moved, LastLink::kFollow, key, out, 100), 14);
    EXPECT_EQ(listxattr(warp, fs(), moved, LastLink::kFollow, out + 100, 100), 12);
    fd = opendir(warp, fs(), directory);
    EXPECT_EQ(readdir(warp, fs(), fd, entries, 32), 1);
    EXPECT_EQ(close(warp, fs(), fd), 0);
    Stat stat_of_it{};
    EXPECT_EQ(stat(warp, fs(), moved, LastLink::kKeep, stat_of_it), 0);
    EXPECT_EQ(link(warp, fs(), moved, file), 0);
    EXPECT_EQ(unlink(warp, fs(), moved), 0);
    EXPECT_EQ(access(warp, fs(), moved, 0), -ENOENT);
    EXPECT_EQ(truncate(warp, fs(), file, 10), 0);
  });
  EXPECT_EQ(text(there + 501, 14), "blue and green");
  EXPECT_EQ(text(there + 601, 12), std::string("user.colour", 12));
  EXPECT_STREQ(reinterpret_cast<const f2fs::NamedEntry*>(there + 4096)->name, "other");
}

TEST_P(NearTest, a_name_that_runs_over_the_end_of_the_memory_is_refused) {
  NearMemory memory(of_a_warp());
  std::memset(memory.in_block(), 'n', kNearBytes);
  const auto* const name = reinterpret_cast<const char*>(memory.of_block() + kNearBytes - 5);
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(open(warp, fs(), name, kOpenReadOnly), -EFAULT);
    EXPECT_EQ(mkdir(warp, fs(), name, 0755), -EFAULT);
    EXPECT_EQ(symlink(warp, fs(), name, "/link"), -EFAULT);
    EXPECT_EQ(symlink(warp, fs(), "target", name), -EFAULT);
    EXPECT_EQ(rename(warp, fs(), "/small", name, 0), -EFAULT);
    EXPECT_EQ(getxattr(warp, fs(), "/small", LastLink::kFollow, name, nullptr, 0), -EFAULT);
    EXPECT_EQ(setxattr(warp, fs(), "/small", LastLink::kFollow, name, "x", 1, 0), -EFAULT);
    // Longer than a path can be, before its memory ends.
    const auto* const longer = reinterpret_cast<const char*>(memory.of_block());
    EXPECT_EQ(open(warp, fs(), longer, kOpenReadOnly), -ENAMETOOLONG);
  });
}

TEST_P(NearTest, names_of_a_batch_that_not_all_warps_reach_are_counted) {
  constexpr uint32_t kWarps = 3;
  NearMemory memory(of_a_warp());
  std::vector<const char*> names(50, "name");
  const auto hidden = [&] {
    uint32_t all = 0;
    for (uint32_t index = 0; index < kWarps; ++index) {
      all += static_cast<uint32_t>(alone([&](const simt::Warp& warp) {
        return detail::count_hidden_names(warp, names.data(), 50, index, kWarps);
      }));
    }
    return all;
  };
  EXPECT_EQ(hidden(), 0u);
  names[0] = reinterpret_cast<const char*>(memory.of_block());
  names[7] = nullptr;
  names[49] = reinterpret_cast<const char*>(memory.of_lane());
  EXPECT_EQ(hidden(), 3u);
}

TEST_P(NearTest, without_spare_memory_a_call_gives_up_after_a_while) {
  NearMemory memory(of_a_warp());
  fs().lock_timeout_ns = 2'000'000;
  const int fd = open_file("/large", kOpenReadWrite);
  std::vector<Bounce> taken;
  while (true) {
    taken.push_back(try_take_bounce(fs().bounces, 1, kBounceBytesOfLanes));
    if (taken.back().bytes == 0) break;
  }
  taken.pop_back();
  std::string here(10, ' ');
  run_alone(width(), [&](const simt::Warp& warp) {
    // Who needs none is served.
    const bool last = warp.thread_rank() + 1 == warp.size();
    void* const buffer =
        last && warp.size() != 1 ? static_cast<void*>(here.data()) : memory.of_lane();
    const int64_t wanted = last && warp.size() != 1 ? 10 : -EBUSY;
    EXPECT_EQ(pread_lanes_near(warp, fs(), {fd, buffer, 10, 0}), wanted);
    EXPECT_EQ(pread_near(warp, fs(), fd, memory.of_block(), 10, 0), -EBUSY);
  });
  for (const Bounce& bounce : taken) release_bounce(bounce);
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              return pread_near(warp, fs(), fd, memory.of_block(), 10, 0);
            }),
            10);
}

TEST_P(NearTest, neighbours_in_a_file_are_read_in_one_command) {
  NearMemory memory(of_a_warp());
  const int fd = open_file("/large", kOpenReadOnly);
  const auto read = [&] {
    run_alone(width(), [&](const simt::Warp& warp) {
      const uint64_t offset = uint64_t{warp.thread_rank()} * kBlockBytes;
      EXPECT_EQ(pread_lanes_near(warp, fs(), {fd, memory.of_lane(), kBlockBytes, offset}),
                static_cast<int64_t>(kBlockBytes));
    });
  };
  read();  // whatever is done once
  const uint64_t before = writing_->rig().counters().read_commands;
  read();
  EXPECT_EQ(writing_->rig().counters().read_commands, before + 1);
}

TEST(BouncePool, pieces_are_as_large_as_they_must_be) {
  testing::TestArena arena;
  BouncePool pool{};
  const uint32_t counts[kBounceSizes] = {40, 3, 4};
  for (uint32_t size = 0; size < kBounceSizes; ++size) {
    BouncePieces& pieces = pool.sizes[size];
    pieces.shift = bounce_shift(size);
    pieces.count = counts[size];
    pieces.memory = arena.space().allocate_array<uint8_t>(uint64_t{counts[size]} << pieces.shift);
    pieces.taken = arena.space().allocate_array<uint32_t>(pieces.words());
  }
  std::set<uint8_t*> memory;
  std::vector<Bounce> taken;
  const auto take = [&](uint64_t least, uint64_t wanted) {
    const Bounce bounce = try_take_bounce(pool, least, wanted);
    if (bounce.bytes == 0) return uint64_t{0};
    for (uint64_t at = 0; at < bounce.bytes; at += kBlockBytes) {
      EXPECT_TRUE(memory.insert(bounce.memory + at).second);
    }
    taken.push_back(bounce);
    return bounce.bytes;
  };
  EXPECT_EQ(take(1, 4096), 4096u);
  EXPECT_EQ(take(4097, 4097), 16384u);
  EXPECT_EQ(take(16385, 16385), 65536u);
  EXPECT_EQ(take(65536, 65536), 65536u);
  EXPECT_EQ(take(1, 131072), 131072u);  // two side by side
  EXPECT_EQ(take(20000, 131072), 0u);   // none is left, and less will not do
  EXPECT_EQ(take(5000, 131072), 16384u);
  EXPECT_EQ(take(1, 10000), 16384u);
  for (uint32_t i = 1; i < counts[0]; ++i) EXPECT_EQ(take(1, 10000), 4096u);
  EXPECT_EQ(take(1, 1), 0u);
  EXPECT_EQ(bounce_bytes_used(simt::Warp(), pool),
            (uint64_t{counts[0]} << 12) + (3ull << 14) + (4ull << 16));
  for (const Bounce& bounce : taken) release_bounce(bounce);
  EXPECT_EQ(bounce_bytes_used(simt::Warp(), pool), 0u);
  for (const BouncePieces& pieces : pool.sizes) {
    arena.space().release(pieces.memory);
    arena.space().release(pieces.taken);
  }
}

}  // namespace
}  // namespace gofs::vfs
