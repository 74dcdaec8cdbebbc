// SPDX-License-Identifier: Apache-2.0
//
// Volume::read_ranges() and write_ranges() beside pread() and pwrite(), on the CPU and on a backend
// that is used as a GPU is.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "format/inode_layout.h"
#include "gofs/mkfs.hpp"
#include "gofs/volume.hpp"
#include "host/backend_for_test.h"
#include "host/image/fsck_for_test.h"
#include "host/volume_for_test.h"

namespace gofs::host {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr uint64_t kRangesFileBytes = 5 * kMebibyte + 1234;

/// Lets block `index` of a file lie outside the volume. Its inode is the node that says it is one.
void damage_address(const std::string& image, uint64_t ino, uint32_t index) {
  std::fstream file(image, std::ios::binary | std::ios::in | std::ios::out);
  format::NodeBlock node;
  for (uint64_t at = 0; file.read(reinterpret_cast<char*>(&node), sizeof(node));
       at += sizeof(node)) {
    if (node.footer.ino != ino || node.footer.nid != ino) continue;
    const uint32_t word =
        format::inode_layout(node.inode, format::kFeatureExtraAttr).word_of_slot(index);
    node.inode.i_addr[word] = 0x7ffffff0;
    file.seekp(static_cast<std::streamoff>(at));
    file.write(reinterpret_cast<const char*>(&node), sizeof(node));
    file.seekg(static_cast<std::streamoff>(at + sizeof(node)));
  }
}

/// "cpu" has warps that are threads of the host; "gpu" reaches its memory by copies.
class RangesTest : public ::testing::TestWithParam<const char*> {
 protected:
  RangesTest() {
    MkfsOptions options;
    options.size_bytes = 128 * kMebibyte;
    EXPECT_TRUE(mkfs(image_.path(), options));
    mount();
    for (uint32_t i = 0; i < 3; ++i) {
      std::mt19937 random(i);
      contents_.emplace_back(kRangesFileBytes, '\0');
      for (char& byte : contents_.back()) byte = static_cast<char>(random());
      const int fd = volume_->open(path_of(i), O_RDWR | O_CREAT).value();
      const auto written = volume_->pwrite(fd, contents_.back().data(), kRangesFileBytes, 0);
      EXPECT_EQ(written.value(), kRangesFileBytes);
      files_.push_back(fd);
    }
  }
  void mount() {
    const MountOptions options{.read_only = false};
    if (std::string(GetParam()) == "cpu") {
      volume_.emplace(Volume::mount(image_.path(), {.backend = "cpu", .read_only = false}).value());
    } else {
      volume_.emplace(VolumeForTest::mount(image_.path() + "?media=memory", options,
                                           [](const std::string&, std::string&) {
                                             return std::make_unique<BackendForTest>(3);
                                           })
                          .value());
    }
  }
  static std::string path_of(uint32_t i) { return "/ranges" + std::to_string(i); }
  void expect_sound() {
    EXPECT_TRUE(volume_->unmount());
    EXPECT_TRUE(image::fsck_is_clean(image_.path()));
  }

  const image::TemporaryPath image_;
  std::optional<Volume> volume_;
  std::vector<std::string> contents_;
  std::vector<int> files_;
};

INSTANTIATE_TEST_SUITE_P(Backends, RangesTest, ::testing::Values("cpu", "gpu"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(RangesTest, reads_what_pread_reads) {
  std::mt19937_64 random(7);
  for (uint32_t turn = 0; turn < 5; ++turn) {
    std::vector<std::string> buffers;
    std::vector<IoRange> ranges;
    for (uint32_t i = 0; i < 40; ++i) {
      const uint64_t most = i % 10 == 0 ? 3 * kMebibyte : 20'000;
      buffers.emplace_back(i == 7 ? 0 : random() % most, 'x');
    }
    for (std::string& buffer : buffers) {
      ranges.push_back({files_[random() % 3], buffer.data(), buffer.size(),
                        random() % (kRangesFileBytes + 100'000)});
    }
    const auto results = volume_->read_ranges(ranges).value().wait().value();
    ASSERT_EQ(results.size(), ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i) {
      std::string expected(ranges[i].bytes, 'x');
      const auto got =
          volume_->pread(ranges[i].fd, expected.data(), expected.size(), ranges[i].offset);
      ASSERT_EQ(results[i], static_cast<int64_t>(got.value())) << i;
      ASSERT_TRUE(buffers[i] == expected) << i;
    }
  }
}

TEST_P(RangesTest, a_block_that_cannot_be_read_is_no_end_of_a_file) {
  constexpr uint32_t kDamaged = 300;  // a block of /ranges1
  const uint64_t ino = volume_->stat(path_of(1)).value().ino;
  ASSERT_TRUE(volume_->unmount());
  damage_address(image_.path(), ino, kDamaged);
  mount();
  const int fd = volume_->open(path_of(1)).value();
  const int whole = volume_->open(path_of(0)).value();
  std::string buffer(kRangesFileBytes, 'x');
  std::string other(kRangesFileBytes, 'x');
  EXPECT_EQ(volume_->pread(fd, buffer.data(), buffer.size(), 0).error().code, EUCLEAN);
  EXPECT_EQ(volume_->read(fd, buffer.data(), buffer.size()).error().code, EUCLEAN);
  const uint64_t before = uint64_t{kDamaged} * kBlockBytes;
  EXPECT_EQ(volume_->pread(fd, buffer.data(), before, 0).value(), before);
  EXPECT_TRUE(buffer.compare(0, before, contents_[1], 0, before) == 0);
  const auto results = volume_
                           ->read_ranges({{fd, buffer.data(), buffer.size(), 0},
                                          {whole, other.data(), other.size(), 0},
                                          {fd, buffer.data(), kMebibyte, 3 * kMebibyte}})
                           .value()
                           .wait()
                           .value();
  EXPECT_EQ(results, (std::vector<int64_t>{-EUCLEAN, kRangesFileBytes, kMebibyte}));
  EXPECT_TRUE(other == contents_[0]);
}

TEST_P(RangesTest, writes_what_is_read_then) {
  std::mt19937_64 random(8);
  std::vector<std::string> buffers;
  std::vector<IoRange> ranges;
  for (uint64_t at = 0; at < 8 * kMebibyte; at += buffers.back().size()) {
    buffers.emplace_back(1 + random() % (kMebibyte + 100),
                         static_cast<char>('a' + buffers.size() % 26));
    ranges.push_back({files_[1], nullptr, buffers.back().size(), at});
  }
  for (size_t i = 0; i < ranges.size(); ++i) ranges[i].memory = buffers[i].data();
  RangeCall call = volume_->write_ranges(ranges).value();
  const std::vector<int64_t> results = call.wait().value();
  for (const int64_t result : results) EXPECT_GT(result, 0);
  EXPECT_TRUE(call.is_done());
  std::string all;
  for (const std::string& buffer : buffers) all += buffer;
  std::string found(all.size() + 1, '\0');
  EXPECT_EQ(volume_->pread(files_[1], found.data(), found.size(), 0).value(), all.size());
  found.pop_back();
  EXPECT_TRUE(found == all);
  expect_sound();
}

TEST_P(RangesTest, says_of_each_range_what_is_wrong_with_it) {
  char bytes[8] = "1234567";
  const int reading = volume_->open(path_of(0)).value();
  const auto read = volume_->read_ranges({{files_[0], bytes, 4, 0},
                                          {77, bytes + 4, 4, 0},
                                          {77, nullptr, 0, 0},
                                          {files_[0], nullptr, 0, 0},
                                          {files_[0], bytes, 4, kRangesFileBytes}});
  EXPECT_EQ(read.value().wait().value(), (std::vector<int64_t>{4, -EBADF, -EBADF, 0, 0}));
  EXPECT_EQ(std::memcmp(bytes, contents_[0].data(), 4), 0);
  const auto written = volume_->write_ranges({{reading, bytes, 4, 0}});
  EXPECT_EQ(written.value().wait().value(), std::vector<int64_t>{-EBADF});
  EXPECT_TRUE(volume_->read_ranges({}).value().wait().value().empty());
}

TEST_P(RangesTest, refuses_what_no_file_has) {
  char bytes[8];
  const auto code = [&](const IoRange& range) {
    return volume_->read_ranges({range}).error().code;
  };
  EXPECT_EQ(code({files_[0], nullptr, 1, 0}), EFAULT);
  EXPECT_EQ(code({files_[0], bytes, uint64_t{1} << 63, 0}), EFAULT);
  EXPECT_EQ(code({files_[0], bytes, uint64_t{1} << 62, 0}), ENOMEM);
}

TEST_P(RangesTest, an_offset_that_no_file_has_is_an_error_of_its_range_alone) {
  constexpr uint64_t kEnd = uint64_t{1} << 63;  // of all that a file can have
  char bytes[16] = {};
  for (const uint64_t offset : {kEnd, kEnd - 3, ~uint64_t{0}}) {
    const auto alone = volume_->read_ranges({{files_[0], bytes, 4, offset}});
    EXPECT_EQ(alone.value().wait().value(), std::vector<int64_t>{-EINVAL});
    const auto among = volume_->read_ranges({{files_[0], bytes, 4, 0},
                                             {files_[0], bytes + 4, 4, offset},
                                             {files_[0], bytes + 8, 4, 4},
                                             {files_[0], bytes + 12, 4, kEnd - 5}});
    EXPECT_EQ(among.value().wait().value(), (std::vector<int64_t>{4, -EINVAL, 4, 0}));
    EXPECT_EQ(std::memcmp(bytes, contents_[0].data(), 4), 0);
    EXPECT_EQ(std::memcmp(bytes + 8, contents_[0].data() + 4, 4), 0);
  }
}

TEST_P(RangesTest, results_stay_when_the_volume_goes) {
  std::string buffer(100, '\0');
  RangeCall call = volume_->read_ranges({{files_[2], buffer.data(), 100, 50}}).value();
  EXPECT_TRUE(volume_->unmount());
  EXPECT_EQ(volume_->read_ranges({{files_[2], buffer.data(), 100, 50}}).error().code, ENODEV);
  volume_.reset();
  EXPECT_TRUE(call.is_done());
  EXPECT_EQ(call.wait().value(), std::vector<int64_t>{100});
  EXPECT_EQ(buffer, contents_[2].substr(50, 100));
}

TEST_P(RangesTest, may_be_begun_by_many_threads) {
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t turn = 0; turn < 20; ++turn) {
        std::string buffer(300'000, '\0');
        const uint64_t at = (t * 20 + turn) * 10'000;
        RangeCall call =
            volume_->read_ranges({{files_[t % 3], buffer.data(), buffer.size(), at}}).value();
        ASSERT_EQ(call.wait().value(), std::vector<int64_t>{300'000});
        ASSERT_TRUE(buffer == contents_[t % 3].substr(at, 300'000));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gofs::host
