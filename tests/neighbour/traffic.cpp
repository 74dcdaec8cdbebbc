// SPDX-License-Identifier: Apache-2.0
#include "traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "records.h"

namespace gofs::neighbour {

namespace {

constexpr size_t kFilesMax = 24;
constexpr uint32_t kRecordsMax = 1024;    // of a file
constexpr uint32_t kWrittenAtOnce = 160;  // records

}  // namespace

Traffic::Traffic(uint32_t thread, uint64_t seed)
    : folder_(fmt::format("/thread{}", thread)),
      random_(seed * 1000 + thread),
      next_id_(uint64_t{thread} << 32) {}

void Traffic::begin(Volume& volume) { volume.mkdir(folder_, 0755).value(); }

void Traffic::step(Volume& volume) {
  ++counts_.calls;
  if (files_.empty() || (files_.size() < kFilesMax && draw(8) == 0)) return make(volume);
  const size_t number = draw(static_cast<uint32_t>(files_.size()));
  File& file = files_[number];
  switch (draw(16)) {
    case 0:
      return remove(volume, number);
    case 1:
      return rename(volume, file);
    case 2:
      return cut(volume, file);
    case 3:
    case 4:
      return sync(volume, file);
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
      return read(volume, file);
    default:
      return write(volume, file);
  }
}

std::string Traffic::new_name() { return fmt::format("file{}", next_id_++); }

void Traffic::make(Volume& volume) {
  File file{next_id_, new_name(), {}};
  const int fd = volume.open(path_of(file), kOpenReadWrite | kOpenCreate | kOpenExclusive).value();
  volume.close(fd).value();
  files_.push_back(std::move(file));
  write(volume, files_.back());
}

/// Some records, one after the other, within the file or so that it becomes longer.
void Traffic::write(Volume& volume, File& file) {
  const auto size = static_cast<uint32_t>(file.versions.size());
  const uint32_t first = draw(std::min(size, kRecordsMax - 1) + 1);
  // As many small ones, which may go where they lie, as others.
  const uint32_t most = draw(2) == 0 ? 8 : kWrittenAtOnce;
  const uint32_t count = 1 + draw(std::min(most, kRecordsMax - first));
  if (first + count > size) file.versions.resize(first + count);
  std::vector<char> bytes(count * kRecordBytes);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t version = ++file.versions[first + i];
    fill_record({file.id, first + i, version}, bytes.data() + i * kRecordBytes);
  }
  const int fd = volume.open(path_of(file), kOpenReadWrite).value();
  const uint64_t wrote =
      volume.pwrite(fd, bytes.data(), bytes.size(), first * kRecordBytes).value();
  volume.close(fd).value();
  if (wrote != bytes.size()) throw std::runtime_error(path_of(file) + ": a write was short");
  counts_.bytes_written += wrote;
}

void Traffic::read(Volume& volume, const File& file) {
  const auto size = static_cast<uint32_t>(file.versions.size());
  if (size == 0) return;
  const uint32_t first = draw(size);
  const int fd = volume.open(path_of(file)).value();
  check(volume, fd, file, first, 1 + draw(size - first));
  volume.close(fd).value();
}

void Traffic::check(Volume& volume, int fd, const File& file, uint32_t first, uint32_t count) {
  std::vector<char> bytes(count * kRecordBytes);
  const uint64_t got = volume.pread(fd, bytes.data(), bytes.size(), first * kRecordBytes).value();
  if (got != bytes.size()) throw std::runtime_error(path_of(file) + ": a read was short");
  counts_.bytes_read += got;
  for (uint32_t i = 0; i < count; ++i) {
    const RecordName wanted{file.id, first + i, file.versions[first + i]};
    if (is_record(wanted, bytes.data() + i * kRecordBytes)) continue;
    throw std::runtime_error(fmt::format("{}: record {} is not version {}", path_of(file),
                                         wanted.place, wanted.version));
  }
}

void Traffic::cut(Volume& volume, File& file) {
  const auto size = static_cast<uint32_t>(file.versions.size());
  file.versions.resize(draw(size + 1));
  volume.truncate(path_of(file), file.versions.size() * kRecordBytes).value();
}

void Traffic::rename(Volume& volume, File& file) {
  const std::string before = path_of(file);
  file.name = new_name();
  volume.rename(before, path_of(file)).value();
}

void Traffic::remove(Volume& volume, size_t number) {
  volume.unlink(path_of(files_[number])).value();
  files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(number));
}

void Traffic::sync(Volume& volume, const File& file) {
  if (draw(20) == 0) return volume.sync().value();
  const int fd = volume.open(path_of(file)).value();
  (draw(2) == 0 ? volume.fsync(fd) : volume.fdatasync(fd)).value();
  volume.close(fd).value();
}

void Traffic::check_all(Volume& volume) {
  std::set<std::string> found;
  const int folder = volume.opendir(folder_).value();
  for (;;) {
    const std::vector<DirectoryEntry> entries = volume.readdir(folder).value();
    if (entries.empty()) break;
    for (const DirectoryEntry& entry : entries) found.insert(entry.name);
  }
  volume.close(folder).value();
  for (const File& file : files_) {
    if (found.erase(file.name) == 0) throw std::runtime_error(path_of(file) + " is not there");
    const int fd = volume.open(path_of(file)).value();
    const auto size = static_cast<uint32_t>(file.versions.size());
    if (volume.fstat(fd).value().size_bytes != size * kRecordBytes) {
      throw std::runtime_error(path_of(file) + " has another size");
    }
    check(volume, fd, file, 0, size);
    volume.close(fd).value();
  }
  if (!found.empty()) throw std::runtime_error(folder_ + "/" + *found.begin() + " is there");
}

}  // namespace gofs::neighbour
