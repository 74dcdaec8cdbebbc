// SPDX-License-Identifier: Apache-2.0
#include "bench/storage.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "gofs/mkfs.hpp"
#include "gofs/volume.hpp"
#include "ssd/temporary_file_for_test.h"

namespace gofs::bench {
namespace {

MkfsOptions of_mib(uint64_t mib) {
  MkfsOptions options;
  options.size_bytes = mib << 20;
  return options;
}

TEST(StorageBench, every_work_is_measured_and_the_volume_is_left_as_it_was) {
  const ssd::TemporaryFile image;
  ASSERT_TRUE(mkfs(image.path(), of_mib(96)));
  for (const char* const options : {"?media=hosted", "?media=memory&mode=lfs"}) {
    StorageOptions storage;
    storage.volume = image.path() + options;
    storage.backend = "cpu";
    storage.file_bytes = uint64_t{4} << 20;
    storage.files = 20;
    storage.seconds = 0.002;
    storage.outstanding = {1, 2};
    storage.works.clear();
    for (uint32_t i = 0; i < kStorageWorks; ++i) {
      storage.works.push_back(static_cast<StorageWork>(i));
    }
    std::vector<StorageRow> rows;
    uint32_t ends = 0;
    StorageSinks sinks;
    sinks.row = [&](const StorageRow& row) { rows.push_back(row); };
    sinks.end = [&](host::VolumeState&) { ++ends; };
    const auto done = run_storage(storage, sinks);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(ends, 1u);
    ASSERT_EQ(rows.size(), 4 * 2 + 2u);
    for (const StorageRow& row : rows) {
      EXPECT_GT(row.operations_per_second(), 0) << name_of(row.work);
      EXPECT_GT(row.cpu_seconds, 0) << name_of(row.work);
      EXPECT_LE(row.outstanding, row.wanted) << name_of(row.work);
    }
    EXPECT_EQ(rows.back().operations, 20u);
    Volume volume = Volume::mount(image.path(), {.backend = "cpu"}).value();
    EXPECT_TRUE(volume.readdir(volume.opendir("/").value()).value().empty());
  }
}

TEST(StorageBench, a_file_that_is_too_large_or_of_no_whole_size_is_an_error) {
  const ssd::TemporaryFile image;
  ASSERT_TRUE(mkfs(image.path(), of_mib(64)));
  StorageOptions storage;
  storage.volume = image.path() + "?media=hosted";
  storage.backend = "cpu";
  storage.file_bytes = 4096;
  EXPECT_EQ(run_storage(storage, {}).error().code, EINVAL);
  storage.file_bytes = uint64_t{1} << 30;
  EXPECT_EQ(run_storage(storage, {}).error().code, ENOSPC);
  Volume volume = Volume::mount(image.path(), {.backend = "cpu"}).value();
  EXPECT_TRUE(volume.readdir(volume.opendir("/").value()).value().empty());
}

}  // namespace
}  // namespace gofs::bench
