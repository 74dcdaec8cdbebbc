// SPDX-License-Identifier: Apache-2.0
//
// Extended attributes as programs ask for them: names, buffers, permissions, and the values that
// Linux shows in another form than the disk holds. Buffers have guards on both sides.
#include "vfs/xattr.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/image/reader_for_test.h"
#include "vfs/open.h"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

/// Numbers as they stand on disk and in the system call's values.
std::string bytes_of(std::initializer_list<std::pair<int, uint32_t>> fields) {
  std::string bytes;
  for (const auto& [size, value] : fields) {
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i);
  }
  return bytes;
}

const std::string& big_value() {
  static const std::string value = [] {
    std::string text;
    for (int i = 0; i < 3000; ++i) text += static_cast<char>(i * 7 + i / 256);
    return text;
  }();
  return value;
}

const std::string kDiskAcl = bytes_of({{4, 1},
                                       {2, 1},
                                       {2, 6},
                                       {2, 2},
                                       {2, 5},
                                       {4, 70000},
                                       {2, 4},
                                       {2, 4},
                                       {2, 8},
                                       {2, 7},
                                       {4, 0x80000001},
                                       {2, 16},
                                       {2, 7},
                                       {2, 32},
                                       {2, 0}});
const std::string kShownAcl = bytes_of({{4, 2},
                                        {2, 1},
                                        {2, 6},
                                        {4, 0xFFFFFFFF},
                                        {2, 2},
                                        {2, 5},
                                        {4, 70000},
                                        {2, 4},
                                        {2, 4},
                                        {4, 0xFFFFFFFF},
                                        {2, 8},
                                        {2, 7},
                                        {4, 0x80000001},
                                        {2, 16},
                                        {2, 7},
                                        {4, 0xFFFFFFFF},
                                        {2, 32},
                                        {2, 0},
                                        {4, 0xFFFFFFFF}});

std::string capability(uint32_t version, uint32_t root) {
  const std::string data = bytes_of({{4, version << 24 | 1}, {4, 0x3400}, {4, 9}, {4, 8}, {4, 7}});
  return version == 3 ? data + bytes_of({{4, root}}) : data;
}

void add_files(image::ImageBuilder& builder) {
  using namespace format;
  const auto add = [&](const std::string& name, const image::Attributes& attributes,
                       std::vector<image::Xattr> xattrs) {
    image::FileSpec file;
    file.name = name;
    file.attributes = attributes;
    file.inline_xattr = true;
    file.xattrs = std::move(xattrs);
    TestImage::must(builder.add_file(builder.root(), file));
  };
  add("all", {},
      {{kXattrUser, "colour", "green"},
       {kXattrAclAccess, "", kDiskAcl},
       {kXattrUser, "big", big_value()},
       {kXattrTrusted, "secret", "of root"},
       {kXattrEncryption, "c", "a context"},
       {kXattrSecurity, "label", ""},
       {kXattrVerity, "v", "a descriptor"},
       {kXattrUser, "colours", "more"}});
  add("plain", {}, {});
  add("private", {.mode = 0600, .uid = 7, .gid = 7},
      {{kXattrUser, "a", "1"}, {kXattrSecurity, "b", "2"}, {kXattrTrusted, "c", "3"}});
  add("capability2", {}, {{kXattrSecurity, "capability", capability(2, 0)}});
  add("capability3", {}, {{kXattrSecurity, "capability", capability(3, 0)}});
  add("capability_of_5", {}, {{kXattrSecurity, "capability", capability(3, 5)}});
  add("no_capability", {}, {{kXattrSecurity, "capability", "root"}, {kXattrUser, "a", "1"}});
  add("acl_empty", {}, {{kXattrAclAccess, "", bytes_of({{4, 1}})}, {kXattrUser, "a", "1"}});
  add("acl_version", {}, {{kXattrAclAccess, "", bytes_of({{4, 2}, {2, 1}, {2, 6}})}});
  add("acl_tag", {}, {{kXattrAclAccess, "", bytes_of({{4, 1}, {2, 3}, {2, 6}})}});
  add("acl_cut", {}, {{kXattrAclAccess, "", bytes_of({{4, 1}, {2, 2}, {2, 6}, {2, 1}})}});
  add("acl_cut_tag", {}, {{kXattrAclAccess, "", bytes_of({{4, 1}, {2, 1}})}});
  image::DirectoryOptions options;
  options.xattrs = {{kXattrAclDefault, "", kDiskAcl}, {kXattrUser, "dir", "yes"}};
  TestImage::must(builder.add_directory(builder.root(), "dir", {.mode = 0755}, options, nullptr));
  TestImage::must(builder.add_symlink(builder.root(), "link", "all", {}));
}

/// Gives the symbolic link attributes, which the builder cannot.
void dress_link(TestImage& image) {
  const auto target = image.target();
  image::TestReader reader(*target);
  format::NodeBlock& link = image.node(reader.at("/link").ino);
  link.inode.i_inline = static_cast<uint8_t>(link.inode.i_inline | format::kInlineXattr);
  link.inode.i_advise = format::kAdviseHot;
  const auto layout = format::inode_layout(link.inode, 0);
  const std::string bytes =
      bytes_of({{4, format::kXattrMagic}, {4, 1}, {4, 0}, {4, 0}, {4, 0}, {4, 0}}) +
      bytes_of({{1, format::kXattrTrusted}, {1, 1}, {2, 2}}) + "txy" + '\0' +
      bytes_of({{1, format::kXattrUser}, {1, 1}, {2, 2}}) + "uzz" + '\0' +
      bytes_of({{1, format::kXattrAclAccess}, {1, 0}, {2, 8}, {4, 1}, {2, 1}, {2, 6}});
  std::memcpy(reinterpret_cast<uint8_t*>(&link) + layout.xattr_offset, bytes.data(), bytes.size());
}

struct Answer {
  int64_t result = 0;
  std::string bytes;

  bool operator==(const Answer&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Answer& answer) {
  return out << answer.result << " " << ::testing::PrintToString(answer.bytes);
}

class XattrCallTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  static void SetUpTestSuite() {
    image_ = std::make_unique<TestImage>(add_files);
    dress_link(*image_);
  }
  static void TearDownTestSuite() { image_.reset(); }

  uint32_t width() const { return GetParam(); }
  void SetUp() override { as(0, 0); }

  /// Mounts for another user.
  void as(uint32_t uid, uint32_t gid) {
    VolumeRigOptions options;
    options.filesystem.credentials.uid = uid;
    options.filesystem.credentials.gid = gid;
    rig_ = std::make_unique<VolumeRig>(*image_, options);
    rig_->mount_ready();
  }
  Filesystem& fs() { return rig_->fs(); }

  /// Calls `work(warp, buffer, capacity)`; what it wrote, and nothing beside it.
  template <typename Work>
  Answer with_buffer(uint64_t capacity, Work work) {
    constexpr size_t kMargin = 64;
    std::vector<uint8_t> room(capacity + 2 * kMargin, 0x5c);
    Answer answer;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int64_t result = work(warp, room.data() + kMargin, capacity);
      EXPECT_TRUE(warp.all(warp.shfl(result, 0) == result));
      if (warp.thread_rank() == 0) answer.result = result;
      warp.sync();
    });
    const auto untouched = [](uint8_t byte) { return byte == 0x5c; };
    EXPECT_TRUE(std::all_of(room.begin(), room.begin() + kMargin, untouched));
    EXPECT_TRUE(std::all_of(room.end() - kMargin, room.end(), untouched));
    if (answer.result > 0 && capacity != 0) {
      EXPECT_LE(answer.result, static_cast<int64_t>(capacity));
      answer.bytes.assign(reinterpret_cast<char*>(room.data()) + kMargin,
                          static_cast<size_t>(answer.result));
    }
    return answer;
  }
  Answer get(const std::string& path, const std::string& name, uint64_t capacity = 4096,
             LastLink last_link = LastLink::kFollow) {
    return with_buffer(capacity, [&](const simt::Warp& warp, uint8_t* buffer, uint64_t bytes) {
      return getxattr(warp, fs(), path.c_str(), last_link, name.c_str(), buffer, bytes);
    });
  }
  Answer list(const std::string& path, uint64_t capacity = 4096,
              LastLink last_link = LastLink::kFollow) {
    return with_buffer(capacity, [&](const simt::Warp& warp, uint8_t* buffer, uint64_t bytes) {
      return listxattr(warp, fs(), path.c_str(), last_link, reinterpret_cast<char*>(buffer), bytes);
    });
  }
  Answer dump(const std::string& path, uint64_t capacity) {
    return with_buffer(capacity, [&](const simt::Warp& warp, uint8_t* buffer, uint64_t bytes) {
      f2fs::Inode inode{};
      EXPECT_EQ(resolve(warp, fs(), path.c_str(), LastLink::kFollow, inode), 0);
      return dump_xattrs_of(warp, fs(), inode, buffer, bytes);
    });
  }
  static Answer value(const std::string& bytes) {
    return {static_cast<int64_t>(bytes.size()), bytes};
  }
  static Answer error(int code) { return {-code, ""}; }
  static std::string names(std::initializer_list<const char*> all) {
    std::string joined;
    for (const char* name : all) joined += std::string(name) + '\0';
    return joined;
  }

  static inline std::unique_ptr<TestImage> image_;
  std::unique_ptr<VolumeRig> rig_;
};
GOFS_AT_BOTH_WIDTHS(XattrCallTest);

TEST_P(XattrCallTest, values_come_in_any_buffer_that_holds_them) {
  EXPECT_EQ(get("/all", "user.colour"), value("green"));
  EXPECT_EQ(get("/all", "user.colours"), value("more"));
  EXPECT_EQ(get("/all", "user.big"), value(big_value()));
  EXPECT_EQ(get("/all", "user.big", 3000), value(big_value()));
  EXPECT_EQ(get("/all", "user.big", 2999), error(ERANGE));
  EXPECT_EQ(get("/all", "user.big", 1), error(ERANGE));
  EXPECT_EQ(get("/all", "user.big", 0), (Answer{3000, ""}));
  EXPECT_EQ(get("/all", "security.label", 1), value(""));
  EXPECT_EQ(get("/all", "trusted.secret"), value("of root"));
  EXPECT_EQ(get("/dir", "user.dir"), value("yes"));
  EXPECT_EQ(get("/nothing", "user.dir"), error(ENOENT));
}

TEST_P(XattrCallTest, names_are_judged_as_linux_does) {
  EXPECT_EQ(get("/all", ""), error(ERANGE));
  EXPECT_EQ(get("/all", "user." + std::string(251, 'n')), error(ERANGE));
  EXPECT_EQ(get("/all", "user." + std::string(250, 'n')), error(ENODATA));
  EXPECT_EQ(get("/all", "user."), error(EINVAL));
  EXPECT_EQ(get("/all", "trusted."), error(EINVAL));
  EXPECT_EQ(get("/all", "security."), error(EINVAL));
  EXPECT_EQ(get("/all", "user"), error(EOPNOTSUPP));
  EXPECT_EQ(get("/all", "colour"), error(EOPNOTSUPP));
  EXPECT_EQ(get("/all", "system.nothing"), error(EOPNOTSUPP));
  EXPECT_EQ(get("/all", "system.posix_acl_accessx"), error(EOPNOTSUPP));
  EXPECT_EQ(get("/all", "system.posix_acl_default"), error(ENODATA));
  EXPECT_EQ(get("/all", "user.colou"), error(ENODATA));
  EXPECT_EQ(get("/all", "user.secret"), error(ENODATA));
  EXPECT_EQ(get("/plain", "user.a"), error(ENODATA));
  EXPECT_EQ(get("/all", "c"), error(EOPNOTSUPP));
}

TEST_P(XattrCallTest, lists_name_what_programs_may_know_of) {
  const std::string all = names({"user.colour", "system.posix_acl_access", "user.big",
                                 "trusted.secret", "security.label", "user.colours"});
  EXPECT_EQ(list("/all"), value(all));
  EXPECT_EQ(list("/all", all.size()), value(all));
  EXPECT_EQ(list("/all", all.size() - 1), error(ERANGE));
  EXPECT_EQ(list("/all", 1), error(ERANGE));
  EXPECT_EQ(list("/all", 0), (Answer{static_cast<int64_t>(all.size()), ""}));
  EXPECT_EQ(list("/plain"), value(""));
  EXPECT_EQ(list("/dir"), value(names({"system.posix_acl_default", "user.dir"})));
  EXPECT_EQ(list("/nothing"), error(ENOENT));
  EXPECT_EQ(list("/all/x"), error(ENOTDIR));
}

TEST_P(XattrCallTest, links_are_followed_or_asked_themselves) {
  EXPECT_EQ(get("/link", "user.colour"), value("green"));
  EXPECT_EQ(get("/link", "trusted.t"), error(ENODATA));
  EXPECT_EQ(get("/link", "trusted.t", 100, LastLink::kKeep), value("xy"));
  // They may be stored there, but are of files and directories only.
  EXPECT_EQ(get("/link", "user.u", 100, LastLink::kKeep), error(ENODATA));
  EXPECT_EQ(get("/link", "system.posix_acl_access", 100, LastLink::kKeep), error(EOPNOTSUPP));
  EXPECT_EQ(list("/link", 100, LastLink::kKeep),
            value(names({"trusted.t", "user.u", "system.posix_acl_access"})));
  EXPECT_EQ(get("/link", "system.advise", 1, LastLink::kKeep), value("\x20"));
}

TEST_P(XattrCallTest, access_lists_come_in_the_form_of_the_system_call) {
  EXPECT_EQ(get("/all", "system.posix_acl_access"), value(kShownAcl));
  EXPECT_EQ(get("/dir", "system.posix_acl_default", kShownAcl.size()), value(kShownAcl));
  EXPECT_EQ(get("/all", "system.posix_acl_access", kShownAcl.size() - 1), error(ERANGE));
  EXPECT_EQ(get("/all", "system.posix_acl_access", kDiskAcl.size()), error(ERANGE));
  EXPECT_EQ(get("/all", "system.posix_acl_access", 0),
            (Answer{static_cast<int64_t>(kShownAcl.size()), ""}));
  EXPECT_EQ(get("/acl_empty", "system.posix_acl_access"), error(ENODATA));
  for (const char* path : {"/acl_version", "/acl_tag", "/acl_cut", "/acl_cut_tag"}) {
    *fs().volume.corruptions = f2fs::CorruptionLog{};
    EXPECT_EQ(get(path, "system.posix_acl_access"), error(EUCLEAN)) << path;
    EXPECT_EQ(f2fs::count_findings(*fs().volume.corruptions), 1u) << path;
    EXPECT_EQ(list(path), value(names({"system.posix_acl_access"}))) << path;
  }
}

TEST_P(XattrCallTest, capabilities_of_root_have_no_root_user) {
  EXPECT_EQ(get("/capability2", "security.capability"), value(capability(2, 0)));
  EXPECT_EQ(get("/capability3", "security.capability"), value(capability(2, 0)));
  EXPECT_EQ(get("/capability3", "security.capability", 20), value(capability(2, 0)));
  EXPECT_EQ(get("/capability3", "security.capability", 19), error(ERANGE));
  EXPECT_EQ(get("/capability3", "security.capability", 0), (Answer{20, ""}));
  EXPECT_EQ(get("/capability_of_5", "security.capability"), value(capability(3, 5)));
  EXPECT_EQ(get("/no_capability", "security.capability"), error(EINVAL));
}

TEST_P(XattrCallTest, advice_is_made_up_for_every_file_and_not_listed) {
  EXPECT_EQ(get("/plain", "system.advise"), value(std::string(1, '\0')));
  EXPECT_EQ(get("/plain", "system.advise", 0), (Answer{1, ""}));
  EXPECT_EQ(get("/dir", "system.advise", 1).result, 1);
}

TEST_P(XattrCallTest, others_see_less_than_root) {
  as(1000, 1000);
  EXPECT_EQ(get("/all", "trusted.secret"), error(ENODATA));
  EXPECT_EQ(get("/all", "trusted.nothing"), error(ENODATA));
  EXPECT_EQ(get("/all", "user.colour"), error(EACCES)) << "its access list has nothing for others";
  EXPECT_EQ(list("/all"), value(names({"user.colour", "system.posix_acl_access", "user.big",
                                       "security.label", "user.colours"})));
  EXPECT_EQ(get("/private", "user.a"), error(EACCES));
  EXPECT_EQ(get("/private", "user.nothing"), error(EACCES));
  EXPECT_EQ(get("/private", "bogus"), error(EACCES));
  EXPECT_EQ(get("/private", "security.b"), value("2"));
  EXPECT_EQ(list("/private"), value(names({"user.a", "security.b"})));
  EXPECT_EQ(dump("/private", 100), value(std::string("security.b\0\1\0\0\0", 15) + "2"));
  as(7, 7);
  EXPECT_EQ(get("/private", "user.a"), value("1"));
  as(70000, 7);
  EXPECT_EQ(get("/all", "user.colour"), value("green")) << "the list names this user";
}

TEST_P(XattrCallTest, a_dump_has_every_name_with_its_value) {
  std::string expected;
  const auto add = [&expected](const std::string& name, const std::string& bytes) {
    expected += name + '\0' + bytes_of({{4, static_cast<uint32_t>(bytes.size())}}) + bytes;
  };
  add("user.colour", "green");
  add("system.posix_acl_access", kShownAcl);
  add("user.big", big_value());
  add("trusted.secret", "of root");
  add("security.label", "");
  add("user.colours", "more");
  EXPECT_EQ(dump("/all", expected.size()), value(expected));
  EXPECT_EQ(dump("/all", expected.size() - 1), error(ERANGE));
  EXPECT_EQ(dump("/plain", 10), value(""));
  // What has a name but no value is left out.
  for (const char* path : {"/acl_empty", "/no_capability"}) {
    EXPECT_EQ(dump(path, 100), value(std::string("user.a\0\1\0\0\0", 11) + "1")) << path;
  }
  EXPECT_EQ(dump("/acl_tag", 100), error(EUCLEAN));
}

TEST_P(XattrCallTest, descriptors_answer_unless_they_are_only_paths) {
  const auto opened = [&](uint32_t flags) {
    int fd = -1;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int mine = open(warp, fs(), "/all", flags);
      if (warp.thread_rank() == 0) fd = mine;
      warp.sync();
    });
    return fd;
  };
  const auto fget = [&](int fd) {
    return with_buffer(100, [&](const simt::Warp& warp, uint8_t* buffer, uint64_t bytes) {
      return fgetxattr(warp, fs(), fd, "user.colour", buffer, bytes);
    });
  };
  const auto flist = [&](int fd) {
    return with_buffer(200, [&](const simt::Warp& warp, uint8_t* buffer, uint64_t bytes) {
      return flistxattr(warp, fs(), fd, reinterpret_cast<char*>(buffer), bytes);
    });
  };
  const int fd = opened(kOpenReadOnly);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(fget(fd), value("green"));
  EXPECT_EQ(flist(fd), list("/all"));
  const int path = opened(kOpenPath);
  ASSERT_GE(path, 0);
  for (const int bad : {path, -1, 63, 1 << 20}) {
    EXPECT_EQ(fget(bad), error(EBADF)) << bad;
    EXPECT_EQ(flist(bad), error(EBADF)) << bad;
  }
}

TEST_P(XattrCallTest, many_warps_ask_at_once) {
  std::atomic<uint32_t> wrong{0};
  run_crowd({width() == 1 ? 8u : 3u, width()}, [&](const simt::Warp& warp, uint32_t index) {
    // One buffer a warp, which its lanes fill together.
    static char buffers[8][4096];
    char* const buffer = buffers[index];
    for (int turn = 0; turn < 20; ++turn) {
      const int64_t got =
          getxattr(warp, fs(), "/link", LastLink::kFollow, "user.big", buffer, 4096);
      if (got != 3000 || std::memcmp(buffer, big_value().data(), 3000) != 0) ++wrong;
      warp.sync();
      if (listxattr(warp, fs(), "/dir", LastLink::kFollow, buffer, 4096) != 34) ++wrong;
      warp.sync();
    }
  });
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace gofs::vfs
