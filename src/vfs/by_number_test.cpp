// SPDX-License-Identifier: Apache-2.0
//
// Inodes by numbers that are out of date or made up: an answer, and no report of damage; and files
// of batches whose numbers other files have by now.
#include "vfs/by_number.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "f2fs/node_space.h"
#include "f2fs/operation_for_test.hpp"
#include "f2fs/read.h"
#include "vfs/batch_create.h"
#include "vfs/remove_file.h"
#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

class ByNumber : public WritingVfsTest {
 protected:
  ByNumber() : WritingVfsTest([](image::ImageBuilder&) {}) { fs().lock_timeout_ns = kPatienceNs; }

  uint32_t findings() { return f2fs::count_findings(*volume().corruptions); }
  uint32_t ino_of(const char* path) { return static_cast<uint32_t>(stat_of_path(path).ino); }
  int64_t load(uint32_t ino) {
    return as_root([&](const simt::Warp& warp) {
      return reading_paths(warp, fs(), [&] {
        f2fs::Inode inode{};
        return simt::first_error(warp, load_numbered(warp, fs(), warp.ballot(true), ino, inode));
      });
    });
  }
  BatchTable& batches() { return *fs().batches; }
  BatchEntry& entry(int bd, uint32_t index) {
    return batches().files[batches().batches[bd].first + index];
  }
  /// A batch of the file `name` in the root, with its inode.
  int open_one(const char* name) {
    return static_cast<int>(as_root([&](const simt::Warp& warp) {
      const int bd = begin_batch(warp, fs(), batches(), "/", 1);
      EXPECT_GE(bd, 0);
      Batch& batch = batches().batches[bd];
      find_batch(warp, fs(), batches(), batch, &name, 0, 1);
      load_batch(warp, fs(), batches(), batch, 0, 1);
      return bd;
    }));
  }
  /// A batch that has made the file `name` in the root, of 100 bytes.
  int make_one(const char* name) {
    static constexpr uint64_t kOffset = 0;
    static constexpr uint64_t kBytes = 100;
    static constexpr uint8_t kContents[kBytes] = {'m', 'a', 'd', 'e'};
    return static_cast<int>(as_root([&](const simt::Warp& warp) {
      const BatchCreation creation{"/", &name, 1, 0644, kContents, &kOffset, &kBytes};
      const int bd = begin_creation(warp, fs(), creation);
      EXPECT_GE(bd, 0);
      Batch& batch = batches().batches[bd];
      prepare_creation(warp, fs(), batch, 0, 1);
      create_batch(warp, fs(), batch, creation, 0, 1);
      end_creation(warp, fs(), batch);
      return bd;
    }));
  }
  /// Bytes read of a batch of one file, to `bytes_`.
  int64_t read_one(int bd) {
    std::memset(bytes_, 0, sizeof(bytes_));
    return as_root([&](const simt::Warp& warp) {
      static constexpr uint64_t kOffset = 0;
      return static_cast<int64_t>(
          read_batch(warp, fs(), batches(), batches().batches[bd], bytes_, &kOffset, 0, 1));
    });
  }
  void end_one(int bd) {
    EXPECT_EQ(as_root([&](const simt::Warp& warp) { return end_batch(warp, batches(), bd); }), 0);
  }

  static constexpr uint64_t kPatienceNs = 20'000'000;
  alignas(kBlockBytes) uint8_t bytes_[8 * kBlockBytes] = {};
};
GOFS_AT_BOTH_WIDTHS(ByNumber);

TEST_P(ByNumber, a_number_of_no_inode_is_no_damage) {
  const uint32_t nids = volume().geometry.nid_count();
  EXPECT_EQ(load(nids), -ESTALE);
  EXPECT_EQ(load(~0u), -ESTALE);
  EXPECT_EQ(load(nids - 1), -ESTALE);
  put_file("/f", 100, 'a');
  const uint32_t ino = ino_of("/f");
  EXPECT_EQ(load(ino), 0);
  as_root([&](const simt::Warp& warp) { return unlink(warp, fs(), "/f"); });
  EXPECT_EQ(load(ino), -ESTALE);
  EXPECT_EQ(findings(), 0u);
}

TEST_P(ByNumber, one_that_is_open_and_has_no_name_is_gone) {
  put_file("/f", 100, 'a');
  const uint32_t ino = ino_of("/f");
  const int batch = open_one("f");
  EXPECT_EQ(entry(batch, 0).error, 0);
  end_one(batch);
  const auto fd = static_cast<int>(
      as_root([&](const simt::Warp& warp) { return open(warp, fs(), "/f", kOpenReadOnly); }));
  as_root([&](const simt::Warp& warp) { return unlink(warp, fs(), "/f"); });
  EXPECT_EQ(load(ino), -ESTALE);
  as_root([&](const simt::Warp& warp) {
    const uint32_t one = warp.ballot(warp.thread_rank() == 0);
    BatchEntry file{};
    file.ino = ino;
    detail::load_batch_files(warp, fs(), one, file);
    if (warp.thread_rank() == 0) {
      EXPECT_EQ(file.error, -ESTALE);
      EXPECT_EQ(file.size_bytes, 0u);
    }
    return close(warp, fs(), fd);
  });
  EXPECT_EQ(findings(), 0u);
}

TEST_P(ByNumber, one_that_is_being_made_or_removed_is_no_damage) {
  uint32_t nid = 0;
  testing::run_crowd({1, width()}, [&](const simt::Warp& warp, uint32_t) {
    f2fs::TestOperation op(warp, volume(), *fs().writer);
    uint32_t mine = 0;
    EXPECT_EQ(f2fs::take_nids(warp, *op, 1u, 0, mine), 0);
    if (warp.thread_rank() == 0) nid = mine;
  });
  ASSERT_NE(nid, 0u);
  EXPECT_EQ(load(nid), -ESTALE) << "without its page";
  testing::run_crowd({1, width()}, [&](const simt::Warp& warp, uint32_t) {
    f2fs::TestOperation op(warp, volume(), *fs().writer);
    EXPECT_EQ(f2fs::make_nodes(warp, *op, 1u, nid, 3, 0, [](format::NodeBlock&) {}), 0);
  });
  EXPECT_EQ(load(nid), -ESTALE) << "with the page of another file's node";
  EXPECT_EQ(findings(), 0u);
  testing::run_crowd({1, width()}, [&](const simt::Warp& warp, uint32_t) {
    f2fs::TestOperation op(warp, volume(), *fs().writer);
    EXPECT_EQ(f2fs::remove_nodes(warp, *op, 1u, nid), 0);
  });
  EXPECT_EQ(load(nid), -ESTALE);
  EXPECT_EQ(findings(), 0u);
}

TEST_P(ByNumber, what_the_nat_says_of_an_inode_can_be_damage_still) {
  put_file("/f", 100, 'a');
  const uint32_t ino = ino_of("/f");
  as_root([&](const simt::Warp& warp) { return sync(warp, fs()); });
  testing::run_crowd({1, width()}, [&](const simt::Warp& warp, uint32_t) {
    f2fs::TestOperation op(warp, volume(), *fs().writer);
    EXPECT_EQ(f2fs::invalidate_pages(warp, *op, 1u, f2fs::page_key(f2fs::PageKind::kNode, ino)), 0);
    EXPECT_EQ(f2fs::change_nat(warp, *op, 1u, ino, [](format::NatEntry& at) { at.block_addr = 1; }),
              0);
  });
  EXPECT_EQ(load(ino), -EUCLEAN);
  EXPECT_EQ(findings(), 1u);
}

TEST_P(ByNumber, a_file_that_has_the_number_now_is_another_one) {
  put_file("/small", 100, 's');
  put_file("/large", 2 * kBlockBytes, 'l');
  for (const char* const path : {"/small", "/large"}) {
    const uint32_t ino = ino_of(path);
    const auto read = [&](uint32_t later) {
      return as_root([&](const simt::Warp& warp) {
        const uint32_t one = warp.ballot(warp.thread_rank() == 0);
        f2fs::Inode inode{};
        EXPECT_EQ(f2fs::load_inodes(warp, volume(), one, ino, inode), 0);
        inode.generation += later;
        const f2fs::Piece piece{0, 100, bytes_};
        return simt::first_error(warp,
                                 f2fs::read_pieces(warp, volume(), fs().pool, one, inode, piece));
      });
    };
    EXPECT_EQ(read(0), 0) << path;
    EXPECT_EQ(bytes_[99], path[1]);
    EXPECT_EQ(read(1), -ENOENT) << path;
  }
  EXPECT_EQ(findings(), 0u);
}

TEST_P(ByNumber, a_batch_does_not_read_a_file_that_has_the_number_now) {
  const int made = make_one("made");
  EXPECT_EQ(read_one(made), 100);
  EXPECT_STREQ(reinterpret_cast<const char*>(bytes_), "made");
  ++entry(made, 0).generation;
  EXPECT_EQ(read_one(made), 0);
  EXPECT_EQ(entry(made, 0).error, -ESTALE);
  end_one(made);
  EXPECT_EQ(findings(), 0u);
}

TEST_P(ByNumber, a_batch_does_not_list_a_directory_that_has_the_number_now) {
  put_file("/f", 100, 'a');
  const int bd = open_one("f");
  ++batches().batches[bd].directory_generation;
  const char* const name = "f";
  as_root([&](const simt::Warp& warp) {
    find_batch(warp, fs(), batches(), batches().batches[bd], &name, 0, 1);
    return 0;
  });
  EXPECT_EQ(entry(bd, 0).error, -ESTALE);
  end_one(bd);
}

TEST_P(ByNumber, a_batch_that_made_its_files_reads_them_as_an_address_reader) {
  put_file("/f", 100, 'a');
  const int made = make_one("made");
  OpenInode* open_inode = nullptr;
  const auto fd = static_cast<int>(as_root([&](const simt::Warp& warp) {
    const int mine = open(warp, fs(), "/made", kOpenReadWrite);
    if (warp.thread_rank() == 0) open_inode = &fs().open_inodes[fs().descriptors[mine].open_inode];
    return mine;
  }));
  fs().writer->writes_over = 1;
  const uint32_t& awaited = fs().writer->cleaning.overwriters_awaited;
  as_root([&](const simt::Warp& warp) {
    EXPECT_TRUE(try_join_block_writers(warp, open_inode->lock, awaited));
    return 0;
  });
  // Whose block is being written over is waited for.
  EXPECT_EQ(read_one(made), 0);
  EXPECT_EQ(entry(made, 0).error, -ETIMEDOUT);
  EXPECT_EQ(fs().writer->cleaning.address_readers, 0u);
  as_root([&](const simt::Warp& warp) {
    leave_block_writers(warp, open_inode->lock);
    return close(warp, fs(), fd);
  });
  entry(made, 0).error = 0;
  EXPECT_EQ(read_one(made), 100);
  end_one(made);
  // One that is an address reader from its beginning does not wait.
  const int opened = open_one("f");
  EXPECT_EQ(fs().writer->cleaning.address_readers, 1u);
  EXPECT_EQ(read_one(opened), 100);
  end_one(opened);
  EXPECT_EQ(fs().writer->cleaning.address_readers, 0u);
}

}  // namespace
}  // namespace gofs::vfs
