// SPDX-License-Identifier: Apache-2.0
//
// As many different files open at the same time as a GPU has threads, with the tables that a mount
// has by default: what they take of memory, and that none is refused. On a GPU each thread opens
// one of its own and writes to it (tests/gpu/device_openers_test.cu).
#include <cstring>

#include "vfs/changes_for_test.hpp"
#include "vfs/memory_use.h"

namespace gofs::vfs {
namespace {

using simt::MemoryPart;

constexpr uint32_t kManyFiles = 5000;

TestImage::Fill many_files() {
  return [](image::ImageBuilder& builder) {
    image::Directory many;
    TestImage::must(builder.add_directory(builder.root(), "many", {}, {}, &many));
    for (uint32_t i = 0; i < kManyFiles; ++i) {
      const std::string name = std::to_string(i);
      image::FileSpec file;
      file.name = name;
      TestImage::must(builder.add_file(many, file));
    }
  };
}

VolumeRigOptions usual_tables() {
  VolumeRigOptions options;
  options.filesystem = FilesystemOptions{};
  options.filesystem.cache_pages = 1024;  // too few for the nodes of all files
  return options;
}

uint64_t bytes_of_open_files(const simt::MemoryBytes& bytes) {
  return bytes[static_cast<size_t>(MemoryPart::kDescriptors)] +
         bytes[static_cast<size_t>(MemoryPart::kOpenInodes)] +
         bytes[static_cast<size_t>(MemoryPart::kRangeLocks)];
}

class ManyWrittenFiles : public ChangesTest {
 protected:
  ManyWrittenFiles() : ChangesTest(many_files(), usual_tables(), 0, uint64_t{256} << 20) {}

  MemoryUse use() {
    MemoryUse use{};
    run_alone(width(), [&](const simt::Warp& warp) {
      MemoryUse mine;
      count_memory(warp, fs(), mine);
      if (warp.thread_rank() == 0) use = mine;
    });
    return use;
  }
};
INSTANTIATE_TEST_SUITE_P(width, ManyWrittenFiles, ::testing::Values(1u),
                         ::testing::PrintToStringParamName());

TEST_P(ManyWrittenFiles, each_is_open_and_written_by_default) {
  EXPECT_LE(bytes_of_open_files(writing_->rig().arena().space().bytes_by_part()),
            uint64_t{64} << 20);
  std::vector<int> fds(kManyFiles);
  run_crowd({4, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t i = index; i < kManyFiles; i += 4) {
      const std::string path = "/many/" + std::to_string(i);
      fds[i] = open(warp, fs(), path.c_str(), kOpenReadWrite);
      ASSERT_GE(fds[i], 0) << path;
      ASSERT_EQ(pwrite(warp, fs(), fds[i], &i, sizeof(i), 0), int64_t{sizeof(i)}) << path;
    }
  });
  const MemoryUse open_now = use();
  const auto part = [&](MemoryPart one) { return open_now.parts[static_cast<size_t>(one)]; };
  EXPECT_EQ(part(MemoryPart::kDescriptors), kManyFiles * sizeof(Descriptor));
  EXPECT_EQ(part(MemoryPart::kRangeLocks), kManyFiles * sizeof(RangeLock)) << "and no ring";
  run_alone(width(), [&](const simt::Warp& warp) {
    for (uint32_t i = 0; i < kManyFiles; ++i) {
      uint32_t found = 0;
      ASSERT_EQ(pread(warp, fs(), fds[i], &found, sizeof(found), 0), int64_t{sizeof(found)});
      ASSERT_EQ(found, i);
      ASSERT_EQ(close(warp, fs(), fds[i]), 0);
    }
  });
  EXPECT_EQ(use().parts[static_cast<size_t>(MemoryPart::kRangeLocks)], 0u);
}

TEST(OpenFilesMemory, a_million_take_at_most_a_gibibyte_and_few_take_no_more_than_before) {
  struct Case {
    uint32_t descriptors;
    uint64_t bytes_max;
  };
  const Case cases[] = {{1, 16 << 10},
                        {64, 64 * 6944},
                        {4096, 4096 * 6944},
                        {65'536, uint64_t{64} << 20},
                        {FilesystemOptions{}.descriptors, uint64_t{64} << 20},
                        {1'000'000, uint64_t{1} << 30}};
  for (const Case& one : cases) {
    simt::HostMemorySpace space;
    FilesystemOptions options;
    options.descriptors = one.descriptors;
    options.cache_pages = 64;
    const FilesystemMemory memory(space, nvme::Array{}, options);
    EXPECT_LE(bytes_of_open_files(space.bytes_by_part()), one.bytes_max + (64 << 10))
        << one.descriptors;
    const Filesystem& fs = *memory.filesystem();
    EXPECT_GE(fs.open_inode_set_count * kOpenInodeWays, one.descriptors + one.descriptors / 4);
    EXPECT_GE(fs.range_rings->count, simt::min(one.descriptors, 2048u));
  }
}

// Each has the lock of its own file, all at once.
TEST(OpenFilesMemory, of_65536_files_each_is_open_and_locked_by_default_without_a_ring) {
  constexpr uint32_t kOpen = 65'536;
  simt::HostMemorySpace space;
  FilesystemOptions options;
  options.cache_pages = 64;
  const FilesystemMemory memory(space, nvme::Array{}, options);
  Filesystem& fs = *memory.filesystem();
  const simt::Warp warp;
  std::vector<RangeHold> holds(kOpen);
  std::vector<uint32_t> indices(kOpen);
  f2fs::Inode inode{};
  inode.mode = format::kModeFifo;
  for (uint32_t i = 0; i < kOpen; ++i) {
    ASSERT_EQ(take_number(fs.descriptor_numbers) < 0, false);
    inode.ino = 3 + i * 7;
    indices[i] = static_cast<uint32_t>(detail::acquire_open_inode(fs, inode));
    ASSERT_EQ(lock_exclusive(warp, fs.open_inodes[indices[i]].lock, {0, 100},
                             simt::Deadline::after_ns(0), holds[i]),
              0);
  }
  EXPECT_EQ(fs.range_rings->hand, 0u) << "none was looked for";
  // Some numbers are left for others.
  uint32_t left = 0;
  while (take_number(fs.descriptor_numbers) >= 0) ++left;
  EXPECT_EQ(left, options.descriptors - kOpen);
  EXPECT_GE(left, 1000u);
  for (uint32_t i = 0; i < kOpen; ++i) {
    unlock_exclusive(warp, fs.open_inodes[indices[i]].lock, holds[i]);
    EXPECT_EQ(fs.open_inodes[indices[i]].lock.turns, 0u);
    detail::release_open_inode(fs, indices[i]);
  }
}

// What finds its home full lies nearby, so that a search for what is not there does not go through
// all places.
TEST(OpenFilesMemory, who_finds_a_full_home_looks_no_further_than_where_its_inodes_are) {
  simt::HostMemorySpace space;
  FilesystemOptions options;
  options.descriptors = 4096;
  options.cache_pages = 64;
  const FilesystemMemory memory(space, nvme::Array{}, options);
  Filesystem& fs = *memory.filesystem();
  const uint32_t home = detail::home_of(fs, 77);
  std::vector<uint32_t> indices;
  f2fs::Inode inode{};
  inode.mode = format::kModeFifo;
  for (uint32_t ino = 5; indices.size() < 20; ++ino) {
    if (detail::home_of(fs, ino) != home) continue;
    inode.ino = ino;
    indices.push_back(static_cast<uint32_t>(detail::acquire_open_inode(fs, inode)));
  }
  EXPECT_EQ(fs.open_inode_sets[home].elsewhere, 12u);
  EXPECT_EQ(fs.open_inode_sets[home].reach, 20u);
  for (const uint32_t index : indices) detail::release_open_inode(fs, index);
  EXPECT_EQ(fs.open_inode_sets[home].elsewhere, 0u);
}

}  // namespace
}  // namespace gofs::vfs
