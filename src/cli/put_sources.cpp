// SPDX-License-Identifier: Apache-2.0
#include "cli/put_sources.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>

#include "cli/interruption.h"
#include "cli/named_path.h"
#include "cli/objects.h"
#include "host/tree.h"

namespace gofs::cli {

int PutSources::within(const PutSource& source) {
  return source.parent ? directories_.descriptor(*source.parent) : AT_FDCWD;
}

std::string PutSources::host_path(const PutSource& source) const {
  return source.parent ? directories_.path(*source.parent, source.name) : source.name;
}

void PutSources::add(const std::string& host_path, const std::string& path, bool recursive) {
  PutSource top{.parent = std::nullopt, .name = host_path, .path = path, .status = {}};
  // What a user asks for by a link's name is what it leads to.
  const int flags = recursive ? AT_SYMLINK_NOFOLLOW : 0;
  if (::fstatat(AT_FDCWD, host_path.c_str(), &top.status, flags) != 0) {
    return report(session_, host::make_error(errno, host_path).message);
  }
  if (!recursive && S_ISDIR(top.status.st_mode)) {
    return report(session_, host_path + ": is a directory (use -r)");
  }
  top.is_read = !recursive || S_ISREG(top.status.st_mode);
  std::vector<PutSource> pending;
  pending.push_back(std::move(top));
  while (!pending.empty()) {
    stop_if_interrupted();
    PutSource next = std::move(pending.back());
    pending.pop_back();
    try {
      look_at(std::move(next), pending);
    } catch (const ObjectFailure& failure) {
      report(session_, failure.message);
    }
  }
}

/// Takes over `source`, whose status is known where the user named it, and finds what is in it.
void PutSources::look_at(PutSource source, std::vector<PutSource>& pending) {
  if (source.parent &&
      ::fstatat(within(source), source.name.c_str(), &source.status, AT_SYMLINK_NOFOLLOW) != 0) {
    fail_with_errno(host_path(source));
  }
  if (source.parent) source.is_read = S_ISREG(source.status.st_mode);
  if (source.is_read && S_ISREG(source.status.st_mode)) {
    bytes_ += static_cast<uint64_t>(source.status.st_size);
  }
  std::vector<std::string> names;
  std::optional<ObjectFailure> failed;
  if (S_ISDIR(source.status.st_mode)) {
    // What cannot be read is reported, and is made without what is in it.
    try {
      source.directory = source.parent ? directories_.enter(*source.parent, source.name)
                                       : directories_.add(source.name);
      names = directories_.names(*source.directory);
    } catch (const ObjectFailure& failure) {
      failed = failure;
    }
  }
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    pending.push_back({.parent = source.directory,
                       .name = *name,
                       .path = host::joined_path(source.path, *name),
                       .status = {}});
  }
  all_.push_back(std::move(source));
  if (failed) throw ObjectFailure(*failed);
}

ssd::Descriptor PutSources::look(const PutSource& source) {
  const int flags = O_PATH | O_CLOEXEC | (source.is_read && !source.parent ? 0 : O_NOFOLLOW);
  ssd::Descriptor object(::openat(within(source), source.name.c_str(), flags));
  struct stat status;
  if (!object.is_open() || ::fstat(object.get(), &status) != 0) fail_with_errno(host_path(source));
  if ((status.st_mode & S_IFMT) != (source.status.st_mode & S_IFMT) ||
      status.st_ino != source.status.st_ino || status.st_dev != source.status.st_dev) {
    fail_as_another(source);
  }
  return object;
}

void PutSources::fail_as_another(const PutSource& source) const {
  throw ObjectFailure{host_path(source) + ": is another file than it was"};
}

SourceFile PutSources::open(const PutSource& source) {
  if (!source.parent) return SourceFile::open_named(source.name);
  return SourceFile::open_in(within(source), source.name, host_path(source));
}

std::string PutSources::link_target(const PutSource& source) {
  std::string target(PATH_MAX, '\0');
  const ssize_t bytes =
      ::readlinkat(within(source), source.name.c_str(), target.data(), target.size());
  if (bytes < 0 && errno == EINVAL) fail_as_another(source);
  if (bytes < 0) fail_with_errno(host_path(source));
  target.resize(static_cast<size_t>(bytes));
  return target;
}

}  // namespace gofs::cli
