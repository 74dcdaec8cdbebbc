// SPDX-License-Identifier: Apache-2.0
//
// error_text() has words for every errno that the documents and headers name and that the code of
// kernels returns: those that the host's messages have.
#include <gtest/gtest.h>

#include <cctype>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "gofs/types.h"

namespace gofs {
namespace {

static_assert(std::string_view(error_text(-ENOENT)) == "No such file or directory");

/// The words of `text` that are names of errnos and, if `negative`, have a minus sign.
void collect_errnos(const std::string& text, bool negative, std::set<std::string>& found) {
  static const std::map<std::string, int> known = [] {
    std::map<std::string, int> names;
    for (int error = 1; error < 4096; ++error) {
      const char* const name = strerrorname_np(error);
      if (name != nullptr) names[name] = error;
    }
    return names;
  }();
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const bool signs = at > 0 && text[at - 1] == '-';
    const std::string word = text.substr(at, end - at);
    if (known.count(word) != 0 && (signs || !negative)) found.insert(word);
    at = end + 1;
  }
}

/// Those of all files of `folder` whose names end as `suffix` says.
void collect_of_folder(const std::string& folder, const std::string& suffix, bool negative,
                       std::set<std::string>& found) {
  const char* const source = std::getenv("GOFS_SOURCE_DIR");
  const std::filesystem::path root(source != nullptr ? source : ".");
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root / folder)) {
    if (entry.path().extension() != suffix) continue;
    ++files;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    collect_errnos(text.str(), negative, found);
  }
  EXPECT_NE(files, 0u) << folder;
}

int number_of(const std::string& name) {
  for (int error = 1; error < 4096; ++error) {
    const char* const known = strerrorname_np(error);
    if (known != nullptr && name == known) return error;
  }
  return 0;
}

void expect_known(const std::set<std::string>& names) {
  for (const std::string& name : names) {
    const int error = number_of(name);
    EXPECT_STREQ(error_text(-error), std::strerror(error)) << name;
  }
}

TEST(ErrorTextTest, every_errno_that_documents_and_public_headers_name_has_the_systems_words) {
  std::set<std::string> found;
  collect_of_folder(".", ".md", false, found);
  collect_of_folder("docs", ".md", false, found);
  for (const char* const suffix : {".h", ".hpp", ".cuh"}) {
    collect_of_folder("include/gofs", suffix, false, found);
  }
  EXPECT_GE(found.size(), 25u);
  expect_known(found);
}

TEST(ErrorTextTest, every_errno_that_code_of_kernels_returns_has_the_systems_words) {
  std::set<std::string> found;
  for (const char* const folder : {"simt", "ssd", "nvme", "f2fs", "vfs", "kernels"}) {
    collect_of_folder(std::string("src/") + folder, ".h", true, found);
  }
  EXPECT_GE(found.size(), 25u);
  expect_known(found);
}

TEST(ErrorTextTest, what_is_no_error_is_a_success_and_what_is_unknown_says_so) {
  EXPECT_STREQ(error_text(0), std::strerror(0));
  EXPECT_STREQ(error_text(1), "Success");
  EXPECT_STREQ(error_text(INT64_MAX), "Success");
  EXPECT_STREQ(error_text(-4095), "Unknown error");
  EXPECT_STREQ(error_text(-100'000), "Unknown error");
  EXPECT_STREQ(error_text(INT64_MIN), "Unknown error");
  // Whose lower half is that of an error.
  EXPECT_STREQ(error_text((int64_t{1} << 32) - ENOENT), "Success");
  EXPECT_STREQ(error_text(-(int64_t{1} << 32) - ENOENT), "Unknown error");
}

}  // namespace
}  // namespace gofs
