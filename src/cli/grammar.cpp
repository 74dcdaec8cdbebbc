// SPDX-License-Identifier: Apache-2.0
//
// The only file that knows CLI11, which is long to compile.
#include "cli/grammar.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <sstream>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/text.h"
#include "host/volume_spec.h"

namespace gofs::cli {
namespace {

/// What is wrong with how a volume is named, whether it is there or not.
std::string misnamed_volume(const std::string& text) {
  const auto specs = host::parse_volume_specs(text);
  return specs ? std::string() : specs.error().message;
}

CLI::Option* add_volume_argument(CLI::App& command, Session& session) {
  return command.add_option("VOL", session.volume, "Volume: an image or a device, with ?OPTIONS")
      ->required()
      ->check(misnamed_volume)
      ->type_name("");
}

CLI::Option* backend_option(CLI::App& command, std::string& backend) {
  return command.add_option("--backend", backend, "Where file system code runs: auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->type_name("NAME");
}

void add_backend_option(CLI::App& command, Session& session) {
  backend_option(command, session.backend);
}

/// VOL and --backend.
void add_volume_options(CLI::App& command, Session& session) {
  add_volume_argument(command, session);
  add_backend_option(command, session);
}

CLI::Option* json_option(CLI::App& command, bool& json) {
  return command.add_flag("--json", json, "Print JSON");
}

void add_json_option(CLI::App& command, Session& session) { json_option(command, session.json); }

/// An option that takes a number of bytes: 4096, 64K, 1G.
CLI::Option* add_size_option(CLI::App& command, const std::string& name, uint64_t& target,
                             const std::string& description) {
  const auto parse = [&target](const CLI::results_t& words) {
    const auto size = host::parse_size(words.back());
    if (!size) return false;
    target = *size;
    return true;
  };
  return command.add_option(name, parse, description)->type_name("BYTES");
}

/// A command that takes options: `body` is run with them when the command was chosen.
template <typename Options>
std::shared_ptr<Options> on_command(CLI::App& command, Session& session,
                                    void (*body)(Session&, const Options&)) {
  const auto options = std::make_shared<Options>();
  command.callback([&session, options, body] { body(session, *options); });
  return options;
}

void add_info(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("info", "Describe a volume");
  add_volume_options(command, session);
  add_json_option(command, session);
  command.callback([&session] { run_info(session); });
}

void add_ls(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("ls", "List a directory");
  const auto options = on_command(command, session, run_ls);
  add_volume_options(command, session);
  command.add_option("PATH", options->path, "What to list; / if not given")->type_name("");
  command.add_flag("-l,--long", options->details, "Show what the inodes say");
  command.add_flag("-R,--recursive", options->recursive, "List everything below");
  add_json_option(command, session);
}

void add_stat(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("stat", "Show what a file's inode says");
  const auto options = on_command(command, session, run_stat);
  add_volume_options(command, session);
  command.add_option("PATH", options->path, "File or directory")->required()->type_name("");
  command.add_flag("-L,--follow", options->follow, "Follow a symbolic link");
  add_json_option(command, session);
}

void add_cat(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("cat", "Print a file's bytes");
  const auto options = on_command(command, session, run_cat);
  add_volume_options(command, session);
  command.add_option("PATH", options->path, "File")->required()->type_name("");
  add_size_option(command, "--offset", options->offset, "Where to begin");
  add_size_option(command, "--length", options->length, "How many bytes at most");
}

void add_get(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("get", "Copy files to the host");
  const auto options = on_command(command, session, run_get);
  add_volume_options(command, session);
  command.add_option("PATH", options->path, "File, or with -r directory, of the volume")
      ->required()
      ->type_name("");
  command
      .add_option("HOSTPATH", options->host_path,
                  "Where it goes: a name, or a directory that exists")
      ->required()
      ->type_name("");
  command.add_flag("-r,--recursive", options->recursive, "Copy a directory and all that is below");
}

/// Refuses words of which `parse` makes nothing.
template <typename Parse>
auto understood(Parse parse, const std::string& what) {
  return [parse, what](const std::string& word) {
    return parse(word) ? std::string() : "'" + word + "' is no " + what;
  };
}

void add_put(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("put", "Copy files from the host");
  const auto options = on_command(command, session, run_put);
  add_volume_options(command, session);
  command
      .add_option("HOSTPATHS", options->paths,
                  "Files of the host and, last, where they go: a name, or a directory that exists")
      ->required()
      ->expected(2, 1 << 20)
      ->type_name("");
  command.add_flag("-r,--recursive", options->recursive, "Copy directories and all that is below");
}

void add_mkdir(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("mkdir", "Make directories");
  const auto options = on_command(command, session, run_mkdir);
  add_volume_options(command, session);
  command.add_option("PATH", options->paths, "Directories to be made")->required()->type_name("");
  command.add_flag("-p,--parents", options->parents,
                   "Those on the way to them as well, and no error where they are there");
  command.add_option("-m,--mode", options->mode, "As of chmod; 755 if not given")
      ->check(understood([](const std::string& word) { return changed_mode(word, 0777, true); },
                         "mode"))
      ->type_name("MODE");
}

void add_rm(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("rm", "Remove files");
  const auto options = on_command(command, session, run_rm);
  add_volume_options(command, session);
  command.add_option("PATH", options->paths, "What is to be removed")->required()->type_name("");
  command.add_flag("-r,--recursive", options->recursive,
                   "Remove directories and all that is below");
  command.add_flag("-f,--force", options->force, "No error where there is nothing");
}

void add_rmdir(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("rmdir", "Remove empty directories");
  const auto options = on_command(command, session, run_rmdir);
  add_volume_options(command, session);
  command.add_option("PATH", options->paths, "Directories to be removed")
      ->required()
      ->type_name("");
}

void add_mv(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("mv", "Give files other names or places");
  const auto options = on_command(command, session, run_mv);
  add_volume_options(command, session);
  command
      .add_option("PATHS", options->paths,
                  "What is to be moved and, last, its new name or the directory it goes to")
      ->required()
      ->expected(2, 1 << 20)
      ->type_name("");
  CLI::Option* const keep = command.add_flag("-n,--no-clobber", options->no_clobber,
                                             "Replace nothing; it is an error then");
  command.add_flag("--exchange", options->exchange, "Each gets the other's name")->excludes(keep);
}

void add_ln(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("ln", "Make another name of a file, or a symbolic link");
  const auto options = on_command(command, session, run_ln);
  add_volume_options(command, session);
  command.add_option("TARGET", options->target, "What the name leads to")
      ->required()
      ->type_name("");
  command.add_option("PATH", options->path, "The new name")->required()->type_name("");
  command.add_flag("-s,--symbolic", options->symbolic, "Make a symbolic link");
}

void add_truncate(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("truncate", "Set the size of a file");
  const auto options = on_command(command, session, run_truncate);
  add_volume_options(command, session);
  command.add_option("PATH", options->path, "The file")->required()->type_name("");
  add_size_option(command, "SIZE", options->size_bytes, "Its new size, as in 4096, 64K or 1G")
      ->required()
      ->type_name("");
}

void add_sum(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("sum", "SHA-256 of files, computed by the backend");
  const auto options = on_command(command, session, run_sum);
  add_volume_options(command, session);
  command.add_option("PATH", options->path, "File, or with -r directory; / if not given")
      ->type_name("");
  command.add_flag("-r,--recursive", options->recursive, "All regular files below PATH");
  command.add_option("--into", options->into, "Write the sums to this file of the volume")
      ->type_name("FILE");
  add_json_option(command, session);
}

void add_check(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("check", "Let fsck.f2fs look at a volume");
  const auto options = on_command(command, session, run_check);
  add_volume_argument(command, session);
  command.add_flag("-v,--verbose", options->verbose, "Show all that fsck.f2fs says");
}

void add_mkfs(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("mkfs", "Make an empty volume");
  const auto options = on_command(command, session, run_mkfs);
  add_volume_argument(command, session);
  add_size_option(command, "--size", options->size_bytes,
                  "Its size; if not given, that of the file or device");
  command.add_option("-l,--label", options->label, "Its label, up to 511 characters");
  command.add_option("-O,--features", options->features, "Features, as mkfs.f2fs names them")
      ->delimiter(',')
      ->type_name("NAME,...");
  command.add_flag("-f,--force", options->force, "Write over what is there, if it is not in use");
}

/// -h, which is then no help.
void add_link_option(CLI::App& command, bool& no_dereference) {
  command.set_help_flag("--help", "Print this help message and exit");
  command.add_flag("-h,--no-dereference", no_dereference,
                   "Change symbolic links themselves; always so with -R");
}

/// PATH... and -R.
void add_change_options(CLI::App& command, ChangeOptions& options) {
  command.add_option("PATH", options.paths, "Files or directories")->required()->type_name("");
  command.add_flag("-R,--recursive", options.recursive, "And all that is below");
}

void add_chmod(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("chmod", "Change permissions");
  const auto options = on_command(command, session, run_chmod);
  add_volume_options(command, session);
  command.add_option("MODE", options->mode, "Octal, or as in u+x,go-w or a=rX")
      ->required()
      ->check(
          understood([](const std::string& word) { return changed_mode(word, 0, false); }, "mode"))
      ->type_name("");
  add_change_options(command, options->change);
}

void add_chown(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("chown", "Change owner and group");
  const auto options = on_command(command, session, run_chown);
  add_volume_options(command, session);
  command.add_option("OWNER", options->owner, "OWNER, OWNER:GROUP or :GROUP, by number or name")
      ->required()
      ->check(understood(parse_owner, "user or group"))
      ->type_name("");
  add_change_options(command, options->change);
  add_link_option(command, options->no_dereference);
}

void add_touch(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("touch", "Set the times of files, and make those that are missing");
  const auto options = on_command(command, session, run_touch);
  add_volume_options(command, session);
  add_change_options(command, options->change);
  command.add_flag("-a", options->accessed, "Only when it was read");
  command.add_flag("-m", options->modified, "Only when it was written");
  command
      .add_option("-t,--time", options->time, "Seconds since 1970, as in 1700000000.5; else now")
      ->check(understood(parse_time, "time"))
      ->type_name("SECONDS");
  command.add_flag("-c,--no-create", options->no_create,
                   "Pass over what is missing, which -h and -R refuse");
  add_link_option(command, options->no_dereference);
}

void add_gc(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("gc", "Empty segments that are only partly in use, for room in a row");
  const auto options = on_command(command, session, run_gc);
  add_volume_options(command, session);
  command.add_option("--segments", options->segments_max, "How many at most; else all worth it")
      ->check(CLI::Range(1u, UINT32_MAX))
      ->type_name("N");
  command.add_flag("--emptiest-first", options->emptiest_first,
                   "Those with fewest blocks first, whatever their age");
  add_json_option(command, session);
}

void add_bench_micro(CLI::App& bench, Session& session) {
  CLI::App& command = *bench.add_subcommand(
      "micro", "Measure reads and writes beside raw commands, on volumes of its own");
  const auto options = on_command(command, session, run_bench_micro);
  add_backend_option(command, session);
  command
      .add_option("--folder", options->folder,
                  "Where the images lie meanwhile, some 20 GiB; /dev/shm if not given")
      ->check(CLI::ExistingDirectory)
      ->type_name("HOSTPATH");
  command
      .add_option("--models", options->models,
                  "Timing models of the SSDs, or hbm; none if not given")
      ->delimiter(',')
      ->type_name("NAME,...");
  command
      .add_option("--sweeps", options->sweeps,
                  "Axes: outstanding, size, blocks, lanes, lbas, ssds, files, all if not given; or "
                  "ablations")
      ->delimiter(',')
      ->check(CLI::IsMember(
          {"outstanding", "size", "blocks", "lanes", "lbas", "ssds", "files", "ablations"}))
      ->type_name("NAME,...");
  command.add_option("--ssds", options->ssds, "Of axis ssds; 1,2,4,8 if not given")
      ->delimiter(',')
      ->check(CLI::Range(1u, 8u))
      ->type_name("N,...");
  command.add_option("--runs", options->runs, "Of each point, of which the median counts")
      ->check(CLI::Range(1u, 1000u))
      ->type_name("N");
  command.add_option("--seconds", options->seconds, "How long each run takes")
      ->check(CLI::Range(0.001, 3600.0))
      ->type_name("S");
  command
      .add_option("--controller-warps", options->controller_warps,
                  "Warps that play the virtual SSDs' controllers and do nothing else, beside those "
                  "that read or write; 0 if not given")
      ->type_name("N");
  command.add_flag("--small", options->small, "Few points and bytes: to see that all of it works");
  add_json_option(command, session);
}

void add_bench(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("bench", "Measure reads: raw commands and the file API");
  const auto options = std::make_shared<BenchOptions>();
  add_volume_argument(command, session)->required(false);  // `micro` makes its own
  add_backend_option(command, session);
  add_bench_micro(command, session);
  command.callback([&command, &session, options] {
    if (command.got_subcommand("micro")) return;
    if (session.volume.empty()) throw CLI::RequiredError("VOL");
    run_bench(session, *options);
  });
  command
      .add_option("KIND", options->kinds,
                  "What to measure: raw, file, files (raw file if not given)")
      ->check(CLI::IsMember({"raw", "file", "files"}))
      ->type_name("");
  command.add_option("--file", options->file, "File to read; the largest if not given")
      ->type_name("PATH");
  command
      .add_option("--directory", options->directory,
                  "Directory for `files`; the one with most files if not given")
      ->type_name("PATH");
  command.add_option("--pattern", options->pattern, "rand, seq or both")
      ->check(CLI::IsMember({"rand", "seq", "both"}))
      ->type_name("NAME");
  command
      .add_option("--scope", options->scope,
                  "Who makes one file read: a thread, warp, block or the whole grid")
      ->check(CLI::IsMember({"thread", "warp", "block", "grid"}))
      ->type_name("NAME");
  command
      .add_option("--threads", options->outstanding,
                  "Reads at the same time: how many threads, warps or blocks")
      ->check(CLI::Range(1u, 1u << 20))
      ->type_name("N");
  add_size_option(command, "--block-size", options->block_bytes, "Bytes of a read")
      ->check([](const std::string& word) {
        const uint64_t bytes = host::parse_size(word).value_or(0);
        const bool taken = bytes != 0 && bytes <= 1u << 30 && bytes % 512 == 0;
        return taken ? std::string() : std::string("wants a multiple of 512 bytes, up to 1G");
      });
  command.add_option("--seconds", options->seconds, "How long each measurement takes")
      ->check(CLI::Range(0.001, 3600.0))
      ->type_name("S");
  command.add_option("--operations", options->operations, "How many reads, instead of --seconds")
      ->type_name("N");
  command
      .add_option("--repetitions", options->repetitions, "Measurements, of which the median counts")
      ->check(CLI::Range(1u, 1000u))
      ->type_name("N");
  command.add_option("--files", options->files_max, "How many files `files` opens at most")
      ->check(CLI::Range(1u, 1u << 18))
      ->type_name("N");
  command.add_option("--seed", options->seed, "Of random patterns")->type_name("N");
  add_json_option(command, session);
}

void add_doctor(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("doctor", "Say what this machine can run");
  const auto options = on_command(command, session, run_doctor);
  command
      .add_option("ADDRESS", options->address,
                  "Of an NVMe SSD (0000:65:00.0): what it lacks to be a volume")
      ->type_name("");
  add_json_option(command, session);
}

int fail_usage(const std::string& reason) {
  const bool told = tell(reason) && print_error("Try 'gofs --help' or 'gofs COMMAND --help'.\n");
  return told ? kExitUsage : kExitFailure;
}

/// The options that most commands have, where they stand before the command's name.
struct EarlyOptions {
  CLI::Option* backend_option = nullptr;
  CLI::Option* json_option = nullptr;
  std::string backend;
  bool json = false;
};

void add_early_options(CLI::App& app, EarlyOptions& early) {
  early.backend_option = backend_option(app, early.backend);
  early.json_option = json_option(app, early.json);
}

/// Whether `early` was given, and counts for the command that was chosen: not where it stands
/// behind the name as well. A command that does not take it is wrong usage.
bool counts_early(const CLI::App& app, const CLI::Option& early) {
  if (early.count() == 0) return false;
  bool taken = false;
  bool given = false;
  std::string name;
  for (const CLI::App* command = &app; !command->get_subcommands().empty();) {
    command = command->get_subcommands().front();
    name += (name.empty() ? "" : " ") + command->get_name();
    const CLI::Option* const own = command->get_option_no_throw(early.get_name());
    taken = taken || own != nullptr;
    given = given || (own != nullptr && own->count() != 0);
  }
  if (!taken) {
    throw CLI::ParseError(name + " takes no " + early.get_name(), CLI::ExitCodes::ExtrasError);
  }
  return !given;
}

/// Gives the command what stood before its name.
void take_early_options(const CLI::App& app, const EarlyOptions& early, Session& session) {
  if (counts_early(app, *early.backend_option)) session.backend = early.backend;
  if (counts_early(app, *early.json_option)) session.json = true;
}

}  // namespace

int run(int argument_count, char** arguments) {
  Session session;
  CLI::App app("A file system that runs on the GPU: F2FS volumes.", "gofs");
  app.set_version_flag("--version", "gofs " GOFS_VERSION);
  app.require_subcommand(1);
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
      "Exit status: 0, 1 when something failed, 2 for wrong usage.");
  add_info(app, session);
  add_ls(app, session);
  add_stat(app, session);
  add_cat(app, session);
  add_get(app, session);
  add_put(app, session);
  add_mkdir(app, session);
  add_rm(app, session);
  add_rmdir(app, session);
  add_mv(app, session);
  add_ln(app, session);
  add_truncate(app, session);
  add_sum(app, session);
  add_check(app, session);
  add_mkfs(app, session);
  add_chmod(app, session);
  add_chown(app, session);
  add_touch(app, session);
  add_gc(app, session);
  add_bench(app, session);
  add_doctor(app, session);
  EarlyOptions early;
  add_early_options(app, early);
  app.parse_complete_callback([&] { take_early_options(app, early, session); });
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
    if (app.get_subcommands().empty() && !unknown.empty()) {
      return fail_usage(unknown.front() + ": no such command or option");
    }
    return fail_usage(problem.what());
  }
  flush_output();
  return session.exit_status;
}

}  // namespace gofs::cli
