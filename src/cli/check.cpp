// SPDX-License-Identifier: Apache-2.0
//
// gofs check VOL: lets fsck.f2fs look at the volume, without changing it, after a walk through all
// of it: names and targets of links that cannot be, and some nodes that are in a wrong place, are
// nothing to fsck.f2fs. What is no whole
// volume is refused as other commands do, since fsck.f2fs would call a missing image damaged, and
// one that is cut off sound.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <regex>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/text.h"
#include "host/tree.h"
#include "host/volume_access.h"
#include "host/volume_spec.h"

namespace gofs::cli {
namespace {

/// The image or device that fsck.f2fs is to open.
std::string path_of_volume(const std::string& text) {
  auto specs = take(host::parse_volume_specs(text));
  if (specs.front().is_physical()) {
    throw Failure{text + ": give the SSD back to Linux and run fsck.f2fs on its disk"};
  }
  if (specs.size() != 1 || specs.front().path.empty()) {
    throw Failure{text + ": only an image or a device can be checked"};
  }
  return specs.front().path;
}

/// Goes through what says where the data of a file lies, but not through the data.
Expected<void> go_through(Volume& volume, host::Tree& tree, const host::TreeEntry& entry) {
  const auto fd = tree.open(entry);
  if (!fd) return fd.error();
  Expected<void> result;
  uint64_t offset = 0;
  for (bool in_hole = true; result && offset < entry.stat->size_bytes; in_hole = !in_hole) {
    const auto next =
        volume.lseek(*fd, static_cast<int64_t>(offset), in_hole ? SEEK_DATA : SEEK_HOLE);
    if (!next && next.error().code == ENXIO) break;
    if (!next) result = next.error();
    if (next) offset = *next;
  }
  tree.close(*fd);
  return result;
}

/// Tells of everything that a walk leaves out, and of files that cannot be read for damage, but not
/// of what GoFS does not support.
void walk_volume(Session& session, Volume& volume) {
  host::Tree tree(host::any_of(volume));
  host::WalkVisitor visitor;
  visitor.error = [&](const Error& error) {
    if (error.code != EOPNOTSUPP) report(session, error.message);
  };
  visitor.entry = [&](const host::TreeEntry& entry) {
    if (!entry.stat || entry.entry.type != format::kTypeRegular) return;
    const auto gone = go_through(volume, tree, entry);
    if (!gone) visitor.error(gone.error());
  };
  const auto root = tree.find("/", false);
  if (!root) return visitor.error(root.error());
  tree.walk(*root, {.recursive = true, .link_targets = true, .xattrs = true}, visitor);
}

/// Walks through the volume. What keeps GoFS from mounting it: damage, of which fsck.f2fs knows
/// more, or that GoFS does not support it, which fsck.f2fs may. Everything else ends the command.
std::optional<Error> refusal_of(Session& session) {
  auto mounted = Volume::mount(session.volume, {.backend = "cpu", .read_only = true});
  if (mounted) {
    walk_volume(session, *mounted);
    return std::nullopt;
  }
  const Error& error = mounted.error();
  if (error.code != EUCLEAN && error.code != EOPNOTSUPP) throw Failure{error.message};
  return error;
}

/// fsck.f2fs may exit with 0 and yet have found something; then it says so in a line such as these.
bool is_complaint(const std::string& line) {
  static const std::regex kComplaint(
      R"(\[ASSERT\]|\[FIX\]|\[Fail\]|Invalid|Error|Wrong|unreachable|Mismatch)", std::regex::icase);
  static const std::regex kHarmless(R"(\[Ok\.\.\]|Info: )");
  return std::regex_search(line, kComplaint) && !std::regex_search(line, kHarmless);
}

}  // namespace

void run_check(Session& session, const CheckOptions& options) {
  refuse_socket(session);
  refuse_output_onto_volume(session);
  const std::string path = path_of_volume(session.volume);
  const std::optional<Error> refusal = refusal_of(session);
  const auto program = find_program("fsck.f2fs");
  if (!program) throw Failure{"fsck.f2fs: not installed (Debian package f2fs-tools)"};
  const std::string operand = path.starts_with('-') ? "./" + path : path;  // no option
  const ProgramResult result = run_program({*program, "--dry-run", operand});
  std::vector<std::string> complaints;
  for (const std::string& line : lines_of(result.output)) {
    if (is_complaint(line)) complaints.push_back(line);
  }
  if (options.verbose) print(result.output);
  if (result.exit_status == 0 && complaints.empty()) {
    if (refusal && refusal->code == EUCLEAN) return report(session, refusal->message);
    if (!options.verbose && session.exit_status == 0)
      print(fmt::format("{}: fsck.f2fs finds nothing wrong\n", escaped(path)));
    return;
  }
  constexpr size_t kLinesMax = 20;
  if (!options.verbose) {
    for (size_t i = 0; i < complaints.size() && i < kLinesMax; ++i) {
      print(escaped(complaints[i]) + "\n");
    }
    if (complaints.size() > kLinesMax) {
      print(fmt::format("... and {} lines more (--verbose)\n", complaints.size() - kLinesMax));
    }
    flush_output();
  }
  if (refusal && refusal->code == EOPNOTSUPP) {
    // It may lack the same, and then knows nothing of damage.
    report(session, refusal->message);
    return report(session, fmt::format("{}: fsck.f2fs does not accept the volume (exit status {})",
                                       path, result.exit_status));
  }
  report(session, fmt::format("{}: fsck.f2fs finds the volume damaged (exit status {})", path,
                              result.exit_status));
}

}  // namespace gofs::cli
