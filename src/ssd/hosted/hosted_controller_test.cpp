// SPDX-License-Identifier: Apache-2.0
//
// A controller of host threads over a file: what it reads, writes, zeroes and refuses, by each
// engine; and what becomes of commands when the storage below fails.
#include "ssd/hosted/hosted_controller.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "ssd/hosted/faulty_engine_for_test.h"
#include "ssd/prp_buffer.h"
#include "ssd/refused_uring_for_test.h"
#include "ssd/temporary_file_for_test.h"
#include "ssd/test_driver.h"
#include "testing/in_child.hpp"

namespace gofs::ssd {
namespace {

using namespace format::nvme;
using namespace std::chrono_literals;

constexpr uint64_t kFileBytes = 4 << 20;

/// A file, a controller on it, and a driver with a queue.
class Hosted {
 public:
  explicit Hosted(HostedOptions options = {}, const std::string& folder = ::testing::TempDir(),
                  uint64_t bytes = kFileBytes)
      : file_(folder) {
    file_.resize(bytes);
    options.queue_pairs_max = 4;
    controller_ = std::make_unique<HostedController>(
        std::make_unique<BackingStore>(file_.path(), FileAccess::kReadWrite), memory_.space(),
        options);
    driver_ = std::make_unique<TestDriver>(controller_->ref(), VirtualSsdConfig());
    driver_->enable_ready();
    queue_ = driver_->create_pair(1, 16);
  }

  TemporaryFile& file() { return file_; }
  HostedController& controller() { return *controller_; }
  const HostedController& controller() const { return *controller_; }
  TestDriver& driver() { return *driver_; }
  TestQueue& queue() { return queue_; }
  TestMemory& memory() { return memory_; }
  uint32_t lba_bytes() const { return controller_->store().traits().lba_bytes; }
  /// A command about the `bytes` at `offset`, whole LBAs.
  SubmissionEntry entry(IoOpcode opcode, uint64_t offset, uint64_t bytes,
                        const void* data = nullptr, const void* second = nullptr) const {
    return TestDriver::io_entry(opcode, offset / lba_bytes(),
                                static_cast<uint32_t>(bytes / lba_bytes()), data, second);
  }
  Status run(const SubmissionEntry& entry) { return driver_->run(queue_, entry); }
  Status move(IoOpcode opcode, uint64_t offset, PrpBuffer& buffer, uint32_t bytes) {
    SubmissionEntry command = entry(opcode, offset, bytes);
    buffer.set_prps(command);
    return run(command);
  }
  Status flush() { return run(TestDriver::io_entry(IoOpcode::kFlush)); }

 private:
  TestMemory memory_;
  TemporaryFile file_;
  // The controller goes before the driver: it may still post to the queues, whose memory is the
  // driver's.
  std::unique_ptr<TestDriver> driver_;
  std::unique_ptr<HostedController> controller_;
  TestQueue queue_;
};

/// Commands of a kind that were timed.
uint64_t timed(const Hosted& ssd, CommandKind kind) {
  const MeasuredCommands seen = ssd.controller().measured();
  uint64_t sum = 0;
  for (const uint64_t count : seen.kinds[static_cast<uint32_t>(kind)].counts) sum += count;
  return sum;
}

/// By engine, and where the file lies: on a disk, or in memory.
class HostedEngines : public ::testing::TestWithParam<std::tuple<EngineKind, const char*>> {
 protected:
  void SetUp() override {
    if (engine() == EngineKind::kUring && uring_refusal() != 0) {
      GTEST_SKIP() << "io_uring: " << std::strerror(uring_refusal());
    }
    struct stat status {};
    if (::stat(folder().c_str(), &status) != 0) GTEST_SKIP() << "no " << folder();
  }
  EngineKind engine() const { return std::get<0>(GetParam()); }
  std::string folder() const {
    const std::string named = std::get<1>(GetParam());
    return named.empty() ? ::testing::TempDir() : named;
  }
  HostedOptions options() const {
    HostedOptions options;
    options.engine = engine();
    return options;
  }
};
std::string words_of(EngineKind engine) {
  const std::string best = uring_refusal() == 0 ? "io_uring" : "threads";
  if (engine == EngineKind::kUring) return "io_uring";
  return engine == EngineKind::kMemory ? "system calls and " + best : "threads";
}

INSTANTIATE_TEST_SUITE_P(Engines, HostedEngines,
                         ::testing::Combine(::testing::Values(EngineKind::kUring,
                                                              EngineKind::kThreads,
                                                              EngineKind::kMemory),
                                            ::testing::Values("", "/dev/shm/")),
                         [](const auto& test) {
                           std::string name = words_of(std::get<0>(test.param));
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name +
                                  (*std::get<1>(test.param) == '\0' ? "_on_disk" : "_in_memory");
                         });

TEST_P(HostedEngines, reads_what_it_wrote_and_the_file_has_it) {
  Hosted ssd(options(), folder());
  EXPECT_EQ(ssd.controller().engine_name(), words_of(engine()));
  const std::vector<uint8_t> data = pattern(8192, 1);
  PrpBuffer out(ssd.memory(), 0, 8192);
  out.fill(data);
  EXPECT_EQ(ssd.move(IoOpcode::kWrite, 12288, out, 8192), kSuccess);
  EXPECT_EQ(ssd.flush(), kSuccess);
  EXPECT_EQ(ssd.file().read(12288, 8192), data);
  PrpBuffer in(ssd.memory(), 0, 8192);
  EXPECT_EQ(ssd.move(IoOpcode::kRead, 12288, in, 8192), kSuccess);
  EXPECT_EQ(in.collect(), data);
  EXPECT_TRUE(in.guards_intact());
}

TEST_P(HostedEngines, buffers_of_any_shape_that_prps_allow) {
  Hosted ssd(options(), folder());
  const uint32_t lba = ssd.lba_bytes();
  for (const uint32_t offset : {0u, 4u, 508u, 512u, 2048u, 4092u}) {
    for (const uint32_t bytes : {lba, 4096u, 4096u + lba, 65536u, 131072u, 524288u}) {
      const std::vector<uint8_t> data = pattern(bytes, offset + bytes);
      PrpBuffer out(ssd.memory(), offset, bytes, bytes / 4096 % 7);
      out.fill(data);
      ASSERT_EQ(ssd.move(IoOpcode::kWrite, 65536, out, bytes), kSuccess) << offset << " " << bytes;
      PrpBuffer in(ssd.memory(), offset, bytes);
      ASSERT_EQ(ssd.move(IoOpcode::kRead, 65536, in, bytes), kSuccess) << offset << " " << bytes;
      ASSERT_EQ(in.collect(), data) << offset << " " << bytes;
      ASSERT_TRUE(in.guards_intact()) << offset << " " << bytes;
    }
  }
}

TEST_P(HostedEngines, a_write_with_force_unit_access) {
  Hosted ssd(options(), folder());
  const std::vector<uint8_t> data = pattern(4096, 2);
  PrpBuffer out(ssd.memory(), 0, 4096);
  out.fill(data);
  SubmissionEntry entry = ssd.entry(IoOpcode::kWrite, 4096, 4096);
  out.set_prps(entry);
  entry.cdw12 |= kForceUnitAccess;
  EXPECT_EQ(ssd.run(entry), kSuccess);
  EXPECT_EQ(ssd.file().read(4096, 4096), data);
}

TEST_P(HostedEngines, zeroed_and_deallocated_blocks_read_zeros) {
  Hosted ssd(options(), folder());
  const std::vector<uint8_t> data = pattern(1 << 20, 3);
  ssd.file().write(0, data);
  EXPECT_EQ(ssd.run(ssd.entry(IoOpcode::kWriteZeroes, 8192, 262144)), kSuccess);
  EXPECT_EQ(ssd.file().read(8192, 262144), std::vector<uint8_t>(262144));
  EXPECT_EQ(ssd.file().read(8192 + 262144, 4096),
            std::vector<uint8_t>(data.begin() + 8192 + 262144, data.begin() + 12288 + 262144));

  auto* const ranges = reinterpret_cast<DatasetRange*>(ssd.memory().bytes(4096));
  ranges[0] = {0, 4096 / ssd.lba_bytes(), 524288 / ssd.lba_bytes()};
  ranges[1] = {0, 0, 0};
  ranges[2] = {0, 8192 / ssd.lba_bytes(), 786432 / ssd.lba_bytes()};
  SubmissionEntry entry = TestDriver::io_entry(IoOpcode::kDatasetManagement, 0, 1, ranges);
  entry.cdw10 = 2;
  entry.cdw11 = kDeallocate;
  entry.cdw12 = 0;
  EXPECT_EQ(ssd.run(entry), kSuccess);
  EXPECT_EQ(ssd.file().read(524288, 4096), std::vector<uint8_t>(4096));
  EXPECT_EQ(ssd.file().read(786432, 8192), std::vector<uint8_t>(8192));
  struct stat status {};
  ASSERT_EQ(::stat(ssd.file().path().c_str(), &status), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(kFileBytes));

  ranges[2].lba = kFileBytes / ssd.lba_bytes();
  EXPECT_EQ(ssd.run(entry), kLbaOutOfRange);
}

TEST_P(HostedEngines, a_full_ring_of_commands_completes_in_any_order) {
  Hosted ssd(options(), folder());
  const std::vector<uint8_t> data = pattern(kFileBytes, 4);
  ssd.file().write(0, data);
  TestQueue queue = ssd.driver().create_pair(2, 64);
  constexpr uint32_t kCommands = 1000;
  std::vector<uint8_t*> buffers;
  for (uint32_t i = 0; i < 63; ++i) buffers.push_back(ssd.memory().bytes(4096));
  std::map<uint16_t, std::pair<uint32_t, uint64_t>> under_way;  // buffer and offset, by cid
  std::vector<uint32_t> idle;
  for (uint32_t i = 0; i < 63; ++i) idle.push_back(i);
  uint32_t begun = 0;
  for (uint32_t done = 0; done < kCommands;) {
    while (begun < kCommands && !idle.empty()) {
      const uint32_t buffer = idle.back();
      idle.pop_back();
      const uint64_t offset = begun * 7919 % 1024 * 4096;
      SubmissionEntry entry = ssd.entry(IoOpcode::kRead, offset, 4096, buffers[buffer]);
      entry.cid = static_cast<uint16_t>(begun++);
      under_way[entry.cid] = {buffer, offset};
      TestDriver::put(queue, entry);
    }
    ssd.driver().ring(queue);
    const CompletionEntry completion = ssd.driver().wait(queue);
    ASSERT_EQ(TestDriver::status_of(completion), kSuccess);
    const auto found = under_way.find(completion.cid);
    ASSERT_NE(found, under_way.end()) << completion.cid;
    const auto [buffer, offset] = found->second;
    ASSERT_EQ(std::memcmp(buffers[buffer], data.data() + offset, 4096), 0) << offset;
    under_way.erase(found);
    idle.push_back(buffer);
    ++done;
  }
  EXPECT_EQ(ssd.controller().counters().read_commands, kCommands);
  EXPECT_EQ(timed(ssd, CommandKind::kRead), kCommands);
  EXPECT_EQ(ssd.controller().measured().under_way, 0u);
}

TEST_P(HostedEngines, each_command_is_timed_and_also_one_that_fails) {
  Hosted ssd(options(), folder());
  PrpBuffer buffer(ssd.memory(), 0, 4096);
  EXPECT_EQ(ssd.move(IoOpcode::kWrite, 0, buffer, 4096), kSuccess);
  EXPECT_EQ(ssd.move(IoOpcode::kRead, 0, buffer, 4096), kSuccess);
  EXPECT_NE(ssd.move(IoOpcode::kRead, kFileBytes, buffer, 4096), kSuccess);
  EXPECT_EQ(ssd.flush(), kSuccess);
  const MeasuredCommands seen = ssd.controller().measured();
  EXPECT_EQ(timed(ssd, CommandKind::kRead), 2u);
  EXPECT_EQ(timed(ssd, CommandKind::kWrite), 1u);
  EXPECT_EQ(timed(ssd, CommandKind::kFlush), 1u);
  EXPECT_EQ(timed(ssd, CommandKind::kDeallocate), 0u);
  EXPECT_EQ(seen.under_way, 0u);
  ssd.controller().stop();
  EXPECT_EQ(timed(ssd, CommandKind::kRead), 2u) << "they stay when the threads have ended";
  EXPECT_EQ(ssd.controller().measured().busy_ns, seen.busy_ns) << "nothing is under way any more";
}

TEST_P(HostedEngines, several_threads_have_queues_of_their_own) {
  HostedOptions several = options();
  several.threads = 3;
  Hosted ssd(several, folder());
  EXPECT_EQ(ssd.controller().threads(), 3u);
  for (uint32_t qid = 2; qid <= 4; ++qid) {
    TestQueue queue = ssd.driver().create_pair(qid, 8);
    uint8_t* const buffer = ssd.memory().bytes(4096);
    for (uint32_t i = 0; i < 20; ++i) {
      EXPECT_EQ(ssd.driver().run(queue, ssd.entry(IoOpcode::kRead, i * 4096, 4096, buffer)),
                kSuccess);
    }
  }
}

TEST_P(HostedEngines, a_reset_under_load_lets_go_of_all_memory) {
  Hosted ssd(options(), folder());
  for (uint32_t round = 0; round < 20; ++round) {
    uint8_t* const buffer = ssd.memory().bytes(4096);
    for (uint32_t i = 0; i < 12; ++i) {
      TestDriver::put(ssd.queue(), ssd.entry(IoOpcode::kRead, i * 4096, 4096, buffer));
    }
    ssd.driver().ring(ssd.queue());
    ssd.driver().write_cc(0);
    ASSERT_TRUE(ssd.driver().wait_csts(0));
    std::memset(buffer, 0x5a, 4096);
    std::this_thread::sleep_for(1ms);
    for (uint32_t i = 0; i < 4096; ++i) ASSERT_EQ(buffer[i], 0x5a) << round;
    ssd.driver().enable_ready();
    ssd.queue() = ssd.driver().create_pair(1, 16);
  }
}

TEST_P(HostedEngines, threads_that_slept_are_woken_by_a_doorbell) {
  Hosted ssd(options(), folder());
  uint8_t* const buffer = ssd.memory().bytes(4096);
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(2ms);
    EXPECT_EQ(ssd.run(ssd.entry(IoOpcode::kRead, 0, 4096, buffer)), kSuccess);
  }
  // Sleep that nothing ends takes 100 ms; this is not about how fast a machine is.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1500ms);
}

TEST(HostedController, threads_do_the_work_where_io_uring_is_refused) {
  const int failure = testing::in_child([] {
    if (!refuse_io_uring()) return 1;
    if (uring_refusal() != EPERM) return 2;
    Hosted ssd;
    const EngineKind kind =
        ssd.controller().store().traits().in_memory ? EngineKind::kMemory : EngineKind::kThreads;
    if (ssd.controller().engine_name() != words_of(kind)) return 3;
    if (ssd.controller().why_no_uring() != "io_uring: Operation not permitted") return 4;
    const std::vector<uint8_t> data = pattern(4096, 8);
    PrpBuffer out(ssd.memory(), 0, 4096);
    out.fill(data);
    if (ssd.move(IoOpcode::kWrite, 8192, out, 4096) != kSuccess) return 5;
    PrpBuffer in(ssd.memory(), 0, 4096);
    if (ssd.move(IoOpcode::kRead, 8192, in, 4096) != kSuccess) return 6;
    return in.collect() == data && ssd.file().read(8192, 4096) == data ? 0 : 7;
  });
  EXPECT_EQ(failure, 0);
}

TEST(HostedController, its_threads_copy_what_is_small_and_lies_in_memory_themselves) {
  struct statfs system {};
  if (::statfs("/dev/shm", &system) != 0 || system.f_type != TMPFS_MAGIC) GTEST_SKIP();
  Hosted ssd({}, "/dev/shm/");
  EXPECT_TRUE(ssd.controller().store().traits().in_memory);
  EXPECT_EQ(ssd.controller().engine_name(), words_of(EngineKind::kMemory));
  // More at once than it does before it posts completions.
  TestQueue queue = ssd.driver().create_pair(2, 64);
  PrpBuffer buffer(ssd.memory(), 0, 4096);
  for (uint16_t i = 0; i < 60; ++i) {
    SubmissionEntry entry = ssd.entry(IoOpcode::kRead, i * 4096u, 4096);
    buffer.set_prps(entry);
    entry.cid = i;
    TestDriver::put(queue, entry);
  }
  ssd.driver().ring(queue);
  std::set<uint16_t> ended;
  for (int i = 0; i < 60; ++i) ended.insert(ssd.driver().wait(queue).cid);
  EXPECT_EQ(ended.size(), 60u);
}

TEST(HostedController, commands_are_seen_in_time_while_others_are_under_way) {
  for (const bool is_nudged : {false, true}) {
    IoFaults faults;
    IoFault late;
    late.last = 64 * 4096 - 1;
    late.late_ns = 300'000'000;
    faults.add(late);
    HostedOptions options;
    options.is_nudged = is_nudged;
    options.make_engine = [&](const IoTarget& target) {
      return std::make_unique<FaultyEngine>(faults, make_thread_engine(target));
    };
    Hosted ssd(options);
    TestQueue queue = ssd.driver().create_pair(2, 64);
    PrpBuffer buffer(ssd.memory(), 0, 4096);
    const auto put = [&](uint16_t cid, uint64_t offset) {
      SubmissionEntry entry = ssd.entry(IoOpcode::kRead, offset, 4096);
      buffer.set_prps(entry);
      entry.cid = cid;
      TestDriver::put(queue, entry);
      ssd.driver().ring(queue);
    };
    for (uint16_t i = 0; i < 20; ++i) put(i, i * 4096u);
    std::this_thread::sleep_for(20ms);
    put(99, 100 * 4096);
    EXPECT_EQ(ssd.driver().wait(queue).cid, 99u) << "it does not wait for those before";
    for (int i = 0; i < 20; ++i) EXPECT_LT(ssd.driver().wait(queue).cid, 20u);
  }
}

TEST(HostedController, io_uring_that_is_asked_for_and_refused_is_an_error) {
  const int failure = testing::in_child([] {
    if (!refuse_io_uring()) return 1;
    HostedOptions options;
    options.engine = EngineKind::kUring;
    try {
      const Hosted ssd(options);
    } catch (const std::system_error& error) {
      return error.code().value() == EPERM ? 0 : 2;
    }
    return 3;
  });
  EXPECT_EQ(failure, 0);
}

TEST(HostedController, identify_says_what_lies_below) {
  Hosted ssd;
  auto* const page = ssd.memory().bytes(4096);
  SubmissionEntry entry = TestDriver::admin_entry(AdminOpcode::kIdentify);
  entry.prp1 = address_of(page);
  entry.cdw10 = kIdentifyController;
  EXPECT_EQ(ssd.driver().run(ssd.driver().admin(), entry), kSuccess);
  const auto& controller = *reinterpret_cast<const IdentifyController*>(page);
  EXPECT_EQ(std::string(controller.model_number, 20), "GoFS hosted NVMe SSD");
  EXPECT_EQ(controller.vwc & 1, 1);
  EXPECT_EQ(controller.awupf, 0) << "Linux promises one sector";
  entry.cdw10 = kIdentifyNamespace;
  entry.nsid = 1;
  EXPECT_EQ(ssd.driver().run(ssd.driver().admin(), entry), kSuccess);
  const auto& space = *reinterpret_cast<const IdentifyNamespace*>(page);
  EXPECT_EQ(space.nsze, kFileBytes / ssd.lba_bytes());
  EXPECT_EQ(1u << space.lbaf[0].lba_shift, ssd.lba_bytes());
}

TEST(HostedController, lbas_are_as_large_as_asked_for_but_not_smaller_than_sectors) {
  TestMemory memory;
  TemporaryFile file;
  file.resize(kFileBytes);
  HostedOptions options;
  options.lba_bytes = 4096;
  const HostedController controller(
      std::make_unique<BackingStore>(file.path(), FileAccess::kReadWrite), memory.space(), options);
  EXPECT_EQ(controller.ref().registers().csts, 0u);
  options.lba_bytes = 256;
  const auto make = [&] {
    const HostedController refused(
        std::make_unique<BackingStore>(file.path(), FileAccess::kReadOnly), memory.space(),
        options);
  };
  EXPECT_THROW(make(), std::system_error);
}

TEST(HostedController, what_is_read_only_is_not_written) {
  TestMemory memory;
  TemporaryFile file;
  file.resize(kFileBytes);
  HostedController controller(std::make_unique<BackingStore>(file.path(), FileAccess::kReadOnly),
                              memory.space(), {});
  TestDriver driver(controller.ref(), VirtualSsdConfig());
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 8);
  uint8_t* const buffer = memory.bytes(4096);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kRead, 0, 1, buffer)), kSuccess);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kWrite, 0, 1, buffer)),
            kNamespaceWriteProtected);
}

TEST(HostedWorkers, all_have_as_many_queues_also_of_every_second_one) {
  for (const uint32_t count : {1u, 2u, 3u, 4u, 5u, 6u}) {
    for (const uint32_t step : {1u, 2u}) {
      std::vector<uint32_t> queues(count);
      for (uint32_t i = 0; i < 2 * count; ++i)
        ++queues[HostedWorker::worker_of(1 + step * i, count)];
      EXPECT_EQ(queues, std::vector<uint32_t>(count, 2)) << count << " workers, step " << step;
    }
  }
}

/// A controller whose storage fails as it is told to.
class HostedFailures : public ::testing::Test {
 protected:
  static HostedOptions options(IoFaults& faults) {
    HostedOptions options;
    options.make_engine = [&faults](const IoTarget& target) {
      return std::make_unique<FaultyEngine>(
          faults, uring_refusal() == 0 ? make_uring_engine(target) : make_thread_engine(target));
    };
    return options;
  }
  Status run(IoOpcode opcode, uint64_t offset = 0) {
    return ssd_.run(ssd_.entry(opcode, offset, 4096, buffer_));
  }

  IoFaults faults_;
  Hosted ssd_{options(faults_)};
  uint8_t* const buffer_ = ssd_.memory().bytes(4096);
};

TEST_F(HostedFailures, a_full_disk_fails_the_write_and_not_those_after_it) {
  faults_.add({.kind = IoRequest::Kind::kWrite, .error = -ENOSPC});
  EXPECT_EQ(run(IoOpcode::kWrite), kCapacityExceeded);
  EXPECT_EQ(ssd_.controller().store().problem(), "No space left on device");
  EXPECT_EQ(run(IoOpcode::kRead), kSuccess);
  EXPECT_EQ(ssd_.flush(), kSuccess);
  faults_.clear();
  EXPECT_EQ(run(IoOpcode::kWrite), kSuccess);
}

TEST_F(HostedFailures, a_failed_read_is_a_media_error_with_its_place_in_the_error_log) {
  faults_.add({.kind = IoRequest::Kind::kRead, .first = 8192, .last = 8192, .error = -EIO});
  EXPECT_EQ(run(IoOpcode::kRead, 4096), kSuccess);
  EXPECT_EQ(run(IoOpcode::kRead, 8192), kUnrecoveredReadError);
  EXPECT_EQ(ssd_.controller().store().problem(), "Input/output error");
  auto* const page = ssd_.memory().bytes(4096);
  SubmissionEntry entry = TestDriver::admin_entry(AdminOpcode::kGetLogPage);
  entry.prp1 = address_of(page);
  entry.cdw10 = (64 / 4 - 1) << 16 | kLogErrorInformation;
  EXPECT_EQ(ssd_.driver().run(ssd_.driver().admin(), entry), kSuccess);
  const auto& logged = *reinterpret_cast<const ErrorLogEntry*>(page);
  EXPECT_EQ(logged.lba, 8192 / ssd_.lba_bytes());
  EXPECT_EQ(logged.submission_queue, 1);
}

TEST_F(HostedFailures, after_a_failed_flush_nothing_is_written_any_more) {
  faults_.add({.kind = IoRequest::Kind::kSync, .error = -EIO});
  EXPECT_EQ(ssd_.flush(), kWriteFault);
  faults_.clear();
  EXPECT_EQ(ssd_.flush(), kWriteFault) << "what was lost is not known";
  EXPECT_EQ(run(IoOpcode::kWrite), kWriteFault);
  EXPECT_EQ(run(IoOpcode::kWriteZeroes), kWriteFault);
  EXPECT_EQ(run(IoOpcode::kRead), kSuccess);
}

TEST_F(HostedFailures, requests_that_move_less_are_gone_on_with) {
  const std::vector<uint8_t> data = pattern(131072, 5);
  faults_.add({.bytes_max = 4096});
  PrpBuffer out(ssd_.memory(), 512, 131072);
  out.fill(data);
  EXPECT_EQ(ssd_.move(IoOpcode::kWrite, 65536, out, 131072), kSuccess);
  PrpBuffer in(ssd_.memory(), 2048, 131072);
  EXPECT_EQ(ssd_.move(IoOpcode::kRead, 65536, in, 131072), kSuccess);
  EXPECT_EQ(in.collect(), data);
  EXPECT_EQ(ssd_.file().read(65536, 131072), data);
  EXPECT_GE(faults_.seen(), 64u);
}

TEST_F(HostedFailures, what_has_to_be_asked_again_is_asked_again) {
  faults_.add({.count = 20, .error = -EAGAIN});
  EXPECT_EQ(run(IoOpcode::kWrite), kSuccess);
  faults_.clear();
  faults_.add({.error = -EAGAIN});
  EXPECT_EQ(run(IoOpcode::kRead), kUnrecoveredReadError) << "not for ever";
}

TEST_F(HostedFailures, blocks_are_zeroed_by_writing_where_holes_cannot_be_made) {
  ssd_.file().write(0, pattern(3 << 20, 6));
  faults_.add({.kind = IoRequest::Kind::kZero, .error = -EOPNOTSUPP});
  EXPECT_EQ(ssd_.run(ssd_.entry(IoOpcode::kWriteZeroes, 8192, 2 << 20)), kSuccess);
  EXPECT_EQ(ssd_.file().read(8192, 2 << 20), std::vector<uint8_t>(2 << 20));
  EXPECT_NE(ssd_.file().read(8192 + (2 << 20), 4096), std::vector<uint8_t>(4096));
  // Whereas to give blocks back is advice.
  faults_.add({.kind = IoRequest::Kind::kDiscard, .error = -EOPNOTSUPP});
  auto* const range = reinterpret_cast<DatasetRange*>(ssd_.memory().bytes(4096));
  *range = {0, 4096 / ssd_.lba_bytes(), 0};
  SubmissionEntry entry = TestDriver::io_entry(IoOpcode::kDatasetManagement, 0, 1, range);
  entry.cdw10 = 0;
  entry.cdw11 = kDeallocate;
  entry.cdw12 = 0;
  EXPECT_EQ(ssd_.run(entry), kSuccess);
  EXPECT_NE(ssd_.file().read(0, 4096), std::vector<uint8_t>(4096));
}

TEST_F(HostedFailures, a_late_completion_holds_up_nothing_else) {
  faults_.add({.first = 4096, .last = 4096, .late_ns = 50'000'000});
  SubmissionEntry late = ssd_.entry(IoOpcode::kRead, 4096, 4096, buffer_);
  late.cid = 7;
  TestDriver::put(ssd_.queue(), late);
  SubmissionEntry other = ssd_.entry(IoOpcode::kRead, 8192, 4096, ssd_.memory().bytes(4096));
  other.cid = 8;
  TestDriver::put(ssd_.queue(), other);
  ssd_.driver().ring(ssd_.queue());
  EXPECT_EQ(ssd_.driver().wait(ssd_.queue()).cid, 8);
  const CompletionEntry last = ssd_.driver().wait(ssd_.queue());
  EXPECT_EQ(last.cid, 7);
  EXPECT_EQ(TestDriver::status_of(last), kSuccess);
}

TEST_F(HostedFailures, a_device_that_is_gone_is_fatal) {
  faults_.add({.kind = IoRequest::Kind::kWrite, .error = -ENODEV});
  TestDriver::put(ssd_.queue(), ssd_.entry(IoOpcode::kWrite, 0, 4096, buffer_));
  ssd_.driver().ring(ssd_.queue());
  EXPECT_TRUE(ssd_.driver().wait_csts(kCstsReady | kCstsFatal));
  ssd_.driver().write_cc(0);
  EXPECT_TRUE(ssd_.driver().wait_csts(0));
}

TEST_F(HostedFailures, an_image_that_was_cut_fails_and_is_not_made_longer) {
  EXPECT_EQ(run(IoOpcode::kWrite, kFileBytes - 4096), kSuccess);
  ssd_.file().resize(8192);
  EXPECT_EQ(run(IoOpcode::kRead, 0), kSuccess) << "that is there still";
  EXPECT_EQ(run(IoOpcode::kWrite, kFileBytes - 4096), kWriteFault);
  EXPECT_EQ(run(IoOpcode::kRead, 65536), kUnrecoveredReadError);
  EXPECT_NE(ssd_.controller().store().problem().find("shorter than it was"), std::string::npos);
  struct stat status {};
  ASSERT_EQ(::stat(ssd_.file().path().c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 8192);
  EXPECT_EQ(ssd_.flush(), kWriteFault);
}

}  // namespace
}  // namespace gofs::ssd
