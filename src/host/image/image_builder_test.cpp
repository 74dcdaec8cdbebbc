// SPDX-License-Identifier: Apache-2.0
//
// Volumes with files in them. Each is judged three times: fsck.f2fs must find nothing, every name
// must be found where its hash says, and every byte must read back. Sizes are small;
// image_builder_long_test.cpp has the large ones.
#include "host/image/image_builder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/image/fsck_for_test.h"
#include "host/image/pattern.h"
#include "host/image/reader_for_test.h"

namespace gofs::image {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

std::string pattern(uint64_t seed, uint64_t bytes) {
  std::string text(bytes, '\0');
  fill_pattern(seed, 0, text.data(), bytes);
  return text;
}

/// A volume in a temporary file, for each of a few sets of features.
class ImageBuilderTest : public testing::TestWithParam<uint32_t> {
 protected:
  void start(uint64_t size_bytes) {
    Status status = open_file_target(image_.path(), size_bytes, &target_);
    ASSERT_TRUE(status.ok()) << status.message;
    VolumeOptions options;
    options.feature = GetParam();
    options.flush = false;
    options.time_s = 1'700'000'000;
    status = ImageBuilder::create(*target_, options, &builder_);
    ASSERT_TRUE(status.ok()) << status.message;
    root_ = builder_->root();
  }
  void must(const Status& status) { ASSERT_TRUE(status.ok()) << status.message; }
  void finish() {
    must(builder_->finish());
    if (tool_exists("fsck.f2fs")) {
      EXPECT_TRUE(fsck_is_clean(image_.path()));
    } else {
      GTEST_LOG_(WARNING) << "fsck.f2fs is not installed: half of this test was not done";
    }
    reader_ = std::make_unique<TestReader>(*target_);
  }
  void add(const FileSpec& file, const FileLayout& layout = {}) {
    must(builder_->add_file(root_, file, layout));
  }
  FileSpec patterned(std::string_view name, uint64_t bytes, uint64_t seed) {
    FileSpec file;
    file.name = name;
    file.size_bytes = bytes;
    file.content = pattern_content(seed);
    return file;
  }
  /// Places in the file after which the next block is not the next block of the volume.
  uint32_t fragments(const TestReader::File& file) {
    const uint64_t blocks = simt::divide_up(file.inode().i_size, kBlockBytes);
    uint32_t count = 1;
    for (uint64_t i = 1; i < blocks; ++i) {
      if (reader_->address(file, i) != reader_->address(file, i - 1) + 1) ++count;
    }
    return count;
  }

  const TemporaryPath image_;
  std::unique_ptr<ImageTarget> target_;
  std::unique_ptr<ImageBuilder> builder_;
  Directory root_;
  std::unique_ptr<TestReader> reader_;
};

INSTANTIATE_TEST_SUITE_P(features, ImageBuilderTest,
                         testing::Values(0, format::kFeatureExtraAttr, kFeaturesOffered));

TEST_P(ImageBuilderTest, files_of_all_sizes_read_back) {
  start(256 * kMiB);
  // Around the ends of blocks, of the inode's slots and of the first direct node.
  const uint64_t sizes[] = {0,
                            1,
                            4095,
                            4096,
                            4097,
                            16384,
                            864 * 4096,
                            864 * 4096 + 1,
                            923 * 4096,
                            923 * 4096 + 1,
                            (923 + 1018) * 4096,
                            (923 + 1018) * 4096 + 1,
                            (923 + 2 * 1018) * 4096 + 4097};
  for (const uint64_t size : sizes) add(patterned("f" + std::to_string(size), size, size));
  finish();
  for (const uint64_t size : sizes) {
    const auto file = reader_->at("/f" + std::to_string(size));
    EXPECT_EQ(file.inode().i_size, size);
    EXPECT_EQ(file.inode().i_pino, format::kRootIno);
    EXPECT_TRUE(reader_->content(file) == pattern(size, size)) << size;
  }
  EXPECT_EQ(reader_->lookup(reader_->at("/"), "f2"), 0u);
}

TEST_P(ImageBuilderTest, attributes_are_kept) {
  start(64 * kMiB);
  FileSpec file = patterned("a", 10, 1);
  file.attributes.mode = 04751;
  file.attributes.uid = 1000;
  file.attributes.gid = 0xFFFFFFF0;
  file.attributes.mtime = Timestamp{-100, 999999999};
  file.attributes.atime = Timestamp{1, 2};
  add(file);
  Attributes root_attributes;
  root_attributes.mode = 01777;
  builder_->set_attributes(root_, root_attributes);
  finish();
  const auto read = reader_->at("/a");
  const format::Inode& inode = read.inode();
  EXPECT_EQ(inode.i_mode, 0104751);
  EXPECT_EQ(inode.i_uid, 1000u);
  EXPECT_EQ(inode.i_gid, 0xFFFFFFF0u);
  EXPECT_EQ(inode.i_mtime, -100);
  EXPECT_EQ(inode.i_mtime_nsec, 999999999u);
  EXPECT_EQ(inode.i_atime, 1);
  EXPECT_EQ(inode.i_ctime, 1'700'000'000);
  EXPECT_EQ(inode.i_namelen, 1u);
  EXPECT_EQ(inode.i_name[0], 'a');
  EXPECT_EQ(reader_->at("/").inode().i_mode, 041777);
}

TEST_P(ImageBuilderTest, sparse_file_has_blocks_in_every_tree) {
  start(100 * kMiB);
  constexpr uint32_t kSingle = 1018 * 1018;
  const std::vector<FileRange> ranges = {{0, 1},
                                         {900, 30},  // over the end of the inode's slots
                                         {923 + 1018, 2},
                                         {3000, 700, true},
                                         {923 + 2 * 1018 + kSingle - 1, 3},
                                         {923 + 2 * 1018 + 2 * kSingle - 1, 2},
                                         {923 + 2 * 1018 + 2 * kSingle + 12 * kSingle + 77, 1},
                                         {(64u << 18) - 1, 1}};
  FileSpec file = patterned("sparse", 64 * kGiB - 5, 9);
  file.sparse = true;
  file.ranges = ranges;
  add(file);
  FileSpec hole = patterned("hole", 5 * kGiB, 9);
  hole.sparse = true;
  add(hole);
  finish();

  const auto read = reader_->at("/sparse");
  uint64_t blocks = 0;
  for (const FileRange& range : ranges) {
    blocks += range.block_count;
    for (uint32_t i = 0; i < range.block_count; ++i) {
      const uint32_t block = range.first_block + i;
      const uint32_t address = reader_->address(read, block);
      if (range.reserved) {
        ASSERT_EQ(address, format::kNewAddr) << block;
        continue;
      }
      ASSERT_TRUE(reader_->geometry().in_main(address)) << block;
      uint64_t word = 0;
      must(target_->read(uint64_t{address} * kBlockBytes, &word, sizeof(word)));
      ASSERT_EQ(word, pattern_word(9, uint64_t{block} * 512)) << block;
    }
    ASSERT_EQ(reader_->address(read, uint64_t{range.first_block} + range.block_count),
              format::kNullAddr);
  }
  EXPECT_GT(read.inode().i_blocks, blocks + 1);
  EXPECT_EQ(reader_->at("/hole").inode().i_blocks, 1u);
  EXPECT_EQ(reader_->address(reader_->at("/hole"), 5), format::kNullAddr);
}

TEST_P(ImageBuilderTest, layouts_fragment_as_asked) {
  start(256 * kMiB);
  constexpr uint64_t kBlocks = 3000;
  add(patterned("straight", kBlocks * kBlockBytes, 1));
  add(patterned("alone", kBlocks * kBlockBytes - 100, 2), {.run_blocks = 1});
  const std::string names[] = {"x0", "x1", "x2"};
  std::vector<FileSpec> files;
  for (uint64_t i = 0; i < 3; ++i) {
    files.push_back(patterned(names[i], (i + 1) * 400 * kBlockBytes - i, 10 + i));
  }
  must(builder_->add_files(root_, files, {.run_blocks = 4}));
  const std::string shuffled[] = {"s0", "s1"};
  std::vector<FileSpec> more;
  for (uint64_t i = 0; i < 2; ++i) {
    more.push_back(patterned(shuffled[i], 500 * kBlockBytes, 20 + i));
  }
  must(builder_->add_files(root_, more, {.run_blocks = 2, .shuffle = true, .seed = 5}));
  finish();

  // A file that is laid out straight is only cut where its segment ends.
  EXPECT_LE(fragments(reader_->at("/straight")), kBlocks / 512 + 2);
  EXPECT_GT(fragments(reader_->at("/alone")), kBlocks * 9 / 10);
  // Of the three, only the longest is ever alone.
  EXPECT_GE(fragments(reader_->at("/x0")), 100u);
  EXPECT_GE(fragments(reader_->at("/x1")), 200u);
  EXPECT_GE(fragments(reader_->at("/s0")), 240u);
  EXPECT_TRUE(reader_->content(reader_->at("/straight")) == pattern(1, kBlocks * kBlockBytes));
  EXPECT_TRUE(reader_->content(reader_->at("/alone")) == pattern(2, kBlocks * kBlockBytes - 100));
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(reader_->content(reader_->at("/" + names[i])) ==
                pattern(10 + i, files[i].size_bytes));
  }
  for (uint64_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(reader_->content(reader_->at("/" + shuffled[i])) ==
                pattern(20 + i, more[i].size_bytes));
  }
}

TEST_P(ImageBuilderTest, inline_data_up_to_the_room_there_is) {
  start(64 * kMiB);
  const format::InodeLayout room =
      format::make_inode_layout((GetParam() & format::kFeatureExtraAttr) != 0 ? 9 : 0, 0);
  const uint32_t sizes[] = {
      0, 1, 100, room.inline_bytes - 1, room.inline_bytes, room.inline_bytes + 1};
  for (const uint32_t size : sizes) {
    FileSpec file = patterned("i" + std::to_string(size), size, size);
    const std::string name = "i" + std::to_string(size);
    file.name = name;
    file.inline_data = true;
    add(file);
    const std::string with_xattr = "x" + std::to_string(size);
    file.name = with_xattr;
    file.inline_xattr = true;
    add(file);
  }
  finish();
  for (const uint32_t size : sizes) {
    const auto plain = reader_->at("/i" + std::to_string(size));
    EXPECT_EQ((plain.inode().i_inline & format::kInlineData) != 0, size <= room.inline_bytes);
    EXPECT_TRUE(reader_->content(plain) == pattern(size, size));
    const auto other = reader_->at("/x" + std::to_string(size));
    EXPECT_EQ((other.inode().i_inline & format::kInlineData) != 0, size <= room.inline_bytes - 200);
    EXPECT_TRUE(reader_->content(other) == pattern(size, size));
  }
}

TEST_P(ImageBuilderTest, special_files_and_links) {
  start(64 * kMiB);
  FileHandle file;
  must(builder_->add_file(root_, patterned("file", 5000, 1), {}, &file));
  must(builder_->add_link(root_, "again", file));
  Directory sub;
  must(builder_->add_directory(root_, "sub", {}, {}, &sub));
  must(builder_->add_link(sub, "third", file));
  FileHandle fifo;
  must(builder_->add_special(root_, "fifo", format::kModeFifo, {}, {}, &fifo));
  must(builder_->add_link(sub, "fifo2", fifo));
  must(builder_->add_special(root_, "socket", format::kModeSocket, {}, {}));
  must(builder_->add_special(root_, "null", format::kModeCharDevice, {1, 3}, {}));
  must(builder_->add_special(root_, "nvme", format::kModeBlockDevice, {259, 1048575}, {}));
  must(builder_->add_symlink(root_, "short", "../x", {}));
  must(builder_->add_symlink(root_, "inline", "/a/b", {}, true));
  must(builder_->add_symlink(root_, "long", std::string(4095, 'y'), {}, true));
  finish();
  EXPECT_EQ(reader_->at("/file").inode().i_links, 3u);
  EXPECT_EQ(reader_->at("/sub/third").ino, reader_->at("/again").ino);
  EXPECT_EQ(reader_->at("/sub/third").inode().i_advise & format::kAdviseLostPino,
            format::kAdviseLostPino);
  EXPECT_EQ(reader_->at("/fifo").inode().i_links, 2u);
  EXPECT_EQ(reader_->at("/fifo").inode().i_mode & format::kModeTypeMask, format::kModeFifo);
  EXPECT_EQ(reader_->content(reader_->at("/short")), "../x");
  EXPECT_EQ(reader_->content(reader_->at("/inline")), "/a/b");
  EXPECT_NE(reader_->at("/inline").inode().i_inline & format::kInlineData, 0);
  EXPECT_EQ(reader_->content(reader_->at("/long")), std::string(4095, 'y'));
  for (const auto& [name, major, minor] :
       {std::tuple{"/null", 1u, 3u}, std::tuple{"/nvme", 259u, 1048575u}}) {
    const auto device = reader_->at(name);
    const auto layout = reader_->layout(device);
    const auto number = format::decode_device(device.inode().i_addr[layout.word_of_slot(0)],
                                              device.inode().i_addr[layout.word_of_slot(1)]);
    EXPECT_EQ(number.major, major);
    EXPECT_EQ(number.minor, minor);
  }
}

TEST_P(ImageBuilderTest, xattrs_lie_in_the_inode_then_in_their_node) {
  start(64 * kMiB);
  const std::string large(3000, 'v');
  FileSpec file = patterned("both", 100, 1);
  file.inline_data = true;
  file.inline_xattr = true;
  file.xattrs = {{format::kXattrUser, "a", "1"},
                 {format::kXattrTrusted, "long", large},
                 {format::kXattrAclAccess, "", std::string("\1\0\0\0", 4)}};
  add(file);
  file.name = "node";
  file.inline_xattr = false;
  add(file);
  file.name = "inode";
  file.inline_xattr = true;
  file.xattrs = {{format::kXattrUser, "a", "1"}};
  add(file);
  file.name = "full";  // not a byte is left for an end mark
  file.xattrs = {{format::kXattrUser, "a", std::string(200 + 4072 - 24 - 4 - 1, 'z')}};
  add(file);
  DirectoryOptions options;
  options.xattrs = {{format::kXattrSecurity, "s", "dir"}};
  must(builder_->add_directory(root_, "dir", {}, options, nullptr));
  finish();

  const std::map<std::string, std::string> all = {
      {"1a", "1"}, {"4long", large}, {"2", std::string("\1\0\0\0", 4)}};
  EXPECT_EQ(reader_->xattrs(reader_->at("/both")), all);
  EXPECT_EQ(reader_->xattrs(reader_->at("/node")), all);
  EXPECT_EQ(reader_->at("/inode").inode().i_xattr_nid, 0u);
  EXPECT_EQ(reader_->xattrs(reader_->at("/inode")).size(), 1u);
  EXPECT_EQ(reader_->xattrs(reader_->at("/full"))["1a"].size(), 4243u);
  EXPECT_EQ(reader_->xattrs(reader_->at("/dir"))["6s"], "dir");
  EXPECT_TRUE(reader_->content(reader_->at("/both")) == pattern(1, 100));
}

TEST_P(ImageBuilderTest, directories_of_all_sizes_and_levels) {
  start(256 * kMiB);
  struct Case {
    std::string name;
    uint32_t count;
    DirectoryOptions options;
  };
  const Case cases[] = {{"one", 1, {}},
                        {"some", 300, {}},
                        {"many", 6000, {}},
                        {"inline", 20, {.inline_dentries = true}},
                        {"inline-over", 181, {.inline_dentries = true}},
                        {"inline-none", 0, {.inline_dentries = true}},
                        {"level3", 2000, {.dir_level = 3}},
                        {"level8", 100, {.dir_level = 8}}};
  // Names of every length, so that slots do not divide blocks evenly.
  const auto entry_name = [](uint32_t i) {
    return std::to_string(i) + std::string((i * 37) % 250, 'n');
  };
  for (const Case& one : cases) {
    Directory directory;
    must(builder_->add_directory(root_, one.name, {}, one.options, &directory));
    for (uint32_t i = 0; i < one.count; ++i) {
      const bool short_names = one.name.starts_with("inline");
      const std::string name = short_names ? std::to_string(i) : entry_name(i);
      must(builder_->add_special(directory, name, format::kModeFifo, {}, {}));
    }
  }
  finish();
  for (const Case& one : cases) {
    const auto directory = reader_->at("/" + one.name);
    EXPECT_EQ(directory.inode().i_dir_level, one.options.dir_level);
    std::set<uint32_t> inos;
    for (uint32_t i = 0; i < one.count; ++i) {
      const bool short_names = one.name.starts_with("inline");
      const uint32_t ino =
          reader_->lookup(directory, short_names ? std::to_string(i) : entry_name(i));
      ASSERT_NE(ino, 0u) << one.name << " " << i;
      inos.insert(ino);
    }
    EXPECT_EQ(inos.size(), one.count);
    EXPECT_EQ(reader_->lookup(directory, "."), directory.ino);
    EXPECT_EQ(reader_->lookup(directory, ".."), format::kRootIno);
    EXPECT_EQ(reader_->lookup(directory, "missing"), 0u);
  }
  EXPECT_EQ(reader_->at("/one").inode().i_current_depth, 1u);
  EXPECT_GT(reader_->at("/many").inode().i_current_depth, 4u);
  EXPECT_NE(reader_->at("/inline").inode().i_inline & format::kInlineDentry, 0);
  EXPECT_EQ(reader_->at("/inline-over").inode().i_inline & format::kInlineDentry, 0);
  EXPECT_EQ(reader_->at("/").inode().i_links,
            2 + std::size(cases) + ((GetParam() & format::kFeatureLostFound) != 0 ? 1 : 0));
}

TEST_P(ImageBuilderTest, names_of_any_bytes) {
  start(64 * kMiB);
  std::vector<std::string> names = {" ", "...", "..a", "-", "\x01\xff", "\xe2\x82\xac", "a b\n"};
  names.push_back(std::string(255, 'l'));
  for (const std::string& name : names) add(patterned(name, 3, 1));
  finish();
  for (const std::string& name : names) {
    EXPECT_NE(reader_->lookup(reader_->at("/"), name), 0u) << name;
  }
}

TEST_P(ImageBuilderTest, deep_trees_have_the_right_parents) {
  start(64 * kMiB);
  Directory directory = root_;
  std::string path;
  for (int depth = 0; depth < 60; ++depth) {
    must(builder_->add_directory(directory, "d", {}, {}, &directory));
    path += "/d";
  }
  must(builder_->add_file(directory, patterned("leaf", 9, 4)));
  finish();
  EXPECT_TRUE(reader_->content(reader_->at(path + "/leaf")) == pattern(4, 9));
  const auto last = reader_->at(path);
  EXPECT_EQ(reader_->lookup(last, ".."), last.inode().i_pino);
}

TEST_P(ImageBuilderTest, volume_can_be_filled_to_the_last_block) {
  start(64 * kMiB);
  // What the root directory, and lost+found, still need: an inode and a block each.
  const uint64_t directories = (GetParam() & format::kFeatureLostFound) != 0 ? 4 : 2;
  // An inode, and for a file of this size four direct nodes and an indirect one.
  const uint64_t blocks = builder_->free_block_count() - directories - 1 - 5 - 2;
  add(patterned("large", blocks * kBlockBytes, 3));
  for (int i = 0; builder_->free_block_count() > directories; ++i) {
    ASSERT_LT(i, 10);
    add(patterned("rest" + std::to_string(i), 0, 0));
  }
  finish();
  const format::Checkpoint& checkpoint = reader_->checkpoint();
  EXPECT_EQ(checkpoint.valid_block_count.value(), checkpoint.user_block_count.value());
  EXPECT_TRUE(reader_->content(reader_->at("/large")) == pattern(3, blocks * kBlockBytes));
}

TEST_P(ImageBuilderTest, a_full_volume_is_an_error_and_no_volume) {
  start(64 * kMiB);
  const Status status = builder_->add_file(root_, patterned("f", 17 * kMiB, 3));
  EXPECT_EQ(status.error, -ENOSPC);
  EXPECT_EQ(builder_->add_file(root_, patterned("g", 1, 3)).error, -ENOSPC);
  EXPECT_EQ(builder_->finish().error, -ENOSPC);
  uint32_t magic = 1;
  must(target_->read(format::kSuperOffset, &magic, sizeof(magic)));
  EXPECT_EQ(magic, 0u);
}

TEST_P(ImageBuilderTest, equal_calls_give_equal_volumes) {
  std::vector<uint8_t> memory[2];
  for (auto& image : memory) {
    image.resize(64 * kMiB);
    const auto target = make_memory_target(image.data(), image.size());
    VolumeOptions options;
    options.feature = GetParam();
    options.seed = 3;
    options.time_s = 5;
    std::unique_ptr<ImageBuilder> builder;
    must(ImageBuilder::create(*target, options, &builder));
    must(builder->add_file(builder->root(), patterned("f", kMiB, 3), {.run_blocks = 1}));
    must(builder->finish());
  }
  EXPECT_TRUE(memory[0] == memory[1]);
}

/// What must be refused, in memory, without a judge.
class RefusalTest : public testing::Test {
 protected:
  RefusalTest() : memory_(64 * kMiB), target_(make_memory_target(memory_.data(), memory_.size())) {
    EXPECT_TRUE(ImageBuilder::create(*target_, {}, &builder_).ok());
  }
  std::vector<uint8_t> memory_;
  std::unique_ptr<ImageTarget> target_;
  std::unique_ptr<ImageBuilder> builder_;
};

class NameRefusalTest : public RefusalTest,
                        public testing::WithParamInterface<std::pair<std::string, int>> {};

TEST_P(NameRefusalTest, names_that_cannot_be) {
  const auto& [name, error] = GetParam();
  const Status status = builder_->add_special(builder_->root(), name, format::kModeFifo, {}, {});
  EXPECT_EQ(status.error, error);
  EXPECT_FALSE(status.message.empty());
}

INSTANTIATE_TEST_SUITE_P(names, NameRefusalTest,
                         testing::Values(std::pair{std::string(), -EINVAL},
                                         std::pair{std::string("."), -EINVAL},
                                         std::pair{std::string(".."), -EINVAL},
                                         std::pair{std::string("a/b"), -EINVAL},
                                         std::pair{std::string("a\0b", 3), -EINVAL},
                                         std::pair{std::string(256, 'x'), -ENAMETOOLONG}));

TEST_F(RefusalTest, a_name_given_twice) {
  ASSERT_TRUE(builder_->add_file(builder_->root(), {.name = "a"}).ok());
  ASSERT_TRUE(builder_->add_file(builder_->root(), {.name = "b"}).ok());
  ASSERT_TRUE(builder_->add_directory(builder_->root(), "a", {}, {}, nullptr).ok());
  const Status status = builder_->finish();
  EXPECT_EQ(status.error, -EEXIST);
  EXPECT_NE(status.message.find("'a'"), std::string::npos);
}

TEST_F(RefusalTest, too_long_file_names_and_files) {
  EXPECT_EQ(builder_->add_file(builder_->root(), {.name = std::string(256, 'x')}).error,
            -ENAMETOOLONG);
}

TEST_F(RefusalTest, too_large_a_file) {
  FileSpec file{.name = "f", .size_bytes = uint64_t{5} << 40};
  file.sparse = true;
  EXPECT_EQ(builder_->add_file(builder_->root(), file).error, -EFBIG);
}

TEST_F(RefusalTest, ranges_out_of_order) {
  FileSpec file{.name = "f", .size_bytes = 100 * kBlockBytes};
  file.sparse = true;
  file.ranges = {{5, 5}, {9, 1}};
  EXPECT_EQ(builder_->add_file(builder_->root(), file).error, -EINVAL);
}

TEST_F(RefusalTest, ranges_past_the_end) {
  FileSpec file{.name = "f", .size_bytes = 100 * kBlockBytes};
  file.sparse = true;
  file.ranges = {{90, 11}};
  EXPECT_EQ(builder_->add_file(builder_->root(), file).error, -EINVAL);
}

TEST_F(RefusalTest, content_that_fails) {
  FileSpec file{.name = "f", .size_bytes = 100};
  file.content = [](uint64_t, void*, size_t) { return -EIO; };
  const Status status = builder_->add_file(builder_->root(), file);
  EXPECT_EQ(status.error, -EIO);
  EXPECT_EQ(builder_->finish().error, -EIO);
}

TEST_F(RefusalTest, xattrs_that_do_not_fit) {
  FileSpec file{.name = "f"};
  file.xattrs = {{format::kXattrUser, "a", std::string(4072 - 24 - 4, 'z')}};
  EXPECT_EQ(builder_->add_file(builder_->root(), file).error, -ENOSPC);
}

TEST_F(RefusalTest, xattrs_beyond_all_bounds) {
  FileSpec file{.name = "f"};
  file.xattrs = {{format::kXattrUser, std::string(256, 'n'), ""}};
  EXPECT_EQ(builder_->add_file(builder_->root(), file).error, -E2BIG);
}

TEST_F(RefusalTest, symbolic_links_to_nothing) {
  EXPECT_EQ(builder_->add_symlink(builder_->root(), "s", "", {}).error, -EINVAL);
}

TEST_F(RefusalTest, links_to_nothing) {
  EXPECT_EQ(builder_->add_link(builder_->root(), "s", {}).error, -EINVAL);
}

TEST_F(RefusalTest, device_numbers_out_of_range) {
  EXPECT_EQ(
      builder_->add_special(builder_->root(), "s", format::kModeCharDevice, {4096, 0}, {}).error,
      -EINVAL);
}

TEST_F(RefusalTest, anything_after_the_end) {
  ASSERT_TRUE(builder_->finish().ok());
  EXPECT_EQ(builder_->add_file(builder_->root(), {.name = "a"}).error, -EINVAL);
  EXPECT_EQ(builder_->finish().error, -EINVAL);
}

}  // namespace
}  // namespace gofs::image
