// SPDX-License-Identifier: Apache-2.0
//
// types.h in a kernel of C++17: what it has for both sides does the same on both.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "gofs/types.h"

namespace {

struct Seen {
  char words[64];  // of error_text()
  bool leads_somewhere;
  bool is_itself;
  bool is_none;
  gofs::Stat stat;
  gofs::NamedEntry entry;
};

__global__ void look(gofs::VolumeHandle vol, int64_t error, Seen* seen) {
  const char* const words = gofs::error_text(error);
  for (int i = 0; i == 0 || words[i - 1] != '\0'; ++i) seen->words[i] = words[i];
  __shared__ gofs::VolumeHandle shared;
  shared = vol;
  seen->leads_somewhere = static_cast<bool>(shared);
  seen->is_itself = shared == vol;
  seen->is_none = shared == gofs::VolumeHandle{};
  seen->stat.project_id = 7;
  seen->stat.created = {-1, gofs::kTimeOmit};
  seen->entry.name[gofs::kNameBytesMax] = 'x';
}

TEST(DeviceTypesTest, kernels_and_the_host_agree_on_handles_words_and_layouts) {
  Seen* seen = nullptr;
  ASSERT_EQ(cudaMallocHost(&seen, sizeof(Seen)), cudaSuccess);
  look<<<1, 1>>>(gofs::VolumeHandle{seen}, -EUCLEAN, seen);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_STREQ(seen->words, gofs::error_text(-EUCLEAN));
  EXPECT_TRUE(seen->leads_somewhere);
  EXPECT_TRUE(seen->is_itself);
  EXPECT_FALSE(seen->is_none);
  EXPECT_EQ(seen->stat.project_id, 7u);
  EXPECT_EQ(seen->stat.created.seconds, -1);
  EXPECT_EQ(seen->stat.created.nanoseconds, gofs::kTimeOmit);
  EXPECT_EQ(seen->entry.name[gofs::kNameBytesMax], 'x');
  cudaFreeHost(seen);
}

}  // namespace
