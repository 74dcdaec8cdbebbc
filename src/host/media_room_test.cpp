// SPDX-License-Identifier: Apache-2.0
//
// Volumes on SSDs that have no memory for all of them, as sparse images have on a GPU: which
// segments are dealt out, that what statfs says can be written and no more, and that it is refused
// at once, in words, with the volume whole.
#include "host/media_room.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/superblock.h"
#include "format/volume_plan.h"
#include "host/backend_for_test.h"
#include "host/image/fsck_for_test.h"
#include "host/image/image_builder.h"
#include "host/image/image_target.h"
#include "ssd/media_host.h"

namespace gofs::host {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr format::Stripe kOneDisk{1, 0, 0, {}};

format::Geometry a_geometry(uint32_t main_segments) {
  format::Geometry geometry{};
  geometry.main_segments = main_segments;
  geometry.cp_blkaddr = format::kBlocksPerSegment;
  geometry.ssa_blkaddr = 7 * format::kBlocksPerSegment;
  geometry.main_blkaddr = 8 * format::kBlocksPerSegment;
  return geometry;
}

bool is_withheld(const RoomPlan& plan, uint32_t segno) {
  return !plan.withheld.empty() && (plan.withheld[segno / 32] >> segno % 32 & 1u) != 0;
}

TEST(MediaRoom, media_with_memory_for_all_withholds_nothing) {
  const RoomPlan plan = plan_room(a_geometry(100), kOneDisk, {nullptr});
  EXPECT_TRUE(plan.withheld.empty());
  EXPECT_EQ(plan.withheld_segments, 0u);
  EXPECT_EQ(plan.lacking_bytes, 0u);
}

TEST(MediaRoom, segments_get_what_checkpoints_leave_and_those_that_are_there_cost_nothing) {
  kernels::MediaRoom room{std::vector<bool>(108), 60};
  room.there[0] = room.there[8 + 70] = room.there[8 + 99] = true;
  const RoomPlan plan = plan_room(a_geometry(100), kOneDisk, {&room});
  // 16 of 60 are kept back, 6 are for what comes before the SSA, 1 is for it.
  EXPECT_EQ(plan.lacking_bytes, 0u);
  EXPECT_EQ(plan.withheld_segments, 100u - 37 - 2);
  EXPECT_FALSE(is_withheld(plan, 0));
  EXPECT_FALSE(is_withheld(plan, 36));
  EXPECT_TRUE(is_withheld(plan, 37));
  EXPECT_FALSE(is_withheld(plan, 70));
  EXPECT_FALSE(is_withheld(plan, 99));
}

TEST(MediaRoom, enough_spares_withhold_nothing) {
  const kernels::MediaRoom room{std::vector<bool>(108), 108 + 18};
  EXPECT_TRUE(plan_room(a_geometry(100), kOneDisk, {&room}).withheld.empty());
}

TEST(MediaRoom, too_little_for_a_checkpoint_is_told) {
  const kernels::MediaRoom room{std::vector<bool>(108), 18};
  const RoomPlan plan = plan_room(a_geometry(100), kOneDisk, {&room});
  EXPECT_EQ(plan.lacking_bytes, 5 * ssd::kChunkBytes);
  EXPECT_EQ(plan.withheld_segments, 100u);
}

TEST(MediaRoom, a_segment_of_a_stripe_needs_room_on_every_disk) {
  const format::Stripe stripe{2, 16, 54 * ssd::kChunkBytes, {}};
  const kernels::MediaRoom much{std::vector<bool>(54), 1000};
  const kernels::MediaRoom little{std::vector<bool>(54), 16 + 4 + 10};
  const RoomPlan plan = plan_room(a_geometry(100), stripe, {&much, &little});
  EXPECT_EQ(plan.lacking_bytes, 0u);
  // Two segments share a chunk of each disk.
  EXPECT_EQ(plan.withheld_segments, 100u - 20);
  EXPECT_EQ(plan_room(a_geometry(100), stripe, {nullptr, &little}).withheld_segments, 80u);
}

/// An image in memory, of which only what holds data is there, and so many spare chunks.
class SparseImage final : public kernels::LoadedMedia {
 public:
  SparseImage(const std::string& path, uint64_t spares)
      : path_(path), bytes_(ssd::for_each_data_extent(path, [](uint64_t, uint64_t) {})) {
    sparse_ = std::make_unique<ssd::SparseMedia>(memory_, bytes_);
    room_ = {std::vector<bool>(sparse_->chunk_count()), spares};
    std::unique_ptr<image::ImageTarget> file;
    EXPECT_TRUE(image::open_file_target(path, 0, &file).ok());
    ssd::for_each_data_extent(path, [&](uint64_t offset, uint64_t bytes) {
      const uint64_t end = offset + bytes;
      for (uint64_t at = offset / ssd::kChunkBytes; at * ssd::kChunkBytes < end; ++at)
        load(*file, at);
    });
    for (uint64_t i = 0; i < spares; ++i) sparse_->add_spare(new_chunk());
    media_ = sparse_->media();
  }
  const ssd::Media& media() const override { return media_; }
  const kernels::MediaRoom* room() const override { return &room_; }
  std::string sync() override {
    std::unique_ptr<image::ImageTarget> file;
    EXPECT_TRUE(image::open_file_target(path_, 0, &file).ok());
    for (uint64_t at = 0; at < sparse_->chunk_count(); ++at) {
      const void* const chunk = sparse_->chunk(at);
      if (chunk == nullptr) continue;
      EXPECT_TRUE(file->write(at * ssd::kChunkBytes, chunk, bytes_at(at)).ok());
    }
    return {};
  }
  uint64_t spares_left() const {
    uint64_t count = 0;
    for (auto top = static_cast<uint32_t>(media_.pool->head); top != 0; ++count) {
      top = media_.pool->entries[top - 1].next;
    }
    return count;
  }

 private:
  void* new_chunk() {
    chunks_.push_back(std::make_unique<uint8_t[]>(ssd::kChunkBytes));
    return chunks_.back().get();
  }
  uint64_t bytes_at(uint64_t index) const {
    return std::min(ssd::kChunkBytes, bytes_ - index * ssd::kChunkBytes);
  }
  void load(image::ImageTarget& file, uint64_t index) {
    if (room_.there[index]) return;
    room_.there[index] = true;
    void* const chunk = new_chunk();
    EXPECT_TRUE(file.read(index * ssd::kChunkBytes, chunk, bytes_at(index)).ok());
    sparse_->set_chunk(index, chunk);
  }

  const std::string path_;
  const uint64_t bytes_;
  simt::HostMemorySpace memory_;
  std::vector<std::unique_ptr<uint8_t[]>> chunks_;
  std::unique_ptr<ssd::SparseMedia> sparse_;
  kernels::MediaRoom room_;
  ssd::Media media_;
};

class SparseBackend final : public BackendForTest {
 public:
  SparseBackend(uint64_t spares, SparseImage*& image) : spares_(spares), image_(image) {}
  std::unique_ptr<kernels::LoadedMedia> load_media(const kernels::MediaRequest& request,
                                                   std::string&) override {
    auto image = std::make_unique<SparseImage>(request.path, spares_);
    image_ = image.get();
    return image;
  }

 private:
  const uint64_t spares_;
  SparseImage*& image_;
};

class SparseVolumeTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBytes = 1024 * kMiB;

  SparseVolumeTest() {
    std::unique_ptr<image::ImageTarget> target;
    EXPECT_TRUE(image::open_file_target(path_.path(), kBytes, &target).ok());
    image::VolumeOptions options;
    options.seed = 1;
    options.time_s = 1'700'000'000;
    options.overwrite = true;
    options.flush = false;
    std::unique_ptr<image::ImageBuilder> builder;
    EXPECT_TRUE(image::ImageBuilder::create(*target, options, &builder).ok());
    EXPECT_TRUE(builder->finish().ok());
  }
  Expected<Volume> try_to_mount(uint64_t spares, bool read_only = false) {
    return VolumeForTest::mount(path_.path() + "?media=memory", {.read_only = read_only},
                                [&](const std::string&, std::string&) {
                                  return std::make_unique<SparseBackend>(spares, image_);
                                });
  }
  static void write_mebibytes(Volume& volume, const std::string& path, uint64_t count, char byte) {
    const std::vector<char> bytes(kMiB, byte);
    const int fd = volume.open(path, O_CREAT | O_WRONLY, 0644).value();
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_EQ(volume.pwrite(fd, bytes.data(), kMiB, i * kMiB).value_or(0), kMiB);
    }
    ASSERT_TRUE(volume.close(fd));
  }
  /// Writes until it is refused; how much was written, and the error.
  static std::pair<uint64_t, Error> fill(Volume& volume, const std::string& path) {
    const std::vector<char> bytes(kMiB, 'f');
    const int fd = volume.open(path, O_CREAT | O_WRONLY, 0644).value();
    for (uint64_t done = 0;;) {
      const auto written = volume.pwrite(fd, bytes.data(), bytes.size(), done);
      if (!written) {
        EXPECT_TRUE(volume.close(fd));
        return {done, written.error()};
      }
      done += *written;
    }
  }

  const image::TemporaryPath path_;
  SparseImage* image_ = nullptr;  // of the volume that was mounted last
};

TEST_F(SparseVolumeTest, what_statfs_says_can_be_written_and_then_it_is_refused_at_once) {
  {
    Volume volume = try_to_mount(120).value();
    const auto before = volume.statfs().value();
    EXPECT_GT(before.blocks_free * 4096, 800 * kMiB);
    const uint64_t available = before.blocks_available * 4096;
    EXPECT_GT(available, 20 * kMiB);
    EXPECT_LT(available, 240 * kMiB);
    const auto [written, error] = fill(volume, "/all");
    EXPECT_EQ(error.code, ENOSPC);
    EXPECT_NE(error.message.find("spare="), std::string::npos) << error.message;
    EXPECT_LE(written, available);
    EXPECT_GE(written, available - available / 50 - kMiB);  // nodes need some
    EXPECT_LT(volume.statfs().value().blocks_available, 64u);

    // Failing costs no more than succeeding did.
    const int fd = volume.open("/more", O_CREAT | O_WRONLY, 0644).value_or(-1);
    const std::vector<char> bytes(kMiB, 'm');
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 50 && fd >= 0; ++i) {
      EXPECT_FALSE(volume.pwrite(fd, bytes.data(), bytes.size(), kMiB * i));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));

    // Nothing ran out below the file system: what was written becomes durable, and room comes back.
    ASSERT_TRUE(volume.sync());
    EXPECT_GT(image_->spares_left(), 0u);
    ASSERT_TRUE(volume.unlink("/all"));
    ASSERT_TRUE(volume.sync());
    EXPECT_GE(fill(volume, "/again").first, written - written / 50 - kMiB);
    const auto unmounted = volume.unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
  }
  GOFS_NEED_TOOL("fsck.f2fs");
  EXPECT_TRUE(image::fsck_is_clean(path_.path()));
}

TEST_F(SparseVolumeTest, files_that_are_written_over_and_over_use_no_more_spares_than_there_are) {
  Volume volume = try_to_mount(100).value();
  const uint64_t bytes = volume.statfs().value().blocks_available * 4096 / 2;
  const std::vector<char> data(bytes, 'o');
  for (int turn = 0; turn < 6; ++turn) {
    const int fd = volume.open("/over", O_CREAT | O_WRONLY | O_TRUNC, 0644).value();
    ASSERT_EQ(volume.pwrite(fd, data.data(), data.size(), 0).value_or(0), bytes) << turn;
    ASSERT_TRUE(volume.fsync(fd));
    ASSERT_TRUE(volume.close(fd));
  }
  EXPECT_GT(image_->spares_left(), 0u);
  EXPECT_TRUE(volume.unmount());
}

TEST_F(SparseVolumeTest, zeros_of_which_the_image_has_none_take_no_room_that_others_count_on) {
  constexpr uint64_t kZeros = 300 * kMiB;
  constexpr uint64_t kSpares = 60;
  {
    // Some of what is dealt out goes to free segments, and some of it to these zeros.
    Volume volume = try_to_mount(600).value();
    write_mebibytes(volume, "/first", 100, 'f');
    write_mebibytes(volume, "/zeros", kZeros / kMiB, 0);
    ASSERT_TRUE(volume.unlink("/first"));
    ASSERT_TRUE(volume.unmount());
  }
  ASSERT_EQ(image::run_tool("fallocate --dig-holes " + path_.path()).exit_code, 0);
  {
    Volume volume = try_to_mount(kSpares).value();
    const uint64_t available = volume.statfs().value().blocks_available * 4096;
    ASSERT_GT(available, 10 * kMiB);
    ASSERT_LT(available, kZeros / 2);
    // Each block that is written over goes to where there is room for it.
    const std::vector<char> bytes(kMiB, 'o');
    const int fd = volume.open("/zeros", O_WRONLY).value();
    uint64_t written = 0;
    Expected<uint64_t> last = uint64_t{0};
    while (written < kZeros && (last = volume.pwrite(fd, bytes.data(), kMiB, written))) {
      written += *last;
    }
    ASSERT_FALSE(last);
    EXPECT_EQ(last.error().code, ENOSPC);
    EXPECT_GE(written, available - available / 20 - kMiB);
    EXPECT_LT(volume.statfs().value().blocks_available, 512u);
    ASSERT_TRUE(volume.sync());
    EXPECT_GT(image_->spares_left(), 0u);

    // Of what is removed comes back what there is room for.
    ASSERT_TRUE(volume.close(fd));
    ASSERT_TRUE(volume.unlink("/zeros"));
    ASSERT_TRUE(volume.sync());
    const uint64_t again = volume.statfs().value().blocks_available * 4096;
    EXPECT_LE(again, kSpares * ssd::kChunkBytes);
    const auto [filled, error] = fill(volume, "/again");
    EXPECT_EQ(error.code, ENOSPC);
    EXPECT_LE(filled, again);
    EXPECT_GE(filled, again - again / 20 - kMiB);
    ASSERT_TRUE(volume.unmount());
  }
  GOFS_NEED_TOOL("fsck.f2fs");
  EXPECT_TRUE(image::fsck_is_clean(path_.path()));
}

TEST_F(SparseVolumeTest, files_of_a_batch_that_find_no_room_are_told_why_each) {
  Volume volume = try_to_mount(100).value();
  (void)fill(volume, "/all");
  const std::vector<char> bytes(kMiB, 'b');
  const std::vector<NewFile> files(1, {"one", bytes.data(), bytes.size()});
  ASSERT_EQ(volume.batch_create("/", files).value(), std::vector<int>{ENOSPC});
  const Error error = volume.explain(ENOSPC, "/one");
  EXPECT_EQ(error.code, ENOSPC);
  EXPECT_EQ(error.message.rfind("/one: ", 0), 0u) << error.message;
  EXPECT_NE(error.message.find("spare="), std::string::npos) << error.message;
  EXPECT_EQ(volume.explain(ENOENT, "/none").message, "/none: No such file or directory");
  EXPECT_TRUE(volume.unmount());
}

TEST_F(SparseVolumeTest, too_few_spares_for_a_checkpoint_are_refused_when_mounting) {
  const auto volume = try_to_mount(2);
  ASSERT_FALSE(volume);
  EXPECT_EQ(volume.error().code, ENOSPC);
  EXPECT_NE(volume.error().message.find("spare="), std::string::npos) << volume.error().message;
  EXPECT_TRUE(try_to_mount(2, true)) << "for reading it is enough";
}

TEST_F(SparseVolumeTest, readers_are_told_what_writers_could_have) {
  const auto writers = try_to_mount(120).value().statfs().value();
  const auto readers = try_to_mount(120, true).value().statfs().value();
  EXPECT_EQ(readers.blocks_free, writers.blocks_free);
  EXPECT_LE(readers.blocks_available, writers.blocks_available);
  EXPECT_GT(readers.blocks_available + 16 * 512, writers.blocks_available);
}

}  // namespace
}  // namespace gofs::host
