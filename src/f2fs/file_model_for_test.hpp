// SPDX-License-Identifier: Apache-2.0
//
// For tests only: files that are written to, and models in memory of what they should hold.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "f2fs/begin_operation.h"
#include "f2fs/read.h"
#include "f2fs/write.h"
#include "f2fs/writing_for_test.hpp"
#include "testing/hold_alone.hpp"

namespace gofs::f2fs {

/// What a file should hold.
class FileModel {
 public:
  uint64_t size() const { return size_; }
  void write(uint64_t offset, const uint8_t* source, uint64_t bytes) {
    size_ = std::max(size_, offset + bytes);
    while (bytes != 0) {
      const uint64_t in_block = offset % kBlockBytes;
      const uint64_t part = std::min(bytes, kBlockBytes - in_block);
      std::vector<uint8_t>& block = blocks_[offset / kBlockBytes];
      block.resize(kBlockBytes);
      std::copy_n(source, part, block.begin() + in_block);
      offset += part;
      source += part;
      bytes -= part;
    }
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
/// error; `done` is called with the number of bytes written.
inline int write_range(const simt::Warp& warp, WritingRig& writing, Inode& inode, uint64_t offset,
                       uint64_t bytes, const uint8_t* source, const TimeStamp& now,
                       uint64_t* done = nullptr) {
  Volume& volume = writing.volume();
  Writer& writer = writing.writer();
  const PagePool& pool = writing.rig().fs().pool;
  OperationSlot operation;
  int error = begin_operation(
      warp, {volume, writer, &pool}, kPagesToPrepareWrite, [&] { return now; }, operation);
  if (error < 0) return error;
  error = prepare_write(warp, *operation, testing::hold_alone(inode), offset, offset + bytes);
  end_operation(warp, operation);
  const uint64_t blocks_end = simt::divide_up(offset + bytes, kBlockBytes);
  for (uint64_t first = offset / kBlockBytes; error == 0 && first < blocks_end;
       first += warp.size()) {
    const WritePiece piece = piece_of_range(warp, first, offset, bytes, source);
    error = begin_operation(
        warp, {volume, writer, &pool}, kPagesToWriteRun, [&] { return now; }, operation);
    if (error < 0) return error;
    error = write_pieces(warp, *operation, warp.ballot(piece.bytes != 0),
                         testing::hold_alone(inode), piece);
    end_operation(warp, operation);
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
  static const std::vector<uint8_t> kZeros(kBlockBytes);
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
      if (mine && error < 0) wrong = offset;
      if (mine && error == 0) {
        const uint8_t* const block = model.block(offset / kBlockBytes);
        const uint8_t* const right = block == nullptr ? kZeros.data() : block;
        const uint8_t* const differs = std::mismatch(to, to + bytes, right).first;
        if (differs != to + bytes) wrong = offset + (differs - to);
      }
      warp.sync();
    }
  });
  if (wrong == ~uint64_t{0}) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "ino " << inode.ino << " is wrong at byte " << wrong << " of " << model.size();
}

/// A file of the image, and what it holds there.
struct WrittenFile {
  const char* name;
  uint64_t bytes;
  bool inlined;
  bool inline_xattr;
  std::vector<image::FileRange> ranges;
};

inline const std::vector<WrittenFile>& written_files() {
  static const std::vector<WrittenFile> files = {
      {"empty", 0, false, true, {}},
      {"inline", 700, true, true, {}},
      {"inline too", 3000, true, false, {}},
      {"inline empty", 0, true, true, {}},
      {"some", 40 * 4096 + 123, false, false, {}},
      {"sparse", 60 * 4096 + 1, false, true, {{0, 1}, {7, 5}, {20, 4, true}, {60, 1}}},
  };
  return files;
}

inline void fill_with_written(image::ImageBuilder& builder) {
  for (size_t i = 0; i < written_files().size(); ++i) {
    const WrittenFile& one = written_files()[i];
    image::FileSpec file;
    file.name = one.name;
    file.size_bytes = one.bytes;
    file.inline_data = one.inlined;
    file.inline_xattr = one.inline_xattr;
    file.sparse = !one.ranges.empty();
    file.ranges = one.ranges;
    file.content = image::pattern_content(i);
    testing::TestImage::must(builder.add_file(builder.root(), file));
  }
}

inline FileModel model_of_written(size_t i) {
  const WrittenFile& one = written_files()[i];
  FileModel model;
  model.resize(one.bytes);
  std::vector<image::FileRange> ranges = one.ranges;
  if (ranges.empty()) ranges = {{0, static_cast<uint32_t>(one.bytes / kBlockBytes + 1)}};
  for (const image::FileRange& range : ranges) {
    const uint64_t from = uint64_t{range.first_block} * kBlockBytes;
    const uint64_t to = std::min(one.bytes, from + uint64_t{range.block_count} * kBlockBytes);
    if (range.reserved || from >= to) continue;
    std::vector<uint8_t> bytes(to - from);
    image::fill_pattern(i, from, bytes.data(), bytes.size());
    model.write(from, bytes.data(), bytes.size());
  }
  return model;
}

/// A file under test: its open inode, with maps or without, and its model.
struct OpenFileModel {
  Inode inode;
  FileModel model;
  std::unique_ptr<FileMaps> maps;
};

/// Opens a file anew, with maps if `mapped`, which it has of its first blocks from the beginning.
inline void reopen_file(WritingRig& writing, uint32_t ino, bool mapped, OpenFileModel& file) {
  file.inode = load_inode(writing, ino);
  if (!mapped) return;
  file.maps = std::make_unique<FileMaps>();
  file.inode.maps = file.maps.get();
  open_block_map(writing.volume(), *file.maps, 2'500);
}
/// All files of an image that was not written to.
inline std::vector<OpenFileModel> open_files(WritingRig& writing,
                                             const std::vector<uint32_t>& inos) {
  std::vector<OpenFileModel> files(written_files().size());
  for (size_t i = 0; i < files.size(); ++i) {
    files[i].model = model_of_written(i);
    reopen_file(writing, inos[1 + i], i % 2 == 0, files[i]);
  }
  return files;
}
inline std::vector<uint8_t> random_bytes(std::mt19937_64& random, size_t count) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(&bytes[i], &word, std::min(sizeof word, count - i));
  }
  return bytes;
}
/// Within the blocks that all levels of a tree can have, mostly at its beginning.
inline uint64_t random_offset(std::mt19937_64& random, uint64_t size) {
  const uint64_t blocks[] = {0,
                             923,
                             923 + 1018,
                             923 + 2 * 1018,
                             923 + 2 * 1018 + 700 * 1018,
                             923 + 2 * 1018 + 2 * 1018 * 1018 - 2};
  const uint64_t random_byte = random() % (20 * kBlockBytes);
  const uint64_t block = blocks[random() % std::size(blocks)];
  switch (random() % 8) {
    case 0:
      return block * kBlockBytes + random_byte - std::min(random_byte, block * 4096) / 2;
    case 1:
      return size;
    case 2:
      return size + random() % 9000;
    case 3:
      return random() % 3000;
    default:
      return random() % (std::min<uint64_t>(size, 300 * kBlockBytes) + 1);
  }
}
inline void expect_files(WritingRig& writing, uint32_t width,
                         const std::vector<OpenFileModel>& files) {
  for (const OpenFileModel& file : files) {
    EXPECT_TRUE(file_is(writing, width, file.inode, file.model));
    const Inode fresh = load_inode(writing, file.inode.ino);
    EXPECT_EQ(fresh.block_count, file.inode.block_count);
    EXPECT_EQ(fresh.inline_flags, file.inode.inline_flags);
    EXPECT_TRUE(file_is(writing, width, fresh, file.model));
  }
  EXPECT_EQ(count_findings(*writing.volume().corruptions), 0u);
}

}  // namespace gofs::f2fs
