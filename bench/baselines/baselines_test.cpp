// SPDX-License-Identifier: Apache-2.0
//
// The baselines in small, on host threads: all of them measure something, wrong bytes end them, and
// nobody waits for ever.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "basic.hpp"
#include "host/backends.h"
#include "host/spoiled_image_for_test.h"
#include "rpc.hpp"
#include "slots.hpp"
#include "suite.hpp"

namespace gofs::bench {
namespace {

class BaselinesTest : public ::testing::Test {
 protected:
  BaselinesTest() {
    std::filesystem::create_directories(folder_);
    options_.folder = folder_;
    options_.backend = "cpu";
    options_.outstanding = {1, 2, 4};
    options_.runs = 1;
    options_.seconds = 0.001;
    options_.large_bytes = 2 * kMiB;
    options_.threads_max = 2;
    options_.servers = 2;
    sinks_.machine = [](const VolumeInfo&) {};
    sinks_.row = [this](const Row& row) { rows_.push_back(row); };
    sinks_.gap = [this](const std::string& name, const std::string&) { gaps_.insert(name); };
  }
  ~BaselinesTest() override { std::filesystem::remove_all(folder_); }

  std::string refusal() {
    const auto done = run_baselines(options_, sinks_);
    return done ? "" : done.error().message;
  }

  const std::string folder_ = ::testing::TempDir() + "gofs-baselines-" + std::to_string(::getpid());
  Options options_;
  Sinks sinks_;
  std::vector<Row> rows_;
  std::set<std::string> gaps_;
};

TEST_F(BaselinesTest, all_of_them_measure_reads_and_writes) {
  options_.models = {"p5800x", "file"};
  const auto done = run_baselines(options_, sinks_);
  ASSERT_TRUE(done) << done.error().message;
  std::set<std::string> kinds;
  for (const Row& row : rows_) {
    kinds.insert(row.name + " " + row.model + (row.point.writes ? " write" : " read") +
                 (row.point.random ? " random" : " sequential"));
    EXPECT_GT(row.per_second.least, 0) << row.name;
    EXPECT_LE(row.per_second.least, row.per_second.median);
    EXPECT_LE(row.per_second.median, row.per_second.most);
    EXPECT_GT(row.latency_us, 0);
    EXPECT_GE(row.outstanding, 1u);
    EXPECT_LE(row.outstanding, row.point.outstanding);
  }
  std::set<std::string> wanted;
  for (const char* const what : {" write", " read"}) {
    for (const char* const pattern : {" random", " sequential"}) {
      for (const char* const on :
           {"raw p5800x", "gofs p5800x", "companion p5800x", "companion-lanes p5800x", "rpc p5800x",
            "basic p5800x", "rpc file", "basic file"}) {
        wanted.insert(std::string(on) + what + pattern);
      }
    }
  }
  EXPECT_EQ(kinds, wanted);
  EXPECT_EQ(gaps_, std::set<std::string>{"cufile"}) << "there is no GPU";
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "images stay behind";
}

TEST_F(BaselinesTest, small_files_are_read_by_their_names) {
  options_.models = {"p5800x", "file"};
  options_.patterns = {"files"};
  options_.files = 40;
  const auto done = run_baselines(options_, sinks_);
  ASSERT_TRUE(done) << done.error().message;
  std::set<std::string> kinds;
  for (const Row& row : rows_) {
    kinds.insert(row.name + " " + row.model + " " + std::to_string(row.outstanding));
    EXPECT_FALSE(row.point.writes);
    EXPECT_GT(row.per_second.least, 0) << row.name;
  }
  // A batch has all files at once; a machine has few threads for single reads.
  std::erase_if(kinds, [](const std::string& kind) { return kind.starts_with("raw p5800x"); });
  EXPECT_EQ(kinds, (std::set<std::string>{"gofs p5800x 40", "basic p5800x 1", "basic p5800x 2",
                                          "basic file 1", "basic file 2"}));
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "files stay behind";
}

TEST_F(BaselinesTest, controller_warps_are_beside_those_that_give_commands) {
  options_.models = {"p5800x"};
  options_.controller_warps = 2;
  options_.outstanding = {1, 2};
  ASSERT_EQ(refusal(), "");
  std::set<std::string> with;
  std::set<std::string> without;
  for (const Row& row : rows_) {
    EXPECT_GT(row.per_second.least, 0) << row.name;
    (row.controller_warps == 2 ? with : without).insert(row.name);
    EXPECT_TRUE(row.controller_warps == 2 || row.controller_warps == 0);
  }
  EXPECT_EQ(with, (std::set<std::string>{"raw", "gofs", "companion", "companion-lanes"}));
  EXPECT_EQ(without, (std::set<std::string>{"rpc", "basic"}));
}

TEST_F(BaselinesTest, who_is_at_his_maximum_has_no_more_rows) {
  options_.only = {"basic"};
  options_.models = {"file"};
  options_.works = {"read"};
  options_.patterns = {"random"};
  options_.outstanding = {1, 2, 4, 8};
  ASSERT_EQ(refusal(), "");
  ASSERT_EQ(rows_.size(), 2u) << "4 and 8 are as many as 2";
  EXPECT_EQ(rows_[1].outstanding, 2u);
}

TEST_F(BaselinesTest, wrong_bytes_end_it) {
  options_.works = {"read"};
  options_.patterns = {"random"};
  sinks_.ready = [](const std::string& path) { EXPECT_GT(host::spoil_indices(path), 0u); };
  for (const char* const model : {"none", "file"}) {
    options_.models = {model};
    for (const char* const name : {"gofs", "companion", "companion-lanes", "rpc", "basic"}) {
      options_.only = {name};
      const bool hosted = options_.wants("rpc") || options_.wants("basic");
      if (options_.models[0] == "file" && !hosted) continue;
      const auto done = run_baselines(options_, sinks_);
      ASSERT_FALSE(done) << name;
      EXPECT_EQ(done.error().code, EIO) << name;
      EXPECT_NE(done.error().message.find("are not those"), std::string::npos)
          << done.error().message;
    }
  }
  // Of small files those that the host reads.
  options_.models = {"none"};
  options_.patterns = {"files"};
  options_.files = 30;
  options_.only = {"basic"};
  EXPECT_NE(refusal().find("are not those"), std::string::npos);
  EXPECT_TRUE(rows_.empty());
}

TEST_F(BaselinesTest, what_makes_no_sense_is_refused) {
  options_.only = {"floppy"};
  EXPECT_NE(refusal().find("floppy"), std::string::npos);
  options_.only = {"raw"};
  options_.models = {"tape"};
  EXPECT_NE(refusal().find("tape"), std::string::npos);
  options_.models = {"none"};
  options_.outstanding = {4096};
  EXPECT_NE(refusal().find("512 blocks"), std::string::npos);
  options_.outstanding = {1};
  options_.controller_warps = 1025;
  EXPECT_NE(refusal().find("1024 controller warps"), std::string::npos);
  options_.controller_warps = 0;
  options_.folder = folder_ + "/none";
  EXPECT_NE(refusal().find("/none"), std::string::npos);
}

/// A device of host threads.
struct HostRig {
  std::string why;
  std::unique_ptr<kernels::Backend> backend = host::make_backend("cpu", why);
  std::unique_ptr<Device> device = make_device(*backend, why);
};

TEST_F(BaselinesTest, requests_that_nobody_serves_end_by_their_deadline) {
  HostRig rig;
  const auto file = StampedFile::make(folder_ + "/file", kMiB);
  ASSERT_TRUE(file);
  const auto small = SmallFiles::make(folder_ + "/files", 0);
  ASSERT_TRUE(small);
  const auto storage = open_file_storage(**file, **small, false);
  ASSERT_TRUE(storage);
  Rpc rpc(*rig.device, **storage, {0.001, 0, 20'000'000});
  for (const bool writes : {false, true}) {
    const auto sample = rpc.measure({writes, true, 2});
    ASSERT_FALSE(sample);
    EXPECT_EQ(sample.error().code, ETIMEDOUT) << sample.error().message;
  }
}

/// Cannot be read, and forgets what is written.
class BadStorage final : public Storage {
 public:
  std::string describe() const override { return "a bad disk"; }
  uint64_t read_bytes() const override { return kBlockBytes; }
  uint64_t written_bytes() const override { return kBlockBytes; }
  uint32_t small_files() const override { return 1; }
  int read_file(uint32_t, void*) override { return -ENXIO; }
  int read(void*, uint64_t, uint64_t) override { return -ENXIO; }
  int write(const void*, uint64_t, uint64_t) override { return 0; }
  int read_back(void* buffer, uint64_t, uint64_t) override {
    put_block_stamp(static_cast<uint8_t*>(buffer), 0, 0);
    return 0;
  }
};

TEST_F(BaselinesTest, errors_of_the_host_arrive_at_the_device) {
  HostRig rig;
  BadStorage storage;
  Rpc rpc(*rig.device, storage, {0.001, 1});
  const auto read = rpc.measure({false, true, 1});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ENXIO) << read.error().message;
  const auto written = rpc.measure({true, true, 1});
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("written"), std::string::npos);
}

/// Its copies never arrive.
class ForgetfulDevice final : public Device {
 public:
  explicit ForgetfulDevice(Device& device) : device_(device) {}
  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) override {
    return device_.run(body, grid, params);
  }
  std::unique_ptr<Copies> make_copies() override { return std::make_unique<NoCopies>(); }
  const std::string& error() const override { return device_.error(); }
  kernels::Backend& backend() override { return device_.backend(); }

 private:
  class NoCopies final : public Copies {
   public:
    void begin(void*, const void*, uint64_t) override {}
    int finish() override { return 0; }
  };
  Device& device_;
};

TEST_F(BaselinesTest, copies_that_do_not_arrive_are_noticed) {
  HostRig rig;
  ForgetfulDevice device(*rig.device);
  const auto file = StampedFile::make(folder_ + "/file", kMiB);
  ASSERT_TRUE(file);
  const auto small = SmallFiles::make(folder_ + "/files", 0);
  ASSERT_TRUE(small);
  const auto storage = open_file_storage(**file, **small, false);
  ASSERT_TRUE(storage);
  Basic basic(device, **storage, {0.001, 2});
  Rpc rpc(device, **storage, {0.001, 1});
  for (Baseline* const baseline : {static_cast<Baseline*>(&basic), static_cast<Baseline*>(&rpc)}) {
    for (const bool writes : {false, true}) {
      const auto sample = baseline->measure({writes, true, 2});
      ASSERT_FALSE(sample) << baseline->name();
      EXPECT_NE(sample.error().message.find("are not those"), std::string::npos)
          << sample.error().message;
    }
  }
}

TEST_F(BaselinesTest, the_device_sees_a_wrong_slot) {
  HostRig rig;
  Slots slots(*rig.device, 3);
  slots.block(0) = 7;
  slots.block(2) = 9;
  ASSERT_TRUE(slots.stamp(5));
  EXPECT_TRUE(slots.check(5));
  EXPECT_TRUE(slots.check(0)) << "no run is looked for";
  EXPECT_FALSE(slots.check(6));
  slots.at(2)[0] ^= 1;
  EXPECT_FALSE(slots.check(0));
}

}  // namespace
}  // namespace gofs::bench
