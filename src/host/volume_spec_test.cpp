// SPDX-License-Identifier: Apache-2.0
//
// What volume specs mean, by tables of good and bad ones.
#include "host/volume_spec.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "host/ablations.h"

namespace gofs::host {
namespace {

constexpr uint64_t kMax = ~uint64_t{0};

/// Parses in a world where only `files` exist.
Expected<std::vector<VolumeSpec>> parse(const std::string& text, std::set<std::string> files = {}) {
  return parse_volume_specs(text, [&](const std::string& path) { return files.count(path) != 0; });
}

VolumeSpec parse_one(const std::string& text, const std::set<std::string>& files = {}) {
  auto specs = parse(text, files);
  EXPECT_TRUE(specs) << text << ": " << specs.error().message;
  if (!specs || specs->size() != 1) {
    ADD_FAILURE() << text << " is not one volume";
    return {};
  }
  return specs->front();
}

TEST(VolumeSpec, a_path_alone_has_the_defaults) {
  const VolumeSpec spec = parse_one("dir/vol.img");
  EXPECT_EQ(spec.path, "dir/vol.img");
  EXPECT_EQ(spec.text, "dir/vol.img");
  EXPECT_EQ(spec.memory_bytes, 0u);
  EXPECT_EQ(spec.model_name, "none");
  EXPECT_TRUE(spec.model.is_none());
  EXPECT_EQ(spec.media, MediaKind::kAuto);
  EXPECT_FALSE(spec.always_polls);
  EXPECT_FALSE(spec.lba_bytes || spec.threads || spec.queues || spec.queue_depth ||
               spec.transfer_bytes_max || spec.cache_bytes || spec.descriptors ||
               spec.command_timeout_ns || spec.checkpoint_period_ns);
}

TEST(VolumeSpec, every_option_is_understood) {
  const VolumeSpec spec = parse_one(
      "v?model=990pro,iops=5&queues=16&depth=64&lba=4096&media=hbm&spare=3G&mdts=128K&cache=1M&"
      "descriptors=1000000&timeout=20ms&checkpoint=30s&ablate=one-log,no-maps");
  EXPECT_EQ(spec.path, "v");
  EXPECT_EQ(spec.model_name, "990pro,iops=5");
  EXPECT_EQ(spec.model.iops, 5u);
  EXPECT_NE(spec.model.link_bytes_per_us, 0u);
  EXPECT_EQ(spec.queues, 16u);
  EXPECT_EQ(spec.queue_depth, 64u);
  EXPECT_EQ(spec.lba_bytes, 4096u);
  EXPECT_EQ(spec.media, MediaKind::kDeviceMemory);
  EXPECT_EQ(spec.spare_bytes, uint64_t{3} << 30);
  EXPECT_EQ(spec.transfer_bytes_max, 131072u);
  EXPECT_EQ(spec.cache_bytes, 1048576u);
  EXPECT_EQ(spec.descriptors, 1'000'000u);
  EXPECT_EQ(spec.command_timeout_ns, 20000000u);
  EXPECT_EQ(spec.checkpoint_period_ns, 30'000'000'000u);
  EXPECT_EQ(spec.ablations, vfs::kAblateOpenSegments | vfs::kAblateBlockMaps);
}

TEST(VolumeSpec, options_of_one_kind_of_ssd_choose_it) {
  EXPECT_EQ(parse_one("v?media=hosted").media, MediaKind::kHosted);
  EXPECT_EQ(parse_one("v?media=memory").media, MediaKind::kMemory);
  EXPECT_EQ(parse_one("v?queues=2&lba=512").media, MediaKind::kAuto);
  EXPECT_EQ(parse_one("v?model=p5800x").media, MediaKind::kMemory);
  EXPECT_EQ(parse_one("v?model=none").media, MediaKind::kMemory);
  EXPECT_EQ(parse_one("v?spare=1G").media, MediaKind::kMemory);
  const VolumeSpec hosted = parse_one("v?threads=3&poll=always&staging=64K");
  EXPECT_EQ(hosted.media, MediaKind::kHosted);
  EXPECT_EQ(hosted.threads, 3u);
  EXPECT_TRUE(hosted.always_polls);
  EXPECT_EQ(hosted.staging_bytes, 65536u);
  EXPECT_FALSE(parse_one("v?media=hosted&poll=auto").always_polls);
  EXPECT_EQ(parse_one("v?staging=64K").media, MediaKind::kHosted);
  // Of several those without options have the last one's, as far as they are about them.
  const auto mixed = parse("ram:64M+v?threads=2&staging=64K");
  ASSERT_TRUE(mixed) << mixed.error().message;
  EXPECT_FALSE(mixed->front().threads || mixed->front().staging_bytes);
  EXPECT_EQ(mixed->front().media, MediaKind::kAuto);
}

TEST(VolumeSpec, members_of_several_kinds_have_options_of_their_own) {
  const auto specs =
      parse("vfio:0000:01:00.0?doorbell=cpu&staging=64K&queues=2+v?threads=2&depth=9");
  ASSERT_TRUE(specs) << specs.error().message;
  EXPECT_EQ(specs->front().queues, 2u);
  EXPECT_EQ(specs->front().doorbells, Doorbells::kCpu);
  EXPECT_FALSE(specs->front().queue_depth || specs->front().threads);
  EXPECT_TRUE(specs->back().is_hosted());
  EXPECT_EQ(specs->back().queue_depth, 9u);
  EXPECT_FALSE(specs->back().queues || specs->back().staging_bytes);
}

TEST(VolumeSpec, a_member_without_options_has_those_that_its_kind_can_have) {
  const auto hosted = parse("vfio:0000:01:00.0+v?threads=2&staging=64K&queues=3");
  ASSERT_TRUE(hosted) << hosted.error().message;
  EXPECT_TRUE(hosted->front().is_physical());
  EXPECT_FALSE(hosted->front().threads);
  EXPECT_EQ(hosted->front().staging_bytes, 65536u);
  EXPECT_EQ(hosted->front().queues, 3u);
  const auto physical = parse("v+vfio:0000:01:00.0?doorbell=cpu&staging=64K&queues=gpu&data=gpu");
  ASSERT_TRUE(physical) << physical.error().message;
  EXPECT_EQ(physical->front().media, MediaKind::kAuto) << "staging is of the physical one";
  EXPECT_EQ(physical->front().doorbells, Doorbells::kAuto);
  EXPECT_EQ(physical->front().queue_place, "host");
}

TEST(VolumeSpec, what_a_mount_does_without_is_named) {
  const std::vector<std::string> names = ablation_names(~0u);
  ASSERT_EQ(names.size(), vfs::kAblations);
  std::string all;
  for (uint32_t bit = 0; bit < vfs::kAblations; ++bit) {
    EXPECT_EQ(parse_one("v?ablate=" + names[bit]).ablations, 1u << bit);
    EXPECT_EQ(ablation_names(1u << bit), std::vector<std::string>{names[bit]});
    all += (bit == 0 ? "" : ",") + names[bit];
  }
  EXPECT_EQ(parse_one("v?ablate=" + all).ablations, vfs::kAblationsKnown);
  EXPECT_FALSE(parse_one("v?queues=1").ablations);
  // Of a stripe what the last one says.
  const auto specs = parse("a+b?ablate=one-log");
  ASSERT_TRUE(specs);
  EXPECT_EQ(specs->back().ablations, uint32_t{vfs::kAblateOpenSegments});
}

TEST(VolumeSpec, memory_has_a_size) {
  EXPECT_EQ(parse_one("ram:64M").memory_bytes, 64u << 20);
  EXPECT_EQ(parse_one("ram:64M?lba=4096").lba_bytes, 4096u);
  EXPECT_TRUE(parse_one("ram:1G").path.empty());
}

TEST(VolumeSpec, file_names_are_percent_decoded) {
  EXPECT_EQ(parse_one("file:a%3Fb%2bc%25.img").path, "a?b+c%.img");
  EXPECT_EQ(parse_one("file:a%3Fb?queues=2").queues, 2u);
  EXPECT_EQ(parse_one("file:ram:1").path, "ram:1");
}

TEST(VolumeSpec, a_plus_joins_several_ssds) {
  const auto specs = parse("a.img?queues=2+b.img+ram:1M?lba=4096");
  ASSERT_TRUE(specs) << specs.error().message;
  ASSERT_EQ(specs->size(), 3u);
  EXPECT_EQ((*specs)[0].path, "a.img");
  EXPECT_EQ((*specs)[0].queues, 2u);
  EXPECT_EQ((*specs)[0].text, "a.img?queues=2");
  EXPECT_EQ((*specs)[1].path, "b.img");
  EXPECT_EQ((*specs)[2].memory_bytes, 1u << 20);
}

TEST(VolumeSpec, a_file_that_exists_is_taken_by_its_longest_name) {
  const std::set<std::string> files = {"a+b.img", "c?d", "c"};
  EXPECT_EQ(parse_one("a+b.img", files).path, "a+b.img");
  EXPECT_EQ(parse_one("a+b.img?depth=8", files).path, "a+b.img");
  EXPECT_EQ(parse_one("a+b.img?depth=8", files).queue_depth, 8u);
  EXPECT_EQ(parse_one("c?d", files).path, "c?d");
  EXPECT_EQ(parse_one("c?queues=1", files).path, "c");
  const auto two = parse("a+b.img+e", files);
  ASSERT_TRUE(two);
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ((*two)[0].path, "a+b.img");
  EXPECT_EQ((*two)[1].path, "e");
}

TEST(VolumeSpec, bad_specs_are_refused_with_words_that_name_the_fault) {
  const struct {
    std::string spec;
    const char* named;
  } cases[] = {
      {"", "no image"},
      {"?queues=1", "no image"},
      {"a+", "no image"},
      {"a++b", "no image"},
      {"ram:", "ram:"},
      {"ram:0", "ram:"},
      {"ram:12Q", "ram:"},
      {"ram:-1", "ram:"},
      {"ram:99999999999999999999", "ram:"},
      {"ram:17179869184G", "ram:"},
      {"file:", "file:"},
      {"file:%4", "file:"},
      {"file:%zz", "file:"},
      {"file:a%00b", "file:"},
      {"a?", "has no value"},
      {"a?queues", "'queues' has no value"},
      {"a?queues=1&", "has no value"},
      {"a?=1", "'' is no option"},
      {"a?speed=1", "'speed'"},
      {"a?queues=0", "'queues'"},
      {"a?queues=129", "'queues'"},
      {"a?queues=1x", "'queues'"},
      {"a?queues=", "'queues'"},
      {"a?queues=-1", "'queues'"},
      {"a?depth=1", "'depth'"},
      {"a?depth=65536", "'depth'"},
      {"a?lba=1024", "'lba'"},
      {"a?media=tape", "'media'"},
      {"a?media=file", "'media' wants hosted, memory or hbm"},
      {"a?threads=0", "'threads'"},
      {"a?threads=65", "'threads'"},
      {"a?poll=never", "'poll'"},
      {"a?media=hosted&model=990pro", "'model' and 'spare' are about a virtual SSD"},
      {"a?media=memory&threads=2", "'threads' and 'poll' are about a hosted SSD"},
      {"a?media=memory&staging=64K", "'staging'"},
      {"ram:64M?media=hosted", "media=hosted is about an image"},
      {"ram:64M?threads=2", "'threads'"},
      {"ram:64M?staging=64K", "'staging'"},
      {"a?staging=1000", "'staging'"},
      {"a?mdts=5000", "'mdts'"},
      {"a?mdts=2K", "'mdts'"},
      {"a?spare=2T", "'spare'"},
      {"a?mdts=512M", "'mdts'"},
      {"a?cache=1", "'cache'"},
      {"a?cache=2T", "'cache'"},
      {"a?descriptors=0", "'descriptors' wants a number from 1 to 16777216"},
      {"a?descriptors=16777217", "'descriptors'"},
      {"a?descriptors=1M", "'descriptors'"},
      {"a?timeout=0", "'timeout'"},
      {"a?timeout=1h", "'timeout'"},
      {"a?timeout=99999999999999999s", "'timeout'"},
      {"a?checkpoint=0", "'checkpoint'"},
      {"a?checkpoint=often", "'checkpoint'"},
      {"a?ablate=", "knows no ''"},
      {"a?ablate=gravity", "knows no 'gravity' (inode-lock, one-log"},
      {"a?ablate=one-log,", "knows no ''"},
      {"a?model=floppy", "floppy"},
      {"a?model=990pro,iops=x", "iops"},
      {"a?model=", "'model'"},
      {"a?queues=1?depth=2", "'queues'"},
      {std::string("a\0b", 3), "NUL"},
  };
  for (const auto& one : cases) {
    const auto specs = parse(one.spec);
    ASSERT_FALSE(specs) << one.spec;
    EXPECT_EQ(specs.error().code, EINVAL) << one.spec;
    EXPECT_NE(specs.error().message.find(one.named), std::string::npos)
        << one.spec << ": " << specs.error().message;
  }
}

TEST(ParseSize, units_and_limits) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("512"), 512u);
  EXPECT_EQ(parse_size("512B"), 512u);
  EXPECT_EQ(parse_size("4k"), 4096u);
  EXPECT_EQ(parse_size("4KB"), 4096u);
  EXPECT_EQ(parse_size("4KiB"), 4096u);
  EXPECT_EQ(parse_size("3M"), 3u << 20);
  EXPECT_EQ(parse_size("2T"), uint64_t{2} << 40);
  EXPECT_EQ(parse_size("18446744073709551615"), kMax);
  EXPECT_EQ(parse_size("16777215T"), uint64_t{16777215} << 40);
  for (const char* bad : {"", "K", "-1", "+1", "1.5G", "1 G", "1GG", "1iB", "0x10", "1P",
                          "18446744073709551616", "16777216T"}) {
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
  }
}

TEST(ParseDuration, units_and_limits) {
  EXPECT_EQ(parse_duration_ns("2"), 2000000000u);
  EXPECT_EQ(parse_duration_ns("2s"), 2000000000u);
  EXPECT_EQ(parse_duration_ns("3ms"), 3000000u);
  EXPECT_EQ(parse_duration_ns("4us"), 4000u);
  for (const char* bad : {"", "s", "1m", "1ns", "-1s", "1.5s", "18446744074s"}) {
    EXPECT_EQ(parse_duration_ns(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace gofs::host
