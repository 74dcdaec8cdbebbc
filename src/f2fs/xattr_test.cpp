// SPDX-License-Identifier: Apache-2.0
//
// Extended attributes as they lie on the disk: in the inode, in a node, in both with an entry
// across the border, full to the last byte; and everything that the bytes may say instead. What is
// right is said by a reader that shares nothing with the library.
#include "f2fs/xattr.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "host/image/reader_for_test.h"
#include "testing/crowd.hpp"
#include "testing/volume_rig.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRig;
using gofs::testing::VolumeRigOptions;

/// index and name -> value, as TestReader has them.
using Attributes = std::map<std::string, std::string>;

constexpr uint32_t kHeaderBytes = sizeof(format::XattrHeader);
constexpr uint32_t kInlineBytes = 4 * format::kDefaultInlineXattrWords;

std::string noise(size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::string text(bytes, '\0');
  for (char& byte : text) byte = static_cast<char>(random());
  return text;
}

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = {"none", "room", "inline", "node",
                                               "both", "full", "empty",  "many"};
  return all;
}

void add_files(image::ImageBuilder& builder) {
  const auto add = [&](const std::string& name, bool room, std::vector<image::Xattr> xattrs) {
    image::FileSpec file;
    file.name = name;
    file.inline_xattr = room;
    file.xattrs = std::move(xattrs);
    TestImage::must(builder.add_file(builder.root(), file));
  };
  using format::kXattrSecurity;
  using format::kXattrTrusted;
  using format::kXattrUser;
  add("none", false, {});
  add("room", true, {});
  add("inline", true, {{kXattrUser, "a", "1"}, {kXattrTrusted, "b", noise(50, 1)}});
  add("node", false, {{kXattrUser, "a", noise(3000, 2)}, {kXattrSecurity, "s", "two"}});
  add("both", true,
      {{kXattrUser, "first", noise(100, 3)},
       {kXattrUser, "straddles", noise(900, 4)},
       {kXattrUser, std::string(255, 'n'), noise(2500, 5)},
       {kXattrTrusted, "last", "x"}});
  add("full", true,
      {{kXattrUser, "a", noise(kInlineBytes + format::kXattrNodeBytes - kHeaderBytes - 5, 6)}});
  add("empty", true, {{kXattrUser, "empty", ""}});
  std::vector<image::Xattr> many;
  for (int i = 0; i < 300; ++i) {
    many.push_back({kXattrUser, std::to_string(i), std::string(static_cast<size_t>(i % 5), 'v')});
  }
  add("many", true, many);
}

uint32_t ino_of(TestImage& image, const std::string& name) {
  const auto target = image.target();
  image::TestReader reader(*target);
  return reader.at("/" + name).ino;
}

/// Goes through all attributes; every lane must see the same. The last answer.
int collect(const simt::Warp& warp, Volume& volume, const XattrBytes& bytes, Attributes& out) {
  uint32_t cursor = 0;
  Xattr xattr{};
  for (;;) {
    const uint32_t before = cursor;
    const int more = next_xattr(warp, volume, bytes, cursor, xattr);
    EXPECT_TRUE(warp.all(warp.shfl(more, 0) == more));
    if (more <= 0) return more;
    EXPECT_GT(cursor, before);
    EXPECT_LE(uint64_t{xattr.value_at} + xattr.value_bytes, bytes.bytes);
    EXPECT_EQ(xattr.name_at + xattr.name_bytes, xattr.value_at);
    std::string name = std::to_string(xattr.index);
    for (uint32_t i = 0; i < xattr.name_bytes; ++i) {
      name += static_cast<char>(bytes.at(xattr.name_at + i));
    }
    std::string value;
    for (uint32_t i = 0; i < xattr.value_bytes; ++i) {
      value += static_cast<char>(bytes.at(xattr.value_at + i));
    }
    out[name] = value;
  }
}

struct Outcome {
  int error = 0;  // of loading, or of the walk
  Attributes attributes;
  uint32_t reported = 0;
};

/// Everything that the library says about one file's attributes.
Outcome look(TestImage& image, uint32_t ino, uint32_t width, bool faulty = false) {
  VolumeRigOptions options;
  options.ssd.fault_capacity = 4;
  VolumeRig rig(image, options);
  rig.mount_ready();
  if (faulty) {
    const uint32_t nid = image.node(ino).inode.i_xattr_nid;
    rig.add_fault(
        VolumeRig::reads_of_block(image.nat_entry(nid).block_addr, 9, ssd::FaultAction::kStatus));
  }
  Outcome outcome;
  run_alone(width, [&](const simt::Warp& warp) {
    Volume& volume = rig.volume();
    const PagePool& pool = rig.fs().pool;
    Inode inode{};
    EXPECT_EQ(load_inodes(warp, volume, warp.ballot(true), ino, inode), 0);
    XattrBytes bytes{};
    int error = load_xattrs(warp, volume, pool, inode, bytes);
    Attributes attributes;
    if (error == 0 && bytes.bytes != 0) error = collect(warp, volume, bytes, attributes);
    unload_xattrs(warp, pool, bytes);
    if (warp.thread_rank() == 0) {
      outcome.error = error;
      outcome.attributes = attributes;
    }
    warp.sync();
  });
  outcome.reported = count_findings(*rig.volume().corruptions);
  for (uint32_t i = 0; i < rig.fs().pool.count; ++i) {
    EXPECT_EQ(rig.fs().pool.locks[i], 0u) << "a spare block was kept";
  }
  return outcome;
}

/// (width, features)
class XattrTest : public ::testing::TestWithParam<std::tuple<uint32_t, uint32_t>> {
 protected:
  uint32_t width() const { return std::get<0>(GetParam()); }
  TestImage image_{add_files, std::get<1>(GetParam())};
};

TEST_P(XattrTest, every_attribute_is_there_wherever_it_lies) {
  const auto target = image_.target();
  image::TestReader reader(*target);
  std::map<std::string, size_t> counts;
  for (const std::string& name : names()) {
    const auto file = reader.at("/" + name);
    const Outcome outcome = look(image_, file.ino, width());
    EXPECT_EQ(outcome.error, 0) << name;
    EXPECT_EQ(outcome.reported, 0u) << name;
    EXPECT_TRUE(outcome.attributes == reader.xattrs(file)) << name;
    counts[name] = outcome.attributes.size();
  }
  const std::map<std::string, size_t> expected = {{"none", 0},  {"room", 0},  {"inline", 2},
                                                  {"node", 2},  {"both", 4},  {"full", 1},
                                                  {"empty", 1}, {"many", 300}};
  EXPECT_EQ(counts, expected);
  // And they lie where they are meant to.
  EXPECT_EQ(reader.at("/inline").inode().i_xattr_nid, 0u);
  EXPECT_NE(reader.at("/both").inode().i_xattr_nid, 0u);
  EXPECT_EQ(reader.at("/node").inode().i_inline & format::kInlineXattr, 0);
}

TEST_P(XattrTest, names_are_found_by_all_of_their_bytes) {
  VolumeRig rig(image_);
  rig.mount_ready();
  const uint32_t ino = ino_of(image_, "both");
  run_alone(width(), [&](const simt::Warp& warp) {
    Inode inode{};
    EXPECT_EQ(load_inodes(warp, rig.volume(), warp.ballot(true), ino, inode), 0);
    XattrBytes bytes{};
    ASSERT_EQ(load_xattrs(warp, rig.volume(), rig.fs().pool, inode, bytes), 0);
    const auto found = [&](uint32_t index, const std::string& name) {
      Xattr xattr{};
      return find_xattr(warp, rig.volume(), bytes, index, name.data(),
                        static_cast<uint32_t>(name.size()), xattr);
    };
    EXPECT_EQ(found(format::kXattrUser, "straddles"), 1);
    EXPECT_EQ(found(format::kXattrUser, std::string(255, 'n')), 1);
    EXPECT_EQ(found(format::kXattrTrusted, "last"), 1);
    EXPECT_EQ(found(format::kXattrUser, "last"), 0);
    EXPECT_EQ(found(format::kXattrUser, "straddle"), 0);
    EXPECT_EQ(found(format::kXattrUser, "straddler"), 0);
    EXPECT_EQ(found(format::kXattrUser, std::string(254, 'n') + "m"), 0);
    EXPECT_EQ(found(format::kXattrUser, std::string(254, 'n')), 0);
    unload_xattrs(warp, rig.fs().pool, bytes);
  });
}

TEST_P(XattrTest, many_warps_share_few_spare_blocks) {
  VolumeRigOptions options;
  options.filesystem.cache_pages = 64;
  options.filesystem.pool_pages = 32;
  VolumeRig rig(image_, options);
  rig.mount_ready();
  // All but three blocks are taken: one warp at a time finds a pair.
  for (uint32_t i = 3; i < rig.fs().pool.count; ++i) rig.fs().pool.locks[i] = 1;
  const uint32_t ino = ino_of(image_, "both");
  std::atomic<uint32_t> wrong{0};
  run_crowd({width() == 1 ? 8u : 3u, width()}, [&](const simt::Warp& warp, uint32_t) {
    for (int turn = 0; turn < 20; ++turn) {
      Inode inode{};
      load_inodes(warp, rig.volume(), warp.ballot(true), ino, inode);
      XattrBytes bytes{};
      if (load_xattrs(warp, rig.volume(), rig.fs().pool, inode, bytes) != 0) ++wrong;
      Attributes attributes;
      if (collect(warp, rig.volume(), bytes, attributes) != 0 || attributes.size() != 4) ++wrong;
      unload_xattrs(warp, rig.fs().pool, bytes);
    }
  });
  EXPECT_EQ(wrong, 0u);
  for (uint32_t i = 0; i < rig.fs().pool.count; ++i) {
    EXPECT_EQ(rig.fs().pool.locks[i], i < 3 ? 0u : 1u);
  }
}

TEST_P(XattrTest, a_node_that_cannot_be_read_is_an_error) {
  const Outcome outcome = look(image_, ino_of(image_, "both"), width(), true);
  EXPECT_EQ(outcome.error, -EIO);
  EXPECT_EQ(outcome.reported, 0u);
}

/// What may be wrong, each in an image of its own.
struct Damage {
  const char* what;
  const char* file;
  std::function<void(TestImage& image, format::NodeBlock& inode)> change;
};

/// The attributes' bytes in the inode, and in the node.
uint8_t* in_inode(TestImage& image, format::NodeBlock& inode, uint32_t at) {
  const auto layout =
      format::inode_layout(inode.inode, static_cast<uint32_t>(image.superblock(0).feature));
  return reinterpret_cast<uint8_t*>(&inode) + layout.xattr_offset + at;
}
format::NodeBlock& xattr_node(TestImage& image, format::NodeBlock& inode) {
  return image.node(inode.inode.i_xattr_nid);
}

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all = {
      {"another magic", "inline", [](auto& image, auto& inode) { ++*in_inode(image, inode, 0); }},
      {"another magic in the node", "node",
       [](auto& image, auto& inode) { ++xattr_node(image, inode).xattrs[1]; }},
      {"entries without a header", "inline",
       [](auto& image, auto& inode) { std::memset(in_inode(image, inode, 0), 0, kHeaderBytes); }},
      {"an unused index", "inline",
       [](auto& image, auto& inode) { *in_inode(image, inode, kHeaderBytes) = 12; }},
      {"index 0 with a name", "inline",
       [](auto& image, auto& inode) { *in_inode(image, inode, kHeaderBytes) = 0; }},
      {"no name", "inline",
       [](auto& image, auto& inode) { *in_inode(image, inode, kHeaderBytes + 1) = 0; }},
      {"a NUL in the name", "inline",
       [](auto& image, auto& inode) { *in_inode(image, inode, kHeaderBytes + 4) = 0; }},
      {"an ACL with a name", "inline",
       [](auto& image, auto& inode) {
         *in_inode(image, inode, kHeaderBytes) = format::kXattrAclAccess;
       }},
      {"a value past the end", "inline",
       [](auto& image, auto& inode) { *in_inode(image, inode, kHeaderBytes + 3) = 0xff; }},
      {"a value past the end of both", "both",
       [](auto& image, auto& inode) { *in_inode(image, inode, kHeaderBytes + 3) = 0xff; }},
      {"a name past the end", "inline",
       [](auto& image, auto& inode) { *in_inode(image, inode, kHeaderBytes + 1) = 0xff; }},
      {"one byte more than fits", "full",
       [](auto& image, auto& inode) { ++*in_inode(image, inode, kHeaderBytes + 2); }},
      {"the node cut off", "both", [](auto&, auto& inode) { inode.inode.i_xattr_nid = 0; }},
      {"a node past the NAT", "both",
       [](auto&, auto& inode) { inode.inode.i_xattr_nid = 0xFFFFFFF0; }},
      {"a free node", "both", [](auto&, auto& inode) { inode.inode.i_xattr_nid = 4000; }},
      {"the inode as its own attributes", "both",
       [](auto&, auto& inode) { inode.inode.i_xattr_nid = inode.footer.ino; }},
      {"another file's node", "both",
       [](auto& image, auto& inode) {
         inode.inode.i_xattr_nid = image.node(ino_of(image, "node")).inode.i_xattr_nid;
       }},
      {"a node of the file's tree", "both",
       [](auto& image, auto& inode) {
         xattr_node(image, inode).footer.flag = 1u << format::kNodeOffsetShift;
       }},
      {"a footer of another node", "both",
       [](auto& image, auto& inode) { xattr_node(image, inode).footer.nid = 77; }},
      {"a footer of another file", "both",
       [](auto& image, auto& inode) { xattr_node(image, inode).footer.ino = 77; }},
  };
  return all;
}

TEST_P(XattrTest, damage_is_reported_and_nothing_else_happens) {
  for (const Damage& damage : damages()) {
    TestImage image(add_files, std::get<1>(GetParam()));
    const uint32_t ino = ino_of(image, damage.file);
    damage.change(image, image.node(ino));
    if ((std::get<1>(GetParam()) & format::kFeatureInodeChecksum) != 0) image.seal_inode(ino);
    const Outcome outcome = look(image, ino, width());
    EXPECT_EQ(outcome.error, -EUCLEAN) << damage.what;
    // Lanes that find the same page wrong may each say so.
    EXPECT_GE(outcome.reported, 1u) << damage.what;
    EXPECT_LE(outcome.reported, width()) << damage.what;
    EXPECT_EQ(look(image, ino_of(image, "many"), width()).attributes.size(), 300u) << damage.what;
  }
}

INSTANTIATE_TEST_SUITE_P(
    width_features, XattrTest,
    ::testing::Combine(::testing::Values(1u, 4u),
                       ::testing::Values(0u, uint32_t{format::kFeatureExtraAttr |
                                                      format::kFeatureFlexibleInlineXattr |
                                                      format::kFeatureInodeChecksum})));

/// Bytes of a length of their own, so that AddressSanitizer sees their ends.
class LooseBytes {
 public:
  LooseBytes(uint32_t inline_bytes, uint32_t node_bytes)
      : inline_(new uint8_t[inline_bytes]), node_(new uint8_t[node_bytes]) {
    bytes_.parts = {{inline_.get(), node_.get()}};
    bytes_.ino = 5;
    bytes_.inline_bytes = inline_bytes;
    bytes_.bytes = inline_bytes + node_bytes;
    volume_.corruptions = &log_;
  }
  uint8_t& operator[](uint32_t at) {
    return at < bytes_.inline_bytes ? inline_[at] : node_[at - bytes_.inline_bytes];
  }
  const XattrBytes& bytes() const { return bytes_; }
  Volume& volume() { return volume_; }
  const CorruptionLog& log() const { return log_; }

 private:
  std::unique_ptr<uint8_t[]> inline_;
  std::unique_ptr<uint8_t[]> node_;
  XattrBytes bytes_{};
  CorruptionLog log_{};
  Volume volume_{};
};

TEST(XattrBytesTest, any_bytes_of_any_length_are_gone_through) {
  std::mt19937_64 random(printed_seed());
  uint32_t damaged = 0;
  uint32_t ended = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    const auto inline_bytes = static_cast<uint32_t>(random() % 60 * 4);
    const uint32_t node_bytes = random() % 2 == 0 ? 0 : static_cast<uint32_t>(random() % 60 * 4);
    LooseBytes loose(inline_bytes, node_bytes);
    const uint32_t total = inline_bytes + node_bytes;
    if (total == 0) continue;
    for (uint32_t i = 0; i < total; ++i) loose[i] = static_cast<uint8_t>(random());
    const bool headed = total >= kHeaderBytes;
    for (uint32_t i = 0; headed && i < 4; ++i) {
      loose[i] = static_cast<uint8_t>(format::kXattrMagic >> 8 * i);
    }
    // Entries that are nearly right, so that the walk gets far.
    uint32_t at = kHeaderBytes;
    while (at + 4 <= total && random() % 32 != 0) {
      loose[at] = static_cast<uint8_t>(1 + random() % 11);
      loose[at + 1] = static_cast<uint8_t>(random() % 9);
      loose[at + 2] = static_cast<uint8_t>(random() % 30);
      loose[at + 3] = static_cast<uint8_t>(random() % 64 == 0 ? random() : 0);
      at += (4u + loose[at + 1] + loose[at + 2] + 256u * loose[at + 3] + 3u) & ~3u;
    }
    if (at + 4 <= total && random() % 2 == 0)
      loose[at] = loose[at + 1] = loose[at + 2] = loose[at + 3] = 0;
    Attributes attributes;
    const int end = collect(simt::Warp(), loose.volume(), loose.bytes(), attributes);
    EXPECT_TRUE(end == 0 || end == -EUCLEAN);
    EXPECT_EQ(count_findings(loose.log()), end == 0 ? 0u : 1u);
    (end == 0 ? ended : damaged) += 1;
    Xattr xattr{};
    (void)find_xattr(simt::Warp(), loose.volume(), loose.bytes(), 1, "abcdefghi", 9, xattr);
  }
  EXPECT_GT(damaged, 1000u);
  EXPECT_GT(ended, 100u);
}

TEST(XattrBytesTest, areas_too_small_for_a_header) {
  for (const uint32_t inline_bytes : {4u, 8u, 20u}) {
    LooseBytes zero(inline_bytes, 0);
    for (uint32_t i = 0; i < inline_bytes; ++i) zero[i] = 0;
    Attributes attributes;
    EXPECT_EQ(collect(simt::Warp(), zero.volume(), zero.bytes(), attributes), 0);
    zero[inline_bytes - 1] = 1;
    EXPECT_EQ(collect(simt::Warp(), zero.volume(), zero.bytes(), attributes), -EUCLEAN);
  }
  // The header itself may straddle.
  LooseBytes both(8, 40);
  for (uint32_t i = 0; i < 48; ++i) both[i] = 0;
  for (uint32_t i = 0; i < 4; ++i) both[i] = static_cast<uint8_t>(format::kXattrMagic >> 8 * i);
  both[24] = format::kXattrUser;
  both[25] = 1;
  both[28] = 'k';
  Attributes attributes;
  EXPECT_EQ(collect(simt::Warp(), both.volume(), both.bytes(), attributes), 0);
  EXPECT_EQ(attributes, (Attributes{{"1k", ""}}));
}

}  // namespace
}  // namespace gofs::f2fs
