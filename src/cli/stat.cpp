// SPDX-License-Identifier: Apache-2.0
//
// gofs stat VOL PATH: what the inode says, and its extended attributes. A symbolic link is
// described itself; --follow asks for what it leads to.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/text.h"
#include "host/tree.h"
#include "host/volume_access.h"

namespace gofs::cli {
namespace {

void print_table(const host::TreeEntry& entry) {
  const Stat& stat = *entry.stat;
  std::string name = escaped(entry.path);
  if (entry.link_target) name += " -> " + escaped(*entry.link_target);
  const auto row = [](const char* label, const std::string& value) {
    print(fmt::format("{:<9} {}\n", label, value));
  };
  row("path", name);
  row("type", type_name(entry.entry.type));
  row("inode", fmt::format("{}, {} {}", stat.ino, stat.links, stat.links == 1 ? "link" : "links"));
  row("size", fmt::format("{} bytes, {} blocks of 512 bytes", stat.size_bytes, stat.blocks_512));
  row("mode",
      fmt::format("{:04o} {}", stat.mode & format::kModePermissionMask, mode_text(stat.mode)));
  row("owner", fmt::format("uid {}, gid {}", stat.uid, stat.gid));
  if (entry.entry.type == format::kTypeCharDevice || entry.entry.type == format::kTypeBlockDevice) {
    row("device", fmt::format("{}, {}", stat.device_major, stat.device_minor));
  }
  row("accessed", time_text(stat.accessed));
  row("modified", time_text(stat.modified));
  row("changed", time_text(stat.changed));
  if (stat.created.seconds != 0 || stat.created.nanoseconds != 0) {
    row("created", time_text(stat.created));
  }
  if (!entry.xattrs) return;
  for (const host::ExtendedAttribute& xattr : *entry.xattrs) {
    row("attribute", xattr_text(xattr));
  }
}

}  // namespace

void run_stat(Session& session, const StatOptions& options) {
  Volume volume = open_volume(session);
  host::Tree tree(host::any_of(volume));
  host::TreeEntry entry = take(tree.find(options.path, true));
  if (options.follow) {
    entry.stat = take(volume.stat(options.path));
    entry.entry.ino = entry.stat->ino;
    entry.entry.type = format::file_type_of_mode(static_cast<uint16_t>(entry.stat->mode));
    entry.link_target.reset();
  }
  find_xattrs(session, tree, entry);
  session.json ? print(entry_json(entry) + "\n") : print_table(entry);
}

}  // namespace gofs::cli
