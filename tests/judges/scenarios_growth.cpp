// SPDX-License-Identifier: Apache-2.0
//
// Scenarios about several writers that make one file longer at the same time, on a disk whose free
// blocks hold bytes of others.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "scenario.h"
#include "vfs/fallocate.h"

namespace gofs::judges {

namespace {

constexpr uint32_t kTeams = 3;

/// Whether all of a record becomes part of the log at once, also one that lies in several blocks
/// (docs/fault_model.md). Else a cut may leave the log at the end of a block.
constexpr bool kRecordsAreWhole = true;

/// What becomes durable while the teams write.
enum class Durable : uint8_t {
  kNothing,
  kByFsync,       // of one team now and then, and of each in the end
  kByCheckpoint,  // the same with sync
  kByOpen,        // each write: the files were opened with kOpenDataSync
};

/// What a team has written: when it was durable at the latest.
struct Done {
  int fd;
  uint64_t offset;
  std::string bytes;
  uint32_t since = kNeverEnded;
};

/// What all teams have done so far.
class Deeds {
 public:
  Deeds(Session& session, Durable durable) : session_(session), durable_(durable) {}

  void add(int fd, uint64_t offset, std::string_view bytes) {
    const uint32_t now = durable_ == Durable::kByOpen ? session_.moment() : kNeverEnded;
    const std::lock_guard lock(mutex_);
    done_.push_back({fd, offset, std::string(bytes), now});
  }

  /// By a team that has just written, which may be its last; 0 or a negative errno.
  int make_durable(uint32_t team, int fd, uint64_t number, bool last) {
    constexpr uint64_t kEvery = 3;
    const bool now = last || (team == 0 && number % kEvery == kEvery - 1);
    if (!now || durable_ == Durable::kNothing || durable_ == Durable::kByOpen) return 0;
    const size_t before = count();
    const int error = durable_ == Durable::kByFsync ? session_.fsync(fd)
                      : last                        ? 0
                                                    : session_.sync();
    if (error != 0 || (durable_ == Durable::kByCheckpoint && last)) return error;
    const uint32_t moment = session_.moment();
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < before; ++i) {
      const bool covered = durable_ == Durable::kByCheckpoint || done_[i].fd == fd;
      if (covered) done_[i].since = std::min(done_[i].since, moment);
    }
    return 0;
  }

  const std::vector<Done>& all() const { return done_; }
  void keep(Actor& actor) const {
    std::vector<KeptBytes> bytes;
    for (const Done& one : done_) {
      bytes.push_back(
          {actor.model().path_of(actor.id_of(one.fd)), one.offset, one.bytes, one.since});
    }
    actor.keep(bytes);
  }

 private:
  size_t count() {
    const std::lock_guard lock(mutex_);
    return done_.size();
  }

  Session& session_;
  const Durable durable_;
  std::mutex mutex_;
  std::vector<Done> done_;
};

/// Without zeros, so that what was written is told from a hole.
std::string solid_bytes(Actor& actor, size_t count) {
  std::string bytes = actor.bytes(count);
  std::replace(bytes.begin(), bytes.end(), '\0', '0');
  return bytes;
}

Scope some_scope(Actor& actor) { return kScopes[actor.below(std::size(kScopes))]; }

struct Piece {
  int fd;
  uint64_t offset;
  std::string bytes;
  Scope scope;
};

/// Pieces of such sizes, one behind the other; with holes of a block between them, to be filled in
/// later.
std::vector<Piece> pieces_of(Actor& actor, int fd, uint64_t offset,
                             const std::vector<uint64_t>& sizes, uint64_t gap = 0) {
  std::vector<Piece> pieces;
  for (const uint64_t size : sizes) {
    pieces.push_back({fd, offset, solid_bytes(actor, size), some_scope(actor)});
    offset += size + gap;
  }
  return pieces;
}

void shuffle(Actor& actor, std::vector<Piece>& pieces) {
  for (size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[actor.below(i)]);
}

/// Deals the pieces to the teams, which write them side by side.
void write_side_by_side(Actor& actor, const std::vector<Piece>& pieces, Durable durable,
                        uint32_t teams = kTeams) {
  Session& session = actor.session();
  Deeds deeds(session, durable);
  Actor::Mixture mixture;
  std::vector<int> fds;
  for (const Piece& one : pieces) {
    if (one.offset % kBlock != 0 || one.bytes.size() % kBlock != 0) mixture.unit_bytes = 1;
    if (std::find(fds.begin(), fds.end(), one.fd) == fds.end()) fds.push_back(one.fd);
  }
  // While it is made durable a file may come with a size whose last blocks are zeros.
  const bool synced = durable == Durable::kByFsync || durable == Durable::kByOpen;
  if (!synced) mixture.sizes = Sizes::kWritten;
  actor.side_by_side(
      fmt::format("{} teams write {} pieces", teams, pieces.size()), teams,
      [&](uint32_t team) {
        for (size_t i = team; i < pieces.size(); i += teams) {
          const Piece& one = pieces[i];
          const int64_t written = session.pwrite_by(one.scope, one.fd, one.bytes, one.offset);
          if (written > 0) {
            deeds.add(one.fd, one.offset, one.bytes.substr(0, static_cast<size_t>(written)));
          }
          if (written != static_cast<int64_t>(one.bytes.size())) {
            return written < 0 ? static_cast<int>(written) : -EIO;
          }
          const int error = deeds.make_durable(team, one.fd, i / teams, false);
          if (error != 0) return error;
        }
        int error = 0;
        for (const int fd : fds) {
          if (error == 0) error = deeds.make_durable(team, fd, 0, true);
        }
        return error;
      },
      [&](OnTheWay&) {
        for (const Piece& one : pieces) {
          actor.model().write(actor.id_of(one.fd), one.offset, one.bytes);
        }
        deeds.keep(actor);
      },
      mixture, synced ? fds : std::vector<int>{});
}

/// So that what is told of comes after a checkpoint of this mount.
int begin(Actor& actor, const char* path, uint32_t flags = 0) {
  actor.put("/beginning", "");
  actor.sync();
  return actor.open(path, kNewFile | flags);
}

std::vector<uint64_t> blocks(std::initializer_list<uint64_t> counts) {
  std::vector<uint64_t> sizes;
  for (const uint64_t count : counts) sizes.push_back(count * kBlock);
  return sizes;
}

/// From the inode on, and to where nodes begin.
void grow_in_order(Actor& actor, Durable durable, uint32_t flags = 0) {
  const int fd = begin(actor, "/file", flags);
  write_side_by_side(actor, pieces_of(actor, fd, 0, blocks({1, 1, 1, 2, 5, 1, 9, 2, 1, 1, 3, 1})),
                     durable);
  if (durable == Durable::kNothing) actor.sync();
  write_side_by_side(
      actor,
      pieces_of(actor, fd, (kDirectNode - 12) * kBlock, blocks({4, 2, 4, 1, 7, 1, 1, 12, 2})),
      durable);
  actor.close(fd);
}
void grow_in_order(Actor& actor) { grow_in_order(actor, Durable::kNothing); }
void fsync_grow_in_order(Actor& actor) { grow_in_order(actor, Durable::kByFsync); }
void sync_grow_in_order(Actor& actor) { grow_in_order(actor, Durable::kByCheckpoint); }
void datasync_grow_in_order(Actor& actor) {
  grow_in_order(actor, Durable::kByOpen, vfs::kOpenDataSync);
}

/// Holes are filled in later, side by side with more behind the end.
void grow_at_random(Actor& actor, Durable durable, uint32_t flags = 0) {
  const int fd = begin(actor, "/file", flags);
  std::vector<Piece> pieces =
      pieces_of(actor, fd, 5 * kBlock, blocks({1, 2, 1, 4, 1, 3, 1, 1, 2, 1, 6, 1}), kBlock);
  std::vector<Piece> fillings = pieces_of(actor, fd, 0, blocks({1, 1, 1, 1, 1}));
  for (size_t i = 0; i + 1 < pieces.size(); i += 2) {
    const uint64_t hole = pieces[i].offset + pieces[i].bytes.size();
    fillings.push_back({fd, hole, solid_bytes(actor, kBlock), some_scope(actor)});
  }
  for (Piece& more : pieces_of(actor, fd, (kDirectNode + 1015) * kBlock, blocks({2, 1, 4, 1}))) {
    fillings.push_back(std::move(more));
  }
  shuffle(actor, pieces);
  shuffle(actor, fillings);
  write_side_by_side(actor, pieces, durable);
  write_side_by_side(actor, fillings, durable);
  actor.close(fd);
}
void grow_at_random(Actor& actor) { grow_at_random(actor, Durable::kNothing); }
void fsync_grow_at_random(Actor& actor) { grow_at_random(actor, Durable::kByFsync); }
void sync_grow_at_random(Actor& actor) { grow_at_random(actor, Durable::kByCheckpoint); }
void datasync_grow_at_random(Actor& actor) {
  grow_at_random(actor, Durable::kByOpen, vfs::kOpenDataSync);
}

/// Blocks in which pieces of several teams meet.
void grow_by_parts_of_blocks(Actor& actor, Durable durable) {
  const int fd = begin(actor, "/file");
  std::vector<Piece> pieces =
      pieces_of(actor, fd, 0, {300, 2000, 5000, 700, 700, 9000, 300, 4096, 12000, 900, 900});
  write_side_by_side(actor, pieces, durable);
  const uint64_t end = pieces.back().offset + pieces.back().bytes.size();
  pieces = pieces_of(actor, fd, end, {300, 300, 6000, 1000, 1, 5000, 3000, 3000, 700}, 10);
  shuffle(actor, pieces);
  write_side_by_side(actor, pieces, durable);
  actor.close(fd);
}
void grow_by_parts_of_blocks(Actor& actor) { grow_by_parts_of_blocks(actor, Durable::kNothing); }
void fsync_grow_by_parts_of_blocks(Actor& actor) {
  grow_by_parts_of_blocks(actor, Durable::kByFsync);
}

/// Two grids at a time, in one file and then in two.
void grow_by_grids(Actor& actor) {
  const int fd = begin(actor, "/file");
  const int other = actor.open("/other", kNewFile);
  std::vector<Piece> pieces = pieces_of(actor, fd, 0, blocks({8, 40, 8, 8, 33, 3}));
  for (Piece& one : pieces) one.scope = Scope::kGrid;
  write_side_by_side(actor, pieces, Durable::kNothing, 2);
  actor.fsync(fd);
  pieces.clear();
  std::vector<Piece> beside = pieces_of(actor, fd, 100 * kBlock, blocks({9, 17, 5}));
  const std::vector<Piece> theirs = pieces_of(actor, other, 0, blocks({10, 4, 20}));
  for (size_t i = 0; i < beside.size(); ++i) {
    pieces.push_back(beside[i]);
    pieces.push_back(theirs[i]);
  }
  for (Piece& one : pieces) one.scope = Scope::kGrid;
  write_side_by_side(actor, pieces, Durable::kByFsync, 2);
  actor.close(fd);
  actor.close(other);
}

/// Behind an end that is moved before: by ftruncate, and by fallocate with and without its size.
void grow_into_what_is_reserved(Actor& actor) {
  const int truncated = begin(actor, "/truncated");
  const int allocated = actor.open("/allocated", kNewFile);
  const int reserved = actor.open("/reserved", kNewFile);
  actor.ftruncate(truncated, 30 * kBlock + 77);
  actor.fallocate(allocated, 0, 0, 20 * kBlock);
  actor.fallocate(reserved, vfs::kFallocateKeepSize, 0, 25 * kBlock);
  for (const Durable durable : {Durable::kByCheckpoint, Durable::kByFsync}) {
    const uint64_t first = durable == Durable::kByFsync ? 12 : 0;
    std::vector<Piece> pieces;
    for (const int fd : {truncated, allocated, reserved}) {
      for (Piece& one : pieces_of(actor, fd, first * kBlock, blocks({2, 1, 4, 1}), kBlock)) {
        pieces.push_back(std::move(one));
      }
    }
    shuffle(actor, pieces);
    write_side_by_side(actor, pieces, durable);
  }
  for (const int fd : {truncated, allocated, reserved}) actor.close(fd);
}

void many_pieces(Actor& actor) {
  const int fd = begin(actor, "/file");
  for (const uint64_t first : {uint64_t{0}, kDirectNode - 20, kIndirectNode - 20}) {
    std::vector<Piece> pieces;
    for (uint64_t i = 0; i < 24; ++i) {
      pieces.push_back(
          {fd, (first + 2 * i) * kBlock, solid_bytes(actor, 2 * kBlock), some_scope(actor)});
    }
    shuffle(actor, pieces);
    write_side_by_side(actor, pieces, Durable::kByFsync, 4);
    // Pages are needed by others, too.
    for (uint32_t i = 0; i < 20; ++i) {
      actor.create(numbered(first == 0 ? "/a" : first < kIndirectNode - 20 ? "/b" : "/c", i));
    }
  }
  actor.close(fd);
}

/// Teams append records to one log, each through its own descriptor.
class Log {
 public:
  Log(Actor& actor, uint32_t flags) : actor_(actor) {
    for (int& fd : fds_) fd = actor.open("/log", kNewFile | vfs::kOpenAppend | flags);
  }

  void append(const std::vector<uint64_t>& sizes, Durable durable) {
    Session& session = actor_.session();
    std::vector<std::pair<std::string, Scope>> records[kTeams];
    for (auto& mine : records) {
      for (const uint64_t size : sizes) {
        mine.emplace_back(solid_bytes(actor_, size), some_scope(actor_));
      }
    }
    Deeds deeds(session, durable);
    std::vector<std::string> failed(kTeams);
    const bool synced = durable == Durable::kByFsync || durable == Durable::kByOpen;
    const Actor::Mixture mixture{0, Sizes::kTheirs};
    actor_.side_by_side(
        fmt::format("{} teams append {} records each", kTeams, sizes.size()), kTeams,
        [&](uint32_t team) {
          const int fd = fds_[team];
          uint64_t number = 0;
          for (const auto& [record, scope] : records[team]) {
            const int64_t written = session.write_by(scope, fd, record);
            // The position is behind what was written, wherever that went.
            const int64_t end = session.lseek(fd, 0, vfs::kSeekCurrent);
            if (written > 0) {
              deeds.add(fd, static_cast<uint64_t>(end - written),
                        record.substr(0, static_cast<size_t>(written)));
            }
            if (written != static_cast<int64_t>(record.size())) {
              failed[team] = record;
              return written < 0 ? static_cast<int>(written) : -EIO;
            }
            const int error = deeds.make_durable(team, fd, number++, false);
            if (error != 0) return error;
          }
          return deeds.make_durable(team, fd, 0, true);
        },
        [&](OnTheWay& on_the_way) { note(deeds, failed, on_the_way); }, mixture,
        synced ? std::vector<int>{fds_[0]} : std::vector<int>{});
  }

  void fsync() { actor_.fsync(fds_[0]); }
  void close() {
    for (const int fd : fds_) actor_.close(fd);
  }

 private:
  /// The log is one record behind the other, and was each beginning of that; before one that failed
  /// was taken back, some blocks of it were there.
  void note(const Deeds& deeds, const std::vector<std::string>& failed, OnTheWay& on_the_way) {
    const uint32_t id = actor_.id_of(fds_[0]);
    std::vector<Done> done = deeds.all();
    std::sort(done.begin(), done.end(),
              [](const Done& a, const Done& b) { return a.offset < b.offset; });
    const auto was = [&](const std::string& record, uint64_t size) {
      Object object = actor_.model().at(id);
      const uint64_t end = object.content.size();
      object.content.write(end, std::string_view(record).substr(0, size - end));
      on_the_way.emplace_back(id, std::move(object));
    };
    const auto was_in_part = [&](const std::string& record) {
      const uint64_t from = actor_.model().at(id).content.size();
      for (uint64_t at = (from / kBlock + 1) * kBlock; at < from + record.size(); at += kBlock) {
        if (!kRecordsAreWhole) was(record, at);
      }
    };
    for (const Done& one : done) {
      if (one.offset != actor_.model().at(id).content.size()) {
        throw std::runtime_error(fmt::format("a record at {}, behind {} bytes", one.offset,
                                             actor_.model().at(id).content.size()));
      }
      for (const std::string& other : failed) was_in_part(other);
      was_in_part(one.bytes);
      actor_.model().write(id, one.offset, one.bytes);
      on_the_way.emplace_back(id, actor_.model().at(id));
    }
    for (const std::string& other : failed) was_in_part(other);
    deeds.keep(actor_);
  }

  Actor& actor_;
  int fds_[kTeams];
};

void append_records_of(Actor& actor, Durable durable, uint32_t flags,
                       const std::vector<uint64_t>& sizes) {
  actor.close(begin(actor, "/log"));
  Log log(actor, flags);
  log.append(sizes, durable);
  if (durable == Durable::kNothing) log.fsync();
  log.append(sizes, durable);
  log.close();
}

const std::vector<uint64_t> kMixedRecords = {300, 1, 4000, 300, 5000, 1, 5000, 300};
const std::vector<uint64_t> kSmallRecords = {300, 300, 1,   300, 300, 300,
                                             1,   300, 300, 300, 300, 300};

void append_mixed_records(Actor& actor) {
  append_records_of(actor, Durable::kNothing, 0, kMixedRecords);
}
void append_small_records(Actor& actor) {
  append_records_of(actor, Durable::kByCheckpoint, 0, kSmallRecords);
}
void sync_append_mixed_records(Actor& actor) {
  append_records_of(actor, Durable::kByCheckpoint, 0, kMixedRecords);
}
void fsync_append_mixed_records(Actor& actor) {
  append_records_of(actor, Durable::kByFsync, 0, kMixedRecords);
}
void fsync_append_small_records(Actor& actor) {
  append_records_of(actor, Durable::kByFsync, 0, kSmallRecords);
}
void datasync_append_mixed_records(Actor& actor) {
  append_records_of(actor, Durable::kByOpen, vfs::kOpenDataSync, kMixedRecords);
}

constexpr Scenario growth(const char* name, void (*run)(Actor&), uint32_t cache_pages = 512,
                          bool meets_faults = true) {
  return {.name = name,
          .run = run,
          .cache_pages = cache_pages,
          .repeatable = false,
          .meets_faults = meets_faults,
          .old_bytes = true};
}

constexpr Scenario kGrowth[] = {
    growth("grow_in_order", grow_in_order),
    growth("grow_in_order_fsync", fsync_grow_in_order),
    growth("grow_in_order_sync", sync_grow_in_order),
    growth("grow_in_order_datasync", datasync_grow_in_order),
    growth("grow_at_random", grow_at_random),
    growth("grow_at_random_fsync", fsync_grow_at_random),
    growth("grow_at_random_sync", sync_grow_at_random),
    growth("grow_at_random_datasync", datasync_grow_at_random),
    growth("grow_by_parts_of_blocks", grow_by_parts_of_blocks),
    growth("grow_by_parts_of_blocks_fsync", fsync_grow_by_parts_of_blocks),
    growth("grow_by_grids", grow_by_grids),
    growth("grow_into_what_is_reserved", grow_into_what_is_reserved),
    growth("grow_in_little_memory", many_pieces, 64),
    growth("append_mixed_records", append_mixed_records),
    growth("append_small_records", append_small_records),
    growth("append_mixed_records_sync", sync_append_mixed_records),
    growth("append_mixed_records_fsync", fsync_append_mixed_records),
    growth("append_small_records_fsync", fsync_append_small_records),
    // A record that was written, and could not be made durable, has failed and is there.
    growth("append_mixed_records_datasync", datasync_append_mixed_records, 512, false),
};

}  // namespace

std::span<const Scenario> growth_scenarios() { return kGrowth; }

}  // namespace gofs::judges
