// SPDX-License-Identifier: Apache-2.0
//
// That C and C++ mean the same: where the members of structs lie, what numbers stand for, and the
// sizes of structs that may grow as they are in this version.
#include <cstddef>
#include <type_traits>

#include "host/c/give.h"

namespace gofs::host::c {

namespace {

template <typename C, typename Cpp>
constexpr bool kAlike = sizeof(C) == sizeof(Cpp) && alignof(C) == alignof(Cpp) &&
                        std::is_trivially_copyable_v<C> && std::is_standard_layout_v<C>;

#define GOFS_SAME_PLACE(C, Cpp, member)                         \
  static_assert(offsetof(C, member) == offsetof(Cpp, member) && \
                std::is_same_v<decltype(C::member), decltype(Cpp::member)>)

static_assert(kAlike<gofs_time_stamp_t, TimeStamp>);
GOFS_SAME_PLACE(gofs_time_stamp_t, TimeStamp, seconds);
GOFS_SAME_PLACE(gofs_time_stamp_t, TimeStamp, nanoseconds);

static_assert(kAlike<gofs_stat_t, Stat>);
GOFS_SAME_PLACE(gofs_stat_t, Stat, ino);
GOFS_SAME_PLACE(gofs_stat_t, Stat, size_bytes);
GOFS_SAME_PLACE(gofs_stat_t, Stat, blocks_512);
GOFS_SAME_PLACE(gofs_stat_t, Stat, mode);
GOFS_SAME_PLACE(gofs_stat_t, Stat, links);
GOFS_SAME_PLACE(gofs_stat_t, Stat, uid);
GOFS_SAME_PLACE(gofs_stat_t, Stat, gid);
GOFS_SAME_PLACE(gofs_stat_t, Stat, device_major);
GOFS_SAME_PLACE(gofs_stat_t, Stat, device_minor);
static_assert(offsetof(gofs_stat_t, accessed) == offsetof(Stat, accessed) &&
              offsetof(gofs_stat_t, modified) == offsetof(Stat, modified) &&
              offsetof(gofs_stat_t, changed) == offsetof(Stat, changed) &&
              offsetof(gofs_stat_t, created) == offsetof(Stat, created));
GOFS_SAME_PLACE(gofs_stat_t, Stat, flags);
GOFS_SAME_PLACE(gofs_stat_t, Stat, advise);
GOFS_SAME_PLACE(gofs_stat_t, Stat, project_id);
GOFS_SAME_PLACE(gofs_stat_t, Stat, generation);

static_assert(kAlike<gofs_identity_t, Identity>);
GOFS_SAME_PLACE(gofs_identity_t, Identity, uuid);
GOFS_SAME_PLACE(gofs_identity_t, Identity, ino);
GOFS_SAME_PLACE(gofs_identity_t, Identity, generation);

static_assert(kAlike<gofs_filesystem_stat_t, FilesystemStat>);
GOFS_SAME_PLACE(gofs_filesystem_stat_t, FilesystemStat, block_bytes);
GOFS_SAME_PLACE(gofs_filesystem_stat_t, FilesystemStat, blocks);
GOFS_SAME_PLACE(gofs_filesystem_stat_t, FilesystemStat, blocks_free);
GOFS_SAME_PLACE(gofs_filesystem_stat_t, FilesystemStat, blocks_available);
GOFS_SAME_PLACE(gofs_filesystem_stat_t, FilesystemStat, files);
GOFS_SAME_PLACE(gofs_filesystem_stat_t, FilesystemStat, files_free);
GOFS_SAME_PLACE(gofs_filesystem_stat_t, FilesystemStat, files_used);
GOFS_SAME_PLACE(gofs_filesystem_stat_t, FilesystemStat, name_bytes_max);

static_assert(kAlike<gofs_directory_entry_t, NamedEntry>);
GOFS_SAME_PLACE(gofs_directory_entry_t, NamedEntry, ino);
GOFS_SAME_PLACE(gofs_directory_entry_t, NamedEntry, type);
GOFS_SAME_PLACE(gofs_directory_entry_t, NamedEntry, name_length);
GOFS_SAME_PLACE(gofs_directory_entry_t, NamedEntry, name);

#undef GOFS_SAME_PLACE

// What stands behind `struct_bytes`.
constexpr size_t kBehind = offsetof(gofs_statistics_t, calls);
#define GOFS_SAME_PLACE_BEHIND(member)                                                           \
  static_assert(offsetof(gofs_statistics_t, member) == kBehind + offsetof(Statistics, member) && \
                sizeof(gofs_statistics_t::member) == sizeof(Statistics::member))
static_assert(sizeof(gofs_statistics_t) == kBehind + sizeof(Statistics) &&
              std::is_trivially_copyable_v<Statistics>);
GOFS_SAME_PLACE_BEHIND(calls);
GOFS_SAME_PLACE_BEHIND(bytes_read);
GOFS_SAME_PLACE_BEHIND(bytes_written);
GOFS_SAME_PLACE_BEHIND(commands);
GOFS_SAME_PLACE_BEHIND(ssd_bytes_read);
GOFS_SAME_PLACE_BEHIND(ssd_bytes_written);
GOFS_SAME_PLACE_BEHIND(command_timeouts);
GOFS_SAME_PLACE_BEHIND(commands_under_way);
GOFS_SAME_PLACE_BEHIND(lookups);
GOFS_SAME_PLACE_BEHIND(cache_pages);
GOFS_SAME_PLACE_BEHIND(dirty_pages);
GOFS_SAME_PLACE_BEHIND(dirty_node_pages);
GOFS_SAME_PLACE_BEHIND(segments);
GOFS_SAME_PLACE_BEHIND(checkpoints);
GOFS_SAME_PLACE_BEHIND(cleaned_segments);
GOFS_SAME_PLACE_BEHIND(moved_blocks);
#undef GOFS_SAME_PLACE_BEHIND
static_assert(offsetof(gofs_outcome_counts_t, failed) == offsetof(OutcomeCounts, failed) &&
              offsetof(gofs_lookup_counts_t, misses) == offsetof(LookupCounts, misses));
static_assert(int{GOFS_CALL_READ} == static_cast<int>(CallKind::kRead) &&
              int{GOFS_CALL_NAME} == static_cast<int>(CallKind::kName) &&
              int{GOFS_CALL_RESIZE} == static_cast<int>(CallKind::kResize) &&
              int{GOFS_CALL_KINDS} == kCallKinds);
static_assert(int{GOFS_COMMAND_FLUSH} == static_cast<int>(CommandKind::kFlush) &&
              int{GOFS_COMMAND_DEALLOCATE} == static_cast<int>(CommandKind::kDeallocate) &&
              int{GOFS_COMMAND_KINDS} == kCommandKinds);
static_assert(int{GOFS_CACHE_NAT} == static_cast<int>(CacheKind::kNat) &&
              int{GOFS_CACHE_PATHS} == static_cast<int>(CacheKind::kPaths) &&
              int{GOFS_CACHE_KINDS} == kCacheKinds);
static_assert(int{GOFS_SEGMENTS_PREFREE} == static_cast<int>(SegmentState::kPrefree) &&
              int{GOFS_SEGMENTS_VALID} == static_cast<int>(SegmentState::kValid) &&
              int{GOFS_SEGMENT_STATES} == kSegmentStates);

// As long as there has been no second version of them.
static_assert(sizeof(gofs_mount_options_t) == kFirstBytes<gofs_mount_options_t>);
static_assert(sizeof(gofs_cleaning_options_t) == kFirstBytes<gofs_cleaning_options_t>);
static_assert(sizeof(gofs_cleaning_report_t) == kFirstBytes<gofs_cleaning_report_t>);
static_assert(sizeof(gofs_statistics_t) == kFirstBytes<gofs_statistics_t>);
static_assert(sizeof(gofs_clock_report_t) == kFirstBytes<gofs_clock_report_t>);
// No padding: a longer struct of a newer caller has zeros where it asks for nothing.
static_assert(std::has_unique_object_representations_v<gofs_mount_options_t> &&
              std::has_unique_object_representations_v<gofs_cleaning_options_t>);
// These never change.
static_assert(sizeof(gofs_memory_part_t) == 64 && sizeof(gofs_cached_pages_t) == 48);
static_assert(sizeof(gofs_new_file_t) == 24 && offsetof(gofs_new_file_t, data) == 8 &&
              offsetof(gofs_new_file_t, bytes) == 16);

static_assert(GOFS_OPEN_READ_ONLY == kOpenReadOnly && GOFS_OPEN_WRITE_ONLY == kOpenWriteOnly &&
              GOFS_OPEN_READ_WRITE == kOpenReadWrite && GOFS_OPEN_CREATE == kOpenCreate &&
              GOFS_OPEN_EXCLUSIVE == kOpenExclusive && GOFS_OPEN_TRUNCATE == kOpenTruncate &&
              GOFS_OPEN_APPEND == kOpenAppend && GOFS_OPEN_DATA_SYNC == kOpenDataSync &&
              GOFS_OPEN_DIRECTORY == kOpenDirectory && GOFS_OPEN_NO_FOLLOW == kOpenNoFollow &&
              GOFS_OPEN_NO_ATIME == kOpenNoAtime && GOFS_OPEN_SYNC == kOpenSync &&
              GOFS_OPEN_PATH == kOpenPath);
static_assert(int{GOFS_SEEK_SET} == kSeekSet && int{GOFS_SEEK_CURRENT} == kSeekCurrent &&
              int{GOFS_SEEK_END} == kSeekEnd && int{GOFS_SEEK_DATA} == kSeekData &&
              int{GOFS_SEEK_HOLE} == kSeekHole);
static_assert(int{GOFS_MAY_EXECUTE} == kMayExecute && int{GOFS_MAY_WRITE} == kMayWrite &&
              int{GOFS_MAY_READ} == kMayRead);
static_assert(GOFS_RENAME_NO_REPLACE == kRenameNoReplace &&
              GOFS_RENAME_EXCHANGE == kRenameExchange);
static_assert(GOFS_FALLOCATE_KEEP_SIZE == kFallocateKeepSize &&
              GOFS_FALLOCATE_PUNCH_HOLE == kFallocatePunchHole &&
              GOFS_FALLOCATE_ZERO_RANGE == kFallocateZeroRange);
static_assert(GOFS_XATTR_CREATE == kXattrCreate && GOFS_XATTR_REPLACE == kXattrReplace);
static_assert(GOFS_TIME_NOW == kTimeNow && GOFS_TIME_OMIT == kTimeOmit && GOFS_KEEP_ID == kKeepId);
static_assert(int{GOFS_TYPE_UNKNOWN} == kTypeUnknown && int{GOFS_TYPE_REGULAR} == kTypeRegular &&
              int{GOFS_TYPE_DIRECTORY} == kTypeDirectory &&
              int{GOFS_TYPE_CHAR_DEVICE} == kTypeCharDevice &&
              int{GOFS_TYPE_BLOCK_DEVICE} == kTypeBlockDevice && int{GOFS_TYPE_FIFO} == kTypeFifo &&
              int{GOFS_TYPE_SOCKET} == kTypeSocket && int{GOFS_TYPE_SYMLINK} == kTypeSymlink);
static_assert(GOFS_NAME_BYTES_MAX == kNameBytesMax && GOFS_GROUPS_MAX == kGroupsMax &&
              GOFS_READDIR_ENTRIES_MIN == kReaddirEntriesMin);

}  // namespace

}  // namespace gofs::host::c
