// SPDX-License-Identifier: Apache-2.0
//
// gofs top VOL: becomes a program in Python, which the package `gofs` has (gofs.top).
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/program.h"
#include "host/messages.h"

namespace gofs::cli {

namespace {

// Nothing is imported from where the user happens to stand.
constexpr const char* kFromElsewhere = "import sys; sys.path = [p for p in sys.path if p]\n";

}  // namespace

void run_top(Session& session, const TopOptions& options) {
  const auto python = find_program("python3");
  if (!python) throw Failure{"top: python3 is missing"};
  const std::string begin = kFromElsewhere;
  const std::string wanted = options.on_page ? "import gofs" : "import gofs.top";
  if (run_program({*python, "-c", begin + wanted}).exit_status != 0) {
    throw Failure{fmt::format("top: {} has no package gofs{}: pip install '.{}' in GoFS's folder",
                              *python, options.on_page ? "" : " with textual",
                              options.on_page ? "" : "[top]")};
  }
  std::vector<std::string> words = {
      *python, "-c",        begin + "from gofs.__main__ import main\nsys.exit(main(sys.argv[1:]))",
      "top",   "--seconds", fmt::format("{}", options.seconds)};
  if (options.on_page) words.push_back(options.web.empty() ? "--web" : "--web=" + options.web);
  words.insert(words.end(), {"--", session.volume});
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(python->c_str(), arguments.data());
  throw Failure{*python + ": " + host::errno_words(errno)};
}

}  // namespace gofs::cli
