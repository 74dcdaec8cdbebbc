// SPDX-License-Identifier: Apache-2.0
//
// gofs sum VOL [PATH] [-r]: SHA-256 of a file, or of every regular file below a directory, computed
// on the backend. The lines are sha256sum's own, with absolute paths, in the order of a walk (names
// by their bytes, a directory's files before those of the directories in it). With --into the
// backend writes them to a file of the volume.
#include <fcntl.h>
#include <fmt/format.h>

#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "host/files_by_calls.h"
#include "host/hash_files.h"
#include "host/messages.h"
#include "host/tree.h"
#include "host/volume_access.h"

namespace gofs::cli {
namespace {

/// As sha256sum writes it: a name with a backslash, newline or carriage return is escaped, which a
/// backslash at the head of the line says.
std::string sum_line(const std::string& path, const std::string& digest) {
  std::string name;
  for (const char byte : path) {
    switch (byte) {
      case '\\':
        name += "\\\\";
        break;
      case '\n':
        name += "\\n";
        break;
      case '\r':
        name += "\\r";
        break;
      default:
        name += byte;
    }
  }
  return fmt::format("{}{}  {}\n", name.size() != path.size() ? "\\" : "", digest, name);
}

std::string sum_json(const std::string& path, const std::string& digest) {
  std::string line = "{";
  if (is_utf8(path)) line += "\"path\":" + json_string(path) + ",";
  return line + fmt::format("\"path_hex\":\"{}\",\"sha256\":\"{}\"}}\n", hex(path), digest);
}

struct Listed {
  std::vector<std::string> paths;
  std::vector<host::FileToHash> files;
  uint64_t bytes = 0;

  void add(std::string path, const Stat& stat) {
    paths.push_back(std::move(path));
    files.push_back({stat.ino, stat.size_bytes});
    bytes += stat.size_bytes;
  }
};

Listed list_files(Session& session, Volume& volume, const SumOptions& options) {
  Listed listed;
  host::Tree tree(host::any_of(volume));
  host::TreeEntry top = take(tree.find(options.path, false));
  if (top.entry.type == format::kTypeSymlink) top.stat = take(volume.stat(options.path));
  const uint32_t type = top.stat->mode & format::kModeTypeMask;
  if (type == format::kModeRegular) {
    listed.add(top.path, *top.stat);
    return listed;
  }
  if (type != format::kModeDirectory) {
    throw Failure{options.path + ": not a regular file"};
  }
  if (!options.recursive) throw Failure{options.path + ": is a directory (use -r)"};
  top.entry.ino = top.stat->ino;
  host::WalkVisitor visitor;
  visitor.entry = [&](const host::TreeEntry& entry) {
    if (entry.stat && entry.entry.type == format::kTypeRegular) listed.add(entry.path, *entry.stat);
  };
  visitor.error = [&](const Error& error) { report(session, error.message); };
  tree.walk(top, {.recursive = true, .link_targets = true}, visitor);
  return listed;
}

/// By the backend that has mounted the volume here, else by this program.
std::vector<kernels::HashFile> sums_of(Volume& volume, const Listed& listed, Progress& progress) {
  if (host::VolumeState* const mounted = host::mounted_of(volume)) {
    return take(
        host::hash_files(*mounted, listed.files, [&](uint64_t bytes) { progress.update(bytes); }));
  }
  std::vector<kernels::HashFile> sums(listed.files.size());
  uint64_t read_bytes = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto fd = volume.open(listed.paths[i]);
    sums[i].error = fd ? static_cast<int32_t>(host::hash_by_calls(
                             host::any_of(volume), *fd, sums[i].digest,
                             [&](uint64_t bytes) { progress.update(read_bytes += bytes); }))
                       : -fd.error().code;
    if (fd) (void)volume.close(*fd);
  }
  return sums;
}

/// Makes the file anew.
void write_file(Volume& volume, const std::string& path, const std::string& text) {
  const int fd = take(volume.open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644));
  for (size_t done = 0; done < text.size();) {
    done += take(volume.pwrite(fd, text.data() + done, text.size() - done, done));
  }
  take(volume.close(fd));
}

}  // namespace

void run_sum(Session& session, const SumOptions& options) {
  const bool writes = !options.into.empty();
  Volume volume = open_volume(session, writes ? Access::kReadWrite : Access::kReadOnly);
  const Listed listed = list_files(session, volume, options);
  std::vector<kernels::HashFile> sums;
  {
    Progress progress(listed.files.size(), listed.bytes);
    sums = sums_of(volume, listed, progress);
  }
  std::string text;  // for the volume
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].error != 0) {
      flush_output();
      report(session, host::any_of(volume)
                          .explain(sums[i].error, listed.paths[i], listed.files[i].ino)
                          .message);
      continue;
    }
    const auto* const bytes = reinterpret_cast<const char*>(sums[i].digest);
    const std::string digest = hex({bytes, sizeof(sums[i].digest)});
    const std::string line =
        session.json ? sum_json(listed.paths[i], digest) : sum_line(listed.paths[i], digest);
    writes ? static_cast<void>(text += line) : print(line);
  }
  if (!writes) return;
  write_file(volume, options.into, text);
  close_volume(session, volume);
}

}  // namespace gofs::cli
