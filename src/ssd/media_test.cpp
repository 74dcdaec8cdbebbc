// SPDX-License-Identifier: Apache-2.0
//
// Media: image files, sparse tables of chunks, and what a controller makes of them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <system_error>

#include "simt/workers.h"
#include "ssd/media_host.h"
#include "ssd/prp_buffer.h"
#include "ssd/test_driver.h"

namespace gofs::ssd {
namespace {

using namespace format::nvme;

class TemporaryFile {
 public:
  TemporaryFile() {
    const int descriptor = ::mkstemp(path_.data());
    EXPECT_GE(descriptor, 0);
    ::close(descriptor);
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }
  void resize(uint64_t bytes) {
    ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(bytes)), 0);
  }
  void write(uint64_t offset, const std::vector<uint8_t>& data) {
    const int descriptor = ::open(path_.c_str(), O_WRONLY);
    ASSERT_EQ(::pwrite(descriptor, data.data(), data.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(data.size()));
    ::close(descriptor);
  }
  std::vector<uint8_t> read(uint64_t offset, size_t bytes) {
    std::vector<uint8_t> data(bytes);
    const int descriptor = ::open(path_.c_str(), O_RDONLY);
    EXPECT_EQ(::pread(descriptor, data.data(), bytes, static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes));
    ::close(descriptor);
    return data;
  }

 private:
  std::string path_ = ::testing::TempDir() + "gofs_media_XXXXXX";
};

int error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::system_error& error) {
    return error.code().value();
  }
  return 0;
}

TEST(FileMedia, maps_an_image_both_ways) {
  TemporaryFile file;
  file.resize(1 << 20);
  const std::vector<uint8_t> data = pattern(4096, 3);
  file.write(8192, data);
  FileMedia image(file.path(), FileAccess::kReadWrite);
  EXPECT_EQ(image.media().bytes, 1u << 20);
  EXPECT_FALSE(image.media().read_only);

  TestMemory memory;
  TestDriver driver({}, image.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);
  uint8_t* const buffer = memory.bytes(4096);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kRead, 16, 8, buffer)), kSuccess);
  EXPECT_EQ(std::memcmp(buffer, data.data(), 4096), 0);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kWrite, 0, 8, buffer)), kSuccess);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kFlush)), kSuccess);
  EXPECT_EQ(file.read(0, 4096), data);
}

TEST(FileMedia, read_only_images_are_not_written) {
  TemporaryFile file;
  file.resize(1 << 20);
  FileMedia image(file.path(), FileAccess::kReadOnly);
  EXPECT_TRUE(image.media().read_only);
  EXPECT_EQ(image.media().sync, nullptr);
}

TEST(FileMedia, names_what_is_wrong) {
  TemporaryFile file;
  const auto open = [](const std::string& path) {
    return error_of([&] { FileMedia image(path, FileAccess::kReadOnly); });
  };
  EXPECT_EQ(open(file.path()), EINVAL);  // empty
  EXPECT_EQ(open(file.path() + ".not"), ENOENT);
  EXPECT_EQ(open(::testing::TempDir()), EISDIR);
  EXPECT_EQ(open("/dev/null"), ENODEV);
  try {
    FileMedia image(file.path() + ".not", FileAccess::kReadOnly);
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find(file.path()), std::string::npos);
  }
}

// A Flush calls the owner of the media, and its completion says what came of it.
TEST(MediaSync, a_flush_completes_after_the_sync_and_fails_with_it) {
  TestMemory memory;
  MemoryMedia plain(memory.space(), 1 << 20);
  struct Owner {
    int calls = 0;
    int answer = 0;
  } owner;
  Media media = plain.media();
  media.sync_context = &owner;
  media.sync = [](void* context) {
    auto* const self = static_cast<Owner*>(context);
    ++self->calls;
    return self->answer;
  };
  TestDriver driver({}, media);
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);
  uint8_t* const data = memory.bytes(512);
  auto forced = TestDriver::io_entry(IoOpcode::kWrite, 0, 1, data);
  forced.cdw12 |= kForceUnitAccess;
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kFlush)), kSuccess);
  EXPECT_EQ(owner.calls, 1);
  EXPECT_EQ(driver.run(queue, forced), kSuccess);
  EXPECT_EQ(owner.calls, 2);
  owner.answer = -EIO;
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kFlush)), kWriteFault);
  EXPECT_EQ(driver.run(queue, forced), kWriteFault);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kRead, 0, 1, data)), kSuccess);
  // A shutdown that cannot save the data is not complete.
  driver.write_cc(kCcEntrySizes | kCcEnable | kCcShutdownNormal);
  driver.step(0, 3);
  EXPECT_EQ(driver.csts() & kCstsShutdownMask, 0u);
  EXPECT_NE(driver.csts() & kCstsFatal, 0u);
}

class Sparse : public ::testing::Test {
 protected:
  static constexpr uint64_t kBytes = uint64_t{1} << 40;

  uint8_t* spare() { return memory_.bytes(kChunkBytes); }
  Status run(TestDriver& driver, TestQueue& queue, IoOpcode opcode, uint64_t offset,
             PrpBuffer& buffer, uint32_t bytes) {
    auto entry = TestDriver::io_entry(opcode, offset / 512, bytes / 512);
    buffer.set_prps(entry);
    return driver.run(queue, entry);
  }

  TestMemory memory_;
};

TEST_F(Sparse, holes_read_zeros_and_writes_take_spares) {
  SparseMedia sparse(memory_.space(), kBytes);
  sparse.add_spare(spare());
  sparse.add_spare(spare());
  const std::vector<uint8_t> there = pattern(kChunkBytes, 4);
  uint8_t* const chunk = memory_.bytes(kChunkBytes);
  std::memcpy(chunk, there.data(), there.size());
  sparse.set_chunk(5, chunk);
  TestDriver driver({}, sparse.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);

  PrpBuffer in(memory_, 512, 8192);
  in.fill(pattern(8192, 9));
  EXPECT_EQ(run(driver, queue, IoOpcode::kRead, kBytes - 8192, in, 8192), kSuccess);
  EXPECT_EQ(in.collect(), std::vector<uint8_t>(8192, 0));
  EXPECT_EQ(run(driver, queue, IoOpcode::kRead, 5 * kChunkBytes + 512, in, 8192), kSuccess);
  EXPECT_EQ(in.collect(), std::vector<uint8_t>(there.begin() + 512, there.begin() + 512 + 8192));
  EXPECT_TRUE(in.guards_intact());

  const std::vector<uint8_t> data = pattern(8192, 5);
  PrpBuffer out(memory_, 512, 8192);
  out.fill(data);
  // The last of the device, and across the end of a chunk inside of a page of the driver.
  const uint64_t across = 6 * kChunkBytes - 2048;
  EXPECT_EQ(run(driver, queue, IoOpcode::kWrite, kBytes - 8192, out, 8192), kSuccess);
  EXPECT_EQ(run(driver, queue, IoOpcode::kWrite, across, out, 8192), kSuccess);
  EXPECT_EQ(run(driver, queue, IoOpcode::kRead, kBytes - 8192, in, 8192), kSuccess);
  EXPECT_EQ(in.collect(), data);
  EXPECT_EQ(run(driver, queue, IoOpcode::kRead, across, in, 8192), kSuccess);
  EXPECT_EQ(in.collect(), data);
  EXPECT_NE(sparse.chunk(6), nullptr);
  EXPECT_EQ(sparse.chunk(7), nullptr);

  // No spare is left: what exists can be written still.
  EXPECT_EQ(run(driver, queue, IoOpcode::kWrite, 0, out, 8192), kCapacityExceeded);
  EXPECT_EQ(run(driver, queue, IoOpcode::kWrite, 6 * kChunkBytes, out, 8192), kSuccess);
  EXPECT_EQ(sparse.chunk(0), nullptr);
  // A write that reaches into a missing chunk fails.
  EXPECT_EQ(run(driver, queue, IoOpcode::kWrite, 7 * kChunkBytes - 2048, out, 8192),
            kCapacityExceeded);
}

TEST_F(Sparse, zeroing_a_hole_takes_no_spare) {
  SparseMedia sparse(memory_.space(), kBytes);
  sparse.add_spare(spare());
  TestDriver driver({}, sparse.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kWriteZeroes, 4096 * 7, 65536)),
            kSuccess);
  // The whole device.
  auto* const range = reinterpret_cast<DatasetRange*>(memory_.bytes(4096));
  *range = {0, 0xffffffff, 0};
  auto trim = TestDriver::io_entry(IoOpcode::kDatasetManagement, 0, 1, range);
  trim.cdw10 = 0;
  trim.cdw11 = kDeallocate;
  EXPECT_EQ(driver.run(queue, trim), kLbaOutOfRange);
  range->lba_count = 1u << 31;
  EXPECT_EQ(driver.run(queue, trim), kSuccess);
  PrpBuffer out(memory_, 0, 4096);
  EXPECT_EQ(run(driver, queue, IoOpcode::kWrite, 0, out, 4096), kSuccess);
  EXPECT_EQ(driver.run(queue, trim), kSuccess);
  PrpBuffer in(memory_, 0, 4096);
  EXPECT_EQ(run(driver, queue, IoOpcode::kRead, 0, in, 4096), kSuccess);
  EXPECT_EQ(in.collect(), std::vector<uint8_t>(4096, 0));
}

TEST_F(Sparse, without_spares_or_read_only) {
  SparseMedia sparse(memory_.space(), kBytes);
  TestDriver driver({}, sparse.media(true));
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);
  PrpBuffer out(memory_, 0, 4096);
  EXPECT_EQ(run(driver, queue, IoOpcode::kWrite, 0, out, 4096), kNamespaceWriteProtected);
  EXPECT_EQ(run(driver, queue, IoOpcode::kRead, 0, out, 4096), kSuccess);
  EXPECT_THROW(sparse.add_spare(nullptr), std::logic_error);
}

TEST_F(Sparse, threads_that_meet_at_a_hole_take_one_spare) {
  constexpr uint32_t kChunks = 16;
  for (int round = 0; round < 20; ++round) {
    TestMemory memory;
    SparseMedia sparse(memory.space(), kChunks * kChunkBytes);
    std::vector<uint8_t> dummy(kChunks + 4);
    // The pool only hands addresses out; a few more than needed, since losers hold one for a
    // moment.
    for (uint8_t& byte : dummy) sparse.add_spare(&byte);
    const Media media = sparse.media();
    std::array<std::array<uint8_t*, kChunks>, 4> found{};
    simt::run_workers(4, [&](const simt::Warp&, uint32_t worker) {
      for (uint32_t chunk = 0; chunk < kChunks; ++chunk) {
        found[worker][chunk] = media.find_or_allocate(chunk * kChunkBytes);
      }
    });
    std::vector<uint8_t*> all;
    for (uint32_t chunk = 0; chunk < kChunks; ++chunk) {
      for (const auto& each : found) ASSERT_EQ(each[chunk], found[0][chunk]);
      all.push_back(found[0][chunk]);
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
    // Four are left.
    uint32_t left = 0;
    while (media.pool->take() != 0) ++left;
    EXPECT_EQ(left, 4u);
  }
}

TEST(DataExtents, are_found_in_order) {
  TemporaryFile file;
  file.resize(64 << 20);
  const std::vector<uint8_t> data = pattern(4096, 1);
  file.write(4 << 20, data);
  file.write(32 << 20, data);
  std::vector<uint8_t> covered(64 << 20, 0);
  uint64_t last = 0;
  const uint64_t length = for_each_data_extent(file.path(), [&](uint64_t offset, uint64_t bytes) {
    EXPECT_GE(offset, last);
    EXPECT_GT(bytes, 0u);
    last = offset + bytes;
    ASSERT_LE(last, covered.size());
    std::fill_n(covered.begin() + static_cast<ptrdiff_t>(offset), bytes, uint8_t{1});
  });
  EXPECT_EQ(length, 64u << 20);
  EXPECT_EQ(covered[4 << 20], 1);
  EXPECT_EQ(covered[(4 << 20) + 4095], 1);
  EXPECT_EQ(covered[32 << 20], 1);
}

TEST(DataExtents, of_an_empty_or_missing_file) {
  TemporaryFile file;
  EXPECT_EQ(for_each_data_extent(file.path(), [](uint64_t, uint64_t) { FAIL(); }), 0u);
  file.resize(1 << 20);
  EXPECT_EQ(for_each_data_extent(file.path(), [](uint64_t, uint64_t) {}), 1u << 20);
  EXPECT_EQ(error_of([&] { for_each_data_extent(file.path() + ".not", {}); }), ENOENT);
}

TEST(Configuration, nonsense_is_refused) {
  TestMemory memory;
  MemoryMedia media(memory.space(), 1 << 20);
  const auto refused = [&](auto spoil, Media with) {
    VirtualSsdConfig config;
    spoil(config);
    EXPECT_THROW(create_virtual_controller(memory.space(), config, with), std::invalid_argument);
  };
  refused([](auto& c) { c.lba_shift = 10; }, media.media());
  refused([](auto& c) { c.queue_entries_max = 1; }, media.media());
  refused([](auto& c) { c.queue_entries_max = 65536; }, media.media());
  refused([](auto& c) { c.queue_pairs_max = 0; }, media.media());
  refused([](auto& c) { c.capacity_bytes = (1 << 20) + 512; }, media.media());
  refused([](auto& c) { c.capacity_bytes = 1000; }, media.media());
  refused([](auto& c) { c.model.units = 5000; }, media.media());
  refused([](auto& c) { c.doorbell_stride = 16; }, media.media());
  refused([](auto&) {}, Media{});
  Media tiny = media.media();
  tiny.bytes = 511;
  refused([](auto&) {}, tiny);
}

}  // namespace
}  // namespace gofs::ssd
