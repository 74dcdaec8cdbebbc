// SPDX-License-Identifier: Apache-2.0
//
// Calls on open files, and on what files hold.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "access_list.h"
#include "walker.h"

namespace gofs::judges {

namespace {

constexpr size_t kOpenMax = 5;
constexpr uint64_t kFileBytesMost = 60 * uint64_t{kBlockBytes};

/// Whether a file has nothing but zeros from `from` to `to`.
bool is_zero(const Content& content, uint64_t from, uint64_t to) {
  const auto first = content.blocks().lower_bound(from / kBlockBytes);
  for (auto it = first; it != content.blocks().end() && it->first * kBlockBytes < to; ++it) {
    const uint64_t begin = std::max(from, it->first * kBlockBytes);
    const uint64_t end = std::min(to, (it->first + 1) * kBlockBytes);
    const std::string bytes = content.read(begin, end - begin);
    if (bytes.find_first_not_of('\0') != std::string::npos) return false;
  }
  return true;
}

/// Whether one of that name found no room, and may have been there for a while.
bool was_removed(const std::vector<BatchItem>& items, const std::string& name) {
  return std::any_of(items.begin(), items.end(), [&](const BatchItem& one) {
    return one.error == -ENOSPC && one.name == name;
  });
}

}  // namespace

uint64_t Walker::some_offset(uint64_t size) {
  switch (below(8)) {
    case 0:
      return size;
    case 1:
      return size + below(3 * kBlockBytes);
    case 2:
      return below(3500);
    case 3:
      return below(kFileBytesMost / kBlockBytes) * kBlockBytes;
    case 4:
      // Each level of the tree, but not too often: nodes take room.
      if (one_in(8)) {
        constexpr uint64_t kBlocks[] = {860,       1885,      2900,        1'040'000,
                                        2'080'000, 5'000'000, 900'000'000, 1'050'000'000};
        return (one_of(kBlocks) + below(60)) * kBlockBytes + below(5000);
      }
      return below(kFileBytesMost);
    default:
      return below(std::min(size, kFileBytesMost) + 1);
  }
}

void Walker::open() {
  if (files_.size() >= kOpenMax) close();
  constexpr uint32_t kAccess[] = {vfs::kOpenReadOnly, vfs::kOpenWriteOnly, vfs::kOpenReadWrite,
                                  vfs::kOpenReadWrite};
  uint32_t flags = one_of(kAccess);
  if (one_in(2)) flags |= vfs::kOpenCreate;
  if (one_in(6)) flags |= vfs::kOpenExclusive;
  if (one_in(4)) flags |= vfs::kOpenAppend;
  if (one_in(12)) flags |= vfs::kOpenNoFollow;
  if (one_in(16)) flags |= vfs::kOpenDirectory;
  if (one_in(8)) flags |= vfs::kOpenTruncate;
  if (one_in(20)) flags |= vfs::kOpenPath;
  if (one_in(40)) flags |= one_in(2) ? vfs::kOpenDataSync : vfs::kOpenSync;
  // As they are, so that it is plain what is open for what.
  if ((flags & vfs::kOpenPath) != 0) flags &= ~vfs::kOpenAccessMask;
  const bool creates = (flags & vfs::kOpenCreate) != 0;
  const std::string path =
      creates && one_in(2) ? new_path() : decorated(model_.path_of(pick([&](const Object& one) {
        return one.is_regular() || one_in(10);
      })));
  const uint32_t mode = some_mode();
  uint32_t id = 0;
  const int64_t fd = both(
      fmt::format("open {} {:o}", path, flags), [&] { return calls_->open(path, flags, mode); },
      [&](int64_t answer) {
        const int error = model_.open(path, flags, mode, id);
        return error < 0 ? error : std::max<int64_t>(answer, 0);
      });
  if (fd >= 0) files_.push_back({static_cast<int>(fd), id, flags, 0});
}

void Walker::close() {
  if (files_.empty()) return;
  const size_t which = below(files_.size());
  const int closed = calls_->close(files_[which].fd);
  if (closed != 0) throw Difference("close answers " + words_of(closed));
  const uint32_t id = files_[which].id;
  files_.erase(files_.begin() + static_cast<ptrdiff_t>(which));
  drop_if_gone(id);
}

Walker::OpenFile* Walker::some_open() {
  if (files_.empty()) open();
  return files_.empty() ? nullptr : &files_[below(files_.size())];
}

void Walker::write_to(OpenFile& file, Way way) {
  const bool at_position = way == Way::kAtPosition || way == Way::kPartsAtPosition;
  const uint64_t size = model_.at(file.id).content.size();
  const bool append = (file.flags & vfs::kOpenAppend) != 0;
  if (size > 4 * kFileBytesMost && append) return;
  // Up to the end of a block at the end of the file: the next one may be a whole block.
  const bool often = append || (size != 0 && size % kBlockBytes == 0);
  const bool to_boundary = size < 4 * kFileBytesMost && one_in(often ? 2 : 8);
  uint64_t offset = at_position ? file.position : some_offset(size);
  if (append || (to_boundary && !at_position)) offset = size;
  uint64_t length = one_in(3) ? below(64) : below(one_in(6) ? 80'000 : 9000);
  if (to_boundary) length = (one_in(3) ? 2 : 1) * kBlockBytes - offset % kBlockBytes;
  const std::string data = bytes(length);
  const bool may = vfs::may_write(file.flags) && (file.flags & vfs::kOpenPath) == 0;
  Calls::Buffers parts;
  for (std::string_view rest = data; !rest.empty();) {
    const size_t count = std::min(rest.size(), static_cast<size_t>(below(9000)));
    parts.push_back(rest.substr(0, count));
    rest.remove_prefix(count);
  }
  const int64_t written = both(
      fmt::format("{} {} bytes at {} of {}", at_position ? "write" : "pwrite", data.size(), offset,
                  model_.path_of(file.id)),
      [&]() -> int64_t {
        switch (way) {
          case Way::kAt:
            return calls_->pwrite(file.fd, data, offset);
          case Way::kAtPosition:
            return calls_->write(file.fd, data);
          case Way::kPartsAt:
            return calls_->pwritev(file.fd, parts, offset);
          default:
            return calls_->writev(file.fd, parts);
        }
      },
      [&](int64_t answer) -> int64_t {
        if (!may) return -EBADF;
        const bool some = answer > 0 && static_cast<uint64_t>(answer) < data.size();
        const uint64_t count = some ? static_cast<uint64_t>(answer) : data.size();
        if (some) ++full_;
        model_.write(file.id, offset, std::string_view(data).substr(0, count));
        return static_cast<int64_t>(count);
      });
  if (!at_position || !may || data.empty()) return;
  if (!append) file.position += way == Way::kAtPosition ? data.size() : moved_on(parts, written);
  if (append && written > 0) file.position = offset + static_cast<uint64_t>(written);
}

/// How far writev() moves the position that has written so many bytes: past all that was asked for,
/// also where there was no room. A client's kernels make calls of their own of parts that are more
/// than one takes, until one finds none.
uint64_t Walker::moved_on(const Calls::Buffers& parts, int64_t written) const {
  uint64_t asked = 0;
  for (const std::string_view part : parts) asked += part.size();
  const bool one_call = gofs_ == nullptr || asked <= gofs_->kernel_part_bytes();
  if (one_call || written >= static_cast<int64_t>(asked)) return asked;
  uint64_t tried = 0;
  for (const std::string_view part : parts) {
    tried += part.size();
    if (static_cast<int64_t>(tried) > std::max<int64_t>(written, 0)) break;
  }
  return tried;
}

void Walker::pwrite() {
  OpenFile* const file = some_open();
  if (file == nullptr) return;
  do {
    write_to(*file, Way::kAt);
  } while (one_in(2));
}

void Walker::write() {
  OpenFile* const file = some_open();
  if (file != nullptr && file->position < 4 * kFileBytesMost) write_to(*file, Way::kAtPosition);
}

/// Some writes of one file at once, each of other blocks, waited for in any order.
void Walker::pwrite_async() {
  OpenFile* const file = some_open();
  if (file == nullptr) return;
  struct Write {
    uint64_t offset;
    std::string data;
    int64_t result;
  };
  std::vector<Write> writes;
  const bool append = (file->flags & vfs::kOpenAppend) != 0;
  const uint64_t size = model_.at(file->id).content.size();
  if (append && size > 4 * kFileBytesMost) return;
  uint64_t offset = append ? size : some_offset(size);
  // Two that make the file longer would wait for each other.
  do {
    if (!append && one_in(2)) offset -= offset % kBlockBytes;
    const uint64_t count = one_in(2) ? (1 + below(9)) * kBlockBytes : 1 + below(40'000);
    writes.push_back({offset, bytes(count), 0});
    offset =
        (offset + count + kBlockBytes - 1) / kBlockBytes * kBlockBytes + below(3 * kBlockBytes);
  } while (offset < size && !append && !one_in(3));

  const bool may = vfs::may_write(file->flags) && (file->flags & vfs::kOpenPath) == 0;
  both(
      fmt::format("{} times pwrite_async from {} on of {}", writes.size(), writes[0].offset,
                  model_.path_of(file->id)),
      [&] {
        std::vector<Write*> started;
        for (Write& one : writes) {
          one.result = gofs_->start_pwrite(file->fd, one.data, one.offset);
          if (one.result >= 0) started.push_back(&one);
        }
        std::shuffle(started.begin(), started.end(), random_);
        for (Write* one : started) one->result = gofs_->wait(static_cast<int>(one->result));
        int64_t written = 0;
        for (const Write& one : writes) {
          if (one.result < 0 && one.result != -ENOSPC) return one.result;
          written += std::max<int64_t>(one.result, 0);
        }
        return written == 0 ? writes[0].result : written;
      },
      [&](int64_t answer) -> int64_t {
        if (!may) return -EBADF;
        bool full = false;
        int64_t written = 0;
        for (const Write& one : writes) {
          const auto wanted = static_cast<int64_t>(one.data.size());
          const bool has_room = one.result != -ENOSPC && (one.result <= 0 || one.result >= wanted);
          const int64_t count = has_room ? wanted : std::max<int64_t>(one.result, 0);
          full = full || !has_room;
          if (count == 0) continue;
          model_.write(file->id, one.offset, std::string_view(one.data).substr(0, count));
          written += count;
        }
        if (full) {
          ++full_;
          model_.forget_times();
        }
        return written == 0 ? answer : written;
      });
}

void Walker::pwritev() {
  if (OpenFile* const file = some_open()) write_to(*file, Way::kPartsAt);
}

void Walker::writev() {
  OpenFile* const file = some_open();
  if (file == nullptr || file->position >= 4 * kFileBytesMost) return;
  write_to(*file, Way::kPartsAtPosition);
}

/// Of what `call` puts into `buffer`, which has room for what was asked.
void Walker::compare_read(const std::string& what, const OpenFile& file, uint64_t offset,
                          const std::string& buffer, const Call& call) {
  const Object& object = model_.at(file.id);
  std::string wanted;
  const int64_t got = both(what, call, [&](int64_t) -> int64_t {
    if (!vfs::may_read(file.flags) || (file.flags & vfs::kOpenPath) != 0) return -EBADF;
    if (object.is_directory()) return -EISDIR;
    wanted = object.content.read(offset, buffer.size());
    return static_cast<int64_t>(wanted.size());
  });
  if (got < 0) return;
  const auto place = std::mismatch(wanted.begin(), wanted.end(), buffer.begin());
  if (place.first != wanted.end()) {
    differ(fmt::format("{}: byte {} is wrong", what,
                       offset + static_cast<uint64_t>(place.first - wanted.begin())));
  }
}

void Walker::pread() {
  const OpenFile* const file = some_open();
  if (file == nullptr) return;
  const uint64_t offset = some_offset(model_.at(file->id).content.size());
  std::string buffer(below(one_in(4) ? 100'000 : 6000), '\xee');
  compare_read(
      fmt::format("pread {} bytes at {} of {}", buffer.size(), offset, model_.path_of(file->id)),
      *file, offset, buffer,
      [&] { return calls_->pread(file->fd, buffer.data(), buffer.size(), offset); });
}

void Walker::read() {
  OpenFile* const file = some_open();
  if (file == nullptr) return;
  std::string buffer(below(one_in(4) ? 100'000 : 6000), '\xee');
  int64_t got = 0;
  compare_read(fmt::format("read {} bytes at {} of {}", buffer.size(), file->position,
                           model_.path_of(file->id)),
               *file, file->position, buffer, [&] {
                 got = calls_->read(file->fd, buffer.data(), buffer.size());
                 return got;
               });
  if (got > 0) file->position += static_cast<uint64_t>(got);
}

void Walker::lseek() {
  OpenFile* const file = some_open();
  if (file == nullptr || model_.at(file->id).is_directory()) return;
  const auto size = static_cast<int64_t>(model_.at(file->id).content.size());
  const int whence = one_in(40) ? 7 : static_cast<int>(below(3));
  const int64_t offset = static_cast<int64_t>(below(kFileBytesMost)) - (one_in(3) ? 20'000 : 0);
  const int64_t base = whence == vfs::kSeekSet       ? 0
                       : whence == vfs::kSeekCurrent ? static_cast<int64_t>(file->position)
                                                     : size;
  const int64_t answer = both(
      fmt::format("lseek {} {}", offset, whence),
      [&] { return calls_->lseek(file->fd, offset, whence); },
      [&](int64_t) {
        if ((file->flags & vfs::kOpenPath) != 0) return int64_t{-EBADF};
        const int64_t target = base + offset;
        const auto most = static_cast<int64_t>(f2fs::kFileBytesMax);
        const bool wrong = whence > vfs::kSeekEnd || target < 0;
        return wrong || (gofs_ != nullptr && target > most) ? int64_t{-EINVAL} : target;
      });
  if (answer >= 0) file->position = static_cast<uint64_t>(answer);
}

/// Where the next data or hole is nobody foresees, but what lies before it is known.
void Walker::seek_data() {
  OpenFile* const file = some_open();
  if (file == nullptr || model_.at(file->id).is_directory()) return;
  const Content& content = model_.at(file->id).content;
  const uint64_t offset = some_offset(content.size());
  const bool data = one_in(2);
  const int64_t answer = both(
      fmt::format("lseek to the {} from {} on of {}", data ? "data" : "hole", offset,
                  model_.path_of(file->id)),
      [&] {
        return calls_->lseek(file->fd, static_cast<int64_t>(offset),
                             data ? vfs::kSeekData : vfs::kSeekHole);
      },
      [&](int64_t got) -> int64_t {
        constexpr int64_t kWrong = -EILSEQ;
        if ((file->flags & vfs::kOpenPath) != 0) return -EBADF;
        if (offset >= content.size()) return -ENXIO;
        const auto found = static_cast<uint64_t>(got);
        if (data && got == -ENXIO) return is_zero(content, offset, content.size()) ? got : kWrong;
        if (got < 0 || found < offset || found > content.size()) return kWrong;
        if (data) return found < content.size() && is_zero(content, offset, found) ? got : kWrong;
        const uint64_t block_end = (found / kBlockBytes + 1) * kBlockBytes;
        return is_zero(content, found, block_end) ? got : kWrong;
      });
  if (answer >= 0) file->position = static_cast<uint64_t>(answer);
}

void Walker::ftruncate() {
  const OpenFile* const file = some_open();
  if (file == nullptr) return;
  const uint64_t size = some_offset(model_.at(file->id).content.size());
  both(
      fmt::format("ftruncate {} to {}", model_.path_of(file->id), size),
      [&] { return calls_->ftruncate(file->fd, size); },
      [&](int64_t) {
        if ((file->flags & vfs::kOpenPath) != 0) return -EBADF;
        if (!vfs::may_write(file->flags)) return -EINVAL;
        model_.resize(file->id, size);
        return 0;
      });
}

void Walker::truncate() {
  const std::string path = some_path();
  const uint64_t size = some_offset(20'000);
  both(
      fmt::format("truncate {} to {}", path, size), [&] { return calls_->truncate(path, size); },
      [&](int64_t) { return model_.truncate(path, size); });
}

void Walker::fallocate() {
  constexpr uint32_t kModes[] = {0,
                                 vfs::kFallocateKeepSize,
                                 vfs::kFallocatePunchHole | vfs::kFallocateKeepSize,
                                 vfs::kFallocatePunchHole | vfs::kFallocateKeepSize,
                                 vfs::kFallocateZeroRange,
                                 vfs::kFallocateZeroRange | vfs::kFallocateKeepSize,
                                 vfs::kFallocatePunchHole};
  const OpenFile* const file = some_open();
  if (file == nullptr) return;
  const uint32_t mode = one_of(kModes);
  const bool zeroes = (mode & vfs::kFallocateZeroRange) != 0;
  if (zeroes && gofs_ == nullptr) return;
  const uint64_t size = model_.at(file->id).content.size();
  const uint64_t offset = some_offset(size);
  uint64_t count = below(one_in(4) ? 200'000 : 20'000);
  const bool punches = (mode & vfs::kFallocatePunchHole) != 0;
  if (punches && one_in(4)) count = size + 1;
  if (offset + count > f2fs::kFileBytesMax - (uint64_t{1} << 33)) return;  // files reach less far
  both(
      fmt::format("fallocate {} mode {}, {} bytes at {}", model_.path_of(file->id), mode, count,
                  offset),
      [&] { return calls_->fallocate(file->fd, mode, offset, count); },
      [&](int64_t) {
        if ((file->flags & vfs::kOpenPath) != 0) return -EBADF;
        if (count == 0) return -EINVAL;
        if (mode == vfs::kFallocatePunchHole) return -EOPNOTSUPP;
        if (!vfs::may_write(file->flags)) return -EBADF;
        model_.allocate(file->id, mode, offset, count);
        return 0;
      });
}

void Walker::copy_range() {
  if (some_open() == nullptr) return;
  const OpenFile from = *some_open();
  const OpenFile to = *some_open();
  const uint64_t target_size = model_.at(to.id).content.size();
  if (target_size > 4 * kFileBytesMost) return;
  const uint64_t from_offset = some_offset(model_.at(from.id).content.size());
  const uint64_t to_offset = some_offset(target_size);
  const uint64_t count = below(one_in(4) ? 100'000 : 9000);
  both(
      fmt::format("copy_file_range of {} bytes from {} of {} to {} of {}", count, from_offset,
                  model_.path_of(from.id), to_offset, model_.path_of(to.id)),
      [&] { return calls_->copy_file_range(from.fd, from_offset, to.fd, to_offset, count); },
      [&](int64_t answer) -> int64_t {
        if (((from.flags | to.flags) & vfs::kOpenPath) != 0) return -EBADF;
        const Object& source = model_.at(from.id);
        const Object& target = model_.at(to.id);
        if (source.is_directory() || target.is_directory()) return -EISDIR;
        const bool appends = (to.flags & vfs::kOpenAppend) != 0;
        if (!vfs::may_read(from.flags) || !vfs::may_write(to.flags) || appends) return -EBADF;
        const std::string data = source.content.read(from_offset, count);
        const bool overlaps = from.id == to.id && to_offset + data.size() > from_offset &&
                              to_offset < from_offset + data.size();
        if (overlaps) return -EINVAL;
        const bool some = answer > 0 && static_cast<uint64_t>(answer) < data.size();
        const uint64_t copied = some ? static_cast<uint64_t>(answer) : data.size();
        if (some) ++full_;
        if (copied != 0) {
          model_.write(to.id, to_offset, std::string_view(data).substr(0, copied));
        }
        return static_cast<int64_t>(copied);
      });
}

void Walker::fsync() {
  const OpenFile* const file = some_open();
  if (file == nullptr) return;
  const bool contents = one_in(2);
  both((contents ? "fdatasync " : "fsync ") + model_.path_of(file->id),
       [&] { return contents ? calls_->fdatasync(file->fd) : calls_->fsync(file->fd); },
       [&](int64_t) { return (file->flags & vfs::kOpenPath) != 0 ? -EBADF : 0; });
}

void Walker::sync() {
  both(
      "sync", [&] { return calls_->sync(); }, [](int64_t) { return 0; });
}

/// Of `bytes` that found no room, those that are at the beginning of a file: its rounds come one
/// after the other. 0, or a negative errno: there is none.
int Walker::part_written(const std::string& path, const std::string& bytes, std::string& part) {
  part.assign(bytes.size(), '\0');
  const int fd = calls_->open(path, vfs::kOpenReadOnly);
  if (fd < 0) return fd;
  const int64_t read = calls_->pread(fd, part.data(), part.size(), 0);
  (void)calls_->close(fd);
  part.resize(read < 0 ? 0 : static_cast<size_t>(read));
  const auto same = std::mismatch(part.begin(), part.end(), bytes.begin());
  auto count = static_cast<size_t>(same.first - part.begin());
  if (count < bytes.size()) count -= count % kBlockBytes;
  part.resize(count);
  return 0;
}

void Walker::create_batch() {
  const std::string directory = one_in(12) ? some_path() : decorated(some_directory());
  const uint32_t mode = some_mode();
  std::vector<BatchItem> items(model_.objects().size() > 350 ? 1 : 1 + below(10));
  for (BatchItem& item : items) {
    item.name = std::to_string(below(one_in(3) ? 30 : 1'000'000));
    if (one_in(12)) item.name += std::string(below(256), 'n');
    if (one_in(40)) item.name = one_in(2) ? ".." : "a/b";
    if (one_in(60)) item.name.clear();
    item.bytes = bytes(one_in(3) ? below(64) : below(one_in(8) ? 80'000 : 9000));
  }
  both(
      fmt::format("batch_create of {} files in {}", items.size(), directory),
      [&] { return gofs_->create_batch(directory, mode, items); },
      [&](int64_t answer) -> int64_t {
        uint32_t parent = 0;
        const int error = model_.check_directory(directory, parent);
        if (error < 0 || answer < 0) return error;
        // Of several with one name any may be the one that is made.
        const auto others_made = [&](const std::string& name) {
          return std::any_of(items.begin(), items.end(), [&](const BatchItem& other) {
            return other.error == 0 && other.name == name;
          });
        };
        for (const BatchItem& item : items) {
          std::string bytes = item.bytes;
          // Where lists are inherited, files are made first and written then.
          const bool in_part =
              item.error == -ENOSPC && !item.name.empty() && !others_made(item.name) &&
              model_.at(parent).entries.count(item.name) == 0 &&
              part_written(model_.path_of(parent) + "/" + item.name, item.bytes, bytes) == 0;
          // Those of a client's kernels are then removed again.
          const bool may_stay =
              !gofs_->is_served() && model_.at(parent).xattrs.count(kDefaultList) != 0;
          if (in_part && !may_stay) return -EILSEQ;
          if (item.error != 0 && !in_part) continue;
          if (model_.at(parent).entries.count(item.name) != 0) return -EILSEQ;
          uint32_t id = 0;
          model_.make_file(parent, item.name, mode, id);
          if (gofs_->is_served()) {
            if (!bytes.empty()) model_.write(id, 0, bytes);  // as any file is written
          } else {
            model_.at(id).content.write(0, bytes);  // nothing is taken from its mode
          }
        }
        for (const BatchItem& item : items) {
          const std::string& name = item.name;
          int wanted = 0;
          if (name.empty()) wanted = -ENOENT;
          if (name == "..") wanted = -EEXIST;
          if (name == "a/b") wanted = -EINVAL;
          if (name.size() > format::kNameBytesMax) wanted = -ENAMETOOLONG;
          // A client's kernels make each by its path.
          const bool too_long = directory.size() + 1 + name.size() >= vfs::kPathBytesMax;
          if (wanted == 0 && gofs_->is_served() && too_long) wanted = -ENAMETOOLONG;
          const bool there = model_.at(parent).entries.count(name) != 0;
          const bool taken = wanted == 0 && item.error == -EEXIST &&
                             (there || (gofs_->is_served() && was_removed(items, name)));
          if (item.error == -ENOSPC) {
            ++full_;
            model_.forget_times();
          }
          if (item.error != wanted && !taken && item.error != -ENOSPC) return -EILSEQ;
        }
        return 0;
      });
}

/// Names of a directory, mostly of its files, each file once.
std::vector<BatchItem> Walker::some_items(uint32_t directory, std::vector<uint32_t>& ids) {
  std::vector<BatchItem> items;
  for (const auto& [name, id] : model_.at(directory).entries) {
    const Object& object = model_.at(id);
    const bool large = object.content.size() > 4 * kFileBytesMost;
    const bool twice = std::find(ids.begin(), ids.end(), id) != ids.end();
    if (large || twice || items.size() >= 12 || !(object.is_regular() ? one_in(2) : one_in(8))) {
      continue;
    }
    items.push_back({name, "", 0});
    ids.push_back(id);
  }
  return items;
}

void Walker::read_batch() {
  who_ = {};
  const uint32_t directory = pick([](const Object& one) { return one.is_directory(); });
  std::vector<uint32_t> ids;
  std::vector<BatchItem> items = some_items(directory, ids);
  if (items.empty()) return;
  const std::string path = model_.path_of(directory);
  both(
      fmt::format("batch_read of {} files in {}", items.size(), path),
      [&] { return gofs_->read_batch(path, items); },
      [&](int64_t) -> int64_t {
        for (size_t i = 0; i < items.size(); ++i) {
          const Object& object = model_.at(ids[i]);
          if ((items[i].error == 0) != object.is_regular()) return items[i].error - 1000;
          if (items[i].error != 0) continue;
          if (items[i].bytes != object.content.read(0, object.content.size())) return -EILSEQ;
        }
        return 0;
      });
}

void Walker::write_batch() {
  who_ = {};
  const uint32_t directory = pick([](const Object& one) { return one.is_directory(); });
  std::vector<uint32_t> ids;
  std::vector<BatchItem> items = some_items(directory, ids);
  if (items.empty()) return;
  for (BatchItem& item : items) item.bytes = bytes(below(one_in(4) ? 40'000 : 5000));
  const std::string path = model_.path_of(directory);
  both(
      fmt::format("batch_write of {} files in {}", items.size(), path),
      [&] { return gofs_->write_batch(path, items); },
      [&](int64_t) -> int64_t {
        for (size_t i = 0; i < items.size(); ++i) {
          const bool regular = model_.at(ids[i]).is_regular();
          if (items[i].error == -ENOSPC && regular) {
            ++full_;
            model_.forget_times();
            std::string part;
            const int found = part_written(path + "/" + items[i].name, items[i].bytes, part);
            if (found < 0) return found;
            model_.write(ids[i], 0, part);
            continue;
          }
          if ((items[i].error == 0) != regular) return items[i].error - 1000;
          if (regular) model_.write(ids[i], 0, items[i].bytes);
        }
        return 0;
      });
}

void Walker::collect_garbage() {
  const auto segments = static_cast<uint32_t>(1 + below(6));
  both(
      fmt::format("collect_garbage of {} segments", segments),
      [&] { return gofs_->collect_garbage(segments); }, [](int64_t) { return 0; });
}

}  // namespace gofs::judges
