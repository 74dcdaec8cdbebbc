// SPDX-License-Identifier: Apache-2.0
//
// The command where its surroundings are unusual: descriptors that are closed, outputs that take
// nothing, options in other places, trees deeper than any path.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "run_gofs.h"

namespace gofs::cli_test {
namespace {

/// What a shell says of `gofs WORDS`.
image::ToolAnswer shell(const std::string& words) {
  return image::run_tool(gofs_path() + " " + words);
}

class EdgesTest : public CopyTest {};

/// What goes through a pipe, whose end to be written does not block.
class PipeReader {
 public:
  PipeReader() {
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    EXPECT_EQ(::fcntl(ends_[1], F_SETFL, O_WRONLY | O_NONBLOCK), 0);
    reader_ = std::thread([this] {
      char part[4096];
      for (ssize_t got = 0; (got = ::read(ends_[0], part, sizeof(part))) > 0;) {
        all_.append(part, static_cast<size_t>(got));
      }
    });
  }
  ~PipeReader() {
    if (reader_.joinable()) (void)all();
    ::close(ends_[0]);
  }
  int end_to_write() const { return ends_[1]; }
  /// When nobody writes any more.
  std::string all() {
    ::close(ends_[1]);
    reader_.join();
    return all_;
  }

 private:
  int ends_[2] = {-1, -1};
  std::string all_;
  std::thread reader_;
};

TEST_F(EdgesTest, an_output_that_does_not_block_gets_all_of_it) {
  const image::TemporaryPath file;
  const std::string text = [] {
    std::string lines;
    for (int i = 0; i < 50'000; ++i) lines += "line " + std::to_string(i) + "\n";
    return lines;
  }();
  { std::ofstream(file.path(), std::ios::binary) << text; }
  expect_fine("put", {file.path(), "/text"});
  PipeReader reader;
  const Answer answer = run_gofs({"cat", copy_.path(), "/text"}, reader.end_to_write());
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.err, "");
  EXPECT_TRUE(reader.all() == text);
}

TEST_F(EdgesTest, a_size_that_is_none_is_named) {
  for (const char* size : {"5X", "", "-1", "100E", "1.5G"}) {
    const Answer answer = run("truncate", {"/tiny", "--", size});
    EXPECT_EQ(answer.status, 2) << size;
    EXPECT_TRUE(answer.err.starts_with("gofs: SIZE: '" + std::string(size) +
                                       "' is no size, such as 4096, 64K or 1G\n"))
        << answer.err;
  }
}

TEST_F(EdgesTest, messages_do_not_go_into_an_image_that_takes_a_closed_descriptor) {
  const std::string before = read_file(copy_.path()).substr(0, 3 * 4096);
  for (const char* closed : {"2>&-", ">&-", "2>&- >&-", "2>&- >&- <&-", "<&-"}) {
    EXPECT_EQ(shell("rm " + copy_.path() + " /none " + closed).exit_code, 1) << closed;
    EXPECT_EQ(shell("touch " + copy_.path() + " /tiny " + closed).exit_code, 0) << closed;
  }
  EXPECT_EQ(read_file(copy_.path()).substr(0, 3 * 4096), before);
  const image::ToolAnswer lost = shell("ls " + copy_.path() + " >&-");
  EXPECT_EQ(lost.exit_code, 1);
  EXPECT_EQ(lost.output, "gofs: standard output: Bad file descriptor\n");
}

TEST_F(EdgesTest, errors_that_cannot_be_printed_end_with_status_1) {
  const std::string closed_pipe = " 2>&1 >/dev/null | true; exit ${PIPESTATUS[0]}";
  for (const std::string& words :
       {"rm " + copy_.path() + " /none", std::string("ls /no/such"), std::string("frobnicate")}) {
    EXPECT_EQ(shell(words + " 2>/dev/full").exit_code, 1) << words;
    const std::string in_bash = "bash -c '" + gofs_path() + " " + words + closed_pipe + "'";
    const int status = image::run_tool(in_bash).exit_code;
    EXPECT_TRUE(status == 1 || (status == 2 && words == "frobnicate")) << words << ": " << status;
  }
}

TEST_F(EdgesTest, nothing_is_printed_onto_the_volume) {
  const std::string before = read_file(copy_.path());
  const image::TemporaryPath other;
  const std::string both = copy_.path() + "+" + other.path();
  const std::string onto = " 1<>" + copy_.path();
  for (const std::string& words :
       {"cat " + copy_.path() + " /large", "ls -lR " + copy_.path(), "sum -r " + copy_.path(),
        "info " + copy_.path(), "gc " + copy_.path(), "check -v " + copy_.path(),
        "mkfs -f " + both}) {
    const image::ToolAnswer answer = shell(words + onto);
    EXPECT_EQ(answer.exit_code, 1) << words;
    EXPECT_EQ(answer.output, "gofs: standard output: the volume lies on it\n") << words;
  }
  EXPECT_EQ(shell("cat " + copy_.path() + " /odd >>" + copy_.path()).exit_code, 1);
  for (const char* words : {"rm $v /none", "touch $v /odd", "rm $v /odd", "mkfs $v"}) {
    const std::string line = words;
    EXPECT_EQ(
        image::run_tool("v=" + copy_.path() + "; " + gofs_path() + " " + line + " 2<>$v").exit_code,
        1)
        << words;
  }
  EXPECT_TRUE(read_file(copy_.path()) == before);
  EXPECT_EQ(shell("stat " + copy_.path() + " /odd >/dev/null <" + copy_.path()).exit_code, 0);
}

TEST_F(EdgesTest, a_full_disk_under_standard_output_is_told_whatever_is_printed) {
  for (const std::string& words :
       {"ls " + copy_.path(), "cat " + copy_.path() + " /large", "info " + copy_.path(),
        std::string("--help"), std::string("--version"), std::string("ls --help")}) {
    const image::ToolAnswer answer = shell(words + " 2>&1 >/dev/full");
    EXPECT_EQ(answer.exit_code, 1) << words;
    EXPECT_EQ(answer.output, "gofs: standard output: No space left on device\n") << words;
  }
}

TEST_F(EdgesTest, common_options_are_taken_before_the_name_as_behind_it) {
  const std::string wanted = gofs_says({"ls", copy_.path(), "--json", "--backend", "cpu"});
  EXPECT_EQ(gofs_says({"--backend", "cpu", "--json", "ls", copy_.path()}), wanted);
  EXPECT_EQ(gofs_says({"--json", "ls", "--backend=cpu", copy_.path()}), wanted);
  EXPECT_EQ(gofs_says({"--backend", "cuda", "ls", "--json", "--backend", "cpu", copy_.path()}),
            wanted)
      << "what stands behind the name counts more";
  const std::vector<std::vector<std::string>> refused = {
      {"--json", "rm", copy_.path(), "/odd"},
      {"--backend", "cpu", "check", copy_.path()},
      {"--backend", "none", "ls", copy_.path()},
      {"--backend", "cpu"},
      {"--depth", "ls", copy_.path()}};
  for (const auto& words : refused) {
    const Answer answer = run_gofs(words);
    EXPECT_EQ(answer.status, 2) << testing::PrintToString(words);
    EXPECT_EQ(answer.out, "");
  }
  EXPECT_EQ(run_gofs({"--json", "rm", copy_.path(), "/odd"}).err.substr(0, 25),
            "gofs: rm takes no --json\n");
}

/// Directories with a path of 7,500 bytes, and a file and a link below them.
class DeepTest : public testing::Test {
 protected:
  static constexpr uint32_t kDeep = 30;

  DeepTest() {
    const auto must = [](const image::Status& status) {
      EXPECT_TRUE(status.ok()) << status.message;
    };
    std::unique_ptr<image::ImageTarget> target;
    must(image::open_file_target(path_.path(), uint64_t{64} << 20, &target));
    std::unique_ptr<image::ImageBuilder> builder;
    image::VolumeOptions options;
    options.overwrite = true;
    options.flush = false;
    must(image::ImageBuilder::create(*target, options, &builder));
    image::Directory at = builder->root();
    for (uint32_t i = 0; i < kDeep; ++i) must(builder->add_directory(at, name_, {}, {}, &at));
    image::FileSpec file;
    file.name = "file";
    must(builder->add_file(at, file));
    must(builder->add_symlink(at, "link", "file", {}));
    must(builder->finish());
  }

  const std::string name_ = std::string(250, 'd');
  const image::TemporaryPath path_;
};

TEST_F(DeepTest, trees_deeper_than_any_path_are_changed_and_removed) {
  const std::string top = "/" + name_;
  EXPECT_EQ(gofs_says({"chmod", "-R", path_.path(), "0700", top}), "");
  EXPECT_EQ(gofs_says({"chown", "-R", path_.path(), "7:8", top}), "");
  EXPECT_EQ(gofs_says({"touch", "-R", "-t", "86400", path_.path(), top}), "");
  const std::vector<std::string> lines = lines_of(gofs_says({"ls", "-lR", path_.path(), top}));
  ASSERT_GE(lines.size(), 2u);
  for (const size_t from_end : {1u, 2u}) {
    const std::string& line = lines[lines.size() - from_end];
    EXPECT_NE(line.find(from_end == 1 ? "lrw-r--r--" : "-rwx------"), std::string::npos) << line;
    EXPECT_NE(line.find("    7     8 "), std::string::npos) << line;
    EXPECT_NE(line.find("1970-01-02 00:00:00"), std::string::npos) << line;
  }
  EXPECT_EQ(lines_of(gofs_says({"sum", "-r", path_.path(), top})).size(), 1u);
  EXPECT_EQ(gofs_says({"rm", "-r", path_.path(), top}), "");
  EXPECT_EQ(gofs_says({"ls", path_.path()}), "");
  expect_sound(path_.path());
}

}  // namespace
}  // namespace gofs::cli_test
