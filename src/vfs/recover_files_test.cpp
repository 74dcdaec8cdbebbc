// SPDX-License-Identifier: Apache-2.0
//
// What fsync promised is there after a power cut at any moment, also one during recovery; all else
// is as it was at some moment since. fsck.f2fs judges what recovery leaves.
#include "f2fs/recover_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "f2fs/writing_for_test.hpp"
#include "vfs/fsync.h"
#include "vfs/make_file.h"
#include "vfs/open.h"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint64_t kPartBytes = uint64_t{1} << 20;

void fill_to_recover(image::ImageBuilder& builder) {
  const auto add = [&](const char* name, bool inlined, uint64_t bytes) {
    image::FileSpec spec;
    spec.name = name;
    spec.attributes = {.mode = 0666, .uid = 0, .gid = 0};
    spec.inline_data = inlined;
    spec.size_bytes = bytes;
    spec.content = image::pattern_content(bytes);
    TestImage::must(builder.add_file(builder.root(), spec));
  };
  add("inline", true, 10);
  add("blocks", false, 30'000);
  add("long", false, 6'000'000);
  TestImage::must(builder.add_directory(builder.root(), "dir", {}, {}, nullptr));
}

VolumeRigOptions logging() {
  VolumeRigOptions options;
  options.ssd.logged_commands = 1 << 15;
  options.ssd.logged_bytes = 128 << 20;
  options.ssd.fault_capacity = 1;
  return options;
}

/// Segments that are open side by side: what is written lies in many, most of which the last
/// checkpoint has for free.
constexpr uint32_t kOpenToRecover = 3;

/// Where files are as they were at some moment, which those are not that were written over.
f2fs::WriterOptions with_open_segments() {
  f2fs::WriterOptions options;
  options.open_segments = kOpenToRecover;
  options.log_structured = true;
  return options;
}

/// A volume that is mounted as kernels/mount.h does it, by one warp, each time on another
/// processor.
class RecoveringRig {
 public:
  RecoveringRig(TestImage& image, uint32_t width, const VolumeRigOptions& options = {})
      : writing_(image, width, options, with_open_segments()), width_(width) {
    EXPECT_EQ(writing_.begin().error, 0);
    fs().writer = &writing_.writer();
  }
  Filesystem& fs() { return writing_.rig().fs(); }
  f2fs::WritingRig& writing() { return writing_; }
  template <typename Body>
  int64_t alone(Body body) {
    int64_t answer = 0;
    const uint32_t processor = turn_++ % kOpenToRecover;
    testing::run_crowd({processor + 1, width_}, [&](const simt::Warp& warp, uint32_t index) {
      if (index != processor) return;
      const int64_t mine = body(warp);
      if (warp.thread_rank() == 0) answer = mine;
    });
    return answer;
  }
  int64_t recover() {
    return alone([&](const simt::Warp& warp) {
      return f2fs::recover_files(warp, fs().volume, *fs().writer);
    });
  }
  /// What `path` holds, or nothing if there is no such file.
  std::optional<std::string> contents(const std::string& path) {
    const auto fd = static_cast<int>(alone(
        [&](const simt::Warp& warp) { return open(warp, fs(), path.c_str(), kOpenReadOnly); }));
    if (fd == -ENOENT) return std::nullopt;
    EXPECT_GE(fd, 0) << path;
    std::string bytes;
    std::string part(kPartBytes, '\0');
    for (int64_t got = 1; got > 0;) {
      got = alone([&](const simt::Warp& warp) {
        return pread(warp, fs(), fd, part.data(), part.size(), bytes.size());
      });
      EXPECT_GE(got, 0) << path;
      bytes.append(part, 0, static_cast<size_t>(std::max<int64_t>(got, 0)));
    }
    alone([&](const simt::Warp& warp) { return close(warp, fs(), fd); });
    return bytes;
  }
  ssd::WriteTrace trace() {
    return ssd::read_trace(writing_.rig().arena().space(), writing_.rig().controller());
  }
  uint32_t events() {
    // A command of which nothing is logged: who waits for it sees which others have ended.
    std::vector<uint8_t> page(2 * kBlockBytes);
    uint8_t* const at =
        page.data() + (kBlockBytes - reinterpret_cast<uintptr_t>(page.data()) % kBlockBytes);
    alone([&](const simt::Warp& warp) { return f2fs::read_blocks(warp, fs().volume, 1u, 0, at); });
    return trace().events;
  }

 private:
  f2fs::WritingRig writing_;
  const uint32_t width_;
  uint32_t turn_ = 0;
};

/// A file as it was made durable.
struct Promise {
  uint32_t began;  // event
  uint32_t ended;
  std::optional<std::string> contents;
};

class RecoverFilesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  RecoverFilesTest() : image_(fill_to_recover), before_(image_) {
    rig_ = std::make_unique<RecoveringRig>(image_, width(), logging());
    for (const char* path : {"/inline", "/blocks", "/long"}) {
      model_[path] = *rig_->contents(path);
      promises_[path].push_back({0, 0, model_[path]});
    }
  }
  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return rig_->fs(); }

  int descriptor(const std::string& path) {
    if (fds_.contains(path)) return fds_[path];
    fds_[path] = static_cast<int>(rig_->alone([&](const simt::Warp& warp) {
      return open(warp, fs(), path.c_str(), kOpenReadWrite | kOpenCreate, 0644);
    }));
    EXPECT_GE(fds_[path], 0);
    if (!model_.contains(path)) {
      model_[path] = "";
      promises_[path].push_back({0, 0, std::nullopt});
    }
    return fds_[path];
  }
  void write_file(const std::string& path, uint64_t offset, uint64_t bytes) {
    const int fd = descriptor(path);
    std::string data(bytes, '\0');
    for (char& byte : data) byte = static_cast<char>(random_());
    EXPECT_EQ(rig_->alone([&](const simt::Warp& warp) {
      return pwrite(warp, fs(), fd, data.data(), bytes, offset);
    }),
              static_cast<int64_t>(bytes));
    std::string& model = model_[path];
    if (model.size() < offset + bytes) model.resize(offset + bytes);
    model.replace(offset, bytes, data);
  }
  void cut_file(const std::string& path, uint64_t size) {
    const int fd = descriptor(path);
    EXPECT_EQ(rig_->alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd, size); }),
              0);
    model_[path].resize(size);
  }
  /// `contents_alone`: with fdatasync.
  void sync_one(const std::string& path, bool contents_alone = false) {
    const int fd = descriptor(path);
    const uint32_t began = rig_->events();
    EXPECT_EQ(rig_->alone([&](const simt::Warp& warp) {
      return contents_alone ? fdatasync(warp, fs(), fd) : fsync(warp, fs(), fd);
    }),
              0);
    promises_[path].push_back({began, rig_->events(), model_[path]});
    // Should it have taken a checkpoint, that has the others as well.
    for (auto& [other, contents] : model_) {
      if (other != path) promises_[other].push_back({began, ~0u, contents});
    }
  }
  void sync_all() {
    const uint32_t began = rig_->events();
    EXPECT_EQ(rig_->alone([&](const simt::Warp& warp) { return sync(warp, fs()); }), 0);
    const uint32_t ended = rig_->events();
    for (auto& [path, contents] : model_) promises_[path].push_back({began, ended, contents});
  }

  /// Whether all files hold what a cut right after `event` allows.
  void expect_kept(RecoveringRig& rig, uint32_t event) {
    for (const auto& [path, promises] : promises_) {
      const std::optional<std::string> found = rig.contents(path);
      size_t first = 0;
      for (size_t i = 0; i < promises.size(); ++i) {
        if (promises[i].ended <= event) first = i;
      }
      bool allowed = false;
      for (size_t i = first; i < promises.size(); ++i) {
        allowed = allowed || (promises[i].began <= event && promises[i].contents == found);
      }
      EXPECT_TRUE(allowed) << path << ", " << (found ? static_cast<int64_t>(found->size()) : -1)
                           << " bytes";
    }
  }

  /// Cuts the power after every `step`-th event, with some of the unsafe writes kept.
  void cut_everywhere(uint32_t step, uint32_t check_step) {
    const ssd::WriteTrace trace = rig_->trace();
    TestImage left(before_);
    uint32_t recovered = 0;
    uint32_t cuts = 0;
    for (uint32_t event = 0; event <= trace.events; event += step, ++cuts) {
      SCOPED_TRACE("cut after event " + std::to_string(event));
      const ssd::PowerCut cut(trace, event);
      cut.apply({left.data(), left.bytes()}, kBlockBytes, [&](uint32_t, uint64_t) {
        return cuts % 3 == 0 ? false : cuts % 3 == 1 ? true : random_() % 2 == 0;
      });
      {
        RecoveringRig rig(left, width());
        const int64_t nodes = rig.recover();
        ASSERT_GE(nodes, 0);
        recovered += nodes != 0;
        expect_kept(rig, event);
        EXPECT_EQ(f2fs::count_findings(*rig.fs().volume.corruptions), 0u);
        ASSERT_EQ(rig.writing().checkpoint(true), 0);
        if (cuts % check_step == 0) {
          EXPECT_TRUE(f2fs::fsck_likes(left, true));
        }
      }
      left.file().assign(before_.file());
      if (HasFailure()) return;
    }
    EXPECT_GT(recovered, cuts / 4);
  }

  TestImage image_;
  const TestImage before_;
  std::unique_ptr<RecoveringRig> rig_;
  std::map<std::string, int> fds_;
  std::map<std::string, std::string> model_;
  std::map<std::string, std::vector<Promise>> promises_;
  std::mt19937 random_{7};
};
GOFS_AT_BOTH_WIDTHS(RecoverFilesTest);

TEST_P(RecoverFilesTest, what_was_synced_is_there_after_any_cut) {
  GOFS_NEED_TOOL("fsck.f2fs");
  sync_all();
  write_file("/inline", 5, 100);
  sync_one("/inline");
  write_file("/blocks", 4000, 9000);
  sync_one("/blocks");
  write_file("/dir/new", 0, 50);
  sync_one("/dir/new");
  write_file("/inline", 50, 9000);  // out of its inode
  write_file("/dir/new", 0, 20'000);
  sync_one("/inline");
  sync_one("/dir/new");
  write_file("/long", 5'500'000, 1'000'000);
  sync_one("/long");
  cut_file("/long", 100'000);
  write_file("/blocks", 0, 4096);
  sync_one("/long");
  write_file("/dir/other", 9'000'000, 70'000);
  write_file("/dir/other", 13'000'000, 70'000);
  sync_one("/dir/other");
  write_file("/blocks", 8192, 5000);
  sync_all();
  write_file("/blocks", 100'000, 5000);
  cut_file("/inline", 6000);
  sync_one("/inline");
  sync_one("/blocks");
  cut_everywhere(width() == 1 ? 5 : 9, 4);
}

TEST_P(RecoverFilesTest, nodes_without_their_inode_are_there_after_any_cut) {
  GOFS_NEED_TOOL("fsck.f2fs");
  write_file("/dir/new", 13'000'000, 70'000);
  sync_all();
  for (const uint64_t at : {5'500'000, 4'100'000, 5'500'000}) {
    write_file("/long", at, 20'000);
    sync_one("/long", true);
    write_file("/dir/new", 13'001'000 + at % 50'000, 9000);
    sync_one("/dir/new", true);
    write_file("/dir/fresh", 9'000'000, 20'000);
    sync_one("/dir/fresh", true);
  }
  write_file("/long", 5'500'000, 20'000);
  sync_one("/long");
  cut_everywhere(width() == 1 ? 2 : 5, 4);
}

TEST_P(RecoverFilesTest, a_hint_of_an_inode_that_is_not_in_the_log_goes) {
  write_file("/long", 0, 10);
  sync_all();
  write_file("/long", 5'500'000, 20'000);
  sync_one("/long", true);
  const uint32_t ino = fs().open_inodes[fs().descriptors[descriptor("/long")].open_inode].inode.ino;
  rig_.reset();
  // As Linux leaves it: it writes through it.
  auto* const left =
      reinterpret_cast<format::NodeBlock*>(image_.block(image_.nat_entry(ino).block_addr));
  left->inode.i_ext.len = 100;
  RecoveringRig rig(image_, width());
  EXPECT_EQ(rig.recover(), 1);
  const auto* const now =
      reinterpret_cast<format::NodeBlock*>(image_.block(image_.nat_entry(ino).block_addr));
  EXPECT_NE(now, left);
  EXPECT_EQ(now->inode.i_ext.len, 0u);
}

TEST_P(RecoverFilesTest, any_sequence_keeps_what_was_synced) {
  GOFS_NEED_TOOL("fsck.f2fs");
  random_.seed(static_cast<uint32_t>(printed_seed()));
  const std::vector<std::string> paths = {"/inline", "/blocks", "/long",  "/dir/a",
                                          "/dir/b",  "/dir/c",  "/dir/d", "/e"};
  for (uint32_t turn = 0; turn < 60; ++turn) {
    const std::string& path = paths[random_() % paths.size()];
    const uint64_t range = random_() % 3 == 0 ? 2000 : random_() % 3 == 0 ? 9'000'000 : 60'000;
    switch (random_() % 8) {
      case 0:
        cut_file(path, random_() % range);
        break;
      case 1:
      case 2:
      case 3:
        sync_one(path, random_() % 2 == 0);
        break;
      case 4:
        if (random_() % 4 == 0) sync_all();
        break;
      default: {
        const uint64_t offset = random_() % range;  // one after the other, with any compiler
        write_file(path, offset, 1 + random_() % 40'000);
      }
    }
  }
  cut_everywhere(width() == 1 ? 9 : 17, 6);
}

TEST_P(RecoverFilesTest, a_file_that_was_cut_and_grew_again_has_nothing_of_before) {
  GOFS_NEED_TOOL("fsck.f2fs");
  sync_all();
  // A hole where the checkpoint has nodes, of several heights.
  for (const uint64_t left : {uint64_t{47'390}, uint64_t{0}, uint64_t{4'200'000}}) {
    cut_file("/long", left);
    cut_file("/long", 7'900'000);
    sync_one("/long");
    for (uint32_t i = 0; i < 3; ++i) {
      write_file("/long", 5'000'000 + i * 8192, 20'000);
      sync_one("/long", true);
      write_file("/long", 7'950'000 + i * 10'000, 10'000);
      sync_one("/long");
    }
  }
  cut_everywhere(width() == 1 ? 3 : 7, 10);
}

TEST_P(RecoverFilesTest, a_cut_during_recovery_is_recovered_from) {
  GOFS_NEED_TOOL("fsck.f2fs");
  sync_one("/first");
  sync_all();
  write_file("/dir/new", 0, 20'000);
  sync_one("/dir/new");
  write_file("/long", 4'100'000, 2'000'000);
  sync_one("/long");
  write_file("/inline", 50, 9000);
  sync_one("/inline");
  cut_file("/blocks", 5000);
  sync_one("/blocks");
  const ssd::WriteTrace trace = rig_->trace();
  TestImage crashed(before_);
  ssd::PowerCut(trace, trace.events)
      .apply({crashed.data(), crashed.bytes()}, kBlockBytes,
             [](uint32_t, uint64_t) { return false; });
  const TestImage contents(crashed);
  ssd::WriteTrace second;
  {
    RecoveringRig rig(crashed, width(), logging());
    EXPECT_EQ(rig.recover(), 5);
    second = rig.trace();
  }
  ASSERT_GT(second.events, 10u);
  TestImage left(contents);
  for (uint32_t event = 0; event <= second.events; event += width() == 1 ? 3 : 7) {
    SCOPED_TRACE(event);
    ssd::PowerCut(second, event)
        .apply({left.data(), left.bytes()}, kBlockBytes,
               [&](uint32_t, uint64_t) { return random_() % 2 == 0; });
    {
      RecoveringRig rig(left, width());
      ASSERT_GE(rig.recover(), 0);
      expect_kept(rig, trace.events);
      ASSERT_EQ(rig.writing().checkpoint(true), 0);
    }
    if (event % 4 == 0) {
      EXPECT_TRUE(f2fs::fsck_likes(left, true));
    }
    left.file().assign(contents.file());
  }
}

TEST_P(RecoverFilesTest, more_files_than_are_taken_over_at_once_come_back_each_as_it_was) {
  GOFS_NEED_TOOL("fsck.f2fs");
  // Most of those that are made durable have odd numbers, and some of the others leave their inode
  // between the first time and the second: a recovery that went by numbers, or began anew, would
  // meet these twice.
  // With less room and memory, a checkpoint would be made on the way.
  TestImage large(fill_to_recover, 0, uint64_t{512} << 20);
  VolumeRigOptions options;
  options.filesystem.cache_pages = 8192;
  rig_ = std::make_unique<RecoveringRig>(large, width(), options);
  std::map<std::string, std::string> durable;
  std::vector<std::string> growing;
  const auto write_and_sync = [&](const std::string& path, const std::string& text, bool syncs) {
    return rig_->alone([&](const simt::Warp& warp) -> int64_t {
      const int fd = open(warp, fs(), path.c_str(), kOpenReadWrite | kOpenCreate, 0644);
      if (fd < 0) return fd;
      const int64_t written = pwrite(warp, fs(), fd, text.data(), text.size(), 0);
      const int synced = syncs ? fsync(warp, fs(), fd) : 0;
      const uint32_t ino = fs().open_inodes[fs().descriptors[fd].open_inode].inode.ino;
      (void)close(warp, fs(), fd);
      return written < 0 ? written : synced < 0 ? synced : ino;
    });
  };
  ASSERT_GT(write_and_sync("/first", "before the first checkpoint of a mount", false), 0);
  ASSERT_EQ(rig_->alone([&](const simt::Warp& warp) { return sync(warp, fs()); }), 0);
  for (uint32_t i = 0; i < 2 * 1'100; ++i) {
    const std::string path = "/dir/" + std::to_string(i);
    const bool syncs = i % 2 == 1 || i % 88 == 0;
    const std::string text = "file " + std::to_string(i);
    ASSERT_GT(write_and_sync(path, text, syncs), 0) << path;
    if (syncs) durable[path] = text;
    if (i % 88 == 0) growing.push_back(path);
  }
  for (const std::string& path : growing) {
    durable[path] = std::string(9000, path.back());
    ASSERT_GT(write_and_sync(path, durable[path], true), 0) << path;
  }
  rig_.reset();
  RecoveringRig rig(large, width());
  ASSERT_GT(rig.recover(), static_cast<int64_t>(durable.size()));
  for (const auto& [path, text] : durable) ASSERT_EQ(rig.contents(path), text) << path;
  EXPECT_EQ(f2fs::count_findings(*rig.fs().volume.corruptions), 0u);
  ASSERT_EQ(rig.writing().checkpoint(true), 0);
  EXPECT_TRUE(f2fs::fsck_likes(large, true));
}

TEST_P(RecoverFilesTest, a_file_may_have_the_name_of_a_directory_that_was_removed) {
  GOFS_NEED_TOOL("fsck.f2fs");
  for (const bool is_empty : {true, false}) {
    SCOPED_TRACE(is_empty);
    image_.file().assign(before_.file());
    fds_.clear();
    rig_ = std::make_unique<RecoveringRig>(image_, width(), logging());
    if (!is_empty) sync_one("/dir/there");
    sync_all();
    write_file("/any", 0, 30);
    sync_one("/any");
    rig_.reset();
    {
      // As Linux leaves it; GoFS makes a checkpoint instead.
      RecoveringRig rig(image_, 1);
      auto* const node = reinterpret_cast<format::NodeBlock*>(
          image_.block(f2fs::detail::first_of_fsync_log(rig.fs().volume)));
      ASSERT_EQ(std::string(reinterpret_cast<const char*>(node->inode.i_name), 3), "any");
      std::memcpy(node->inode.i_name, "dir", 3);
    }
    RecoveringRig rig(image_, width());
    EXPECT_EQ(rig.recover(), is_empty ? 1 : -EUCLEAN) << "only an empty one can have gone";
    if (!is_empty) continue;
    EXPECT_EQ(rig.contents("/dir"), model_["/any"]);
    EXPECT_EQ(f2fs::count_findings(*rig.fs().volume.corruptions), 0u);
    ASSERT_EQ(rig.writing().checkpoint(true), 0);
    EXPECT_TRUE(f2fs::fsck_likes(image_, true));
  }
}

TEST_P(RecoverFilesTest, a_log_that_cannot_be_is_refused_and_nothing_has_changed) {
  sync_one("/first");
  sync_all();
  write_file("/dir/new", 0, 20'000);
  sync_one("/dir/new");
  write_file("/long", 4'100'000, 2'000'000);
  sync_one("/long");
  rig_.reset();
  const TestImage crashed(image_);
  std::vector<uint32_t> blocks;
  {
    RecoveringRig rig(image_, 1);
    const f2fs::Volume& volume = rig.fs().volume;
    uint32_t block = f2fs::detail::first_of_fsync_log(volume);
    const auto node = [&] { return reinterpret_cast<format::NodeBlock*>(image_.block(block)); };
    for (; f2fs::detail::belongs_to_fsync_log(volume, *node());
         block = node()->footer.next_blkaddr) {
      blocks.push_back(block);
    }
  }
  ASSERT_EQ(blocks.size(), 3u);  // the new file; a node below an inode, the inode
  const auto result_of = [&](const std::function<void(format::NodeBlock*)>& damage,
                             uint32_t which) {
    image_.file().assign(crashed.file());
    damage(reinterpret_cast<format::NodeBlock*>(image_.block(blocks[which])));
    RecoveringRig rig(image_, width());
    const int64_t result = rig.recover();
    EXPECT_EQ(f2fs::count_findings(*rig.fs().volume.corruptions) != 0, result == -EUCLEAN);
    return result;
  };
  using Node = format::NodeBlock;
  EXPECT_EQ(result_of([](Node*) {}, 0), 3);
  const uint32_t root_block = image_.nat_entry(format::kRootIno).block_addr;
  const std::vector<std::pair<uint32_t, std::function<void(Node*)>>> damages = {
      {2, [&](Node* node) { node->footer.next_blkaddr = blocks[0]; }},
      {2, [&](Node* node) { node->footer.next_blkaddr = blocks[2]; }},
      {0, [&](Node* node) { node->footer.next_blkaddr = root_block; }},
      {0, [](Node* node) { node->inode.i_addr[3] = 1; }},
      {0, [&](Node* node) { node->inode.i_addr[3] = root_block; }},
      {1, [](Node* node) { node->direct.addr[1000] = 0x7fffffff; }},
      {1, [](Node* node) { node->footer.flag = format::kNodeCold | 0x0ffffff0; }},
      {0, [](Node* node) { node->inode.i_pino = 0x00ffffff; }},
      {0, [](Node* node) { node->inode.i_pino = node->footer.ino.value(); }},
      {0, [](Node* node) { node->inode.i_namelen = 0; }},
      {0, [](Node* node) { node->inode.i_namelen = 256; }},
      {0, [](Node* node) { node->inode.i_name[1] = '/'; }},
      {0, [](Node* node) { node->inode.i_mode = format::kModeDirectory | 0755; }},
      {2, [](Node* node) { node->inode.i_mode = format::kModeSymlink | 0777; }},
      {2, [](Node* node) { node->inode.i_inline = format::kInlineData; }},
      {2, [](Node* node) { node->inode.i_size = ~uint64_t{0}; }},
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    const auto& [which, damage] = damages[i];
    const int64_t result = result_of(damage, which);
    const bool ends = i == 2;  // what is no part of it
    EXPECT_EQ(result, ends ? 1 : -EUCLEAN) << i;
    if (ends) continue;
    RecoveringRig reading(image_, 1);
    EXPECT_EQ(reading.contents("/first"), "") << "the last checkpoint is there";
    EXPECT_FALSE(reading.contents("/dir/new").has_value()) << i;
  }
  // Anything else: it ends, and does not fall over.
  for (uint32_t turn = 0; turn < (width() == 1 ? 60u : 10u); ++turn) {
    (void)result_of(
        [&](Node* node) {
          auto* const words = reinterpret_cast<format::le32*>(node);
          for (uint32_t k = 0; k < 1 + turn % 3; ++k) {
            const auto value = static_cast<uint32_t>(random_());
            words[random_() % (random_() % 2 == 0 ? 100 : 1021)] =
                random_() % 3 == 0 ? value % 20'000 : value;
          }
        },
        turn % 3);
  }
}

}  // namespace
}  // namespace gofs::vfs
