// SPDX-License-Identifier: Apache-2.0
#include "host/numbered_inodes.h"

#include <algorithm>
#include <utility>

#include "kernels/bodies.h"

namespace gofs::host {

namespace {

constexpr size_t kInodesAtOnce = 8192;
constexpr size_t kTargetsAtOnce = 256;
constexpr size_t kXattrsAtOnce = 64;

/// What vfs::dump_xattrs_of() wrote, by name.
std::vector<ExtendedAttribute> parse_xattrs(const uint8_t* bytes, size_t count) {
  std::vector<ExtendedAttribute> xattrs;
  const auto* const text = reinterpret_cast<const char*>(bytes);
  for (size_t at = 0; at < count;) {
    ExtendedAttribute xattr;
    xattr.name = text + at;
    at += xattr.name.size() + 1;
    const uint32_t size =
        static_cast<uint32_t>(bytes[at]) | static_cast<uint32_t>(bytes[at + 1]) << 8 |
        static_cast<uint32_t>(bytes[at + 2]) << 16 | static_cast<uint32_t>(bytes[at + 3]) << 24;
    xattr.value.assign(text + at + 4, size);
    at += 4 + size;
    xattrs.push_back(std::move(xattr));
  }
  std::sort(xattrs.begin(), xattrs.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return xattrs;
}

}  // namespace

NumberedInodes::NumberedInodes(VolumeState& volume)
    : volume_(volume),
      params_(volume.backend().shared_memory(), 1),
      queries_(volume.backend().shared_memory(), kInodesAtOnce),
      targets_(volume.backend().shared_memory(), kTargetsAtOnce * vfs::kPathBytesMax),
      xattrs_(volume.backend().shared_memory(), kXattrsAtOnce * vfs::kXattrListBytesMax) {}

/// In portions: `prepare(query, i)` completes the i-th query of one, `take(entry, query)` makes use
/// of what was found and says whether that was all right.
template <typename Prepare, typename Take>
Inodes::Answers NumberedInodes::ask(const Entries& entries, size_t at_once, Prepare prepare,
                                    Take take) {
  Answers answers;
  answers.reserve(entries.size());
  const kernels::Grid full = volume_.backend().full_grid();
  for (size_t first = 0; first < entries.size(); first += at_once) {
    const size_t count = std::min(at_once, entries.size() - first);
    for (size_t i = 0; i < count; ++i) {
      queries_[i] = kernels::InodeQuery{};
      queries_[i].ino = static_cast<uint32_t>(entries[first + i]->entry.ino);
      prepare(queries_[i], i);
    }
    params_[0] =
        kernels::InodesParams{volume_.filesystem(), queries_.data(), static_cast<uint32_t>(count)};
    // No more warps than there are inodes for.
    const auto blocks = static_cast<uint32_t>(simt::divide_up(count, full.threads_per_block));
    const bool ran =
        volume_.run(kernels::bodies::kInodes,
                    {std::min(blocks, full.blocks), full.threads_per_block}, params_.data());
    for (size_t i = 0; i < count; ++i) {
      const kernels::InodeQuery& query = queries_[i];
      answers.push_back(!ran              ? AnyVolume::kNotRun
                        : query.error < 0 ? query.error
                                          : take(*entries[first + i], query));
    }
  }
  return answers;
}

Inodes::Answers NumberedInodes::ask_stats(const Entries& entries, bool parents) {
  return ask(
      entries, kInodesAtOnce,
      [parents](kernels::InodeQuery& query, size_t) { query.wants_parent = parents; },
      [](TreeEntry& entry, const kernels::InodeQuery& query) {
        entry.stat = query.stat;
        entry.parent = query.parent;
        return 0;
      });
}

Inodes::Answers NumberedInodes::ask_targets(const Entries& links) {
  return ask(
      links, kTargetsAtOnce,
      [this](kernels::InodeQuery& query, size_t i) {
        query.link_target = targets_.data() + i * vfs::kPathBytesMax;
        query.link_capacity = vfs::kPathBytesMax;
      },
      [](TreeEntry& entry, const kernels::InodeQuery& query) {
        if (query.link_length < 0) return query.link_length;
        entry.link_target.emplace(query.link_target, static_cast<size_t>(query.link_length));
        return 0;
      });
}

Inodes::Answers NumberedInodes::ask_xattrs(const Entries& entries) {
  return ask(
      entries, kXattrsAtOnce,
      [this](kernels::InodeQuery& query, size_t i) {
        query.xattrs = xattrs_.data() + i * vfs::kXattrListBytesMax;
        query.xattr_capacity = vfs::kXattrListBytesMax;
      },
      [](TreeEntry& entry, const kernels::InodeQuery& query) {
        if (query.xattr_bytes < 0) return query.xattr_bytes;
        entry.xattrs = parse_xattrs(query.xattrs, static_cast<size_t>(query.xattr_bytes));
        return 0;
      });
}

void NumberedInodes::name(const TreeEntry& entry, CallRequest& request) {
  request.number = static_cast<uint32_t>(entry.entry.ino);
}

void NumberedInodes::name_in_directory(const TreeEntry& entry, CallRequest& request) {
  request.path = entry.directory == 0 ? &entry.path : &entry.entry.name;
  request.number = static_cast<uint32_t>(entry.directory);
}

CallRequest NumberedInodes::opening(const TreeEntry& entry) {
  return {.verb = request::Verb::kOpenInode, .number = static_cast<uint32_t>(entry.entry.ino)};
}

}  // namespace gofs::host
