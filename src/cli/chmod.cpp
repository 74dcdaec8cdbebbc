// SPDX-License-Identifier: Apache-2.0
//
// gofs chmod VOL MODE PATH...: MODE is octal, or as chmod(1) has it: u+rwx,go-w,a=rX,+t.
#include <fmt/format.h>

#include <string_view>

#include "cli/changes.h"
#include "cli/commands.h"
#include "format/node.h"

namespace gofs::cli {
namespace {

constexpr uint32_t kAllClasses = 07;  // one bit each: others, group, user

/// rwx of the classes in `classes`, from one set of rwx.
uint32_t spread(uint32_t bits, uint32_t classes) {
  uint32_t mode = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    if ((classes >> i & 1) != 0) mode |= bits << 3 * i;
  }
  return mode;
}

/// The letters r, w, x, X, s and t at the head of `text`, which is left with the rest.
uint32_t take_permissions(std::string_view& text, uint32_t classes, bool executable) {
  uint32_t mode = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    switch (text.front()) {
      case 'r':
        mode |= spread(4, classes);
        break;
      case 'w':
        mode |= spread(2, classes);
        break;
      case 'x':
        mode |= spread(1, classes);
        break;
      case 'X':
        if (executable) mode |= spread(1, classes);
        break;
      case 's':
        mode |= ((classes & 4) != 0 ? 04000u : 0) | ((classes & 2) != 0 ? 02000u : 0);
        break;
      case 't':
        mode |= 01000;
        break;
      default:
        return mode;
    }
  }
  return mode;
}

uint32_t take_classes(std::string_view& text) {
  uint32_t classes = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    const size_t found = std::string_view("ogu").find(text.front());
    if (found != std::string_view::npos) {
      classes |= 1u << found;
    } else if (text.front() == 'a') {
      classes |= kAllClasses;
    } else {
      break;
    }
  }
  return classes;
}

/// Applies one clause such as "go-w" or "u=rw+x".
bool apply_clause(std::string_view clause, bool directory, uint32_t& mode) {
  const uint32_t named = take_classes(clause);
  const uint32_t classes = named == 0 ? kAllClasses : named;
  if (clause.empty()) return false;
  while (!clause.empty()) {
    const char operation = clause.front();
    clause.remove_prefix(1);
    const uint32_t bits = take_permissions(clause, classes, directory || (mode & 0111) != 0);
    if (operation == '+') {
      mode |= bits;
    } else if (operation == '-') {
      mode &= ~bits;
    } else if (operation == '=') {
      const uint32_t special = ((classes & 4) != 0 ? 04000u : 0) |
                               ((classes & 2) != 0 ? 02000u : 0) | (named == 0 ? 01000u : 0);
      mode = (mode & ~(spread(7, classes) | (directory ? 0 : special))) | bits;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<uint32_t> changed_mode(const std::string& text, uint32_t mode, bool directory) {
  if (!text.empty() && text.find_first_not_of("01234567") == std::string::npos) {
    if (text.size() > 5) return std::nullopt;
    const auto octal = static_cast<uint32_t>(std::stoul(text, nullptr, 8));
    return octal <= format::kModePermissionMask ? std::optional<uint32_t>(octal) : std::nullopt;
  }
  uint32_t changed = mode & format::kModePermissionMask;
  std::string_view rest = text;
  for (;;) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (!apply_clause(rest.substr(0, comma), directory, changed)) return std::nullopt;
    if (comma == rest.size()) return changed;
    rest.remove_prefix(comma + 1);
  }
}

void run_chmod(Session& session, const ChmodOptions& options) {
  change_paths(session, options.change, [&](Volume& volume, host::Tree& tree) -> Change {
    return [&](const ChangeTarget& target) -> Expected<void> {
      uint32_t now = target.stat.mode;
      if ((now & format::kModeTypeMask) == format::kModeSymlink) {
        // Links that a walk meets have no mode of their own; a path that is given is followed.
        if (target.met != nullptr) return {};
        const auto followed = volume.stat(target.path);
        if (!followed) return followed.error();
        now = followed->mode;
      }
      const bool directory = (now & format::kModeTypeMask) == format::kModeDirectory;
      const uint32_t mode = changed_mode(options.mode, now, directory).value();
      if (target.met == nullptr) return volume.chmod(target.path, mode);
      return tree.change(*target.met, {.verb = request::Verb::kChmod, .mode = mode});
    };
  });
}

}  // namespace gofs::cli
