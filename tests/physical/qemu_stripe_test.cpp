// SPDX-License-Identifier: Apache-2.0
//
// A volume striped over several NVMe controllers that are not ours: how it lies is read from the
// SSDs themselves before it is mounted. What was written is read again after a remount, from the
// same images by our own virtual SSDs, and judged by fsck.f2fs.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "host/probe_ssd.h"
#include "qemu_stripe_rig.hpp"

namespace gofs::tests {
namespace {

TEST_F(QemuStripeTest, two_ssds_without_a_superblock_are_taken_as_they_are_named) {
  const Striped striped(2, 16, false);
  write_and_judge(striped, machine(striped), spec({0, 1}, "64K"), spec({0, 1}, "64K"),
                  striped.spec({0, 1}, "?stripe=64K"));
}

TEST_F(QemuStripeTest, three_ssds_without_a_superblock_are_taken_as_they_are_named) {
  const Striped striped(3, 19, false);
  write_and_judge(striped, machine(striped), spec({0, 1, 2}), spec({0, 1, 2}, "512K"),
                  striped.spec({0, 1, 2}));
}

TEST_F(QemuStripeTest, an_md_array_says_itself_how_it_lies) {
  const Striped striped(3, 14, true);
  write_and_judge(striped, machine(striped), spec({2, 0, 1}), spec({1, 2, 0}, "16K"),
                  striped.spec({0, 1, 2}));
}

TEST_F(QemuStripeTest, members_that_do_not_belong_together_are_named) {
  const Striped striped(3, 14, true);
  QemuVolumes qemu(machine(striped));
  const struct {
    std::string spec;
    int code;
    std::string message;
  } cases[] = {
      {spec({0, 1}), EINVAL, "qemu:0: a disk of an md array of 3 disks, and 2 are given"},
      {spec({0, 1, 1}), EINVAL, "named twice"},
      {"qemu:0+qemu:1+qemu:1/2?depth=16&queues=2", EINVAL, "another namespace of it"},
      {spec({0, 1, 2}, "64K"), EINVAL, "chunks of 16384 bytes"},
      {spec({0, 1, 5}), ENODEV, "qemu:5"},
      {"qemu:0+qemu:1/2+qemu:2?depth=16&queues=2", EIO,
       "qemu:1/2: the SSD did not come up: it has no active namespace of this number"},
  };
  for (const auto& one : cases) {
    const Error error = error_of_mount(one.spec);
    EXPECT_EQ(error.code, one.code) << error.message << " instead of " << one.message;
    EXPECT_NE(error.message.find(one.message), std::string::npos)
        << error.message << " instead of " << one.message;
  }
  // A wrong checksum, seen on the SSD.
  striped.write_super(
      1, [](format::MdSuperblock& super) { super.max_dev = 12; }, false);
  EXPECT_EQ(error_of_mount(spec({0, 1, 2})).code, EUCLEAN);
  striped.write_super(1, [](format::MdSuperblock&) {});
  EXPECT_EQ(error_of_mount(spec({0, 1, 2})).code, 0);
}

TEST_F(QemuStripeTest, lbas_of_two_sizes_are_refused) {
  const Striped striped(2, 16, false);
  ssd::QemuOptions options = machine(striped);
  options.disks[1].lba_bytes = 4096;
  QemuVolumes qemu(options);
  const Error error = error_of_mount(spec({0, 1}, "64K"));
  EXPECT_EQ(error.code, EOPNOTSUPP);
  EXPECT_NE(error.message.find("has LBAs of 4096 bytes, and"), std::string::npos) << error.message;
}

TEST_F(QemuStripeTest, an_ssd_that_fails_to_read_its_superblock_is_named) {
  const Striped striped(2, 16, false);
  ssd::QemuOptions options = machine(striped);
  ssd::InjectedError broken;
  broken.sector = 9;
  options.disks[1].errors = {broken};
  QemuVolumes qemu(options);
  const Error error = error_of_mount(spec({0, 1}, "64K"));
  EXPECT_EQ(error.code, EIO);
  EXPECT_NE(error.message.find("qemu:1"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("Unrecovered Read Error"), std::string::npos) << error.message;
}

TEST_F(QemuStripeTest, a_probe_says_how_large_an_ssd_is_and_reads_its_block) {
  const Striped striped(2, 16, true);
  QemuVolumes qemu(machine(striped));
  const auto specs = host::parse_volume_specs("qemu:1");
  ASSERT_TRUE(specs);
  const uint64_t bytes = striped.stripe().start_bytes[1] + striped.stripe().disk_bytes;
  for (uint32_t round = 0; round < 2; ++round) {
    const auto probed = host::probe_ssd(specs->front(), format::kMdSuperblockOffset);
    ASSERT_TRUE(probed) << probed.error().message;
    EXPECT_EQ(probed->bytes, bytes);
    EXPECT_EQ(probed->lba_bytes, 512u);
    ASSERT_EQ(probed->block.size(), kBlockBytes);
    EXPECT_EQ(format::load_u32(probed->block.data()), format::kMdMagic);
  }
  const auto beyond = host::probe_ssd(specs->front(), bytes);
  ASSERT_TRUE(beyond) << beyond.error().message;
  EXPECT_TRUE(beyond->block.empty());
}

}  // namespace
}  // namespace gofs::tests
