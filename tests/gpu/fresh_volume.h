// SPDX-License-Identifier: Apache-2.0
//
// For tests only: an image with a new volume, which goes with the test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "host/image/image_builder.h"
#include "host/image/image_target.h"

#define CHECK_CUDA(call) ASSERT_EQ(call, cudaSuccess) << cudaGetErrorString(cudaGetLastError())

namespace gofs_gpu_test {

inline void must(const gofs::image::Status& status) { EXPECT_TRUE(status.ok()) << status.message; }

/// compute-sanitizer takes a hundred times as long.
inline bool under_sanitizer() { return std::getenv("GOFS_UNDER_SANITIZER") != nullptr; }

class FreshVolume {
 public:
  /// `fill(gofs::image::ImageBuilder&)` puts in what is there at the beginning.
  template <typename Fill>
  FreshVolume(uint64_t mebibytes, Fill fill) {
    const int descriptor = mkstemp(path_.data());
    EXPECT_GE(descriptor, 0);
    close(descriptor);
    std::unique_ptr<gofs::image::ImageTarget> target;
    must(gofs::image::open_file_target(path_, mebibytes << 20, &target));
    gofs::image::VolumeOptions options;
    options.seed = 1;
    options.time_s = 1'700'000'000;
    options.overwrite = true;
    options.flush = false;
    std::unique_ptr<gofs::image::ImageBuilder> builder;
    must(gofs::image::ImageBuilder::create(*target, options, &builder));
    fill(*builder);
    must(builder->finish());
  }
  FreshVolume(const FreshVolume&) = delete;
  FreshVolume& operator=(const FreshVolume&) = delete;
  ~FreshVolume() { unlink(path_.c_str()); }

  const std::string& path() const { return path_; }
  /// What to mount: the SSD is a virtual one, wherever the file lies.
  std::string spec() const { return path_ + "?media=memory"; }

 private:
  std::string path_ = "/tmp/gofs-gpu-test-XXXXXX";
};

}  // namespace gofs_gpu_test
