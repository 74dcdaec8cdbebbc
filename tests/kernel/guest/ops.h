// SPDX-License-Identifier: Apache-2.0
//
// What every scene is written with: system calls that end the program with a message when they fail
// unexpectedly (a scene that silently did less than it says would make the whole judgement hollow),
// a seeded random source, and file content that is different in every block and yet compresses
// well.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gofs::judge {

constexpr int64_t kBlock = 4096;

/// Prints the message with errno's text and ends the program.
[[noreturn]] void die(const std::string& what);

/// Returns `result` unless it is negative; then dies naming `what`.
int64_t check(int64_t result, const std::string& what);

/// SplitMix64: the same seed gives the same sequence everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint64_t below(uint64_t bound) { return next() % bound; }
  bool percent(unsigned chance) { return below(100) < chance; }

 private:
  uint64_t state_;
};

/// A descriptor that closes itself.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&&) = delete;
  ~Fd();
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Opens or dies.
Fd open_or_die(const std::string& path, int flags, mode_t mode = 0644);

/// Content for `size` bytes that depends on `seed`: each 4 KiB chunk has 64 random bytes, repeated,
/// with a number in front of every sector, so that a block, a sector or a file in the wrong place
/// changes the digest, and an image still packs to little.
std::string content(size_t size, uint64_t seed);

/// Content that does not compress, for a few files.
std::string noise(size_t size, uint64_t seed);

/// Writes all of `data` at `offset`; false when the volume is full, dies otherwise.
bool write_at(int fd, std::string_view data, int64_t offset);

/// Creates `path` with `size` bytes of content(); false when the volume is full.
bool make_file(const std::string& path, size_t size, uint64_t seed);

void make_directory(const std::string& path, mode_t mode = 0755);
void set_xattr(const std::string& path, const std::string& name, std::string_view value);

/// Number with leading zeros.
std::string padded(uint64_t number, int width);

/// Names in the directory, sorted, without "." and "..".
std::vector<std::string> sorted_names(const std::string& path);

/// syncfs of the file system that `path` is on: a checkpoint of this one only.
void checkpoint(const std::string& path);

}  // namespace gofs::judge
