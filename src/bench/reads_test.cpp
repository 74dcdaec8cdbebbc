// SPDX-License-Identifier: Apache-2.0
#include "bench/reads.hpp"

#include <gtest/gtest.h>

#include "bench/bodies.h"
#include "host/cpu_backend.h"

namespace gofs::bench {
namespace {

// The whole way down without a volume: many threads, more than the machine has, read commands of an
// SSD in memory, which is all zero.
TEST(RawReads, run_without_a_volume_by_more_threads_than_the_machine_has) {
  auto state = host::VolumeState::mount("ram:4M?queues=2&depth=8", {.backend = "cpu"},
                                        host::MountKind::kDeviceOnly);
  ASSERT_TRUE(state) << state.error().message;
  host::VolumeState& volume = **state;
  constexpr uint32_t kReads = 1000;
  const auto backend = host::make_cpu_backend(4);
  host::SharedArray<BenchJob> job(volume.backend().shared_memory(), 1);
  host::SharedArray<uint8_t> buffers(volume.backend().memory(), 4 * 4096);
  job[0] = {};
  BenchParams& params = job[0].params;
  params.fs = volume.filesystem();
  params.warps = 4;
  params.lanes_per_warp = 1;
  params.operations = kReads;
  params.block_bytes = params.command_bytes = 4096;
  params.span_bytes = 4 << 20;
  params.buffers = buffers.data();
  ASSERT_TRUE(backend->run(bodies::kRawRead, {4, 1}, job.data()));
  const BenchResults& done = job[0].results;
  EXPECT_EQ(done.error, 0);
  EXPECT_EQ(done.bytes, uint64_t{4} * kReads * 4096);
  EXPECT_EQ(done.checksum, 0u);
  EXPECT_LT(done.first_ns, done.last_ns);
}

}  // namespace
}  // namespace gofs::bench
