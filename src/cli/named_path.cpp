// SPDX-License-Identifier: Apache-2.0
#include "cli/named_path.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>

#include "host/tree.h"
#include "ssd/descriptor.h"

namespace gofs::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kLinksMax = 40;  // as Linux has it

/// A path that names the directory.
std::string existing(const std::string& directory) { return directory.empty() ? "." : directory; }

std::optional<int> descriptor_number_of(const std::string& text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end || number < 0) return std::nullopt;
  return number;
}

/// Whether one of the links on the way is one of /proc's, which lead to what has no name.
bool goes_by_descriptor(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  const long opened = ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof(how));
  if (opened < 0) return errno == ELOOP;
  ::close(static_cast<int>(opened));
  return false;
}

bool is_same_file(const std::string& path, const std::string& other) {
  struct statx one;
  struct statx two;
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_INO, &one) != 0) return false;
  if (::statx(AT_FDCWD, other.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO, &two) != 0) return false;
  if ((two.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) return false;
  return one.stx_ino == two.stx_ino && one.stx_dev_major == two.stx_dev_major &&
         one.stx_dev_minor == two.stx_dev_minor;
}

}  // namespace

SplitPath split_path(const std::string& path) {
  const size_t last = path.find_last_not_of('/');
  if (last == std::string::npos) return {path.empty() ? "" : "/", "", !path.empty()};
  const size_t slash = path.rfind('/', last);
  SplitPath split;
  split.ends_with_slash = last + 1 != path.size();
  split.name = path.substr(slash + 1, last - slash);  // npos + 1 is 0
  split.directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return split;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::optional<int> own_descriptor(const std::string& path) {
  const std::string self = "/proc/" + std::to_string(::getpid());
  std::string at = path;
  for (int i = 0; i < kLinksMax; ++i) {
    const SplitPath split = split_path(at);
    std::error_code error;
    const std::string directory = fs::canonical(existing(split.directory), error).string();
    if (error) return std::nullopt;
    if (directory == self + "/fd" || directory.starts_with(self + "/task/")) {
      return descriptor_number_of(split.name);
    }
    const fs::path target = fs::read_symlink(host::joined_path(directory, split.name), error);
    if (error) return std::nullopt;  // no link
    at = target.is_absolute() ? target.string() : host::joined_path(directory, target.string());
  }
  return std::nullopt;
}

std::optional<SplitPath> place_of_file(const std::string& path) {
  if (goes_by_descriptor(path)) return std::nullopt;
  std::error_code error;
  const std::string real = fs::canonical(path, error).string();
  // What /proc says of a file that was removed, or lies outside what this process sees, may name
  // another one.
  if (error || !is_same_file(path, real)) return std::nullopt;
  return split_path(real);
}

}  // namespace gofs::cli
