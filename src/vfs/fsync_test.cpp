// SPDX-License-Identifier: Apache-2.0
//
// fsync: what it writes and what it leaves to checkpoints.
#include "vfs/fsync.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "f2fs/writing_for_test.hpp"
#include "testing/held_command.hpp"
#include "vfs/change_attributes.h"
#include "vfs/make_file.h"
#include "vfs/open.h"
#include "vfs/rename.h"
#include "vfs/set_xattr.h"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

class FsyncTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  explicit FsyncTest(const testing::VolumeRigOptions& options = testing::with_a_fault())
      : image_([](image::ImageBuilder& builder) {
          const auto add = [&](const char* name, bool inlined, uint64_t bytes) {
            image::FileSpec spec;
            spec.name = name;
            spec.attributes = {.mode = 0666, .uid = 0, .gid = 0};
            spec.inline_data = inlined;
            spec.size_bytes = bytes;
            TestImage::must(builder.add_file(builder.root(), spec));
          };
          add("inline", true, 10);
          add("blocks", false, 30'000);
          TestImage::must(builder.add_directory(builder.root(), "dir", {}, {}, nullptr));
        }),
        writing_(image_, width(), options) {
    EXPECT_EQ(writing_.begin().error, 0);
    fs().writer = &writing_.writer();
  }
  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return writing_.rig().fs(); }
  f2fs::Volume& volume() { return writing_.volume(); }
  template <typename Body>
  int64_t alone(Body body) {
    int64_t answer = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int64_t mine = body(warp);
      if (warp.thread_rank() == 0) answer = mine;
    });
    return answer;
  }
  int open_file(const char* path, uint32_t flags) {
    return static_cast<int>(
        alone([&](const simt::Warp& warp) { return open(warp, fs(), path, flags, 0644); }));
  }
  int64_t write_at(int fd, const std::string& bytes, uint64_t offset) {
    return alone([&](const simt::Warp& warp) {
      return pwrite(warp, fs(), fd, bytes.data(), bytes.size(), offset);
    });
  }
  int64_t sync_fd(int fd) {
    return alone([&](const simt::Warp& warp) { return fsync(warp, fs(), fd); });
  }
  int64_t sync_data(int fd) {
    return alone([&](const simt::Warp& warp) { return fdatasync(warp, fs(), fd); });
  }
  /// What `call()` answers when one of its commands fails: the one after `skip` others of its kind.
  template <typename Call>
  int64_t with_failing(format::nvme::IoOpcode opcode, uint32_t skip, Call call) {
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(opcode);
    rule.skip = skip;
    rule.count = 1;
    rule.status = format::nvme::kWriteFault;
    writing_.rig().add_fault(rule);
    const int64_t answer = call();
    writing_.rig().clear_faults();
    return answer;
  }
  uint32_t ino_of(int fd) { return fs().open_inodes[fs().descriptors[fd].open_inode].inode.ino; }
  uint64_t version() { return volume().checkpoint_version; }

  /// What recovery would find on the disk now.
  std::vector<const format::NodeBlock*> logged_nodes() {
    const auto& checkpoint =
        *reinterpret_cast<const format::Checkpoint*>(volume().checkpoint_blocks);
    uint32_t block = volume().geometry.block_of(checkpoint.cur_segno(format::kWarmNode),
                                                checkpoint.cur_blkoff(format::kWarmNode));
    std::vector<const format::NodeBlock*> nodes;
    while (volume().is_main_block(block) && nodes.size() < 10'000) {
      const auto* const node = reinterpret_cast<const format::NodeBlock*>(image_.block(block));
      if (node->footer.cp_ver != f2fs::detail::node_version(volume())) break;
      nodes.push_back(node);
      block = node->footer.next_blkaddr;
    }
    return nodes;
  }
  void expect_sound() {
    EXPECT_EQ(f2fs::count_findings(*volume().corruptions), 0u);
    EXPECT_EQ(writing_.writer().reserved, 0u);
    ASSERT_EQ(writing_.checkpoint(true), 0);
    EXPECT_TRUE(f2fs::fsck_likes(image_));
  }

  TestImage image_;
  f2fs::WritingRig writing_;
};
GOFS_AT_BOTH_WIDTHS(FsyncTest);

TEST_P(FsyncTest, nodes_go_to_the_log_and_no_checkpoint_is_made) {
  const uint64_t before = version();
  const int fd = open_file("/blocks", kOpenReadWrite);
  EXPECT_EQ(sync_fd(fd), 0) << "nothing has changed";
  EXPECT_TRUE(logged_nodes().empty());
  ASSERT_EQ(write_at(fd, std::string(5000, 'x'), 4090), 5000);
  EXPECT_EQ(sync_fd(fd), 0);
  ASSERT_EQ(logged_nodes().size(), 1u);
  EXPECT_EQ(logged_nodes()[0]->footer.ino, ino_of(fd));
  EXPECT_EQ(logged_nodes()[0]->footer.flag.value(), format::kNodeCold | format::kNodeFsync);
  EXPECT_EQ(sync_fd(fd), 0);
  EXPECT_EQ(logged_nodes().size(), 1u) << "it was durable";
  // Nodes below the inode come before it.
  ASSERT_EQ(write_at(fd, std::string(5000, 'y'), 8 << 20), 5000);
  ASSERT_EQ(write_at(fd, std::string(5000, 'z'), 24 << 20), 5000);
  EXPECT_EQ(sync_fd(fd), 0);
  const auto nodes = logged_nodes();
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[1]->footer.ino, ino_of(fd));
  EXPECT_EQ(nodes[1]->footer.flag.value() & format::kNodeFsync, 0u);
  EXPECT_EQ(nodes[3]->footer.nid, ino_of(fd));
  EXPECT_NE(nodes[3]->footer.flag.value() & format::kNodeFsync, 0u);
  EXPECT_EQ(version(), before);
  EXPECT_TRUE(f2fs::fsck_likes(image_)) << "with an fsync log that it does not follow";
  expect_sound();
}

TEST_P(FsyncTest, fdatasync_leaves_an_inode_of_which_only_times_have_changed) {
  const uint64_t before = version();
  const int fd = open_file("/blocks", kOpenReadWrite);
  const auto expect_logged = [&](const char* what, size_t nodes, bool ends_with_inode) {
    ASSERT_EQ(logged_nodes().size(), nodes) << what;
    const auto& footer = logged_nodes().back()->footer;
    EXPECT_EQ(footer.nid == ino_of(fd), ends_with_inode) << what;
    EXPECT_EQ(footer.ino, ino_of(fd)) << what;
    EXPECT_NE(footer.flag.value() & format::kNodeFsync, 0u) << what;
  };
  const auto set_times = [&](int64_t seconds) {
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                const f2fs::TimeStamp at{seconds, 0};
                return futimens(warp, fs(), fd, at, at);
              }),
              0);
  };
  ASSERT_EQ(write_at(fd, std::string(5000, 'x'), 8 << 20), 5000);
  EXPECT_EQ(sync_data(fd), 0);
  expect_logged("it is longer, and has a node below its inode", 2, true);
  ASSERT_EQ(write_at(fd, std::string(5000, 'y'), 8 << 20), 5000);
  EXPECT_EQ(sync_data(fd), 0);
  expect_logged("addresses below the inode", 3, false);
  set_times(1000);
  EXPECT_EQ(sync_data(fd), 0);
  expect_logged("times alone", 3, false);
  EXPECT_EQ(sync_fd(fd), 0);
  expect_logged("fsync takes them", 4, true);
  set_times(2000);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return fchmod(warp, fs(), fd, 0600); }), 0);
  EXPECT_EQ(sync_data(fd), 0);
  expect_logged("who may read it", 5, true);
  ASSERT_EQ(write_at(fd, std::string(5000, 'z'), 0), 5000);
  EXPECT_EQ(sync_data(fd), 0);
  expect_logged("addresses in the inode", 6, true);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd, 9 << 20); }), 0);
  EXPECT_EQ(sync_data(fd), 0);
  expect_logged("its size, and zeros behind the former end", 8, true);
  // Every write: without the inode, and with it.
  const int contents = open_file("/blocks", kOpenWriteOnly | kOpenDataSync);
  ASSERT_EQ(write_at(contents, std::string(5000, 'a'), 8 << 20), 5000);
  expect_logged("a write that ends with fdatasync", 9, false);
  const int all = open_file("/blocks", kOpenWriteOnly | kOpenSync);
  ASSERT_EQ(write_at(all, std::string(5000, 'b'), 8 << 20), 5000);
  expect_logged("a write that ends with fsync", 11, true);
  EXPECT_EQ(version(), before);
  EXPECT_EQ(sync_data(-1), -EBADF);
  expect_sound();
}

TEST_P(FsyncTest, fdatasync_of_a_new_file_brings_its_name) {
  const int fd = open_file("/dir/new", kOpenReadWrite | kOpenCreate);
  EXPECT_EQ(sync_data(fd), 0);
  ASSERT_EQ(logged_nodes().size(), 1u);
  EXPECT_NE(logged_nodes()[0]->footer.flag.value() & format::kNodeDentry, 0u);
  expect_sound();
}

TEST_P(FsyncTest, nodes_that_are_not_marked_get_their_inode_at_the_next_fdatasync) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  ASSERT_EQ(write_at(fd, std::string(5000, 'x'), 8 << 20), 5000);
  EXPECT_EQ(sync_fd(fd), 0);
  ASSERT_EQ(write_at(fd, std::string(5000, 'y'), 8 << 20), 5000);
  constexpr auto kFlush = format::nvme::IoOpcode::kFlush;
  EXPECT_EQ(with_failing(kFlush, 0, [&] { return sync_fd(fd); }), -EIO);
  ASSERT_EQ(logged_nodes().size(), 3u) << "the node below the inode";
  EXPECT_EQ(logged_nodes().back()->footer.flag.value() & format::kNodeFsync, 0u);
  EXPECT_EQ(sync_data(fd), 0);
  ASSERT_EQ(logged_nodes().size(), 4u);
  EXPECT_EQ(logged_nodes().back()->footer.nid, ino_of(fd));
  EXPECT_NE(logged_nodes().back()->footer.flag.value() & format::kNodeFsync, 0u);
  // The flush comes before a node that is marked.
  ASSERT_EQ(write_at(fd, std::string(5000, 'z'), 8 << 20), 5000);
  EXPECT_EQ(with_failing(kFlush, 0, [&] { return sync_data(fd); }), -EIO);
  EXPECT_EQ(logged_nodes().size(), 4u);
  EXPECT_EQ(sync_data(fd), 0);
  EXPECT_EQ(logged_nodes().size(), 5u);
  expect_sound();
}

TEST_P(FsyncTest, a_log_right_after_the_mount_does_not_lead_to_parts_of_another) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  const auto write_and_sync = [&] {
    ASSERT_EQ(write_at(fd, "contents", 0), 8);
    EXPECT_EQ(sync_fd(fd), 0);
  };
  const auto block_of_fsync_log = [&](uint32_t number) {
    const auto& checkpoint =
        *reinterpret_cast<const format::Checkpoint*>(volume().checkpoint_blocks);
    return volume().geometry.block_of(checkpoint.cur_segno(format::kWarmNode),
                                      checkpoint.cur_blkoff(format::kWarmNode) + number);
  };
  const uint64_t before = version();
  // What a crash may have left that lost the nodes before it; not looked at that far.
  auto* const left = reinterpret_cast<format::NodeBlock*>(image_.block(block_of_fsync_log(70)));
  left->footer.nid = left->footer.ino = ino_of(fd);
  left->footer.cp_ver = f2fs::detail::node_version(volume());
  left->footer.next_blkaddr = block_of_fsync_log(71);
  for (uint32_t i = 0; i < 70; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(version(), before);
    ASSERT_EQ(logged_nodes().size(), i);
    write_and_sync();
    if (HasFailure()) return;
  }
  // The last one would have named it.
  EXPECT_EQ(version(), before + 1);
  EXPECT_TRUE(logged_nodes().empty());
  for (uint32_t i = 0; i < 70; ++i) write_and_sync();
  EXPECT_EQ(version(), before + 1);
  EXPECT_EQ(logged_nodes().size(), 70u);
  expect_sound();
}

TEST_P(FsyncTest, a_log_right_after_the_mount_keeps_to_its_segment) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  const auto& log = writing_.writer().logs[format::kWarmNode];
  const uint32_t room = format::kBlocksPerSegment - log.next;
  const uint64_t before = version();
  uint32_t nodes = 0;
  for (; version() == before && nodes < 2 * format::kBlocksPerSegment; ++nodes) {
    ASSERT_EQ(write_at(fd, "contents", 0), 8);
    EXPECT_EQ(sync_fd(fd), 0);
  }
  EXPECT_EQ(nodes, room) << "the last of them with the checkpoint";
  expect_sound();
}

TEST_P(FsyncTest, a_new_file_brings_its_name) {
  const uint64_t before = version();
  const int fd = open_file("/dir/new", kOpenReadWrite | kOpenCreate);
  ASSERT_EQ(write_at(fd, "hello", 0), 5);
  for (uint32_t turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(sync_fd(fd), 0);
    ASSERT_EQ(logged_nodes().size(), turn + 1);
    EXPECT_EQ(logged_nodes().back()->footer.flag.value(),
              format::kNodeCold | format::kNodeFsync | format::kNodeDentry);
    ASSERT_EQ(write_at(fd, std::string(9000, 'n'), 0), 9000);
  }
  EXPECT_EQ(version(), before);
  ASSERT_EQ(writing_.checkpoint(false), 0);
  EXPECT_TRUE(logged_nodes().empty());
  ASSERT_EQ(write_at(fd, "hello", 0), 5);
  EXPECT_EQ(sync_fd(fd), 0);
  ASSERT_EQ(logged_nodes().size(), 1u);
  EXPECT_EQ(logged_nodes()[0]->footer.flag.value() & format::kNodeDentry, 0u);
  expect_sound();
}

TEST_P(FsyncTest, what_recovery_could_not_put_back_takes_a_checkpoint) {
  const auto expect_checkpoint = [&](const char* what, int fd) {
    const uint64_t before = version();
    EXPECT_EQ(sync_fd(fd), 0) << what;
    EXPECT_EQ(version(), before + 1) << what;
    EXPECT_TRUE(logged_nodes().empty()) << what;
  };
  const auto must = [&](int64_t result) { ASSERT_EQ(result, 0); };
  const int blocks = open_file("/blocks", kOpenReadWrite);
  must(alone([&](const simt::Warp& warp) { return mkdir(warp, fs(), "/made", 0755); }));
  const int in_new = open_file("/made/file", kOpenReadWrite | kOpenCreate);
  expect_checkpoint("in a directory that is new", in_new);
  must(alone([&](const simt::Warp& warp) { return mkdir(warp, fs(), "/other", 0755); }));
  expect_checkpoint("a directory", open_file("/", kOpenReadOnly | kOpenDirectory));
  const std::string value(3000, 'v');
  must(alone([&](const simt::Warp& warp) {
    return fsetxattr(warp, fs(), blocks, "user.large", value.data(), value.size(), 0);
  }));
  EXPECT_EQ(sync_fd(blocks), 0);
  must(alone(
      [&](const simt::Warp& warp) { return fremovexattr(warp, fs(), blocks, "user.large"); }));
  expect_checkpoint("attributes that were in a node", blocks);
  must(alone([&](const simt::Warp& warp) { return link(warp, fs(), "/blocks", "/again"); }));
  expect_checkpoint("another name", blocks);
  // A name that the last checkpoint has, of another file.
  const auto remove_name = [&](const simt::Warp& warp) {
    return detail::change_inode(
        warp, fs(), format::kRootIno, 8, [](const f2fs::Inode&) { return 0; },
        [&](f2fs::Operation& op, f2fs::Inode& root) {
          uint32_t links = 0;
          const int counted = f2fs::change_links(warp, op, 1u, ino_of(blocks), -1, links);
          EXPECT_EQ(counted, 0);
          return f2fs::remove_entry(warp, op, root, {"again", 5});
        });
  };
  must(alone(remove_name));
  const int again = open_file("/again", kOpenReadWrite | kOpenCreate);
  expect_checkpoint("a name that was another's", again);
  const uint64_t before = version();
  const int fresh = open_file("/fresh", kOpenReadWrite | kOpenCreate);
  EXPECT_EQ(sync_fd(fresh), 0);
  EXPECT_EQ(version(), before);
  expect_sound();
}

TEST_P(FsyncTest, a_name_that_is_durable_takes_no_checkpoint_any_more) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  const auto expect_no_checkpoint = [&](const char* what) {
    const uint64_t before = version();
    const size_t nodes = logged_nodes().size();
    ASSERT_EQ(write_at(fd, what, 0), static_cast<int64_t>(std::string(what).size()));
    EXPECT_EQ(sync_fd(fd), 0) << what;
    EXPECT_EQ(version(), before) << what;
    EXPECT_EQ(logged_nodes().size(), nodes + 1) << what;
  };
  const auto expect_checkpoint = [&](const char* what) {
    const uint64_t before = version();
    EXPECT_EQ(sync_fd(fd), 0) << what;
    EXPECT_EQ(version(), before + 1) << what;
  };
  const auto move = [&](const char* from, const char* to) {
    EXPECT_EQ(alone([&](const simt::Warp& warp) { return rename(warp, fs(), from, to); }), 0);
  };
  move("/blocks", "/moved");
  expect_checkpoint("renamed");
  expect_no_checkpoint("renamed before");
  move("/moved", "/dir/moved");
  ASSERT_EQ(writing_.checkpoint(false), 0);
  expect_no_checkpoint("renamed before another's checkpoint");
  EXPECT_EQ(
      alone([&](const simt::Warp& warp) { return link(warp, fs(), "/dir/moved", "/second"); }), 0);
  expect_checkpoint("linked");
  expect_no_checkpoint("two names");
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return unlink(warp, fs(), "/dir/moved"); }), 0);
  expect_no_checkpoint("one of two, and not the one that the inode knows");
  move("/second", "/only");
  expect_checkpoint("renamed again");
  expect_no_checkpoint("and again before");
  EXPECT_EQ(logged_nodes().back()->inode.i_advise & format::kAdviseLostPino, 0u);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return unlink(warp, fs(), "/only"); }), 0);
  expect_checkpoint("no name");
  expect_sound();
}

TEST_P(FsyncTest, attributes_in_a_node_come_before_their_inode) {
  const uint64_t before = version();
  const int fd = open_file("/blocks", kOpenReadWrite);
  const std::string value(3000, 'v');
  for (uint32_t turn = 1; turn <= 2; ++turn) {
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                return fsetxattr(warp, fs(), fd, "user.large", value.data(), 2998 + turn, 0);
              }),
              0);
    EXPECT_EQ(turn == 1 ? sync_fd(fd) : sync_data(fd), 0);
    ASSERT_EQ(logged_nodes().size(), 2 * turn);
    const auto& node = logged_nodes()[2 * turn - 2]->footer;
    EXPECT_EQ(node.node_offset(), format::kXattrNodeOffset);
    EXPECT_EQ(node.flag.value() & format::kNodeFsync, 0u);
    EXPECT_EQ(logged_nodes().back()->footer.nid, ino_of(fd));
  }
  EXPECT_EQ(version(), before);
  expect_sound();
}

TEST_P(FsyncTest, synchronous_writes_are_in_the_log) {
  const uint64_t before = version();
  const int fd = open_file("/inline", kOpenWriteOnly | kOpenDataSync);
  for (uint32_t i = 1; i <= 5; ++i) {
    ASSERT_EQ(write_at(fd, "line", 4 * i), 4);
    EXPECT_EQ(logged_nodes().size(), i);
  }
  EXPECT_EQ(version(), before);
  EXPECT_EQ(sync_fd(-1), -EBADF);
  EXPECT_EQ(sync_fd(open_file("/inline", kOpenPath)), -EBADF);
  EXPECT_EQ(sync_fd(open_file("/inline", kOpenReadOnly)), 0);
  expect_sound();
}

TEST_P(FsyncTest, a_disk_that_fails_says_so_and_the_next_one_makes_it_good) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  ASSERT_EQ(write_at(fd, std::string(5000, 'x'), 8 << 20), 5000);
  EXPECT_EQ(sync_fd(fd), 0);
  struct Failure {
    format::nvme::IoOpcode opcode;
    uint32_t skip;
    uint32_t checkpoints;  // that it takes to make it good
  };
  // A node below the inode, the inode, the flush between them.
  for (const Failure& failure : {Failure{format::nvme::IoOpcode::kWrite, 0, 1},
                                 Failure{format::nvme::IoOpcode::kWrite, 1, 1},
                                 Failure{format::nvme::IoOpcode::kFlush, 0, 0}}) {
    ASSERT_EQ(write_at(fd, std::string(5000, 'y'), 8 << 20), 5000);
    EXPECT_EQ(with_failing(failure.opcode, failure.skip, [&] { return sync_fd(fd); }), -EIO);
    const uint64_t before = version();
    EXPECT_EQ(sync_fd(fd), 0);
    EXPECT_EQ(version(), before + failure.checkpoints);
  }
  expect_sound();
}

TEST_P(FsyncTest, a_new_file_is_not_forgotten_to_be_new_where_its_first_fsync_fails) {
  const int fd = open_file("/dir/new", kOpenReadWrite | kOpenCreate);
  ASSERT_EQ(write_at(fd, "in the inode", 0), 12);
  ASSERT_EQ(write_at(fd, std::string(5000, 'x'), 8 << 20), 5000) << "and out of it";
  EXPECT_EQ(with_failing(format::nvme::IoOpcode::kFlush, 0, [&] { return sync_fd(fd); }), -EIO);
  ASSERT_FALSE(logged_nodes().empty()) << "its inode came before the node below it";
  EXPECT_EQ(sync_fd(fd), 0);
  constexpr uint32_t kMarks = format::kNodeFsync | format::kNodeDentry;
  EXPECT_EQ(logged_nodes().back()->footer.flag.value() & kMarks, kMarks)
      << "else it is not found again";
  expect_sound();
}

TEST_P(FsyncTest, many_at_once_make_one_log) {
  const uint32_t warps = width() == 1 ? 8 : 3;
  std::vector<int> fds;
  for (uint32_t i = 0; i < warps; ++i) {
    fds.push_back(open_file(("/dir/f" + std::to_string(i)).c_str(), kOpenReadWrite | kOpenCreate));
    ASSERT_GE(fds.back(), 0);
  }
  const int shared = open_file("/blocks", kOpenReadWrite);
  testing::run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const std::string mine(6000, static_cast<char>('a' + index));
    for (uint32_t turn = 0; turn < 12; ++turn) {
      const int fd = turn % 3 == 2 ? shared : fds[index];
      EXPECT_EQ(pwrite(warp, fs(), fd, mine.data(), mine.size(), 6000 * (turn + index)), 6000);
      EXPECT_EQ(turn % 4 == 1 ? fdatasync(warp, fs(), fd) : fsync(warp, fs(), fd), 0);
      if (index == 0 && turn % 5 == 4) {
        EXPECT_EQ(sync(warp, fs()), 0);
      }
    }
  });
  EXPECT_EQ(writing_.writer().fsync_log.broken, 0u);
  EXPECT_EQ(writing_.writer().fsync_log.issued, writing_.writer().fsync_log.written);
  expect_sound();
}

// Who fsyncs side by side: each warp has a queue of its own.
class FsyncStepsTest : public FsyncTest {
 protected:
  FsyncStepsTest() : FsyncTest(options()) {}
  uint32_t issued() { return simt::load_relaxed(writing_.writer().fsync_log.issued); }

 private:
  static testing::VolumeRigOptions options() {
    testing::VolumeRigOptions options = testing::with_a_fault();
    options.device.io_queues = 4;
    return options;
  }
};
GOFS_AT_BOTH_WIDTHS(FsyncStepsTest);

// The first portion of the fsync log is held back by the SSD. The second is written, and nothing
// that is marked in it would be found without the first. A third warp finds the file clean. It
// calls what fsync calls with the file's lock, which would have it wait for the second.
TEST_P(FsyncStepsTest, none_is_done_before_all_portions_before_are_on_the_disk) {
  const int first = open_file("/inline", kOpenReadWrite);
  const int file = open_file("/blocks", kOpenReadWrite);
  ASSERT_EQ(write_at(file, std::string(5000, 'x'), 8 << 20), 5000);
  ASSERT_EQ(sync_fd(file), 0);
  const uint32_t ino = ino_of(file);
  for (const f2fs::SyncScope scope : {f2fs::SyncScope::kAll, f2fs::SyncScope::kContents}) {
    SCOPED_TRACE(static_cast<int>(scope));
    ASSERT_EQ(write_at(first, "first", 0), 5);
    // In the inode; or below it, and of the inode times alone.
    const uint64_t offset = scope == f2fs::SyncScope::kAll ? 0 : 8 << 20;
    ASSERT_EQ(write_at(file, std::string(5000, 'y'), offset), 5000);
    const size_t nodes = logged_nodes().size();
    const uint32_t before = issued();
    std::atomic<bool> release{false};
    std::atomic<uint32_t> done{0};
    std::atomic<uint32_t> early{0};
    ssd::FaultRule writes;
    writes.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
    const testing::HeldCommand held(writing_.rig(), 0, writes);
    testing::run_crowd({4, width()}, [&](const simt::Warp& warp, uint32_t index) {
      if (index == 3) {
        EXPECT_TRUE(testing::wait_until([&] { return issued() == before + 2; }));
        (void)testing::wait_until([&] { return done != 0; }, testing::kWatchNs);
        warp.sync();
        release = true;
        held.release(warp);
        return;
      }
      const bool may_begin =
          index == 0 ||
          (index == 1 ? held.wait() : testing::wait_until([&] { return issued() == before + 2; }));
      EXPECT_TRUE(may_begin);
      EXPECT_EQ(index == 0 ? fsync(warp, fs(), first)
                           : f2fs::sync_file(warp, volume(), writing_.writer(), ino, scope),
                0);
      if (!release) ++early;
      ++done;
    });
    EXPECT_EQ(early, 0u);
    EXPECT_EQ(logged_nodes().size(), nodes + 2);
    EXPECT_EQ(issued(), before + 2);
  }
  EXPECT_EQ(writing_.writer().fsync_log.broken, 0u);
  expect_sound();
}

TEST_P(FsyncStepsTest, who_waits_for_a_portion_that_fails_takes_a_checkpoint) {
  const int file = open_file("/blocks", kOpenReadWrite);
  uint64_t offset = 8 << 20;
  for (const f2fs::SyncScope scope : {f2fs::SyncScope::kAll, f2fs::SyncScope::kContents}) {
    SCOPED_TRACE(static_cast<int>(scope));
    ASSERT_EQ(write_at(file, std::string(5000, 'x'), offset), 5000);
    offset += 1 << 20;
    const uint64_t version_before = version();
    // Another warp has taken the place before, and fails.
    f2fs::Writer& writer = writing_.writer();
    const uint32_t before = simt::add_relaxed(writer.fsync_log.issued, 1u);
    testing::run_crowd({2, width()}, [&](const simt::Warp& warp, uint32_t index) {
      if (index == 0) {
        EXPECT_EQ(
            scope == f2fs::SyncScope::kAll ? fsync(warp, fs(), file) : fdatasync(warp, fs(), file),
            0);
        return;
      }
      // Within an operation, as all who have a place: the checkpoint comes behind it.
      f2fs::OperationSlot operation;
      EXPECT_EQ(f2fs::begin_operation(warp, {volume(), writer}, 1, operation), 0);
      EXPECT_TRUE(testing::wait_until([&] { return issued() == before + 2; }));
      warp.sync();
      if (warp.thread_rank() == 0) f2fs::detail::break_fsync_log(*operation);
      f2fs::end_operation(warp, operation);
    });
    EXPECT_EQ(version(), version_before + 1);
    EXPECT_TRUE(logged_nodes().empty());
    EXPECT_EQ(writer.fsync_log.broken, 0u);
  }
  expect_sound();
}

}  // namespace
}  // namespace gofs::vfs
