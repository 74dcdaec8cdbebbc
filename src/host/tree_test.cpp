// SPDX-License-Identifier: Apache-2.0
//
// Walking and summing whole volumes, against what is known of them.
#include "host/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "host/hash_files.h"
#include "host/volume_for_test.h"

namespace gofs::host {
namespace {

std::unique_ptr<VolumeState> mount(const std::string& path) {
  return std::move(VolumeState::mount(path, {.backend = "cpu"}, MountKind::kVolume).value());
}

struct Walked {
  std::vector<TreeEntry> entries;
  std::vector<std::string> directories;
  std::vector<Error> errors;
};

Walked walk(VolumeState& volume, const std::string& path, const WalkOptions& options) {
  Walked walked;
  Tree tree(volume);
  WalkVisitor visitor;
  visitor.entry = [&](const TreeEntry& entry) { walked.entries.push_back(entry); };
  visitor.directory = [&](const std::string& name) { walked.directories.push_back(name); };
  visitor.error = [&](const Error& error) { walked.errors.push_back(error); };
  tree.walk(tree.find(path, false).value(), options, visitor);
  return walked;
}

TEST(Tree, a_walk_meets_everything_once_in_order) {
  const auto volume = mount(sample_volume().path());
  const Walked walked = walk(*volume, "/", {.recursive = true, .link_targets = true});
  EXPECT_TRUE(walked.errors.empty());
  EXPECT_EQ(walked.directories, (std::vector<std::string>{"/", "/data", "/locked"}));
  std::map<std::string, const TreeEntry*> by_path;
  for (const TreeEntry& entry : walked.entries) {
    EXPECT_TRUE(by_path.emplace(entry.path, &entry).second) << entry.path;
    ASSERT_TRUE(entry.stat) << entry.path;
    EXPECT_EQ(entry.stat->ino, entry.entry.ino);
    EXPECT_EQ(entry.path.substr(entry.name_at), entry.entry.name);
  }
  for (const auto& [path, file] : sample_volume().files()) {
    ASSERT_TRUE(by_path.contains(path)) << path;
    EXPECT_EQ(by_path[path]->stat->size_bytes, file.size_bytes);
    EXPECT_EQ(by_path[path]->entry.type, format::kTypeRegular);
  }
  // And /again, two directories, three links, two special files.
  EXPECT_EQ(walked.entries.size(), sample_volume().files().size() + 8);
  EXPECT_EQ(by_path["/link"]->link_target, "data");
  EXPECT_EQ(by_path["/dangling"]->link_target, "nowhere");
  EXPECT_FALSE(by_path["/odd"]->link_target);
  EXPECT_TRUE(std::is_sorted(walked.entries.begin(), walked.entries.begin() + 16,
                             [](const auto& a, const auto& b) { return a.path < b.path; }));
}

TEST(Tree, attributes_come_by_name_where_they_are_asked_for) {
  const auto volume = mount(sample_volume().path());
  const Walked walked = walk(*volume, "/", {.recursive = true, .xattrs = true});
  EXPECT_TRUE(walked.errors.empty());
  size_t with_some = 0;
  for (const TreeEntry& entry : walked.entries) {
    ASSERT_TRUE(entry.xattrs) << entry.path;
    with_some += entry.xattrs->empty() ? 0 : 1;
    if (entry.path != "/block") continue;
    ASSERT_EQ(entry.xattrs->size(), 4u);
    EXPECT_EQ((*entry.xattrs)[0].name, "system.posix_acl_access");
    EXPECT_EQ((*entry.xattrs)[1].name, "trusted.mark");
    EXPECT_EQ((*entry.xattrs)[2].name, "user.colour");
    EXPECT_EQ((*entry.xattrs)[2].value, "green");
    EXPECT_EQ((*entry.xattrs)[3].value, SampleVolume::long_value());
  }
  EXPECT_EQ(with_some, 2u);  // /block and /data
  Tree tree(*volume);
  const TreeEntry data = tree.find("/data", false).value();
  EXPECT_EQ(tree.xattrs_of(data).value().at(0).value, "red");
  TreeEntry gone = data;
  gone.entry.ino = 4'000'000'000;  // More than the volume can number.
  EXPECT_EQ(tree.xattrs_of(gone).error().code, ESTALE);
  gone.entry.ino = 1;  // The node area's own, which is never an inode's.
  EXPECT_EQ(tree.xattrs_of(gone).error().code, EUCLEAN);
}

TEST(Tree, one_level_without_inodes) {
  const auto volume = mount(sample_volume().path());
  const Walked walked = walk(*volume, "/data/", {.recursive = false, .stat = false});
  EXPECT_EQ(walked.entries.size(), SampleVolume::kDataFiles);
  EXPECT_FALSE(walked.entries[0].stat);
  EXPECT_EQ(walked.entries[0].path, "/data/file0000");
}

TEST(Tree, find_names_what_is_missing) {
  const auto volume = mount(sample_volume().path());
  Tree tree(*volume);
  EXPECT_EQ(tree.find("nosuch", false).error().message, "nosuch: No such file or directory");
  EXPECT_EQ(tree.find("", false).error().message, "\"\": No such file or directory");
  EXPECT_EQ(tree.find("data///", false).value().path, "/data");
  EXPECT_EQ(tree.find("/", false).value().path, "/");
  EXPECT_EQ(tree.find("link", true).value().link_target, "data");
}

TEST(Tree, directories_are_left_when_all_below_has_been_told) {
  const auto volume = mount(sample_volume().path());
  Tree tree(*volume);
  std::vector<std::string> steps;
  WalkVisitor visitor;
  visitor.directory = [&](const std::string& path) { steps.push_back("in " + path); };
  visitor.left = [&](const TreeEntry& entry) {
    steps.push_back("out " + entry.path);
    EXPECT_EQ(entry.path.substr(entry.name_at), entry.entry.name);
    EXPECT_EQ(entry.directory, format::kRootIno);
    EXPECT_EQ(entry.entry.type, format::kTypeDirectory);
  };
  tree.walk(tree.find("/", false).value(), {.recursive = true}, visitor);
  EXPECT_EQ(steps, (std::vector<std::string>{"in /", "in /data", "out /data", "in /locked",
                                             "out /locked"}));
}

// More names than are asked for at once, in directories with paths too long for any call.
TEST(Tree, wide_and_deep_directories) {
  constexpr uint32_t kWide = 20'000;
  constexpr uint32_t kDeep = 30;
  const image::TemporaryPath path;
  std::unique_ptr<image::ImageTarget> target;
  ASSERT_TRUE(image::open_file_target(path.path(), uint64_t{256} << 20, &target).ok());
  std::unique_ptr<image::ImageBuilder> builder;
  image::VolumeOptions options;
  options.flush = false;
  ASSERT_TRUE(image::ImageBuilder::create(*target, options, &builder).ok());
  for (uint32_t i = 0; i < kWide; ++i) {
    const std::string name = "n" + std::to_string(i);
    image::FileSpec file;
    file.name = name;
    ASSERT_TRUE(builder->add_file(builder->root(), file).ok());
  }
  image::Directory at = builder->root();
  const std::string long_name(250, 'd');
  for (uint32_t i = 0; i < kDeep; ++i) {
    ASSERT_TRUE(builder->add_directory(at, long_name, {}, {}, &at).ok());
  }
  image::FileSpec file;
  file.name = "bottom";
  file.size_bytes = 3;
  file.content = image::string_content("end");
  ASSERT_TRUE(builder->add_file(at, file).ok());
  ASSERT_TRUE(builder->add_symlink(at, "link", "bottom", {}).ok());
  ASSERT_TRUE(builder->finish().ok());
  builder.reset();
  target.reset();  // it has the image alone

  const auto volume = mount(path.path());
  const Walked walked = walk(*volume, "/", {.recursive = true, .link_targets = true});
  EXPECT_TRUE(walked.errors.empty());
  ASSERT_EQ(walked.entries.size(), kWide + kDeep + 2);
  EXPECT_EQ(walked.entries.back().path.size(), kDeep * 251u + 5);
  EXPECT_EQ(walked.entries.back().link_target, "bottom");
  const TreeEntry& bottom = walked.entries[walked.entries.size() - 2];
  const auto sums = hash_files(*volume, {{bottom.entry.ino, 3}}, [](uint64_t) {}).value();
  EXPECT_EQ(sums[0].error, 0);
}

TEST(HashFiles, sums_are_those_of_the_contents) {
  const auto volume = mount(sample_volume().path());
  const Walked walked = walk(*volume, "/", {.recursive = true});
  std::vector<FileToHash> files;
  std::vector<std::string> paths;
  for (const TreeEntry& entry : walked.entries) {
    if (entry.entry.type != format::kTypeRegular || entry.path == "/holes") continue;
    files.push_back({entry.entry.ino, entry.stat->size_bytes});
    paths.push_back(entry.path == "/again" ? "/odd" : entry.path);
  }
  const auto sums = hash_files(*volume, files, [](uint64_t) {}).value();
  ASSERT_EQ(sums.size(), files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    const uint64_t size = sample_volume().files().at(paths[i]).size_bytes;
    ASSERT_EQ(sums[i].error, 0) << paths[i];
    EXPECT_EQ(sums[i].ino, files[i].ino);
    EXPECT_EQ(sums[i].size_bytes, size);
    const std::vector<uint8_t> content = sample_volume().content(paths[i], 0, size);
    uint8_t digest[kernels::kSha256DigestBytes];
    kernels::sha256(content.data(), content.size(), digest);
    EXPECT_EQ(std::memcmp(digest, sums[i].digest, sizeof(digest)), 0) << paths[i];
  }
}

TEST(HashFiles, errors_are_of_single_files) {
  const auto volume = mount(sample_volume().path());
  Tree tree(*volume);
  const uint64_t odd = tree.find("/odd", false).value().entry.ino;
  const uint64_t link = tree.find("/link", false).value().entry.ino;
  const uint64_t directory = tree.find("/data", false).value().entry.ino;
  const std::vector<FileToHash> files = {{directory, 5},     {odd, 10'007}, {link, 4},
                                         {4'000'000'000, 0}, {1, 0},        {odd, 1}};
  const auto sums = hash_files(*volume, files, [](uint64_t) {}).value();
  EXPECT_EQ(sums[0].error, -EINVAL);
  EXPECT_EQ(sums[1].error, 0);
  EXPECT_EQ(sums[2].error, -EINVAL);
  EXPECT_EQ(sums[3].error, -ESTALE);
  EXPECT_EQ(sums[4].error, -EUCLEAN);
  EXPECT_EQ(sums[5].error, 0);
  EXPECT_EQ(std::memcmp(sums[1].digest, sums[5].digest, sizeof(sums[1].digest)), 0);
  EXPECT_TRUE(hash_files(*volume, {}, [](uint64_t) {}).value().empty());
}

}  // namespace
}  // namespace gofs::host
