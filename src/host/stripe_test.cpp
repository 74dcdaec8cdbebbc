// SPDX-License-Identifier: Apache-2.0
//
// A volume over several SSDs, with md's superblocks and without: what was one image reads the same
// when it is dealt out, what is written comes back together as one that fsck.f2fs likes, and
// members that do not belong together are refused by name.
#include "format/stripe.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "format/md.h"
#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/striped_for_test.h"
#include "host/volume_for_test.h"

namespace gofs {
namespace {

using host::expect_whole;
using host::Striped;

const MountOptions kStripeReading{.backend = "cpu"};
const MountOptions kStripeWriting{.backend = "cpu", .read_only = false};

Error error_of_mount(const std::string& spec) {
  const auto volume = Volume::mount(spec, kStripeReading);
  return volume ? Error{0, "mounted"} : volume.error();
}

TEST(StripeMount, images_are_read_in_the_order_in_which_they_are_named) {
  for (const auto& [disks, chunk_shift] : {std::pair{2u, 12u}, {3u, 19u}, {8u, 16u}}) {
    const Striped striped(disks, chunk_shift, false);
    std::vector<uint32_t> order;
    for (uint32_t disk = 0; disk < disks; ++disk) order.push_back(disk);
    const std::string options = "?stripe=" + std::to_string(4u << (chunk_shift - 12)) + "K";
    Volume volume = Volume::mount(striped.spec(order, options), kStripeReading).value();
    EXPECT_EQ(volume.info().ssd_bytes, format::stripe_bytes(striped.stripe()));
    expect_whole(volume);
  }
}

TEST(StripeMount, half_a_mebibyte_is_usual) {
  const Striped striped(2, 19, false);
  Volume volume = Volume::mount(striped.spec({0, 1}, "?media=memory"), kStripeReading).value();
  EXPECT_NE(volume.info().ssd.find("2 virtual NVMe SSDs"), std::string::npos) << volume.info().ssd;
  EXPECT_NE(volume.info().ssd.find("chunks of 512 KiB"), std::string::npos) << volume.info().ssd;
  expect_whole(volume);
  EXPECT_EQ(error_of_mount(striped.spec({1, 0})).code, EINVAL);  // no superblock there
}

TEST(StripeMount, an_array_says_itself_how_it_lies) {
  const Striped striped(3, 14, true);
  for (const std::vector<uint32_t>& order : {std::vector<uint32_t>{2, 0, 1}, {1, 2, 0}}) {
    Volume volume = Volume::mount(striped.spec(order), kStripeReading).value();
    expect_whole(volume);
  }
  EXPECT_TRUE(Volume::mount(striped.spec({0, 1, 2}, "?stripe=16K"), kStripeReading));
}

TEST(StripeMount, what_is_written_comes_back_as_one_sound_volume) {
  for (const bool is_array : {false, true}) {
    const Striped striped(3, 15, is_array);
    const std::string spec = striped.spec({0, 1, 2}, "?stripe=32K&lba=4096");
    std::vector<uint8_t> text((uint64_t{3} << 20) + 777);
    image::fill_pattern(99, 0, text.data(), text.size());
    {
      Volume volume = Volume::mount(spec, kStripeWriting).value();
      EXPECT_TRUE(volume.unlink("/large"));
      const int fd = volume.open("/fresh", O_RDWR | O_CREAT, 0644).value();
      ASSERT_EQ(volume.pwrite(fd, text.data(), text.size(), 0).value(), text.size());
      EXPECT_TRUE(volume.fsync(fd));
      ASSERT_EQ(volume.pwrite(fd, "over", 4, 40'000).value(), 4u);
      std::memcpy(text.data() + 40'000, "over", 4);
      EXPECT_TRUE(volume.mkdir("/made", 0755));
      EXPECT_TRUE(volume.rename("/data/file0007", "/made/seven"));
      EXPECT_TRUE(volume.sync());
      EXPECT_TRUE(volume.unmount());
    }
    const image::TemporaryPath one;
    striped.gather(one.path());
    EXPECT_TRUE(image::fsck_is_clean(one.path()));
    for (const std::string& again : {spec, one.path()}) {
      Volume volume = Volume::mount(again, kStripeReading).value();
      const int fd = volume.open("/fresh").value();
      std::vector<uint8_t> got(text.size());
      ASSERT_EQ(volume.pread(fd, got.data(), got.size(), 0).value(), got.size());
      EXPECT_EQ(got, text);
      EXPECT_TRUE(volume.stat("/made/seven"));
      EXPECT_EQ(volume.stat("/large").error().code, ENOENT);
    }
  }
}

TEST(StripeMount, a_failing_ssd_is_named_and_the_others_go_on) {
  const Striped striped(2, 12, false);
  Volume volume =
      Volume::mount(striped.spec({0, 1}, "?stripe=4K&model=p5800x"), kStripeReading).value();
  const int fd = volume.open("/large").value();
  std::vector<uint8_t> block(4096);
  ASSERT_TRUE(volume.pread(fd, block.data(), block.size(), 0));
  auto& controller = *(*volume.device()).volume.array.devices[1]->controller.controller;
  ssd::FaultTable::Entry entry{};
  entry.rule.status = format::nvme::kUnrecoveredReadError;
  ssd::FaultTable faults{1, 1, &entry};
  controller.faults = &faults;
  uint32_t failed = 0;
  uint32_t read = 0;
  for (uint64_t at = 0; at < 64 * 4096; at += 4096) {
    const auto got = volume.pread(fd, block.data(), block.size(), at);
    if (got) {
      ++read;
      continue;
    }
    ++failed;
    EXPECT_EQ(got.error().code, EIO);
    EXPECT_NE(got.error().message.find(striped.path(1) + "?"), std::string::npos)
        << got.error().message;
  }
  controller.faults = nullptr;
  EXPECT_GE(failed, 20u);
  EXPECT_GE(read, 20u);
  // Now the other one: it is named, though this one has failed before.
  auto& other = *(*volume.device()).volume.array.devices[0]->controller.controller;
  other.faults = &faults;
  for (uint64_t at = 0; at < 64 * 4096; at += 4096) {
    const auto got = volume.pread(fd, block.data(), block.size(), at);
    if (got) continue;
    EXPECT_NE(got.error().message.find(striped.path(0) + ": Unrec"), std::string::npos)
        << got.error().message;
    EXPECT_EQ(got.error().message.find(striped.path(1) + "?"), std::string::npos);
  }
  other.faults = nullptr;
}

TEST(StripeMount, members_that_do_not_belong_together_are_named) {
  const Striped striped(3, 14, true);
  const std::string all = striped.spec({0, 1, 2});
  const auto spoiled = [&](const std::function<void(format::MdSuperblock&)>& spoil,
                           bool mends_checksum = true) {
    striped.write_super(1, spoil, mends_checksum);
    const Error error = error_of_mount(all);
    striped.write_super(1, [](format::MdSuperblock&) {});
    return error;
  };
  const struct {
    Error error;
    int code;
    std::string message;
  } cases[] = {
      {error_of_mount(striped.spec({0, 1})), EINVAL, "an md array of 3 disks, and 2 are given"},
      {error_of_mount(striped.spec({0, 1, 1})), EINVAL, striped.path(1) + ": named twice"},
      {spoiled([](auto& super) { super.dev_number = 4; }), EINVAL, "or disk 1 is missing"},
      {error_of_mount(striped.spec({0, 1, 2}, "?stripe=64K")), EINVAL, "chunks of 16384 bytes"},
      {error_of_mount(striped.spec({0, 1}) + "+" + host::sample_volume().path()), EINVAL,
       host::sample_volume().path() + ": has no md superblock"},
      {error_of_mount(striped.spec({0, 1, 2}, "") + "+ram:1M+ram:1M+ram:1M+ram:1M+ram:1M+ram:1M"),
       EINVAL, "more than 8 SSDs"},
      {spoiled([](auto&) {}, false), EUCLEAN, striped.path(1) + ": damaged: its md superblock"},
      {spoiled([](auto& super) { super.max_dev = 3000; }, false), EUCLEAN, "wrong checksum"},
      {spoiled([](auto& super) { super.level = 5; }), EOPNOTSUPP, "RAID level 5"},
      {spoiled([](auto& super) { super.level = 0xffffffff; }), EOPNOTSUPP, "RAID level -1"},
      {spoiled([](auto& super) { super.feature_map = 4; }), EOPNOTSUPP, "features 0x4"},
      {spoiled([](auto& super) { super.set_uuid[3] = 1; }), EINVAL, "another md array"},
      {spoiled([](auto& super) { super.super_offset = 0; }), EOPNOTSUPP, "not of version 1.2"},
      {spoiled([](auto& super) { super.chunk_sectors = 48; }), EOPNOTSUPP, "chunks of 24576"},
      {spoiled([](auto& super) { super.chunk_sectors = 64; }), EUCLEAN, "chunks of another size"},
      {spoiled([](auto& super) { super.data_size = super.data_size - 64; }), EOPNOTSUPP,
       "of another size than " + striped.path(0)},
      {spoiled([](auto& super) { super.data_offset = uint64_t{1} << 40; }), EUCLEAN,
       "names data that is not there"},
      {spoiled([](auto& super) { super.dev_number = 0; }), EUCLEAN, "no place in the array"},
      // Behind its table of places there may be what looks like one.
      {spoiled([](auto& super) {
         super.dev_number = uint32_t{super.max_dev};
         super.dev_roles[super.dev_number] = 1;
       }),
       EUCLEAN, "no place in the array"},
      {spoiled([](auto& super) {
         super.max_dev = 0;
         super.dev_number = 3;
       }),
       EUCLEAN, "no place in the array"},
      {spoiled([](auto& super) {
         super.max_dev = format::kMdRolesMax;
         super.dev_number = format::kMdRolesMax;
       }),
       EUCLEAN, "no place in the array"},
      {spoiled([](auto& super) { super.dev_number = 2 * format::kMdRolesMax; }), EUCLEAN,
       "no place in the array"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(one.error.code, one.code) << one.error.message << " instead of " << one.message;
    EXPECT_NE(one.error.message.find(one.message), std::string::npos)
        << one.error.message << " instead of " << one.message;
  }
  EXPECT_EQ(error_of_mount(all).code, 0);
  EXPECT_EQ(error_of_mount("ram:64M+ram:63M").code, EOPNOTSUPP);
  EXPECT_EQ(error_of_mount("ram:64K+ram:64K").code, EINVAL);
}

}  // namespace
}  // namespace gofs
