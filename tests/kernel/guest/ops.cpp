// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

#include <dirent.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gofs::judge {

void die(const std::string& what) {
  std::fprintf(stderr, "judge: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

int64_t check(int64_t result, const std::string& what) {
  if (result < 0) die(what);
  return result;
}

uint64_t Random::next() {
  state_ += 0x9E3779B97F4A7C15;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Fd open_or_die(const std::string& path, int flags, mode_t mode) {
  return Fd(static_cast<int>(check(::open(path.c_str(), flags | O_CLOEXEC, mode), "open " + path)));
}

std::string content(size_t size, uint64_t seed) {
  std::string data(size, '\0');
  Random random(seed);
  for (size_t chunk = 0; chunk < size; chunk += kBlock) {
    uint64_t pattern[8];
    for (uint64_t& word : pattern) word = random.next();
    const size_t end = std::min(size, chunk + static_cast<size_t>(kBlock));
    for (size_t at = chunk; at < end; at += sizeof pattern) {
      if (at % 512 == 0) pattern[0] = (pattern[0] & ~0xFFFFull) | ((at / 512) & 0xFFFF);
      std::memcpy(data.data() + at, pattern, std::min(sizeof pattern, end - at));
    }
  }
  return data;
}

std::string noise(size_t size, uint64_t seed) {
  std::string data(size, '\0');
  Random random(seed);
  for (size_t at = 0; at < size; at += 8) {
    const uint64_t word = random.next();
    std::memcpy(data.data() + at, &word, std::min<size_t>(8, size - at));
  }
  return data;
}

bool write_at(int fd, std::string_view data, int64_t offset) {
  while (!data.empty()) {
    const ssize_t written = ::pwrite(fd, data.data(), data.size(), offset);
    if (written < 0 && errno == ENOSPC) return false;
    check(written, "write at " + std::to_string(offset));
    data.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return true;
}

bool make_file(const std::string& path, size_t size, uint64_t seed) {
  const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0 && errno == ENOSPC) return false;
  const Fd file(static_cast<int>(check(fd, "create " + path)));
  return write_at(file.get(), content(size, seed), 0);
}

void make_directory(const std::string& path, mode_t mode) {
  check(::mkdir(path.c_str(), mode), "mkdir " + path);
}

void set_xattr(const std::string& path, const std::string& name, std::string_view value) {
  check(::lsetxattr(path.c_str(), name.c_str(), value.data(), value.size(), 0),
        "setxattr " + name + " of " + std::to_string(value.size()) + " bytes on " + path);
}

std::string padded(uint64_t number, int width) {
  std::string digits = std::to_string(number);
  if (digits.size() < static_cast<size_t>(width)) digits.insert(0, width - digits.size(), '0');
  return digits;
}

std::vector<std::string> sorted_names(const std::string& path) {
  std::vector<std::string> names;
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) die("opendir " + path);
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

void checkpoint(const std::string& path) {
  const Fd directory = open_or_die(path, O_RDONLY | O_DIRECTORY);
  check(::syncfs(directory.get()), "syncfs " + path);
}

}  // namespace gofs::judge
