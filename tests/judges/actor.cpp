// SPDX-License-Identifier: Apache-2.0
#include "actor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "simt/workers.h"
#include "vfs/fallocate.h"

namespace gofs::judges {

namespace {

/// A file of more is made without its contents by batch_create: they need more addresses than an
/// inode has.
constexpr size_t kBytesWithoutNodes = 873 * size_t{kBlockBytes};

std::vector<BatchItem> batch_items(const std::vector<std::string>& names,
                                   const std::vector<std::string>& contents) {
  std::vector<BatchItem> items;
  for (size_t i = 0; i < names.size(); ++i) items.push_back({names[i], contents[i], 0});
  return items;
}

/// The first error of them, or what the whole batch has answered.
int answer_of(int answer, const std::vector<BatchItem>& items) {
  for (const BatchItem& item : items) {
    if (answer == 0) answer = item.error;
  }
  return answer;
}

}  // namespace

/// Makes the call, lets the model make it (which may depend on the answer), and notes both.
int64_t Actor::act(const std::string& what, const Terms& terms, const Call& call,
                   const Expect& expect) {
  LoggedOperation operation{what, terms.kind,   session_.moment(),
                            0,    terms.synced, terms.synced_contents};
  const int64_t answer = call();
  const int64_t wanted = expect(answer);
  operation.ended = session_.moment();
  const bool failed = answer != wanted;
  if (failed && !(faults_ && (answer == -EIO || answer == -EROFS))) {
    throw std::runtime_error(
        fmt::format("{} answers {}{}{} instead of {}", what, answer, answer < 0 ? " " : "",
                    answer < 0 ? std::strerror(static_cast<int>(-answer)) : "", wanted));
  }
  const std::set<uint32_t> touched = model_.take_touched();
  std::string problem;
  if (failed) {
    operation.ended = kNeverEnded;
  } else {
    problem = observe(session_, model_, touched);
  }
  const bool hit = failed || (faults_ && problem.find(std::strerror(EIO)) != std::string::npos);
  if (!hit && !problem.empty()) throw std::runtime_error(what + ": " + problem);
  for (const uint32_t id : touched) {
    if (hit) model_.at(id).times_known = false;
  }
  if (hit && terms.times_go_first) operation.kind = OperationKind::kGradual;
  if (history_ != nullptr) history_->add(operation, model_, touched, terms.on_the_way);
  if (hit) throw Faulted(fmt::format("{}: {}", what, failed ? std::strerror(EIO) : problem));
  return answer;
}

bool Actor::act_if_room(const std::string& what, const Call& call, const Call& expect) {
  return act(what, {}, call,
             [&](int64_t answer) { return answer == -ENOSPC ? answer : expect(); }) == 0;
}

int Actor::open(const std::string& path, uint32_t flags, uint32_t mode) {
  uint32_t id = 0;
  const bool empties = (flags & vfs::kOpenTruncate) != 0;
  const auto answer = act(
      fmt::format("open {} {:o}", path, flags),
      {empties ? OperationKind::kGradual : OperationKind::kAtOnce},
      [&] { return session_.open(path, flags, mode); },
      [&](int64_t fd) {
        const int error = model_.open(path, flags, mode, id);
        return error < 0 ? error : std::max<int64_t>(fd, 0);
      });
  const int fd = static_cast<int>(answer);
  files_[fd] = {id, flags};
  return fd;
}

void Actor::close(int fd) {
  files_.erase(fd);
  const int answer = session_.close(fd);
  if (answer == -EIO && faults_) throw Faulted("close");
  if (answer != 0) throw std::runtime_error("close failed");
}

/// Those of a write.
Actor::Terms Actor::terms_of_writing(const OpenFile& file, OperationKind kind) {
  Terms terms{kind};
  terms.times_go_first = true;
  if ((file.flags & vfs::kOpenSync) == vfs::kOpenSync) {
    terms.synced = {file.id};
  } else if ((file.flags & vfs::kOpenDataSync) != 0) {
    terms.synced_contents = {file.id};
  }
  return terms;
}

uint64_t Actor::pwrite(int fd, uint64_t offset, std::string_view bytes) {
  const OpenFile& file = files_.at(fd);
  if ((file.flags & vfs::kOpenAppend) != 0) offset = model_.at(file.id).content.size();
  const bool one_block = offset / kBlockBytes == (offset + bytes.size() - 1) / kBlockBytes;
  const auto answer = act(
      fmt::format("write {} +{}", offset, bytes.size()),
      terms_of_writing(file, one_block ? OperationKind::kAtOnce : OperationKind::kGradual),
      [&] { return session_.pwrite(fd, bytes, offset); },
      [&](int64_t written) -> int64_t {
        if (written == -ENOSPC) return written;
        const bool some = written > 0 && static_cast<uint64_t>(written) <= bytes.size();
        const auto done = some ? static_cast<size_t>(written) : bytes.size();
        model_.write(file.id, offset, bytes.substr(0, done));
        return static_cast<int64_t>(done);
      });
  return answer < 0 ? 0 : static_cast<uint64_t>(answer);
}

int Actor::start_pwrite(int fd, uint64_t offset, std::string_view bytes) {
  const OpenFile& file = files_.at(fd);
  if ((file.flags & vfs::kOpenAppend) != 0) offset = model_.at(file.id).content.size();
  const auto started = act(
      fmt::format("start to write {} +{}", offset, bytes.size()), {},
      [&] { return session_.start_pwrite(fd, bytes, offset); },
      [](int64_t answer) { return std::max<int64_t>(answer, 0); });
  started_[static_cast<int>(started)] = {file, offset, std::string(bytes)};
  return static_cast<int>(started);
}

void Actor::wait(int started) {
  const StartedWrite write = started_.at(started);
  started_.erase(started);
  act(
      fmt::format("wait for {} +{}", write.offset, write.bytes.size()),
      terms_of_writing(write.file, OperationKind::kGradual), [&] { return session_.wait(started); },
      [&](int64_t) {
        model_.write(write.file.id, write.offset, write.bytes);
        return static_cast<int64_t>(write.bytes.size());
      });
}

void Actor::ftruncate(int fd, uint64_t size) {
  act(
      fmt::format("ftruncate to {}", size), {OperationKind::kGradual},
      [&] { return session_.ftruncate(fd, size); },
      [&](int64_t) {
        model_.resize(files_.at(fd).id, size);
        return 0;
      });
}

void Actor::truncate(const std::string& path, uint64_t size) {
  act(
      fmt::format("truncate {} to {}", path, size), {OperationKind::kGradual},
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
      "unlink " + path, {}, [&] { return session_.unlink(path); },
      [&](int64_t) { return model_.unlink(path); });
}

void Actor::rmdir(const std::string& path) {
  act(
      "rmdir " + path, {}, [&] { return session_.rmdir(path); },
      [&](int64_t) { return model_.rmdir(path); });
}

void Actor::rename(const std::string& from, const std::string& to, uint32_t flags) {
  act(
      "rename " + from + " " + to, {}, [&] { return session_.rename(from, to, flags); },
      [&](int64_t) { return model_.rename(from, to, flags); });
}

void Actor::chmod(const std::string& path, uint32_t mode) {
  act(
      fmt::format("chmod {} {:o}", path, mode), {}, [&] { return session_.chmod(path, mode); },
      [&](int64_t) { return model_.chmod(path, mode); });
}

void Actor::chown(const std::string& path, uint32_t uid, uint32_t gid) {
  act(
      fmt::format("chown {} {}:{}", path, uid, gid), {},
      [&] { return session_.chown(path, uid, gid); },
      [&](int64_t) { return model_.chown(path, uid, gid); });
}

void Actor::utimens(const std::string& path, const f2fs::TimeStamp& accessed,
                    const f2fs::TimeStamp& modified) {
  act(
      "utimens " + path, {}, [&] { return session_.utimens(path, accessed, modified); },
      [&](int64_t) { return model_.utimens(path, accessed, modified); });
}

void Actor::setxattr(const std::string& path, const std::string& name, const std::string& value,
                     uint32_t flags) {
  act(
      "setxattr " + path + " " + name, {},
      [&] { return session_.setxattr(path, name, value, flags); },
      [&](int64_t) { return model_.setxattr(path, name, value, flags); });
}

void Actor::removexattr(const std::string& path, const std::string& name) {
  act(
      "removexattr " + path + " " + name, {}, [&] { return session_.removexattr(path, name); },
      [&](int64_t) { return model_.removexattr(path, name); });
}

void Actor::sync() {
  act(
      "sync", {OperationKind::kMakesSafe}, [&] { return session_.sync(); },
      [](int64_t) { return 0; });
}

void Actor::fsync(int fd) {
  const uint32_t id = files_.at(fd).id;
  act(
      "fsync " + model_.path_of(id), {OperationKind::kAtOnce, {id}},
      [&] { return session_.fsync(fd); }, [](int64_t) { return 0; });
}

void Actor::fdatasync(int fd) {
  const uint32_t id = files_.at(fd).id;
  act(
      "fdatasync " + model_.path_of(id), {OperationKind::kAtOnce, {}, {id}},
      [&] { return session_.fdatasync(fd); }, [](int64_t) { return 0; });
}

void Actor::fsync_directory(const std::string& path) {
  act(
      "fsync " + path, {OperationKind::kMakesSafe},
      [&] {
        const int fd = session_.open(path, vfs::kOpenReadOnly | vfs::kOpenDirectory);
        if (fd < 0) return fd;
        const int answer = session_.fsync(fd);
        (void)session_.close(fd);
        return answer;
      },
      [](int64_t) { return 0; });
}

void Actor::fallocate(int fd, uint32_t mode, uint64_t offset, uint64_t bytes) {
  const uint32_t id = files_.at(fd).id;
  act(
      fmt::format("fallocate {:#x} {} +{}", mode, offset, bytes), {OperationKind::kGradual},
      [&] { return session_.fallocate(fd, mode, offset, bytes); },
      [&](int64_t answer) -> int64_t {
        if (answer == -ENOSPC) return answer;
        const uint64_t end = offset + bytes;
        uint64_t size = model_.at(id).content.size();
        const bool zeroes = (mode & (vfs::kFallocatePunchHole | vfs::kFallocateZeroRange)) != 0;
        if (zeroes && offset < size) {
          model_.write(id, offset, std::string(std::min(end, size) - offset, '\0'));
        }
        if ((mode & vfs::kFallocateKeepSize) == 0) size = std::max(size, end);
        model_.resize(id, size);
        return 0;
      });
}

void Actor::batch_create(const std::string& directory, const std::vector<std::string>& names,
                         const std::vector<std::string>& contents) {
  Terms terms{OperationKind::kGradual};
  act(
      fmt::format("batch_create {} files in {}", names.size(), directory), terms,
      [&] {
        std::vector<BatchItem> items = batch_items(names, contents);
        return answer_of(session_.create_batch(directory, 0644, items), items);
      },
      [&](int64_t) {
        for (size_t i = 0; i < names.size(); ++i) {
          uint32_t id = 0;
          const int error = model_.open(directory + "/" + names[i],
                                        vfs::kOpenCreate | vfs::kOpenExclusive, 0644, id);
          if (error < 0) return error;
          if (contents[i].size() > kBytesWithoutNodes) {
            terms.on_the_way.emplace_back(id, model_.at(id));
            terms.on_the_way.back().second.times_known = false;
          }
          model_.write(id, 0, contents[i]);
        }
        return 0;
      });
}

void Actor::batch_write(const std::string& directory, const std::vector<std::string>& names,
                        const std::vector<std::string>& contents) {
  act(
      fmt::format("batch_write {} files in {}", names.size(), directory), {OperationKind::kGradual},
      [&] {
        std::vector<BatchItem> items = batch_items(names, contents);
        return answer_of(session_.write_batch(directory, items), items);
      },
      [&](int64_t) {
        for (size_t i = 0; i < names.size(); ++i) {
          uint32_t id = 0;
          const int error = model_.resolve(directory + "/" + names[i], false, id);
          if (error < 0) return error;
          model_.write(id, 0, contents[i]);
        }
        return 0;
      });
}

void Actor::collect_garbage() {
  act(
      "collect_garbage", {OperationKind::kMakesSafe},
      [&] {
        // As host::VolumeState does it: rounds, and a checkpoint behind each.
        constexpr uint32_t kSegmentsARound = 4;
        int error = 0;
        uint32_t emptied = 1;
        for (uint32_t round = 0; error == 0 && emptied != 0 && round < 256; ++round) {
          error = session_.collect_garbage(kSegmentsARound, &emptied);
          if (error == 0) error = session_.sync();
        }
        return error;
      },
      [](int64_t) { return 0; });
}

void Actor::put(const std::string& path, std::string_view bytes) {
  const int fd = open(path, vfs::kOpenWriteOnly | vfs::kOpenCreate | vfs::kOpenExclusive);
  pwrite(fd, 0, bytes);
  close(fd);
}

void Actor::together(const std::string& what, uint32_t teams,
                     const std::function<void(uint32_t team)>& work,
                     const std::function<void()>& note, const std::vector<int>& synced) {
  const Terms terms{OperationKind::kGradual, synced_by(synced, false), synced_by(synced, true)};
  act(
      what, terms,
      [&] {
        simt::run_workers(teams, [&](const simt::Warp&, uint32_t team) { work(team); });
        return 0;
      },
      [&](int64_t) {
        note();
        return 0;
      });
}

/// Those of `fds` that are synced with their times, or but for these.
std::set<uint32_t> Actor::synced_by(const std::vector<int>& fds, bool contents) const {
  std::set<uint32_t> ids;
  for (const int fd : fds) {
    const OpenFile& file = files_.at(fd);
    if (contents == ((file.flags & vfs::kOpenSync) == vfs::kOpenDataSync)) ids.insert(file.id);
  }
  return ids;
}

void Actor::side_by_side(const std::string& what, uint32_t teams,
                         const std::function<int(uint32_t team)>& work,
                         const std::function<void(OnTheWay& on_the_way)>& note,
                         const Mixture& mixture, const std::vector<int>& synced) {
  Terms terms{OperationKind::kGradual, synced_by(synced, false), synced_by(synced, true)};
  std::set<uint32_t> mixed;
  act(
      what, terms,
      [&] {
        std::vector<int> answers(teams);
        simt::run_workers(teams,
                          [&](const simt::Warp&, uint32_t team) { answers[team] = work(team); });
        const auto failed =
            std::find_if(answers.begin(), answers.end(), [](int one) { return one != 0; });
        if (failed == answers.end()) return 0;
        // Of an SSD that is dead some hear that they have waited too long.
        return faults_ && *failed == -ETIMEDOUT ? -EIO : *failed;
      },
      [&](int64_t) {
        note(terms.on_the_way);
        mixed = model_.touched();
        for (const uint32_t id : mixed) {
          model_.at(id).unit_bytes = mixture.unit_bytes;
          model_.at(id).sizes = mixture.sizes;
        }
        for (auto& [id, object] : terms.on_the_way) {
          object.times_known = false;
          object.unit_bytes = mixture.unit_bytes;
        }
        return 0;
      });
  for (const uint32_t id : mixed) {
    model_.at(id).unit_bytes = Object().unit_bytes;
    model_.at(id).sizes = Sizes::kBetween;
  }
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
