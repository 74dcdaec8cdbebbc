// SPDX-License-Identifier: Apache-2.0
//
// Large calls by each scope, and several writers of one file at once.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "merged_records.h"
#include "serve/kernel_data.h"
#include "simt/workers.h"
#include "walker.h"

namespace gofs::judges {

namespace {

constexpr uint64_t kLargeBytes = 300 * uint64_t{kBlockBytes};
/// Where files end that are made longer here: small volumes would be full else.
constexpr uint64_t kGroupFileBytes = 500 * uint64_t{kBlockBytes};
constexpr uint32_t kWritersMost = 4;
constexpr uint64_t kPieceBytes = serve::detail::kPieceBytesMin;

/// What one of several writers does to its part of a file, which none of the others touches.
struct SharedPart {
  enum class Kind : uint8_t { kWrite, kAllocate, kPunch, kZero };
  uint64_t offset;
  std::string data;
  Kind kind;
  Scope scope;
  int64_t result = 0;

  uint32_t mode() const {
    if (kind == Kind::kPunch) return vfs::kFallocatePunchHole | vfs::kFallocateKeepSize;
    return kind == Kind::kZero ? uint32_t{vfs::kFallocateZeroRange} : 0u;
  }
};

struct Record {
  std::string data;
  Scope scope;
  bool at_position;
  int64_t result = 0;
};

/// Bytes of an answer to a write of so many; `full`, if there was no room for some.
uint64_t written_of(int64_t result, uint64_t wanted, bool& full) {
  if (result == -ENOSPC) full = true;
  if (result == -ENOSPC || result < 0) return result == -ENOSPC ? 0 : wanted;
  full = full || static_cast<uint64_t>(result) < wanted;
  return std::min(static_cast<uint64_t>(result), wanted);
}

/// The sum of what was done, or the first error of another kind.
int64_t sum_of(const std::vector<int64_t>& results) {
  int64_t sum = 0;
  for (const int64_t one : results) {
    if (one < 0 && one != -ENOSPC) return one;
    sum += std::max<int64_t>(one, 0);
  }
  return sum;
}

}  // namespace

void Walker::write_by_scope() {
  OpenFile* const file = some_open();
  if (file == nullptr) return;
  const uint64_t size = model_.at(file->id).content.size();
  const bool append = (file->flags & vfs::kOpenAppend) != 0;
  const bool at_position = one_in(3);
  uint64_t offset = at_position ? file->position : some_offset(size);
  if (append) offset = size;
  const uint64_t count = 1 + below(one_in(4) ? kLargeBytes : 40 * uint64_t{kBlockBytes});
  const bool far = offset > kLargeBytes * 100;  // costs nodes, and no more
  if (!far && offset + count > kGroupFileBytes) return;
  if (!at_position && !append && one_in(2)) offset -= offset % kBlockBytes;
  const Scope scope = one_of(kScopes);
  const std::string data = bytes(far ? std::min<uint64_t>(count, 50'000) : count);
  const bool in_any_order =
      has_later_rounds(scope) && !(gofs_->is_served() && (at_position || append));
  const bool may = vfs::may_write(file->flags) && (file->flags & vfs::kOpenPath) == 0;
  const int64_t written = both(
      fmt::format("{} by a {}, {} bytes at {} of {}", at_position ? "write" : "pwrite",
                  name_of(scope), data.size(), offset, model_.path_of(file->id)),
      [&] {
        const int64_t answer = at_position ? gofs_->write_by(scope, file->fd, data)
                                           : gofs_->pwrite_by(scope, file->fd, data, offset);
        if (answer == -ENOSPC) {
          if (who_.uid != 0) calls_->become({});  // the path may be closed to others
          if (in_any_order) take_later_rounds(file->id, offset, data, 0, size);
          if (who_.uid != 0) calls_->become(who_);
        }
        return answer;
      },
      [&](int64_t answer) -> int64_t {
        if (!may) return -EBADF;
        bool full = false;
        const uint64_t done = written_of(answer, data.size(), full);
        if (full) ++full_;
        model_.write(file->id, offset, std::string_view(data).substr(0, done));
        if (full && in_any_order) take_later_rounds(file->id, offset, data, done, size);
        return static_cast<int64_t>(done);
      });
  if (!at_position || !may) return;
  if (!append) {
    // A client's calls each move it past what they ask for, until one finds no room.
    const uint64_t part = gofs_->kernel_part_bytes();
    const auto done = static_cast<uint64_t>(std::max<int64_t>(written, 0));
    file->position += done >= data.size()
                          ? data.size()
                          : std::min<uint64_t>(data.size(), (done / part + 1) * part);
  }
  if (append && written > 0) file->position = offset + static_cast<uint64_t>(written);
}

/// A write that finds no room may have cleared the set-ID bits of the file, which come first.
void Walker::take_lost_setid(uint32_t id) {
  constexpr uint32_t kPowers = 06000;
  Object& object = model_.at(id);
  const auto open = std::find_if(files_.begin(), files_.end(),
                                 [id](const OpenFile& file) { return file.id == id; });
  vfs::Stat stat{};
  if (open == files_.end() || calls_->stat({open->fd, id}, stat) != 0) return;
  if ((stat.mode & ~object.mode) == 0 && (stat.mode | kPowers) == (object.mode | kPowers)) {
    object.mode = stat.mode;
  }
}

/// Whether several warps have shares of a write at an offset, which are written in any order.
bool Walker::has_later_rounds(Scope scope) const {
  return scope == Scope::kGrid || (scope == Scope::kBlock && gofs_->is_served());
}

/// Of a group's write that found no room behind `done` bytes, other warps may have written later
/// blocks that the file had: what they wrote is there, wholly, or what was there before. Of the
/// block in which the file ended at `old_end`, what lay in the file may have been written, and what
/// came behind taken back. Warps of a client make calls of their own, of pieces, and each may have
/// made the file longer.
void Walker::take_later_rounds(uint32_t id, uint64_t offset, std::string_view data, uint64_t done,
                               uint64_t old_end) {
  const Content before = model_.at(id).content;
  const bool in_pieces = gofs_->is_served();
  const uint64_t end =
      in_pieces ? offset + data.size() : std::min<uint64_t>(offset + data.size(), before.size());
  if (offset + done >= end) return;
  int reader = -1;
  const bool named = !model_.at(id).names.empty();
  if (named) reader = calls_->open(model_.path_of(id), vfs::kOpenReadOnly);
  for (const OpenFile& file : files_) {
    const bool reads = vfs::may_read(file.flags) && (file.flags & vfs::kOpenPath) == 0;
    if (!named && file.id == id && reads) reader = file.fd;
  }
  if (reader < 0) return;  // what it holds is not seen any more
  for (uint64_t at = offset + done; at < end;) {
    uint64_t next = std::min(end, (at / kBlockBytes + 1) * kBlockBytes);
    if (at < old_end) next = std::min(next, old_end);
    if (in_pieces) next = std::min(next, offset + ((at - offset) / kPieceBytes + 1) * kPieceBytes);
    std::string found(next - at, '\xee');
    const int64_t got = calls_->pread(reader, found.data(), found.size(), at);
    if (in_pieces) found.resize(static_cast<size_t>(std::max<int64_t>(got, 0)));
    if (found.empty()) break;
    std::string old = before.read(at, found.size());
    old.resize(found.size(), '\0');
    if (found == data.substr(at - offset, found.size())) {
      model_.write(id, at, found);
    } else if (found != old) {
      differ(
          fmt::format("{} bytes at {} are neither a group's nor what was there", found.size(), at));
    }
    at = next;
  }
  if (named) (void)calls_->close(reader);
}

void Walker::read_by_scope() {
  const OpenFile* const file = some_open();
  if (file == nullptr) return;
  const Scope scope = one_of(kScopes);
  const uint64_t offset = some_offset(model_.at(file->id).content.size());
  std::string buffer(below(one_in(4) ? kLargeBytes : 40 * uint64_t{kBlockBytes}), '\xee');
  compare_read(fmt::format("pread by a {}, {} bytes at {} of {}", name_of(scope), buffer.size(),
                           offset, model_.path_of(file->id)),
               *file, offset, buffer, [&] {
                 return gofs_->pread_by(scope, file->fd, buffer.data(), buffer.size(), offset);
               });
}

/// Some writers of one file, each of other bytes of it, most of them behind its end: in order or
/// not, with holes between them, blocks that two of them share, and ranges that are allocated,
/// zeroed or punched. In whatever order they come, the file is the same.
void Walker::write_side_by_side() {
  const OpenFile* const file = some_open();
  if (file == nullptr || (file->flags & vfs::kOpenAppend) != 0) return;
  const uint64_t size = model_.at(file->id).content.size();
  const bool whole_blocks = one_in(2);
  const bool with_holes = one_in(2);
  const bool allocates = one_in(3);
  std::vector<SharedPart> pieces;
  uint64_t offset = one_in(3) ? below(size + 1) : size + (one_in(3) ? below(20'000) : 0);
  if (whole_blocks) offset = (offset + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  const uint64_t longest = one_in(4) ? 60 : one_in(2) ? 9 : 2;
  for (const uint64_t count = 2 + below(16); pieces.size() < count;) {
    uint64_t length = 1 + below(longest * kBlockBytes);
    if (whole_blocks) length = (1 + below(longest)) * kBlockBytes;
    if (offset + length > kGroupFileBytes) break;
    const auto kind = allocates && one_in(4) ? static_cast<SharedPart::Kind>(1 + below(3))
                                             : SharedPart::Kind::kWrite;
    pieces.push_back({offset, bytes(length), kind, one_of(kScopes)});
    offset += length;
    if (with_holes && one_in(2)) offset += (1 + below(3)) * kBlockBytes;
  }
  if (pieces.empty()) return;
  if (one_in(2)) std::shuffle(pieces.begin(), pieces.end(), random_);
  const auto writers = static_cast<uint32_t>(2 + below(kWritersMost - 1));

  const bool may = vfs::may_write(file->flags) && (file->flags & vfs::kOpenPath) == 0;
  std::string words;
  for (const SharedPart& one : pieces) {
    words += fmt::format(" {}{}+{}", one.kind == SharedPart::Kind::kWrite ? "" : "(allocated) ",
                         one.offset, one.data.size());
  }
  both(
      fmt::format("{} writers side by side of {} bytes in {}:{}", writers, size,
                  model_.path_of(file->id), words),
      [&] {
        simt::run_workers(writers, [&](const simt::Warp&, uint32_t writer) {
          gofs_->become(who_);
          for (size_t i = writer; i < pieces.size(); i += writers) {
            SharedPart& one = pieces[i];
            one.result = one.kind == SharedPart::Kind::kWrite
                             ? gofs_->pwrite_by(one.scope, file->fd, one.data, one.offset)
                             : gofs_->fallocate(file->fd, one.mode(), one.offset, one.data.size());
          }
        });
        std::vector<int64_t> results;
        for (const SharedPart& one : pieces) results.push_back(one.result);
        return sum_of(results);
      },
      [&](int64_t) -> int64_t {
        if (!may) return -EBADF;
        bool full = false;
        int64_t sum = 0;
        for (const SharedPart& one : pieces) {
          if (one.kind != SharedPart::Kind::kWrite) {
            full = full || one.result == -ENOSPC;
            if (one.result == -ENOSPC) continue;
            model_.allocate(file->id, one.mode(), one.offset, one.data.size());
            continue;
          }
          const uint64_t done = written_of(one.result, one.data.size(), full);
          model_.write(file->id, one.offset, std::string_view(one.data).substr(0, done));
          sum += static_cast<int64_t>(done);
        }
        // Where one of the others has made the file longer first, a grid has written in its middle.
        for (const SharedPart& one : pieces) {
          if (one.kind != SharedPart::Kind::kWrite || !has_later_rounds(one.scope)) continue;
          bool ignored = false;
          take_later_rounds(file->id, one.offset, one.data,
                            written_of(one.result, one.data.size(), ignored), size);
        }
        if (full) {
          ++full_;
          model_.forget_times();
          take_lost_setid(file->id);
        }
        return sum;
      });
  if (one_in(4)) check();
}

/// Some writers of one log, each with records of his own, and a reader: what it once saw stays.
void Walker::append_side_by_side() {
  OpenFile* file = nullptr;
  for (OpenFile& one : files_) {
    const bool named = !model_.at(one.id).names.empty();
    if ((one.flags & vfs::kOpenAppend) != 0 && named) file = &one;
  }
  if (file == nullptr) return open();
  const uint64_t before = model_.at(file->id).content.size();
  if (before > kGroupFileBytes) return;
  constexpr size_t kSizes[] = {1, 300, 300, 4000, 5000};
  const bool mixed = one_in(2);
  const size_t one_size = one_of(kSizes);
  std::vector<std::vector<Record>> writers(2 + below(kWritersMost - 1));
  for (auto& records : writers) {
    for (uint64_t left = 1 + below(8); left != 0; --left) {
      std::string data = bytes(mixed ? one_of(kSizes) : one_size);
      data[0] = static_cast<char>('A' + (&records - writers.data()));
      records.push_back({std::move(data), one_of(kScopes), one_in(2)});
    }
  }
  const bool may = vfs::may_write(file->flags) && (file->flags & vfs::kOpenPath) == 0;
  const bool reads = vfs::may_read(file->flags) && one_in(2);
  std::vector<SeenPart> seen;
  both(
      fmt::format("{} writers append to {} bytes of {}", writers.size(), before,
                  model_.path_of(file->id)),
      [&] {
        const auto count = static_cast<uint32_t>(writers.size());
        simt::run_workers(count + (reads ? 1 : 0), [&](const simt::Warp&, uint32_t writer) {
          gofs_->become(who_);
          if (writer == count) return read_beside(*file, before, seen);
          for (Record& one : writers[writer]) {
            one.result = one.at_position ? gofs_->write_by(one.scope, file->fd, one.data)
                                         : gofs_->pwrite_by(one.scope, file->fd, one.data, 0);
          }
        });
        std::vector<int64_t> results;
        for (const auto& records : writers) {
          for (const Record& one : records) results.push_back(one.result);
        }
        return sum_of(results);
      },
      [&](int64_t) -> int64_t {
        if (!may) return -EBADF;
        bool full = false;
        WritersRecords wanted;
        uint64_t sum = 0;
        for (const auto& records : writers) {
          wanted.emplace_back();
          for (const Record& one : records) {
            const uint64_t done = written_of(one.result, one.data.size(), full);
            sum += done;
            if (done != 0) wanted.back().push_back(one.data.substr(0, done));
          }
        }
        const std::string path = model_.path_of(file->id);
        std::string log(sum + 1, '\xee');
        const int reader = calls_->open(path, vfs::kOpenReadOnly);
        const int64_t got = calls_->pread(reader, log.data(), log.size(), before);
        (void)calls_->close(reader);
        if (got != static_cast<int64_t>(sum)) {
          differ(fmt::format("{}: {} bytes behind {} are {}", path, sum, before, words_of(got)));
        }
        log.resize(sum);
        if (!record_ends(wanted, log)) {
          differ(fmt::format("{}: behind {} are not the records, each whole and in order", path,
                             before));
        }
        model_.write(file->id, before, log);
        if (full) {
          ++full_;
          model_.forget_times();
          take_lost_setid(file->id);
        }
        return static_cast<int64_t>(sum);
      });
  for (const SeenPart& one : seen) {
    if (model_.at(file->id).content.read(one.offset, one.data.size()) != one.data) {
      differ(fmt::format("{} bytes at {} were others when they were read beside", one.data.size(),
                         one.offset));
    }
  }
  // Whose record the position is behind is not known.
  if ((file->flags & vfs::kOpenPath) != 0) return;
  const int64_t back = calls_->lseek(file->fd, 0, vfs::kSeekSet);
  if (back != 0) differ("lseek answers " + words_of(back));
  file->position = 0;
}

void Walker::read_beside(const OpenFile& file, uint64_t from, std::vector<SeenPart>& seen) const {
  constexpr uint64_t kReads = 8;
  for (uint64_t i = 0; i < kReads; ++i) {
    SeenPart one{from - std::min<uint64_t>(from, i * 1000), std::string(20'000, '\xee')};
    const int64_t got = gofs_->pread_by(kScopes[i % std::size(kScopes)], file.fd, one.data.data(),
                                        one.data.size(), one.offset);
    one.data.resize(got < 0 ? 0 : static_cast<size_t>(got));
    seen.push_back(std::move(one));
  }
}

}  // namespace gofs::judges
