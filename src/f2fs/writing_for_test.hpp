// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a mounted volume that is written to, and what fsck.f2fs says of it afterwards.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "f2fs/begin_writing.h"
#include "f2fs/write_checkpoint.h"
#include "f2fs/writer_layout.h"
#include "host/image/fsck_for_test.h"
#include "ssd/power_cut.h"
#include "testing/volume_rig.hpp"

namespace gofs::f2fs {

class WritingRig {
 public:
  WritingRig(testing::TestImage& image, uint32_t width,
             const testing::VolumeRigOptions& options = {}, const WriterOptions& writing = {})
      : rig_(image, options), width_(width) {
    rig_.mount_ready(width);
    memory_ = std::make_unique<WriterMemory>(rig_.arena().space(), rig_.volume().geometry, writing);
  }
  WriteResult begin() {
    WriteResult result{};
    testing::run_alone(width_, [&](const simt::Warp& warp) {
      const int read = read_segments(warp, volume(), writer(), 0, 1);
      const WriteResult mine = begin_writing(warp, volume(), writer(), read);
      if (warp.thread_rank() == 0) result = mine;
    });
    return result;
  }
  int checkpoint(bool unmounting) {
    int result = 0;
    testing::run_alone(width_, [&](const simt::Warp& warp) {
      const int mine = write_checkpoint(warp, volume(), writer(), unmounting);
      if (warp.thread_rank() == 0) result = mine;
    });
    if (unmounting && result == 0) expect_segment_maps();
    return result;
  }
  /// The maps of segments, which checkpoints bring up to date, say what there is.
  void expect_segment_maps() {
    uint32_t free_segments = 0;
    for (uint32_t segno = 0; segno < volume().geometry.main_segments; ++segno) {
      const SegmentInfo& segment = writer().segments.segments[segno];
      const bool empty = segment.valid_count == 0;
      EXPECT_EQ(detail::segment_bit(writer().empty_map, segno), empty) << segno;
      uint32_t committed = 0;
      for (const uint32_t word : segment.committed) committed |= word;
      const bool free = empty && committed == 0 && !detail::is_written_to(writer(), segno) &&
                        !detail::is_cleaned(writer(), segno);
      EXPECT_EQ(detail::segment_bit(writer().free_map, segno), free) << segno;
      free_segments += free ? 1 : 0;
    }
    EXPECT_EQ(writer().free_count, free_segments);
  }
  testing::VolumeRig& rig() { return rig_; }
  Volume& volume() { return rig_.volume(); }
  Writer& writer() { return *memory_->writer(); }
  /// Blocks of the main area that hold something: of each segment as many as it counts.
  uint64_t valid_blocks() {
    uint64_t sum = 0;
    for (uint32_t segno = 0; segno < volume().geometry.main_segments; ++segno) {
      const SegmentInfo& segment = writer().segments.segments[segno];
      uint32_t bits = 0;
      for (const uint32_t word : segment.valid) bits += simt::popcount(word);
      EXPECT_EQ(bits, segment.valid_count) << segno;
      sum += bits;
    }
    return sum;
  }

 private:
  testing::VolumeRig rig_;
  const uint32_t width_;
  std::unique_ptr<WriterMemory> memory_;
};

/// The inodes of a volume that was not written to since it was built.
inline std::vector<uint32_t> inodes_of(testing::TestImage& image) {
  constexpr uint32_t kMoreThanAnyTestHas = 2000;
  std::vector<uint32_t> inos;
  for (uint32_t nid = format::kRootIno; nid < kMoreThanAnyTestHas; ++nid) {
    const format::NatEntry& entry = image.nat_entry(nid);
    if (entry.block_addr != format::kNullAddr && entry.ino == nid) inos.push_back(nid);
  }
  return inos;
}

/// Makes `image` again what it was `before` the commands of a trace.
inline void put_back(testing::TestImage& image, const testing::TestImage& before,
                     const ssd::WriteTrace& trace) {
  for (const ssd::LoggedCommand& command : trace.commands) {
    image.file().assign(before.file(), command.offset, command.bytes);
  }
}

/// `torn`: one of the packs may be half written, which fsck mentions.
inline ::testing::AssertionResult fsck_likes(const testing::TestImage& image, bool torn = false) {
  return image::fsck_is_clean(image.file().path(), torn ? "Invalid CP CRC" : "");
}

}  // namespace gofs::f2fs
