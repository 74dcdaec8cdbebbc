// SPDX-License-Identifier: Apache-2.0
//
// chmod, chown, utimens and extended attributes through paths and descriptors: who may do what,
// what else changes with it, and that it is there after a checkpoint and a new mount.
#include "vfs/change_attributes.h"

#include "vfs/set_xattr.h"
#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint32_t kOwner = 7;
constexpr uint32_t kGroup = 70;

/// An access list of the disk's form: user 9 r--, mask rw-.
std::string access_list() {
  return std::string(
      "\1\0\0\0"
      "\1\0\6\0"
      "\2\0\4\0\x9\0\0\0"
      "\4\0\4\0"
      "\x10\0\6\0"
      "\x20\0\0\0",
      28);
}

class ChangeAttributesTest : public WritingVfsTest {
 protected:
  ChangeAttributesTest()
      : WritingVfsTest([](image::ImageBuilder& builder) {
          const auto add = [&](const char* name, uint16_t mode, bool listed) {
            image::FileSpec spec;
            spec.name = name;
            spec.attributes = {.mode = mode, .uid = kOwner, .gid = kGroup};
            spec.inline_xattr = true;
            if (listed) spec.xattrs = {{format::kXattrAclAccess, "", access_list()}};
            TestImage::must(builder.add_file(builder.root(), spec));
          };
          add("f", 0644, false);
          add("open", 0666, false);
          add("run", 06755, false);
          add("listed", 0660, true);
          image::FileSpec spec;
          spec.name = "inside";
          spec.size_bytes = 100;
          spec.inline_data = true;
          spec.attributes = {.mode = 06777, .uid = kOwner, .gid = kGroup};
          TestImage::must(builder.add_file(builder.root(), spec));
          TestImage::must(builder.add_symlink(builder.root(), "link", "f", {}));
        }) {}
  uint32_t mode_of(const char* path) {
    return stat_of_path(path).mode & format::kModePermissionMask;
  }
  int64_t chmod_as(const Credentials& user, const char* path, uint32_t mode) {
    return as(user, [&](const simt::Warp& warp) { return chmod(warp, fs(), path, mode); });
  }
  int64_t chown_as(const Credentials& user, const char* path, uint32_t uid, uint32_t gid) {
    return as(user, [&](const simt::Warp& warp) {
      return chown(warp, fs(), path, LastLink::kFollow, uid, gid);
    });
  }
  int64_t utimens_as(const Credentials& user, const char* path, const f2fs::TimeStamp& accessed,
                     const f2fs::TimeStamp& modified) {
    return as(user, [&](const simt::Warp& warp) {
      return utimens(warp, fs(), path, LastLink::kFollow, accessed, modified);
    });
  }
  int64_t setxattr_as(const Credentials& user, const char* path, const char* name,
                      const std::string& value, uint32_t flags = 0) {
    return as(user, [&](const simt::Warp& warp) {
      return setxattr(warp, fs(), path, LastLink::kFollow, name, value.data(), value.size(), flags);
    });
  }
  int64_t removexattr_as(const Credentials& user, const char* path, const char* name) {
    return as(user, [&](const simt::Warp& warp) {
      return removexattr(warp, fs(), path, LastLink::kFollow, name);
    });
  }
  std::string value_of(const char* path, const char* name) {
    std::string value(4096, '\0');
    const int64_t bytes = as(who(0, 0), [&](const simt::Warp& warp) {
      return getxattr(warp, fs(), path, LastLink::kFollow, name, value.data(), value.size());
    });
    if (bytes < 0) return "error " + std::to_string(bytes);
    value.resize(static_cast<size_t>(bytes));
    return value;
  }
};
GOFS_AT_BOTH_WIDTHS(ChangeAttributesTest);

TEST_P(ChangeAttributesTest, a_volume_mounted_for_reading_is_not_changed) {
  fs().writer = nullptr;
  EXPECT_EQ(chmod_as(who(0, 0), "/f", 0600), -EROFS);
  EXPECT_EQ(chown_as(who(0, 0), "/f", 1, 1), -EROFS);
  EXPECT_EQ(utimens_as(who(0, 0), "/f", {0, kTimeNow}, {0, kTimeNow}), -EROFS);
  EXPECT_EQ(setxattr_as(who(0, 0), "/f", "user.a", "b"), -EROFS);
  EXPECT_EQ(removexattr_as(who(0, 0), "/f", "user.a"), -EROFS);
  EXPECT_EQ(chmod_as(who(0, 0), "/none", 0600), -ENOENT);
  EXPECT_EQ(mode_of("/f"), 0644u);
}

TEST_P(ChangeAttributesTest, the_owner_changes_the_mode_and_others_do_not) {
  const uint32_t mode_of_link = mode_of("/link");
  EXPECT_EQ(chmod_as(who(8, kGroup), "/f", 0600), -EPERM);
  EXPECT_EQ(chmod_as(who(kOwner, 1), "/f", 02751), 0);
  EXPECT_EQ(mode_of("/f"), 0751u) << "of a group that is not his";
  EXPECT_EQ(chmod_as(who(kOwner, 1, {kGroup}), "/link", 02751), 0);
  EXPECT_EQ(mode_of("/f"), 02751u);
  EXPECT_EQ(mode_of("/link"), mode_of_link);
  EXPECT_EQ(chmod_as(who(0, 0), "/f", 0107777), 0);
  EXPECT_EQ(stat_of_path("/f").mode, uint32_t{format::kModeRegular} | 07777u);
  EXPECT_EQ(chmod_as(who(0, 0), "/f/below", 0600), -ENOTDIR);
  EXPECT_EQ(stat_of_path("/f").changed.seconds, 2'000'000'000);
  mount_again();
  EXPECT_EQ(mode_of("/f"), 07777u);
}

TEST_P(ChangeAttributesTest, an_access_list_follows_the_mode) {
  EXPECT_EQ(chmod_as(who(kOwner, kGroup), "/listed", 0741), 0);
  EXPECT_EQ(mode_of("/listed"), 0741u);
  mount_again();
  const std::string list = value_of("/listed", "system.posix_acl_access");
  ASSERT_EQ(list.size(), 4u + 5 * 8);
  const auto permissions = [&](size_t entry) { return list[4 + 8 * entry + 2]; };
  EXPECT_EQ(permissions(0), 7);  // owner
  EXPECT_EQ(permissions(1), 4);  // user 9
  EXPECT_EQ(permissions(2), 4);  // the owning group, for which the mask stands
  EXPECT_EQ(permissions(3), 4);  // mask
  EXPECT_EQ(permissions(4), 1);  // others
}

TEST_P(ChangeAttributesTest, what_a_path_led_to_is_asked_again_after_a_change) {
  const auto read_by_stranger = [&] {
    return as(who(8, 8), [&](const simt::Warp& warp) {
      const int fd = open(warp, fs(), "/f", kOpenReadOnly);
      return fd < 0 ? fd : close(warp, fs(), fd);
    });
  };
  EXPECT_EQ(read_by_stranger(), 0);
  EXPECT_EQ(chmod_as(who(0, 0), "/", 0700), 0);
  EXPECT_EQ(read_by_stranger(), -EACCES);
  EXPECT_EQ(chown_as(who(0, 0), "/", 8, 8), 0);
  EXPECT_EQ(read_by_stranger(), 0);
  EXPECT_EQ(chown_as(who(0, 0), "/", 9, 9), 0);
  EXPECT_EQ(read_by_stranger(), -EACCES);
}

TEST_P(ChangeAttributesTest, owners_give_files_to_their_own_groups_only) {
  EXPECT_EQ(chown_as(who(kOwner, kGroup), "/f", 8, kKeepId), -EPERM);
  EXPECT_EQ(chown_as(who(kOwner, kGroup), "/f", kKeepId, 71), -EPERM);
  EXPECT_EQ(chown_as(who(8, 71), "/f", kKeepId, 71), -EPERM);
  EXPECT_EQ(chown_as(who(kOwner, kGroup, {71}), "/f", kOwner, 71), 0);
  EXPECT_EQ(stat_of_path("/f").gid, 71u);
  EXPECT_EQ(chown_as(who(0, 0), "/link", 9, 90), 0);
  EXPECT_EQ(stat_of_path("/f").uid, 9u);
  EXPECT_EQ(stat_of_path("/link").uid, 0u);
  as(who(0, 0), [&](const simt::Warp& warp) {
    EXPECT_EQ(chown(warp, fs(), "/link", LastLink::kKeep, 5, kKeepId), 0);
    return 0;
  });
  mount_again();
  EXPECT_EQ(stat_of_path("/link").uid, 5u);
  EXPECT_EQ(stat_of_path("/f").gid, 90u);
}

TEST_P(ChangeAttributesTest, a_change_of_owner_clears_the_set_id_bits) {
  EXPECT_EQ(setxattr_as(who(0, 0), "/run", "security.capability",
                        std::string("\1\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20)),
            0);
  EXPECT_EQ(value_of("/run", "security.capability").size(), 20u);
  EXPECT_EQ(chown_as(who(0, 0), "/run", 8, kKeepId), 0);
  EXPECT_EQ(mode_of("/run"), 0755u);
  EXPECT_EQ(value_of("/run", "security.capability"), "error " + std::to_string(-ENODATA));
}

TEST_P(ChangeAttributesTest, times_are_set_by_owners_and_touched_by_writers) {
  const f2fs::TimeStamp now{0, kTimeNow};
  const f2fs::TimeStamp keep{0, kTimeOmit};
  EXPECT_EQ(utimens_as(who(kOwner, 1), "/f", {-5, 6}, {7, 999'999'999}), 0);
  EXPECT_EQ(stat_of_path("/f").accessed.seconds, -5);
  EXPECT_EQ(stat_of_path("/f").accessed.nanoseconds, 6u);
  EXPECT_EQ(stat_of_path("/f").modified.nanoseconds, 999'999'999u);
  EXPECT_EQ(utimens_as(who(kOwner, 1), "/f", keep, {8, 0}), 0);
  EXPECT_EQ(stat_of_path("/f").accessed.seconds, -5);
  EXPECT_EQ(stat_of_path("/f").modified.seconds, 8);
  EXPECT_EQ(utimens_as(who(kOwner, 1), "/f", {1, 1'000'000'000}, {8, 0}), -EINVAL);
  EXPECT_EQ(utimens_as(who(8, 8), "/f", now, now), -EACCES);
  EXPECT_EQ(utimens_as(who(8, 8), "/f", keep, keep), 0);
  EXPECT_EQ(utimens_as(who(8, 8), "/open", now, keep), -EPERM);
  EXPECT_EQ(utimens_as(who(8, 8), "/open", now, now), 0);
  EXPECT_EQ(stat_of_path("/open").accessed.seconds, 2'000'000'000);
  mount_again();
  EXPECT_EQ(stat_of_path("/open").modified.seconds, 2'000'000'000);
  EXPECT_EQ(stat_of_path("/f").accessed.seconds, -5);
}

TEST_P(ChangeAttributesTest, extended_attributes_have_rules_by_their_names) {
  EXPECT_EQ(setxattr_as(who(8, 8), "/f", "user.a", "1"), -EACCES);
  EXPECT_EQ(setxattr_as(who(8, 8), "/open", "user.a", "1"), 0);
  EXPECT_EQ(setxattr_as(who(8, 8), "/open", "user.a", "2", kXattrCreate), -EEXIST);
  EXPECT_EQ(setxattr_as(who(8, 8), "/open", "user.b", "2", kXattrReplace), -ENODATA);
  EXPECT_EQ(setxattr_as(who(8, 8), "/open", "user.b", "2", 4), -EINVAL);
  constexpr uint32_t kBoth = kXattrCreate | kXattrReplace;
  EXPECT_EQ(setxattr_as(who(8, 8), "/open", "user.a", "2", kBoth), -EEXIST);
  EXPECT_EQ(setxattr_as(who(8, 8), "/open", "user.b", "2", kBoth), -ENODATA);
  EXPECT_EQ(setxattr_as(who(8, 8), "/open", "user.", "2"), -EINVAL);
  EXPECT_EQ(setxattr_as(who(8, 8), "/open", "other.b", "2"), -EOPNOTSUPP);
  EXPECT_EQ(setxattr_as(who(8, 8), "/open", "", "2"), -ERANGE);
  EXPECT_EQ(setxattr_as(who(8, 8), "/open", "trusted.a", "1"), -EPERM);
  EXPECT_EQ(setxattr_as(who(8, 8), "/open", "security.a", "1"), -EPERM);
  EXPECT_EQ(setxattr_as(who(0, 0), "/open", "trusted.a", std::string(3000, 't')), 0);
  EXPECT_EQ(setxattr_as(who(0, 0), "/open", "security.a", ""), 0);
  EXPECT_EQ(setxattr_as(who(0, 0), "/open", "user.big", std::string(5000, 'b')), -E2BIG);
  EXPECT_EQ(setxattr_as(who(0, 0), "/open", "user.full", std::string(3000, 'b')), -ENOSPC);
  EXPECT_EQ(setxattr_as(who(0, 0), "/open", "system.posix_acl_access", "1"), -EINVAL);
  EXPECT_EQ(removexattr_as(who(8, 8), "/open", "user.none"), -ENODATA);
  mount_again();
  EXPECT_EQ(value_of("/open", "user.a"), "1");
  EXPECT_EQ(value_of("/open", "trusted.a"), std::string(3000, 't'));
  EXPECT_EQ(value_of("/open", "security.a"), "");
  EXPECT_EQ(removexattr_as(who(0, 0), "/open", "trusted.a"), 0);
  EXPECT_EQ(removexattr_as(who(8, 8), "/open", "user.a"), 0);
  mount_again();
  EXPECT_EQ(value_of("/open", "user.a"), "error " + std::to_string(-ENODATA));
}

TEST_P(ChangeAttributesTest, set_id_bits_go_with_a_new_size_and_stay_without_room_for_it) {
  const auto truncate_as = [&](const Credentials& user) {
    return as(user,
              [&](const simt::Warp& warp) { return truncate(warp, fs(), "/inside", 100'000); });
  };
  const uint64_t before = fs().volume.user_block_count;
  fs().volume.user_block_count = fs().volume.valid_block_count;
  EXPECT_EQ(truncate_as(who(8, 8)), -ENOSPC) << "its contents have to leave the inode";
  EXPECT_EQ(mode_of("/inside"), 06777u);
  fs().volume.user_block_count = before;
  EXPECT_EQ(truncate_as(who(0, 0)), 0);
  EXPECT_EQ(mode_of("/inside"), 06777u);
  EXPECT_EQ(truncate_as(who(8, 8)), 0);
  EXPECT_EQ(mode_of("/inside"), 0777u);
  mount_again();
  EXPECT_EQ(mode_of("/inside"), 0777u);
}

TEST_P(ChangeAttributesTest, descriptors_do_as_paths_do) {
  char value[4] = {};
  as(who(0, 0), [&](const simt::Warp& warp) {
    const int fd = open(warp, fs(), "/f", kOpenReadOnly);
    EXPECT_EQ(fchmod(warp, fs(), fd, 0604), 0);
    EXPECT_EQ(fchown(warp, fs(), fd, 3, 4), 0);
    EXPECT_EQ(futimens(warp, fs(), fd, {1, 2}, {3, 4}), 0);
    EXPECT_EQ(fsetxattr(warp, fs(), fd, "user.x", "yz", 2, 0), 0);
    EXPECT_EQ(fgetxattr(warp, fs(), fd, "user.x", value, sizeof(value)), 2);
    EXPECT_EQ(fremovexattr(warp, fs(), fd, "user.x"), 0);
    EXPECT_EQ(fgetxattr(warp, fs(), fd, "user.x", value, sizeof(value)), -ENODATA);
    Stat stat{};
    EXPECT_EQ(fstat(warp, fs(), fd, stat), 0);
    EXPECT_EQ(stat.mode & format::kModePermissionMask, 0604u);
    EXPECT_EQ(stat.uid, 3u);
    EXPECT_EQ(stat.modified.seconds, 3);
    EXPECT_EQ(close(warp, fs(), fd), 0);
    EXPECT_EQ(fchmod(warp, fs(), fd, 0604), -EBADF);
    const int path = open(warp, fs(), "/f", kOpenPath);
    EXPECT_EQ(fchmod(warp, fs(), path, 0604), -EBADF);
    EXPECT_EQ(close(warp, fs(), path), 0);
    return 0;
  });
}

// Readers of attributes meanwhile see a value that was set, whole, wherever it lies.
TEST_P(ChangeAttributesTest, attributes_are_read_whole_while_they_change) {
  constexpr uint32_t kRounds = 60;
  constexpr uint32_t kWarps = 3;
  fs().credentials = who(0, 0);
  std::vector<std::string> buffers(kWarps, std::string(4096, '\0'));
  // Longer and shorter than the inode's room by turns.
  const auto value_of_round = [](uint32_t round) {
    return std::string(round % 2 == 0 ? 3000 : 40, static_cast<char>('a' + round % 26));
  };
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t round = 0; round < kRounds; ++round) {
      if (index == 0) {
        const std::string value = value_of_round(round);
        EXPECT_EQ(
            setxattr(warp, fs(), "/f", LastLink::kFollow, "user.v", value.data(), value.size(), 0),
            0);
        continue;
      }
      std::string& mine = buffers[index];
      const int64_t bytes =
          getxattr(warp, fs(), "/f", LastLink::kFollow, "user.v", mine.data(), mine.size());
      warp.sync();
      if (bytes != -ENODATA && warp.thread_rank() == 0) {
        const std::string got = bytes < 0 ? "" : mine.substr(0, static_cast<size_t>(bytes));
        bool set = false;
        for (uint32_t k = 0; k < kRounds && !set; ++k) set = got == value_of_round(k);
        EXPECT_TRUE(set) << bytes;
      }
      warp.sync();
    }
  });
  std::vector<f2fs::Corruption> findings(f2fs::kCorruptionsKept);
  EXPECT_EQ(f2fs::take_findings(*fs().volume.corruptions, findings.data()), 0u);
  mount_again();
  EXPECT_EQ(value_of("/f", "user.v"), value_of_round(kRounds - 1));
}

}  // namespace
}  // namespace gofs::vfs
