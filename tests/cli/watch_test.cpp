// SPDX-License-Identifier: Apache-2.0
//
// gofs stat VOL --watch: lines for people, lines of JSON, and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "run_gofs.h"

namespace gofs::cli_test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

size_t words_in(const std::string& line) {
  std::istringstream stream(line);
  size_t count = 0;
  for (std::string word; stream >> word;) ++count;
  return count;
}

TEST(Watch, has_a_line_for_each_look_below_the_names_of_its_columns) {
  const Answer answer =
      run_gofs({"stat", host::sample_volume().path(), "--watch", "0.02", "--count", "25"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_NE(answer.err.find("mounted by this command alone"), std::string::npos) << answer.err;
  const std::vector<std::string> lines = lines_of(answer.out);
  ASSERT_EQ(lines.size(), 27u) << "the names come again after 20 lines";
  EXPECT_NE(lines[0].find("read/s"), std::string::npos) << lines[0];
  EXPECT_EQ(lines[0], lines[21]);
  for (const std::string& line : lines) {
    EXPECT_EQ(words_in(line), words_in(lines[0])) << line;
    EXPECT_EQ(line.size(), lines[0].size()) << line;
  }
}

TEST(Watch, has_a_line_of_json_for_each_look) {
  const Answer answer =
      run_gofs({"stat", host::sample_volume().path(), "--watch", "0.02", "--count", "2", "--json"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  const std::vector<std::string> lines = lines_of(answer.out);
  ASSERT_EQ(lines.size(), 2u);
  for (const std::string& line : lines) {
    const auto object = nlohmann::json::parse(line);
    EXPECT_GE(object["seconds"].get<double>(), 0.02);
    EXPECT_EQ(object["rates"]["reads"].get<double>(), 0);
    EXPECT_GT(object["statistics"]["commands"]["read"]["succeeded"].get<uint64_t>(), 0u);
    EXPECT_EQ(object["statistics"]["calls"]["write"]["failed"].get<uint64_t>(), 0u);
    EXPECT_TRUE(object["statistics"]["segments"].contains("prefree"));
  }
}

TEST(Watch, without_seconds_looks_each_second) {
  const Answer answer =
      run_gofs({"stat", host::sample_volume().path(), "--json", "--count", "1", "--watch"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_GE(nlohmann::json::parse(answer.out)["seconds"].get<double>(), 1.0);
}

TEST(Watch, what_makes_no_sense_is_wrong_usage) {
  const std::string volume = host::sample_volume().path();
  const std::vector<std::string> wrong[] = {{"stat", volume, "/odd", "--watch", "1"},
                                            {"stat", volume, "--watch", "0"},
                                            {"stat", volume, "--watch", "-1"},
                                            {"stat", volume, "--watch", "soon"},
                                            {"stat", volume, "--watch", "1", "--count", "0"},
                                            {"stat", volume, "--watch", "1", "-L"},
                                            {"stat", volume, "/odd", "--count", "3"},
                                            {"stat", volume}};
  for (const auto& words : wrong) {
    const Answer answer = run_gofs(words);
    EXPECT_EQ(answer.status, 2) << testing::PrintToString(words);
    EXPECT_EQ(answer.out, "") << testing::PrintToString(words);
  }
  EXPECT_EQ(run_gofs({"stat", "/no/such/volume", "--watch", "--count", "1"}).status, 1);
}

}  // namespace
}  // namespace gofs::cli_test
