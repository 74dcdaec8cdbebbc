// SPDX-License-Identifier: Apache-2.0
//
// Access lists that are set, and those that new files and directories have from the default list
// of their directory: what they say, what the mode says then, and what is refused.
#include "vfs/edit_access_list.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "vfs/batch_create.h"
#include "vfs/changes_for_test.hpp"
#include "vfs/set_xattr.h"

namespace gofs::vfs {
namespace {

constexpr const char* kAccess = "system.posix_acl_access";
constexpr const char* kDefault = "system.posix_acl_default";

struct AclOf {
  uint32_t tag;
  uint32_t permissions;
  uint32_t id = 0xFFFFFFFF;
};

/// In the form of the system calls.
std::string given_list(const std::vector<AclOf>& list, uint32_t version = 2) {
  std::string bytes;
  const auto put = [&bytes](uint32_t value, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) bytes += static_cast<char>(value >> 8 * i);
  };
  put(version, 4);
  for (const AclOf& entry : list) {
    put(entry.tag, 2);
    put(entry.permissions, 2);
    put(entry.id, 4);
  }
  return bytes;
}

class EditAccessListTest : public ChangesTest {
 protected:
  EditAccessListTest()
      : ChangesTest([](image::ImageBuilder& builder) {
          image::FileSpec spec;
          spec.name = "f";
          spec.attributes = {.mode = 0640, .uid = 7, .gid = 70};
          spec.inline_xattr = true;
          TestImage::must(builder.add_file(builder.root(), spec));
          TestImage::must(builder.add_directory(builder.root(), "d",
                                                {.mode = 0777, .uid = 7, .gid = 70}, {}, nullptr));
          TestImage::must(builder.add_symlink(builder.root(), "link", "f", {}));
        }) {}
  int set(const Credentials& user, const std::string& path, const char* name,
          const std::string& value, LastLink last = LastLink::kFollow) {
    fs().credentials = user;
    const auto error = static_cast<int>(alone([&](const simt::Warp& warp) {
      return setxattr(warp, fs(), path.c_str(), last, name, value.data(), value.size(), 0);
    }));
    fs().credentials = who(0, 0);
    return error;
  }
  /// The value, or "-ERRNO".
  std::string get(const std::string& path, const char* name) {
    std::string value(kXattrListBytesMax, '\0');
    const int64_t got = alone([&](const simt::Warp& warp) {
      return getxattr(warp, fs(), path.c_str(), LastLink::kKeep, name, value.data(), value.size());
    });
    if (got < 0) return std::to_string(got);
    value.resize(static_cast<size_t>(got));
    return value;
  }
  int64_t access_as(const Credentials& user, const std::string& path, uint32_t wanted) {
    fs().credentials = user;
    const int64_t error =
        alone([&](const simt::Warp& warp) { return access(warp, fs(), path.c_str(), wanted); });
    fs().credentials = who(0, 0);
    return error;
  }
  uint32_t mode_of(const std::string& path) {
    return stat_of_path(path).mode & format::kModePermissionMask;
  }
  int make_directory(const std::string& path, uint32_t mode) {
    return static_cast<int>(
        alone([&](const simt::Warp& warp) { return mkdir(warp, fs(), path.c_str(), mode); }));
  }
  void make_empty(const std::string& path, uint32_t mode) {
    EXPECT_EQ(close_file(open_file(path, kOpenCreate | kOpenWriteOnly, mode)), 0);
  }
  const std::string none_ = std::to_string(-ENODATA);
};
GOFS_AT_BOTH_WIDTHS(EditAccessListTest);

TEST_P(EditAccessListTest, a_list_and_the_mode_say_the_same) {
  const std::string list = given_list({{1, 7}, {2, 6, 100}, {4, 5}, {8, 4, 200}, {16, 6}, {32, 1}});
  EXPECT_EQ(set(who(7, 70), "/f", kAccess, list), 0);
  EXPECT_EQ(get("/f", kAccess), list);
  EXPECT_EQ(mode_of("/f"), 0761u);
  EXPECT_EQ(access_as(who(100, 1), "/f", kMayRead | kMayWrite), 0);
  EXPECT_EQ(access_as(who(101, 200), "/f", kMayRead), 0);
  EXPECT_EQ(access_as(who(101, 200), "/f", kMayWrite), -EACCES);
  mount_again();
  EXPECT_EQ(get("/f", kAccess), list);
  // One that says no more than the mode is not kept.
  EXPECT_EQ(set(who(7, 70), "/f", kAccess, given_list({{1, 6}, {4, 4}, {32, 0}})), 0);
  EXPECT_EQ(get("/f", kAccess), none_);
  EXPECT_EQ(mode_of("/f"), 0640u);
  EXPECT_EQ(set(who(7, 70), "/f", kAccess, list), 0);
  EXPECT_EQ(set(who(7, 70), "/f", kAccess, given_list({})), 0) << "none";
  EXPECT_EQ(get("/f", kAccess), none_);
  EXPECT_EQ(mode_of("/f"), 0761u) << "stays as it is";
  EXPECT_EQ(set(who(7, 70), "/f", kAccess, list), 0);
  for (uint32_t again = 0; again < 2; ++again) {
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                return removexattr(warp, fs(), "/f", LastLink::kFollow, kAccess);
              }),
              0);
    EXPECT_EQ(get("/f", kAccess), none_);
  }
  mount_again();
}

TEST_P(EditAccessListTest, what_is_asked_first_answers) {
  const Credentials stranger = who(8, 80);
  const std::string sound = given_list({{1, 7}, {4, 7}, {32, 7}});
  const std::string wrong = given_list({{1, 7}, {32, 7}});
  const std::string no_list = sound + "x";
  // Whether it can be taken apart, the kind of file, whose it is, whether it is a list.
  EXPECT_EQ(set(stranger, "/f", kDefault, no_list), -EINVAL);
  EXPECT_EQ(set(stranger, "/f", kDefault, wrong), -EACCES);
  EXPECT_EQ(set(stranger, "/f", kDefault, ""), 0);
  EXPECT_EQ(set(stranger, "/f", kAccess, wrong), -EPERM);
  EXPECT_EQ(set(stranger, "/d", kDefault, wrong), -EPERM);
  EXPECT_EQ(set(stranger, "/d", kDefault, ""), -EPERM);
  EXPECT_EQ(set(stranger, "/link", kDefault, wrong, LastLink::kKeep), -EOPNOTSUPP);
  EXPECT_EQ(set(who(7, 70), "/d", kDefault, wrong), -EINVAL);
}

TEST_P(EditAccessListTest, a_list_that_was_not_there_goes_and_the_inode_changes) {
  const auto changed_by = [&](const char* path, const char* name) {
    const f2fs::TimeStamp before = stat_of_path(path).changed;
    fs().clock.lines[0].realtime_ns += 1'000'000'000;
    EXPECT_EQ(set(who(0, 0), path, name, ""), 0);
    return stat_of_path(path).changed.seconds - before.seconds;
  };
  EXPECT_GE(changed_by("/d", kDefault), 1);
  EXPECT_GE(changed_by("/d", kAccess), 1);
  EXPECT_GE(changed_by("/f", kAccess), 1);
  const f2fs::TimeStamp before = stat_of_path("/f").changed;
  fs().clock.lines[0].realtime_ns += 1'000'000'000;
  EXPECT_EQ(set(who(0, 0), "/f", kDefault, ""), 0);
  EXPECT_EQ(stat_of_path("/f").changed.seconds, before.seconds) << "a file has none";
}

TEST_P(EditAccessListTest, what_contradicts_itself_is_refused) {
  const Credentials owner = who(7, 70);
  const std::vector<std::vector<AclOf>> wrong = {
      {{1, 7}},
      {{1, 7}, {4, 7}},
      {{4, 7}, {1, 7}, {32, 7}},
      {{1, 7}, {1, 7}, {4, 7}, {32, 7}},
      {{1, 8}, {4, 7}, {32, 7}},
      {{1, 7}, {2, 7, 5}, {4, 7}, {32, 7}},
      {{1, 7}, {4, 7}, {8, 7, 5}, {32, 7}},
      {{1, 7}, {2, 7}, {4, 7}, {16, 7}, {32, 7}},
      {{1, 7}, {4, 7}, {2, 7, 5}, {16, 7}, {32, 7}},
      {{1, 7}, {4, 7}, {16, 7}, {16, 7}, {32, 7}},
      {{1, 7}, {4, 7}, {32, 7}, {32, 7}},
      {{1, 7}, {4, 7}, {3, 7}, {32, 7}},
  };
  for (const auto& list : wrong) {
    EXPECT_EQ(set(owner, "/f", kAccess, given_list(list)), -EINVAL) << list.size();
  }
  const std::string sound = given_list({{1, 7}, {4, 7}, {32, 7}});
  EXPECT_EQ(set(owner, "/f", kAccess, sound + "x"), -EINVAL);
  EXPECT_EQ(set(owner, "/f", kAccess, sound.substr(0, 3)), -EINVAL);
  EXPECT_EQ(set(owner, "/f", kAccess, given_list({{1, 7}, {4, 7}, {32, 7}}, 1)), -EOPNOTSUPP);
  EXPECT_EQ(set(owner, "/f", kDefault, sound), -EACCES);
  EXPECT_EQ(set(owner, "/f", kDefault, given_list({})), 0);
  EXPECT_EQ(set(who(8, 70), "/f", kAccess, sound), -EPERM);
  EXPECT_EQ(set(who(0, 0), "/link", kAccess, sound, LastLink::kKeep), -EOPNOTSUPP);
  std::vector<AclOf> many = {{1, 7}};
  for (uint32_t i = 0; i < 600; ++i) many.push_back({2, 7, i});
  many.insert(many.end(), {{4, 7}, {16, 7}, {32, 7}});
  EXPECT_EQ(set(owner, "/f", kAccess, given_list(many)), -ENOSPC);
  EXPECT_EQ(get("/f", kAccess), none_);
  EXPECT_EQ(mode_of("/f"), 0640u);
  mount_again();
}

TEST_P(EditAccessListTest, new_files_inherit_the_default_list_of_their_directory) {
  const std::string list = given_list({{1, 7}, {2, 6, 100}, {4, 5}, {16, 7}, {32, 5}});
  EXPECT_EQ(set(who(7, 70), "/d", kDefault, list), 0);
  EXPECT_EQ(mode_of("/d"), 0777u) << "a default list changes no permissions";
  EXPECT_EQ(make_directory("/d/sub", 0751), 0);
  EXPECT_EQ(get("/d/sub", kDefault), list);
  EXPECT_EQ(get("/d/sub", kAccess), given_list({{1, 7}, {2, 6, 100}, {4, 5}, {16, 5}, {32, 1}}));
  EXPECT_EQ(mode_of("/d/sub"), 0751u);
  make_empty("/d/sub/file", 0666);
  EXPECT_EQ(get("/d/sub/file", kDefault), none_);
  EXPECT_EQ(get("/d/sub/file", kAccess),
            given_list({{1, 6}, {2, 6, 100}, {4, 5}, {16, 6}, {32, 4}}));
  EXPECT_EQ(mode_of("/d/sub/file"), 0664u);
  EXPECT_EQ(access_as(who(100, 1), "/d/sub/file", kMayWrite), -EACCES) << "the directory's mask";
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return symlink(warp, fs(), "x", "/d/soft"); }), 0);
  EXPECT_EQ(get("/d/soft", kAccess), std::to_string(-EOPNOTSUPP));
  // One that says no more than a mode takes its part of it.
  EXPECT_EQ(set(who(7, 70), "/d", kDefault, given_list({{1, 7}, {4, 5}, {32, 0}})), 0);
  make_empty("/d/plain", 04666);
  EXPECT_EQ(get("/d/plain", kAccess), none_);
  EXPECT_EQ(mode_of("/d/plain"), 04640u);
  mount_again();
  EXPECT_EQ(get("/d/sub", kDefault), list);
  EXPECT_EQ(mode_of("/d/sub/file"), 0664u);
}

TEST_P(EditAccessListTest, long_lists_are_inherited_or_nothing_is_made) {
  std::vector<AclOf> entries = {{1, 7}};
  for (uint32_t i = 0; i < 150; ++i) entries.push_back({2, 7, i});
  entries.insert(entries.end(), {{4, 7}, {16, 7}, {32, 0}});
  const std::string list = given_list(entries);
  EXPECT_EQ(set(who(7, 70), "/d", kDefault, list), 0);
  const uint64_t used = fs().volume.valid_block_count;
  EXPECT_EQ(make_directory("/d/sub", 0770), 0);
  EXPECT_EQ(fs().volume.valid_block_count, used + 2) << "an inode and its xattr node";
  EXPECT_EQ(get("/d/sub", kDefault), list);
  EXPECT_EQ(get("/d/sub", kAccess), list);
  const uint64_t before = fs().volume.user_block_count;
  fs().volume.user_block_count = used + 3;
  EXPECT_EQ(make_directory("/d/other", 0770), -ENOSPC);
  EXPECT_EQ(open_file("/d/file", kOpenCreate | kOpenWriteOnly, 0660), -ENOSPC);
  fs().volume.user_block_count = before;
  EXPECT_EQ(fs().volume.valid_block_count, used + 2);
  EXPECT_EQ(stat_of_path("/d").links, 3u);
  mount_again();
  EXPECT_EQ(get("/d/sub", kAccess), list);
}

TEST_P(EditAccessListTest, batches_inherit_too) {
  const std::string list = given_list({{1, 7}, {2, 6, 100}, {4, 5}, {16, 7}, {32, 5}});
  EXPECT_EQ(set(who(7, 70), "/d", kDefault, list), 0);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < 20; ++i) names.push_back("b" + std::to_string(i));
  names.push_back("b3");
  std::vector<const char*> texts;
  for (const std::string& name : names) texts.push_back(name.c_str());
  const std::string bytes(9000, 'b');
  const std::vector<uint64_t> offsets(names.size(), 0);
  const std::vector<uint64_t> sizes(names.size(), bytes.size());
  const BatchCreation creation{"/d",
                               texts.data(),
                               static_cast<uint32_t>(names.size()),
                               0640,
                               reinterpret_cast<const uint8_t*>(bytes.data()),
                               offsets.data(),
                               sizes.data()};
  const auto bd = static_cast<int>(
      alone([&](const simt::Warp& warp) { return begin_creation(warp, fs(), creation); }));
  ASSERT_GE(bd, 0);
  Batch& batch = fs().batches->batches[bd];
  run_crowd({2, width()}, [&](const simt::Warp& warp, uint32_t index) {
    prepare_creation(warp, fs(), batch, index, 2);
  });
  run_crowd({2, width()}, [&](const simt::Warp& warp, uint32_t index) {
    create_batch(warp, fs(), batch, creation, index, 2);
  });
  alone([&](const simt::Warp& warp) {
    end_creation(warp, fs(), batch);
    return 0;
  });
  uint32_t refused = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const int error = fs().batches->files[batch.first + i].error;
    if (error == -EEXIST && (i == 3 || i == 20)) {
      ++refused;
      continue;
    }
    EXPECT_EQ(error, 0);
    EXPECT_EQ(contents("/d/" + names[i]), bytes);
    EXPECT_EQ(get("/d/" + names[i], kAccess),
              given_list({{1, 6}, {2, 6, 100}, {4, 5}, {16, 4}, {32, 0}}));
  }
  EXPECT_EQ(refused, 1u);
  mount_again();
}

}  // namespace
}  // namespace gofs::vfs
