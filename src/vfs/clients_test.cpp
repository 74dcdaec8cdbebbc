// SPDX-License-Identifier: Apache-2.0
//
// Several users at once on one mounted volume: each call is judged, and what it makes is owned, by
// whose it is, and what one client has open is none of the others'.
#include "vfs/clients.h"

#include <atomic>
#include <string>

#include "vfs/batch_create.h"
#include "vfs/batch_list.h"
#include "vfs/rename.h"
#include "vfs/set_xattr.h"
#include "vfs/write_lanes.h"
#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint32_t kAnnsGroup = 70;
constexpr uint32_t kOthersGroup = 90;

class ClientsTest : public WritingVfsTest {
 protected:
  using Client = CallerWarp<simt::Warp>;

  ClientsTest()
      : WritingVfsTest([](image::ImageBuilder& builder) {
          const auto add = [&](const char* name, uint16_t mode) {
            TestImage::must(builder.add_directory(
                builder.root(), name, {.mode = mode, .uid = 7, .gid = kAnnsGroup}, {}, nullptr));
          };
          add("closed", 0700);
          add("open", 0777);
          add("sticky", 01777);
          add("group", 02775);
          image::FileSpec spec;
          spec.name = "powers";
          spec.attributes = {.mode = 04777, .uid = 7, .gid = kAnnsGroup};
          TestImage::must(builder.add_file(builder.root(), spec));
        }) {}

  template <typename Body>
  int64_t by(const Caller& caller, Body body) {
    return alone([&](const simt::Warp& warp) { return body(Client(warp, caller)); });
  }
  int open_by(const Caller& caller, const char* path, uint32_t flags, uint32_t mode = 0644) {
    return static_cast<int>(
        by(caller, [&](const Client& warp) { return open(warp, fs(), path, flags, mode); }));
  }
  int close_by(const Caller& caller, int fd) {
    return static_cast<int>(by(caller, [&](const Client& warp) { return close(warp, fs(), fd); }));
  }
  int64_t access_by(const Caller& caller, const char* path, uint32_t wanted) {
    return by(caller, [&](const Client& warp) { return access(warp, fs(), path, wanted); });
  }
  int64_t write_by(const Caller& caller, int fd, const std::string& text) {
    return by(caller,
              [&](const Client& warp) { return write(warp, fs(), fd, text.data(), text.size()); });
  }
  uint32_t permissions_of(const char* path) { return stat_of_path(path).mode & 07777u; }
  void give_powers() {
    EXPECT_EQ(as_root([&](const simt::Warp& warp) { return chmod(warp, fs(), "/powers", 06777); }),
              0);
  }
  /// Descriptors that are in use.
  uint32_t open_descriptors() {
    uint32_t count = 0;
    for (uint32_t i = 0; i < fs().descriptor_count; ++i) count += fs().descriptors[i].state != 0;
    return count;
  }

  const Caller root_{who(0, 0), 1};
  const Caller ann_{who(7, kAnnsGroup), 2};
  const Caller bob_{who(8, 80), 3};
  const Caller eve_{who(9, 80, {kOthersGroup, kAnnsGroup}), 4};  // of Ann's group
};
GOFS_AT_BOTH_WIDTHS(ClientsTest);

TEST_P(ClientsTest, each_call_is_judged_and_makes_files_by_its_own_caller) {
  const int fd = open_by(ann_, "/open/a", kOpenWriteOnly | kOpenCreate, 0640);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(close_by(ann_, fd), 0);
  EXPECT_EQ(stat_of_path("/open/a").uid, 7u);
  EXPECT_EQ(stat_of_path("/open/a").gid, kAnnsGroup);
  EXPECT_EQ(access_by(ann_, "/open/a", kMayRead | kMayWrite), 0);
  EXPECT_EQ(access_by(bob_, "/open/a", kMayRead), -EACCES);
  EXPECT_EQ(access_by(eve_, "/open/a", kMayRead), 0);
  EXPECT_EQ(access_by(eve_, "/open/a", kMayWrite), -EACCES);
  EXPECT_EQ(access_by(root_, "/open/a", kMayRead | kMayWrite), 0);
  EXPECT_EQ(open_by(bob_, "/open/a", kOpenReadOnly), -EACCES);
  EXPECT_EQ(by(bob_, [&](const Client& warp) { return chmod(warp, fs(), "/open/a", 0666); }),
            -EPERM);
  EXPECT_EQ(by(bob_, [&](const Client& warp) { return mkdir(warp, fs(), "/open/b", 0755); }), 0);
  EXPECT_EQ(stat_of_path("/open/b").uid, 8u);
  EXPECT_EQ(by(eve_, [&](const Client& warp) { return mkdir(warp, fs(), "/group/e", 0755); }), 0);
  EXPECT_EQ(stat_of_path("/group/e").uid, 9u);
  EXPECT_EQ(stat_of_path("/group/e").gid, kAnnsGroup);  // of a set-group-ID directory
  EXPECT_EQ(by(bob_, [&](const Client& warp) { return mkdir(warp, fs(), "/group/b", 0755); }),
            -EACCES);
  const auto own = [&](const Caller& caller, const char* path, uint32_t uid, uint32_t gid) {
    return by(caller, [&](const Client& warp) {
      return chown(warp, fs(), path, LastLink::kFollow, uid, gid);
    });
  };
  EXPECT_EQ(own(ann_, "/open/a", 8, kKeepId), -EPERM);
  EXPECT_EQ(own(ann_, "/open/a", kKeepId, kOthersGroup), -EPERM);
  EXPECT_EQ(own(root_, "/open/a", 9, kKeepId), 0);
  EXPECT_EQ(own(eve_, "/open/a", kKeepId, kOthersGroup), 0);
  EXPECT_EQ(by(ann_,
               [&](const Client& warp) {
                 return setxattr(warp, fs(), "/open/a", LastLink::kFollow, "trusted.x", "1", 1, 0);
               }),
            -EPERM);
  EXPECT_EQ(by(root_,
               [&](const Client& warp) {
                 return setxattr(warp, fs(), "/open/a", LastLink::kFollow, "trusted.x", "1", 1, 0);
               }),
            0);
  char value = 0;
  const auto get = [&](const Caller& caller) {
    return by(caller, [&](const Client& warp) {
      return getxattr(warp, fs(), "/open/a", LastLink::kFollow, "trusted.x", &value, 1);
    });
  };
  EXPECT_EQ(get(eve_), -ENODATA);
  EXPECT_EQ(get(root_), 1);
  mount_again();
}

TEST_P(ClientsTest, an_access_list_is_asked_for_each_caller) {
  put_file("/open/listed", 10, 'x');
  EXPECT_EQ(
      as_root([&](const simt::Warp& warp) { return chmod(warp, fs(), "/open/listed", 0600); }), 0);
  // The owner, user 8 reads, the owning group nothing, the mask, all others nothing.
  std::string list;
  const auto put = [&](uint32_t word, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; ++i) list += static_cast<char>(word >> 8 * i);
  };
  put(2, 4);
  const uint32_t entries[][3] = {{1, 6, ~0u}, {2, 4, 8}, {4, 0, ~0u}, {16, 4, ~0u}, {32, 0, ~0u}};
  for (const auto& entry : entries) {
    put(entry[0], 2);
    put(entry[1], 2);
    put(entry[2], 4);
  }
  EXPECT_EQ(as_root([&](const simt::Warp& warp) {
              return setxattr(warp, fs(), "/open/listed", LastLink::kFollow,
                              "system.posix_acl_access", list.data(), list.size(), 0);
            }),
            0);
  EXPECT_EQ(access_by(bob_, "/open/listed", kMayRead), 0);
  EXPECT_EQ(access_by(bob_, "/open/listed", kMayWrite), -EACCES);
  EXPECT_EQ(access_by(eve_, "/open/listed", kMayRead), -EACCES);
  EXPECT_EQ(access_by(root_, "/open/listed", kMayWrite), 0);
}

TEST_P(ClientsTest, a_sticky_directory_keeps_names_of_others) {
  const int fd = open_by(bob_, "/sticky/bobs", kOpenWriteOnly | kOpenCreate, 0666);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(close_by(bob_, fd), 0);
  const auto unlink_by = [&](const Caller& caller) {
    return by(caller, [&](const Client& warp) { return unlink(warp, fs(), "/sticky/bobs"); });
  };
  EXPECT_EQ(unlink_by(eve_), -EPERM);
  EXPECT_EQ(
      by(eve_,
         [&](const Client& warp) { return rename(warp, fs(), "/sticky/bobs", "/sticky/eves", 0); }),
      -EPERM);
  EXPECT_EQ(unlink_by(bob_), 0);
}

// What one has found is kept for the next time, but not for others.
TEST_P(ClientsTest, a_path_that_one_has_walked_is_not_open_to_another) {
  const int fd = open_by(ann_, "/closed/secret", kOpenWriteOnly | kOpenCreate, 0666);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(close_by(ann_, fd), 0);
  const auto stat_by = [&](const Caller& caller) {
    return by(caller, [&](const Client& warp) {
      Stat found{};
      return stat(warp, fs(), "/closed/secret", LastLink::kFollow, found);
    });
  };
  for (uint32_t turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(stat_by(ann_), 0);
    EXPECT_EQ(stat_by(root_), 0);
    EXPECT_EQ(stat_of_path("/closed/secret").uid, 7u);
    EXPECT_EQ(stat_by(bob_), -EACCES);
    EXPECT_EQ(stat_by({who(8, 80), kMountClient}), -EACCES);
    EXPECT_EQ(open_by(bob_, "/closed/secret", kOpenReadOnly), -EACCES);
  }
  // A number that goes to another takes nothing with it.
  EXPECT_EQ(by(ann_, [&](const Client& warp) { return close_all(warp, fs()); }), 0);
  EXPECT_EQ(stat_by({who(8, 80), ann_.client}), -EACCES);
}

TEST_P(ClientsTest, contents_that_a_user_changes_lose_their_set_id_bits) {
  const std::string block(kBlockBytes, 'x');
  const auto expect_lost = [&](const char* how, auto change) {
    for (const Caller* caller : {&root_, &bob_, &root_}) {
      give_powers();
      const int fd = open_by(*caller, "/powers", kOpenReadWrite);
      ASSERT_GE(fd, 0);
      EXPECT_GE(by(*caller, [&](const Client& warp) { return change(warp, fd); }), 0) << how;
      EXPECT_EQ(close_by(*caller, fd), 0);
      EXPECT_EQ(permissions_of("/powers"), caller == &root_ ? 06777u : 0777u) << how;
    }
  };
  expect_lost("pwrite", [&](const Client& warp, int fd) {
    return pwrite(warp, fs(), fd, block.data(), block.size(), 0);
  });
  expect_lost("overwrite", [&](const Client& warp, int fd) {
    return pwrite(warp, fs(), fd, block.data(), block.size(), 0);
  });
  expect_lost("lanes", [&](const Client& warp, int fd) {
    return pwrite_lanes(warp, fs(), {fd, block.data(), 512, 512});
  });
  expect_lost("truncate",
              [&](const Client& warp, int fd) { return ftruncate(warp, fs(), fd, 9000); });
  expect_lost("pwrite_async", [&](const Client& warp, int fd) {
    return wait(warp, fs(), pwrite_async(warp, fs(), fd, block.data(), block.size(), 0));
  });
  EXPECT_EQ(by(bob_, [&](const Client& warp) { return chmod(warp, fs(), "/powers", 0777); }),
            -EPERM);
  give_powers();
  EXPECT_EQ(by(ann_,
               [&](const Client& warp) {
                 return chown(warp, fs(), "/powers", LastLink::kFollow, kKeepId, kAnnsGroup);
               }),
            0);
  EXPECT_EQ(permissions_of("/powers"), 0777u);
  // In a group that is not Ann's there is no set-group-ID bit for her.
  EXPECT_EQ(as_root([&](const simt::Warp& warp) {
              return chown(warp, fs(), "/powers", LastLink::kFollow, kKeepId, kOthersGroup);
            }),
            0);
  EXPECT_EQ(by(ann_, [&](const Client& warp) { return chmod(warp, fs(), "/powers", 02777); }), 0);
  EXPECT_EQ(permissions_of("/powers"), 0777u);
}

TEST_P(ClientsTest, a_record_takes_set_id_bits_whoever_flushes_it) {
  ASSERT_GT(fs().records.count, 0u);
  const std::string text(100, 'r');
  for (const Caller* caller : {&root_, &bob_, &root_, &eve_}) {
    give_powers();
    const int fd = open_by(*caller, "/powers", kOpenWriteOnly | kOpenAppend);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(write_by(*caller, fd, text), 100);
    EXPECT_EQ(close_by(*caller, fd), 0);
    EXPECT_EQ(permissions_of("/powers"), caller == &root_ ? 06777u : 0777u);
  }
  // Of many, user 0 flushes some for others: each of theirs takes the bits away that it finds.
  std::atomic<uint32_t> kept = 0;
  std::atomic<uint32_t> failed = 0;
  const Caller* const callers[] = {&root_, &bob_, &root_, &root_};
  const uint32_t steps = width() == 1 ? 200 : 30;
  run_crowd({4, width()}, [&](const simt::Warp& own, uint32_t index) {
    const Client warp(own, *callers[index]);
    const int fd = open(warp, fs(), "/powers", kOpenWriteOnly | kOpenAppend);
    for (uint32_t i = 0; i < steps; ++i) {
      Stat found{};
      if (index == 1 && chmod(Client(own, root_), fs(), "/powers", 04777) != 0) ++failed;
      if (write(warp, fs(), fd, text.data(), text.size()) != 100) ++failed;
      if (index != 1) continue;
      if (stat(warp, fs(), "/powers", LastLink::kFollow, found) != 0) ++failed;
      if ((found.mode & 04000) != 0) ++kept;
    }
    if (close(warp, fs(), fd) != 0) ++failed;
  });
  EXPECT_EQ(kept, 0u);
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(stat_of_path("/powers").size_bytes, 100u * (4 + 4 * steps));
  mount_again();
}

TEST_P(ClientsTest, descriptors_of_others_are_not_open) {
  put_file("/open/f", 10, 'x');
  const int fd = open_by(ann_, "/open/f", kOpenReadOnly);
  ASSERT_GE(fd, 0);
  char byte = 0;
  const auto expect_foreign = [&](auto with) {
    EXPECT_EQ(with([&](const auto& w) { return pread(w, fs(), fd, &byte, 1, 0); }), -EBADF);
    EXPECT_EQ(with([&](const auto& w) { return advance_position(w, fs(), fd, 1); }), -EBADF);
    EXPECT_EQ(with([&](const auto& w) { return pread_lanes(w, fs(), {fd, &byte, 1, 0}); }), -EBADF);
    EXPECT_EQ(with([&](const auto& w) { return pwrite(w, fs(), fd, &byte, 1, 0); }), -EBADF);
    EXPECT_EQ(with([&](const auto& w) {
                return pwrite_lanes(w, fs(), {fd, &byte, 1, 0});
              }),
              -EBADF);
    const auto stat_it = [&](const auto& w) {
      Stat found{};
      return fstat(w, fs(), fd, found);
    };
    EXPECT_EQ(with(stat_it), -EBADF);
    EXPECT_EQ(with([&](const auto& w) { return lseek(w, fs(), fd, 0, kSeekSet); }), -EBADF);
    EXPECT_EQ(with([&](const auto& w) { return fchmod(w, fs(), fd, 0777); }), -EBADF);
    EXPECT_EQ(with([&](const auto& w) { return fsync(w, fs(), fd); }), -EBADF);
    EXPECT_EQ(with([&](const auto& w) { return close(w, fs(), fd); }), -EBADF);
    EXPECT_EQ(with([&](const auto& w) { return pread_async(w, fs(), fd, &byte, 1, 0).result; }),
              -EBADF);
  };
  expect_foreign([&](auto body) { return by(bob_, body); });
  expect_foreign([&](auto body) { return by(root_, body); });
  expect_foreign([&](auto body) { return alone(body); });
  EXPECT_EQ(by(ann_, [&](const Client& w) { return pread(w, fs(), fd, &byte, 1, 0); }), 1);
  const int own = static_cast<int>(
      alone([&](const simt::Warp& warp) { return open(warp, fs(), "/open/f", kOpenReadOnly); }));
  EXPECT_EQ(by(ann_, [&](const Client& w) { return pread(w, fs(), own, &byte, 1, 0); }), -EBADF);
  EXPECT_EQ(alone([&](const simt::Warp& w) { return close(w, fs(), own); }), 0);
  EXPECT_EQ(close_by(ann_, fd), 0);
}

TEST_P(ClientsTest, tickets_and_batches_of_others_are_not_theirs) {
  const std::string block(kBlockBytes, 'x');
  const int fd = open_by(ann_, "/open/f", kOpenReadWrite | kOpenCreate);
  EXPECT_EQ(write_by(ann_, fd, std::string(kBlockBytes, 'o')), static_cast<int64_t>(kBlockBytes));
  Ticket ticket{};
  const auto start = [&] {
    by(ann_, [&](const Client& warp) {
      const Ticket mine = pwrite_async(warp, fs(), fd, block.data(), block.size(), 0);
      if (warp.thread_rank() == 0) ticket = mine;
      return mine.result;
    });
  };
  start();
  ASSERT_NE(ticket.operation, Ticket::kNoOperation);
  EXPECT_EQ(by(bob_, [&](const Client& warp) { return wait(warp, fs(), ticket); }), -EINVAL);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return wait(warp, fs(), ticket); }), -EINVAL);
  EXPECT_EQ(by(bob_, [&](const Client& warp) { return poll(warp, fs(), ticket) ? 1 : 0; }), 1);
  EXPECT_EQ(by(ann_, [&](const Client& warp) { return wait(warp, fs(), ticket); }),
            static_cast<int64_t>(kBlockBytes));
  EXPECT_EQ(letter_of("/open/f"), 'x');
  EXPECT_EQ(by(ann_, [&](const Client& warp) { return wait(warp, fs(), ticket); }), -EINVAL);

  const auto bd = static_cast<int>(by(ann_, [&](const Client& warp) {
    return begin_batch(warp, fs(), *fs().batches, "/open", 4);
  }));
  ASSERT_GE(bd, 0);
  EXPECT_EQ(find_batch_descriptor(*fs().batches, bd), nullptr);
  EXPECT_EQ(find_batch_descriptor(*fs().batches, bd, bob_.client), nullptr);
  EXPECT_NE(find_batch_descriptor(*fs().batches, bd, ann_.client), nullptr);
  EXPECT_EQ(by(bob_, [&](const Client& warp) { return end_batch(warp, *fs().batches, bd); }),
            -EBADF);
  EXPECT_EQ(
      by(bob_,
         [&](const Client& warp) { return begin_batch(warp, fs(), *fs().batches, "/closed", 4); }),
      -EACCES);
  EXPECT_EQ(by(ann_, [&](const Client& warp) { return end_batch(warp, *fs().batches, bd); }), 0);
}

TEST_P(ClientsTest, inodes_by_number_are_for_the_mount_alone) {
  put_file("/open/f", 10, 'x');
  const auto ino = static_cast<uint32_t>(stat_of_path("/open/f").ino);
  const auto home = static_cast<uint32_t>(stat_of_path("/open").ino);
  EXPECT_EQ(by(root_, [&](const Client& w) { return open_inode(w, fs(), ino, kOpenReadOnly); }),
            -EPERM);
  EXPECT_EQ(by(root_, [&](const Client& w) { return chmod_inode(w, fs(), ino, 0777); }), -EPERM);
  EXPECT_EQ(by(root_, [&](const Client& w) { return unlink_in(w, fs(), home, "f"); }), -EPERM);
  const auto fd = static_cast<int>(
      alone([&](const simt::Warp& w) { return open_inode(w, fs(), ino, kOpenReadOnly); }));
  EXPECT_GE(fd, 0);
  EXPECT_EQ(alone([&](const simt::Warp& w) { return close(w, fs(), fd); }), 0);
}

TEST_P(ClientsTest, nothing_of_a_client_that_has_ended_stays_open) {
  const std::string block(kBlockBytes, 'x');
  put_file("/open/f", 40 * kBlockBytes, 'o');
  EXPECT_EQ(as_root([&](const simt::Warp& w) { return chmod(w, fs(), "/open/f", 0666); }), 0);
  const uint32_t before = open_descriptors();
  const int others = open_by(bob_, "/open/f", kOpenReadOnly);
  std::vector<int> fds;
  for (uint32_t i = 0; i < 6; ++i) fds.push_back(open_by(ann_, "/open/f", kOpenReadWrite));
  const auto begin_write = [&](const vfs::Caller& who, int fd, uint64_t offset) {
    Ticket ticket{};
    by(who, [&](const Client& warp) {
      const Ticket mine = pwrite_async(warp, fs(), fd, block.data(), block.size(), offset);
      if (warp.thread_rank() == 0) ticket = mine;
      return mine.result;
    });
    EXPECT_NE(ticket.operation, Ticket::kNoOperation);
    return ticket;
  };
  // More than a row of lanes looks at together, and in the midst of them another's.
  put_file("/open/g", kBlockBytes, 'o');
  EXPECT_EQ(as_root([&](const simt::Warp& w) { return chmod(w, fs(), "/open/g", 0666); }), 0);
  const int written = open_by(bob_, "/open/g", kOpenReadWrite);
  std::vector<Ticket> tickets;
  for (uint32_t i = 0; i < 20; ++i) tickets.push_back(begin_write(ann_, fds[0], i * kBlockBytes));
  const Ticket bobs = begin_write(bob_, written, 0);
  for (uint32_t i = 20; i < 40; ++i) {
    tickets.push_back(begin_write(ann_, fds[1], i * kBlockBytes));
  }
  EXPECT_GE(
      by(ann_,
         [&](const Client& warp) { return begin_batch(warp, fs(), *fs().batches, "/open", 4); }),
      0);
  EXPECT_EQ(by(ann_, [&](const Client& warp) { return close_all(warp, fs()); }), 6);
  EXPECT_EQ(open_descriptors(), before + 2);
  EXPECT_EQ(close_by(ann_, fds[0]), -EBADF);
  for (const Ticket& ticket : tickets) {
    EXPECT_EQ(by(ann_, [&](const Client& warp) { return wait(warp, fs(), ticket); }), -EINVAL);
  }
  EXPECT_EQ(by(bob_, [&](const Client& warp) { return wait(warp, fs(), bobs); }), kBlockBytes);
  EXPECT_EQ(letter_of("/open/g"), 'x');
  EXPECT_EQ(close_by(bob_, written), 0);
  EXPECT_EQ(letter_of("/open/f"), 'o');  // the write has not happened
  for (const Batch& batch : fs().batches->batches) EXPECT_EQ(batch.taken, 0u);
  char byte = 0;
  EXPECT_EQ(by(bob_, [&](const Client& warp) { return pread(warp, fs(), others, &byte, 1, 0); }),
            1);
  EXPECT_EQ(close_by(bob_, others), 0);
  mount_again();
}

TEST_P(ClientsTest, a_descriptor_that_is_held_is_closed_by_the_last_who_holds_it) {
  put_file("/open/f", kBlockBytes, 'o');
  const int fd = open_by(bob_, "/open/f", kOpenReadOnly);
  ASSERT_GE(fd, 0);
  char byte = 0;
  int next = -1;
  EXPECT_EQ(by(ann_, [&](const Client& w) { return hold_descriptor(w, fs(), fd); }), -EBADF);
  EXPECT_EQ(by(bob_,
               [&](const Client& warp) {
                 return with_descriptor(warp, fs(), fd, [&]() -> int64_t {
                   EXPECT_EQ(with_descriptor(warp, fs(), fd, [&] { return close(warp, fs(), fd); }),
                             0);
                   EXPECT_EQ(close(warp, fs(), fd), -EBADF);
                   EXPECT_EQ(pread(warp, fs(), fd, &byte, 1, 0), -EBADF);
                   EXPECT_EQ(unlink(Client(warp, root_), fs(), "/open/f"), 0);
                   const int other = open(warp, fs(), "/open", kOpenDirectory);
                   EXPECT_NE(other, fd);  // as long as a call may use it
                   if (warp.thread_rank() == 0) next = other;
                   return 5;
                 });
               }),
            5);
  EXPECT_EQ(by(bob_, [&](const Client& w) { return hold_descriptor(w, fs(), fd); }), -EBADF);
  EXPECT_EQ(close_by(bob_, next), 0);
  EXPECT_EQ(open_by(bob_, "/open", kOpenDirectory), fd);
  EXPECT_EQ(close_by(bob_, fd), 0);
  mount_again();
}

// Some close what others read: each read is of the file that the number stood for, or there is
// none.
TEST_P(ClientsTest, closing_beside_calls_that_hold_a_descriptor) {
  put_file("/open/a", 64, 'a');
  put_file("/open/b", 64, 'b');
  const uint32_t before = open_descriptors();
  std::atomic<int> shared = -1;
  std::atomic<uint32_t> wrong = 0;
  const uint32_t steps = width() == 1 ? 2000 : 100;
  run_crowd({4, width()}, [&](const simt::Warp& own, uint32_t index) {
    const Client bob(own, bob_);
    const Client ann(own, ann_);
    char text[64];
    for (uint32_t i = 0; i < steps; ++i) {
      if (index == 0) {
        const int fd = open(bob, fs(), "/open/b", kOpenReadOnly);
        if (own.thread_rank() == 0) shared = fd;
        own.sync();
        if (close(bob, fs(), fd) != 0) ++wrong;
      } else if (index == 1) {
        const int fd = open(ann, fs(), "/open/a", kOpenReadOnly);
        if (close(ann, fs(), fd) != 0) ++wrong;
      } else {
        const int fd = own.shfl(shared.load(), 0);
        text[0] = 'b';
        const int64_t got = with_descriptor(bob, fs(), fd, [&] {
          return pread_lanes(bob, fs(), {fd, text, 1, 0});
        });
        if ((got != 1 && got != -EBADF) || text[0] != 'b') ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace gofs::vfs
