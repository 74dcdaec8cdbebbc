// SPDX-License-Identifier: Apache-2.0
#include "gpu/image_copy.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace gofs::gpu {
namespace {

constexpr uint64_t kUnit = uint64_t{1} << ssd::kMarkShift;
constexpr uint64_t kUnits = 64;
constexpr uint64_t kAll = kUnits * kUnit;
constexpr uint64_t kNone = 0;

/// A file in memory, which fails on demand.
class FakeFile final : public ssd::FileBackEnd {
 public:
  uint64_t size() const override { return data.size(); }
  int read(uint64_t, std::span<const iovec>) override { return -EIO; }
  int write(uint64_t offset, std::span<const iovec> parts) override {
    if (write_error != 0) return write_error;
    for (const iovec& part : parts) {
      std::memcpy(data.data() + offset, part.iov_base, part.iov_len);
      offset += part.iov_len;
      ++std::atomic_ref<int>(writes);
    }
    return 0;
  }
  int zero(uint64_t, uint64_t) override { return -EIO; }
  int reserve(uint64_t, uint64_t) override { return reserve_error; }
  int sync() override { return sync_error; }

  std::vector<uint8_t> data = std::vector<uint8_t>(kAll);
  int writes = 0;
  int write_error = 0;
  int reserve_error = 0;
  int sync_error = 0;
};

class CountedCopier final : public kernels::MemoryCopier {
 public:
  std::string pull(void* to, const void* from, uint64_t bytes) override {
    if (copies_left == 0) return "no copy";
    --copies_left;
    std::memcpy(to, from, bytes);
    return {};
  }
  int copies_left = 1000;
};

/// An SSD's contents, and what a command does that writes them: the data first, then the mark.
class ImageCopyTest : public ::testing::Test {
 protected:
  ImageCopy make(bool is_host_memory = false) {
    ssd::Media media;
    media.marks = marks_.data();
    if (chunks_.empty()) {
      media.base = memory_.data();
    } else {
      media.chunks = chunks_.data();
    }
    media.bytes = bytes_;
    return {{media, is_host_memory}, file_};
  }
  void change(uint64_t unit, uint8_t byte) { memory_[unit * kUnit + 7] = byte; }
  void mark(uint64_t unit) { ++marks_[unit]; }
  void write(uint64_t unit, uint8_t byte) {
    change(unit, byte);
    mark(unit);
  }
  uint8_t in_file(uint64_t unit) const { return file_.data[unit * kUnit + 7]; }
  /// For another ImageCopy.
  void start_anew() {
    file_ = {};
    marks_.assign(kUnits, 0);
  }
  /// Both steps.
  std::string sync(ImageCopy& copy, uint64_t bytes_max = kAll) {
    std::string error = copy.collect(bytes_max, copier_);
    return error.empty() ? copy.write() : error;
  }

  FakeFile file_;
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(kAll);
  std::vector<uint64_t> chunks_;
  uint64_t bytes_ = kAll;
  std::vector<uint32_t> marks_ = std::vector<uint32_t>(kUnits);
  CountedCopier copier_;
};

TEST_F(ImageCopyTest, what_has_changed_is_written_and_nothing_else) {
  ImageCopy copy = make();
  write(3, 1);
  change(5, 2);  // without a mark: the command is under way still
  EXPECT_EQ(sync(copy), "");
  EXPECT_EQ(in_file(3), 1);
  EXPECT_EQ(in_file(5), 0);
  mark(5);
  write(6, 3);
  EXPECT_EQ(sync(copy), "");
  EXPECT_EQ(in_file(5), 2);
  EXPECT_EQ(in_file(6), 3);
  EXPECT_EQ(file_.writes, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sync(copy), "");
  EXPECT_EQ(file_.writes, 3) << "once is enough";
}

TEST_F(ImageCopyTest, what_is_written_while_it_is_copied_is_written_again) {
  ImageCopy copy = make();
  write(2, 8);
  EXPECT_EQ(copy.collect(kAll, copier_), "");
  write(2, 9);
  EXPECT_EQ(copy.write(), "");
  EXPECT_EQ(in_file(2), 8);
  EXPECT_EQ(sync(copy), "");
  EXPECT_EQ(in_file(2), 9);
}

TEST_F(ImageCopyTest, marks_come_round) {
  ImageCopy copy = make();
  marks_[2] = ~0u;
  EXPECT_EQ(sync(copy), "");
  write(2, 9);
  EXPECT_EQ(marks_[2], 0u);
  EXPECT_EQ(sync(copy), "");
  EXPECT_EQ(in_file(2), 9);
}

TEST_F(ImageCopyTest, the_file_gets_the_contents_of_one_moment) {
  for (const bool is_host_memory : {false, true}) {
    ImageCopy copy = make(is_host_memory);
    write(0, 1);
    write(1, 1);
    EXPECT_EQ(copy.collect(kAll, copier_), "");
    EXPECT_FALSE(copy.is_in_place());
    write(0, 2);
    write(4, 2);
    EXPECT_EQ(copy.write(), "");
    EXPECT_EQ(in_file(0), 1);
    EXPECT_EQ(in_file(1), 1);
    EXPECT_EQ(in_file(4), 0);
    EXPECT_EQ(sync(copy), "");
    EXPECT_EQ(in_file(0), 2);
    EXPECT_EQ(in_file(4), 2);
    start_anew();
  }
}

TEST_F(ImageCopyTest, more_than_may_be_copied_stays_where_it_is_until_it_is_written) {
  for (const bool is_host_memory : {false, true}) {
    ImageCopy copy = make(is_host_memory);
    write(1, 7);
    write(2, 7);
    EXPECT_EQ(copy.collect(kUnit, copier_), "");
    EXPECT_TRUE(copy.is_in_place());
    EXPECT_EQ(copy.write(), "");
    EXPECT_FALSE(copy.is_in_place());
    EXPECT_EQ(in_file(1), 7);
    EXPECT_EQ(in_file(2), 7);
    start_anew();
  }
}

TEST_F(ImageCopyTest, many_units_are_written_side_by_side) {
  for (const bool is_host_memory : {false, true}) {
    for (const uint64_t bytes_max : {kNone, kAll}) {
      ImageCopy copy = make(is_host_memory);
      for (uint64_t unit = 0; unit < kUnits; unit += 1 + unit % 7 / 6) {
        write(unit, static_cast<uint8_t>(unit + 1));
      }
      EXPECT_EQ(sync(copy, bytes_max), "");
      EXPECT_EQ(file_.data, memory_);
      EXPECT_EQ(copy.is_in_place(), false);
      file_.write_error = -EIO;
      for (uint64_t unit = 0; unit < kUnits; ++unit) write(unit, 3);
      EXPECT_NE(sync(copy, bytes_max).find("Input/output error"), std::string::npos);
      EXPECT_TRUE(copy.has_given_up());
      memory_.assign(kAll, 0);
      start_anew();
    }
  }
}

TEST_F(ImageCopyTest, nothing_that_has_changed_needs_nothing_to_stay) {
  ImageCopy copy = make();
  EXPECT_EQ(copy.collect(kNone, copier_), "");
  EXPECT_FALSE(copy.is_in_place());
}

TEST_F(ImageCopyTest, a_full_disk_changes_nothing_and_is_got_over) {
  ImageCopy copy = make();
  write(3, 1);
  file_.reserve_error = -ENOSPC;
  EXPECT_NE(sync(copy).find("No space left"), std::string::npos);
  EXPECT_EQ(file_.writes, 0);
  EXPECT_FALSE(copy.has_given_up());
  for (int i = 0; i < 3; ++i) EXPECT_NE(sync(copy), "");
  file_.reserve_error = 0;
  EXPECT_EQ(sync(copy), "");
  EXPECT_EQ(in_file(3), 1);
}

TEST_F(ImageCopyTest, a_copy_that_fails_loses_nothing) {
  for (int copies = 0; copies < 3; ++copies) {
    ImageCopy copy = make();
    write(3, 1);
    write(4, 1);
    copier_.copies_left = copies;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(sync(copy), "no copy");
    EXPECT_EQ(file_.writes, 0);
    EXPECT_FALSE(copy.has_given_up());
    copier_.copies_left = 1000;
    EXPECT_EQ(sync(copy), "");
    EXPECT_EQ(in_file(3), 1);
    EXPECT_EQ(in_file(4), 1);
    start_anew();
  }
}

TEST_F(ImageCopyTest, after_a_write_that_fails_the_same_is_said_for_ever) {
  for (int* const failing : {&file_.write_error, &file_.sync_error}) {
    ImageCopy copy = make();
    write(3, 1);
    *failing = -EIO;
    const std::string error = sync(copy);
    EXPECT_NE(error, "");
    *failing = 0;
    EXPECT_TRUE(copy.has_given_up());
    EXPECT_EQ(copy.collect(kAll, copier_), error);
    EXPECT_EQ(copy.write(), error);
    start_anew();
  }
}

TEST_F(ImageCopyTest, places_without_memory_are_holes) {
  constexpr uint64_t kUnitsAChunk = ssd::kChunkBytes / kUnit;
  chunks_.assign(simt::divide_up(bytes_, ssd::kChunkBytes), ssd::kNoChunk);
  chunks_[1] = reinterpret_cast<uint64_t>(memory_.data());
  ImageCopy copy = make();
  mark(1);
  mark(kUnitsAChunk + 2);
  change(2, 5);
  EXPECT_EQ(sync(copy), "");
  EXPECT_EQ(file_.writes, 1);
  EXPECT_EQ(in_file(kUnitsAChunk + 2), 5);
  // It has got some meanwhile.
  chunks_[0] = reinterpret_cast<uint64_t>(memory_.data());
  change(1, 6);
  mark(1);
  EXPECT_EQ(sync(copy), "");
  EXPECT_EQ(in_file(1), 6);
}

TEST_F(ImageCopyTest, the_last_unit_may_be_a_part) {
  bytes_ = kAll - 4096;
  file_.data.assign(bytes_, 0);
  for (const uint64_t bytes_max : {kNone, kAll}) {
    marks_.assign(kUnits, 0);
    ImageCopy copy = make();
    write(kUnits - 1, 4);
    EXPECT_EQ(sync(copy, bytes_max), "");
    EXPECT_EQ(in_file(kUnits - 1), 4);
    file_.data.assign(bytes_, 0);
  }
}

}  // namespace
}  // namespace gofs::gpu
