// SPDX-License-Identifier: Apache-2.0
#include "host/named_inodes.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace gofs::host {

using request::Verb;

namespace {

/// The answer of a call that fills `text`, which is then as long as that.
int64_t fill(AnyVolume& volume, CallRequest request, std::string& text) {
  request.buffer = text.data();
  request.bytes = text.size();
  const int64_t result = volume.call(request).result;
  text.resize(result < 0 ? 0 : static_cast<size_t>(result));
  return std::min<int64_t>(result, 0);
}

}  // namespace

Inodes::Answers NamedInodes::results_of(const std::vector<CallRequest>& requests) {
  std::vector<CallAnswer> answers(requests.size());
  volume_.call_all(requests, answers);
  Answers results;
  for (const CallAnswer& answer : answers) results.push_back(answer.result);
  return results;
}

Inodes::Answers NamedInodes::ask_stats(const Entries& entries, bool) {
  std::vector<Stat> stats(entries.size());
  std::vector<CallRequest> requests;
  for (size_t i = 0; i < entries.size(); ++i) {
    requests.push_back({.verb = Verb::kStat,
                        .path = &entries[i]->path,
                        .keep_link = true,
                        .buffer = &stats[i],
                        .bytes = sizeof(Stat)});
  }
  Answers answers = results_of(requests);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (answers[i] < 0) continue;
    entries[i]->stat = stats[i];
    entries[i]->parent = entries[i]->directory;
  }
  return answers;
}

Inodes::Answers NamedInodes::ask_targets(const Entries& links) {
  std::vector<std::string> targets(links.size(), std::string(kPathBytesMax, '\0'));
  std::vector<CallRequest> requests;
  for (size_t i = 0; i < links.size(); ++i) {
    requests.push_back({.verb = Verb::kReadlink,
                        .path = &links[i]->path,
                        .buffer = targets[i].data(),
                        .bytes = targets[i].size()});
  }
  Answers answers = results_of(requests);
  for (size_t i = 0; i < links.size(); ++i) {
    if (answers[i] < 0) continue;
    targets[i].resize(static_cast<size_t>(answers[i]));
    links[i]->link_target = std::move(targets[i]);
    answers[i] = 0;
  }
  return answers;
}

Inodes::Answers NamedInodes::ask_xattrs(const Entries& entries) {
  const auto ask_one = [this](TreeEntry& entry) -> int64_t {
    std::string names(kXattrListBytesMax, '\0');
    const CallRequest listing{.verb = Verb::kListxattr, .path = &entry.path, .keep_link = true};
    if (const int64_t error = fill(volume_, listing, names); error < 0) return error;
    std::vector<ExtendedAttribute> xattrs;
    for (size_t at = 0; at < names.size();) {
      ExtendedAttribute xattr{names.c_str() + at, std::string(kXattrValueBytesMax, '\0')};
      at += xattr.name.size() + 1;
      const CallRequest reading{
          .verb = Verb::kGetxattr, .path = &entry.path, .keep_link = true, .name = &xattr.name};
      const int64_t error = fill(volume_, reading, xattr.value);
      // Another may have taken it away, and not every one that is listed may be read.
      if (error == -ENODATA || error == -EACCES || error == -EPERM) continue;
      if (error < 0) return error;
      xattrs.push_back(std::move(xattr));
    }
    std::sort(xattrs.begin(), xattrs.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    entry.xattrs = std::move(xattrs);
    return 0;
  };
  Answers answers;
  for (TreeEntry* const entry : entries) answers.push_back(ask_one(*entry));
  return answers;
}

void NamedInodes::name(const TreeEntry& entry, CallRequest& request) {
  request.path = &entry.path;
  request.keep_link = true;
}

void NamedInodes::name_in_directory(const TreeEntry& entry, CallRequest& request) {
  request.path = &entry.path;
}

CallRequest NamedInodes::opening(const TreeEntry& entry) {
  // A path that was given may end with a link; one that was met is what it was then.
  const uint32_t follow = entry.directory == 0 ? 0 : O_NOFOLLOW;
  return {.verb = Verb::kOpen, .path = &entry.path, .flags = O_RDONLY | follow};
}

}  // namespace gofs::host
