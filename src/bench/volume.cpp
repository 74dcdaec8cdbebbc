// SPDX-License-Identifier: Apache-2.0
#include "bench/volume.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "host/image/image_builder.h"
#include "host/image/mkfs.h"
#include "host/image/striped_volume.h"
#include "simt/platform.h"

namespace gofs::bench {
namespace {

using image::ImageTarget;
using image::Status;

constexpr uint64_t kSegmentBytes = uint64_t{2} << 20;
constexpr uint64_t kChunkBytes = 512 << 10;

/// The beginning of a target.
class FirstPart final : public ImageTarget {
 public:
  FirstPart(ImageTarget& whole, uint64_t bytes) : whole_(whole), bytes_(bytes) {}
  uint64_t size_bytes() const override { return bytes_; }
  Status write(uint64_t offset_bytes, const void* data, size_t bytes) override {
    return whole_.write(offset_bytes, data, bytes);
  }
  Status read(uint64_t offset_bytes, void* data, size_t bytes) override {
    return whole_.read(offset_bytes, data, bytes);
  }
  Status write_zeros(uint64_t offset_bytes, uint64_t bytes) override {
    return whole_.write_zeros(offset_bytes, bytes);
  }
  Status flush() override { return whole_.flush(); }

 private:
  ImageTarget& whole_;
  uint64_t bytes_;
};

std::string small_file_name(uint32_t index) { return fmt::format("file{:07}", index); }

int fill_with_indices(uint64_t offset, void* to, size_t bytes) {
  auto* const out = static_cast<uint8_t*>(to);
  std::memset(out, 0x5a, bytes);
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += kBlockBytes) {
    const uint64_t index = (offset + at) / kBlockBytes;
    std::memcpy(out + at, &index, sizeof(index));
  }
  return 0;
}

Status fill(ImageTarget& target, const image::VolumeOptions& options,
            const BenchContents& contents) {
  std::unique_ptr<image::ImageBuilder> builder;
  GOFS_RETURN_IF_FAILED(image::ImageBuilder::create(target, options, &builder));
  image::FileSpec large;
  large.name = "large";
  large.size_bytes = contents.large_bytes;
  large.content = fill_with_indices;
  GOFS_RETURN_IF_FAILED(builder->add_file(builder->root(), large));
  image::Directory small;
  GOFS_RETURN_IF_FAILED(builder->add_directory(builder->root(), "small", {}, {}, &small));
  for (uint32_t i = 0; i < contents.small_count; ++i) {
    const std::string name = small_file_name(i);
    image::FileSpec file;
    file.name = name;
    file.size_bytes = contents.small_bytes;
    file.content = fill_with_indices;
    GOFS_RETURN_IF_FAILED(builder->add_file(small, file));
  }
  return builder->finish();
}

/// With room for nodes and the part that F2FS keeps for itself.
uint64_t volume_bytes_of(const BenchContents& contents) {
  constexpr uint64_t kTableBytes = uint64_t{512} << 20;
  constexpr uint64_t kNodesOfFile = 3;
  const uint64_t small =
      contents.small_count * (contents.small_bytes / kBlockBytes + kNodesOfFile) * kBlockBytes;
  const uint64_t data = contents.large_bytes + small + contents.spare_bytes;
  return simt::align_up(data / 4 * 5 + kTableBytes, kSegmentBytes);
}

Status make(const std::vector<std::string>& images, const BenchContents& contents,
            uint64_t volume_bytes) {
  image::VolumeOptions options;
  options.label = "bench";
  options.seed = 1;
  options.overwrite = true;
  options.flush = false;
  const uint64_t bytes = volume_bytes + contents.raw_bytes;
  std::unique_ptr<ImageTarget> target;
  std::vector<std::unique_ptr<ImageTarget>> disks;
  if (images.size() == 1) {
    GOFS_RETURN_IF_FAILED(image::open_volume_target(images[0], bytes, options, &target));
  } else {
    format::Stripe stripe{};
    GOFS_RETURN_IF_FAILED(image::make_array(images, bytes, kChunkBytes, options, &disks, &stripe));
    target = image::make_striped_target(disks, stripe);
  }
  FirstPart volume(*target, volume_bytes);
  return fill(volume, options, contents);
}

}  // namespace

Expected<uint64_t> make_bench_volume(const std::vector<std::string>& images,
                                     const BenchContents& contents) {
  const uint64_t volume_bytes = volume_bytes_of(contents);
  const Status made = make(images, contents, volume_bytes);
  if (!made.ok()) return Error{-made.error, made.message};
  return volume_bytes;
}

MountOptions bench_mount(const std::string& backend) {
  MountOptions mount;
  mount.backend = backend;
  mount.read_only = false;
  mount.queues = 64;
  mount.queue_depth = 1024;
  return mount;
}

Expected<std::unique_ptr<host::VolumeState>> mount_bench_volume(
    const std::vector<std::string>& images, const std::string& model, const MountOptions& mount) {
  const std::string spec = fmt::format("{}?spare=1T&{}", fmt::join(images, "+"),
                                       model == "hbm" ? "media=hbm" : "model=" + model);
  return host::VolumeState::mount(spec, mount, host::MountKind::kVolume);
}

std::string small_file_path(uint32_t index) { return "/small/" + small_file_name(index); }

}  // namespace gofs::bench
