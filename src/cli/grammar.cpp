// SPDX-License-Identifier: Apache-2.0
//
#include "cli/grammar.h"

#include <memory>
#include <string>

#include "cli/bench.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "gofs/version.h"

namespace gofs::cli {
namespace {

/// VOL and --backend.
void add_volume_options(CLI::App& command, Session& session) {
  add_volume_argument(command, session);
  add_backend_option(command, session.backend);
}

void add_info(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("info", "Describe a volume");
  add_volume_options(command, session);
  add_json_option(command, session.json);
  command.callback([&session] { run_info(session); });
}

void add_ls(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("ls", "List a directory");
  const auto options = on_command(command, session, run_ls);
  add_volume_options(command, session);
  command.add_option("PATH", options->path, "What to list; / if not given")->type_name("");
  command.add_flag("-l,--long", options->details, "Show what the inodes say");
  command.add_flag("-R,--recursive", options->recursive, "List everything below");
  add_json_option(command, session.json);
}

void add_stat(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("stat", "Show what a file's inode says, or what a volume does");
  const auto options = std::make_shared<StatOptions>();
  const auto watching = std::make_shared<WatchOptions>();
  add_volume_options(command, session);
  CLI::Option* const path =
      command.add_option("PATH", options->path, "File or directory")->type_name("");
  CLI::Option* const follow =
      command.add_flag("-L,--follow", options->follow, "Follow a symbolic link");
  CLI::Option* const watch =
      command
          .add_option("--watch", watching->seconds,
                      "Instead of a file: reads, writes, commands of the volume, a line each "
                      "second, or as many seconds as are given")
          ->expected(0, 1)
          ->check(CLI::Range(0.01, 86400.0))
          ->type_name("SECONDS")
          ->excludes(path)
          ->excludes(follow);
  command.add_option("--count", watching->count, "With --watch: end after so many lines")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 62))
      ->type_name("N")
      ->needs(watch);
  add_json_option(command, session.json);
  command.callback([&session, options, watching, watch, path] {
    if (watch->count() != 0) {
      if (watching->seconds == 0) watching->seconds = WatchOptions{}.seconds;  // none were given
      return run_watch(session, *watching);
    }
    if (path->count() == 0) throw CLI::RequiredError("PATH");
    run_stat(session, *options);
  });
}

void add_top(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("top", "Show what a volume does, by Python's package gofs");
  const auto options = std::make_shared<TopOptions>();
  add_volume_argument(command, session);
  command.add_option("--seconds", options->seconds, "Between two looks; 1 if not given")
      ->check(CLI::Range(0.05, 86400.0))
      ->type_name("N");
  CLI::Option* const web =
      command
          .add_option("--web", options->web,
                      "On a page for browsers instead of the terminal; at :9467 of this machine "
                      "alone if no address is given")
          ->expected(0, 1)
          ->type_name("ADDRESS:PORT");
  command.callback([&session, options, web] {
    options->on_page = web->count() != 0;
    run_top(session, *options);
  });
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
  add_json_option(command, session.json);
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
  add_json_option(command, session.json);
}

void add_ctl(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("ctl", "Ask a server how it is, or to end");
  const auto options = on_command(command, session, run_ctl);
  command.add_option("SOCKET", session.volume, "Of gofsd")->required()->type_name("");
  command
      .add_option("WHAT", options->what,
                  "status; drain: no more clients; stop: end all clients, and unmount")
      ->required()
      ->check(CLI::IsMember({"status", "drain", "stop"}))
      ->type_name("");
  add_json_option(command, session.json);
}

/// Only for the lists: run() sees it before.
void add_bench(CLI::App& app) {
  app.add_subcommand("bench", "Measure reads: raw commands and the file API")->prefix_command();
}

void add_doctor(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("doctor", "Say what this machine can run");
  const auto options = on_command(command, session, run_doctor);
  command
      .add_option("ADDRESS", options->address,
                  "Of an NVMe SSD (0000:65:00.0): what it lacks to be a volume")
      ->type_name("");
  add_json_option(command, session.json);
}

/// The options that most commands have, where they stand before the command's name.
struct EarlyOptions {
  CLI::Option* backend_option = nullptr;
  CLI::Option* json_option = nullptr;
  std::string backend;
  bool json = false;
};

void add_early_options(CLI::App& app, EarlyOptions& early) {
  early.backend_option = add_backend_option(app, early.backend);
  early.json_option = add_json_option(app, early.json);
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
  if (const auto words = bench_words(argument_count, arguments)) execute_bench(*words);
  Session session;
  CLI::App app("A file system that runs on the GPU: F2FS volumes.", "gofs");
  app.set_version_flag("--version", "gofs " GOFS_VERSION);
  app.require_subcommand(1);
  set_help_style(app);
  add_info(app, session);
  add_ls(app, session);
  add_stat(app, session);
  add_top(app, session);
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
  add_ctl(app, session);
  add_bench(app);
  add_doctor(app, session);
  EarlyOptions early;
  add_early_options(app, early);
  app.parse_complete_callback([&] { take_early_options(app, early, session); });
  return parse_and_run(app, session, argument_count, arguments);
}

}  // namespace gofs::cli
