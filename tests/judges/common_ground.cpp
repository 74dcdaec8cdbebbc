// SPDX-License-Identifier: Apache-2.0
#include "common_ground.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "walker.h"

namespace gofs::judges {

namespace {

constexpr const char* kHome = "/common";
constexpr const char* kBase = "/common/base";
constexpr const char* kLog = "/common/log";
constexpr size_t kLogRecordBytes[] = {64, 1, 300, 4000, 5000};

std::string name_of(uint32_t number) { return fmt::format("{}/name{}", kHome, number); }

void demand(bool condition, const std::string& what) {
  if (!condition) throw Difference(what);
}

}  // namespace

void CommonGround::make(Session& session) {
  demand(session.mkdir(kHome, 0777) == 0, "the common directory cannot be made");
  for (const char* path : {kBase, kLog}) {
    demand(session.mknod(path, format::kModeRegular | 0666, 0, 0) == 0, "it has no room");
  }
}

void CommonGround::step(Session& session, uint32_t thread, uint64_t luck) {
  switch (luck % 4) {
    case 0:
      return make_name(session, luck / 4);
    case 1:
      return make_link(session, thread);
    case 2:
      return append(session, thread, luck / 4);
    default:
      return look(session, luck / 4);
  }
}

/// Each kind of call that makes names; the kind goes by the number.
void CommonGround::make_name(Session& session, uint64_t luck) {
  const auto number = static_cast<uint32_t>(luck % kNames);
  const std::string path = name_of(number);
  const bool there = made_[number].load(std::memory_order_acquire) != 0;
  int answer = 0;
  if (number % 4 == 0) answer = session.mkdir(path, 0700);
  if (number % 4 == 1) answer = session.symlink("base", path);
  if (number % 4 == 2) answer = session.mknod(path, format::kModeFifo | 0600, 0, 0);
  if (number % 4 == 3) {
    const int fd =
        session.open(path, vfs::kOpenWriteOnly | vfs::kOpenCreate | vfs::kOpenExclusive, 0600);
    answer = fd < 0 ? fd : session.close(fd);
  }
  if (answer == 0) {
    const uint32_t before = made_[number].fetch_add(1, std::memory_order_acq_rel);
    demand(!there && before == 0, path + " was made twice");
  } else {
    demand(answer == -EEXIST || answer == -ENOSPC, fmt::format("{}: answer {}", path, answer));
  }
}

/// Of three, one stays, one gets another name, one goes again.
void CommonGround::make_link(Session& session, uint32_t thread) {
  if (links_.load(std::memory_order_relaxed) >= kLinksMost) return;
  const uint32_t number = links_.fetch_add(1, std::memory_order_relaxed);  // the caller's alone
  if (number >= kLinksMost) return;
  const std::string path = fmt::format("{}/link{}", kHome, number);
  const auto is_done = [&](const char* call, int answer, bool wants_room) {
    demand(answer == 0 || (answer == -ENOSPC && wants_room),
           fmt::format("thread {}: {} {} answers {}", thread, call, path, answer));
    return answer == 0;
  };
  if (!is_done("link", session.link(kBase, path), true)) return;
  Link state = Link::kFirstName;
  if (number % 3 == 1 && is_done("rename", session.rename(path, path + " renamed", 0), true)) {
    state = Link::kOtherName;
  }
  if (number % 3 == 2 && is_done("unlink", session.unlink(path), false)) state = Link::kNone;
  linked_[number] = state;
}

/// No two threads' begin alike.
std::string CommonGround::record(uint32_t thread, uint32_t number) const {
  std::string text = fmt::format("{} is the thread, number {} ", thread, number);
  text.resize(kLogRecordBytes[(thread + number) % std::size(kLogRecordBytes)],
              static_cast<char>('a' + (thread + number) % 26));
  return text;
}

void CommonGround::append(Session& session, uint32_t thread, uint64_t luck) {
  auto& records = records_[thread].bytes;
  const std::string text = record(thread, static_cast<uint32_t>(records.size()));
  const int fd = session.open(kLog, vfs::kOpenWriteOnly | vfs::kOpenAppend);
  demand(fd >= 0, fmt::format("{}: open answers {}", kLog, fd));
  const Scope scope = kScopes[luck % std::size(kScopes)];
  const int64_t written = luck / std::size(kScopes) % 2 == 0
                              ? session.write_by(scope, fd, text)
                              : session.pwrite_by(scope, fd, text, 0);
  demand(session.close(fd) == 0, "close fails");
  if (written == -ENOSPC) return;
  // What comes from one block of two may find room alone.
  demand(written > 0 && static_cast<size_t>(written) <= text.size(),
         fmt::format("{}: write of {} bytes answers {}", kLog, text.size(), written));
  records.push_back(static_cast<uint32_t>(written));
}

/// What was made before the look must be seen by it.
void CommonGround::look(Session& session, uint64_t luck) {
  const auto number = static_cast<uint32_t>(luck % kNames);
  if (luck / kNames % 16 != 0) {
    const bool there = made_[number].load(std::memory_order_acquire) != 0;
    vfs::Stat stat{};
    const int answer = session.stat(name_of(number), stat);
    demand(answer == 0 || (answer == -ENOENT && !there),
           fmt::format("{}: lstat answers {}", name_of(number), answer));
    return;
  }
  std::array<bool, kNames> there{};
  for (uint32_t i = 0; i < kNames; ++i) there[i] = made_[i].load(std::memory_order_acquire) != 0;
  Calls::Names names;
  const int answer = session.list(kHome, names);
  demand(answer == 0, fmt::format("{}: readdir answers {}", kHome, answer));
  for (uint32_t i = 0; i < kNames; ++i) {
    demand(!there[i] || names.count(fmt::format("name{}", i)) != 0,
           fmt::format("{} is not in the directory", name_of(i)));
  }
}

void CommonGround::check(Session& session) {
  Calls::Names names;
  demand(session.list(kHome, names) == 0, "the common directory cannot be read");
  uint32_t wanted = 2;
  vfs::Stat stat{};
  uint32_t directories = 0;
  for (uint32_t i = 0; i < kNames; ++i) {
    const bool there = made_[i].load() != 0;
    const auto found = names.find(fmt::format("name{}", i));
    demand(there == (found != names.end()), fmt::format("{} is there, or not", name_of(i)));
    wanted += there ? 1 : 0;
    directories += there && i % 4 == 0 ? 1 : 0;
  }
  demand(session.stat(kHome, stat) == 0 && stat.links == 2 + directories,
         fmt::format("{} has {} links, not {}", kHome, stat.links, 2 + directories));
  demand(session.stat(kBase, stat) == 0, "what has many names is lost");
  uint32_t links = 0;
  for (uint32_t i = 0; i < kLinksMost; ++i) {
    const Link state = linked_[i];
    if (state == Link::kNone) continue;
    ++links;
    const auto found =
        names.find(fmt::format("link{}{}", i, state == Link::kOtherName ? " renamed" : ""));
    demand(found != names.end() && found->second.first == stat.ino,
           fmt::format("{}/link{} is lost", kHome, i));
  }
  demand(stat.links == 1 + links,
         fmt::format("{} has {} links, not {}", kBase, stat.links, 1 + links));
  demand(names.size() == wanted + links, "there are names that nobody made");
  check_log(session);
}

/// Each thread's records are there, each once and in its order.
void CommonGround::check_log(Session& session) const {
  std::vector<uint32_t> next(records_.size(), 0);
  vfs::Stat stat{};
  demand(session.stat(kLog, stat) == 0, "the log is lost");
  std::string log(stat.size_bytes, '\0');
  const int fd = session.open(kLog, vfs::kOpenReadOnly);
  const int64_t got = session.pread(fd, log.data(), log.size(), 0);
  (void)session.close(fd);
  demand(got == static_cast<int64_t>(log.size()), "the log cannot be read");
  for (size_t at = 0; at < log.size();) {
    size_t bytes = 0;
    for (uint32_t thread = 0; thread < next.size() && bytes == 0; ++thread) {
      const std::vector<uint32_t>& all = records_[thread].bytes;
      if (next[thread] == all.size()) continue;
      const size_t wanted = all[next[thread]];
      if (log.compare(at, wanted, record(thread, next[thread]), 0, wanted) != 0) continue;
      bytes = wanted;
      ++next[thread];
    }
    demand(bytes != 0, fmt::format("{}: what is at byte {} is no record", kLog, at));
    at += bytes;
  }
  for (uint32_t thread = 0; thread < next.size(); ++thread) {
    demand(next[thread] == records_[thread].bytes.size(),
           fmt::format("{}: thread {} has {} records, not {}", kLog, thread, next[thread],
                       records_[thread].bytes.size()));
  }
}

}  // namespace gofs::judges
