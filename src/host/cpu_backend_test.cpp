// SPDX-License-Identifier: Apache-2.0
//
// The CPU backend as a place to run bodies and keep media.
#include "host/cpu_backend.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <set>
#include <vector>

#include "host/backends.h"
#include "host/image/fsck_for_test.h"
#include "host/volume_state.h"
#include "kernels/body.h"

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

struct Presence {
  std::atomic<uint32_t> warps{0};
  std::atomic<uint32_t> indices{0};  // a bit for each
};

void note_presence(simt::Warp warp, uint32_t warp_index, uint32_t warp_count, Presence& presence) {
  EXPECT_EQ(warp.size(), 1u);
  EXPECT_EQ(warp_count, 3u);
  ++presence.warps;
  presence.indices |= 1u << warp_index;
}

TEST(CpuBackend, bodies_of_other_programs_are_run_by_as_many_threads_as_there_are) {
  const kernels::Body body{"presence", kernels::run_on_cpu<Presence, note_presence>, nullptr};
  const auto backend = make_cpu_backend(3);
  Presence presence;
  EXPECT_TRUE(backend->prepare(body));
  ASSERT_TRUE(backend->run(body, {8, 2}, &presence));
  EXPECT_EQ(presence.warps, 3u);
  EXPECT_EQ(presence.indices, 7u);
}

}  // namespace
}  // namespace gofs::host
