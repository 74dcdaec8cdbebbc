// SPDX-License-Identifier: Apache-2.0
//
// Damaged volumes: whatever a command leaves out it tells, once, and exits with 1; and what is
// sound is still there.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "f2fs/corruption.h"
#include "format/f2fs.h"
#include "host/image/reader_for_test.h"
#include "run_gofs.h"

namespace gofs::cli_test {
namespace {

/// /d with aaa, bbb and e, which has deep; /out with kept; /one and /link, which leads to it.
class DamageTest : public testing::Test {
 protected:
  DamageTest() {
    const auto must = [](const image::Status& status) {
      EXPECT_TRUE(status.ok()) << status.message;
    };
    image::VolumeOptions options;
    options.seed = 1;
    options.overwrite = true;
    options.flush = false;
    must(image::open_file_target(path_.path(), uint64_t{64} << 20, &target_));
    std::unique_ptr<image::ImageBuilder> builder;
    must(image::ImageBuilder::create(*target_, options, &builder));
    const auto add_file = [&](const image::Directory& parent, const char* name) {
      image::FileSpec file;
      file.name = name;
      file.size_bytes = 3;
      file.content = image::string_content("abc");
      must(builder->add_file(parent, file));
    };
    image::Directory d;
    image::Directory e;
    image::Directory out;
    must(builder->add_directory(builder->root(), "d", {}, {}, &d));
    must(builder->add_directory(d, "e", {}, {}, &e));
    must(builder->add_directory(builder->root(), "out", {}, {}, &out));
    add_file(d, "aaa");
    add_file(d, "bbb");
    add_file(e, "deep");
    add_file(out, "kept");
    add_file(builder->root(), "one");
    must(builder->add_symlink(builder->root(), "link", "one", {}));
    must(builder->finish());
    builder.reset();
    target_.reset();  // the command mounts it
  }

  /// The image, until the command is run again, which has it alone.
  image::ImageTarget& target() {
    if (target_ == nullptr) {
      const image::Status opened = image::open_file_target(path_.path(), 0, &target_);
      EXPECT_TRUE(opened.ok()) << opened.message;
    }
    return *target_;
  }
  Answer run_command(const std::vector<std::string>& words) {
    target_.reset();
    return run_gofs(words);
  }

  uint32_t ino_of(const std::string& path) { return image::TestReader(target()).at(path).ino; }

  template <typename Block>
  void change_block(uint32_t address, const std::function<void(Block&)>& change) {
    alignas(8) uint8_t block[4096];
    ASSERT_TRUE(target().read(uint64_t{address} * 4096, block, sizeof(block)).ok());
    change(*reinterpret_cast<Block*>(block));
    ASSERT_TRUE(target().write(uint64_t{address} * 4096, block, sizeof(block)).ok());
  }
  /// Changes the entry `name` of a directory, and its name; not the first two, which have the dots.
  void change_entry(const std::string& directory, const std::string& name,
                    const std::function<void(format::Dentry& entry, uint8_t* name)>& change) {
    image::TestReader reader(target());
    change_block<format::DentryBlock>(
        reader.address(reader.at(directory), 0), [&](format::DentryBlock& block) {
          for (uint32_t slot = 2; slot < format::kDentrySlotsPerBlock; ++slot) {
            if (block.dentry[slot].name_len == name.size() &&
                std::memcmp(block.filename[slot], name.data(), name.size()) == 0) {
              return change(block.dentry[slot], block.filename[slot]);
            }
          }
          ADD_FAILURE() << name;
        });
  }
  void rename_entry(const std::string& directory, const std::string& name, const std::string& now) {
    change_entry(directory, name, [&](format::Dentry& entry, uint8_t* bytes) {
      std::memcpy(bytes, now.data(), now.size());
      entry.name_len = static_cast<uint16_t>(now.size());
      entry.hash_code = format::name_hash(now.data(), static_cast<uint32_t>(now.size()));
    });
  }
  void retarget(const std::string& directory, const std::string& name, uint32_t ino) {
    change_entry(directory, name, [&](format::Dentry& entry, uint8_t*) { entry.ino = ino; });
  }
  void change_inode(const std::string& path, const std::function<void(format::Inode&)>& change) {
    image::TestReader reader(target());
    const uint32_t ino = ino_of(path);
    alignas(8) uint8_t block[4096];
    const uint32_t nat = reader.geometry().nat_block(ino / format::kNatEntriesPerBlock, false);
    ASSERT_TRUE(target().read(uint64_t{nat} * 4096, block, sizeof(block)).ok());
    const auto& entry =
        reinterpret_cast<format::NatBlock*>(block)->entries[ino % format::kNatEntriesPerBlock];
    change_block<format::NodeBlock>(entry.block_addr,
                                    [&](format::NodeBlock& node) { change(node.inode); });
  }

  /// Expects just one sentence, with those words, and status 1.
  void expect_told(const std::vector<std::string>& words, const std::string& sentence) {
    const Answer answer = run_command(words);
    EXPECT_EQ(answer.status, 1) << testing::PrintToString(words);
    EXPECT_EQ(lines_of(answer.err).size(), 1u) << words[0] << ": " << answer.err;
    EXPECT_NE(answer.err.find(sentence), std::string::npos) << words[0] << ": " << answer.err;
  }
  /// The same of each command that walks, but for rm, which cannot remove the directory either.
  void expect_all_tell(const std::string& sentence) {
    const image::TemporaryPath folder;
    std::filesystem::remove(folder.path());
    expect_told({"ls", path_.path(), "/", "-R"}, sentence);
    expect_told({"get", path_.path(), "/", folder.path(), "-r"}, sentence);
    expect_told({"sum", path_.path(), "/", "-r"}, sentence);
    std::filesystem::remove_all(folder.path());
    if (!image::tool_exists("fsck.f2fs")) return;
    const Answer answer = run_command({"check", path_.path()});
    EXPECT_EQ(answer.status, 1);
    EXPECT_NE(answer.err.find(sentence), std::string::npos) << answer.err;
  }
  void expect_rm_tells(const std::string& operand, const std::string& sentence) {
    const Answer answer = run_command({"rm", "-r", path_.path(), operand});
    EXPECT_EQ(answer.status, 1);
    EXPECT_NE(answer.err.find(sentence), std::string::npos) << answer.err;
  }

  const image::TemporaryPath path_;
  std::unique_ptr<image::ImageTarget> target_;
};

TEST_F(DamageTest, an_impossible_inode_number_is_told) {
  retarget("/d", "bbb", 99'999'999);
  const std::string sentence = "the entry in slot 4 has the impossible inode number 99999999";
  expect_all_tell(sentence);
  EXPECT_EQ(run_command({"ls", path_.path(), "/d"}).out, "aaa\ne\n");
  expect_told({"cat", path_.path(), "/d/bbb"}, sentence);
  expect_rm_tells("/d", sentence);
}

TEST_F(DamageTest, names_that_cannot_be_are_told) {
  std::string was = "aaa";
  for (const std::string& name :
       {std::string("a/b"), std::string("a\0b", 3), std::string(".."), std::string(".")}) {
    rename_entry("/d", was, name);
    was = name;
    const std::string sentence =
        "has an impossible name of " + std::to_string(name.size()) + " bytes";
    expect_told({"ls", path_.path(), "/d"}, sentence);
    if (name == "a/b") expect_all_tell(sentence);
  }
  expect_rm_tells("/d", "has an impossible name of 1 bytes");
}

TEST_F(DamageTest, a_name_that_stands_twice_is_told_and_leads_to_the_first) {
  const uint32_t first = ino_of("/d/aaa");
  const uint32_t second = ino_of("/d/bbb");
  rename_entry("/d", "aaa", "bbb");
  const std::string sentence = "/d/bbb: damaged: directory " + std::to_string(ino_of("/d")) +
                               " has this name twice, for inodes " + std::to_string(first) +
                               " and " + std::to_string(second);
  expect_all_tell(sentence);
  EXPECT_NE(run_command({"ls", path_.path(), "/d", "--json"})
                .out.find("\"ino\":" + std::to_string(first) + ","),
            std::string::npos);
  expect_rm_tells("/d", sentence);
}

TEST_F(DamageTest, a_link_that_leads_nowhere_it_could_is_told) {
  const std::string nul = "has a NUL at byte 3";
  change_inode("/link", [](format::Inode& inode) { inode.i_size = 9; });
  expect_all_tell(nul);
  expect_told({"ls", path_.path()}, nul);
  change_inode("/link", [](format::Inode& inode) { inode.i_size = 4096; });
  expect_all_tell("has an impossible length of 4096");
}

TEST_F(DamageTest, an_inode_that_cannot_be_read_is_told) {
  change_inode("/d/aaa", [](format::Inode& inode) { inode.i_mode = 0; });
  expect_all_tell("/d/aaa: damaged: inode");
  expect_told({"ls", path_.path(), "/d"}, "/d/aaa: damaged: inode");
  EXPECT_EQ(run_command({"ls", path_.path(), "/d"}).out, "aaa\nbbb\ne\n");
  expect_rm_tells("/d", "/d/aaa: damaged: inode");
}

TEST_F(DamageTest, a_time_that_cannot_be_is_told_and_the_file_arrives) {
  change_inode("/d/aaa", [](format::Inode& inode) { inode.i_mtime_nsec = 1'000'000'000; });
  const std::string sentence = "has a time with 1000000000 nanoseconds";
  expect_all_tell(sentence);
  const image::TemporaryPath file;
  expect_told({"get", path_.path(), "/d/aaa", file.path()}, "a time that cannot be");
  EXPECT_EQ(read_file(file.path()), "abc");
  expect_rm_tells("/d", sentence);
  EXPECT_EQ(run_command({"ls", path_.path()}).out, "link\none\nout\n");
}

TEST_F(DamageTest, what_a_removed_file_leaves_is_told) {
  change_inode("/one", [](format::Inode& inode) { inode.i_xattr_nid = format::kRootIno; });
  expect_told({"rm", path_.path(), "/one"}, "damaged: footer of node 3 belongs elsewhere");
  EXPECT_EQ(run_command({"ls", path_.path()}).out, "d\nlink\nout\n");
}

TEST_F(DamageTest, a_file_that_cannot_be_read_is_told_by_check_as_well) {
  GOFS_NEED_TOOL("fsck.f2fs");
  change_inode("/one", [](format::Inode& inode) {
    inode.i_size = 8 << 20;
    inode.i_nid[0] = format::kRootIno;
  });
  const Answer answer = run_command({"check", path_.path()});
  EXPECT_EQ(answer.status, 1);
  EXPECT_NE(answer.err.find("/one: damaged: footer of node 3"), std::string::npos) << answer.err;
  expect_told({"sum", path_.path(), "/one"}, "/one: damaged: footer of node 3");
}

TEST_F(DamageTest, a_directory_of_no_size_is_told_and_stays) {
  change_inode("/d", [](format::Inode& inode) { inode.i_size = 0; });
  const std::string sentence = "/d: damaged: directory";
  expect_all_tell(sentence);
  expect_rm_tells("/d", sentence);
}

TEST_F(DamageTest, a_directory_that_has_lost_its_names_is_told_and_stays) {
  const uint32_t address = image::TestReader(target()).at("/d").inode().i_addr[0];
  const std::string no_name = "the entry in slot 0 has an impossible name of 0 bytes";
  change_inode("/d", [](format::Inode& inode) { inode.i_inline = format::kInlineDentry; });
  expect_told({"sum", path_.path(), "/", "-r"}, "/d: damaged: directory");
  expect_rm_tells("/d", no_name);
  change_inode("/d", [](format::Inode& inode) {
    inode.i_inline = 0;
    inode.i_addr[0] = format::kNullAddr;
  });
  expect_all_tell("/d: damaged: directory");
  expect_rm_tells("/d", "/d: damaged: directory");
  change_inode("/d", [&](format::Inode& inode) { inode.i_addr[0] = address; });
  EXPECT_EQ(run_command({"ls", path_.path(), "/d"}).out, "aaa\nbbb\ne\n");
}

TEST_F(DamageTest, a_name_for_an_inode_of_another_type_is_told) {
  change_entry("/d", "aaa",
               [](format::Dentry& entry, uint8_t*) { entry.file_type = format::kTypeDirectory; });
  expect_all_tell("has it with file type 2, inode");
  EXPECT_EQ(lines_of(run_command({"sum", "-r", path_.path()}).out).size(), 5u);
}

TEST_F(DamageTest, blocks_of_another_size_are_no_damage) {
  for (const uint32_t block : {0u, 1u}) {
    change_block<uint8_t[4096]>(block, [](uint8_t(&bytes)[4096]) {
      reinterpret_cast<format::Superblock*>(bytes + format::kSuperOffset)->log_blocksize = 14;
    });
  }
  for (const char* command : {"info", "ls", "check"}) {
    const Answer answer = run_command({command, path_.path()});
    EXPECT_EQ(answer.status, 1);
    EXPECT_NE(answer.err.find("blocks of 16 KiB, which are not supported"), std::string::npos);
    EXPECT_EQ(answer.err.find("damaged"), std::string::npos) << answer.err;
  }
}

// Whoever removes a directory with a false name in it must not remove what that leads to.
TEST_F(DamageTest, rm_keeps_to_the_tree) {
  const std::string has_place = "has its place in directory 3, as its '..' says";
  for (const uint32_t ino : {ino_of("/out"), format::kRootIno}) {
    retarget("/d", "e", ino);
    expect_told({"ls", "-R", path_.path(), "/d"}, has_place);
    expect_rm_tells("/d", has_place);
    EXPECT_EQ(run_command({"cat", path_.path(), "/out/kept"}).out, "abc");
    EXPECT_EQ(run_command({"cat", path_.path(), "/one"}).out, "abc");
  }
}

TEST_F(DamageTest, every_finding_is_told_also_where_the_log_is_too_small) {
  // 200 entries of one block, the log holds 64 findings.
  image::TestReader reader(target());
  change_block<format::DentryBlock>(reader.address(reader.at("/d"), 0),
                                    [](format::DentryBlock& block) {
                                      for (uint32_t slot = 5; slot < 205; ++slot) {
                                        format::set_lsb_bit(block.dentry_bitmap, slot, true);
                                        block.dentry[slot] = block.dentry[2];
                                        block.dentry[slot].ino = 0;
                                      }
                                    });
  const Answer answer = run_command({"ls", path_.path(), "/d"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_EQ(answer.out, "aaa\nbbb\ne\n");
  EXPECT_EQ(lines_of(answer.err).size(), f2fs::kCorruptionsKept + 1);
  EXPECT_NE(answer.err.find("there was more damage than could be noted"), std::string::npos);
}

}  // namespace
}  // namespace gofs::cli_test
