// SPDX-License-Identifier: Apache-2.0
//
// Summary blocks: for each block of a segment, who points to it. One per main segment in the SSA;
// those of the six current segments are in the checkpoint pack instead, and carry the NAT and SIT
// journals.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/little_endian.h"
#include "format/nat.h"
#include "format/sit.h"

namespace gofs::format {

struct SummaryEntry {
  le32 nid;          // node that holds the address; a node block's own nid
  uint8_t version;   // NAT version of that nid; 0 for a node block
  le16 ofs_in_node;  // slot in that node; 0 for a node block
};
static_assert(sizeof(SummaryEntry) == 7 && offsetof(SummaryEntry, ofs_in_node) == 5);

struct NatJournalEntry {
  le32 nid;
  NatEntry ne;
};
static_assert(sizeof(NatJournalEntry) == 13);

struct SitJournalEntry {
  le32 segno;
  SitEntry se;
};
static_assert(sizeof(SitJournalEntry) == 78);

inline constexpr uint32_t kJournalBytes = 507;
inline constexpr uint32_t kNatJournalEntries = 38;
inline constexpr uint32_t kSitJournalEntries = 6;

/// `count` comes from the disk: bound it by the two constants above.
struct NatJournal {
  le16 count;
  NatJournalEntry entries[kNatJournalEntries];
  uint8_t unused[11];
};
struct SitJournal {
  le16 count;
  SitJournalEntry entries[kSitJournalEntries];
  uint8_t unused[37];
};
static_assert(sizeof(NatJournal) == kJournalBytes && sizeof(SitJournal) == kJournalBytes);

enum SummaryType : uint8_t { kSummaryData = 0, kSummaryNode = 1 };

struct SummaryFooter {
  uint8_t entry_type;
  le32 check_sum;  // always 0
};
static_assert(sizeof(SummaryFooter) == 5);

struct SummaryBlock {
  SummaryEntry entries[kBlocksPerSegment];
  union {
    NatJournal nat_journal;  // of kHotData
    SitJournal sit_journal;  // of kColdData
    uint8_t journal[kJournalBytes];
  };
  SummaryFooter footer;
};
static_assert(sizeof(SummaryBlock) == kBlockBytes && offsetof(SummaryBlock, journal) == 3584 &&
              offsetof(SummaryBlock, footer) == 4091);

/// Compact form of the three data summaries in a pack, from cp_pack_start_sum on: the two journals,
/// then the entries of hot, warm and cold in a row, as many as the log's blkoff (512 if it is SSR).
struct CompactSummaryHead {
  NatJournal nat_journal;
  SitJournal sit_journal;
};
static_assert(sizeof(CompactSummaryHead) == 1014);

inline constexpr uint32_t kCompactEntriesFirstBlock = 439;
inline constexpr uint32_t kCompactEntriesPerBlock = 584;

struct CompactPlace {
  uint32_t block;  // from the first block of the compact summaries
  uint32_t offset_bytes;
};

/// Where entry number `index` of the row lies.
GOFS_HD constexpr CompactPlace compact_summary_place(uint32_t index) {
  if (index < kCompactEntriesFirstBlock) {
    return {0, static_cast<uint32_t>(sizeof(CompactSummaryHead) + index * sizeof(SummaryEntry))};
  }
  const uint32_t rest = index - kCompactEntriesFirstBlock;
  return {1 + rest / kCompactEntriesPerBlock,
          static_cast<uint32_t>(rest % kCompactEntriesPerBlock * sizeof(SummaryEntry))};
}

}  // namespace gofs::format
