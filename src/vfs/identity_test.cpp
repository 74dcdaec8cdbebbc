// SPDX-License-Identifier: Apache-2.0
//
// Files by identity: what they are found by is true as long as they are there, and all else is
// stale, never another file and never damage.
#include "vfs/identity.h"

#include "vfs/remove_file.h"
#include "vfs/rename.h"
#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

class IdentityTest : public WritingVfsTest {
 protected:
  using Client = CallerWarp<simt::Warp>;

  IdentityTest()
      : WritingVfsTest([](image::ImageBuilder& builder) {
          TestImage::must(
              builder.add_directory(builder.root(), "closed", {.mode = 0700}, {}, nullptr));
          TestImage::must(builder.add_symlink(builder.root(), "link", "closed", {}));
        }) {}

  Identity identity_of_descriptor(int fd) {
    Identity found{};
    EXPECT_EQ(as_root([&](const simt::Warp& warp) {
                Identity mine{};
                const int error = identity(warp, fs(), fd, mine);
                if (warp.thread_rank() == 0) found = mine;
                return error;
              }),
              0);
    return found;
  }
  Identity identity_of(const char* path, uint32_t flags = kOpenPath | kOpenNoFollow) {
    fs().credentials = who(0, 0);
    const int fd = open_file(path, flags);
    EXPECT_GE(fd, 0) << path;
    const Identity found = identity_of_descriptor(fd);
    EXPECT_EQ(close_file(fd), 0);
    return found;
  }
  int open_as(const Credentials& user, const Identity& file, uint32_t flags = kOpenReadOnly) {
    return static_cast<int>(
        as(user, [&](const simt::Warp& warp) { return open_identity(warp, fs(), file, flags); }));
  }
  int open_it(const Identity& file, uint32_t flags = kOpenReadOnly) {
    return open_as(who(0, 0), file, flags);
  }
  /// What is open under that identity is `letter` at its beginning.
  void expect_letter(const Identity& file, char letter) {
    const int fd = open_it(file);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(as_root([&](const simt::Warp& warp) { return first_letter(warp, fd); }), letter);
    EXPECT_EQ(close_file(fd), 0);
  }
  int unlink_it(const char* path) {
    return static_cast<int>(
        as_root([&](const simt::Warp& warp) { return unlink(warp, fs(), path); }));
  }
  /// The next inode that is made has this number, if it is free.
  void make_next(uint64_t ino) {
    for (f2fs::NidCursor& cursor : writing_->writer().nid_cursors) {
      cursor.next = static_cast<uint32_t>(ino);
    }
  }
  void expect_no_damage() { EXPECT_EQ(f2fs::count_findings(*volume().corruptions), 0u); }
};
GOFS_AT_BOTH_WIDTHS(IdentityTest);

TEST_P(IdentityTest, a_file_is_found_whatever_its_name_is) {
  put_file("/closed/x", 5000, 'x');
  const Identity file = identity_of("/closed/x");
  EXPECT_EQ(file.ino, stat_of_path("/closed/x").ino);
  EXPECT_EQ(file.generation, stat_of_path("/closed/x").generation);
  EXPECT_TRUE(std::equal(std::begin(file.uuid), std::end(file.uuid), volume().uuid));
  EXPECT_EQ(as_root([&](const simt::Warp& w) { return rename(w, fs(), "/closed/x", "/y"); }), 0);
  expect_letter(file, 'x');
  mount_again();
  expect_letter(file, 'x');
  const Identity directory = identity_of("/closed");
  const int fd = open_it(directory, kOpenReadOnly | kOpenDirectory);
  EXPECT_GE(fd, 0);
  EXPECT_EQ(open_it(file, kOpenReadOnly | kOpenDirectory), -ENOTDIR);
  EXPECT_EQ(open_it(directory, kOpenReadWrite), -EISDIR);
  EXPECT_EQ(close_file(fd), 0);
  const int writable = open_it(file, kOpenWriteOnly | kOpenAppend);
  EXPECT_EQ(pwrite_file(writable, "more", 0), 4);
  EXPECT_EQ(close_file(writable), 0);
  EXPECT_EQ(stat_of_path("/y").size_bytes, 5004u);
}

TEST_P(IdentityTest, a_number_that_is_used_again_is_another_file) {
  put_file("/x", 5000, 'x');
  const Identity old = identity_of("/x");
  EXPECT_EQ(unlink_it("/x"), 0);
  EXPECT_EQ(open_it(old), -ESTALE);
  make_next(old.ino);
  put_file("/y", 5000, 'y');
  const Identity fresh = identity_of("/y");
  ASSERT_EQ(fresh.ino, old.ino);
  EXPECT_NE(fresh.generation, old.generation);
  EXPECT_EQ(open_it(old), -ESTALE);
  expect_letter(fresh, 'y');
  mount_again();
  EXPECT_EQ(open_it(old), -ESTALE);
  expect_letter(fresh, 'y');
  expect_no_damage();
}

TEST_P(IdentityTest, a_file_without_names_is_found_while_it_is_open) {
  const std::vector<uint64_t> before = used();
  put_file("/x", 5000, 'x');
  EXPECT_EQ(as_root([&](const simt::Warp& warp) { return mkdir(warp, fs(), "/d", 0755); }), 0);
  const Identity file = identity_of("/x");
  const Identity directory = identity_of("/d");
  const int first = open_file("/x", kOpenReadOnly);
  const int list = open_file("/d", kOpenReadOnly | kOpenDirectory);
  EXPECT_EQ(unlink_it("/x"), 0);
  EXPECT_EQ(as_root([&](const simt::Warp& warp) { return rmdir(warp, fs(), "/d"); }), 0);
  const int second = open_it(file);
  const int listed = open_it(directory, kOpenReadOnly | kOpenDirectory);
  ASSERT_GE(second, 0);
  EXPECT_GE(listed, 0);
  EXPECT_EQ(close_file(first), 0);
  expect_letter(file, 'x');
  EXPECT_EQ(identity_of_descriptor(second).generation, file.generation);
  Identity guessed = file;
  ++guessed.generation;
  EXPECT_EQ(open_it(guessed), -ESTALE);
  for (const int fd : {second, list, listed}) EXPECT_EQ(close_file(fd), 0);
  EXPECT_EQ(open_it(file), -ESTALE);
  EXPECT_EQ(open_it(directory), -ESTALE);
  EXPECT_EQ(used(), before);
  EXPECT_EQ(writing_->writer().orphans.count, 0u);
  expect_no_damage();
}

TEST_P(IdentityTest, what_is_no_inode_of_the_volume_is_stale) {
  put_file("/large", 9'000'000, 'l');  // with direct nodes, which have numbers as well
  const Identity file = identity_of("/large");
  const uint64_t nids = volume().geometry.nid_count();
  Identity asked = file;
  uint32_t found = 0;
  const auto ask = [&](uint64_t ino) {
    asked.ino = ino;
    const int fd = open_it(asked);
    if (fd < 0) {
      EXPECT_EQ(fd, -ESTALE) << ino;
      return;
    }
    EXPECT_EQ(identity_of_descriptor(fd).ino, file.ino);
    ++found;
    EXPECT_EQ(close_file(fd), 0);
  };
  for (uint64_t ino = 0; ino < 60; ++ino) ask(ino);
  EXPECT_EQ(found, 1u);
  for (const uint64_t ino :
       {nids - 1, nids, uint64_t{UINT32_MAX}, file.ino + (uint64_t{1} << 32), UINT64_MAX}) {
    ask(ino);
  }
  EXPECT_EQ(found, 1u);
  for (uint32_t i = 0; i < sizeof(file.uuid); i += 5) {
    asked = file;
    asked.uuid[i] ^= 0x40;
    EXPECT_EQ(open_it(asked), -ESTALE);
  }
  asked = file;
  asked.unused = 7;
  EXPECT_EQ(close_file(open_it(asked)), 0);
  expect_no_damage();
}

TEST_P(IdentityTest, flags_count_as_by_open) {
  put_file("/x", 10, 'x');
  const Identity file = identity_of("/x");
  for (const uint32_t flags : {kOpenCreate, kOpenExclusive, kOpenTruncate, kOpenTemporary,
                               kOpenAccessMask, uint32_t{1} << 30}) {
    EXPECT_EQ(open_it(file, flags), -EINVAL) << flags;
  }
  const Identity link = identity_of("/link");
  EXPECT_EQ(open_it(link), -ELOOP);
  EXPECT_EQ(open_it(link, kOpenNoFollow), -ELOOP);
  const int fd = open_it(link, kOpenPath);
  EXPECT_EQ(identity_of_descriptor(fd).ino, link.ino);
  EXPECT_EQ(close_file(fd), 0);
  EXPECT_EQ(as_root([&](const simt::Warp& warp) {
              return mknod(warp, fs(), "/fifo", format::kModeFifo | 0666, {});
            }),
            0);
  EXPECT_EQ(open_it(identity_of("/fifo")), -ENXIO);
  EXPECT_EQ(as_root([&](const simt::Warp& warp) {
              Identity ignored{};
              return identity(warp, fs(), 40, ignored);
            }),
            -EBADF);
}

TEST_P(IdentityTest, only_who_may_search_everything_opens_by_identity) {
  put_file("/closed/x", 10, 'x');
  const Identity file = identity_of("/closed/x");
  EXPECT_EQ(open_as(who(7, 0), file), -EPERM);
  EXPECT_EQ(open_as(who(7, 0), file, kOpenCreate), -EPERM) << "before anything is looked at";
  const Caller root{who(0, 0), 1};
  const Caller ann{who(7, 70), 2};
  const auto by = [&](const Caller& caller, auto body) {
    return static_cast<int>(
        alone([&](const simt::Warp& warp) { return body(Client(warp, caller)); }));
  };
  const auto opens = [&](const Client& w) { return open_identity(w, fs(), file, kOpenReadOnly); };
  EXPECT_EQ(by(ann, opens), -EPERM);
  const int fd = by(root, opens);
  ASSERT_GE(fd, 0);
  const auto asks = [&](const Client& warp) {
    Identity found{};
    const int error = identity(warp, fs(), fd, found);
    return error != 0 ? error : static_cast<int>(found.ino);
  };
  EXPECT_EQ(by(root, asks), static_cast<int>(file.ino));
  EXPECT_EQ(by(ann, asks), -EBADF) << "descriptors are those of their client";
  EXPECT_EQ(by(root, [&](const Client& warp) { return close(warp, fs(), fd); }), 0);
}

// Nothing of an image is believed, whatever number is asked for.
TEST_P(IdentityTest, a_damaged_inode_is_never_opened) {
  TestImage image([](image::ImageBuilder& builder) {
    for (const char* name : {"sound", "no_type", "nowhere"}) {
      image::FileSpec spec;
      spec.name = name;
      TestImage::must(builder.add_file(builder.root(), spec));
    }
  });
  constexpr uint32_t kSound = format::kFirstFreeNid;
  constexpr uint32_t kNoType = kSound + 1;
  constexpr uint32_t kNowhere = kSound + 2;
  constexpr uint32_t kAnothers = kSound + 20;
  const uint32_t generation = image.node(kSound).inode.i_generation;
  image.node(kNoType).inode.i_mode = 0x7000;
  image.nat_entry(kNowhere).block_addr = 5;  // of the superblock's segment
  image.nat_entry(kAnothers).ino = kAnothers;
  image.nat_entry(kAnothers).block_addr = image.nat_entry(kSound).block_addr;
  VolumeRig rig(image);
  rig.mount_ready();
  const auto opened = [&](uint32_t ino, uint32_t its_generation) {
    Identity file{{}, ino, its_generation, 0};
    std::copy(std::begin(rig.volume().uuid), std::end(rig.volume().uuid), file.uuid);
    return alone([&](const simt::Warp& warp) {
      const int fd = open_identity(warp, rig.fs(), file, kOpenReadOnly);
      return fd < 0 ? fd : close(warp, rig.fs(), fd);
    });
  };
  EXPECT_EQ(opened(kSound, generation), 0);
  EXPECT_EQ(opened(kSound, ~generation), -ESTALE);
  EXPECT_EQ(opened(kNowhere, generation), -ESTALE);
  EXPECT_EQ(f2fs::count_findings(*rig.volume().corruptions), 0u);
  EXPECT_EQ(opened(kNoType, generation), -EUCLEAN);
  EXPECT_EQ(opened(kAnothers, generation), -EUCLEAN) << "the node says that it is another";
  EXPECT_EQ(f2fs::count_findings(*rig.volume().corruptions), 2u);
}

}  // namespace
}  // namespace gofs::vfs
