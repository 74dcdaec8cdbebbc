// SPDX-License-Identifier: Apache-2.0
#include "daemon/mps.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <optional>
#include <sstream>
#include <string>

#include "daemon/short_program.h"
#include "ssd/system_failure.h"

namespace gofs::daemon {

namespace {

constexpr const char* kProgram = "nvidia-cuda-mps-control";
constexpr std::chrono::seconds kCommandTimeout{20};
constexpr std::chrono::seconds kQuitTimeout{5};

/// What the control daemon answers; none: there is none.
std::optional<std::string> ask(const std::string& command,
                               std::chrono::seconds timeout = kCommandTimeout) {
  std::string said;
  if (!run_to_end({.words = {kProgram}, .input = command + "\n", .timeout = timeout}, said)) {
    return std::nullopt;
  }
  return said;
}

/// Whether a program uses a GPU by it. A server of MPS, which is a process, has a list of those.
bool is_used() {
  std::istringstream servers(ask("get_server_list").value_or(std::string()));
  for (std::string server; servers >> server;) {
    if (!ask("get_client_list " + server).value_or(std::string()).empty()) return true;
  }
  return false;
}

/// False: it did not start; `said` may be that it runs already.
bool start(std::string& said) {
  ShortProgram program{.words = {kProgram, "-d"}, .timeout = kCommandTimeout};
  if (::geteuid() != 0 && std::getenv("CUDA_MPS_LOG_DIRECTORY") == nullptr) {
    // Where logs are without that, root alone may write.
    const char* const pipes = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
    program.variables.push_back(std::string("CUDA_MPS_LOG_DIRECTORY=") +
                                (pipes != nullptr ? pipes : "/tmp/nvidia-mps"));
  }
  return run_to_end(program, said);
}

}  // namespace

Mps::Mps() {
  std::string said;
  is_ours_ = start(said);
  if (is_ours_ || ask("get_server_list")) return;
  ssd::fail_with(EIO, std::string(kProgram) +
                          " -d does not start MPS: " + (said.empty() ? "it says nothing" : said));
}

Mps::~Mps() {
  if (!is_ours_) return;
  try {
    if (!is_used()) (void)ask("quit", kQuitTimeout);
  } catch (const std::exception&) {  // it goes on, and does no harm
  }
}

}  // namespace gofs::daemon
