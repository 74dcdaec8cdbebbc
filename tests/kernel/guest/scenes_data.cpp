// SPDX-License-Identifier: Apache-2.0
//
// File contents: every border of the node tree from both sides, holes, reserved blocks, fragments.
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ops.h"
#include "scenes.h"

namespace gofs::judge {
namespace {

constexpr int64_t kPointers = 1018;  // in a direct or indirect node
constexpr int64_t kSquare = kPointers * kPointers;
// Data slots of an inode: with and without inline attributes, with and without extra attributes.
constexpr int64_t kInodeSlots[] = {864, 873, 914, 923};

void must(bool has_room, const std::string& what) {
  if (!has_room) {
    errno = ENOSPC;
    die(what);
  }
}

/// First file block of each part of the node tree for an inode with `slots` data slots: the two
/// direct nodes, the two indirect nodes, the double indirect one.
std::vector<int64_t> tree_borders(int64_t slots) {
  const int64_t first_indirect = slots + 2 * kPointers;
  return {slots, slots + kPointers, first_indirect, first_indirect + kSquare,
          first_indirect + 2 * kSquare};
}

/// The largest size that the kernel lets this file have.
int64_t largest_size(int fd) {
  int64_t good = 0;
  int64_t bad = int64_t{1} << 45;
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    if (::ftruncate(fd, middle) == 0) {
      good = middle;
    } else {
      if (errno != EFBIG) die("ftruncate to " + std::to_string(middle));
      bad = middle;
    }
  }
  check(::ftruncate(fd, 0), "ftruncate");
  return good;
}

/// Writes a little across each of the borders of the tree, and into its far corners.
void write_across_borders(int fd, int64_t slots, int64_t size_max, Random& random) {
  std::vector<int64_t> blocks = {0, 1, slots - 1};
  for (const int64_t border : tree_borders(slots)) blocks.push_back(border);
  const int64_t first_indirect = tree_borders(slots)[2];
  const int64_t double_indirect = tree_borders(slots)[4];
  for (const int64_t i : {int64_t{1}, kPointers / 2, kPointers - 1}) {
    blocks.push_back(first_indirect + i * kPointers);
    blocks.push_back(first_indirect + kSquare + i * kPointers);
    blocks.push_back(double_indirect + i * kPointers);
    blocks.push_back(double_indirect + i * kSquare);
  }
  for (const int64_t block : blocks) {
    const int64_t offset = std::max<int64_t>(0, block * kBlock - 100);
    if (offset + 300 > size_max) continue;
    must(write_at(fd, content(300, random.next()), offset), "no room to write across borders");
  }
}

void edge_files(const std::string& name, int64_t size, Random& random) {
  const std::string data = content(static_cast<size_t>(size), random.next());
  {
    const Fd file = open_or_die("edges/" + name + "_once", O_CREAT | O_WRONLY);
    must(write_at(file.get(), data, 0), name);
  }
  {  // One byte, and a hole to the end.
    const Fd file = open_or_die("edges/" + name + "_hole", O_CREAT | O_WRONLY);
    if (size > 0) must(write_at(file.get(), "x", size / 2), name);
    check(::ftruncate(file.get(), size), "ftruncate");
  }
  {  // Larger at first. What is beyond the new end must not come back when it grows again.
    const Fd file = open_or_die("edges/" + name + "_cut", O_CREAT | O_WRONLY);
    must(write_at(file.get(), content(static_cast<size_t>(size) + 6000, random.next()), 0), name);
    check(::ftruncate(file.get(), size), "ftruncate");
  }
  {
    const Fd file = open_or_die("edges/" + name + "_regrown", O_CREAT | O_WRONLY);
    must(write_at(file.get(), content(static_cast<size_t>(size) + 5000, random.next()), 0), name);
    check(::ftruncate(file.get(), size), "ftruncate");
    check(::ftruncate(file.get(), size + 4500), "ftruncate");
  }
}

}  // namespace

void edges_scene(const Scene& scene) {
  Random random(scene.seed);
  make_directory("edges");
  for (const int64_t size :
       {0,    1,    2,    7,    8,     511,   512,   513,   1023,  1024,  1025,  2047,  2048, 2049,
        3451, 3452, 3453, 3487, 3488,  3489,  3651,  3652,  3653,  3687,  3688,  3689,  4095, 4096,
        4097, 8191, 8192, 8193, 12287, 12288, 12289, 32767, 32768, 32769, 65535, 65536, 65537}) {
    edge_files(padded(static_cast<uint64_t>(size), 6), size, random);
  }
  {  // Appended in pieces that fit no border, each forced out.
    const Fd file = open_or_die("edges/appended", O_CREAT | O_WRONLY);
    int64_t size = 0;
    for (int i = 0; i < 40; ++i) {
      const std::string piece = content(777, random.next());
      must(write_at(file.get(), piece, size), "append");
      size += static_cast<int64_t>(piece.size());
      if (i % 8 == 0) check(::fsync(file.get()), "fsync");
    }
  }
  if (scene.scale == 0) return;
  // The last byte just before, at and just after each border of the tree that is still near.
  for (const int64_t slots : kInodeSlots) {
    for (const int64_t border : {slots, slots + kPointers, slots + 2 * kPointers}) {
      for (const int64_t off : {-1, 0, 1}) {
        const int64_t size = border * kBlock + off;
        const Fd file = open_or_die("edges/tree" + std::to_string(size), O_CREAT | O_WRONLY);
        must(write_at(file.get(), content(5000, random.next()), size - 5000), "tree edge");
        must(write_at(file.get(), content(100, random.next()), 0), "tree edge");
      }
    }
  }
}

void sparse_scene(const Scene& scene) {
  Random random(scene.seed);
  make_directory("huge");
  int64_t size_max = 0;
  {
    const Fd file = open_or_die("huge/hole_only", O_CREAT | O_WRONLY);
    size_max = largest_size(file.get());
    check(::ftruncate(file.get(), size_max), "ftruncate");
  }
  for (const int64_t slots : kInodeSlots) {
    const Fd file = open_or_die("huge/borders" + std::to_string(slots), O_CREAT | O_WRONLY);
    write_across_borders(file.get(), slots, size_max, random);
  }
  {
    const Fd file = open_or_die("huge/last_block", O_CREAT | O_WRONLY);
    must(write_at(file.get(), content(5000, random.next()), size_max - 5000), "last block");
  }
  {
    const Fd file = open_or_die("huge/scattered", O_CREAT | O_WRONLY);
    for (int64_t i = 0; i < scene.scale; ++i) {
      const auto block =
          static_cast<int64_t>(random.below(static_cast<uint64_t>(size_max / kBlock)));
      // Every other one within 20 GiB, so that direct nodes get shared.
      const int64_t offset = (i % 2 ? block : block % (5 << 20)) * kBlock + (i % 3) * 1000;
      must(write_at(file.get(), content(random.percent(10) ? 10000 : 2000, random.next()), offset),
           "scattered");
      if (i % 50 == 49) check(::fsync(file.get()), "fsync");
    }
  }
  {  // Past 4 GiB and not sparse only: a run there, a hole after it.
    const Fd file = open_or_die("huge/five_gib", O_CREAT | O_WRONLY);
    must(write_at(file.get(), content(300000, random.next()), (int64_t{5} << 30) - 12345), "run");
    must(write_at(file.get(), content(9000, random.next()), (int64_t{4} << 30) - 4500), "run");
    check(::ftruncate(file.get(), (int64_t{6} << 30) + 123), "ftruncate");
  }
  // Whole subtrees cut off, in each part of the tree.
  int index = 0;
  for (const int64_t border : tree_borders(kInodeSlots[1])) {
    for (const int64_t off : {-1, 0, 1}) {
      const Fd file = open_or_die("huge/cut" + std::to_string(index++), O_CREAT | O_WRONLY);
      write_across_borders(file.get(), kInodeSlots[1], size_max, random);
      check(::fsync(file.get()), "fsync");
      check(::ftruncate(file.get(), border * kBlock + off), "ftruncate");
      if (off > 0) check(::ftruncate(file.get(), (border + 5 * kPointers) * kBlock), "ftruncate");
    }
  }
  {  // Holes punched over subtrees, aligned and not.
    const Fd file = open_or_die("huge/punched", O_CREAT | O_WRONLY);
    write_across_borders(file.get(), kInodeSlots[1], size_max, random);
    check(::fsync(file.get()), "fsync");
    for (const int64_t border : tree_borders(kInodeSlots[1])) {
      check(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        border * kBlock + 50, 3 * kPointers * kBlock + 77),
            "punch");
    }
  }
}

void media_scene(const Scene& scene) {
  Random random(scene.seed);
  const int64_t size = scene.scale * 1024;
  const int64_t blocks = size / kBlock;
  make_directory("media");
  must(make_file("media/sequential", static_cast<size_t>(size), random.next()), "sequential");
  {
    const Fd file = open_or_die("media/noise", O_CREAT | O_WRONLY);
    must(write_at(file.get(), noise(static_cast<size_t>(size / 8), random.next()), 0), "noise");
  }
  {  // Two that grow side by side and are forced out in turn: runs of two blocks.
    const Fd a = open_or_die("media/interleaved_a", O_CREAT | O_WRONLY);
    const Fd b = open_or_die("media/interleaved_b", O_CREAT | O_WRONLY);
    for (int64_t at = 0; at < size / 4; at += 2 * kBlock) {
      must(write_at(a.get(), content(2 * kBlock, random.next()), at), "interleaved");
      check(::fdatasync(a.get()), "fdatasync");
      must(write_at(b.get(), content(2 * kBlock, random.next()), at), "interleaved");
      check(::fdatasync(b.get()), "fdatasync");
    }
  }
  {  // Backwards by strides: no two neighbours of the file are neighbours on the volume.
    const Fd file = open_or_die("media/scrambled", O_CREAT | O_WRONLY);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t block = (i * 7919) % blocks;
      must(write_at(file.get(), content(kBlock, random.next()), block * kBlock), "scrambled");
      if (i % 32 == 31) check(::fdatasync(file.get()), "fdatasync");
    }
  }
  {
    const Fd file = open_or_die("media/overwritten", O_CREAT | O_WRONLY);
    must(write_at(file.get(), content(static_cast<size_t>(size), random.next()), 0), "overwritten");
    check(::fsync(file.get()), "fsync");
    for (int64_t i = 0; i < blocks / 4; ++i) {
      const auto at = static_cast<int64_t>(random.below(static_cast<uint64_t>(size - 9000)));
      must(write_at(file.get(), content(1 + random.below(9000), random.next()), at), "overwrite");
      if (i % 16 == 15) check(::fsync(file.get()), "fsync");
    }
  }
  {  // Every kind of fallocate, at odd places.
    const Fd file = open_or_die("media/allocated", O_CREAT | O_RDWR);
    must(write_at(file.get(), content(static_cast<size_t>(size), random.next()), 0), "allocated");
    check(::fsync(file.get()), "fsync");
    const int64_t middle = blocks / 2 * kBlock;
    check(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5000, 20000),
          "punch");
    check(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 10 * kBlock, kBlock),
          "punch");
    check(::fallocate(file.get(), FALLOC_FL_ZERO_RANGE, middle + 100, 30000), "zero range");
    check(::fallocate(file.get(), FALLOC_FL_COLLAPSE_RANGE, middle, 7 * kBlock), "collapse range");
    check(::fallocate(file.get(), FALLOC_FL_INSERT_RANGE, 3 * kBlock, 5 * kBlock), "insert range");
    check(::fallocate(file.get(), 0, size, 20 * kBlock + 5), "allocate at the end");
    must(write_at(file.get(), content(3000, random.next()), size + 8 * kBlock), "into reserved");
    check(::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, size + 40 * kBlock, 10 * kBlock),
          "allocate beyond the end");
  }
  {  // Reserved and never written: reads as zeros.
    const Fd file = open_or_die("media/reserved", O_CREAT | O_WRONLY);
    check(::fallocate(file.get(), 0, 0, 100 * kBlock + 17), "allocate");
  }
  {
    const Fd file = open_or_die("media/holes", O_CREAT | O_WRONLY);
    for (int64_t i = 0; i < blocks; i += 1 + static_cast<int64_t>(random.below(5))) {
      const auto length = static_cast<size_t>(1 + random.below(kBlock));
      must(write_at(file.get(), content(length, random.next()), i * kBlock + 1), "holes");
    }
  }
  {  // Through a mapping, some pages only.
    const Fd file = open_or_die("media/mapped", O_CREAT | O_RDWR);
    check(::ftruncate(file.get(), 64 * kBlock + 99), "ftruncate");
    void* map = ::mmap(nullptr, 65 * kBlock, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (map == MAP_FAILED) die("mmap");
    for (int64_t page = 0; page < 64; page += 3) {
      const std::string data = content(kBlock, random.next());
      std::memcpy(static_cast<char*>(map) + page * kBlock, data.data(), data.size());
    }
    check(::msync(map, 65 * kBlock, MS_SYNC), "msync");
    check(::munmap(map, 65 * kBlock), "munmap");
  }
  {
    const Fd file = open_or_die("media/direct", O_CREAT | O_WRONLY | O_DIRECT);
    const size_t length = 16 * kBlock;
    const std::unique_ptr<char, decltype(&std::free)> buffer(
        static_cast<char*>(std::aligned_alloc(kBlock, length)), &std::free);
    for (int64_t i = 0; i < 4; ++i) {
      std::memcpy(buffer.get(), content(length, random.next()).data(), length);
      must(write_at(file.get(), {buffer.get(), length}, i * 20 * kBlock), "direct");
    }
  }
}

}  // namespace gofs::judge
