// SPDX-License-Identifier: Apache-2.0
//
// Random calls by many warps of a kernel; the host does the same on a model and compares all
// answers, then all that is there, also after unmounting.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../judges/random_calls_judge.hpp"
#include "fresh_volume.h"
#include "testing/random_calls_mounted.h"

namespace {

__global__ void random_calls_kernel(gofs::testing::RandomCallsParams params,
                                    gofs::VolumeHandle vol) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  gofs::testing::random_calls_body(gofs::simt::Warp::full(), thread / 32, params,
                                   gofs::testing::MountedVolume{*vol});
}

TEST(DeviceDifferential, warps_do_what_their_models_do) {
  const bool sanitized = gofs_gpu_test::under_sanitizer();
  const uint32_t blocks = sanitized ? 2 : 16;
  constexpr uint32_t kWarpsOfBlock = 4;
  const uint32_t warps = blocks * kWarpsOfBlock;
  gofs::testing::RandomCallsParams run = gofs::judges::random_run(sanitized ? 20 : 300);
  SCOPED_TRACE(gofs::judges::words_of(run));
  std::vector<int64_t> answers(size_t{warps} * run.calls);
  const size_t answer_bytes = answers.size() * sizeof(int64_t);
  CHECK_CUDA(cudaMalloc(&run.answers, answer_bytes));
  CHECK_CUDA(cudaMalloc(&run.scratch, warps * sizeof(gofs::testing::RandomScratch)));

  const gofs_gpu_test::FreshVolume image(256, [](gofs::image::ImageBuilder&) {});
  {
    auto volume = gofs::Volume::mount(image.spec(), {.backend = "cuda", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    ASSERT_TRUE(volume->mkdir("/shared", 0777));
    random_calls_kernel<<<blocks, kWarpsOfBlock * 32>>>(run, volume->device());
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaMemcpy(answers.data(), run.answers, answer_bytes, cudaMemcpyDeviceToHost));
    cudaFree(run.answers);
    cudaFree(run.scratch);
    run.answers = answers.data();
    if (!sanitized) EXPECT_EQ(gofs::judges::judge_random_calls(run, warps, *volume), "");
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
    for (const std::string& warning : volume->warnings()) ADD_FAILURE() << warning;
  }
  auto volume = gofs::Volume::mount(image.path(), {.backend = "cpu"});
  ASSERT_TRUE(volume) << volume.error().message;
  EXPECT_TRUE(volume->info().clean);
  EXPECT_EQ(gofs::judges::judge_random_calls(run, warps, *volume), "");
}

}  // namespace
