// SPDX-License-Identifier: Apache-2.0
//
// The CPU backend as a place to run bodies and keep media.
#include "host/cpu_backend.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <vector>

#include "host/backends.h"
#include "host/image/fsck_for_test.h"
#include "host/volume_state.h"
#include "work/bench.h"
#include "work/bench_bodies.h"

namespace gofs::host {
namespace {

TEST(CpuBackend, is_a_host_with_at_least_one_thread) {
  const auto backend = make_cpu_backend();
  EXPECT_STREQ(backend->name(), "cpu");
  EXPECT_TRUE(backend->is_host());
  EXPECT_EQ(backend->warp_width(), 1u);
  EXPECT_GE(backend->full_grid().blocks * backend->full_grid().threads_per_block, 1u);
  EXPECT_FALSE(backend->description().empty());
  EXPECT_EQ(make_cpu_backend(3)->full_grid().blocks, 3u);
}

TEST(CpuBackend, memory_is_zeroed_and_aligned) {
  const auto backend = make_cpu_backend();
  simt::MemorySpace& memory = backend->memory();
  std::set<void*> taken;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4096}, size_t{5000}, size_t{40} << 20}) {
    auto* const block = static_cast<uint8_t*>(memory.allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % kBlockBytes, 0u);
    EXPECT_TRUE(taken.insert(block).second);
    for (size_t i = 0; i < bytes; i += 511) ASSERT_EQ(block[i], 0);
    std::memset(block, 0xee, bytes);
  }
  for (void* block : taken) memory.release(block);
  memory.release(nullptr);
  EXPECT_THROW((void)memory.allocate(~size_t{0}), std::bad_alloc);
  EXPECT_THROW((void)memory.allocate(size_t{1} << 60), std::bad_alloc);
}

TEST(CpuBackend, media_in_memory_and_in_files) {
  const auto backend = make_cpu_backend();
  std::string error;
  const auto memory = backend->load_media({.path = "", .bytes = 8192}, error);
  ASSERT_NE(memory, nullptr) << error;
  EXPECT_EQ(memory->media().bytes, 8192u);
  EXPECT_EQ(memory->media().find(100)[0], 0);

  const image::TemporaryPath path;
  std::ofstream(path.path()) << std::string(10'000, 'q');
  const auto file = backend->load_media({.path = path.path()}, error);
  ASSERT_NE(file, nullptr) << error;
  EXPECT_EQ(file->media().bytes, 10'000u);
  char read[2] = {};
  ssd::MediaTransfer transfer;  // of the last two bytes
  transfer.media = file->media().transfer_context;
  transfer.offset = 9'998;
  transfer.bytes = sizeof(read);
  transfer.prp1 = reinterpret_cast<uint64_t>(read);
  transfer.page_count = 1;
  EXPECT_EQ(file->media().transfer(&transfer), 0);
  EXPECT_EQ(transfer.status, 0);
  EXPECT_EQ(std::string(read, sizeof(read)), "qq");
  EXPECT_EQ(file->problem(), "");
  EXPECT_TRUE(file->media().read_only);
  EXPECT_EQ(file->sync(), "");

  EXPECT_EQ(backend->load_media({.path = "/no/such"}, error), nullptr);
  EXPECT_NE(error.find("/no/such"), std::string::npos);
  EXPECT_EQ(backend->load_media({.path = "", .bytes = 1, .device_memory = true}, error), nullptr);
  EXPECT_NE(error.find("hbm"), std::string::npos);
}

TEST(Backends, are_chosen_by_name) {
  std::string error;
  const auto cpu = make_backend("cpu", error);
  ASSERT_NE(cpu, nullptr);
  EXPECT_STREQ(cpu->name(), "cpu");
  EXPECT_NE(make_backend("auto", error), nullptr);
  EXPECT_EQ(make_backend("tpu", error), nullptr);
  EXPECT_NE(error.find("tpu"), std::string::npos);
}

// The whole way down without a volume: many threads, more than the machine has, read commands of an
// SSD in memory, which is all zero.
TEST(DeviceOnly, raw_commands_read_memory) {
  auto state =
      VolumeState::mount("ram:4M?queues=2&depth=8", {.backend = "cpu"}, MountKind::kDeviceOnly);
  ASSERT_TRUE(state) << state.error().message;
  VolumeState& volume = **state;
  constexpr uint32_t kReads = 1000;
  const auto backend = make_cpu_backend(4);
  SharedArray<work::BenchJob> job(volume.backend().shared_memory(), 1);
  SharedArray<uint8_t> buffers(volume.backend().memory(), 4 * 4096);
  job[0] = {};
  work::BenchParams& params = job[0].params;
  params.fs = volume.filesystem();
  params.warps = 4;
  params.lanes_per_warp = 1;
  params.operations = kReads;
  params.block_bytes = 4096;
  params.span_bytes = 4 << 20;
  params.buffers = buffers.data();
  ASSERT_TRUE(backend->run(work::bodies::kRawRead, {4, 1}, job.data()));
  const work::BenchResults& done = job[0].results;
  EXPECT_EQ(done.error, 0);
  EXPECT_EQ(done.bytes, uint64_t{4} * kReads * 4096);
  EXPECT_EQ(done.checksum, 0u);
  EXPECT_LT(done.first_ns, done.last_ns);
}

}  // namespace
}  // namespace gofs::host
