// SPDX-License-Identifier: Apache-2.0
//
// gofs ls VOL [PATH] [-l] [-R] [--json]: the names in a directory, or everything below it.
//
// With --json: one object a line, first for PATH itself, then for what is in it (-R: below it). -l
// adds all that stat knows, extended attributes as well.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/text.h"
#include "host/tree.h"
#include "host/volume_access.h"

namespace gofs::cli {
namespace {

/// Without --long, no more than the name.
host::TreeEntry shown(host::TreeEntry entry, const LsOptions& options) {
  if (options.details) return entry;
  entry.stat.reset();
  entry.link_target.reset();
  return entry;
}

std::string long_line(const host::TreeEntry& entry, std::string_view name) {
  std::string line;
  if (entry.stat) {
    const Stat& stat = *entry.stat;
    const bool device =
        entry.entry.type == format::kTypeCharDevice || entry.entry.type == format::kTypeBlockDevice;
    const std::string size = device ? fmt::format("{}, {}", stat.device_major, stat.device_minor)
                                    : std::to_string(stat.size_bytes);
    line = fmt::format("{} {:>4} {:>5} {:>5} {:>12} {} ", mode_text(stat.mode), stat.links,
                       stat.uid, stat.gid, size, time_text(stat.modified).substr(0, 19));
  } else {
    line = fmt::format("?????????? {:>4} {:>5} {:>5} {:>12} {:>19} ", "?", "?", "?", "?", "?");
  }
  line += escaped(name);
  if (entry.link_target) line += " -> " + escaped(*entry.link_target);
  return line;
}

void print_entry(const Session& session, const LsOptions& options, const host::TreeEntry& entry,
                 std::string_view name) {
  if (session.json) {
    print(entry_json(entry));
  } else if (options.details) {
    print(long_line(entry, name));
  } else {
    print(escaped(name));
  }
  print("\n");
}

}  // namespace

void run_ls(Session& session, const LsOptions& options) {
  Volume volume = open_volume(session);
  host::Tree tree(host::any_of(volume));
  host::TreeEntry top = take(tree.find(options.path, options.details));
  const bool xattrs = session.json && options.details;
  top = shown(std::move(top), options);
  if (xattrs) find_xattrs(session, tree, top);
  const bool directory = top.entry.type == format::kTypeDirectory;
  if (session.json || !directory) print_entry(session, options, top, options.path);
  if (!directory) return;

  bool first = true;
  host::WalkVisitor visitor;
  visitor.directory = [&](const std::string& path) {
    if (session.json || !options.recursive) return;
    print(fmt::format("{}{}:\n", first ? "" : "\n", escaped(path)));
    first = false;
  };
  visitor.entry = [&](const host::TreeEntry& entry) {
    print_entry(session, options, shown(entry, options),
                std::string_view(entry.path).substr(entry.name_at));
  };
  visitor.error = [&](const Error& error) {
    flush_output();
    report(session, error.message);
  };
  // Inodes and targets are looked at in any case: damage is reported, whatever is shown.
  tree.walk(top, {.recursive = options.recursive, .link_targets = true, .xattrs = xattrs}, visitor);
}

}  // namespace gofs::cli
