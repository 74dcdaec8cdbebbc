// SPDX-License-Identifier: Apache-2.0
//
// What random_calls_test.cpp does, by the warps of a client's kernel, through their channel.
#include <gtest/gtest.h>

#include <utility>

#include "host/serve/kernel_channel_for_test.h"
#include "host/volume_access.h"
#include "random_calls_judge.hpp"

namespace gofs::judges {
namespace {

using request::Verb;
using serve::KernelCall;
using serve::KernelChannel;

/// As testing::MountedVolume.
struct ChannelVolume {
  KernelChannel& channel;

  int open(simt::AnyWarp auto warp, const char* path, uint32_t flags, uint32_t mode) const {
    KernelCall call(Verb::kOpen);
    call.path = path;
    call.request.flags = flags;
    call.request.mode = mode;
    return ask(warp, call);
  }
  int close(simt::AnyWarp auto warp, int fd) const { return about(warp, Verb::kClose, fd); }
  int64_t pread(simt::AnyWarp auto warp, int fd, void* buffer, uint64_t bytes,
                uint64_t offset) const {
    return move(warp, {Verb::kPread, fd, static_cast<uint8_t*>(buffer), bytes, offset});
  }
  int64_t pwrite(simt::AnyWarp auto warp, int fd, const void* buffer, uint64_t bytes,
                 uint64_t offset) const {
    auto* const input = static_cast<uint8_t*>(const_cast<void*>(buffer));
    return move(warp, {Verb::kPwrite, fd, input, bytes, offset});
  }
  int fsync(simt::AnyWarp auto warp, int fd) const { return about(warp, Verb::kFsync, fd); }
  int truncate(simt::AnyWarp auto warp, const char* path, uint64_t size) const {
    KernelCall call(Verb::kTruncate);
    call.path = path;
    call.request.bytes = size;
    return ask(warp, call);
  }
  int chmod(simt::AnyWarp auto warp, const char* path, uint32_t mode) const {
    return about(warp, Verb::kChmod, path, mode);
  }
  int lstat(simt::AnyWarp auto warp, const char* path, Stat& out) const {
    KernelCall call = about_link(Verb::kStat, path);
    call.output = &out;
    call.request.bytes = sizeof(out);
    return ask(warp, call);
  }
  int lsetxattr(simt::AnyWarp auto warp, const char* path, const char* name, const void* value,
                uint64_t bytes, uint32_t flags) const {
    KernelCall call = about_link(Verb::kSetxattr, path);
    call.name = name;
    call.input = value;
    call.request.bytes = bytes;
    call.request.flags = flags;
    return ask(warp, call);
  }
  int lremovexattr(simt::AnyWarp auto warp, const char* path, const char* name) const {
    KernelCall call = about_link(Verb::kRemovexattr, path);
    call.name = name;
    return ask(warp, call);
  }
  int mkdir(simt::AnyWarp auto warp, const char* path, uint32_t mode) const {
    return about(warp, Verb::kMkdir, path, mode);
  }
  int rmdir(simt::AnyWarp auto warp, const char* path) const {
    return about(warp, Verb::kRmdir, path, 0);
  }
  int unlink(simt::AnyWarp auto warp, const char* path) const {
    return about(warp, Verb::kUnlink, path, 0);
  }
  int rename(simt::AnyWarp auto warp, const char* from, const char* to, uint32_t flags) const {
    return between(warp, Verb::kRename, from, to, flags);
  }
  int link(simt::AnyWarp auto warp, const char* existing, const char* path) const {
    return between(warp, Verb::kLink, existing, path, 0);
  }
  int symlink(simt::AnyWarp auto warp, const char* target, const char* path) const {
    return between(warp, Verb::kSymlink, target, path, 0);
  }
  int mknod(simt::AnyWarp auto warp, const char* path, uint32_t mode) const {
    return about(warp, Verb::kMknod, path, mode);
  }
  int sync(simt::AnyWarp auto warp) const { return ask(warp, KernelCall(Verb::kSync)); }

 private:
  int ask(simt::AnyWarp auto warp, KernelCall call) const {
    return static_cast<int>(serve::ask(warp, channel, call));
  }
  int about(simt::AnyWarp auto warp, Verb verb, int fd) const {
    KernelCall call(verb);
    call.request.descriptor = fd;
    return ask(warp, call);
  }
  int about(simt::AnyWarp auto warp, Verb verb, const char* path, uint32_t mode) const {
    KernelCall call(verb);
    call.path = path;
    call.request.mode = mode;
    return ask(warp, call);
  }
  int between(simt::AnyWarp auto warp, Verb verb, const char* other, const char* path,
              uint32_t flags) const {
    KernelCall call(verb);
    call.path = path;
    call.other = other;
    call.request.flags = flags;
    return ask(warp, call);
  }
  static KernelCall about_link(Verb verb, const char* path) {
    KernelCall call(verb);
    call.path = path;
    call.request.bits = request::kKeepLink;
    return call;
  }
  int64_t move(simt::AnyWarp auto warp, const serve::MovedRange& range) const {
    return serve::moved_bytes(range, serve::move_share(warp, channel, range, 0, 1));
  }
};

class RandomKernelCallsTest : public host::KernelChannelTest {};

TEST_P(RandomKernelCallsTest, many_warps_through_a_channel_do_what_their_models_do) {
  constexpr uint32_t kWarps = 5;  // more than there are slots
  RandomRunOnHost run(kWarps, 400);
  SCOPED_TRACE(words_of(run.params));
  {
    // User 0 is whom the models are of, whoever runs this.
    const uint32_t owner = channels_->open({})->number;
    auto opened = std::move(channels_->open_for_kernels(owner).value());
    const ssd::Descriptor in_this_process;
    const host::KernelEnd end(std::make_unique<host::BackendForTest>(),
                              {{opened.of_gpu, opened.bytes}, std::move(opened.memory)},
                              in_this_process, Program::kBase);
    const ChannelVolume volume{*serve::channel_of(end.handle())};
    launch(1, [&](const simt::Warp& warp, uint32_t) {
      EXPECT_EQ(volume.mkdir(warp, "/shared", 0777), 0);
    });
    launch(kWarps, [&](const simt::Warp& warp, uint32_t index) {
      testing::random_calls_body(warp, index, run.params, volume);
    });
    channels_->close(opened.number);
    channels_->close(owner);
  }
  end_server();
  Volume volume = host::VolumeAccess::volume(std::move(volume_));
  EXPECT_EQ(judge_random_calls(run.params, kWarps, volume), "");
  const auto unmounted = volume.unmount();
  ASSERT_TRUE(unmounted) << unmounted.error().message;
  GOFS_NEED_TOOL("fsck.f2fs");
  EXPECT_TRUE(image::fsck_is_clean(image_.path()));
  auto again = Volume::mount(image_.path(), {.backend = "cpu"});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(judge_random_calls(run.params, kWarps, *again), "");
}

INSTANTIATE_TEST_SUITE_P(servers, RandomKernelCallsTest, host::KernelChannelTest::all());

}  // namespace
}  // namespace gofs::judges
