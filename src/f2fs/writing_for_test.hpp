// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a mounted volume that is written to, and what fsck.f2fs says of it afterwards.
#pragma once

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <vector>

#include "f2fs/operation.h"
#include "f2fs/read.h"
#include "f2fs/write.h"
#include "f2fs/writer_layout.h"
#include "host/image/fsck_for_test.h"
#include "ssd/power_cut.h"
#include "testing/volume_rig.hpp"

namespace gofs::f2fs {

class WritingRig {
 public:
  WritingRig(testing::TestImage& image, uint32_t width,
             const testing::VolumeRigOptions& options = {})
      : rig_(image, options), width_(width) {
    rig_.mount_ready(width);
    memory_ = std::make_unique<WriterMemory>(rig_.arena().space(), rig_.volume().geometry);
  }
  WriteResult begin() {
    WriteResult result{};
    testing::run_alone(width_, [&](const simt::Warp& warp) {
      const WriteResult mine = begin_writing(warp, volume(), writer());
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
    return result;
  }
  testing::VolumeRig& rig() { return rig_; }
  Volume& volume() { return rig_.volume(); }
  Writer& writer() { return *memory_->writer(); }

 private:
  testing::VolumeRig rig_;
  const uint32_t width_;
  std::unique_ptr<WriterMemory> memory_;
};

/// What a file should hold.
class FileModel {
 public:
  uint64_t size() const { return size_; }
  void write(uint64_t offset, const uint8_t* source, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; ++i) at(offset + i) = source[i];
    size_ = std::max(size_, offset + bytes);
  }
  void resize(uint64_t bytes) {
    punch(bytes, std::max(size_, bytes));
    size_ = bytes;
  }
  void punch(uint64_t from, uint64_t to) {
    for (auto block = blocks_.begin(); block != blocks_.end();) {
      const uint64_t start = block->first * kBlockBytes;
      const uint64_t first = std::clamp<uint64_t>(from, start, start + kBlockBytes) - start;
      const uint64_t last = std::clamp<uint64_t>(to, start, start + kBlockBytes) - start;
      if (last > first) std::fill_n(block->second.begin() + first, last - first, uint8_t{0});
      block = first == 0 && last == kBlockBytes ? blocks_.erase(block) : std::next(block);
    }
  }
  /// The block's bytes; null: all zeros.
  const uint8_t* block(uint64_t index) const {
    const auto found = blocks_.find(index);
    return found == blocks_.end() ? nullptr : found->second.data();
  }
  const std::map<uint64_t, std::vector<uint8_t>>& blocks() const { return blocks_; }

 private:
  uint8_t& at(uint64_t offset) {
    std::vector<uint8_t>& block = blocks_[offset / kBlockBytes];
    block.resize(kBlockBytes);
    return block[offset % kBlockBytes];
  }

  uint64_t size_ = 0;
  std::map<uint64_t, std::vector<uint8_t>> blocks_;
};

/// An inode that all lanes of all warps share, as an open file's.
inline Inode load_inode(WritingRig& writing, uint32_t ino) {
  Inode inode{};
  testing::run_alone(1, [&](const simt::Warp& warp) {
    EXPECT_EQ(load_inodes(warp, writing.volume(), 1u, ino, inode), 0) << ino;
  });
  return inode;
}

/// The part of [offset, offset + bytes) that lies in the lane's block of the round that begins with
/// block `first`. Its source may be null.
inline WritePiece piece_of_range(const simt::Warp& warp, uint64_t first, uint64_t offset,
                                 uint64_t bytes, const uint8_t* source) {
  const uint64_t start = (first + warp.thread_rank()) * kBlockBytes;
  const uint64_t from = std::clamp(offset, start, start + kBlockBytes);
  const uint64_t to = std::clamp(offset + bytes, start, start + kBlockBytes);
  return {from, static_cast<uint32_t>(to - from),
          source == nullptr ? nullptr : source + (from - std::min(from, offset))};
}

/// Writes a range as one warp, each round an operation of its own. Collective. 0 or the first
/// error; `done` hears how many bytes were written.
inline int write_range(const simt::Warp& warp, WritingRig& writing, Inode& inode, uint64_t offset,
                       uint64_t bytes, const uint8_t* source, const TimeStamp& now,
                       uint64_t* done = nullptr) {
  Volume& volume = writing.volume();
  Writer& writer = writing.writer();
  const PagePool& pool = writing.rig().fs().pool;
  Operation operation{};
  int error = begin_operation(warp, volume, writer, kPagesToPrepareWrite, operation);
  if (error < 0) return error;
  error = prepare_write(warp, volume, writer, pool, inode, offset, offset + bytes, now);
  end_operation(warp, writer, operation);
  const uint64_t blocks_end = simt::divide_up(offset + bytes, kBlockBytes);
  for (uint64_t first = offset / kBlockBytes; error == 0 && first < blocks_end;
       first += warp.size()) {
    const WritePiece piece = piece_of_range(warp, first, offset, bytes, source);
    error = begin_operation(warp, volume, writer, kPagesToWriteRun, operation);
    if (error < 0) return error;
    error =
        write_pieces(warp, volume, writer, pool, warp.ballot(piece.bytes != 0), inode, piece, now);
    end_operation(warp, writer, operation);
    if (error == 0 && done != nullptr && warp.thread_rank() == 0) {
      *done = std::min(offset + bytes, (first + warp.size()) * kBlockBytes) - offset;
    }
  }
  return error;
}
/// By one warp that does nothing else.
inline int write_alone(WritingRig& writing, uint32_t width, Inode& inode, uint64_t offset,
                       const std::vector<uint8_t>& bytes, const TimeStamp& now = {1, 2}) {
  int result = 0;
  testing::run_alone(width, [&](const simt::Warp& warp) {
    const int mine = write_range(warp, writing, inode, offset, bytes.size(), bytes.data(), now);
    if (warp.thread_rank() == 0) result = mine;
  });
  return result;
}

/// Whether a file has the size and the bytes of `model`: in the blocks that the model has, those
/// beside them, and the last one.
inline ::testing::AssertionResult file_is(WritingRig& writing, uint32_t width, const Inode& inode,
                                          const FileModel& model) {
  if (inode.size_bytes != model.size()) {
    return ::testing::AssertionFailure()
           << "ino " << inode.ino << " has " << inode.size_bytes << " bytes, not " << model.size();
  }
  std::vector<uint64_t> indexes;
  for (const auto& [index, bytes] : model.blocks()) {
    for (const uint64_t near : {index == 0 ? 0 : index - 1, index, index + 1}) {
      if (indexes.empty() || near > indexes.back()) indexes.push_back(near);
    }
  }
  if (model.size() != 0) indexes.push_back((model.size() - 1) / kBlockBytes);
  std::vector<uint8_t> buffer(width * size_t{kBlockBytes});
  std::atomic<uint64_t> wrong{~uint64_t{0}};
  testing::run_alone(width, [&](const simt::Warp& warp) {
    for (size_t first = 0; first < indexes.size(); first += warp.size()) {
      const size_t i = first + warp.thread_rank();
      const uint64_t offset = i < indexes.size() ? indexes[i] * kBlockBytes : ~uint64_t{0};
      const bool mine = offset < model.size();
      const auto bytes =
          static_cast<uint32_t>(mine ? std::min<uint64_t>(model.size() - offset, kBlockBytes) : 0);
      uint8_t* const to = buffer.data() + size_t{warp.thread_rank()} * kBlockBytes;
      const int error = read_pieces(warp, writing.volume(), writing.rig().fs().pool,
                                    warp.ballot(mine), inode, Piece{offset, bytes, to});
      bool right = error == 0;
      for (uint32_t k = 0; mine && right && k < bytes; ++k) {
        const uint8_t* const block = model.block(offset / kBlockBytes);
        right = to[k] == (block == nullptr ? 0 : block[k]);
        if (!right) wrong = offset + k;
      }
      if (mine && error < 0) wrong = offset;
      warp.sync();
    }
  });
  if (wrong == ~uint64_t{0}) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "ino " << inode.ino << " is wrong at byte " << wrong << " of " << model.size();
}

/// The inodes of a volume that nobody has written to since it was built.
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
inline void put_back(testing::TestImage& image, const std::vector<uint8_t>& before,
                     const ssd::WriteTrace& trace) {
  for (const ssd::LoggedCommand& command : trace.commands) {
    std::copy_n(before.begin() + static_cast<ptrdiff_t>(command.offset), command.bytes,
                image.data() + command.offset);
  }
}

/// `torn`: one of the packs may be half written, which fsck mentions.
inline ::testing::AssertionResult fsck_likes(testing::TestImage& image, bool torn = false) {
  const image::TemporaryPath file;
  std::ofstream(file.path(), std::ios::binary)
      .write(reinterpret_cast<const char*>(image.data()),
             static_cast<std::streamsize>(image.bytes()));
  return image::fsck_is_clean(file.path(), torn ? "Invalid CP CRC" : "");
}

}  // namespace gofs::f2fs
