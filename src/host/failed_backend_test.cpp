// SPDX-License-Identifier: Apache-2.0
//
// A volume whose backend fails for good, as a GPU does after a fault of any kernel of the process:
// every call says so, all of it goes without waiting or asserting, and the image is as the last
// sync has left it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gofs/volume.hpp"
#include "host/backend_for_test.h"
#include "host/volume_for_test.h"
#include "host/volume_state.h"
#include "kernels/bodies.h"
#include "simt/host_memory.h"

namespace gofs::host {

namespace {

constexpr const char* kFault = "kernel: an illegal memory access was encountered";

constexpr int kNever = 1 << 30;
constexpr const char* kNoRoom = "kernel launch: out of memory";

/// When it happens: at once where `is_lost` is set, or with the launch or the read that `..._left`
/// say. Where `refused` is not null, such launches are refused, and all is as before.
struct Fault {
  std::atomic<bool> is_lost{false};
  std::atomic<int> launches_left{kNever};
  std::atomic<int> reads_left{kNever};
  std::atomic<const kernels::Body*> refused{nullptr};
  std::atomic<int> refusals{0};
  std::atomic<bool> unready{false};  // no launch can be prepared

  bool refuses(const kernels::Body& body) const { return refused == &body; }
  void refuse(const kernels::Body& body) { refused = &body; }
};

/// What a GPU's memory is to the host: zeros, once it is lost, and nothing to be had.
class LosableMemory final : public simt::MemorySpace {
 public:
  explicit LosableMemory(Fault& fault) : fault_(fault) {}
  uint64_t bytes_taken() const override { return memory_.bytes_taken(); }
  void write(void* target, const void* source, size_t bytes) override {
    if (!fault_.is_lost) memory_.write(target, source, bytes);
  }
  void read(void* target, const void* source, size_t bytes) override {
    if (fault_.reads_left.fetch_sub(1) <= 0) fault_.is_lost = true;
    if (!fault_.is_lost) return memory_.read(target, source, bytes);
    std::memset(target, 0, bytes);
  }

 protected:
  Taken take(size_t bytes) override {
    if (fault_.is_lost) throw std::bad_alloc();
    return {memory_.allocate(bytes), bytes};
  }
  void release_taken(void* memory) override { memory_.release(memory); }

 private:
  Fault& fault_;
  simt::HostMemorySpace memory_;
};

class LosableBackend final : public BackendForTest {
 public:
  explicit LosableBackend(Fault& fault) : fault_(fault), memory_(fault), shared_memory_(fault) {}
  simt::MemorySpace& memory() override { return memory_; }
  simt::MemorySpace& shared_memory() override { return shared_memory_; }
  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) override {
    if (fault_.launches_left.fetch_sub(1) <= 0) fault_.is_lost = true;
    if (!fault_.is_lost && !fault_.refuses(body)) return BackendForTest::run(body, grid, params);
    ++fault_.refusals;
    return false;
  }
  bool prepare(const kernels::Body&) override { return !fault_.unready; }
  std::string error() const override { return fault_.is_lost ? kFault : kNoRoom; }
  std::string failure() const override { return fault_.is_lost ? kFault : ""; }
  bool has_failed() const override { return fault_.is_lost; }

 private:
  Fault& fault_;
  LosableMemory memory_;
  LosableMemory shared_memory_;
};

class FailedBackendTest : public ::testing::Test {
 protected:
  FailedBackendTest() {
    const auto copied = image::run_tool("cp " + sample_volume().path() + " " + copy_.path());
    EXPECT_EQ(copied.exit_code, 0) << copied.output;
  }
  Expected<Volume> try_to_mount(MountOptions options = {.read_only = false}) {
    return VolumeForTest::mount(copy_.path() + "?media=memory", options,
                                [this](const std::string&, std::string&) {
                                  return std::make_unique<LosableBackend>(fault_);
                                });
  }

  Fault fault_;
  std::atomic<int>& refusals_ = fault_.refusals;
  const image::TemporaryPath copy_;
};

/// Whether `result` is the error that says what has happened, and what to do about it.
template <typename T>
::testing::AssertionResult tells_fault(const Expected<T>& result) {
  if (result) return ::testing::AssertionFailure() << "it succeeds";
  const Error& error = result.error();
  const bool told = error.message.find(kFault) != std::string::npos &&
                    error.message.find("another process can mount it") != std::string::npos;
  if (error.code == EIO && told) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << error.code << ": " << error.message;
}

TEST_F(FailedBackendTest, every_call_says_so_and_none_waits) {
  Volume volume = try_to_mount().value();
  const int fd = volume.open("/odd", O_RDWR).value();
  const int directory = volume.opendir("/data").value();
  char bytes[100] = {};
  const auto buffer = volume.register_buffer(bytes, sizeof(bytes)).value();
  fault_.is_lost = true;
  const auto began = std::chrono::steady_clock::now();

  EXPECT_TRUE(tells_fault(volume.open("/odd")));
  EXPECT_TRUE(tells_fault(volume.opendir("/")));
  EXPECT_TRUE(tells_fault(volume.pread(fd, bytes, sizeof(bytes), 0)));
  EXPECT_TRUE(tells_fault(volume.read(fd, bytes, sizeof(bytes))));
  EXPECT_TRUE(tells_fault(volume.pwrite(fd, bytes, sizeof(bytes), 0)));
  EXPECT_TRUE(tells_fault(volume.write(fd, bytes, sizeof(bytes))));
  EXPECT_TRUE(tells_fault(volume.lseek(fd, 0, SEEK_END)));
  EXPECT_TRUE(tells_fault(volume.readdir(directory)));
  EXPECT_TRUE(tells_fault(volume.stat("/odd")));
  EXPECT_TRUE(tells_fault(volume.lstat("/link")));
  EXPECT_TRUE(tells_fault(volume.fstat(fd)));
  EXPECT_TRUE(tells_fault(volume.access("/odd", R_OK)));
  EXPECT_TRUE(tells_fault(volume.readlink("/link")));
  EXPECT_TRUE(tells_fault(volume.getxattr("/block", "user.colour")));
  EXPECT_TRUE(tells_fault(volume.listxattr("/block")));
  EXPECT_TRUE(tells_fault(volume.statfs()));
  EXPECT_TRUE(tells_fault(volume.batch_create("/data", {{"new", bytes, 10}})));
  EXPECT_TRUE(tells_fault(volume.mkdir("/d")));
  EXPECT_TRUE(tells_fault(volume.symlink("a", "/b")));
  EXPECT_TRUE(tells_fault(volume.link("/odd", "/even")));
  EXPECT_TRUE(tells_fault(volume.unlink("/odd")));
  EXPECT_TRUE(tells_fault(volume.rename("/odd", "/even")));
  EXPECT_TRUE(tells_fault(volume.truncate("/odd", 0)));
  EXPECT_TRUE(tells_fault(volume.ftruncate(fd, 0)));
  EXPECT_TRUE(tells_fault(volume.fallocate(fd, 0, 0, 4096)));
  EXPECT_TRUE(tells_fault(volume.chmod("/odd", 0600)));
  EXPECT_TRUE(tells_fault(volume.utimens("/odd", {1, 2}, {3, 4})));
  EXPECT_TRUE(tells_fault(volume.setxattr("/odd", "user.a", "b")));
  EXPECT_TRUE(tells_fault(volume.collect_garbage()));
  EXPECT_TRUE(tells_fault(volume.sync()));
  EXPECT_TRUE(tells_fault(volume.fsync(fd)));
  EXPECT_TRUE(tells_fault(volume.fdatasync(fd)));
  EXPECT_TRUE(tells_fault(volume.memory()));
  EXPECT_TRUE(tells_fault(volume.register_buffer(bytes, 1)));
  EXPECT_TRUE(tells_fault(volume.unregister_buffer(buffer)));
  EXPECT_TRUE(tells_fault(volume.close(fd)));
  ASSERT_EQ(volume.warnings().size(), 1u);
  EXPECT_NE(volume.warnings().front().find(kFault), std::string::npos);
  EXPECT_EQ(volume.info().backend, "test");
  EXPECT_EQ(volume.cleaning_totals().segments, 0u);
  (void)volume.clock();
  EXPECT_TRUE(tells_fault(volume.unmount()));
  EXPECT_TRUE(tells_fault(volume.open("/odd")));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
}

TEST_F(FailedBackendTest, each_call_may_be_the_one_that_meets_it) {
  using Call = void (*)(Volume&);
  const Call calls[] = {
      [](Volume& one) { EXPECT_TRUE(tells_fault(one.stat("/odd"))); },
      [](Volume& one) { EXPECT_TRUE(tells_fault(one.open("/new", O_CREAT | O_WRONLY))); },
      [](Volume& one) {
        EXPECT_TRUE(tells_fault(one.batch_create("/", {{"new", "abc", 3}})));
      },
      [](Volume& one) { EXPECT_TRUE(tells_fault(one.rename("/odd", "/even"))); },
      [](Volume& one) { EXPECT_TRUE(tells_fault(one.collect_garbage())); },
      [](Volume& one) { EXPECT_TRUE(tells_fault(one.memory())); },
      [](Volume& one) { EXPECT_TRUE(tells_fault(one.sync())); },
      [](Volume& one) { EXPECT_TRUE(tells_fault(one.unmount())); },
      [](Volume&) {},  // the destructor
  };
  for (const Call call : calls) {
    fault_.is_lost = false;
    fault_.launches_left = kNever;
    Volume volume = try_to_mount().value();
    ASSERT_TRUE(volume.chmod("/odd", 0640));
    fault_.launches_left = 0;
    call(volume);
  }
}

TEST_F(FailedBackendTest, mounting_fails_cleanly_wherever_it_happens) {
  for (int launch = 0; launch < 3; ++launch) {
    fault_.is_lost = false;
    fault_.launches_left = launch;
    EXPECT_TRUE(tells_fault(try_to_mount())) << launch;
    EXPECT_TRUE(tells_fault(try_to_mount())) << "where no memory is to be had, after " << launch;
  }
}

TEST_F(FailedBackendTest, mounting_fails_cleanly_whatever_can_no_more_be_read) {
  for (const bool read_only : {true, false}) {
    bool mounted = false;
    for (int reads = 0; reads < 200 && !mounted; ++reads) {
      fault_.is_lost = false;
      fault_.reads_left = reads;
      const auto volume = try_to_mount({.read_only = read_only});
      mounted = !fault_.is_lost;
      // Nothing is launched any more after the last read.
      EXPECT_TRUE(mounted || volume || tells_fault(volume)) << reads;
    }
    EXPECT_TRUE(mounted);
  }
}

/// Whether `result` is the error of a launch that could not be made.
template <typename T>
::testing::AssertionResult tells_refusal(const Expected<T>& result) {
  if (result) return ::testing::AssertionFailure() << "it succeeds";
  const Error& error = result.error();
  if (error.code == EIO && error.message.find(kNoRoom) != std::string::npos) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << error.code << ": " << error.message;
}

TEST_F(FailedBackendTest, a_launch_that_fails_is_told_by_its_own_call_alone) {
  Volume volume = try_to_mount().value();
  fault_.refuse(kernels::bodies::kBatch);
  EXPECT_TRUE(tells_refusal(volume.batch_create("/data", {{"new", "abc", 3}})));
  EXPECT_EQ(volume.open("/missing").error().code, ENOENT);
  EXPECT_EQ(volume.mkdir("/data").error().code, EEXIST);
  fault_.refuse(kernels::bodies::kClean);
  EXPECT_TRUE(tells_refusal(volume.collect_garbage()));
  EXPECT_EQ(volume.open("/missing").error().code, ENOENT);
  fault_.refuse(kernels::bodies::kCall);
  EXPECT_TRUE(tells_refusal(volume.stat("/odd")));
  EXPECT_TRUE(tells_refusal(volume.sync()));
  fault_.refused = nullptr;
  EXPECT_TRUE(volume.stat("/odd"));
  EXPECT_TRUE(volume.batch_create("/data", {{"new", "abc", 3}}));
  EXPECT_TRUE(volume.unmount());
}

TEST_F(FailedBackendTest, unmounting_that_could_not_be_tried_is_tried_again) {
  constexpr uint64_t kOften = 1'000'000;
  Volume volume =
      try_to_mount({.read_only = false, .checkpoint_period_ns = kOften, .clock_period_ns = kOften})
          .value();
  ASSERT_TRUE(volume.mkdir("/new"));
  fault_.refuse(kernels::bodies::kUnmount);
  for (int i = 0; i < 2; ++i) {
    const auto refused = volume.unmount();
    EXPECT_TRUE(tells_refusal(refused));
    EXPECT_NE(refused.error().message.find("mounted still"), std::string::npos);
    EXPECT_TRUE(volume.stat("/new"));
    EXPECT_EQ(Volume::mount(copy_.path(), {.backend = "cpu"}).error().code, EBUSY);
  }
  ASSERT_TRUE(volume.mkdir("/newer"));
  EXPECT_GT(volume.clock().looks, 0u);
  fault_.refused = nullptr;
  EXPECT_TRUE(volume.unmount());
  EXPECT_TRUE(volume.unmount()) << "nothing is left to do";
  EXPECT_EQ(volume.stat("/new").error().code, ENODEV);
  Volume again = Volume::mount(copy_.path(), {.backend = "cpu"}).value();
  EXPECT_TRUE(again.info().clean);
  EXPECT_TRUE(again.stat("/new"));
  EXPECT_TRUE(again.stat("/newer"));
}

TEST_F(FailedBackendTest, a_volume_goes_where_unmounting_cannot_be_tried) {
  {
    Volume volume = try_to_mount().value();
    ASSERT_TRUE(volume.mkdir("/kept"));
    ASSERT_TRUE(volume.sync());
    ASSERT_TRUE(volume.mkdir("/lost"));
    fault_.refuse(kernels::bodies::kUnmount);
  }
  Volume again = Volume::mount(copy_.path(), {.backend = "cpu"}).value();
  EXPECT_TRUE(again.stat("/kept"));
  EXPECT_FALSE(again.stat("/lost"));
}

TEST_F(FailedBackendTest, a_volume_is_not_mounted_that_could_not_be_unmounted) {
  fault_.unready = true;
  EXPECT_TRUE(tells_refusal(try_to_mount()));
  fault_.unready = false;
  EXPECT_TRUE(try_to_mount());
}

TEST_F(FailedBackendTest, threads_of_the_volume_go_on_after_a_launch_that_fails) {
  constexpr uint64_t kOften = 1'000'000;
  Volume volume =
      try_to_mount({.read_only = false, .checkpoint_period_ns = kOften, .clock_period_ns = kOften})
          .value();
  const auto wait_for = [](auto happened) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!happened() && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return happened();
  };
  for (const kernels::Body* body : {&kernels::bodies::kCall, &kernels::bodies::kClock}) {
    const int before = refusals_;
    EXPECT_TRUE(wait_for([&] {
      // Again, where a checkpoint took this change before it could be refused.
      fault_.refused = nullptr;
      EXPECT_TRUE(volume.chmod("/odd", 0600));
      fault_.refuse(*body);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return refusals_ > before;
    })) << "nothing was tried";
    fault_.refused = nullptr;
    ASSERT_TRUE(volume.chmod("/odd", 0640));
    const uint64_t looks = volume.clock().looks;
    const uint64_t version = volume.info().checkpoint_version;
    EXPECT_TRUE(wait_for([&] { return volume.info().checkpoint_version > version; }));
    EXPECT_TRUE(wait_for([&] { return volume.clock().looks > looks; }));
  }
}

TEST_F(FailedBackendTest, readers_of_a_volume_are_told_when_they_unmount) {
  Volume volume = try_to_mount({.read_only = true}).value();
  fault_.is_lost = true;
  EXPECT_TRUE(tells_fault(volume.unmount()));
}

TEST_F(FailedBackendTest, threads_of_the_volume_end) {
  constexpr uint64_t kOften = 1'000'000;
  for (const int launches : {0, 1, 2, 5, 20}) {
    fault_.is_lost = false;
    fault_.launches_left = kNever;
    Volume volume = try_to_mount({.read_only = false,
                                  .checkpoint_period_ns = kOften,
                                  .idle_clean_percent = 100,
                                  .clock_period_ns = kOften})
                        .value();
    ASSERT_TRUE(volume.chmod("/odd", 0600));
    fault_.launches_left = launches;
    while (!fault_.is_lost) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(tells_fault(volume.chmod("/odd", 0644)));
  }
}

TEST_F(FailedBackendTest, what_was_synced_is_there_and_the_rest_is_as_after_a_power_cut) {
  {
    Volume volume = try_to_mount().value();
    const int fd = volume.open("/new", O_CREAT | O_RDWR, 0644).value();
    ASSERT_EQ(volume.write(fd, "kept", 4).value(), 4u);
    ASSERT_TRUE(volume.fsync(fd));
    ASSERT_TRUE(volume.unlink("/tiny"));
    fault_.is_lost = true;
    EXPECT_TRUE(tells_fault(volume.write(fd, "lost", 4)));
  }
  Volume volume = Volume::mount(copy_.path(), {.backend = "cpu", .read_only = false}).value();
  char bytes[8] = {};
  EXPECT_EQ(volume.pread(volume.open("/new").value(), bytes, sizeof(bytes), 0).value(), 4u);
  EXPECT_STREQ(bytes, "kept");
  ASSERT_TRUE(volume.unmount());
  GOFS_NEED_TOOL("fsck.f2fs");
  EXPECT_TRUE(image::fsck_is_clean(copy_.path()));
}

}  // namespace
}  // namespace gofs::host
