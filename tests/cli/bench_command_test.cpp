// SPDX-License-Identifier: Apache-2.0
//
// gofs bench: what it measures, what it prints, and how it ends. How it is found and told what to
// do is seen to in bench_program_test.cpp.
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "run_gofs.h"

namespace gofs::cli_test {
namespace {

using Json = nlohmann::json;
using host::SampleVolume;

TEST(Bench, help_is_no_error) {
  EXPECT_NE(gofs_says({"bench", "--help"}).find("--help"), std::string::npos);
}

TEST(Bench, wrong_words_end_with_2) {
  const std::string image = sample().path();
  const std::vector<std::vector<std::string>> cases = {
      {"bench", image, "sideways"},
      {"bench", image, "--threads", "0"},
      {"bench", image, "--scope", "world"},
      {"bench", image, "--block-size", "100"},
      {"bench"},
      {"bench", "micro", "--sweeps", "up"},
      {"bench", "micro", "--folder", "/nonexistent"},
      {"bench", "micro", "--controller-warps", "-1"},
  };
  for (const auto& words : cases) {
    const Answer answer = run_gofs(words);
    EXPECT_EQ(answer.status, 2) << testing::PrintToString(words);
    EXPECT_TRUE(answer.err.starts_with("gofs: ")) << answer.err;
    EXPECT_EQ(answer.out, "");
  }
}

class BenchOfCopy : public CopyTest {};

TEST_F(BenchOfCopy, is_not_printed_onto_the_volume) {
  const std::string before = read_file(copy_.path());
  const image::ToolAnswer answer =
      run_in_shell("", "bench --seconds 0.001 " + copy_.path(), "1<>" + copy_.path());
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(answer.output, "gofs: standard output: the volume lies on it\n");
  EXPECT_TRUE(read_file(copy_.path()) == before);
}

TEST(Bench, measures_raw_file_and_files) {
  const Json result = Json::parse(
      gofs_says({"bench", sample().path(), "raw", "file", "files", "--seconds", "0.002",
                 "--repetitions", "1", "--threads", "2", "--json", "--backend", "cpu"}));
  EXPECT_EQ(result["backend"]["name"], "cpu");
  EXPECT_EQ(result["ssd"]["model"], "none");
  EXPECT_EQ(result["file"]["path"], "/holes");
  ASSERT_EQ(result["reads"].size(), 4u);
  for (const Json& row : result["reads"]) {
    EXPECT_GT(row["operations_per_second"].get<double>(), 0);
    EXPECT_EQ(row["bytes"].get<uint64_t>(), row["operations"].get<uint64_t>() * 4096);
  }
  EXPECT_EQ(result["ratios"].size(), 2u);
  EXPECT_EQ(result["files"]["directory"], "/data");
  EXPECT_EQ(result["files"]["files"], SampleVolume::kDataFiles);
  EXPECT_EQ(result["files"]["failed_files"], 0);

  const std::string text =
      gofs_says({"bench", sample().path(), "file", "--file", "/large", "--pattern", "seq",
                 "--operations", "50", "--block-size", "16K", "--scope", "warp"});
  EXPECT_NE(text.find("/large"), std::string::npos);
  EXPECT_EQ(text.find("raw"), std::string::npos);
  EXPECT_NE(gofs_says({"bench", "ram:4M", "raw", "--operations", "20"}).find("raw    random"),
            std::string::npos);
  // A block of several commands is several raw reads.
  EXPECT_NE(gofs_says({"bench", "ram:4M", "raw", "--operations", "2", "--block-size", "1M"})
                .find("raw    random"),
            std::string::npos);
  expect_failure({"bench", sample().path(), "file", "--file", "/tiny"},
                 "/tiny: smaller than one block");
}

TEST(Bench, micro_prints_an_object_a_line) {
  const std::string text = gofs_says({"bench", "micro", "--small", "--sweeps", "outstanding,files",
                                      "--runs", "1", "--seconds", "0.001", "--controller-warps",
                                      "1", "--folder", ::testing::TempDir(), "--json"});
  std::istringstream lines(text);
  std::set<std::string> works;
  uint32_t volumes = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json row = Json::parse(line);
    if (row["bench"] == "micro volume") {
      ++volumes;
      EXPECT_EQ(row["queue_depth"], 1024);
      EXPECT_EQ(row["controller_warps"], 1);
      continue;
    }
    EXPECT_EQ(row["controller_warps"], row["sweep"] == "files" ? 0 : 1);
    works.insert(row["sweep"].get<std::string>() + " " + row["work"].get<std::string>());
    EXPECT_GT(row["raw_bytes_per_s"]["median"].get<double>(), 0);
    EXPECT_GT(row["file_bytes_per_s"]["median"].get<double>(), 0);
  }
  EXPECT_EQ(volumes, 1u);
  EXPECT_EQ(works, (std::set<std::string>{"files read", "files write", "outstanding read",
                                          "outstanding write"}));
}

TEST(Bench, storage_does_its_works_in_the_order_in_which_they_are_named) {
  const image::TemporaryPath volume;
  gofs_says({"mkfs", volume.path(), "--size", "64M"});
  const std::string text = gofs_says({"bench", "storage", volume.path() + "?media=memory",
                                      "--works", "sequential-write,random-read", "--outstanding",
                                      "1", "--file-bytes", "1M", "--seconds", "0.001", "--json"});
  std::istringstream lines(text);
  std::vector<std::string> works;
  for (std::string line; std::getline(lines, line);) {
    const Json row = Json::parse(line);
    if (row.contains("work")) works.push_back(row["work"]);
  }
  EXPECT_EQ(works, (std::vector<std::string>{"sequential-write", "random-read"})) << text;
}

TEST(Bench, micro_names_what_it_does_without) {
  const std::string text =
      gofs_says({"bench", "micro", "--small", "--sweeps", "ablations", "--runs", "1", "--seconds",
                 "0.001", "--folder", ::testing::TempDir(), "--json"});
  std::istringstream lines(text);
  std::map<std::string, int> rows;
  std::set<std::string> mounts;
  for (std::string line; std::getline(lines, line);) {
    const Json row = Json::parse(line);
    if (row["bench"] == "micro volume") {
      mounts.insert(row["ablations"].dump());
      continue;
    }
    EXPECT_EQ(row["sweep"], "ablations");
    rows[row["ablation"].get<std::string>()] += row["ablated"].get<bool>() ? 1 : -1;
  }
  EXPECT_TRUE(mounts.count(R"(["single-walks","no-maps"])")) << text;
  EXPECT_EQ(rows.size(), 8u);
  for (const auto& [name, balance] : rows) EXPECT_EQ(balance, 0) << name;
}

TEST(Bench, every_scope_reads_the_same) {
  // As many reads of a sequential pattern read the same blocks, whoever makes them.
  std::map<std::string, Json> rows;
  for (const std::string scope : {"thread", "warp", "block", "grid"}) {
    const Json result =
        Json::parse(gofs_says({"bench",  sample().path(), "file",      "--file",
                               "/large", "--pattern",     "seq",       "--operations",
                               "12",     "--block-size",  "64K",       "--scope",
                               scope,    "--threads",     "1",         "--repetitions",
                               "1",      "--json",        "--backend", "cpu"}));
    ASSERT_EQ(result["reads"].size(), 1u);
    rows[scope] = result["reads"][0];
    EXPECT_EQ(rows[scope]["scope"], scope);
    EXPECT_EQ(rows[scope]["outstanding"], 1);
    EXPECT_EQ(rows[scope]["operations"], 12);
    EXPECT_EQ(rows[scope]["bytes"], 12 * 65536);
    EXPECT_NE(rows[scope]["checksum"], 0);
    EXPECT_EQ(rows[scope]["checksum"], rows["thread"]["checksum"]);
  }
  // A grid is one, however many are asked for.
  const Json grid = Json::parse(
      gofs_says({"bench", sample().path(), "--file", "/large", "--scope", "grid", "--threads", "64",
                 "--block-size", "1M", "--operations", "3", "--json", "--backend", "cpu"}));
  ASSERT_EQ(grid["reads"].size(), 4u);
  for (const Json& row : grid["reads"]) {
    EXPECT_TRUE(row["kind"] == "raw" || row["outstanding"] == 1);
    EXPECT_GE(row["bytes"], 3 << 20);
  }
  EXPECT_EQ(grid["ratios"].size(), 2u);
}

}  // namespace
}  // namespace gofs::cli_test
