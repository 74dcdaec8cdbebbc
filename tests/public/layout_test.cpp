// SPDX-License-Identifier: Apache-2.0
//
// What programs and the library have to agree on, whatever either was compiled with, and what an
// interface for C is made of: where the members of public structs lie, and the numbers of flags.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <climits>
#include <cstddef>
#include <type_traits>

#include "gofs/types.h"

namespace gofs {
namespace {

/// Kernels leave such structs in memory, and the host reads them; C knows them as well.
template <typename T>
constexpr bool is_plain =
    std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T> && std::is_aggregate_v<T>;

static_assert(is_plain<VolumeHandle> && sizeof(VolumeHandle) == sizeof(void*));
static_assert(is_plain<Ticket> && sizeof(Ticket) == 24 && alignof(Ticket) == 8);
static_assert(offsetof(Ticket, result) == 0 && offsetof(Ticket, operation) == 8 &&
              offsetof(Ticket, generation) == 12 && offsetof(Ticket, queue) == 16);
static_assert(is_plain<TimeStamp> && sizeof(TimeStamp) == 16 && alignof(TimeStamp) == 8);
static_assert(offsetof(TimeStamp, seconds) == 0 && offsetof(TimeStamp, nanoseconds) == 8);
static_assert(is_plain<Stat> && sizeof(Stat) == 128 && alignof(Stat) == 8);
static_assert(offsetof(Stat, ino) == 0 && offsetof(Stat, size_bytes) == 8 &&
              offsetof(Stat, blocks_512) == 16 && offsetof(Stat, mode) == 24 &&
              offsetof(Stat, links) == 28 && offsetof(Stat, uid) == 32 &&
              offsetof(Stat, gid) == 36 && offsetof(Stat, device_major) == 40 &&
              offsetof(Stat, device_minor) == 44 && offsetof(Stat, accessed) == 48 &&
              offsetof(Stat, modified) == 64 && offsetof(Stat, changed) == 80 &&
              offsetof(Stat, created) == 96 && offsetof(Stat, flags) == 112 &&
              offsetof(Stat, advise) == 116 && offsetof(Stat, project_id) == 120);
static_assert(is_plain<FilesystemStat> && sizeof(FilesystemStat) == 64);
static_assert(offsetof(FilesystemStat, block_bytes) == 0 && offsetof(FilesystemStat, blocks) == 8 &&
              offsetof(FilesystemStat, blocks_free) == 16 &&
              offsetof(FilesystemStat, blocks_available) == 24 &&
              offsetof(FilesystemStat, files) == 32 && offsetof(FilesystemStat, files_free) == 40 &&
              offsetof(FilesystemStat, files_used) == 48 &&
              offsetof(FilesystemStat, name_bytes_max) == 56);
static_assert(is_plain<IoVector> && sizeof(IoVector) == 16);
static_assert(offsetof(IoVector, base) == 0 && offsetof(IoVector, bytes) == 8);
static_assert(is_plain<NamedEntry> && sizeof(NamedEntry) == 264 && alignof(NamedEntry) == 4);
static_assert(offsetof(NamedEntry, ino) == 0 && offsetof(NamedEntry, type) == 4 &&
              offsetof(NamedEntry, name_length) == 6 && offsetof(NamedEntry, name) == 8);
static_assert(is_plain<BatchFile> && sizeof(BatchFile) == 24);
static_assert(offsetof(BatchFile, size_bytes) == 0 && offsetof(BatchFile, ino) == 8 &&
              offsetof(BatchFile, error) == 12 && offsetof(BatchFile, created) == 16);

// Programs use their own <fcntl.h> and the like, on the host and in kernels.
static_assert(kOpenReadOnly == O_RDONLY && kOpenWriteOnly == O_WRONLY && kOpenReadWrite == O_RDWR &&
              kOpenAccessMask == O_ACCMODE && kOpenCreate == O_CREAT && kOpenExclusive == O_EXCL &&
              kOpenTruncate == O_TRUNC && kOpenAppend == O_APPEND && kOpenDataSync == O_DSYNC &&
              kOpenSync == O_SYNC && kOpenDirectory == O_DIRECTORY && kOpenNoFollow == O_NOFOLLOW &&
              kOpenNoAtime == O_NOATIME && kOpenPath == O_PATH);
static_assert(kSeekSet == SEEK_SET && kSeekCurrent == SEEK_CUR && kSeekEnd == SEEK_END &&
              kSeekData == SEEK_DATA && kSeekHole == SEEK_HOLE);
static_assert(kMayRead == R_OK && kMayWrite == W_OK && kMayExecute == X_OK);
static_assert(kRenameNoReplace == RENAME_NOREPLACE && kRenameExchange == RENAME_EXCHANGE);
static_assert(kFallocateKeepSize == FALLOC_FL_KEEP_SIZE &&
              kFallocatePunchHole == FALLOC_FL_PUNCH_HOLE &&
              kFallocateZeroRange == FALLOC_FL_ZERO_RANGE);
static_assert(kXattrCreate == XATTR_CREATE && kXattrReplace == XATTR_REPLACE);
static_assert(kTimeNow == UTIME_NOW && kTimeOmit == UTIME_OMIT && kKeepId == uint32_t(-1));
static_assert(kNameBytesMax == NAME_MAX && kPathBytesMax == PATH_MAX);

TEST(VolumeHandleTest, a_handle_of_nothing_is_false_and_handles_compare_by_what_they_lead_to) {
  constexpr VolumeHandle none;
  static_assert(!none && none == VolumeHandle{} && !(none != VolumeHandle{}));
  const int state[2] = {};
  const VolumeHandle one{&state[0]};
  EXPECT_TRUE(one);
  EXPECT_NE(one, none);
  EXPECT_NE(one, VolumeHandle{&state[1]});
  const VolumeHandle copy = one;
  EXPECT_EQ(copy, one);
  // It is no number and no pointer by mistake.
  EXPECT_FALSE((std::is_convertible_v<VolumeHandle, bool>));
  EXPECT_FALSE((std::is_convertible_v<const void*, VolumeHandle>));
}

}  // namespace
}  // namespace gofs
