// SPDX-License-Identifier: Apache-2.0
//
// Where the entries of a finished directory lie: which block of which hash level, or the inline
// area. As a kernel would put them: each entry in the first level whose bucket has room for its
// name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/dentry.h"
#include "host/image/status.h"

namespace gofs::image {

/// The entries of a directory in the order in which they were added, without "." and "..".
class EntryList {
 public:
  struct Entry {
    uint64_t name_offset;
    uint32_t hash;
    uint32_t ino;
    uint8_t name_bytes;
    uint8_t type;
  };

  /// Errors: EINVAL for a name that no directory can hold, ENAMETOOLONG. Doubles are found later.
  Status add(std::string_view name, uint32_t ino, format::FileType type);

  const std::vector<Entry>& entries() const { return entries_; }
  std::string_view name(const Entry& entry) const {
    return std::string_view(names_).substr(entry.name_offset, entry.name_bytes);
  }
  /// Errors: EEXIST if two entries have one name.
  Status check_unique() const;
  void clear();

 private:
  std::vector<Entry> entries_;
  std::string names_;  // one after another
};

/// A dentry block with something in it. Its entries are `count` indexes of DirectoryLayout::order.
struct PlannedDentryBlock {
  uint32_t file_block;
  uint32_t first;
  uint32_t count;
};

struct DirectoryLayout {
  uint32_t depth = 1;  // hash levels in use
  std::vector<uint32_t> order;
  std::vector<PlannedDentryBlock> blocks;  // ascending; block 0, with the dots, is always there
};

/// Errors: ENOSPC if more names fall into one bucket of every level than fit.
Status lay_out_directory(const EntryList& list, uint32_t dir_level, DirectoryLayout* layout);

/// Whether all entries and the dots fit into an inline area.
bool fits_inline(const EntryList& list, const format::DentryArea& area);

/// Fills a zeroed dentry area with `entries` (indexes into the list), slot after slot; the dots
/// come first if `parent_ino` is not 0.
void fill_dentry_area(const EntryList& list, std::span<const uint32_t> entries, uint32_t own_ino,
                      uint32_t parent_ino, const format::DentryArea& area, uint8_t* memory);

}  // namespace gofs::image
