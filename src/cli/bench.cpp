// SPDX-License-Identifier: Apache-2.0
#include "cli/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "cli/session.h"
#include "host/messages.h"

namespace gofs::cli {
namespace {

constexpr const char* kProgramName = "gofs-bench";

/// An option that may stand in front of the command's name, in one or two words.
struct FrontOption {
  std::string name;
  std::vector<std::string> words;
};

/// The option that begins at `at`; no value: none of those that `bench` takes.
std::optional<FrontOption> front_option(const std::vector<std::string>& words, size_t at) {
  const std::string& word = words[at];
  const std::string name = word.substr(0, word.find('='));
  if (name == "--json" || word == "--help" || word == "-h") return FrontOption{name, {word}};
  if (name != "--backend") return std::nullopt;
  if (name != word) return FrontOption{name, {word}};
  if (at + 1 == words.size()) return std::nullopt;
  return FrontOption{name, {word, words[at + 1]}};
}

/// Whether one of the words from `begin` on is the option `name`.
bool gives(const std::vector<std::string>& words, size_t begin, const std::string& name) {
  for (size_t i = begin; i < words.size() && words[i] != "--"; ++i) {
    if (words[i].substr(0, words[i].find('=')) == name) return true;
  }
  return false;
}

std::optional<std::filesystem::path> find_bench() {
  std::error_code ignored;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  if (here.empty()) return std::nullopt;  // no /proc: it is not looked for where the user stands
  for (const auto& folder : {here, here.parent_path() / "libexec" / "gofs"}) {
    if (std::filesystem::is_regular_file(folder / kProgramName, ignored)) {
      return folder / kProgramName;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<std::string>> bench_words(int argument_count, char** arguments) {
  const std::vector<std::string> words(arguments + std::min(argument_count, 1),
                                       arguments + argument_count);
  std::vector<FrontOption> front;
  size_t at = 0;
  while (at < words.size() && words[at] != "bench") {
    const auto option = front_option(words, at);
    if (!option) return std::nullopt;
    at += option->words.size();
    front.push_back(*option);
  }
  if (at == words.size()) return std::nullopt;
  std::vector<std::string> result;
  for (const FrontOption& option : front) {
    if (gives(words, at + 1, option.name)) continue;
    result.insert(result.end(), option.words.begin(), option.words.end());
  }
  result.insert(result.end(), words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
  return result;
}

void execute_bench(const std::vector<std::string>& words) {
  const auto program = find_bench();
  if (!program) {
    throw Failure{fmt::format(
        "bench: the program {} is missing: it belongs beside gofs or into ../libexec/gofs",
        kProgramName)};
  }
  std::vector<char*> arguments = {const_cast<char*>(program->c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(program->c_str(), arguments.data());
  throw Failure{program->string() + ": " + host::errno_words(errno)};
}

}  // namespace gofs::cli
