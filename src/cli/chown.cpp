// SPDX-License-Identifier: Apache-2.0
//
// gofs chown VOL OWNER[:GROUP] PATH...: numbers, or names that this machine knows.
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <charconv>

#include "cli/changes.h"
#include "cli/commands.h"

namespace gofs::cli {
namespace {

std::optional<uint32_t> number_of(const std::string& text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number != kKeepId ? std::optional<uint32_t>(number) : std::nullopt;
}

std::optional<uint32_t> user_of(const std::string& text) {
  if (const auto number = number_of(text)) return number;
  const passwd* const user = ::getpwnam(text.c_str());
  return user == nullptr ? std::nullopt : std::optional<uint32_t>(user->pw_uid);
}

std::optional<uint32_t> group_of(const std::string& text) {
  if (const auto number = number_of(text)) return number;
  const group* const one = ::getgrnam(text.c_str());
  return one == nullptr ? std::nullopt : std::optional<uint32_t>(one->gr_gid);
}

}  // namespace

std::optional<Owner> parse_owner(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string user = text.substr(0, colon);
  const std::string group = colon == text.size() ? "" : text.substr(colon + 1);
  if (user.empty() && group.empty()) return std::nullopt;
  const auto uid = user.empty() ? kKeepId : user_of(user);
  const auto gid = group.empty() ? kKeepId : group_of(group);
  if (!uid || !gid) return std::nullopt;
  return Owner{*uid, *gid};
}

void run_chown(Session& session, const ChownOptions& options) {
  const Owner owner = parse_owner(options.owner).value();
  change_paths(session, options.change, [&, owner](Volume& volume, host::Tree& tree) -> Change {
    return [&options, &volume, &tree, owner](const ChangeTarget& target) {
      if (target.met != nullptr) {
        return tree.change(*target.met,
                           {.verb = request::Verb::kChown, .uid = owner.uid, .gid = owner.gid});
      }
      const bool keep_link = options.no_dereference || options.change.recursive;
      return keep_link ? volume.lchown(target.path, owner.uid, owner.gid)
                       : volume.chown(target.path, owner.uid, owner.gid);
    };
  });
}

}  // namespace gofs::cli
