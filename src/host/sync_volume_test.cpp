// SPDX-License-Identifier: Apache-2.0
//
// Volumes whose SSD is a copy in memory: what a sync brings to the image, beside other syncs and
// beside kernels that write, and what becomes of it where the host's disk is full.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gofs/volume.hpp"
#include "host/copied_image_for_test.h"
#include "host/image/fsck_for_test.h"
#include "host/image/mkfs.h"
#include "host/quiet_volume.h"
#include "kernels/bodies.h"

namespace gofs::host {
namespace {

using request::Verb;

class SyncVolumeTest : public ::testing::Test {
 protected:
  SyncVolumeTest() {
    image::VolumeOptions options;
    options.flush = false;
    EXPECT_TRUE(image::make_volume(image_.path(), uint64_t{64} << 20, options).ok());
  }
  BackendMaker maker() {
    return [this](const std::string&, std::string&) {
      auto backend = std::make_unique<CopyingBackend>(controls_);
      backend_ = backend.get();
      return backend;
    };
  }
  Volume mount() {
    return VolumeForTest::mount(image_.path() + "?media=memory", {.read_only = false}, maker())
        .value();
  }
  /// A call by a kernel of the program: of a path, or of a descriptor with `bytes` to be written.
  struct KernelCall {
    Verb verb;
    std::string path = {};
    int64_t descriptor = 0;
    const std::vector<char>* bytes = nullptr;
  };
  int64_t call(Volume& volume, const KernelCall& wanted) {
    kernels::CallParams params{};
    params.fs = &*volume.device();
    params.call.request.verb = wanted.verb;
    params.call.path = wanted.path.c_str();
    params.call.request.flags = O_RDWR | O_CREAT;
    params.call.request.mode = 0755;
    params.call.request.descriptor = static_cast<int>(wanted.descriptor);
    if (wanted.bytes != nullptr) {
      params.call.buffer = const_cast<char*>(wanted.bytes->data());
      params.call.request.bytes = wanted.bytes->size();
    }
    EXPECT_TRUE(backend_->run(kernels::bodies::kCall, {1, 1}, &params));
    return params.answer;
  }
  /// Files that come and go, and checkpoints: what is free is soon written again.
  void churn(Volume& volume, int thread, const std::atomic<bool>& ending) {
    const std::string folder = "/d" + std::to_string(thread);
    EXPECT_EQ(call(volume, {Verb::kMkdir, folder}), 0);
    const std::vector<char> bytes(300'000, static_cast<char>('a' + thread));
    for (int turn = 0; !ending.load(); ++turn) {
      const std::string path = folder + "/" + std::to_string(turn % 7);
      const int64_t fd = call(volume, {Verb::kOpen, path});
      EXPECT_EQ(call(volume, {Verb::kPwrite, {}, fd, &bytes}), 300'000);
      if (turn % 3 == 0) call(volume, {Verb::kFsync, {}, fd});
      call(volume, {Verb::kClose, {}, fd});
      if (turn % 2 == 0) call(volume, {Verb::kUnlink, path});
      if (turn % 5 == 0) call(volume, {Verb::kSync});
    }
  }
  /// The image as it is now, mounted by who knows nothing of the volume, holds what was synced.
  void expect_sound(const std::vector<char>& kept) {
    const image::TemporaryPath copy;
    ASSERT_EQ(image::run_tool("cp " + image_.path() + " " + copy.path()).exit_code, 0);
    auto volume = Volume::mount(copy.path(), {.backend = "cpu", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    std::vector<char> bytes(kept.size() + 1);
    const auto fd = volume->open("/kept");
    ASSERT_TRUE(fd) << fd.error().message;
    const auto read = volume->pread(*fd, bytes.data(), bytes.size(), 0);
    ASSERT_TRUE(read) << read.error().message;
    bytes.resize(*read);
    EXPECT_TRUE(bytes == kept);
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
    for (const std::string& warning : volume->warnings()) {
      EXPECT_NE(warning.find("not cleanly"), std::string::npos) << warning;
    }
    GOFS_NEED_TOOL("fsck.f2fs");
    EXPECT_TRUE(image::fsck_is_clean(copy.path()));
  }

  const image::TemporaryPath image_;
  CopyControls controls_;
  CopyingBackend* backend_ = nullptr;  // of the volume that was mounted last
};

TEST_F(SyncVolumeTest, syncs_of_several_threads_at_once_lose_nothing) {
  constexpr int kThreads = 4;
  constexpr int kTurns = 12;
  constexpr uint64_t kPart = 100'000;
  controls_.pause_us = 200;
  {
    Volume volume = mount();
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        const std::string path = "/f" + std::to_string(thread);
        const int fd = volume.open(path, O_CREAT | O_RDWR, 0644).value();
        for (int turn = 0; turn < kTurns; ++turn) {
          const std::vector<char> bytes(kPart, static_cast<char>('a' + thread + turn));
          EXPECT_TRUE(volume.pwrite(fd, bytes.data(), kPart, kPart * turn));
          EXPECT_TRUE(turn % 2 == 0 ? volume.fsync(fd) : volume.sync());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(volume.unmount());
  }
  Volume volume = Volume::mount(image_.path(), {.backend = "cpu"}).value();
  for (int thread = 0; thread < kThreads; ++thread) {
    const int fd = volume.open("/f" + std::to_string(thread)).value();
    for (int turn = 0; turn < kTurns; ++turn) {
      std::vector<char> bytes(kPart);
      EXPECT_EQ(volume.pread(fd, bytes.data(), kPart, kPart * turn).value(), kPart);
      EXPECT_TRUE(bytes == std::vector<char>(kPart, static_cast<char>('a' + thread + turn)));
    }
  }
}

TEST_F(SyncVolumeTest, a_sync_beside_kernels_that_write_leaves_a_state_of_the_volume) {
  for (const uint64_t bytes_max : {uint64_t{1} << 30, uint64_t{0}}) {
    controls_.bytes_max = bytes_max;
    controls_.pause_us = 0;
    Volume volume = mount();
    std::vector<char> kept(500'000, 'k');
    const int64_t kept_fd = call(volume, {Verb::kOpen, "/kept"});
    std::atomic<bool> ending{false};
    std::vector<std::thread> kernels;
    for (int i = 0; i < 2; ++i) {
      kernels.emplace_back([&, i] { churn(volume, i + (bytes_max == 0 ? 2 : 0), ending); });
    }
    for (int round = 0; round < 3; ++round) {
      kept.assign(kept.size(), static_cast<char>('A' + round));
      EXPECT_EQ(call(volume, {Verb::kPwrite, {}, kept_fd, &kept}), 500'000);
      controls_.pause_us = 300;
      const auto synced = volume.sync();
      controls_.pause_us = 0;
      EXPECT_TRUE(synced) << synced.error().message;
      expect_sound(kept);
    }
    ending.store(true);
    for (std::thread& kernel : kernels) kernel.join();
    EXPECT_TRUE(volume.unmount());
  }
}

TEST_F(SyncVolumeTest, who_changes_a_quiet_volume_waits_and_who_reads_it_does_not) {
  auto state = VolumeState::mount(image_.path(), {.read_only = false}, MountKind::kVolume, maker());
  ASSERT_TRUE(state) << state.error().message;
  VolumeState& volume = **state;
  kernels::CallParams make{};
  make.fs = volume.filesystem();
  make.call.request.verb = Verb::kMkdir;
  make.call.path = "/new";
  make.answer = 1;
  kernels::CallParams look = make;
  look.call.request.verb = Verb::kAccess;
  std::atomic<bool> made{false};
  std::thread kernel;
  {
    QuietMemory memory(volume.backend().shared_memory());
    QuietVolume quiet(volume, memory);
    ASSERT_TRUE(quiet.beginning());
    kernel = std::thread([&] {
      EXPECT_TRUE(backend_->run(kernels::bodies::kCall, {1, 1}, &make));
      made.store(true);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(made.load());
    EXPECT_TRUE(backend_->run(kernels::bodies::kCall, {1, 1}, &look));
    EXPECT_EQ(look.answer, -ENOENT);
    std::vector<char> there(QuietMemory::kBytes + 100, 't');
    std::vector<char> here(there.size(), 'h');
    there.front() = 'f';
    there.back() = 'b';
    EXPECT_EQ(quiet.pull(here.data(), there.data(), here.size()), "");
    EXPECT_TRUE(there == here);
    EXPECT_TRUE(quiet.release());
    EXPECT_NE(quiet.pull(here.data(), there.data(), 1), "");
  }
  kernel.join();
  EXPECT_EQ(make.answer, 0);
  EXPECT_TRUE(backend_->run(kernels::bodies::kCall, {1, 1}, &look));
  EXPECT_EQ(look.answer, 0);
}

TEST_F(SyncVolumeTest, a_full_disk_fails_each_sync_and_is_got_over) {
  Volume volume = mount();
  ASSERT_TRUE(volume.mkdir("/new"));
  controls_.reserve_error = -ENOSPC;
  for (int i = 0; i < 3; ++i) {
    const auto full = volume.sync();
    ASSERT_FALSE(full);
    EXPECT_NE(full.error().message.find("No space left"), std::string::npos);
  }
  controls_.reserve_error = 0;
  EXPECT_TRUE(volume.sync());
  EXPECT_TRUE(volume.unmount());
  EXPECT_TRUE(Volume::mount(image_.path(), {.backend = "cpu"}).value().stat("/new"));
}

TEST_F(SyncVolumeTest, unmounting_on_a_full_disk_can_be_tried_again) {
  Volume volume = mount();
  ASSERT_TRUE(volume.mkdir("/new"));
  controls_.reserve_error = -ENOSPC;
  for (int i = 0; i < 2; ++i) {
    const auto full = volume.unmount();
    ASSERT_FALSE(full);
    EXPECT_NE(full.error().message.find("No space left"), std::string::npos);
    EXPECT_EQ(volume.stat("/").error().code, ENODEV);
    EXPECT_EQ(Volume::mount(image_.path(), {.backend = "cpu"}).error().code, EBUSY);
  }
  controls_.reserve_error = 0;
  EXPECT_TRUE(volume.unmount());
  EXPECT_TRUE(volume.unmount());
  Volume again = Volume::mount(image_.path(), {.backend = "cpu"}).value();
  EXPECT_TRUE(again.info().clean);
  EXPECT_TRUE(again.stat("/new"));
}

TEST_F(SyncVolumeTest, what_could_not_be_written_is_told_and_the_image_is_let_go) {
  Volume volume = mount();
  ASSERT_TRUE(volume.mkdir("/new"));
  controls_.write_error = -EIO;
  EXPECT_FALSE(volume.sync());
  controls_.write_error = 0;
  EXPECT_FALSE(volume.sync());
  EXPECT_FALSE(volume.unmount());
  EXPECT_TRUE(volume.unmount()) << "nothing can be done";
  EXPECT_TRUE(Volume::mount(image_.path(), {.backend = "cpu"}));
}

}  // namespace
}  // namespace gofs::host
