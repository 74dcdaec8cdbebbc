// SPDX-License-Identifier: Apache-2.0
//
// Writes a whole volume once, front to back: six append-only logs, the tables that describe them,
// one checkpoint. No reading, no freeing, no second checkpoint. mkfs.h and image_builder.h stand on
// it.
//
// Use: begin(), then any mixture of allocate_nid, reserve/commit and write_node, then finish(). The
// target holds a volume only after finish(); until then its superblocks are zero. Memory: one
// segment per log in use, 8 bytes per node, 8 per segment in use.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "format/f2fs.h"
#include "format/volume_plan.h"
#include "host/image/image_target.h"
#include "host/image/volume_options.h"

namespace gofs::image {

/// Whether a volume of this size and kind can be made. Writes nothing.
/// Errors: EINVAL (label, features), EOPNOTSUPP (features), ENOSPC and EFBIG (size).
Status check_request(uint64_t size_bytes, const VolumeOptions& options);

/// EEXIST if the target holds an F2FS volume.
Status refuse_existing_volume(ImageTarget& target);

class VolumeWriter {
 public:
  /// `target` outlives the writer.
  explicit VolumeWriter(ImageTarget& target) : target_(target) {}

  /// Divides the target, and clears what must read as zeros.
  /// Errors: those of check_request, and of refuse_existing_volume unless options.overwrite.
  Status begin(const VolumeOptions& options);

  const format::Geometry& geometry() const { return plan_.geometry; }
  uint32_t feature() const { return plan_.geometry.feature; }
  int64_t time_s() const { return time_s_; }
  uint64_t free_block_count() const { return plan_.user_block_count - valid_block_count_; }

  /// A node id, never given before; 0 when the NAT is full.
  uint32_t allocate_nid();

  /// Room at the head of a log, to be filled by the caller: blocks and their summary entries.
  struct Space {
    uint32_t address;
    uint32_t count;  // 1 to what was asked for
    uint8_t* memory;
    format::SummaryEntry* summaries;
  };
  /// Takes nothing yet: commit() does, for the first `count` blocks of the last reserve() of that
  /// log.
  Space reserve(format::Log log, uint32_t count_max);
  /// Errors: ENOSPC; the target's.
  Status commit(format::Log log, uint32_t count);

  /// What a node block's footer and place depend on.
  struct NodeIdentity {
    uint32_t nid;
    uint32_t ino;
    uint32_t node_offset;
    bool of_directory;
    bool indirect;  // holds nids
  };
  /// Completes footer and checksum of a node block and appends it to the log of its kind.
  Status write_node(const NodeIdentity& identity, format::NodeBlock* block);

  /// Gives an inode that was written earlier further links.
  Status add_links(uint32_t ino, uint32_t count);

  /// Counts blocks that are reserved (kNewAddr) and lie nowhere. Errors: ENOSPC.
  Status count_reserved(uint64_t count);

  /// Writes everything that is left: the volume is valid when this returns.
  Status finish();

 private:
  struct OpenLog {
    uint32_t segno = 0;
    uint32_t used = 0;            // blocks committed
    std::vector<uint8_t> blocks;  // a segment, empty until the log is first used
    format::SummaryBlock summary{};
  };
  struct Segment {
    uint16_t valid_count;
    uint16_t type;
  };
  struct Node {
    uint32_t ino;
    uint32_t address;
  };

  Status clear_tables();
  void fill_superblock(const VolumeOptions& options);
  Status write_block(uint64_t block, const void* data);
  Status write_segment(const OpenLog& log);
  void open_segment(uint32_t log);
  Status write_sit();
  Status write_nat();
  Status write_pack(uint32_t pack, uint64_t version);
  void fill_checkpoint(uint64_t version, uint8_t* block) const;
  Status write_superblocks();

  ImageTarget& target_;
  format::VolumePlan plan_{};
  format::Superblock superblock_{};
  bool flush_ = true;
  int64_t time_s_ = 0;
  uint64_t checkpoint_ver_ = 1;
  uint32_t checksum_seed_ = 0;
  std::array<OpenLog, format::kLogCount> logs_;
  std::vector<Segment> segments_;  // in use; all later ones are free
  std::vector<Node> nodes_;        // by nid
  uint64_t valid_block_count_ = 0;
  uint32_t valid_node_count_ = 0;
  uint32_t valid_inode_count_ = 0;
};

}  // namespace gofs::image
