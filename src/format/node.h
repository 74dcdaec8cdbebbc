// SPDX-License-Identifier: Apache-2.0
//
// Node blocks: inodes, blocks of data addresses (direct) and blocks of nids (indirect), all with
// the same footer. A node block whose nid equals its ino is the inode. Start at NodeBlock; what an
// inode's i_addr area holds is worked out in inode_layout.h, the tree of nodes in node_path.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/little_endian.h"

namespace gofs::format {

/// Special block addresses.
inline constexpr uint32_t kNullAddr = 0;               // a hole
inline constexpr uint32_t kNewAddr = 0xFFFFFFFF;       // reserved, reads as zeros
inline constexpr uint32_t kCompressAddr = 0xFFFFFFFE;  // first slot of a compressed cluster

inline constexpr uint32_t kInodeSlots = 923;  // words of i_addr
inline constexpr uint32_t kNodeSlots = 1018;  // words of a direct or indirect node
inline constexpr uint32_t kInodeNids = 5;
using gofs::kNameBytesMax;
inline constexpr uint32_t kNodeFooterOffset = 4072;
inline constexpr uint32_t kInodeAddrOffset = 360;
inline constexpr uint32_t kInodeAddrEnd = 4052;

/// File type bits of i_mode, as in POSIX.
enum FileMode : uint16_t {
  kModeTypeMask = 0170000,
  kModeSocket = 0140000,
  kModeSymlink = 0120000,
  kModeRegular = 0100000,
  kModeBlockDevice = 0060000,
  kModeDirectory = 0040000,
  kModeCharDevice = 0020000,
  kModeFifo = 0010000,
  kModePermissionMask = 07777,
  kModeSetUserId = 04000,
  kModeSetGroupId = 02000,
  kModeGroupExecutes = 010,
};

/// Bits of i_advise.
enum Advise : uint8_t {
  kAdviseCold = 0x1,
  kAdviseLostPino = 0x2,
  kAdviseEncrypted = 0x4,
  kAdviseEncryptedName = 0x8,
  kAdviseKeepSize = 0x10,
  kAdviseHot = 0x20,
  kAdviseVerity = 0x40,
};

/// Bits of i_inline.
enum InlineFlag : uint8_t {
  kInlineXattr = 0x1,
  kInlineData = 0x2,
  kInlineDentry = 0x4,
  kInlineDataExist = 0x8,
  kInlineDots = 0x10,
  kInlineExtraAttr = 0x20,
  kInlinePinned = 0x40,
  kInlineCompressReleased = 0x80,
};

/// Bits of i_flags.
enum InodeFlag : uint32_t {
  kFlagCompressed = 0x4,
  kFlagSync = 0x8,
  kFlagImmutable = 0x10,
  kFlagAppend = 0x20,
  kFlagNoDump = 0x40,
  kFlagNoAtime = 0x80,
  kFlagIndexedDir = 0x1000,
  kFlagDirSync = 0x10000,
  kFlagProjectInherit = 0x20000000,
  kFlagCasefold = 0x40000000,
};

struct Extent {
  le32 fofs;
  le32 blk_addr;
  le32 len;  // 0: no hint
};
static_assert(sizeof(Extent) == 12);

struct Inode {
  le16 i_mode;
  uint8_t i_advise;
  uint8_t i_inline;
  le32 i_uid;
  le32 i_gid;
  le32 i_links;
  le64 i_size;
  le64 i_blocks;  // in 4 KiB, nodes and the inode itself included
  sle64 i_atime;
  sle64 i_ctime;
  sle64 i_mtime;
  le32 i_atime_nsec;
  le32 i_ctime_nsec;
  le32 i_mtime_nsec;
  le32 i_generation;
  le32 i_current_depth;  // directories: hash levels in use
  le32 i_xattr_nid;
  le32 i_flags;
  le32 i_pino;
  le32 i_namelen;
  uint8_t i_name[kNameBytesMax];
  uint8_t i_dir_level;
  Extent i_ext;
  le32 i_addr[kInodeSlots];
  le32 i_nid[kInodeNids];
};
static_assert(sizeof(Inode) == kNodeFooterOffset && alignof(Inode) == 1);
static_assert(offsetof(Inode, i_size) == 16 && offsetof(Inode, i_atime) == 32 &&
              offsetof(Inode, i_atime_nsec) == 56 && offsetof(Inode, i_generation) == 68 &&
              offsetof(Inode, i_current_depth) == 72 && offsetof(Inode, i_pino) == 84 &&
              offsetof(Inode, i_name) == 92 && offsetof(Inode, i_dir_level) == 347 &&
              offsetof(Inode, i_ext) == 348 && offsetof(Inode, i_addr) == kInodeAddrOffset &&
              offsetof(Inode, i_nid) == kInodeAddrEnd);

/// Takes the place of the first i_addr words when kInlineExtraAttr is set. A field counts only if
/// it ends within i_extra_isize (see has_extra_field).
struct ExtraAttr {
  le16 i_extra_isize;        // bytes of this structure in use, multiple of 4
  le16 i_inline_xattr_size;  // words
  le32 i_projid;
  le32 i_inode_checksum;
  le64 i_crtime;
  le32 i_crtime_nsec;
  le64 i_compr_blocks;
  uint8_t i_compress_algorithm;
  uint8_t i_log_cluster_size;
  le16 i_compress_flag;
};
static_assert(sizeof(ExtraAttr) == 36 && offsetof(ExtraAttr, i_inode_checksum) == 8 &&
              offsetof(ExtraAttr, i_crtime) == 12 && offsetof(ExtraAttr, i_compr_blocks) == 24);

struct DirectNode {
  le32 addr[kNodeSlots];
};
struct IndirectNode {
  le32 nid[kNodeSlots];
};

/// Bits of NodeFooter::flag; the node's offset in its inode's tree is above them.
enum NodeFlag : uint32_t {
  kNodeCold = 0x1,  // every node of a non-directory
  kNodeFsync = 0x2,
  kNodeDentry = 0x4,
};
inline constexpr uint32_t kNodeOffsetShift = 3;
/// Node offset of an xattr node.
inline constexpr uint32_t kXattrNodeOffset = 0x1FFFFFFF;

struct NodeFooter {
  le32 nid;
  le32 ino;
  le32 flag;
  le64 cp_ver;  // version of the last committed checkpoint, and its sum above it
  le32 next_blkaddr;

  GOFS_HD uint32_t node_offset() const { return static_cast<uint32_t>(flag) >> kNodeOffsetShift; }
};
static_assert(sizeof(NodeFooter) == 24 && offsetof(NodeFooter, cp_ver) == 12 &&
              offsetof(NodeFooter, next_blkaddr) == 20);

struct NodeBlock {
  union {
    Inode inode;
    DirectNode direct;
    IndirectNode indirect;
    uint8_t xattrs[kNodeFooterOffset];
  };
  NodeFooter footer;
};
static_assert(sizeof(NodeBlock) == kBlockBytes && offsetof(NodeBlock, footer) == kNodeFooterOffset);

}  // namespace gofs::format
