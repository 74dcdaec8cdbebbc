// SPDX-License-Identifier: Apache-2.0
//
// Every command of `gofs` but get and bench: what it prints, how it escapes, and how it ends.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "host/volume_state.h"
#include "kernels/sha256.h"
#include "run_gofs.h"

namespace gofs::cli_test {
namespace {

using Json = nlohmann::json;
using host::SampleVolume;

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += "0123456789abcdef"[static_cast<uint8_t>(byte) >> 4];
    text += "0123456789abcdef"[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

/// The digest of a file of the sample, by the code that other tests hold to NIST's examples.
std::string digest_of(const std::string& file) {
  const uint64_t size = sample().files().at(file).size_bytes;
  const std::vector<uint8_t> content = sample().content(file, 0, size);
  uint8_t digest[kernels::kSha256DigestBytes];
  kernels::sha256(content.data(), content.size(), digest);
  return hex({reinterpret_cast<const char*>(digest), sizeof(digest)});
}

TEST(Usage, help_and_version_are_no_errors) {
  EXPECT_TRUE(gofs_says({"--version"}).starts_with("gofs "));
  const std::string help = gofs_says({"--help"});
  for (const char* command :
       {"info", "ls", "stat", "cat", "get", "sum", "check", "mkfs", "doctor", "bench"}) {
    EXPECT_NE(help.find(std::string("\n  ") + command + " "), std::string::npos) << command;
    if (command == std::string("bench")) continue;  // bench_command_test.cpp
    EXPECT_NE(gofs_says({command, "--help"}).find("--help"), std::string::npos);
  }
}

TEST(Usage, wrong_words_end_with_2) {
  const std::string image = sample().path();
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"frobnicate"},
      {"put", image, "/etc/passwd"},
      {"ls"},
      {"ls", image, "/", "more"},
      {"ls", image, "--sideways"},
      {"ls", image, "--backend", "abacus"},
      {"cat", image},
      {"cat", image, "/odd", "--offset", "x"},
      {"cat", image, "/odd", "--length", "-1"},
      {"mkfs", image, "--size", "1.5G"},
  };
  for (const auto& words : cases) {
    const Answer answer = run_gofs(words);
    EXPECT_EQ(answer.status, 2) << testing::PrintToString(words);
    EXPECT_TRUE(answer.err.starts_with("gofs: ")) << answer.err;
    EXPECT_EQ(answer.out, "");
  }
}

TEST(Usage, wrong_options_of_a_volume_end_with_2) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"?speed=1",
       "'speed' is no option (queues, depth, lba, mdts, media, cache, descriptors, timeout, "
       "checkpoint, stripe, mode, ablate; of a virtual SSD model, spare; of a hosted SSD threads, "
       "poll, staging; of a physical SSD doorbell, data, staging)"},
      {"?mode=ipu", "'mode' wants adaptive or lfs"},
      {"?model=foo", "'model' is no timing model: neither a model nor a setting: \"foo\""},
      {"?model=none,units=x", "'model' is no timing model: not a number in \"units=x\""},
      {"?ablate=gravity",
       "'ablate' knows no 'gravity' (inode-lock, one-log, single-blocks, single-doorbells, "
       "single-walks, no-maps)"},
  };
  for (const auto& [options, words] : cases) {
    for (const std::string command : {"info", "mkfs", "check"}) {
      const std::string volume = sample().path() + options;
      const Answer answer = run_gofs({command, volume});
      EXPECT_EQ(answer.status, 2) << volume;
      EXPECT_EQ(lines_of(answer.err).at(0), "gofs: VOL: " + volume + ": " + words);
      EXPECT_EQ(answer.out, "");
    }
  }
}

TEST(Failures, are_one_line_with_the_path_and_status_1) {
  const std::string image = sample().path();
  const std::string command_line = "No such file or directory";
  expect_failure({"info", "/no/such"}, "/no/such: No such file or directory");
  expect_failure({"ls", "/no\nsuch\x1b[31m"}, "/no\\nsuch\\x1b[31m: No such file or directory");
  expect_failure({"ls", image, "/no\xff"}, "/no\\xff: No such file or directory");
  expect_failure({"ls", "/tmp"}, "/tmp: Is a directory");
  expect_failure({"stat", image, "/odd/below"}, "/odd/below: Not a directory");
  expect_failure({"cat", image, "/data"}, "/data: Is a directory");
  expect_failure({"cat", image, "/fifo"}, "/fifo: No such device or address");
  expect_failure({"cat", image, "/loop"}, "/loop: Too many levels of symbolic links");
  expect_failure({"sum", image, "/data"}, "/data: is a directory (use -r)");
  expect_failure({"sum", image, "/fifo"}, "/fifo: not a regular file");
  expect_failure({"ls", image + "+" + image}, image + ": named twice");
}

TEST(Info, describes_the_volume) {
  const std::string text = gofs_says({"info", sample().path()});
  EXPECT_NE(text.find("sämple"), std::string::npos);
  EXPECT_NE(text.find("cleanly unmounted"), std::string::npos);
  const Json object = Json::parse(gofs_says({"info", sample().path(), "--json"}));
  EXPECT_EQ(object["label"], "sämple");
  EXPECT_EQ(object["clean"], true);
  EXPECT_EQ(object["ssd"]["lba_bytes"], 512);
  EXPECT_EQ(text.find("ablations"), std::string::npos);
  EXPECT_NE(gofs_says({"info", sample().path() + "?ablate=one-log,no-maps"})
                .find("\nablations    one-log no-maps\n"),
            std::string::npos);
  EXPECT_EQ(object["space"]["block_bytes"], 4096);
}

TEST(Info, tells_what_memory_is_for) {
  const std::string text = gofs_says({"info", sample().path() + "?cache=32M"});
  EXPECT_NE(text.find("\nmemory       "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  page cache     32."), std::string::npos) << text;
  EXPECT_NE(text.find(" in use: nodes "), std::string::npos) << text;
  const Json memory =
      Json::parse(gofs_says({"info", sample().path() + "?cache=32M", "--json"}))["memory"];
  uint64_t filesystem = 0;
  uint64_t ssd = 0;
  for (const auto& [name, part] : memory["parts"].items()) {
    const uint64_t bytes = part["device"].get<uint64_t>() + part["host"].get<uint64_t>();
    (name.starts_with("ssd_") ? ssd : filesystem) += bytes;
  }
  EXPECT_EQ(memory["filesystem"], filesystem);
  EXPECT_EQ(memory["ssd"], ssd);
  EXPECT_GE(memory["parts"]["page_cache"]["device"].get<uint64_t>(), uint64_t{32} << 20);
  EXPECT_EQ(memory["parts"]["descriptors"]["in_use"], 0);
  EXPECT_FALSE(memory["parts"]["queues"].contains("in_use"));
  EXPECT_GT(memory["cached"]["nodes"]["in_use"], 0);
  EXPECT_EQ(memory["cached"]["nodes"]["dirty"], 0);
}

TEST(Ls, lists_names_in_order_and_escapes_them) {
  EXPECT_EQ(lines_of(gofs_says({"ls", sample().path()})),
            (std::vector<std::string>{"again", "bad\\xff", "block", "dangling", "data", "device",
                                      "empty", "fifo", "holes", "large", "link", "locked", "loop",
                                      "new\\nline", "odd", "tiny"}));
  EXPECT_EQ(lines_of(gofs_says({"ls", sample().path(), "/data"})).size(), SampleVolume::kDataFiles);
  EXPECT_EQ(gofs_says({"ls", sample().path(), "/odd"}), "/odd\n");
  EXPECT_EQ(lines_of(gofs_says({"ls", sample().path(), "link/"})).size(), SampleVolume::kDataFiles);
}

TEST(Ls, long_lines_show_the_inode) {
  const std::string text = gofs_says({"ls", sample().path(), "-l"});
  EXPECT_NE(text.find("-rw-r--r--    2     0     0        10007 2023-11-14 22:13:20 odd\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" link -> data\n"), std::string::npos);
  EXPECT_NE(text.find("drwx------    2     7     7"), std::string::npos);
  EXPECT_NE(text.find("brw-r-----    1     0     0         8, 1"), std::string::npos);
  EXPECT_NE(text.find("prw-r--r--"), std::string::npos);
}

TEST(Ls, recursion_has_headers) {
  const std::string text = gofs_says({"ls", sample().path(), "-R"});
  EXPECT_TRUE(text.starts_with("/:\nagain\n"));
  EXPECT_NE(text.find("\n\n/data:\nfile0000\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\n\n/locked:\nsecret\n"));
}

TEST(Ls, json_tells_everything_about_each_object) {
  std::map<std::string, Json> objects;
  const auto lines = lines_of(gofs_says({"ls", sample().path(), "/", "-R", "-l", "--json"}));
  EXPECT_EQ(Json::parse(lines.at(0))["path"], "/");
  for (const std::string& line : lines) {
    const Json object = Json::parse(line);
    EXPECT_TRUE(objects.emplace(object["path_hex"], object).second) << line;
    for (const char* field : {"ino", "type", "mode", "uid", "gid", "nlink", "size", "blocks",
                              "atime", "mtime", "ctime", "rdev", "xattrs"}) {
      EXPECT_TRUE(object.contains(field)) << field << " of " << line;
    }
    EXPECT_EQ(object.contains("target_hex"), object["type"] == "symlink");
  }
  // The root, all files, /again, two directories, three links, two special files.
  EXPECT_EQ(objects.size(), 1 + sample().files().size() + 8);
  const Json odd = objects[hex("/odd")];
  EXPECT_EQ(odd["path"], "/odd");
  EXPECT_EQ(odd["type"], "regular");
  EXPECT_EQ(odd["mode"], 0644);
  EXPECT_EQ(odd["nlink"], 2);
  EXPECT_EQ(odd["size"], 10'007);
  EXPECT_EQ(odd["blocks"], 24);
  EXPECT_EQ(odd["mtime"], Json({1'700'000'000, 0}));
  EXPECT_EQ(odd["rdev"], Json({0, 0}));
  EXPECT_EQ(odd["xattrs"], Json::array());
  const Json xattrs = objects[hex("/block")]["xattrs"];
  ASSERT_EQ(xattrs.size(), 4u);
  EXPECT_EQ(xattrs[0][0], hex("system.posix_acl_access"));
  EXPECT_EQ(xattrs[1], Json({hex("trusted.mark"), "00ff"}));
  EXPECT_EQ(xattrs[2], Json({hex("user.colour"), hex("green")}));
  EXPECT_EQ(xattrs[3], Json({hex("user.long"), hex(SampleVolume::long_value())}));
  EXPECT_EQ(objects[hex("/again")]["ino"], odd["ino"]);
  EXPECT_EQ(objects[hex("/device")]["type"], "block");
  EXPECT_EQ(objects[hex("/device")]["rdev"], Json({8, 1}));
  EXPECT_EQ(objects[hex("/fifo")]["type"], "fifo");
  EXPECT_EQ(objects[hex("/link")]["target_hex"], hex("data"));
  EXPECT_EQ(objects[hex("/new\nline")]["path"], "/new\nline");
  EXPECT_TRUE(objects.contains(hex("/bad\xff")));
  EXPECT_FALSE(objects[hex("/bad\xff")].contains("path"));
}

TEST(Ls, json_without_details_asks_no_inodes) {
  const auto lines = lines_of(gofs_says({"ls", sample().path(), "/data", "--json"}));
  ASSERT_EQ(lines.size(), SampleVolume::kDataFiles + 1);
  EXPECT_EQ(Json::parse(lines[0])["path"], "/data");
  EXPECT_EQ(Json::parse(lines[1])["path"], "/data/file0000");
  EXPECT_EQ(Json::parse(lines[1])["type"], "regular");
  EXPECT_FALSE(Json::parse(lines[1]).contains("size"));
}

TEST(StatCommand, shows_links_themselves_unless_told_to_follow) {
  const std::string text = gofs_says({"stat", sample().path(), "/link"});
  EXPECT_NE(text.find("/link -> data\n"), std::string::npos);
  EXPECT_NE(text.find("symlink"), std::string::npos);
  EXPECT_NE(gofs_says({"stat", sample().path(), "/link", "-L"}).find("directory"),
            std::string::npos);
  const Json object = Json::parse(gofs_says({"stat", sample().path(), "/odd", "--json"}));
  EXPECT_EQ(object["size"], 10'007);
}

TEST(StatCommand, shows_attributes_in_a_form_that_can_be_read) {
  const std::string text = gofs_says({"stat", sample().path(), "/block"});
  for (const char* line :
       {"attribute user.colour = \"green\"\n", "attribute trusted.mark = 0x00ff\n",
        "attribute system.posix_acl_access = u::rw-,u:7:r--,g::r--,m::r--,o::r--\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  const Json object = Json::parse(gofs_says({"stat", sample().path(), "/link", "-L", "--json"}));
  EXPECT_EQ(object["xattrs"], Json::array({Json({hex("user.colour"), hex("red")})}));
}

TEST(StatCommand, shows_when_a_file_was_made_where_the_volume_keeps_it) {
  const SampleVolume volume(format::kFeatureExtraAttr | format::kFeatureInodeCrtime);
  const Json object = Json::parse(gofs_says({"stat", volume.path(), "/odd", "--json"}));
  EXPECT_EQ(object["btime"], Json({1'700'000'000, 0}));
  EXPECT_NE(gofs_says({"stat", volume.path(), "/odd"}).find("created   2023-11-14 22:13:20"),
            std::string::npos);
  EXPECT_FALSE(
      Json::parse(gofs_says({"stat", sample().path(), "/odd", "--json"})).contains("btime"));
}

TEST(Cat, prints_bytes_from_and_to_anywhere) {
  const auto check = [](const std::string& file, const std::vector<std::string>& options,
                        uint64_t offset, uint64_t bytes) {
    std::vector<std::string> words = {"cat", sample().path(), file};
    words.insert(words.end(), options.begin(), options.end());
    const std::string got = gofs_says(words);
    EXPECT_EQ(got.size(), bytes) << testing::PrintToString(words);
    EXPECT_TRUE(sample().has(file, got.data(), got.size(), offset));
  };
  const uint64_t large = sample().files().at("/large").size_bytes;
  check("/large", {}, 0, large);
  check("/large", {"--offset", "4097"}, 4097, large - 4097);
  check("/large", {"--offset", "5M", "--length", "3"}, 5 << 20, 3);
  check("/large", {"--length", "4K"}, 0, 4096);
  check("/large", {"--length", "0"}, 0, 0);
  check("/large", {"--offset", "1G"}, 0, 0);
  check("/empty", {}, 0, 0);
  check("/tiny", {}, 0, 11);
  check("/holes", {"--offset", "4096", "--length", "20480"}, 4096, 20480);
  EXPECT_EQ(gofs_says({"cat", sample().path(), "/new\nline"}).size(), 5u);
}

TEST(Sum, speaks_as_sha256sum_does) {
  EXPECT_EQ(gofs_says({"sum", sample().path(), "/odd"}), digest_of("/odd") + "  /odd\n");
  EXPECT_EQ(gofs_says({"sum", sample().path(), "again"}), digest_of("/odd") + "  /again\n");
  EXPECT_EQ(gofs_says({"sum", sample().path(), "/new\nline"}),
            "\\" + digest_of("/new\nline") + "  /new\\nline\n");
  std::string expected;
  for (const auto& [path, file] : sample().files()) {
    if (path.starts_with("/data/")) expected += digest_of(path) + "  " + path + "\n";
  }
  EXPECT_EQ(gofs_says({"sum", sample().path(), "/data", "-r"}), expected);
  const Json object = Json::parse(gofs_says({"sum", sample().path(), "/odd", "--json"}));
  EXPECT_EQ(object["sha256"], digest_of("/odd"));
  EXPECT_EQ(object["path_hex"], hex("/odd"));
}

TEST(Check, believes_fsck) {
  GOFS_NEED_TOOL("fsck.f2fs");
  EXPECT_NE(gofs_says({"check", sample().path()}).find("finds nothing wrong"), std::string::npos);
  EXPECT_NE(gofs_says({"check", "-v", sample().path()}).find("[FSCK]"), std::string::npos);
  const image::TemporaryPath broken;
  ASSERT_EQ(image::run_tool("cp " + sample().path() + " " + broken.path()).exit_code, 0);
  // The first block of data and nodes: whatever is there is missed.
  const uint64_t main =
      host::VolumeState::mount(broken.path(), {.backend = "cpu"}, host::MountKind::kVolume)
          .value()
          ->filesystem()
          ->volume.geometry.main_blkaddr;
  {
    std::fstream file(broken.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(main * 4096));
    const std::string junk(3 * 512 * 4096, '\x55');
    file << junk;
  }
  const Answer answer = run_gofs({"check", broken.path()});
  EXPECT_EQ(answer.status, 1);
  EXPECT_NE(answer.err.find("damaged"), std::string::npos) << answer.err;
  EXPECT_EQ(run_gofs({"check", "ram:64M"}).status, 1);
  const auto dashed = image::run_tool("cd $(dirname " + broken.path() + ") && ln -s " +
                                      sample().path() + " -- -d$$; " + gofs_path() +
                                      " check -- -d$$; status=$?; rm -- -d$$; exit $status");
  EXPECT_EQ(dashed.exit_code, 0) << dashed.output;
}

TEST(Check, says_what_is_no_volume_as_other_commands_do) {
  GOFS_NEED_TOOL("fsck.f2fs");
  const image::TemporaryPath path;
  const auto expect_same = [&](const std::string& volume, const std::string& words) {
    expect_failure({"check", volume}, volume + ": " + words);
    expect_failure({"ls", volume}, volume + ": " + words);
  };
  expect_same("/no/such", "No such file or directory");
  expect_same("/tmp", "Is a directory");
  expect_same(path.path(), "not an F2FS volume (0 bytes)");
  std::ofstream(path.path(), std::ios::binary) << std::string(1 << 20, '\x55');
  expect_same(path.path(), "not an F2FS volume (no superblock)");
  // fsck.f2fs itself does not mind that the last block is missing.
  gofs_says({"mkfs", path.path(), "--size", "64M", "-f"});
  gofs_says({"check", path.path()});
  ASSERT_EQ(::truncate(path.path().c_str(), (64 << 20) - 4096), 0);
  expect_same(path.path(), "cut off: the volume needs 16384 blocks of 4 KiB");
}

TEST(Mkfs, makes_volumes_and_spares_those_that_are_there) {
  const image::TemporaryPath path;
  EXPECT_EQ(gofs_says({"mkfs", path.path(), "--size", "64M", "-l", "new", "-O",
                       "extra_attr,inode_checksum"}),
            "");
  const Json info = Json::parse(gofs_says({"info", path.path(), "--json"}));
  EXPECT_EQ(info["label"], "new");
  EXPECT_EQ(info["features"], Json({"extra_attr", "inode_checksum"}));
  EXPECT_EQ(gofs_says({"ls", path.path()}), "");
  if (image::tool_exists("fsck.f2fs")) {
    gofs_says({"check", path.path()});
  } else {
    std::cerr << "fsck.f2fs is missing: the new volume was not judged\n";
  }
  EXPECT_EQ(run_gofs({"mkfs", path.path(), "--size", "64M"}).status, 1);
  gofs_says({"mkfs", path.path(), "-f", "--size", "128M"});
  EXPECT_EQ(Json::parse(gofs_says({"info", path.path(), "--json"}))["label"], "");
  EXPECT_EQ(run_gofs({"mkfs", path.path(), "-f", "--size", "1M"}).status, 1);
  expect_failure({"mkfs", path.path(), "-f", "-O", "magic"}, "magic: no such feature");
  expect_failure({"mkfs", "ram:64M"}, "ram:64M: only an image or a device can be made a volume");
}

TEST(Mkfs, several_images_become_an_md_array_and_stay_one) {
  const image::TemporaryPath folder;
  const auto at = [&](const std::string& name) { return folder.path() + name; };
  const std::string spec = at("a") + "+" + at("b") + "+" + at("c");
  const auto read_at = [&](const std::string& name, uint64_t offset, size_t count) {
    return read_file(at(name)).substr(offset, count);
  };
  expect_failure({"mkfs", spec, "--size", "1M"}, spec + ": too small: volumes have 64 MiB or more");
  EXPECT_NE(::access(at("a").c_str(), F_OK), 0) << "what was made for nothing stays";
  gofs_says({"mkfs", spec + "?stripe=64K", "--size", "100M", "-l", "dealt"});
  const Json info = Json::parse(gofs_says({"info", spec, "--json"}));
  EXPECT_EQ(info["label"], "dealt");
  EXPECT_EQ(info["ssd"]["bytes"], 3 * ((uint64_t{100} << 20) / (3 * 65536) + 1) * 65536);
  const std::string uuid = read_at("a", 4096 + 16, 16);
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(read_at(name, 4096 + 16, 16), uuid) << "one array";
    if (!image::tool_exists("mdadm")) continue;
    const image::ToolAnswer said = image::run_tool("mdadm --examine " + at(name));
    EXPECT_EQ(said.exit_code, 0);
    for (const char* words : {"Version : 1.2", "Raid Level : raid0", "Raid Devices : 3",
                              "Chunk Size : 64K", "State : clean", "- correct"}) {
      EXPECT_NE(said.output.find(words), std::string::npos) << words << ":\n" << said.output;
    }
  }
  // In another order it is the same array, and a volume that is there is spared.
  const std::string turned = at("c") + "+" + at("a") + "+" + at("b");
  expect_failure({"mkfs", turned}, turned + ": it already holds an F2FS volume");
  std::mt19937_64 random(1);
  std::string bytes(3'000'001, '\0');  // on all of them many times, and not to the end of a block
  for (char& byte : bytes) byte = static_cast<char>(random());
  std::ofstream(at("put"), std::ios::binary) << bytes;
  gofs_says({"put", turned, at("put"), "/put"});
  const std::string sum = gofs_says({"sum", spec, "/put"});
  EXPECT_EQ(sum.substr(0, 64), image::run_tool("sha256sum " + at("put")).output.substr(0, 64));
  EXPECT_EQ(run_gofs({"mkfs", turned, "-f", "--size", "1G"}).status, 1);
  gofs_says({"mkfs", turned, "-f"});
  EXPECT_EQ(gofs_says({"ls", spec}), "");
  EXPECT_EQ(read_at("b", 4096 + 16, 16), uuid) << "another array";
  for (const char* name : {"a", "b", "c", "put"}) ::unlink(at(name).c_str());
}

TEST(Doctor, says_what_runs_here) {
  const std::string text = gofs_says({"doctor"});
  EXPECT_EQ(text.find("cpu backend    yes"), 0u) << text;
  const Json list = Json::parse(gofs_says({"doctor", "--json"}));
  EXPECT_EQ(list[0]["name"], "cpu backend");
  EXPECT_EQ(list[0]["ok"], true);
  for (const Json& finding : list) EXPECT_FALSE(finding["detail"].get<std::string>().empty());
}

TEST(Backend, that_is_not_there_is_an_error) {
  const Json list = Json::parse(gofs_says({"doctor", "--json"}));
  if (list[1]["ok"] == true) GTEST_SKIP() << "SKIPPED: there is a GPU";
  const Answer answer = run_gofs({"ls", sample().path(), "--backend", "cuda"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_TRUE(answer.err.starts_with("gofs: backend cuda: ")) << answer.err;
}

// --- Output that cannot be written. --------------------------------------------------------------

TEST(Output, a_reader_that_went_away_ends_the_command_quietly) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"cat", sample().path(), "/large"}, {"ls", sample().path(), "-R", "-l", "--json"}}) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ::close(ends[0]);
    const Answer answer = run_gofs(words, ends[1]);
    ::close(ends[1]);
    EXPECT_EQ(answer.status, 1);
    EXPECT_EQ(answer.err, "");
  }
}

TEST(Output, a_full_disk_is_told) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  const Answer answer = run_gofs({"info", sample().path()}, full);
  ::close(full);
  EXPECT_EQ(answer.status, 1);
  EXPECT_EQ(answer.err, "gofs: standard output: No space left on device\n");
}

// --- A damaged volume: what is sound is still given. ---------------------------------------------

TEST(Damage, stops_neither_ls_nor_sum) {
  const image::TemporaryPath broken;
  ASSERT_EQ(image::run_tool("cp " + sample().path() + " " + broken.path()).exit_code, 0);
  const Json odd = Json::parse(gofs_says({"stat", broken.path(), "/odd", "--json"}));
  const uint32_t ino = odd["ino"];
  {
    std::string bytes = read_file(broken.path());
    for (size_t at = 4096; at + 4096 <= bytes.size(); at += 4096) {
      uint32_t footer[2];
      std::memcpy(footer, bytes.data() + at + 4096 - 24, sizeof(footer));
      if (footer[0] == ino && footer[1] == ino) bytes[at + 4096 - 24] ^= 1;
    }
    std::ofstream(broken.path(), std::ios::binary) << bytes;
  }
  const Answer listing = run_gofs({"ls", broken.path(), "-l"});
  EXPECT_EQ(listing.status, 1);
  EXPECT_EQ(lines_of(listing.out).size(), 16u);
  EXPECT_EQ(lines_of(listing.err).size(), 2u) << listing.err;  // /again and /odd
  EXPECT_NE(listing.err.find("gofs: /odd: damaged: footer of node"), std::string::npos)
      << listing.err;
  const Answer sums = run_gofs({"sum", broken.path(), "/data", "-r"});
  EXPECT_EQ(sums.status, 0);
  const Answer all = run_gofs({"cat", broken.path(), "/odd"});
  EXPECT_EQ(all.status, 1);
  EXPECT_EQ(all.out, "");
}

}  // namespace
}  // namespace gofs::cli_test
