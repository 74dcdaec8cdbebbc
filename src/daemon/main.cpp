// SPDX-License-Identifier: Apache-2.0
//
// gofsd VOL --socket PATH: serves a volume to other processes, which attach to the socket
// (Volume::attach, and the command with the socket's path in place of VOL). In the foreground.
#include <memory>

#include "cli/guarded.h"
#include "cli/options.h"
#include "cli/session.h"
#include "daemon/keeper.h"
#include "daemon/worker.h"
#include "gofs/version.h"
#include "host/serve/metrics_address.h"

namespace gofs::daemon {
namespace {

// Of a worker that gives a sign each second.
constexpr uint32_t kHangMin = 5;
constexpr uint32_t kHangMax = 86'400;

/// The permissions of a file, in octal digits.
bool parse_mode(const CLI::results_t& words, uint32_t& mode) {
  const std::string& word = words.back();
  if (word.empty() || word.size() > 4 || word.find_first_not_of("01234567") != std::string::npos) {
    return false;
  }
  mode = static_cast<uint32_t>(std::stoul(word, nullptr, 8));
  return mode <= 0777;
}

int run(int argument_count, char** arguments) {
  cli::Session session;
  Options options;
  bool works = false;
  CLI::App app("Serves an F2FS volume to the processes of this machine.", "gofsd");
  app.set_version_flag("--version", "gofsd " GOFS_VERSION);
  cli::add_volume_argument(app, session);
  app.add_option("--socket", options.socket, "Where clients come")->required()->type_name("PATH");
  app.add_option(
         "--mode", [&](const auto& words) { return parse_mode(words, options.mode); },
         "Permissions of the socket: who may write to it may come; 600 if not given")
      ->type_name("OCTAL");
  app.add_option("--backend", options.backend, "Where file system code runs: cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->type_name("NAME");
  app.add_option("--threads", options.threads,
                 "Calls performed at once by processors; 2 for each if not given")
      ->check(CLI::Range(1u, 256u))
      ->type_name("N");
  app.add_option("--blocks", options.blocks,
                 "Of a GPU, which perform 7 calls each at once, at most; 16 if not given")
      ->check(CLI::Range(1u, 1024u))
      ->type_name("N");
  app.add_option("--clients", options.clients_max, "At once, at most; 256 if not given")
      ->check(CLI::Range(1u, 4096u))
      ->type_name("N");
  app.add_option_function<uint32_t>(
         "--hang", [&](const uint32_t& seconds) { options.hang = std::chrono::seconds(seconds); },
         "After so long without a sign of life a worker is ended and another is started; 150 if "
         "not given, 0: never")
      ->check([](const std::string& word) {
        return word == "0" ? std::string() : CLI::Range(kHangMin, kHangMax)(word);
      })
      ->type_name("SECONDS");
  app.add_option(
         "--metrics", options.metrics,
         "Tell what the volume does by HTTP, in Prometheus' text format, at /metrics there; "
         "without an address for this machine alone: :9466")
      ->check([](const std::string& word) {
        return host::parse_metrics_address(word)
                   ? std::string()
                   : "'" + word + "' is no ADDRESS:PORT by numbers, such as :9466 or [::1]:9466";
      })
      ->type_name("ADDRESS:PORT");
  app.add_flag("--mps", options.mps,
               "Start CUDA's Multi-Process Service where it does not run, so that kernels of "
               "clients can call; with --backend cuda");
  app.add_flag("--work", works, "What gofsd calls itself with")->group("");
  app.add_option("--claims", options.claims, "What it hands over then")->group("");
  app.callback([&] {
    if (options.mps && options.backend != "cuda") {
      throw CLI::ValidationError("--mps", "is for --backend cuda");
    }
    options.volume = session.volume;
    session.exit_status = works ? work(options) : keep(options);
  });
  return cli::parse_and_run(app, session, argument_count, arguments);
}

}  // namespace
}  // namespace gofs::daemon

int main(int argument_count, char** arguments) {
  return gofs::cli::run_guarded(gofs::daemon::run, argument_count, arguments);
}
