// SPDX-License-Identifier: Apache-2.0
//
// gofs bench: another program, gofs-bench (src/bench), which lies beside this one, or where it is
// installed in ../libexec/gofs. What measures is no part of the command or of the library.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gofs::cli {

/// The arguments of gofs-bench, if the command is `bench`: all that follows this word, and before
/// it those options of the words in front that are not given behind it again.
std::optional<std::vector<std::string>> bench_words(int argument_count, char** arguments);

/// Becomes gofs-bench. Throws Failure where it is missing or cannot be executed.
[[noreturn]] void execute_bench(const std::vector<std::string>& words);

}  // namespace gofs::cli
