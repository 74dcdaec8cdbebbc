// SPDX-License-Identifier: Apache-2.0
#include "host/image/directory_layout.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "format/bitmap.h"
#include "format/name_hash.h"

namespace gofs::image {

using format::DentryArea;

namespace {

constexpr uint32_t kDotSlots = 2;
constexpr uint32_t kBucketBlocksMax = 4;

/// Sorts `entries` by their bucket of a level, keeping the order within each.
class BucketSort {
 public:
  void sort(const EntryList& list, uint32_t bucket_count, std::vector<uint32_t>* entries) {
    const auto bucket = [&](uint32_t index) { return list.entries()[index].hash % bucket_count; };
    if (bucket_count > 4 * entries->size() + 1024) {
      std::stable_sort(entries->begin(), entries->end(),
                       [&](uint32_t a, uint32_t b) { return bucket(a) < bucket(b); });
      return;
    }
    starts_.assign(bucket_count + 1, 0);
    for (const uint32_t index : *entries) ++starts_[bucket(index) + 1];
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    sorted_.resize(entries->size());
    for (const uint32_t index : *entries) sorted_[starts_[bucket(index)]++] = index;
    entries->swap(sorted_);
  }

 private:
  std::vector<uint32_t> starts_;
  std::vector<uint32_t> sorted_;
};

/// The blocks of one bucket while it is being filled: each entry goes into the first block that has
/// room for it.
struct Bucket {
  std::array<uint32_t, kBucketBlocksMax> slots_used{};
  std::array<std::vector<uint32_t>, kBucketBlocksMax> entries;

  bool put(uint32_t entry, uint32_t slots, uint32_t block_count) {
    for (uint32_t block = 0; block < block_count; ++block) {
      if (slots_used[block] + slots > format::kDentrySlotsPerBlock) continue;
      slots_used[block] += slots;
      entries[block].push_back(entry);
      return true;
    }
    return false;
  }
};

/// Appends the blocks of a filled bucket to the layout and empties it.
void take_bucket(uint64_t first_block, uint32_t block_count, Bucket* bucket,
                 DirectoryLayout* layout) {
  for (uint32_t block = 0; block < block_count; ++block) {
    std::vector<uint32_t>& entries = bucket->entries[block];
    if (bucket->slots_used[block] > 0) {
      layout->blocks.push_back(PlannedDentryBlock{static_cast<uint32_t>(first_block + block),
                                                  static_cast<uint32_t>(layout->order.size()),
                                                  static_cast<uint32_t>(entries.size())});
      layout->order.insert(layout->order.end(), entries.begin(), entries.end());
    }
    entries.clear();
    bucket->slots_used[block] = 0;
  }
}

}  // namespace

Status EntryList::add(std::string_view name, uint32_t ino, format::FileType type) {
  if (name.size() > format::kNameBytesMax) {
    return Status::failure(-ENAMETOOLONG, "name of more than 255 bytes");
  }
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\0", 2)) != std::string_view::npos) {
    return Status::failure(-EINVAL, "not a name: '" + std::string(name) + "'");
  }
  const uint32_t hash = format::name_hash(name.data(), static_cast<uint32_t>(name.size()));
  entries_.push_back(Entry{names_.size(), hash, ino, static_cast<uint8_t>(name.size()), type});
  names_ += name;
  return {};
}

Status EntryList::check_unique() const {
  std::vector<uint32_t> order(entries_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [this](uint32_t a, uint32_t b) { return entries_[a].hash < entries_[b].hash; });
  // Equal names have equal hashes; few other names do.
  for (size_t i = 0; i < order.size(); ++i) {
    const Entry& one = entries_[order[i]];
    for (size_t k = i + 1; k < order.size() && entries_[order[k]].hash == one.hash; ++k) {
      if (name(entries_[order[k]]) == name(one)) {
        return Status::failure(-EEXIST, "name given twice: '" + std::string(name(one)) + "'");
      }
    }
  }
  return {};
}

void EntryList::clear() {
  entries_ = {};
  names_ = {};
}

Status lay_out_directory(const EntryList& list, uint32_t dir_level, DirectoryLayout* layout) {
  layout->order.reserve(list.entries().size());
  std::vector<uint32_t> waiting(list.entries().size());
  std::iota(waiting.begin(), waiting.end(), 0);
  std::vector<uint32_t> overflow;
  BucketSort sorter;
  Bucket bucket;

  for (uint32_t level = 0; level == 0 || !waiting.empty(); ++level) {
    if (level >= format::kDirDepthMax) {
      return Status::failure(-ENOSPC, "too many names of one hash in a directory");
    }
    const uint32_t bucket_count = format::dir_buckets(level, dir_level);
    const uint32_t bucket_blocks = format::dir_bucket_blocks(level);
    const uint64_t level_start = format::dir_level_start(level, dir_level);
    if (level_start + uint64_t{bucket_count} * bucket_blocks > 0xFFFFFFFF) {
      return Status::failure(-ENOSPC, "too many names of one hash in a directory");
    }
    layout->depth = level + 1;
    sorter.sort(list, bucket_count, &waiting);
    overflow.clear();
    if (level == 0) bucket.slots_used[0] = kDotSlots;
    uint32_t current = 0;
    for (const uint32_t index : waiting) {
      const EntryList::Entry& entry = list.entries()[index];
      const uint32_t wanted = entry.hash % bucket_count;
      if (wanted != current) {
        take_bucket(level_start + uint64_t{current} * bucket_blocks, bucket_blocks, &bucket,
                    layout);
        current = wanted;
      }
      if (!bucket.put(index, format::name_slots(entry.name_bytes), bucket_blocks)) {
        overflow.push_back(index);
      }
    }
    take_bucket(level_start + uint64_t{current} * bucket_blocks, bucket_blocks, &bucket, layout);
    waiting.swap(overflow);
  }
  return {};
}

bool fits_inline(const EntryList& list, const DentryArea& area) {
  uint64_t slots = kDotSlots;
  for (const EntryList::Entry& entry : list.entries()) {
    slots += format::name_slots(entry.name_bytes);
    if (slots > area.slot_count) return false;
  }
  return slots <= area.slot_count;
}

void fill_dentry_area(const EntryList& list, std::span<const uint32_t> entries, uint32_t own_ino,
                      uint32_t parent_ino, const DentryArea& area, uint8_t* memory) {
  uint32_t slot = 0;
  const auto put = [&](std::string_view name, uint32_t hash, uint32_t ino, uint8_t type) {
    const auto bytes = static_cast<uint32_t>(name.size());
    GOFS_ASSERT(area.name_fits(slot, bytes));
    auto& dentry = *reinterpret_cast<format::Dentry*>(memory + area.dentry_at(slot));
    dentry.hash_code = hash;
    dentry.ino = ino;
    dentry.name_len = static_cast<uint16_t>(bytes);
    dentry.file_type = type;
    std::memcpy(memory + area.name_at(slot), name.data(), bytes);
    for (uint32_t i = 0; i < format::name_slots(bytes); ++i) {
      format::set_lsb_bit(memory, slot++, true);
    }
  };
  if (parent_ino != 0) {
    put(".", 0, own_ino, format::kTypeDirectory);
    put("..", 0, parent_ino, format::kTypeDirectory);
  }
  for (const uint32_t index : entries) {
    const EntryList::Entry& entry = list.entries()[index];
    put(list.name(entry), entry.hash, entry.ino, entry.type);
  }
}

}  // namespace gofs::image
