// SPDX-License-Identifier: Apache-2.0
//
// Media: image files, sparse tables of chunks, and what a controller makes of them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <system_error>
#include <thread>

#include "simt/workers.h"
#include "ssd/file_back_end.h"
#include "ssd/media_host.h"
#include "ssd/prp_buffer.h"
#include "ssd/temporary_file_for_test.h"
#include "ssd/test_driver.h"

namespace gofs::ssd {
namespace {

using namespace format::nvme;

int error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::system_error& error) {
    return error.code().value();
  }
  return 0;
}

TEST(FileMedia, reads_and_writes_an_image) {
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

/// A controller on memory whose changes are marked, 256 KiB a word.
class MarkedMedia : public ::testing::Test {
 protected:
  static constexpr uint64_t kUnits = 8;
  static constexpr uint64_t kUnitLbas = (uint64_t{1} << kMarkShift) / 512;

  Media media() {
    Media media = memory_media_.media();
    media.marks = marks_;
    return media;
  }
  Status run(IoOpcode opcode, uint64_t lba, uint32_t count) {
    return driver_.run(queue_, TestDriver::io_entry(opcode, lba, count, buffer_, buffer_ + 4096));
  }
  std::vector<uint32_t> marks() const { return {marks_, marks_ + kUnits}; }

  TestMemory memory_;
  MemoryMedia memory_media_{memory_.space(), kUnits << kMarkShift};
  uint8_t* const buffer_ = memory_.bytes(8192);
  // Where LBA 0 is: what is written there changes them.
  uint32_t* const marks_ = reinterpret_cast<uint32_t*>(memory_media_.media().base);
  TestDriver driver_{{}, media()};
  TestQueue queue_ = [this] {
    driver_.enable_ready();
    return driver_.create_pair(1, 8);
  }();
};

TEST_F(MarkedMedia, writes_and_zeroes_are_marked_in_all_units_that_they_touch) {
  EXPECT_EQ(run(IoOpcode::kWrite, 2 * kUnitLbas - 8, 16), kSuccess);
  EXPECT_EQ(run(IoOpcode::kWriteZeroes, 5 * kUnitLbas, 8), kSuccess);
  EXPECT_EQ(marks(), (std::vector<uint32_t>{0, 1, 1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(run(IoOpcode::kWrite, 2 * kUnitLbas, 8), kSuccess);
  EXPECT_EQ(marks(), (std::vector<uint32_t>{0, 1, 2, 0, 0, 1, 0, 0}));
}

TEST_F(MarkedMedia, reads_and_what_is_refused_are_not_marked) {
  EXPECT_EQ(run(IoOpcode::kRead, 8, 16), kSuccess);
  EXPECT_EQ(run(IoOpcode::kWrite, kUnits * kUnitLbas - 8, 16), kLbaOutOfRange);
  EXPECT_EQ(marks(), std::vector<uint32_t>(kUnits, 0));
}

TEST_F(MarkedMedia, a_mark_is_set_after_the_data_was_moved) {
  constexpr uint32_t kWritten = 9;
  std::memcpy(buffer_, &kWritten, sizeof(kWritten));
  EXPECT_EQ(run(IoOpcode::kWrite, 0, 8), kSuccess);
  EXPECT_EQ(marks_[0], kWritten + 1);
}

/// Memory that fails on demand.
class FakeFile final : public FileBackEnd {
 public:
  explicit FakeFile(uint64_t bytes) : data(bytes) {}
  uint64_t size() const override { return data.size(); }
  int read(uint64_t offset, std::span<const iovec> parts) override {
    for (const iovec& part : parts) {
      std::memcpy(part.iov_base, data.data() + offset, part.iov_len);
      offset += part.iov_len;
    }
    ++reads;
    return read_error;
  }
  int write(uint64_t offset, std::span<const iovec> parts) override {
    ++writes;
    if (write_error != 0) return write_error;
    for (const iovec& part : parts) {
      std::memcpy(data.data() + offset, part.iov_base, part.iov_len);
      offset += part.iov_len;
    }
    return 0;
  }
  int zero(uint64_t offset, uint64_t bytes) override {
    if (write_error == 0) std::memset(data.data() + offset, 0, bytes);
    return write_error;
  }
  int reserve(uint64_t, uint64_t) override { return 0; }
  int sync() override { return sync_error; }

  std::vector<uint8_t> data;
  int reads = 0;
  int writes = 0;
  int read_error = 0;
  int write_error = 0;
  int sync_error = 0;
};

/// A controller on a file that fails on demand.
class FileMediaFailures : public ::testing::Test {
 protected:
  Status run(IoOpcode opcode, uint64_t lba = 0) {
    return driver_.run(queue_, TestDriver::io_entry(opcode, lba, 8, buffer_));
  }
  Status flush() { return driver_.run(queue_, TestDriver::io_entry(IoOpcode::kFlush)); }

  TestMemory memory_;
  uint8_t* const buffer_ = memory_.bytes(4096);
  FakeFile* const file_ = new FakeFile(1 << 20);
  FileMedia media_{std::unique_ptr<FileBackEnd>(file_), FileAccess::kReadWrite};
  TestDriver driver_{{}, media_.media()};
  TestQueue queue_ = [this] {
    driver_.enable_ready();
    return driver_.create_pair(1, 8);
  }();
};

TEST_F(FileMediaFailures, a_full_disk_fails_the_write_and_not_those_after_it) {
  EXPECT_EQ(media_.problem(), "");
  file_->write_error = -ENOSPC;
  EXPECT_EQ(run(IoOpcode::kWrite), kWriteFault);
  EXPECT_EQ(media_.problem(), "No space left on device");
  EXPECT_EQ(run(IoOpcode::kWriteZeroes), kWriteFault);
  EXPECT_EQ(run(IoOpcode::kRead), kSuccess);
  EXPECT_EQ(flush(), kSuccess);
  file_->write_error = 0;
  EXPECT_EQ(run(IoOpcode::kWrite), kSuccess);
}

TEST_F(FileMediaFailures, a_failed_read_is_a_media_error) {
  file_->read_error = -EIO;
  EXPECT_EQ(run(IoOpcode::kRead), kUnrecoveredReadError);
  EXPECT_EQ(media_.problem(), "Input/output error");
  file_->read_error = 0;
  EXPECT_EQ(run(IoOpcode::kRead), kSuccess);
}

TEST_F(FileMediaFailures, after_a_failed_sync_nothing_is_written_any_more) {
  file_->sync_error = -EIO;
  EXPECT_EQ(flush(), kWriteFault);
  file_->sync_error = 0;
  EXPECT_EQ(flush(), kWriteFault) << "what was lost is not known";
  const int writes = file_->writes;
  EXPECT_EQ(run(IoOpcode::kWrite), kWriteFault);
  EXPECT_EQ(run(IoOpcode::kWriteZeroes), kWriteFault);
  EXPECT_EQ(file_->writes, writes);
  EXPECT_EQ(run(IoOpcode::kRead), kSuccess);
  EXPECT_EQ(media_.sync(), -EIO);
}

TEST_F(FileMediaFailures, scattered_pages_are_gathered_in_order) {
  constexpr uint32_t kBytes = 300 * 4096;  // more than go at once
  FakeFile* const large = new FakeFile(2 * kBytes);
  FileMedia media{std::unique_ptr<FileBackEnd>(large), FileAccess::kReadWrite};
  VirtualSsdConfig config;
  config.mdts = 0;  // as much as there are LBAs in a command
  TestDriver driver(config, media.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);
  const std::vector<uint8_t> data = pattern(kBytes, 6);
  PrpBuffer out(memory_, 512, kBytes);
  out.fill(data);
  auto entry = TestDriver::io_entry(IoOpcode::kWrite, 3, kBytes / 512);
  out.set_prps(entry);
  EXPECT_EQ(driver.run(queue, entry), kSuccess);
  EXPECT_EQ(std::memcmp(large->data.data() + 3 * 512, data.data(), kBytes), 0);
  PrpBuffer in(memory_, 1024, kBytes);
  entry = TestDriver::io_entry(IoOpcode::kRead, 3, kBytes / 512);
  in.set_prps(entry);
  EXPECT_EQ(driver.run(queue, entry), kSuccess);
  EXPECT_EQ(in.collect(), data);
  EXPECT_TRUE(in.guards_intact());
}

TEST(FileMedia, an_image_that_was_cut_fails_and_is_not_made_longer) {
  TemporaryFile file;
  file.resize(1 << 20);
  FileMedia image(file.path(), FileAccess::kReadWrite);
  TestMemory memory;
  TestDriver driver({}, image.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);
  uint8_t* const buffer = memory.bytes(4096);
  const auto run = [&](IoOpcode opcode, uint64_t lba) {
    return driver.run(queue, TestDriver::io_entry(opcode, lba, 8, buffer));
  };
  EXPECT_EQ(run(IoOpcode::kWrite, 2040), kSuccess);
  file.resize(4096);
  EXPECT_EQ(run(IoOpcode::kRead, 0), kSuccess) << "that is there still";
  EXPECT_EQ(run(IoOpcode::kWrite, 2040), kWriteFault);
  EXPECT_EQ(run(IoOpcode::kRead, 1024), kUnrecoveredReadError);
  EXPECT_NE(image.problem().find("shorter than it was"), std::string::npos);
  file.resize(1 << 20);
  EXPECT_EQ(run(IoOpcode::kRead, 1024), kUnrecoveredReadError) << "zeros are not what was there";
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kFlush)), kWriteFault);
}

TEST(FileMedia, a_write_beyond_the_limit_of_file_sizes_fails_and_the_process_lives) {
  TemporaryFile file;
  file.resize(1 << 20);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{65536, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto back_end = make_positional_file(ClaimedImage(file.path(), FileAccess::kReadWrite));
  std::string bytes(8192, 'x');
  const iovec part{bytes.data(), bytes.size()};
  EXPECT_EQ(back_end->write(65536 - 8192, {&part, 1}), 0);
  EXPECT_EQ(back_end->write(65536 - 4096, {&part, 1}), -EFBIG);
  EXPECT_EQ(back_end->write(1 << 19, {&part, 1}), -EFBIG);
  EXPECT_EQ(back_end->read(1 << 19, {&part, 1}), 0);
  ::setrlimit(RLIMIT_FSIZE, &before);
}

TEST(FileMedia, a_read_or_a_flush_finds_that_an_image_was_cut) {
  for (const bool reads : {true, false}) {
    TemporaryFile file;
    file.resize(1 << 20);
    FileMedia image(file.path(), FileAccess::kReadWrite);
    TestMemory memory;
    TestDriver driver({}, image.media());
    driver.enable_ready();
    TestQueue queue = driver.create_pair(1, 8);
    file.resize(0);
    if (reads) {
      const auto read = TestDriver::io_entry(IoOpcode::kRead, 0, 8, memory.bytes(4096));
      EXPECT_EQ(driver.run(queue, read), kUnrecoveredReadError);
    } else {
      EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kFlush)), kWriteFault);
    }
    EXPECT_NE(image.sync(), 0);
    EXPECT_NE(image.problem(), "");
  }
}

TEST(FileMedia, what_is_deallocated_takes_no_room) {
  TemporaryFile file;
  file.resize(4 << 20);
  file.write(0, pattern(4 << 20, 8));
  const auto blocks = [&file] {
    struct stat status {};
    EXPECT_EQ(::stat(file.path().c_str(), &status), 0);
    return status.st_blocks;
  };
  const auto before = blocks();
  FileMedia image(file.path(), FileAccess::kReadWrite);
  TestDriver driver({}, image.media());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);
  // Not whole pages of the host.
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kWriteZeroes, 1, 4096)), kSuccess);
  EXPECT_LT(blocks(), before);
  EXPECT_EQ(file.read(512, 4096 * 512), std::vector<uint8_t>(4096 * 512, 0));
  EXPECT_NE(file.read(0, 512), std::vector<uint8_t>(512, 0));
  EXPECT_NE(file.read(4097 * 512, 512), std::vector<uint8_t>(512, 0));
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
    // The pool only hands addresses out; there are as many as are needed.
    std::vector<uint8_t> dummy(kChunks);
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
    EXPECT_EQ(media.pool->take(), 0u);
  }
}

TEST_F(Sparse, a_hole_that_found_no_spare_stays_one_for_all_that_meet_there) {
  SparseMedia sparse(memory_.space(), 2 * kChunkBytes);
  uint8_t* const chunk = spare();
  sparse.add_spare(chunk);
  const Media media = sparse.media();
  ASSERT_EQ(media.find_or_allocate(0), chunk);
  simt::run_workers(4, [&](const simt::Warp&, uint32_t) {
    for (int turn = 0; turn < 100; ++turn) {
      EXPECT_EQ(media.find_or_allocate(kChunkBytes), nullptr);
      EXPECT_EQ(media.find(kChunkBytes), nullptr);
    }
  });
  EXPECT_EQ(sparse.chunk(1), nullptr);
  EXPECT_EQ(media.find_or_allocate(5), chunk + 5);
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

// As Linux: of two who sync at the same time one is told of the failure, once.
class ToldOnce final : public FileBackEnd {
 public:
  std::atomic<uint32_t> calls{0};
  std::atomic<bool> other_done{false};
  uint64_t size() const override { return 1 << 20; }
  int read(uint64_t, std::span<const iovec>) override { return 0; }
  int write(uint64_t, std::span<const iovec>) override { return 0; }
  int zero(uint64_t, uint64_t) override { return 0; }
  int reserve(uint64_t, uint64_t) override { return 0; }
  int sync() override {
    if (calls++ != 0) return 0;
    for (int i = 0; i < 1000 && !other_done; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return -EIO;
  }
};

TEST(FileMedia, no_sync_succeeds_beside_one_that_fails) {
  auto file = std::make_unique<ToldOnce>();
  ToldOnce& told = *file;
  FileMedia media(std::move(file), FileAccess::kReadWrite);
  int first = 0;
  std::thread one([&] { first = media.sync(); });
  while (told.calls == 0) std::this_thread::yield();
  const int second = media.sync();
  told.other_done = true;
  one.join();
  EXPECT_EQ(first, -EIO);
  EXPECT_EQ(second, -EIO);
}

}  // namespace
}  // namespace gofs::ssd
