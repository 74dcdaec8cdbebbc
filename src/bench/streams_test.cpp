// SPDX-License-Identifier: Apache-2.0
//
// Streams and records in small, on host threads: each of them measures something, and all that it
// wrote is found again.
#include "bench/streams.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <string>

#include "bench/records.hpp"

namespace gofs::bench {
namespace {

class StreamTest : public ::testing::Test {
 protected:
  StreamTest() {
    std::filesystem::create_directories(folder_);
    options_.folder = folder_;
    options_.backend = "cpu";
    options_.file_bytes = uint64_t{4} << 20;
    options_.runs = 1;
  }
  ~StreamTest() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = ::testing::TempDir() + "gofs-stream-" + std::to_string(::getpid());
  StreamOptions options_;
};

TEST_F(StreamTest, every_work_of_every_actor_measures_something) {
  options_.shapes = {{StreamActor::kGrid, 1 << 20, false},
                     {StreamActor::kBlock, 1 << 16, false},
                     {StreamActor::kWarp, 1 << 14, true},
                     {StreamActor::kThread, 3 << 12, false}};
  std::set<std::string> rows;
  StreamSinks sinks;
  sinks.row = [&](const StreamRow& row) {
    rows.insert(std::string(name_of(row.shape.actor)) + " " + name_of(row.work));
    EXPECT_GT(row.raw.least, 0);
    EXPECT_GT(row.file.least, 0);
    EXPECT_EQ(row.fsync_seconds.median > 0, row.work != StreamWork::kRead);
    EXPECT_LE(row.bytes, options_.file_bytes);
    EXPECT_GE(row.bytes, options_.file_bytes - row.actors * row.shape.piece_bytes);
  };
  const auto done = run_streams(options_, sinks);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(rows.size(), options_.shapes.size() * kStreamWorks);
}

TEST_F(StreamTest, pieces_that_are_not_whole_blocks_are_refused) {
  options_.shapes = {{StreamActor::kWarp, 1000, false}};
  const auto done = run_streams(options_, {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, EINVAL);
}

TEST_F(StreamTest, a_piece_that_is_larger_than_the_file_is_refused) {
  options_.shapes = {{StreamActor::kWarp, 8 << 20, false}};
  const auto done = run_streams(options_, {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, EINVAL);
}

TEST_F(StreamTest, records_are_found_whole_once_and_in_order) {
  RecordOptions options;
  options.folder = folder_;
  options.backend = "cpu";
  options.runs = 1;
  options.seconds = 0.002;
  options.log_bytes = uint64_t{1} << 20;
  options.shapes = {{false, 4, 1, false, false},
                    {false, 4, 300, false, false},
                    {true, 4, 4000, false, false},
                    {false, 2, 5000, true, false},
                    {false, 2, 300, true, true}};
  uint32_t rows = 0;
  RecordSinks sinks;
  sinks.row = [&](const RecordRow& row) {
    ++rows;
    EXPECT_GT(row.records.least, 0);
    EXPECT_GT(row.longest_us, 0);
    EXPECT_EQ(row.read != 0, row.shape.reader);
  };
  const auto done = run_records(options, sinks);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(rows, options.shapes.size());
}

TEST(RecordTest, a_changed_byte_makes_a_record_none) {
  std::vector<uint8_t> data(300);
  detail::make_record(data.data(), 300, 5, 17, 0, 1);
  uint32_t writer = 0;
  uint32_t number = 0;
  ASSERT_TRUE(is_record(data.data(), 300, 6, writer, number));
  EXPECT_EQ(writer, 5u);
  EXPECT_EQ(number, 17u);
  EXPECT_FALSE(is_record(data.data(), 300, 5, writer, number));
  data[299] ^= 1;
  EXPECT_FALSE(is_record(data.data(), 300, 6, writer, number));
}

}  // namespace
}  // namespace gofs::bench
