// SPDX-License-Identifier: Apache-2.0
//
// Who may do what by an access list: every way to ask, for files and directories with random lists,
// compared with the rules of acl(5) written down once more in the order in which Linux applies
// them.
#include "vfs/access_list.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "vfs/batch.h"
#include "vfs/metadata.h"
#include "vfs/open.h"
#include "vfs/vfs_for_test.hpp"
#include "vfs/xattr.h"

namespace gofs::vfs {
namespace {

struct Entry {
  uint32_t tag;
  uint32_t permissions;
  uint32_t id = 0;
};

/// What decides about a file.
struct Case {
  image::Attributes attributes;
  bool listed;
  std::vector<Entry> list;
};

std::string disk_acl(const std::vector<Entry>& list, uint32_t version = format::kAclVersion) {
  std::string bytes;
  const auto put = [&bytes](uint32_t value, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) bytes += static_cast<char>(value >> 8 * i);
  };
  put(version, 4);
  for (const Entry& entry : list) {
    put(entry.tag, 2);
    put(entry.permissions, 2);
    if (entry.tag == format::kAclUser || entry.tag == format::kAclGroup) put(entry.id, 4);
  }
  return bytes;
}

int verdict(uint32_t permissions, uint32_t wanted) {
  return (permissions & wanted) == wanted ? 0 : -EACCES;
}

/// The walk over the list that Linux does, entry by entry.
int walk_list(const Credentials& who, const Case& one, uint32_t wanted) {
  bool found = false;
  for (size_t i = 0; i < one.list.size(); ++i) {
    const Entry& entry = one.list[i];
    bool ends = false;
    if (entry.tag == format::kAclUser) ends = entry.id == who.uid;
    if (entry.tag == format::kAclGroupOwner || entry.tag == format::kAclGroup) {
      const bool owner = entry.tag == format::kAclGroupOwner;
      if (who.in_group(owner ? one.attributes.gid : entry.id)) {
        found = true;
        ends = verdict(entry.permissions, wanted) == 0;
      }
    }
    if (entry.tag == format::kAclOther) {
      return found ? -EACCES : verdict(entry.permissions, wanted);
    }
    for (size_t k = i + 1; ends && k < one.list.size(); ++k) {
      if (one.list[k].tag == format::kAclMask) {
        return verdict(entry.permissions & one.list[k].permissions, wanted);
      }
    }
    if (ends) return verdict(entry.permissions, wanted);
  }
  ADD_FAILURE() << "a list without others";
  return -EIO;
}

int permission(const Credentials& who, const Case& one, bool directory, uint32_t wanted) {
  const uint32_t mode = one.attributes.mode;
  if (who.uid == 0) {
    return (wanted & kMayExecute) == 0 || directory || (mode & 0111) != 0 ? 0 : -EACCES;
  }
  if (who.uid == one.attributes.uid) return verdict(mode >> 6, wanted);
  if (one.listed && !one.list.empty() && (mode & 070) != 0) return walk_list(who, one, wanted);
  return verdict(who.in_group(one.attributes.gid) ? mode >> 3 : mode, wanted);
}

constexpr uint32_t kUsers[] = {1000, 1001, 1002};
constexpr uint32_t kGroups[] = {2000, 2001, 2002};
constexpr uint32_t kCases = 64;

Case random_case(std::mt19937& random) {
  const auto below = [&random](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  Case one{};
  one.attributes.mode = static_cast<uint16_t>(below(8) == 0 ? below(010) : below(01000));
  one.attributes.uid = kUsers[below(3)];
  one.attributes.gid = kGroups[below(3)];
  one.listed = below(8) != 0;
  if (!one.listed || below(16) == 0) return one;  // none, or an empty one
  one.list.push_back({format::kAclOwner, below(8)});
  for (const uint32_t id : kUsers) {
    if (below(3) == 0) one.list.push_back({format::kAclUser, below(8), id});
  }
  one.list.push_back({format::kAclGroupOwner, below(8)});
  for (const uint32_t id : kGroups) {
    if (below(3) == 0) one.list.push_back({format::kAclGroup, below(8), id});
  }
  if (below(4) != 0) one.list.push_back({format::kAclMask, below(8)});
  one.list.push_back({format::kAclOther, below(8)});
  return one;
}

/// For case i: the file /f<i>, the directory /d<i> with a file x in it, and /l<i>, a link to that.
struct SharedLists {
  SharedLists() : image([this](image::ImageBuilder& builder) { fill(builder); }) {}

  std::vector<Case> cases;
  TestImage image;  // last: making it needs the others

 private:
  static std::vector<image::Xattr> xattrs_of(const Case& one, uint32_t index) {
    std::vector<image::Xattr> xattrs;
    // Lists in the inode, in the xattr node, and astride.
    if (index % 4 != 0) xattrs.push_back({format::kXattrUser, "u", std::string(index * 7, 'u')});
    if (one.listed) xattrs.push_back({format::kXattrAclAccess, "", disk_acl(one.list)});
    return xattrs;
  }
  void fill(image::ImageBuilder& builder) {
    std::mt19937 random(20261122);
    const auto must = [](const image::Status& status) { TestImage::must(status); };
    for (uint32_t i = 0; i < kCases; ++i) {
      const Case one = random_case(random);
      cases.push_back(one);
      const std::string number = std::to_string(i);
      const std::string name = "f" + number;
      image::FileSpec file;
      file.name = name;
      file.size_bytes = 100;
      file.attributes = one.attributes;
      file.inline_xattr = i % 2 == 0;
      file.xattrs = xattrs_of(one, i);
      must(builder.add_file(builder.root(), file));
      image::Directory directory;
      image::DirectoryOptions options;
      options.xattrs = xattrs_of(one, i);
      must(
          builder.add_directory(builder.root(), "d" + number, one.attributes, options, &directory));
      image::FileSpec inner;
      inner.name = "x";
      must(builder.add_file(directory, inner));
      must(builder.add_symlink(builder.root(), "l" + number, "d" + number + "/x", {}));
    }
  }
};

class AccessListTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  static void SetUpTestSuite() { shared_ = std::make_unique<SharedLists>(); }
  static void TearDownTestSuite() { shared_.reset(); }
  uint32_t width() const { return GetParam(); }

  static std::unique_ptr<SharedLists> shared_;
};
std::unique_ptr<SharedLists> AccessListTest::shared_;
GOFS_AT_BOTH_WIDTHS(AccessListTest);

TEST_P(AccessListTest, decides_as_linux_does) {
  const Credentials users[] = {who(0, 0),
                               who(1000, 1),
                               who(1001, 2000),
                               who(1002, 2002),
                               who(7, 8),
                               who(7, 2001),
                               who(7, 2000, {2001, 2002}),
                               who(1001, 8, {2002})};
  uint32_t refused = 0;
  uint32_t granted = 0;
  for (const Credentials& user : users) {
    VolumeRigOptions options;
    options.filesystem.credentials = user;
    VolumeRig rig(shared_->image, options);
    rig.mount_ready(width());
    run_alone(width(), [&](const simt::Warp& warp) {
      Filesystem& fs = rig.fs();
      for (uint32_t i = 0; i < kCases; i += width() == 1 ? 1 : 3) {  // a team takes its time
        const Case& one = shared_->cases[i];
        const std::string number = std::to_string(i);
        const std::string file = "/f" + number;
        SCOPED_TRACE(file + " for user " + std::to_string(user.uid));
        for (uint32_t wanted = 0; wanted < 8; ++wanted) {
          int expected = permission(user, one, false, wanted);
          if (warp.thread_rank() == 0) ++(expected == 0 ? granted : refused);
          // Linux asks the mount before the file.
          if ((wanted & kMayWrite) != 0) expected = -EROFS;
          EXPECT_EQ(access(warp, fs, file.c_str(), wanted), expected) << wanted;
        }
        const int reads = permission(user, one, false, kMayRead);
        const int fd = open(warp, fs, file.c_str(), kOpenReadOnly);
        EXPECT_EQ(fd < 0 ? fd : 0, reads);
        if (fd >= 0) {
          EXPECT_EQ(close(warp, fs, fd), 0);
        }
        const int64_t value =
            getxattr(warp, fs, file.c_str(), LastLink::kFollow, "user.u", nullptr, 0);
        EXPECT_EQ(value, reads < 0 ? reads : i % 4 == 0 ? -ENODATA : int64_t{i} * 7);

        const int searches = permission(user, one, true, kMayExecute);
        f2fs::Inode inode{};
        for (const std::string& path : {"/d" + number + "/x", "/l" + number}) {
          EXPECT_EQ(resolve(warp, fs, path.c_str(), LastLink::kFollow, inode), searches) << path;
        }
        const int lists = permission(user, one, true, kMayRead);
        const int directory = opendir(warp, fs, ("/d" + number).c_str());
        EXPECT_EQ(directory < 0 ? directory : 0, lists);
        if (directory >= 0) {
          EXPECT_EQ(close(warp, fs, directory), 0);
        }
      }
    });
    EXPECT_EQ(f2fs::count_findings(*rig.volume().corruptions), 0u);
  }
  EXPECT_GT(refused, 500u);
  EXPECT_GT(granted, 500u);
}

TEST_P(AccessListTest, a_batch_asks_for_each_of_its_files) {
  const Credentials user = who(1001, 8, {2002});
  VolumeRigOptions options;
  options.filesystem.credentials = user;
  VolumeRig rig(shared_->image, options);
  rig.mount_ready(width());
  std::vector<std::string> names;
  std::vector<const char*> pointers;
  for (uint32_t i = 0; i < kCases; ++i) names.push_back("f" + std::to_string(i));
  for (const std::string& name : names) pointers.push_back(name.c_str());
  run_alone(width(), [&](const simt::Warp& warp) {
    Filesystem& fs = rig.fs();
    const int bd = begin_batch(warp, fs, *fs.batches, "/", kCases);
    ASSERT_GE(bd, 0);
    Batch& batch = fs.batches->batches[bd];
    find_batch(warp, fs, *fs.batches, batch, pointers.data(), 0, 1);
    warp.sync();
    load_batch(warp, fs, *fs.batches, batch, 0, 1);
    warp.sync();
    for (uint32_t i = 0; i < kCases; ++i) {
      EXPECT_EQ(fs.batches->files[batch.first + i].error,
                permission(user, shared_->cases[i], false, kMayRead))
          << names[i];
    }
    warp.sync();
    EXPECT_EQ(end_batch(warp, *fs.batches, bd), 0);
  });
}

TEST_P(AccessListTest, lists_that_cannot_be_are_damage_for_whoever_must_ask_them) {
  const std::vector<Entry> sound = {
      {format::kAclOwner, 7}, {format::kAclGroupOwner, 7}, {format::kAclOther, 7}};
  const std::vector<Entry> without_others = {{format::kAclOwner, 7}, {format::kAclGroupOwner, 7}};
  const std::vector<Entry> unknown = {{3, 7}, {format::kAclOther, 7}};
  const std::string lists[] = {disk_acl(sound, 2), disk_acl(without_others), disk_acl(unknown),
                               disk_acl(sound) + "xy"};
  TestImage image([&](image::ImageBuilder& builder) {
    for (uint32_t i = 0; i < std::size(lists); ++i) {
      const std::string name = std::to_string(i);
      image::FileSpec file;
      file.name = name;
      file.attributes.mode = 0777;
      file.attributes.uid = 1000;
      file.inline_xattr = true;
      file.xattrs = {{format::kXattrAclAccess, "", lists[i]}};
      TestImage::must(builder.add_file(builder.root(), file));
    }
  });
  for (const uint32_t uid : {0u, 1000u, 7u}) {
    VolumeRigOptions options;
    options.filesystem.credentials = who(uid, 7);
    VolumeRig rig(image, options);
    rig.mount_ready(width());
    for (uint32_t i = 0; i < std::size(lists); ++i) {
      const std::string path = "/" + std::to_string(i);
      run_alone(width(), [&](const simt::Warp& warp) {
        EXPECT_EQ(access(warp, rig.fs(), path.c_str(), kMayRead), uid == 7 ? -EUCLEAN : 0) << path;
      });
      EXPECT_EQ(f2fs::count_findings(*rig.volume().corruptions), uid == 7 ? i + 1 : 0u);
    }
  }
}

TEST_P(AccessListTest, room_that_was_never_used_is_no_attribute) {
  TestImage image([&](image::ImageBuilder& builder) {
    image::FileSpec file;
    file.inline_xattr = true;
    file.name = "unused";
    TestImage::must(builder.add_file(builder.root(), file));
    file.name = "used";
    file.xattrs = {{format::kXattrUser, "u", ""}};
    TestImage::must(builder.add_file(builder.root(), file));
  });
  VolumeRig rig(image);
  rig.mount_ready(width());
  run_alone(width(), [&](const simt::Warp& warp) {
    f2fs::Inode inode{};
    EXPECT_EQ(resolve(warp, rig.fs(), "/unused", LastLink::kFollow, inode), 0);
    EXPECT_FALSE(f2fs::may_have_xattrs(inode));
    EXPECT_EQ(resolve(warp, rig.fs(), "/used", LastLink::kFollow, inode), 0);
    EXPECT_TRUE(f2fs::may_have_xattrs(inode));
  });
}

// Who follows a link into a directory with a list needs three spare blocks, and takes them at once:
// with one or two held by each none would get on.
TEST_P(AccessListTest, lists_behind_links_are_asked_with_few_spare_blocks) {
  const Credentials user = who(1001, 8, {2002});
  VolumeRigOptions options;
  options.filesystem.credentials = user;
  options.filesystem.pool_pages = 32;
  options.filesystem.path_entries = 1;
  options.filesystem.dentry_entries = 1024;
  options.ssd.model.read_latency_ns = 1'000'000;  // all are under way at the same time
  VolumeRig rig(shared_->image, options);
  rig.mount_ready();
  std::atomic<uint32_t> wrong{0};
  run_crowd({width() == 1 ? 40u : 6u, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < 8; ++turn) {
      const uint32_t i = (index * 5 + turn) % kCases;
      f2fs::Inode inode{};
      const int found =
          resolve(warp, rig.fs(), ("/l" + std::to_string(i)).c_str(), LastLink::kFollow, inode);
      if (found != permission(user, shared_->cases[i], true, kMayExecute)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0u);
  for (uint32_t i = 0; i < rig.fs().pool.count; ++i) EXPECT_EQ(rig.fs().pool.locks[i], 0u);
}

}  // namespace
}  // namespace gofs::vfs
