// SPDX-License-Identifier: Apache-2.0
#include "aftermath.h"

#include <fmt/format.h>

#include <cerrno>

namespace gofs::judges {

namespace {

constexpr const char* kAfterwards = "/made after the crash";
constexpr const char* kSyncedAfterwards = "/synced after the crash";

/// What an earlier mount of the image has made may be there.
void set_aside_what_we_made(FoundTree& tree) {
  FoundObject& root = tree.objects.at(tree.root);
  for (const char* path : {kAfterwards, kSyncedAfterwards}) {
    const auto entry = root.entries.find(path + 1);
    if (entry == root.entries.end()) continue;
    if (path == kAfterwards) --root.stat.links;
    tree.objects.erase(entry->second);
    root.entries.erase(entry);
    tree.root_has_its_times = false;
  }
}

/// A file that is made durable right after the mount, where the nodes go that were lost.
int sync_something(Session& session) {
  const int fd = session.open(kSyncedAfterwards, vfs::kOpenReadWrite | vfs::kOpenCreate);
  if (fd < 0) return fd == -ENOSPC ? 0 : fd;
  for (uint32_t i = 0; i < 2; ++i) {
    const int64_t written = session.pwrite(fd, std::string(5000, 'a'), i * 3000);
    int error = written < 0 ? static_cast<int>(written) : session.fsync(fd);
    if (error < 0 && error != -ENOSPC) return error;
  }
  return session.close(fd);
}

}  // namespace

std::string look_at(Session& session, const Compare& compare) {
  FoundTree tree;
  std::string problem = read_tree(session, "/", tree);
  if (problem.empty()) set_aside_what_we_made(tree);
  if (problem.empty()) problem = compare(tree);
  const std::string damage = session.damage();
  if (problem.empty() && !damage.empty()) problem = "damage was found: " + damage;
  return problem;
}

int make_something(Session& session) {
  const int made = session.mkdir(kAfterwards, 0700);
  return made == -ENOSPC || made == -EEXIST ? 0 : made;
}

std::string go_on(Session& session, bool syncs) {
  const int synced = syncs ? sync_something(session) : 0;
  if (synced != 0) return fmt::format("fsync afterwards answers {}", synced);
  const int made = make_something(session);
  if (made != 0) return fmt::format("mkdir afterwards answers {}", made);
  const int left = session.unmount();
  return left == 0 ? std::string() : fmt::format("unmounting answers {}", left);
}

std::string mount_and_look(Disks& disks, const SessionOptions& options, const Compare& compare,
                           bool syncs, ssd::WriteTrace* trace) {
  Session session(disks, options);
  std::string problem;
  if (session.mounted() != 0 || session.begun().error != 0) {
    problem =
        fmt::format("it cannot be written to: error {}, problem {}, error {}", session.mounted(),
                    static_cast<int>(session.begun().problem), session.begun().error);
  }
  if (problem.empty()) problem = look_at(session, compare);
  if (problem.empty()) problem = go_on(session, syncs);
  (void)session.unmount();
  if (trace != nullptr) *trace = session.trace();
  return problem;
}

}  // namespace gofs::judges
