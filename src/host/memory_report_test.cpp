// SPDX-License-Identifier: Apache-2.0
//
// What Volume::memory() says: the parts have all that the allocators have given out, whatever goes
// on, and what is in use follows what is done.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/tree.h"
#include "host/volume_access.h"
#include "host/volume_for_test.h"

namespace gofs {
namespace {

const MountOptions kToRead{.backend = "cpu"};
const MountOptions kToWrite{.backend = "cpu", .read_only = false};

const MemoryPartReport& part_named(const MemoryReport& report, const std::string& name) {
  for (const MemoryPartReport& part : report.parts) {
    if (part.name == name) return part;
  }
  ADD_FAILURE() << "no part " << name;
  return report.parts.front();
}

uint64_t used_by(const MemoryReport& report, const std::string& name) {
  return part_named(report, name).in_use.value_or(0);
}

CachedPages cached_of(const MemoryReport& report, const std::string& kind) {
  for (const CachedPages& pages : report.cached) {
    if (pages.kind == kind) return pages;
  }
  ADD_FAILURE() << "no kind " << kind;
  return {};
}

/// The report, whose sum is what the allocator has given out.
MemoryReport checked_memory(Volume& volume) {
  const MemoryReport report = volume.memory().value();
  uint64_t sum = 0;
  for (const MemoryPartReport& part : report.parts) {
    sum += part.bytes();
    EXPECT_EQ(part.host_bytes, 0u) << part.name;  // a CPU has one memory
    EXPECT_LE(part.in_use.value_or(0), part.bytes()) << part.name;
  }
  EXPECT_EQ(sum, report.filesystem_bytes + report.ssd_bytes);
  EXPECT_EQ(sum, host::state_of(volume).backend().memory().bytes_taken());
  return report;
}

TEST(MemoryReport, parts_have_all_that_was_allocated) {
  Volume volume = Volume::mount(host::sample_volume().path(), kToRead).value();
  const MemoryReport mounted = checked_memory(volume);
  for (const char* name : {"page_cache", "checkpoint", "names", "block_maps", "open_inodes",
                           "range_locks", "descriptors", "batches", "operations", "spare_blocks",
                           "bounces", "locks", "queues", "volume", "calls", "ssd_controller"}) {
    EXPECT_GT(part_named(mounted, name).bytes(), 0u) << name;
  }
  // An image is mapped, and who only reads needs no segments.
  EXPECT_EQ(part_named(mounted, "ssd_media").bytes(), 0u);
  EXPECT_EQ(part_named(mounted, "segments").bytes(), 0u);
  EXPECT_TRUE(part_named(mounted, "ssd_controller").of_ssd);
  EXPECT_GE(part_named(mounted, "page_cache").bytes(), uint64_t{64} << 20);
  uint64_t calls = 0;
  {
    const host::Tree tree(host::state_of(volume));
    calls = part_named(checked_memory(volume), "calls").bytes();
    EXPECT_GT(calls, part_named(mounted, "calls").bytes());
  }
  EXPECT_LT(part_named(checked_memory(volume), "calls").bytes(), calls);
}

TEST(MemoryReport, a_volume_that_is_written_to_has_more) {
  const image::TemporaryPath copy;
  const auto copied = image::run_tool("cp " + host::sample_volume().path() + " " + copy.path());
  ASSERT_EQ(copied.exit_code, 0) << copied.output;
  Volume volume = Volume::mount(copy.path(), kToWrite).value();
  const MemoryReport mounted = checked_memory(volume);
  EXPECT_GT(part_named(mounted, "segments").bytes(), 0u);
  EXPECT_GT(part_named(mounted, "writer").bytes(), 0u);
  EXPECT_TRUE(volume.mkdir("/new"));
  EXPECT_GE(cached_of(checked_memory(volume), "nodes").dirty_bytes, 2 * kBlockBytes);
  EXPECT_TRUE(volume.sync());
  const MemoryReport synced = checked_memory(volume);
  for (const CachedPages& pages : synced.cached) EXPECT_EQ(pages.dirty_bytes, 0u) << pages.kind;
  EXPECT_GE(cached_of(synced, "nodes").bytes, 2 * kBlockBytes);
  EXPECT_TRUE(volume.unmount());
  EXPECT_EQ(volume.memory().error().code, ENODEV);
}

TEST(MemoryReport, an_ssd_in_memory_is_counted_apart) {
  const auto state =
      host::VolumeState::mount("ram:16M", kToRead, host::MountKind::kDeviceOnly).value();
  const simt::MemoryBytes bytes = state->backend().memory().bytes_by_part();
  EXPECT_GE(bytes[static_cast<size_t>(simt::MemoryPart::kMedia)], uint64_t{16} << 20);
}

TEST(MemoryReport, what_is_in_use_follows_what_is_done) {
  Volume volume = Volume::mount(host::sample_volume().path(), kToRead).value();
  const int fd = volume.open("/large").value();
  const MemoryReport open_now = checked_memory(volume);
  EXPECT_GT(used_by(open_now, "descriptors"), 0u);
  EXPECT_GT(used_by(open_now, "open_inodes"), 0u);
  EXPECT_GT(used_by(open_now, "range_locks"), 0u);
  // 4 bytes for each of its 2,305 blocks, to a power of two.
  EXPECT_EQ(used_by(open_now, "block_maps"), 4096u * 4);
  EXPECT_GT(used_by(open_now, "names"), 0u);
  const int data = volume.opendir("/data").value();
  while (!volume.readdir(data).value().empty()) {
  }
  EXPECT_GT(cached_of(checked_memory(volume), "directories").bytes, 0u);
  EXPECT_TRUE(volume.close(fd));
  EXPECT_TRUE(volume.close(data));
  const MemoryReport closed = checked_memory(volume);
  for (const char* name :
       {"descriptors", "open_inodes", "range_locks", "block_maps", "operations", "batches"}) {
    EXPECT_EQ(part_named(closed, name).in_use, 0u) << name;
  }
}

}  // namespace
}  // namespace gofs
