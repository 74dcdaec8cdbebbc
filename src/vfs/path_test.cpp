// SPDX-License-Identifier: Apache-2.0
//
// From paths to inodes: dots, slashes, links of every kind, lengths, permissions for several users.
// Each path is resolved twice, since the second answer comes from the name tables, and must be the
// same.
#include "vfs/path.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/image/reader_for_test.h"
#include "testing/held_command.hpp"
#include "testing/stepped_warp.hpp"
#include "vfs/change_attributes.h"
#include "vfs/rename.h"
#include "vfs/set_xattr.h"
#include "vfs/vfs_for_test.hpp"
#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint32_t kUser = 1000;
constexpr uint32_t kUsersGroup = 2000;

image::Attributes attributes(uint16_t mode, uint32_t uid = 0, uint32_t gid = 0) {
  image::Attributes result;
  result.mode = mode;
  result.uid = uid;
  result.gid = gid;
  return result;
}

/// The tree that all tests walk, and the inos of what is in it.
struct SharedTree {
  SharedTree() : image([this](image::ImageBuilder& builder) { fill(builder); }) {
    const auto target = image.target();
    image::TestReader reader(*target);
    for (const char* path :
         {"/dir", "/dir/sub", "/dir/sub/file", "/dir/empty", "/locked", "/walk", "/list"}) {
      inos[path] = reader.at(path).ino;
    }
    inos["/"] = format::kRootIno;
  }
  const std::string long_name = std::string(255, 'L');
  std::map<std::string, uint32_t> inos;
  TestImage image;  // last: making it needs the others

 private:
  void fill(image::ImageBuilder& builder) {
    const auto must = [](const image::Status& status) { TestImage::must(status); };
    const auto directory = [&](image::Directory parent, const char* name, uint16_t mode,
                               uint32_t uid = 0, uint32_t gid = 0) {
      image::Directory made;
      must(builder.add_directory(parent, name, attributes(mode, uid, gid), {}, &made));
      return made;
    };
    const auto file = [&](image::Directory parent, std::string_view name, uint16_t mode,
                          uint32_t uid = 0, uint32_t gid = 0) {
      image::FileSpec spec;
      spec.name = name;
      spec.size_bytes = 3;
      spec.attributes = attributes(mode, uid, gid);
      must(builder.add_file(parent, spec));
    };
    // Every second link keeps its target in the inode.
    bool in_inode = false;
    const auto link = [&](image::Directory parent, std::string_view name, std::string_view to) {
      in_inode = !in_inode;
      must(builder.add_symlink(parent, name, to, attributes(0777), in_inode));
    };
    const image::Directory root = builder.root();
    const image::Directory dir = directory(root, "dir", 0755);
    const image::Directory sub = directory(dir, "sub", 0755);
    directory(dir, "empty", 0755);
    file(sub, "file", 0644);
    file(sub, long_name, 0644);
    link(dir, "relative", "sub/file");
    link(dir, "relative2", "sub/file");
    link(sub, "up", "../../dir/sub/../sub/./file");
    link(root, "absolute", "/dir/sub");
    link(root, "absolute2", "/dir/sub");
    link(root, "slashes", "//dir///sub//");
    link(root, "to_root", "/");
    link(root, "over_top", "../../../../dir");
    link(root, "dangling", "nowhere/at/all");
    link(root, "self", "self");
    link(root, "ping", "pong");
    link(root, "pong", "ping");
    link(root, "file_as_dir", "dir/sub/file/");
    link(root, "long", std::string(4095, '/').replace(4080, 15, "dir/sub/file///"));
    link(root, "longer", std::string(4090, 'x'));
    // A chain: chain0 leads to the file, chainN over N others.
    link(root, "chain0", "dir/sub/file");
    for (uint32_t i = 1; i <= 41; ++i) {
      link(root, "chain" + std::to_string(i), "chain" + std::to_string(i - 1));
    }
    must(builder.add_special(root, "pipe", format::kModeFifo, {}, attributes(0666)));

    const image::Directory locked = directory(root, "locked", 0700, kUser, kUsersGroup);
    file(locked, "f", 0666);
    link(root, "into_locked", "locked/f");
    const image::Directory walk = directory(root, "walk", 0711, kUser, kUsersGroup);  // no listing
    file(walk, "f", 0604, kUser, kUsersGroup);
    const image::Directory list = directory(root, "list", 0744, kUser, kUsersGroup);  // it cannot
                                                                                      // be searched
    file(list, "f", 0666);
    const image::Directory group = directory(root, "group", 0070, kUser, kUsersGroup);
    file(group, "f", 0040, kUser, kUsersGroup);
    const image::Directory others = directory(root, "others", 0705, kUser, kUsersGroup);
    file(others, "f", 0666);
  }
};

class PathTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  static void SetUpTestSuite() { shared_ = std::make_unique<SharedTree>(); }
  static void TearDownTestSuite() { shared_.reset(); }

  uint32_t width() const { return GetParam(); }
  uint32_t ino(const std::string& path) { return shared_->inos.at(path); }

  void mount(const Credentials& who = {}) {
    VolumeRigOptions options;
    options.filesystem.credentials = who;
    options.ssd.fault_capacity = 2;
    rig_ = std::make_unique<VolumeRig>(shared_->image, options);
    rig_->mount_ready(width());
  }
  VolumeRig& rig() { return *rig_; }

  /// The ino or the errno; of the table and of the tree the same, on all lanes the same.
  int64_t find(const std::string& path, LastLink last = LastLink::kFollow) {
    int64_t answers[2] = {};
    run_alone(width(), [&](const simt::Warp& warp) {
      for (int64_t& answer : answers) {
        f2fs::Inode inode{};
        const int error = resolve(warp, rig_->fs(), path.c_str(), last, inode);
        const int64_t mine = error < 0 ? int64_t{error} : int64_t{inode.ino};
        EXPECT_TRUE(warp.all(warp.shfl(mine, 0) == mine)) << "lanes disagree about " << path;
        if (warp.thread_rank() == 0) answer = mine;
      }
    });
    EXPECT_EQ(answers[0], answers[1]) << path << ": the second look differs";
    return answers[0];
  }
  void expect_pool_whole() {
    const f2fs::PagePool& pool = rig_->fs().pool;
    for (uint32_t i = 0; i < pool.count; ++i) EXPECT_EQ(pool.locks[i], 0u) << "kept " << i;
  }

  static std::unique_ptr<SharedTree> shared_;

 private:
  std::unique_ptr<VolumeRig> rig_;
};
std::unique_ptr<SharedTree> PathTest::shared_;
GOFS_AT_BOTH_WIDTHS(PathTest);

TEST_P(PathTest, names_dots_and_slashes) {
  mount();
  const std::pair<const char*, const char*> cases[] = {
      {"/", "/"},
      {"//", "/"},
      {"/.", "/"},
      {"/..", "/"},
      {"/../../..", "/"},
      {".", "/"},
      {"dir", "/dir"},
      {"/dir", "/dir"},
      {"/dir/", "/dir"},
      {"/dir//", "/dir"},
      {"/dir/.", "/dir"},
      {"/dir/./", "/dir"},
      {"//dir///sub////file", "/dir/sub/file"},
      {"/dir/sub/file", "/dir/sub/file"},
      {"/dir/sub/..", "/dir"},
      {"/dir/sub/../..", "/"},
      {"/dir/sub/../../dir/./sub/file", "/dir/sub/file"},
      {"/dir/empty/..", "/dir"},
      {"/../dir/sub/file", "/dir/sub/file"},
  };
  for (const auto& [path, wanted] : cases) EXPECT_EQ(find(path), ino(wanted)) << path;
  expect_pool_whole();
}

TEST_P(PathTest, what_is_not_there) {
  mount();
  EXPECT_EQ(find(""), -ENOENT);
  EXPECT_EQ(find("/nobody"), -ENOENT);
  EXPECT_EQ(find("/dir/nobody"), -ENOENT);
  EXPECT_EQ(find("/dir/nobody/"), -ENOENT);
  EXPECT_EQ(find("/nobody/sub"), -ENOENT);
  EXPECT_EQ(find("/nobody/.."), -ENOENT);
  EXPECT_EQ(find("/..."), -ENOENT);
  EXPECT_EQ(find("/dir/sub/file/"), -ENOTDIR);
  EXPECT_EQ(find("/dir/sub/file/."), -ENOTDIR);
  EXPECT_EQ(find("/dir/sub/file/.."), -ENOTDIR);
  EXPECT_EQ(find("/dir/sub/file/x"), -ENOTDIR);
  EXPECT_EQ(find("/pipe/x"), -ENOTDIR);
  expect_pool_whole();
}

TEST_P(PathTest, links_lead_where_they_say) {
  mount();
  const std::pair<const char*, const char*> cases[] = {
      {"/dir/relative", "/dir/sub/file"},
      {"/dir/relative2", "/dir/sub/file"},
      {"/dir/sub/up", "/dir/sub/file"},
      {"/absolute", "/dir/sub"},
      {"/absolute2", "/dir/sub"},
      {"/absolute/", "/dir/sub"},
      {"/absolute/file", "/dir/sub/file"},
      {"/absolute2/../sub/up", "/dir/sub/file"},
      {"/slashes", "/dir/sub"},
      {"/slashes/file", "/dir/sub/file"},
      {"/to_root", "/"},
      {"/to_root/to_root/to_root/dir", "/dir"},
      {"/over_top/sub", "/dir/sub"},
      {"/long", "/dir/sub/file"},
  };
  for (const auto& [path, wanted] : cases) {
    const int64_t found = find(path);
    // A target that ends in a slash names a directory.
    EXPECT_EQ(found, std::string(path) == "/long" ? -ENOTDIR : int64_t{ino(wanted)}) << path;
  }
  EXPECT_EQ(find("/dangling"), -ENOENT);
  EXPECT_EQ(find("/dangling/x"), -ENOENT);
  EXPECT_EQ(find("/file_as_dir"), -ENOTDIR);
  EXPECT_EQ(find("/longer"), -ENAMETOOLONG) << "one name of 4090 bytes";
  expect_pool_whole();
}

TEST_P(PathTest, the_last_link_is_kept_if_asked) {
  mount();
  const int64_t link = find("/absolute", LastLink::kKeep);
  EXPECT_GT(link, 0);
  EXPECT_NE(link, ino("/dir/sub"));
  EXPECT_EQ(find("/absolute/", LastLink::kKeep), ino("/dir/sub"));
  EXPECT_EQ(find("/absolute/.", LastLink::kKeep), ino("/dir/sub"));
  EXPECT_EQ(find("/absolute/file", LastLink::kKeep), ino("/dir/sub/file"));
  EXPECT_GT(find("/dangling", LastLink::kKeep), 0);
  EXPECT_GT(find("/self", LastLink::kKeep), 0);
  // And the tables do not mix the two up.
  EXPECT_EQ(find("/absolute"), ino("/dir/sub"));
  EXPECT_EQ(find("/absolute", LastLink::kKeep), link);
}

TEST_P(PathTest, loops_and_long_chains_end) {
  mount();
  EXPECT_EQ(find("/self"), -ELOOP);
  EXPECT_EQ(find("/self/x"), -ELOOP);
  EXPECT_EQ(find("/ping"), -ELOOP);
  EXPECT_EQ(find("/pong"), -ELOOP);
  EXPECT_EQ(find("/chain39"), ino("/dir/sub/file")) << "40 links";
  EXPECT_EQ(find("/chain40"), -ELOOP) << "41 links";
  EXPECT_EQ(find("/chain41"), -ELOOP);
  expect_pool_whole();
}

TEST_P(PathTest, lengths_up_to_the_limits) {
  mount();
  EXPECT_GT(find("/dir/sub/" + shared_->long_name), 0);
  EXPECT_EQ(find("/dir/sub/" + std::string(255, 'M')), -ENOENT);
  EXPECT_EQ(find("/dir/sub/" + std::string(256, 'L')), -ENAMETOOLONG);
  EXPECT_EQ(find("/" + std::string(256, 'L') + "/x"), -ENAMETOOLONG);
  std::string path = "/dir";
  while (path.size() < 4095) path += "/.";
  path.resize(4095, '/');
  EXPECT_EQ(find(path), ino("/dir")) << "4095 bytes";
  EXPECT_EQ(find(path + "/"), -ENAMETOOLONG);
  EXPECT_EQ(find(std::string(5000, 'x')), -ENAMETOOLONG);
  // A link's target and the rest of the path have to fit together.
  EXPECT_EQ(find("/absolute" + std::string(4000, '/')), ino("/dir/sub"));
  EXPECT_EQ(find("/longer" + std::string(100, '/')), -ENAMETOOLONG);
}

TEST_P(PathTest, every_directory_on_the_way_must_be_searchable) {
  struct Case {
    const char* path;
    bool root, owner, member, second_member, other;
  };
  const Case cases[] = {
      {"/dir/sub/file", true, true, true, true, true},
      {"/locked", true, true, true, true, true},
      {"/locked/f", true, true, false, false, false},
      {"/locked/..", true, true, false, false, false},
      {"/locked/.", true, true, false, false, false},
      {"/locked/nobody", true, true, false, false, false},  // or -ENOENT, if allowed
      {"/into_locked", true, true, false, false, false},
      {"/walk/f", true, true, true, true, true},
      {"/list/f", true, true, false, false, false},
      {"/group/f", true, false, true, true, false},  // the owner's bits are the owner's only ones
      {"/others/f", true, true, false, false, true},
  };
  const Credentials users[] = {who(0, 0), who(kUser, 1), who(1001, kUsersGroup),
                               who(1002, 5, {7, 8, kUsersGroup}), who(1003, 1, {5, 6})};
  for (uint32_t user = 0; user < 5; ++user) {
    mount(users[user]);
    for (const Case& one : cases) {
      const bool allowed[] = {one.root, one.owner, one.member, one.second_member, one.other};
      const int64_t found = find(one.path);
      if (!allowed[user]) {
        EXPECT_EQ(found, -EACCES) << one.path << " by user " << user;
      } else if (std::string(one.path).find("nobody") != std::string::npos) {
        EXPECT_EQ(found, -ENOENT) << one.path;
      } else {
        EXPECT_GT(found, 0) << one.path << " by user " << user;
      }
    }
  }
}

TEST_P(PathTest, access_bits_of_owner_group_and_others) {
  f2fs::Inode inode{};
  inode.uid = kUser;
  inode.gid = kUsersGroup;
  const Credentials owner = who(kUser, kUsersGroup);
  const Credentials member = who(1, 3, {4, kUsersGroup});
  const Credentials other = who(2, 3);
  const Credentials root = who(0, 0);
  for (uint32_t mode = 0; mode < 0777; mode += 7) {
    inode.mode = static_cast<uint16_t>(format::kModeRegular | mode);
    for (uint32_t wanted = 0; wanted < 8; ++wanted) {
      const auto verdict = [&](uint32_t bits) { return (wanted & ~bits) == 0 ? 0 : -EACCES; };
      EXPECT_EQ(check_access(owner, inode, wanted), verdict(mode >> 6 & 7));
      EXPECT_EQ(check_access(member, inode, wanted), verdict(mode >> 3 & 7));
      EXPECT_EQ(check_access(other, inode, wanted), verdict(mode & 7));
      const bool executes = (wanted & kMayExecute) != 0 && (mode & 0111) == 0;
      EXPECT_EQ(check_access(root, inode, wanted), executes ? -EACCES : 0);
    }
  }
  inode.mode = format::kModeDirectory;
  EXPECT_EQ(check_access(root, inode, kMayExecute), 0);
}

TEST_P(PathTest, links_are_read) {
  mount();
  run_alone(width(), [&](const simt::Warp& warp) {
    struct Case {
      const char* path;
      const char* target;
    };
    for (const Case& one : {Case{"/dir/relative", "sub/file"}, Case{"/dir/relative2", "sub/file"},
                            Case{"/dangling", "nowhere/at/all"}, Case{"/self", "self"}}) {
      f2fs::Inode inode{};
      ASSERT_EQ(resolve(warp, rig().fs(), one.path, LastLink::kKeep, inode), 0);
      const std::string target = one.target;
      for (const uint64_t capacity : {uint64_t{0}, uint64_t{3}, uint64_t{100}}) {
        std::vector<char> buffer(128, '#');
        const int64_t length = read_link(warp, rig().fs(), inode, buffer.data(), capacity);
        // The team's threads have buffers of their own; the first lane's is the one that counts.
        if (warp.thread_rank() != 0) continue;
        EXPECT_EQ(length, static_cast<int64_t>(std::min<uint64_t>(capacity, target.size())));
        EXPECT_EQ(std::string(buffer.data(), static_cast<size_t>(length)),
                  target.substr(0, static_cast<size_t>(length)));
        EXPECT_EQ(buffer[static_cast<size_t>(length)], '#');
      }
    }
    f2fs::Inode inode{};
    ASSERT_EQ(resolve(warp, rig().fs(), "/dir/sub/file", LastLink::kKeep, inode), 0);
    char buffer[8];
    EXPECT_EQ(read_link(warp, rig().fs(), inode, buffer, 8), -EINVAL);
  });
}

TEST_P(PathTest, a_link_without_a_sane_length_is_reported) {
  TestImage image([](image::ImageBuilder& builder) {
    TestImage::must(builder.add_symlink(builder.root(), "link", "somewhere", {}));
  });
  const uint32_t ino = format::kFirstFreeNid;
  for (const uint64_t size : {uint64_t{0}, uint64_t{4096}, uint64_t{1} << 32}) {
    image.node(ino).inode.i_size = size;
    VolumeRig rig(image);
    rig.mount_ready();
    run_alone(width(), [&](const simt::Warp& warp) {
      f2fs::Inode inode{};
      EXPECT_EQ(resolve(warp, rig.fs(), "/link", LastLink::kFollow, inode), -EUCLEAN);
    });
    EXPECT_EQ(f2fs::count_findings(*rig.volume().corruptions), 1u);
  }
}

TEST_P(PathTest, a_target_with_a_nul_is_reported) {
  for (const bool inline_data : {false, true}) {
    TestImage image([&](image::ImageBuilder& builder) {
      TestImage::must(builder.add_symlink(builder.root(), "link", std::string(70, 'x') + "/end", {},
                                          inline_data));
    });
    format::Inode& inode = image.node(format::kFirstFreeNid).inode;
    inode.i_size = inode.i_size + 2;  // into the zeros behind it
    VolumeRig rig(image);
    rig.mount_ready();
    run_alone(width(), [&](const simt::Warp& warp) {
      f2fs::Inode link{};
      EXPECT_EQ(resolve(warp, rig.fs(), "/link", LastLink::kFollow, link), -EUCLEAN);
      EXPECT_EQ(resolve(warp, rig.fs(), "/link", LastLink::kKeep, link), 0);
      char buffer[100];
      EXPECT_EQ(read_link(warp, rig.fs(), link, buffer, sizeof(buffer)), -EUCLEAN);
      EXPECT_EQ(read_link(warp, rig.fs(), link, buffer, 74), 74) << "what was asked for is sound";
    });
    EXPECT_EQ(f2fs::count_findings(*rig.volume().corruptions), 1u);
    const f2fs::Corruption& found = rig.volume().corruptions->records[0];
    EXPECT_EQ(found, (f2fs::Corruption{f2fs::Structure::kSymlinkTarget,
                                       image.nat_entry(format::kFirstFreeNid).block_addr,
                                       format::kFirstFreeNid, 74}));
  }
}

// Whoever follows a link holds two spare blocks, and must not need a third one: with all of them
// held like that none would get on.
TEST_P(PathTest, links_are_followed_with_few_spare_blocks) {
  VolumeRigOptions options;
  options.filesystem.pool_pages = 32;
  options.filesystem.path_entries = 1;
  options.filesystem.dentry_entries = 1024;
  options.ssd.model.read_latency_ns = 3'000'000;  // all are under way at the same time
  VolumeRig rig(shared_->image, options);
  rig.mount_ready();
  std::atomic<uint32_t> wrong{0};
  run_crowd({width() == 1 ? 40u : 6u, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < 3; ++turn) {
      // One of each pair has its target in a block.
      const char* const path = (index + turn) % 2 == 0 ? "/dir/relative" : "/dir/relative2";
      f2fs::Inode inode{};
      if (resolve(warp, rig.fs(), path, LastLink::kFollow, inode) != 0 ||
          inode.ino != ino("/dir/sub/file")) {
        ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
}

TEST_P(PathTest, many_warps_resolve_at_once_with_small_tables) {
  VolumeRigOptions options;
  options.filesystem.cache_pages = 64;
  options.filesystem.pool_pages = 32;
  options.filesystem.dentry_entries = 4;
  options.filesystem.path_entries = 2;
  VolumeRig rig(shared_->image, options);
  rig.mount_ready();
  const std::pair<const char*, int64_t> cases[] = {
      {"/dir/sub/file", ino("/dir/sub/file")}, {"/absolute/up", ino("/dir/sub/file")},
      {"/chain20", ino("/dir/sub/file")},      {"/ping", -ELOOP},
      {"/dir/empty/nobody", -ENOENT},          {"/to_root/dir/./sub", ino("/dir/sub")},
      {"/dir/../dir/sub/", ino("/dir/sub")}};
  std::atomic<uint32_t> wrong{0};
  const uint32_t turns = width() == 1 ? 40 : 6;
  run_crowd({width() == 1 ? 12u : 3u, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < turns; ++turn) {
      const auto& [path, wanted] = cases[(index * 3 + turn) % std::size(cases)];
      f2fs::Inode inode{};
      const int error = resolve(warp, rig.fs(), path, LastLink::kFollow, inode);
      if ((error < 0 ? error : int64_t{inode.ino}) != wanted) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0u);
}

TEST_P(PathTest, a_device_error_on_the_way_is_told_and_passes) {
  mount();
  const auto target = shared_->image.target();
  image::TestReader reader(*target);
  const auto file = reader.at("/dir/sub");
  const uint32_t block = reader.address(file, 0);
  rig().add_fault(VolumeRig::reads_of_block(block, 9, ssd::FaultAction::kStatus));
  EXPECT_EQ(find("/dir/sub/file"), -EIO);
  EXPECT_EQ(find("/dir/sub"), ino("/dir/sub"));
  rig().clear_faults();
  EXPECT_EQ(find("/dir/sub/file"), ino("/dir/sub/file"));
  expect_pool_whole();
}

// A walk is stopped where nothing is left but to load the inode that it has found.
class WalkedPathTest : public WritingVfsTest {
 protected:
  static constexpr uint32_t kTrees = 5;

  WalkedPathTest()
      : WritingVfsTest(
            [](image::ImageBuilder& builder) {
              const auto directory = [&](image::Directory parent, const std::string& name) {
                image::Directory made;
                TestImage::must(builder.add_directory(
                    parent, name, attributes(0755, kUser, kUsersGroup), {}, &made));
                return made;
              };
              const image::Directory top = directory(builder.root(), "top");
              directory(top, "other");
              for (uint32_t tree = 0; tree < kTrees; ++tree) {
                const std::string name = "d" + std::to_string(tree);
                image::FileSpec file;
                file.name = "file";
                file.attributes = attributes(0644, kUser, kUsersGroup);
                TestImage::must(builder.add_file(directory(directory(top, name), "sub"), file));
                TestImage::must(builder.add_symlink(top, "to_" + name, name,
                                                    attributes(0777, kUser, kUsersGroup), true));
              }
            },
            testing::with_a_fault()) {
    fs().credentials = who(kUser, kUsersGroup);
  }

  int look_up(const simt::Warp& warp, const std::string& path) {
    f2fs::Inode inode{};
    return reading_paths(
        warp, fs(), [&] { return resolve(warp, fs(), path.c_str(), LastLink::kFollow, inode); });
  }

  /// What `path` leads to after `change(warp)` that was made while one walked it to the file `ino`.
  template <typename Change>
  int64_t after_change_in_walk(const std::string& path, uint32_t ino, Change change) {
    const uint32_t block = image_.nat_entry(ino).block_addr;
    const testing::HeldCommand held(
        writing_->rig(), 0,
        VolumeRig::reads_of_block(block, writing_->rig().device().lba_shift,
                                  ssd::FaultAction::kHold));
    run_crowd({2, width()}, [&](const simt::Warp& warp, uint32_t index) {
      if (index == 0) {
        EXPECT_EQ(look_up(warp, path), 0) << "it was there when the walk came by";
        return;
      }
      EXPECT_TRUE(held.wait());
      EXPECT_EQ(change(warp), 0);
      held.release(warp);
    });
    return alone([&](const simt::Warp& warp) { return look_up(warp, path); });
  }
};
GOFS_AT_BOTH_WIDTHS(WalkedPathTest);

TEST_P(WalkedPathTest, what_has_changed_during_a_walk_is_looked_up_anew) {
  std::vector<uint32_t> inos;
  const auto target = image_.target();
  image::TestReader reader(*target);
  for (uint32_t tree = 0; tree < kTrees; ++tree) {
    inos.push_back(reader.at("/top/d" + std::to_string(tree) + "/sub/file").ino);
  }
  EXPECT_EQ(after_change_in_walk("/top/d0/sub/file", inos[0],
                                 [&](const simt::Warp& warp) {
                                   return rename(warp, fs(), "/top/d0", "/top/moved");
                                 }),
            -ENOENT);
  EXPECT_EQ(after_change_in_walk("/top/d1/sub/file", inos[1],
                                 [&](const simt::Warp& warp) {
                                   return rename(warp, fs(), "/top/d1", "/top/other",
                                                 kRenameExchange);
                                 }),
            -ENOENT);
  EXPECT_EQ(after_change_in_walk("/top/to_d2/sub/file", inos[2],
                                 [&](const simt::Warp& warp) {
                                   return rename(warp, fs(), "/top/to_d2", "/top/to_another");
                                 }),
            -ENOENT);
  EXPECT_EQ(
      after_change_in_walk("/top/d3/sub/file", inos[3],
                           [&](const simt::Warp& warp) { return chmod(warp, fs(), "/top/d3", 0); }),
      -EACCES);
  EXPECT_EQ(
      after_change_in_walk("/top/d4/sub/file", inos[4],
                           [&](const simt::Warp& warp) {
                             constexpr char kOwnerMayNothing[] =
                                 "\x02\0\0\0\x01\0\0\0\xff\xff\xff\xff\x04\0\0\0\xff\xff\xff\xff"
                                 "\x20\0\0\0\xff\xff\xff\xff";
                             return setxattr(warp, fs(), "/top/d4", LastLink::kFollow,
                                             "system.posix_acl_access", kOwnerMayNothing,
                                             sizeof(kOwnerMayNothing) - 1, 0);
                           }),
      -EACCES);
}

// One warp does something at each step of another where this holds nothing that the first would
// wait for.
class SteppedPathTest : public WalkedPathTest {
 protected:
  using Step = std::function<int(const simt::Warp& warp)>;

  bool nothing_is_held() {
    const f2fs::PageCache& cache = volume().cache;
    for (uint32_t frame = 0; frame < cache.frame_count(); ++frame) {
      if ((cache.state(frame) & (f2fs::kPinMask | f2fs::kFrameLoading)) != 0) return false;
    }
    const auto writes = [](const auto& table) {
      for (uint32_t i = 0; i <= table.mask; ++i) {
        if ((table.entries[i].sequence & 1) != 0) return true;
      }
      return false;
    };
    return !writes(fs().dentries) && !writes(fs().paths);
  }
  int look_up(const std::string& path) { return WalkedPathTest::look_up(simt::Warp(), path); }

  /// Makes `change`, after which `path` answers `wanted`, at one step after the other of a walk.
  void expect_looked_up_anew(const std::string& path, int wanted, const Step& change,
                             const Step& undo) {
    uint32_t changes = 0;
    for (bool changed = true; changed; ++changes) {
      changed = false;
      uint32_t step = 0;
      testing::SteppedWarp stepped([&] {
        if (changed || step++ < changes || !nothing_is_held()) return;
        changed = true;
        EXPECT_EQ(change(simt::Warp()), 0);
      });
      const int seen = WalkedPathTest::look_up(stepped.warp(), path);
      EXPECT_TRUE(seen == 0 || (changed && seen == wanted)) << seen;
      if (!changed) break;
      ASSERT_EQ(look_up(path), wanted) << path << " at step " << changes;
      ASSERT_EQ(undo(simt::Warp()), 0);
    }
    EXPECT_GT(changes, 10u) << "else it looked nowhere";
  }
  /// Looks `path` up at each step of `change`.
  void expect_forgotten(const std::string& path, int wanted, const Step& change) {
    uint32_t looks = 0;
    ASSERT_EQ(look_up(path), 0);
    testing::SteppedWarp stepped([&] {
      if (!nothing_is_held()) return;
      const int seen = look_up(path);
      EXPECT_TRUE(seen == 0 || seen == wanted) << seen;
      ++looks;
    });
    EXPECT_EQ(change(stepped.warp()), 0);
    EXPECT_EQ(look_up(path), wanted) << path;
    EXPECT_GT(looks, 10u) << "else it looked nowhere";
  }
  Step moving(const char* from, const char* to, uint32_t flags = 0) {
    return [=, this](const simt::Warp& warp) { return rename(warp, fs(), from, to, flags); };
  }
  Step permitting(const char* path, uint32_t mode) {
    return [=, this](const simt::Warp& warp) { return chmod(warp, fs(), path, mode); };
  }
};
INSTANTIATE_TEST_SUITE_P(width, SteppedPathTest, ::testing::Values(1u),
                         ::testing::PrintToStringParamName());

TEST_P(SteppedPathTest, what_changes_at_any_step_of_a_walk_is_looked_up_anew) {
  expect_looked_up_anew("/top/d0/sub/file", -ENOENT,
                        moving("/top/d0/sub/file", "/top/d0/sub/moved"),
                        moving("/top/d0/sub/moved", "/top/d0/sub/file"));
  expect_looked_up_anew("/top/d1/sub/file", -ENOENT, moving("/top/d1", "/top/moved"),
                        moving("/top/moved", "/top/d1"));
  expect_looked_up_anew("/top/to_d2/sub/file", -ENOENT, moving("/top/to_d2", "/top/to_other"),
                        moving("/top/to_other", "/top/to_d2"));
  expect_looked_up_anew("/top/d3/sub/file", -EACCES, permitting("/top/d3", 0),
                        permitting("/top/d3", 0755));
}

TEST_P(SteppedPathTest, who_looks_at_any_step_of_a_change_keeps_nothing_of_before) {
  expect_forgotten("/top/d0/sub/file", -ENOENT, moving("/top/d0/sub/file", "/top/d0/moved"));
  expect_forgotten("/top/d1/sub/file", -ENOENT, moving("/top/d1", "/top/other/d1"));
  expect_forgotten("/top/other/d1/..", -ENOENT, moving("/top/other/d1", "/top/d1"));
  expect_forgotten("/top/d2/sub/file", -ENOENT, moving("/top/d2", "/top/other", kRenameExchange));
  expect_forgotten("/top/d3/sub/file", -EACCES, permitting("/top/d3", 0));
  expect_forgotten("/top/d4/sub/file", -ENOENT, [this](const simt::Warp& warp) {
    return unlink(warp, fs(), "/top/d4/sub/file");
  });
  expect_forgotten("/top/d4/sub", -ENOENT,
                   [this](const simt::Warp& warp) { return rmdir(warp, fs(), "/top/d4/sub"); });
  expect_forgotten("/top/to_d4", -ENOENT,
                   [this](const simt::Warp& warp) { return unlink(warp, fs(), "/top/to_d4"); });
}

// A reader that has asked where an inode lies must not bring in what lay there before.
TEST_P(SteppedPathTest, an_inode_that_moves_at_any_step_is_read_where_it_lies) {
  const char* const path = "/top/d0/sub/file";
  ASSERT_EQ(look_up(path), 0);
  const auto ino = static_cast<uint32_t>(stat_of_path(path).ino);
  const auto evict = [&] {
    f2fs::PageCache& cache = volume().cache;
    const uint64_t key = f2fs::page_key(f2fs::PageKind::kNode, ino);
    const uint32_t frame = f2fs::find_frame(cache, key);
    EXPECT_TRUE(frame == f2fs::kNoFrame || f2fs::take_frame(cache, frame, key));
    if (frame != f2fs::kNoFrame) f2fs::invalidate_frame(cache, frame);
  };
  uint32_t changes = 0;
  for (bool moved = true; moved; ++changes) {
    moved = false;
    uint32_t step = 0;
    const uint32_t mode = changes % 2 == 0 ? 0600 : 0640;
    testing::SteppedWarp stepped([&] {
      if (moved || step++ < changes || !nothing_is_held()) return;
      moved = true;
      EXPECT_EQ(chmod(simt::Warp(), fs(), path, mode), 0);
      EXPECT_EQ(writing_->checkpoint(false), 0);
      evict();
    });
    evict();
    f2fs::Inode inode{};
    EXPECT_EQ(detail::load_uniform(stepped.warp(), fs(), ino, inode), 0);
    if (!moved) break;
    ASSERT_EQ(stat_of_path(path).mode & 07777, mode) << "at step " << changes;
  }
  EXPECT_GT(changes, 5u) << "else it never moved";
}

}  // namespace
}  // namespace gofs::vfs
