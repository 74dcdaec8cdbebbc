// SPDX-License-Identifier: Apache-2.0
#include "disk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <system_error>

#include "host/image/fsck_for_test.h"

namespace gofs::judges {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::string temporary_path() {
  const bool in_memory = std::filesystem::is_directory("/dev/shm");
  std::string path =
      (in_memory ? std::string("/dev/shm") : std::filesystem::temp_directory_path().string()) +
      "/gofs-judge-XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd < 0) fail(path);
  close(fd);
  return path;
}

/// Most of an empty volume is zeros, and needs no room.
template <typename Visit>
void for_each_page_in_use(std::span<const uint8_t> volume, Visit visit) {
  constexpr size_t kPage = 4096;
  for (size_t at = 0; at < volume.size(); at += kPage) {
    const auto page = volume.subspan(at, std::min(kPage, volume.size() - at));
    if (std::any_of(page.begin(), page.end(), [](uint8_t byte) { return byte != 0; })) {
      visit(at, page.size());
    }
  }
}

void make_volume(const std::string& path, uint64_t bytes, const std::string& options) {
  std::filesystem::resize_file(path, bytes);
  const auto made = image::run_tool("mkfs.f2fs -q " + options + " '" + path + "'");
  if (made.exit_code != 0) throw std::runtime_error("mkfs.f2fs: " + made.output);
}

}  // namespace

std::vector<uint8_t> make_empty_volume(uint64_t bytes) {
  const image::TemporaryPath file;
  make_volume(file.path(), bytes, "");
  return load_volume(file.path());
}

std::vector<uint8_t> load_volume(const std::string& path) {
  std::vector<uint8_t> volume(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(volume.data()), static_cast<std::streamsize>(volume.size()));
  return volume;
}

std::string complaints_of(const std::string& path) {
  const auto verdict = image::fsck_is_clean(path);
  return verdict ? std::string() : verdict.message();
}

Disk::Disk(const std::vector<uint8_t>& base)
    : base_(&base), bytes_(base.size()), path_(temporary_path()) {
  std::filesystem::resize_file(path_, bytes_);
  map();
  for_each_page_in_use(base, [&](size_t at, size_t bytes) {
    std::copy_n(base.begin() + static_cast<ptrdiff_t>(at), bytes, data_ + at);
  });
}

Disk::Disk(uint64_t bytes, const std::string& mkfs_options)
    : bytes_(bytes), path_(temporary_path()) {
  make_volume(path_, bytes, mkfs_options);
  map();
}

void Disk::map() {
  const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) fail(path_);
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) fail(path_);
  data_ = static_cast<uint8_t*>(memory);
}

Disk::~Disk() {
  ::munmap(data_, bytes_);
  ::unlink(path_.c_str());
}

void Disk::put_back(const ssd::WriteTrace& trace) {
  for (const ssd::LoggedCommand& command : trace.commands) {
    std::copy_n(base_->begin() + static_cast<ptrdiff_t>(command.offset), command.bytes,
                data_ + command.offset);
  }
}

void Disk::save(const std::string& path) const {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for_each_page_in_use({data_, bytes_}, [&](size_t at, size_t bytes) {
    file.seekp(static_cast<std::streamoff>(at));
    file.write(reinterpret_cast<const char*>(data_ + at), static_cast<std::streamsize>(bytes));
  });
  file.close();
  std::filesystem::resize_file(path, bytes_);
}

std::string Disk::complaints(bool torn) const {
  const auto verdict = image::fsck_is_clean(path_, torn ? "Invalid CP CRC" : "");
  return verdict ? std::string() : verdict.message();
}

}  // namespace gofs::judges
