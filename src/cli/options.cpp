// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <sstream>
#include <vector>

#include "cli/output.h"
#include "host/volume_spec.h"

namespace gofs::cli {

namespace {

/// What is wrong with how a volume is named, whether it is there or not.
std::string misnamed_volume(const std::string& text) {
  const auto specs = host::parse_volume_specs(text);
  return specs ? std::string() : specs.error().message;
}

std::string misnamed_size(const std::string& text) {
  if (host::parse_size(text)) return {};
  return "'" + text + "' is no size, such as 4096, 64K or 1G";
}

int fail_usage(const CLI::App& app, const std::string& reason) {
  const std::string& name = app.get_name();
  const bool has_commands = app.get_require_subcommand_min() != 0;
  const std::string more = has_commands ? " or '" + name + " COMMAND --help'" : "";
  const bool told = tell(reason) && print_error("Try '" + name + " --help'" + more + ".\n");
  return told ? kExitUsage : kExitFailure;
}

}  // namespace

CLI::Option* add_volume_argument(CLI::App& command, Session& session) {
  return command.add_option("VOL", session.volume, "Volume: an image or a device, with ?OPTIONS")
      ->required()
      ->check(misnamed_volume)
      ->type_name("");
}

CLI::Option* add_backend_option(CLI::App& command, std::string& backend) {
  return command.add_option("--backend", backend, "Where file system code runs: auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->type_name("NAME");
}

CLI::Option* add_json_option(CLI::App& command, bool& json) {
  return command.add_flag("--json", json, "Print JSON");
}

CLI::Option* add_size_option(CLI::App& command, const std::string& name, uint64_t& target,
                             const std::string& description) {
  const auto parse = [&target](const CLI::results_t& words) {
    const auto size = host::parse_size(words.back());
    if (!size) return false;
    target = *size;
    return true;
  };
  return command.add_option(name, parse, description)->check(misnamed_size)->type_name("BYTES");
}

void set_help_style(CLI::App& app) {
  app.get_formatter()->column_width(34);
  app.footer(
      "VOL is an image, a block device or ram:SIZE, with options after a question mark:\n"
      "  vol.img?model=990pro&queues=16&depth=1024&lba=512&cache=256M&timeout=5s\n"
      "  vol.img?spare=64G                      a large sparse image that is to be filled on a "
      "GPU\n"
      "  vol.img?descriptors=1000000            a million files open at once, 1 KB each\n"
      "  vol.img?mode=lfs                       what is written always goes to new blocks\n"
      "  vol.img?ablate=one-log,single-blocks   without mechanisms, to see what they bring\n"
      "  vfio:0000:65:00.0                      an NVMe SSD that is bound to vfio-pci: see "
      "gofs doctor ADDRESS\n"
      "  /run/gofs.socket                       where a server is (gofsd): the volume that it "
      "serves\n"
      "Exit status: 0, 1 when something failed, 2 for wrong usage.");
}

int parse_and_run(CLI::App& app, const Session& session, int argument_count, char** arguments) {
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::Success& request) {  // --help, --version
    std::ostringstream answer;
    const int status = app.exit(request, answer, answer);
    print(answer.str());
    flush_output();
    return status;
  } catch (const CLI::ParseError& problem) {
    // CLI11 only says that a command is missing, also where there is one that it does not know.
    const std::vector<std::string> unknown = app.remaining();
    const bool wants_command = app.get_require_subcommand_min() != 0;
    if (wants_command && app.get_subcommands().empty() && !unknown.empty()) {
      return fail_usage(app, unknown.front() + ": no such command or option");
    }
    return fail_usage(app, problem.what());
  }
  flush_output();
  return session.exit_status;
}

}  // namespace gofs::cli
