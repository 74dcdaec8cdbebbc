// SPDX-License-Identifier: Apache-2.0
#include "aftermath.h"

#include <fmt/format.h>

#include <cerrno>

namespace gofs::judges {

namespace {

constexpr const char* kAfterwards = "/made after the crash";

/// What an earlier mount of the image has made may be there.
void set_aside_what_we_made(FoundTree& tree) {
  FoundObject& root = tree.objects.at(tree.root);
  const auto entry = root.entries.find(kAfterwards + 1);
  if (entry == root.entries.end()) return;
  tree.objects.erase(entry->second);
  root.entries.erase(entry);
  --root.stat.links;
  tree.root_has_its_times = false;
}

}  // namespace

std::string look_at(Session& session, const Compare& compare) {
  FoundTree tree;
  std::string problem = read_tree(session, "/", tree);
  if (problem.empty()) set_aside_what_we_made(tree);
  if (problem.empty()) problem = compare(tree);
  if (problem.empty() && session.findings() != 0) problem = "damage was found";
  return problem;
}

int make_something(Session& session) {
  const int made = session.mkdir(kAfterwards, 0700);
  return made == -ENOSPC || made == -EEXIST ? 0 : made;
}

std::string go_on(Session& session) {
  const int made = make_something(session);
  if (made != 0) return fmt::format("mkdir afterwards answers {}", made);
  const int left = session.unmount();
  return left == 0 ? std::string() : fmt::format("unmounting answers {}", left);
}

std::string mount_and_look(testing::ImageFile& disk, const SessionOptions& options,
                           const Compare& compare, ssd::WriteTrace* trace) {
  Session session(disk.data(), disk.bytes(), options);
  std::string problem;
  if (session.mounted() != 0 || session.begun().error != 0) {
    problem =
        fmt::format("it cannot be written to: error {}, problem {}, error {}", session.mounted(),
                    static_cast<int>(session.begun().problem), session.begun().error);
  }
  if (problem.empty()) problem = look_at(session, compare);
  if (problem.empty()) problem = go_on(session);
  (void)session.unmount();
  if (trace != nullptr) *trace = session.trace();
  return problem;
}

}  // namespace gofs::judges
