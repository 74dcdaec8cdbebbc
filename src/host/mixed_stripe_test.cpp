// SPDX-License-Identifier: Apache-2.0
//
// Stripes over SSDs of several kinds, each member with options of its own: files behind host
// threads beside each other and beside virtual SSDs. tests/physical has them beside physical ones.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "gofs/volume.hpp"
#include "host/copied_image_for_test.h"
#include "host/image/fsck_for_test.h"
#include "host/stripe_members.h"
#include "host/striped_for_test.h"
#include "host/volume_for_test.h"
#include "host/volume_state.h"

namespace gofs::host {
namespace {

const MountOptions kMixedReading{.backend = "cpu"};
const MountOptions kMixedWriting{.backend = "cpu", .read_only = false};

/// "A?options+B?options": members in this order, each with what `options` has at its place.
std::string mixed_spec(const Striped& striped, const std::vector<std::string>& options) {
  std::string text;
  for (uint32_t disk = 0; disk < options.size(); ++disk) {
    text += (text.empty() ? "" : "+") + striped.path(disk) + "?" + options[disk];
  }
  return text;
}

Error mixed_error(const std::string& spec) {
  const auto volume = Volume::mount(spec, kMixedReading);
  return volume ? Error{0, "mounted"} : volume.error();
}

/// A file that lies on all members is as it was made, as far as it is looked at.
void expect_large(Volume& volume) {
  const int fd = volume.open("/large").value();
  std::vector<uint8_t> got(1 << 20);
  ASSERT_EQ(volume.pread(fd, got.data(), got.size(), 0).value(), got.size());
  EXPECT_TRUE(sample_volume().has("/large", got.data(), got.size(), 0));
  EXPECT_TRUE(volume.close(fd));
}

/// Writes by one mount and reads by others; what lies on the members is a sound volume.
void write_and_judge(const Striped& striped, const std::string& spec,
                     const std::vector<std::string>& others) {
  std::vector<uint8_t> text((uint64_t{640} << 10) + 777);
  image::fill_pattern(98, 0, text.data(), text.size());
  {
    auto volume = Volume::mount(spec, kMixedWriting);
    ASSERT_TRUE(volume) << volume.error().message;
    expect_large(*volume);
    EXPECT_TRUE(volume->unlink("/large"));
    const int fd = volume->open("/fresh", O_RDWR | O_CREAT, 0644).value();
    ASSERT_EQ(volume->pwrite(fd, text.data(), text.size(), 0).value(), text.size());
    EXPECT_TRUE(volume->fsync(fd));
    ASSERT_EQ(volume->pwrite(fd, "over", 4, 70'000).value(), 4u);
    std::memcpy(text.data() + 70'000, "over", 4);
    EXPECT_TRUE(volume->rename("/data/file0007", "/seven"));
    ASSERT_TRUE(volume->unmount());
  }
  const image::TemporaryPath one;
  striped.gather(one.path());
  EXPECT_TRUE(image::fsck_is_clean(one.path()));
  for (const std::string& other : others) {
    auto volume = Volume::mount(other, kMixedReading);
    ASSERT_TRUE(volume) << volume.error().message;
    const int fd = volume->open("/fresh").value();
    std::vector<uint8_t> got(text.size());
    ASSERT_EQ(volume->pread(fd, got.data(), got.size(), 0).value(), got.size());
    EXPECT_TRUE(got == text) << other;
    EXPECT_TRUE(volume->stat("/seven"));
  }
}

TEST(MixedStripe, two_files_behind_host_threads_are_written_in_both_modes) {
  for (const std::string mode : {"adaptive", "lfs"}) {
    const Striped striped(2, 16, false);
    const std::string spec =
        mixed_spec(striped, {"threads=1&queues=3", "threads=2&stripe=64K&mode=" + mode});
    write_and_judge(striped, spec, {spec, striped.spec({0, 1}, "?stripe=64K&media=memory")});
    auto volume = Volume::mount(spec, kMixedReading);
    ASSERT_TRUE(volume) << volume.error().message;
    EXPECT_EQ(volume->info().mode, mode);
    EXPECT_EQ(volume->info().queues, 3u) << "as many of each";
    EXPECT_NE(volume->info().ssd.find("2 hosted NVMe SSDs, "), std::string::npos);
    EXPECT_NE(volume->info().ssd.find(", 1 thread; "), std::string::npos) << volume->info().ssd;
    EXPECT_NE(volume->info().ssd.find(", 2 threads, chunks of 64 KiB"), std::string::npos)
        << volume->info().ssd;
  }
}

TEST(MixedStripe, a_hosted_and_a_virtual_ssd_are_one_volume) {
  for (const bool is_array : {false, true}) {
    const Striped striped(3, 16, is_array);
    const std::string spec =
        mixed_spec(striped, {"media=hosted", "model=none&depth=64", "media=hosted&stripe=64K"});
    write_and_judge(striped, spec, {spec, striped.spec({0, 1, 2}, "?stripe=64K&media=hosted")});
    auto volume = Volume::mount(spec, kMixedReading);
    ASSERT_TRUE(volume) << volume.error().message;
    const std::string words = volume->info().ssd;
    EXPECT_TRUE(words.starts_with("3 SSDs: hosted NVMe SSD, ")) << words;
    EXPECT_NE(words.find("; virtual NVMe SSD, "), std::string::npos) << words;
    EXPECT_EQ(volume->info().queue_depth, 64u) << "of the one that has the fewest";
  }
}

TEST(MixedStripe, lbas_are_those_that_all_members_can_have) {
  const Striped striped(2, 16, false);
  const auto lbas_of = [&](const std::vector<std::string>& options) {
    auto specs = parse_volume_specs(mixed_spec(striped, options));
    EXPECT_TRUE(specs);
    const auto stripe = arrange_stripe(*specs);
    if (!stripe) return std::pair{0u, stripe.error().message};
    EXPECT_EQ(specs->front().lba_bytes, specs->back().lba_bytes);
    return std::pair{specs->front().lba_bytes.value_or(0), std::string()};
  };
  EXPECT_EQ(lbas_of({"media=hosted", "lba=4096&stripe=64K"}).first, 4096u);
  EXPECT_EQ(lbas_of({"media=memory&lba=4096", "media=hosted&stripe=64K"}).first, 4096u);
  EXPECT_EQ(lbas_of({"media=memory", "media=memory&stripe=64K"}).first, 512u);
  const auto [bytes, words] = lbas_of({"media=hosted&lba=4096", "media=memory&lba=512&stripe=64K"});
  EXPECT_EQ(bytes, 0u);
  EXPECT_NE(words.find(striped.path(1) + ": has LBAs of 512 bytes, and " + striped.path(0)),
            std::string::npos)
      << words;
  Volume volume =
      Volume::mount(mixed_spec(striped, {"media=hosted", "lba=4096&stripe=64K"}), kMixedReading)
          .value();
  EXPECT_EQ(volume.info().lba_bytes, 4096u);
  expect_large(volume);
}

TEST(MixedStripe, members_that_are_missing_named_twice_or_swapped_are_refused) {
  const Striped plain(2, 16, false);
  const std::string first = plain.path(0);
  const std::string second = plain.path(1);
  const struct {
    std::string spec;
    int code;
    std::string message;
  } cases[] = {
      {first + "?media=hosted+" + second + ".not?media=memory&stripe=64K", ENOENT, second + ".not"},
      {first + "?media=hosted+" + first + "?media=memory&stripe=64K", EINVAL, "named twice"},
      {second + "?media=hosted+" + first + "?media=memory&stripe=64K", EINVAL, "not an F2FS"},
      {first + "?media=hosted&stripe=64K", EINVAL, ""},
      {first + "?media=hosted+ram:64M?stripe=64K", EOPNOTSUPP, "of another size"},
  };
  for (const auto& one : cases) {
    const Error error = mixed_error(one.spec);
    EXPECT_NE(error.code, 0) << one.spec;
    EXPECT_NE(error.message.find(one.message), std::string::npos)
        << error.message << " instead of " << one.message;
  }
  // An array says itself which is which.
  const Striped array(2, 16, true);
  for (const auto& [front, back] : {std::pair{0u, 1u}, {1u, 0u}}) {
    Volume volume =
        Volume::mount(array.path(front) + "?media=hosted+" + array.path(back) + "?media=memory",
                      kMixedReading)
            .value();
    expect_large(volume);
  }
  const Error alone = mixed_error(array.path(0) + "?media=hosted+" + first + "?media=memory");
  EXPECT_EQ(alone.code, EINVAL);
  EXPECT_NE(alone.message.find("has no md superblock"), std::string::npos) << alone.message;
}

TEST(MixedStripe, one_whose_file_is_cut_is_named_and_the_other_one_goes_on) {
  const Striped striped(2, 12, false);
  auto volume = Volume::mount(
      mixed_spec(striped, {"media=memory", "media=hosted&stripe=4K&queues=2"}), kMixedWriting);
  ASSERT_TRUE(volume) << volume.error().message;
  const int fd = volume->open("/large").value();
  std::vector<uint8_t> block(4096);
  ASSERT_TRUE(volume->pread(fd, block.data(), block.size(), 0));  // it is mapped from here on
  ASSERT_TRUE(volume->mkdir("/new", 0755));
  ASSERT_EQ(::truncate(striped.path(1).c_str(), 65536), 0);
  uint32_t read = 0;
  uint32_t failed = 0;
  for (uint64_t at = 0; at < 64 * 4096; at += 4096) {
    const auto got = volume->pread(fd, block.data(), block.size(), at);
    if (got) {
      ++read;
      continue;
    }
    ++failed;
    EXPECT_NE(got.error().message.find(striped.path(1) + "?"), std::string::npos)
        << got.error().message;
  }
  EXPECT_GE(read, 20u);
  EXPECT_GE(failed, 20u);
  EXPECT_FALSE(volume->unmount()) << "what was changed lies on both";
}

TEST(MixedStripe, a_copy_in_memory_is_not_written_beside_what_is_written_at_once) {
  const Striped striped(2, 16, false);
  const std::string spec = mixed_spec(striped, {"media=memory", "media=hosted&stripe=64K"});
  CopyControls controls;
  const auto make = [&](const std::string&, std::string&) -> std::unique_ptr<kernels::Backend> {
    return std::make_unique<CopyingBackend>(controls);
  };
  const auto refused = VolumeState::mount(spec, kMixedWriting, MountKind::kVolume, make);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, EOPNOTSUPP);
  EXPECT_NE(refused.error().message.find(striped.path(0) + "?media=memory: is a copy in memory"),
            std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(VolumeState::mount(spec, kMixedReading, MountKind::kVolume, make));
}

}  // namespace
}  // namespace gofs::host
