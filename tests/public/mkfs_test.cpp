// SPDX-License-Identifier: Apache-2.0
//
// New volumes by the public interface, as programs of C++17 see it. What is in them is for
// src/host/image to test.
#include "gofs/mkfs.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "gofs/volume.hpp"

namespace gofs {
namespace {

class PublicMkfsTest : public testing::Test {
 protected:
  PublicMkfsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "gofs_mkfs_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no folder " << name;
    folder_ = name;
    options_.size_bytes = uint64_t{64} << 20;
  }
  ~PublicMkfsTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  void expect_refused(const std::string& spec, int code, const std::string& words) {
    const Expected<void> made = mkfs(spec, options_);
    ASSERT_FALSE(made) << spec;
    EXPECT_EQ(made.error().code, code) << made.error().message;
    EXPECT_NE(made.error().message.find(words), std::string::npos) << made.error().message;
  }

  std::filesystem::path folder_;
  MkfsOptions options_;
};

TEST_F(PublicMkfsTest, a_new_volume_can_be_mounted_and_written_to) {
  options_.label = "new";
  options_.features = {"extra_attr", "inode_checksum"};
  ASSERT_TRUE(mkfs(path("v"), options_));
  MountOptions mount;
  mount.backend = "cpu";
  mount.read_only = false;
  Volume volume = Volume::mount(path("v"), mount).value();
  EXPECT_EQ(volume.info().label, "new");
  EXPECT_EQ(volume.info().features, options_.features);
  EXPECT_TRUE(volume.mkdir("/a"));
  EXPECT_TRUE(volume.unmount());
}

TEST_F(PublicMkfsTest, several_images_become_one_volume) {
  ASSERT_TRUE(mkfs(path("a") + "+" + path("b") + "?stripe=64K", options_));
  MountOptions mount;
  mount.backend = "cpu";
  EXPECT_TRUE(Volume::mount(path("b") + "+" + path("a"), mount));
}

TEST_F(PublicMkfsTest, what_cannot_become_a_volume_is_refused_and_no_file_is_left) {
  expect_refused("ram:64M", EINVAL, "ram:64M: only an image or a device");
  expect_refused("vfio:0000:65:00.0", EINVAL, "give the SSD back to Linux");
  options_.features = {"magic"};
  expect_refused(path("v"), EINVAL, "magic: no such feature");
  options_.features.clear();
  options_.size_bytes = 1 << 20;
  expect_refused(path("v"), ENOSPC, path("v") + ": too small");
  EXPECT_FALSE(std::filesystem::exists(path("v")));
}

TEST_F(PublicMkfsTest, a_volume_is_written_over_only_where_that_is_asked_for) {
  ASSERT_TRUE(mkfs(path("v"), options_));
  expect_refused(path("v"), EEXIST, "already holds an F2FS volume");
  options_.overwrite = true;
  EXPECT_TRUE(mkfs(path("v"), options_));
}

}  // namespace
}  // namespace gofs
