// SPDX-License-Identifier: Apache-2.0
#include "base_image.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <vector>

#include "host/image/image_builder.h"
#include "host/image/pattern.h"
#include "image_map.h"

namespace gofs::fuzz {

namespace {

using image::Directory;
using image::FileHandle;
using image::FileLayout;
using image::FileSpec;
using image::ImageBuilder;
using image::Status;

constexpr int64_t kTime = 1'700'000'000;
constexpr uint64_t kBuiltBytes = base_bytes(Base::kPlain);
constexpr uint64_t kToolsBytes = base_bytes(Base::kTools);

void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error("base image: " + status.message);
}

FileSpec patterned(std::string_view name, uint64_t bytes, uint64_t seed) {
  FileSpec file;
  file.name = name;
  file.size_bytes = bytes;
  file.content = image::pattern_content(seed);
  return file;
}

/// Everything, once or a few times.
class Contents {
 public:
  explicit Contents(ImageBuilder& builder) : builder_(builder), root_(builder.root()) {}

  void add() {
    add_plain_files();
    add_sparse_files();
    add_attributes();
    add_directories();
    add_links_and_specials();
  }

 private:
  void add_plain_files() {
    must(builder_.add_file(root_, patterned("empty", 0, 1)));
    FileSpec small = patterned("inline", 100, 2);
    small.inline_data = true;
    must(builder_.add_file(root_, small));
    FileSpec full = patterned("inline-full", 3400, 3);
    full.inline_data = true;
    must(builder_.add_file(root_, full));
    must(builder_.add_file(root_, patterned("two-blocks", 5000, 4)));
    FileSpec fragments = patterned("fragments", 40 * kBlockBytes, 5);
    must(builder_.add_file(root_, fragments, {.run_blocks = 1, .shuffle = true}));
    // One whole direct node and a part of the next.
    must(builder_.add_file(root_, patterned("direct", 960 * kBlockBytes + 7, 6)));

    Directory batch;
    must(builder_.add_directory(root_, "batch", {.mode = 0755}, {}, &batch));
    for (uint32_t i = 0; i < 12; ++i) {
      must(builder_.add_file(batch, patterned("f" + std::to_string(i), 1 + i * 1500, 100 + i)));
    }
  }

  void add_sparse_files() {
    using namespace format;
    constexpr auto kSlots = uint32_t{kInodeSlots};
    constexpr auto kDirect = static_cast<uint32_t>(kDirectBlocks);
    constexpr auto kIndirect = static_cast<uint32_t>(kIndirectBlocks);
    // A few blocks in each of the five trees below the inode.
    FileSpec trees = patterned("trees", 0, 7);
    trees.sparse = true;
    constexpr uint32_t kDouble = kSlots + 2 * kDirect + 2 * kIndirect;
    trees.ranges = {{3, 2},
                    {kSlots + 10, 1},
                    {kSlots + kDirect + 500, 1},
                    {kSlots + 2 * kDirect + 3 * kDirect + 7, 2},
                    {kSlots + 2 * kDirect + kIndirect + 5 * kDirect, 1},
                    {kDouble + 2 * kIndirect + 9 * kDirect + 11, 1}};
    trees.size_bytes = uint64_t{kDouble + 4 * kIndirect} * kBlockBytes + 123;
    must(builder_.add_file(root_, trees));

    FileSpec reserved = patterned("reserved", 20 * kBlockBytes, 8);
    reserved.sparse = true;
    reserved.ranges = {{2, 3, true}, {9, 1, false}, {12, 4, true}};
    must(builder_.add_file(root_, reserved));

    // One that a batch cannot keep as runs, and small enough to be read in one.
    FileSpec gap = patterned("gap", 3 * kBlockBytes + 1, 13);
    gap.sparse = true;
    gap.ranges = {{0, 1}, {2, 2}};
    must(builder_.add_file(root_, gap));

    FileSpec hole = patterned("hole", 0, 9);
    hole.sparse = true;
    hole.size_bytes = (uint64_t{3900} << 30) + 1;
    must(builder_.add_file(root_, hole));
  }

  void add_attributes() {
    FileSpec inside = patterned("xattr-inline", 600, 10);
    inside.inline_data = true;
    inside.inline_xattr = true;
    inside.xattrs = {{format::kXattrUser, "colour", "green"}};
    must(builder_.add_file(root_, inside));
    FileSpec outside = patterned("xattr-node", 700, 11);
    outside.inline_xattr = true;
    outside.xattrs = {{format::kXattrUser, "long", std::string(2000, 'v')},
                      {format::kXattrTrusted, "t", "1"},
                      {format::kXattrSecurity, "capability", std::string(20, '\x01')}};
    must(builder_.add_file(root_, outside));
    FileSpec old = patterned("old", 10, 12);
    old.attributes = {.mode = 06751,
                      .uid = 1000,
                      .gid = 0xFFFFFFF0,
                      .atime = image::Timestamp{-100, 5},
                      .mtime = image::Timestamp{INT64_MAX, 999'999'999},
                      .ctime = image::Timestamp{INT64_MIN, 0}};
    must(builder_.add_file(root_, old));
  }

  void add_directories() {
    // Inline, nested, with names of all lengths.
    Directory above;
    must(builder_.add_directory(root_, "inline-dir", {.mode = 0755}, {.inline_dentries = true},
                                &above));
    must(builder_.add_file(above, patterned(std::string(255, 'n'), 5, 20)));
    must(builder_.add_file(above, patterned("\xc3\xa9t\xc3\xa9", 6, 21)));
    must(builder_.add_file(above, patterned("8 bytes.", 7, 22)));
    for (const char* name : {"a", "b", "c", "d"}) {
      Directory below;
      must(builder_.add_directory(above, name, {.mode = 0755}, {.inline_dentries = true}, &below));
      must(builder_.add_file(below, patterned("leaf", 9, 23)));
      above = below;
    }

    // Hash levels, with names that are all the same file.
    FileHandle many;
    must(builder_.add_file(root_, patterned("many", 44, 24), {}, &many));
    Directory hashed;
    must(builder_.add_directory(root_, "hashed-dir", {.mode = 0755}, {}, &hashed));
    for (uint32_t i = 0; i < 900; ++i) {
      must(builder_.add_link(hashed, "entry-" + std::to_string(i * 7919), many));
    }
    Directory levels;
    must(builder_.add_directory(root_, "levels-dir", {.mode = 0755}, {.dir_level = 3}, &levels));
    for (uint32_t i = 0; i < 40; ++i) {
      must(
          builder_.add_link(levels, std::string(1 + i * 6, static_cast<char>('A' + i % 26)), many));
    }
  }

  void add_links_and_specials() {
    const image::Attributes attributes{.mode = 0777};
    const auto link = [&](const char* name, std::string_view target, bool in_inode) {
      must(builder_.add_symlink(root_, name, target, attributes, in_inode));
    };
    link("link-inside", "inline-dir/a/b", true);
    link("link-absolute", "/hashed-dir/entry-0", false);
    link("link-up", "inline-dir/a/../../two-blocks", true);
    link("link-dangling", "nowhere/at/all", true);
    link("link-loop-1", "link-loop-2", true);
    link("link-loop-2", "/link-loop-1", false);
    link("link-self", "link-self/x", true);
    link("link-long", "./" + std::string(3000, '/') + "/inline-dir", true);
    link("link-block", "./" + std::string(4000, '/') + "/empty", false);
    must(builder_.add_special(root_, "char", format::kModeCharDevice, {259, 1048575}, attributes));
    must(builder_.add_special(root_, "block", format::kModeBlockDevice, {8, 1}, attributes));
    must(builder_.add_special(root_, "fifo", format::kModeFifo, {0, 0}, attributes));
    must(builder_.add_special(root_, "socket", format::kModeSocket, {0, 0}, attributes));
  }

  ImageBuilder& builder_;
  const Directory root_;
};

void build(uint32_t feature, uint8_t* memory) {
  const auto target = image::make_memory_target(memory, kBuiltBytes);
  image::VolumeOptions options;
  options.label = "fuzz";
  options.feature = feature;
  options.seed = 1;
  options.time_s = kTime;
  options.flush = false;
  std::unique_ptr<ImageBuilder> builder;
  must(ImageBuilder::create(*target, options, &builder));
  Contents(*builder).add();
  must(builder->finish());
}

uint8_t* block_of(uint8_t* memory, uint32_t block) {
  return memory + uint64_t{block} * kBlockBytes;
}

/// Does what checkpoints would have done in time: pack 2 is the current one, every NAT block lies
/// in its second copy, and some entries are in the journal only. What is stale is filled with 0xA5.
void move_tables(uint8_t* memory) {
  const ImageMap before = map_image(memory, kBuiltBytes);
  const format::Geometry& geometry = before.geometry;
  const uint32_t old_base = geometry.pack_block(before.pack);
  const uint32_t base = geometry.pack_block(1 - before.pack);
  const uint32_t total = checkpoint_at(memory, old_base).cp_pack_total_block_count;
  std::memcpy(block_of(memory, base), block_of(memory, old_base), uint64_t{total} * kBlockBytes);
  uint8_t* const head = block_of(memory, base);
  auto& checkpoint = *reinterpret_cast<format::Checkpoint*>(head);
  checkpoint.checkpoint_ver = checkpoint.checkpoint_ver + 1;
  if (checkpoint.has(format::kCheckpointCompactSummary)) {
    throw std::runtime_error("base image: normal summaries expected");
  }

  const auto places = format::version_bitmap_places(checkpoint, geometry.cp_payload);
  for (uint32_t index = 0; index < geometry.nat_blocks(); ++index) {
    std::memcpy(block_of(memory, geometry.nat_block(index, true)),
                block_of(memory, geometry.nat_block(index, false)), kBlockBytes);
    std::memset(block_of(memory, geometry.nat_block(index, false)), 0xA5, kBlockBytes);
    format::set_msb_bit(head + places.nat_offset, index, true);
  }

  const uint32_t hot = base + format::summary_block_in_pack(checkpoint, format::kHotData);
  auto& journal = reinterpret_cast<format::SummaryBlock*>(block_of(memory, hot))->nat_journal;
  for (const NodeSpot& node : before.nodes) {
    if (node.nid % 3 != 0 || journal.count >= format::kNatJournalEntries) continue;
    const uint32_t index = node.nid / format::kNatEntriesPerBlock;
    auto& entry =
        reinterpret_cast<format::NatBlock*>(block_of(memory, geometry.nat_block(index, true)))
            ->entries[node.nid % format::kNatEntriesPerBlock];
    journal.entries[journal.count] = {{}, entry};
    journal.entries[journal.count].nid = node.nid;
    journal.count = static_cast<uint16_t>(journal.count + 1);
    std::memset(&entry, 0xA5, sizeof(entry));
  }

  const uint32_t offset = checkpoint.checksum_offset;
  format::store_u32(head + offset, format::checkpoint_checksum(head, offset));
  std::memcpy(block_of(memory, base + total - 1), head, kBlockBytes);
}

// --- f2fs-tools ----------------------------------------------------------------------------------

std::string with_sbin(const std::string& command) {
  return "PATH=$PATH:/usr/sbin:/sbin; export PATH; { " + command + "; } </dev/null >/dev/null 2>&1";
}

bool runs(const std::string& command) { return std::system(with_sbin(command).c_str()) == 0; }

/// A folder that goes with its object.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / "gofs-fuzz-XXXXXX") {
    std::string text = path_.string();
    if (::mkdtemp(text.data()) == nullptr)
      throw std::runtime_error("base image: no temporary folder");
    path_ = text;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The host's side of what sload.f2fs copies.
void make_tree(const std::filesystem::path& tree) {
  namespace fs = std::filesystem;
  const auto file = [&](const std::string& name, uint64_t bytes, uint64_t seed) {
    std::vector<char> content(bytes);
    image::fill_pattern(seed, 0, content.data(), bytes);
    std::ofstream(tree / name, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(bytes));
  };
  fs::create_directories(tree / "nested/a/b/c");
  fs::create_directories(tree / "many");
  file("empty", 0, 1);
  file("small", 100, 2);
  file("blocks", 30'000, 3);
  file("direct", 930 * uint64_t{kBlockBytes}, 4);
  file("nested/a/b/c/leaf", 10, 5);
  file(std::string(255, 'n'), 5000, 6);
  for (uint32_t i = 0; i < 300; ++i) file("many/entry-" + std::to_string(i), i % 3, i);
  fs::create_symlink("nested/a", tree / "link");
  fs::create_symlink("/many/entry-7", tree / "link-absolute");
  fs::create_symlink(std::string(3000, 'x'), tree / "link-long");
  std::ofstream sparse(tree / "sparse", std::ios::binary);
  sparse.seekp(3'000'000).write("end", 3);
}

void make_with_tools(const std::string& options, uint8_t* memory) {
  const TemporaryFolder folder;
  const std::string image = (folder.path() / "image").string();
  const std::string tree = (folder.path() / "tree").string();
  std::ofstream(image, std::ios::binary).close();
  std::filesystem::resize_file(image, kToolsBytes);
  make_tree(tree);
  if (!runs("mkfs.f2fs " + options + " '" + image + "'")) {
    throw std::runtime_error("base image: mkfs.f2fs " + options + " failed");
  }
  // sload.f2fs ends with whatever its fsck said.
  (void)runs("sload.f2fs -f '" + tree + "' '" + image + "'");
  std::ifstream file(image, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(memory), kToolsBytes)) {
    throw std::runtime_error("base image: the tools left no whole image");
  }
}

}  // namespace

const char* base_name(Base base) {
  switch (base) {
    case Base::kPlain:
      return "plain";
    case Base::kExtra:
      return "extra";
    case Base::kMoved:
      return "moved";
    case Base::kTools:
      return "tools";
    case Base::kToolsExtra:
      return "tools-extra";
  }
  return "?";
}

bool can_make(Base base) {
  if (static_cast<uint32_t>(base) < kBuiltCount) return true;
  return runs("command -v mkfs.f2fs && command -v sload.f2fs");
}

void make_base(Base base, uint8_t* image) {
  switch (base) {
    case Base::kPlain:
      return build(0, image);
    case Base::kExtra:
      return build(image::kFeaturesOffered, image);
    case Base::kMoved:
      build(0, image);
      return move_tables(image);
    case Base::kTools:
      return make_with_tools("", image);
    case Base::kToolsExtra:
      // Not flexible_inline_xattr: with it sload.f2fs 1.15 puts block addresses of larger files
      // where their inline attributes belong, and no reader can call that sound. kExtra has it.
      return make_with_tools("-O extra_attr,inode_checksum,inode_crtime,sb_checksum,lost_found",
                             image);
  }
}

}  // namespace gofs::fuzz
