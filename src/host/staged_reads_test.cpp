// SPDX-License-Identifier: Apache-2.0
//
// Long reads, and many short ones together, into memory of the host, of a volume whose warps do not
// reach it: they give what lone short reads give, many at once too, and end where the volume is
// unmounted meanwhile.
#include "host/staged_reads.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gofs/mkfs.hpp"
#include "host/backend_for_test.h"
#include "host/image/fsck_for_test.h"
#include "kernels/bodies.h"

namespace gofs::host {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// Counts the launches that read ranges.
class CountingBackend final : public BackendForTest {
 public:
  explicit CountingBackend(std::atomic<uint32_t>& launches)
      : BackendForTest(3), launches_(launches) {}
  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) override {
    if (&body == &kernels::bodies::kRanges) ++launches_;
    return BackendForTest::run(body, grid, params);
  }
  kernels::BufferReach reach_of(const void* memory, uint64_t bytes) const override {
    const auto* const begin = static_cast<const uint8_t*>(memory);
    return {false, {}, begin, begin + bytes};
  }

 private:
  std::atomic<uint32_t>& launches_;
};

class StagedReadsTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kFileBytes = 21 * kMiB + 777;
  static constexpr uint64_t kHoleAt = 5 * kMiB;
  static constexpr uint64_t kHoleBytes = 3 * kMiB;

  StagedReadsTest() {
    MkfsOptions options;
    options.size_bytes = 128 * kMiB;
    EXPECT_TRUE(mkfs(image_.path(), options));
    volume_.emplace(
        VolumeForTest::mount(
            image_.path() + "?media=memory", {.backend = "cpu", .read_only = false},
            [this](const std::string&, std::string&) -> std::unique_ptr<kernels::Backend> {
              return std::make_unique<CountingBackend>(launches_);
            })
            .value());
    contents_.resize(kFileBytes);
    for (size_t i = 0; i < kFileBytes; ++i) contents_[i] = static_cast<char>(i * 131 / 7);
    std::fill_n(contents_.begin() + kHoleAt, kHoleBytes, '\0');
    fd_ = volume_->open("/file", O_RDWR | O_CREAT, 0600).value();
    write(0, kHoleAt);
    write(kHoleAt + kHoleBytes, kFileBytes - kHoleAt - kHoleBytes);
  }

  void write(uint64_t offset, uint64_t bytes) {
    EXPECT_EQ(volume_->pwrite(fd_, contents_.data() + offset, bytes, offset).value(), bytes);
  }
  /// What a pread gives, with a byte behind it that it is to leave alone.
  std::string read(uint64_t offset, uint64_t bytes) {
    std::string found(bytes + 1, '!');
    const uint64_t got = volume_->pread(fd_, found.data(), bytes, offset).value();
    EXPECT_EQ(found.back(), '!');
    found.resize(got);
    return found;
  }

  std::atomic<uint32_t> launches_{0};
  image::TemporaryPath image_;
  std::optional<Volume> volume_;
  std::string contents_;
  int fd_ = -1;
};

TEST_F(StagedReadsTest, give_what_is_in_the_file_up_to_its_end) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, 4 * kMiB + 4095, 20 * kMiB}) {
    for (const uint64_t bytes : {kMiB + 1, 2 * kMiB, 8 * kMiB, 8 * kMiB + 1, 30 * kMiB}) {
      SCOPED_TRACE(std::to_string(bytes) + " from " + std::to_string(offset));
      const uint32_t before = launches_;
      EXPECT_TRUE(read(offset, bytes) == contents_.substr(offset, bytes));
      EXPECT_GT(launches_, before);
    }
  }
  EXPECT_EQ(read(kFileBytes, 2 * kMiB), "");
  EXPECT_EQ(read(kFileBytes + kMiB, 2 * kMiB), "");
}

TEST_F(StagedReadsTest, short_ones_are_calls) {
  EXPECT_TRUE(read(77, kMiB) == contents_.substr(77, kMiB));
  EXPECT_EQ(launches_, 0u);
}

TEST_F(StagedReadsTest, are_what_ranges_of_such_memory_are_read_by) {
  std::string small(100, '!');
  std::string large(9 * kMiB, '!');
  auto call = volume_->read_ranges(
      {{fd_, large.data(), large.size(), 11}, {fd_, small.data(), small.size(), 5}}, nullptr);
  const std::vector<int64_t> expected{9 * kMiB, 100};
  EXPECT_EQ(call->wait().value(), expected);
  EXPECT_TRUE(large == contents_.substr(11, large.size()));
  EXPECT_TRUE(small == contents_.substr(5, small.size()));
  EXPECT_EQ(launches_, 2u);
}

TEST_F(StagedReadsTest, bring_many_short_ranges_together) {
  constexpr uint64_t kBytes = 3000;
  constexpr size_t kCount = 4000;  // in blocks of their own: two portions
  std::string found(kCount * kBytes, '!');
  std::vector<IoRange> ranges;
  for (size_t i = 0; i < kCount; ++i) {
    ranges.push_back({fd_, found.data() + i * kBytes, kBytes, i * 5001});
  }
  EXPECT_EQ(volume_->read_ranges(ranges)->wait().value(), std::vector<int64_t>(kCount, kBytes));
  EXPECT_EQ(launches_, 2u);
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(found.compare(i * kBytes, kBytes, contents_, i * 5001, kBytes), 0) << i;
  }
}

TEST_F(StagedReadsTest, have_a_result_for_each_of_many_ranges) {
  constexpr uint64_t kEnd = kFileBytes;
  std::string found(34 * kMiB, '!');
  char* const memory = found.data();
  const int blind = volume_->open("/file", O_WRONLY).value();
  const auto call = volume_->read_ranges({{fd_, memory, 10, 1},
                                          {99, memory + 10, 10, 0},
                                          {fd_, nullptr, 0, 3},
                                          {99, nullptr, 0, 3},
                                          {fd_, memory + 20, 30 * kMiB, kEnd - 9 * kMiB},
                                          {blind, memory + 30 * kMiB + 20, 9, 0},
                                          {fd_, memory + 30 * kMiB + 40, 2 * kMiB, 8},
                                          {fd_, memory + 33 * kMiB, 8, kEnd},
                                          {fd_, memory + 33 * kMiB + 8, 8, ~uint64_t{0}},
                                          {fd_, memory + 33 * kMiB + 16, 8, kEnd - 5}});
  EXPECT_EQ(call->wait().value(), (std::vector<int64_t>{10, -EBADF, 0, -EBADF, 9 * kMiB, -EBADF,
                                                        2 * kMiB, 0, -EINVAL, 5}));
  std::string expected(34 * kMiB, '!');
  const auto put = [&](uint64_t at, uint64_t offset, uint64_t bytes) {
    expected.replace(at, bytes, contents_, offset, bytes);
  };
  put(0, 1, 10);
  put(20, kEnd - 9 * kMiB, 9 * kMiB);
  put(30 * kMiB + 40, 8, 2 * kMiB);
  put(33 * kMiB + 16, kEnd - 5, 5);
  EXPECT_TRUE(found == expected);
}

TEST_F(StagedReadsTest, fail_as_short_ones_do) {
  std::vector<char> buffer(3 * kMiB);
  EXPECT_EQ(volume_->pread(99, buffer.data(), buffer.size(), 0).error().code, EBADF);
  const int root = volume_->open("/", O_RDONLY).value();
  EXPECT_EQ(volume_->pread(root, buffer.data(), buffer.size(), 0).error().code, EISDIR);
  const int blind = volume_->open("/file", O_WRONLY).value();
  EXPECT_EQ(volume_->pread(blind, buffer.data(), buffer.size(), 0).error().code, EBADF);
}

TEST_F(StagedReadsTest, many_are_under_way_together_and_end_where_the_volume_does) {
  std::atomic<uint32_t> wrong{0};
  std::atomic<uint32_t> reads{0};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] {
      std::string found(9 * kMiB, '!');
      for (uint64_t n = i;; ++n) {
        const uint64_t offset = n % 7 * 4097;
        const auto got = volume_->pread(fd_, found.data(), found.size(), offset);
        if (!got) {
          if (got.error().code != ENODEV) ++wrong;
          return;
        }
        if (*got != found.size() || contents_.compare(offset, *got, found) != 0) ++wrong;
        ++reads;
      }
    });
  }
  while (reads < 30) std::this_thread::yield();
  EXPECT_TRUE(volume_->unmount());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace gofs::host
