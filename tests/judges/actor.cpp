// SPDX-License-Identifier: Apache-2.0
#include "actor.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "simt/workers.h"

namespace gofs::judges {

/// Makes the call, lets the model make it (which may depend on the answer), and notes both.
int64_t Actor::act(const std::string& what, OperationKind kind, const Call& call,
                   const Expect& expect) {
  LoggedOperation operation{what, kind, session_.moment(), 0};
  const int64_t answer = call();
  const int64_t wanted = expect(answer);
  operation.ended = session_.moment();
  if (answer != wanted) {
    throw std::runtime_error(
        fmt::format("{} answers {}{}{} instead of {}", what, answer, answer < 0 ? " " : "",
                    answer < 0 ? std::strerror(static_cast<int>(-answer)) : "", wanted));
  }
  const std::set<uint32_t> touched = model_.take_touched();
  const std::string problem = observe(session_, model_, touched);
  if (!problem.empty()) throw std::runtime_error(what + ": " + problem);
  if (history_ != nullptr) history_->add(operation, model_, touched);
  return answer;
}

bool Actor::act_if_room(const std::string& what, const Call& call, const Call& expect) {
  return act(what, OperationKind::kAtOnce, call,
             [&](int64_t answer) { return answer == -ENOSPC ? answer : expect(); }) == 0;
}

int Actor::open(const std::string& path, uint32_t flags, uint32_t mode) {
  uint32_t id = 0;
  const bool empties = (flags & vfs::kOpenTruncate) != 0;
  const auto answer = act(
      fmt::format("open {} {:o}", path, flags),
      empties ? OperationKind::kGradual : OperationKind::kAtOnce,
      [&] { return session_.open(path, flags, mode); },
      [&](int64_t fd) {
        const int error = model_.open(path, flags, mode, id);
        return error < 0 ? error : fd;
      });
  const int fd = static_cast<int>(answer);
  files_[fd] = {id, flags};
  return fd;
}

void Actor::close(int fd) {
  files_.erase(fd);
  if (session_.close(fd) != 0) throw std::runtime_error("close failed");
}

uint64_t Actor::pwrite(int fd, uint64_t offset, std::string_view bytes) {
  const OpenFile& file = files_.at(fd);
  if ((file.flags & vfs::kOpenAppend) != 0) offset = model_.at(file.id).content.size();
  const bool one_block = offset / kBlockBytes == (offset + bytes.size() - 1) / kBlockBytes;
  const auto answer = act(
      fmt::format("write {} +{}", offset, bytes.size()),
      one_block ? OperationKind::kAtOnce : OperationKind::kGradual,
      [&] { return session_.pwrite(fd, bytes, offset); },
      [&](int64_t written) -> int64_t {
        if (written == -ENOSPC) return written;
        const bool some = written > 0 && static_cast<uint64_t>(written) <= bytes.size();
        if (!some) return static_cast<int64_t>(bytes.size());
        model_.write(file.id, offset, bytes.substr(0, static_cast<size_t>(written)));
        return written;
      });
  return answer < 0 ? 0 : static_cast<uint64_t>(answer);
}

void Actor::ftruncate(int fd, uint64_t size) {
  act(
      fmt::format("ftruncate to {}", size), OperationKind::kGradual,
      [&] { return session_.ftruncate(fd, size); },
      [&](int64_t) {
        model_.resize(files_.at(fd).id, size);
        return 0;
      });
}

void Actor::truncate(const std::string& path, uint64_t size) {
  act(
      fmt::format("truncate {} to {}", path, size), OperationKind::kGradual,
      [&] { return session_.truncate(path, size); },
      [&](int64_t) { return model_.truncate(path, size); });
}

bool Actor::mkdir(const std::string& path, uint32_t mode) {
  return act_if_room(
      "mkdir " + path, [&] { return session_.mkdir(path, mode); },
      [&] { return model_.mkdir(path, mode); });
}

bool Actor::create(const std::string& path, uint32_t mode) {
  return mknod(path, format::kModeRegular | mode);
}

bool Actor::mknod(const std::string& path, uint32_t mode, uint32_t major, uint32_t minor) {
  return act_if_room(
      "mknod " + path, [&] { return session_.mknod(path, mode, major, minor); },
      [&] { return model_.mknod(path, mode, major, minor); });
}

bool Actor::symlink(const std::string& target, const std::string& path) {
  return act_if_room(
      "symlink " + path, [&] { return session_.symlink(target, path); },
      [&] { return model_.symlink(target, path); });
}

bool Actor::link(const std::string& existing, const std::string& path) {
  return act_if_room(
      "link " + existing + " " + path, [&] { return session_.link(existing, path); },
      [&] { return model_.link(existing, path); });
}

void Actor::unlink(const std::string& path) {
  act(
      "unlink " + path, OperationKind::kAtOnce, [&] { return session_.unlink(path); },
      [&](int64_t) { return model_.unlink(path); });
}

void Actor::rmdir(const std::string& path) {
  act(
      "rmdir " + path, OperationKind::kAtOnce, [&] { return session_.rmdir(path); },
      [&](int64_t) { return model_.rmdir(path); });
}

void Actor::rename(const std::string& from, const std::string& to, uint32_t flags) {
  act(
      "rename " + from + " " + to, OperationKind::kAtOnce,
      [&] { return session_.rename(from, to, flags); },
      [&](int64_t) { return model_.rename(from, to, flags); });
}

void Actor::chmod(const std::string& path, uint32_t mode) {
  act(
      fmt::format("chmod {} {:o}", path, mode), OperationKind::kAtOnce,
      [&] { return session_.chmod(path, mode); },
      [&](int64_t) { return model_.chmod(path, mode); });
}

void Actor::chown(const std::string& path, uint32_t uid, uint32_t gid) {
  act(
      fmt::format("chown {} {}:{}", path, uid, gid), OperationKind::kAtOnce,
      [&] { return session_.chown(path, uid, gid); },
      [&](int64_t) { return model_.chown(path, uid, gid); });
}

void Actor::utimens(const std::string& path, const f2fs::TimeStamp& accessed,
                    const f2fs::TimeStamp& modified) {
  act(
      "utimens " + path, OperationKind::kAtOnce,
      [&] { return session_.utimens(path, accessed, modified); },
      [&](int64_t) { return model_.utimens(path, accessed, modified); });
}

void Actor::setxattr(const std::string& path, const std::string& name, const std::string& value,
                     uint32_t flags) {
  act(
      "setxattr " + path + " " + name, OperationKind::kAtOnce,
      [&] { return session_.setxattr(path, name, value, flags); },
      [&](int64_t) { return model_.setxattr(path, name, value, flags); });
}

void Actor::removexattr(const std::string& path, const std::string& name) {
  act(
      "removexattr " + path + " " + name, OperationKind::kAtOnce,
      [&] { return session_.removexattr(path, name); },
      [&](int64_t) { return model_.removexattr(path, name); });
}

void Actor::sync() {
  act(
      "sync", OperationKind::kMakesSafe, [&] { return session_.sync(); },
      [](int64_t) { return 0; });
}

void Actor::put(const std::string& path, std::string_view bytes) {
  const int fd = open(path, vfs::kOpenWriteOnly | vfs::kOpenCreate | vfs::kOpenExclusive);
  pwrite(fd, 0, bytes);
  close(fd);
}

void Actor::together(const std::string& what, uint32_t teams,
                     const std::function<void(uint32_t team)>& work,
                     const std::function<void()>& note) {
  act(
      what, OperationKind::kGradual,
      [&] {
        simt::run_workers(teams, [&](const simt::Warp&, uint32_t team) { work(team); });
        return 0;
      },
      [&](int64_t) {
        note();
        return 0;
      });
}

std::string Actor::bytes(size_t count) {
  std::string made(count, '\0');
  ++stamp_;
  for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
    const uint64_t word = random_() ^ stamp_;
    std::memcpy(made.data() + i, &word, std::min(sizeof(word), count - i));
  }
  return made;
}

}  // namespace gofs::judges
