// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a volume to be served, in whose root everybody may make files.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "host/backend_for_test.h"
#include "host/image/fsck_for_test.h"
#include "host/image/mkfs.h"
#include "host/serve/served_volume.h"

namespace gofs::host {

class ServedVolumeTest : public ::testing::Test {
 protected:
  explicit ServedVolumeTest(const BackendMaker& make = make_backend) {
    image::VolumeOptions options;
    options.flush = false;
    EXPECT_TRUE(image::make_volume(image_.path(), uint64_t{128} << 20, options).ok());
    auto mounted =
        VolumeState::mount(image_.path() + "?media=memory&descriptors=512",
                           {.backend = "cpu", .read_only = false}, MountKind::kVolume, make);
    EXPECT_TRUE(mounted) << mounted.error().message;
    volume_ = std::move(*mounted);
    const std::string root = "/";
    const CallRequest open_to_all{.verb = request::Verb::kChmod, .path = &root, .mode = 01777};
    EXPECT_EQ(volume_->call(open_to_all).result, 0);
  }
  /// Unmounts it, which nobody serves any more.
  void expect_sound_volume() {
    EXPECT_TRUE(volume_->unmount());
    GOFS_NEED_TOOL("fsck.f2fs");
    EXPECT_TRUE(image::fsck_is_clean(image_.path()));
  }

  image::TemporaryPath image_;
  std::unique_ptr<VolumeState> volume_;
};

}  // namespace gofs::host
