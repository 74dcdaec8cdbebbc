// SPDX-License-Identifier: Apache-2.0
//
// gofs/gofs.h: a program in C that does what it offers, and what a wrong use of it is told.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "c_program.h"
#include "gofs/gofs.h"
#include "gofs/types.h"
#include "host/image/fsck_for_test.h"
#include "host/image/mkfs.h"
#include "testing/in_child.hpp"

namespace gofs {
namespace {

using testing::in_child;

bool last_error_has(const std::string& words) {
  return std::string(gofs_last_error()).find(words) != std::string::npos;
}

/// A struct that may grow, with its size.
template <typename Struct>
Struct sized() {
  Struct made{};
  made.struct_bytes = sizeof(made);
  return made;
}

gofs_mount_options_t options_of_cpu(bool writable) {
  auto options = sized<gofs_mount_options_t>();
  options.backend = "cpu";
  options.writable = writable ? 1 : 0;
  return options;
}

class CApiTest : public ::testing::Test {
 protected:
  CApiTest() {
    image::VolumeOptions options;
    options.label = "label";
    options.flush = false;
    EXPECT_TRUE(image::make_volume(image_.path(), uint64_t{64} << 20, options).ok());
  }
  ~CApiTest() override { gofs_volume_free(volume_); }

  const char* image() const { return image_.path().c_str(); }
  /// The volume that the test is about.
  gofs_volume* mount(bool writable) {
    const gofs_mount_options_t options = options_of_cpu(writable);
    EXPECT_EQ(gofs_mount(image(), &options, &volume_), 0) << gofs_last_error();
    return volume_;
  }

  const image::TemporaryPath image_;
  gofs_volume* volume_ = nullptr;
};

TEST_F(CApiTest, a_program_in_c_uses_a_volume) {
  GOFS_NEED_TOOL("fsck.f2fs");
  const char* const wrong = use_volume(image());
  EXPECT_EQ(wrong, nullptr) << wrong << "\nlast error: " << gofs_last_error();
  EXPECT_TRUE(image::fsck_is_clean(image_.path()));
}

TEST(CApi, the_version_is_that_of_the_header) {
  EXPECT_EQ(gofs_version(), std::to_string(GOFS_VERSION_MAJOR) + "." +
                                std::to_string(GOFS_VERSION_MINOR) + "." +
                                std::to_string(GOFS_VERSION_PATCH));
}

TEST(CApi, results_have_words) {
  EXPECT_STREQ(gofs_error_text(-ENOENT), "No such file or directory");
  EXPECT_STREQ(gofs_error_text(17), "Success");
  EXPECT_STREQ(gofs_error_text(INT64_MIN), "Unknown error");
}

/// A call with something wrong, and the argument that is to blame.
struct WrongCall {
  std::function<int64_t(gofs_volume*)> call;
  const char* argument;
};

/// All calls that take a volume; nothing else is wrong with them.
std::vector<std::function<int64_t(gofs_volume*)>> calls_about_a_volume() {
  static char buffer[64];
  static gofs_stat_t stat;
  static gofs_identity_t identity;
  static gofs_filesystem_stat_t room;
  static gofs_directory_entry_t entries[GOFS_READDIR_ENTRIES_MIN];
  static gofs_statistics_t statistics = sized<gofs_statistics_t>();
  static gofs_cleaning_report_t cleaned = sized<gofs_cleaning_report_t>();
  static gofs_new_file_t file = {"name", nullptr, 0};
  static uint64_t number;
  using V = gofs_volume*;
  return {
      [](V v) { return gofs_unmount(v); },
      [](V v) { return gofs_sync(v); },
      [](V v) { return gofs_statfs(v, &room); },
      [](V v) { return gofs_memory(v, nullptr, 0); },
      [](V v) { return gofs_cached_pages(v, nullptr, 0); },
      [](V v) { return gofs_collect_garbage(v, nullptr, &cleaned); },
      [](V v) { return gofs_register_buffer(v, buffer, sizeof(buffer), &number); },
      [](V v) { return gofs_unregister_buffer(v, 1); },
      [](V v) { return gofs_statistics(v, &statistics); },
      [](V v) { return gofs_open(v, "/file", 0, 0); },
      [](V v) { return gofs_identity(v, 0, &identity); },
      [](V v) { return gofs_open_inode(v, &identity, 0); },
      [](V v) { return gofs_close(v, 0); },
      [](V v) { return gofs_pread(v, 0, buffer, sizeof(buffer), 0); },
      [](V v) { return gofs_read(v, 0, buffer, sizeof(buffer)); },
      [](V v) { return gofs_pwrite(v, 0, buffer, sizeof(buffer), 0); },
      [](V v) { return gofs_write(v, 0, buffer, sizeof(buffer)); },
      [](V v) { return gofs_lseek(v, 0, 0, GOFS_SEEK_SET); },
      [](V v) { return gofs_truncate(v, "/file", 0); },
      [](V v) { return gofs_ftruncate(v, 0, 0); },
      [](V v) { return gofs_fallocate(v, 0, 0, 0, 1); },
      [](V v) { return gofs_copy_file_range(v, 0, 0, 1, 0, 1); },
      [](V v) { return gofs_fsync(v, 0); },
      [](V v) { return gofs_fdatasync(v, 0); },
      [](V v) { return gofs_access(v, "/", 0); },
      [](V v) { return gofs_mkdir(v, "/a", 0); },
      [](V v) { return gofs_mknod(v, "/a", 0, 0, 0); },
      [](V v) { return gofs_symlink(v, "a", "/a"); },
      [](V v) { return gofs_readlink(v, "/a", buffer, sizeof(buffer)); },
      [](V v) { return gofs_link(v, "/a", "/b"); },
      [](V v) { return gofs_unlink(v, "/a"); },
      [](V v) { return gofs_rmdir(v, "/a"); },
      [](V v) { return gofs_rename(v, "/a", "/b", 0); },
      [](V v) { return gofs_batch_create(v, "/", &file, 1, 0, nullptr); },
      [](V v) { return gofs_opendir(v, "/"); },
      [](V v) { return gofs_readdir(v, 0, entries, GOFS_READDIR_ENTRIES_MIN); },
      [](V v) { return gofs_stat(v, "/", &stat); },
      [](V v) { return gofs_lstat(v, "/", &stat); },
      [](V v) { return gofs_fstat(v, 0, &stat); },
      [](V v) { return gofs_chmod(v, "/a", 0); },
      [](V v) { return gofs_fchmod(v, 0, 0); },
      [](V v) { return gofs_chown(v, "/a", 0, 0); },
      [](V v) { return gofs_lchown(v, "/a", 0, 0); },
      [](V v) { return gofs_fchown(v, 0, 0, 0); },
      [](V v) { return gofs_utimens(v, "/a", nullptr); },
      [](V v) { return gofs_lutimens(v, "/a", nullptr); },
      [](V v) { return gofs_futimens(v, 0, nullptr); },
      [](V v) { return gofs_getxattr(v, "/a", "user.a", buffer, sizeof(buffer)); },
      [](V v) { return gofs_lgetxattr(v, "/a", "user.a", buffer, sizeof(buffer)); },
      [](V v) { return gofs_fgetxattr(v, 0, "user.a", buffer, sizeof(buffer)); },
      [](V v) { return gofs_listxattr(v, "/a", buffer, sizeof(buffer)); },
      [](V v) { return gofs_llistxattr(v, "/a", buffer, sizeof(buffer)); },
      [](V v) { return gofs_flistxattr(v, 0, buffer, sizeof(buffer)); },
      [](V v) { return gofs_setxattr(v, "/a", "user.a", "b", 1, 0); },
      [](V v) { return gofs_lsetxattr(v, "/a", "user.a", "b", 1, 0); },
      [](V v) { return gofs_fsetxattr(v, 0, "user.a", "b", 1, 0); },
      [](V v) { return gofs_removexattr(v, "/a", "user.a"); },
      [](V v) { return gofs_lremovexattr(v, "/a", "user.a"); },
      [](V v) { return gofs_fremovexattr(v, 0, "user.a"); },
      [](V v) { return int64_t{gofs_volume_device_pointer(v) != nullptr ? 0 : gofs_last_errno()}; },
  };
}

/// Those that a volume answers which is not mounted any more.
std::vector<std::function<int64_t(gofs_volume*)>> calls_of_what_is_known() {
  static char buffer[64];
  static gofs_cleaning_report_t cleaned = sized<gofs_cleaning_report_t>();
  static gofs_clock_report_t clock = sized<gofs_clock_report_t>();
  static uint64_t number;
  using V = gofs_volume*;
  return {
      [](V v) { return gofs_info_text(v, GOFS_INFO_LABEL, buffer, sizeof(buffer)); },
      [](V v) { return gofs_info_number(v, GOFS_INFO_CLEAN, &number); },
      [](V v) { return gofs_clock(v, &clock); },
      [](V v) { return gofs_cleaning_totals(v, &cleaned); },
      [](V v) {
        return gofs_warnings(
            v, [](void*, const char*) {}, nullptr);
      },
  };
}

TEST(CApi, every_call_refuses_a_volume_that_is_null) {
  auto calls = calls_about_a_volume();
  for (const auto& call : calls_of_what_is_known()) calls.push_back(call);
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i](nullptr), -EINVAL) << "call " << i;
    EXPECT_EQ(gofs_last_errno(), -EINVAL);
    EXPECT_TRUE(last_error_has(": volume is null")) << "call " << i << ": " << gofs_last_error();
    EXPECT_EQ(std::strncmp(gofs_last_error(), "gofs_", 5), 0) << gofs_last_error();
  }
  gofs_volume_free(nullptr);
}

TEST_F(CApiTest, pointers_that_are_null_and_must_not_be_are_named) {
  const WrongCall wrong_calls[] = {
      {[](auto v) { return gofs_info_number(v, GOFS_INFO_CLEAN, nullptr); }, "number"},
      {[](auto v) { return gofs_statfs(v, nullptr); }, "stat"},
      {[](auto v) { return gofs_clock(v, nullptr); }, "report"},
      {[](auto v) { return gofs_statistics(v, nullptr); }, "statistics"},
      {[](auto v) { return gofs_cleaning_totals(v, nullptr); }, "report"},
      {[](auto v) { return gofs_memory(v, nullptr, 1); }, "the array"},
      {[](auto v) { return gofs_cached_pages(v, nullptr, 1); }, "the array"},
      {[](auto v) { return gofs_warnings(v, nullptr, nullptr); }, "each"},
      {[](auto v) { return gofs_register_buffer(v, nullptr, 1, nullptr); }, "memory"},
      {[](auto v) { return gofs_register_buffer(v, v, 1, nullptr); }, "id"},
      {[](auto v) { return gofs_open(v, nullptr, 0, 0); }, "path"},
      {[](auto v) { return gofs_identity(v, 0, nullptr); }, "identity"},
      {[](auto v) { return gofs_open_inode(v, nullptr, 0); }, "file"},
      {[](auto v) { return gofs_truncate(v, nullptr, 0); }, "path"},
      {[](auto v) { return gofs_symlink(v, nullptr, "/a"); }, "target"},
      {[](auto v) { return gofs_symlink(v, "a", nullptr); }, "path"},
      {[](auto v) { return gofs_readlink(v, nullptr, nullptr, 0); }, "path"},
      {[](auto v) { return gofs_link(v, nullptr, "/a"); }, "existing"},
      {[](auto v) { return gofs_rename(v, "/a", nullptr, 0); }, "to"},
      {[](auto v) { return gofs_rename(v, nullptr, "/a", 0); }, "from"},
      {[](auto v) { return gofs_batch_create(v, nullptr, nullptr, 0, 0, nullptr); }, "path"},
      {[](auto v) { return gofs_batch_create(v, "/", nullptr, 1, 0, nullptr); }, "files"},
      {[](auto v) {
         const gofs_new_file_t file = {nullptr, nullptr, 0};
         return gofs_batch_create(v, "/", &file, 1, 0, nullptr);
       },
       "a name"},
      {[](auto v) { return gofs_opendir(v, nullptr); }, "path"},
      {[](auto v) { return gofs_readdir(v, 0, nullptr, GOFS_READDIR_ENTRIES_MIN); }, "entries"},
      {[](auto v) { return gofs_stat(v, "/", nullptr); }, "stat"},
      {[](auto v) { return gofs_fstat(v, 0, nullptr); }, "stat"},
      {[](auto v) { return gofs_utimens(v, nullptr, nullptr); }, "path"},
      {[](auto v) { return gofs_getxattr(v, "/", nullptr, nullptr, 0); }, "name"},
      {[](auto v) { return gofs_setxattr(v, "/", nullptr, nullptr, 0, 0); }, "name"},
      {[](auto v) { return gofs_removexattr(v, nullptr, "user.a"); }, "path"},
  };
  gofs_volume* const volume = mount(true);
  for (const WrongCall& wrong : wrong_calls) {
    EXPECT_EQ(wrong.call(volume), -EINVAL) << wrong.argument;
    EXPECT_TRUE(last_error_has(wrong.argument)) << gofs_last_error();
    EXPECT_TRUE(last_error_has(" is null")) << gofs_last_error();
  }
  gofs_volume* other = volume;
  EXPECT_EQ(gofs_mount(nullptr, nullptr, &other), -EINVAL);
  EXPECT_EQ(other, nullptr);
  EXPECT_EQ(gofs_mount(image(), nullptr, nullptr), -EINVAL);
}

TEST_F(CApiTest, a_null_buffer_is_a_bad_address_unless_nothing_goes_there) {
  gofs_volume* const volume = mount(true);
  const int fd = gofs_open(volume, "/file", O_RDWR | O_CREAT, 0644);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(gofs_pwrite(volume, fd, nullptr, 1, 0), -EFAULT);
  EXPECT_EQ(gofs_read(volume, fd, nullptr, 1), -EFAULT);
  EXPECT_TRUE(last_error_has("/file"));
  EXPECT_EQ(gofs_read(volume, fd + 1, nullptr, 1), -EBADF);
  EXPECT_EQ(gofs_write(volume, fd, nullptr, 0), 0);
  EXPECT_EQ(gofs_setxattr(volume, "/file", "user.a", nullptr, 1, 0), -EFAULT);
  EXPECT_EQ(gofs_setxattr(volume, "/file", "user.a", "b", 1, 0), 0);
  EXPECT_EQ(gofs_getxattr(volume, "/file", "user.a", nullptr, 1), -EFAULT);
  EXPECT_EQ(gofs_info_text(volume, GOFS_INFO_LABEL, nullptr, 1), -EFAULT);
}

TEST_F(CApiTest, what_info_has_not_is_refused) {
  gofs_volume* const volume = mount(false);
  uint64_t number = 7;
  for (const int what : {-1, 1000}) {
    EXPECT_EQ(gofs_info_text(volume, what, nullptr, 0), -EINVAL);
    EXPECT_EQ(gofs_info_number(volume, what, &number), -EINVAL);
  }
  EXPECT_EQ(number, 7u);
  for (int what = GOFS_INFO_SPEC; what <= GOFS_INFO_FEATURES; ++what) {
    EXPECT_GE(gofs_info_text(volume, what, nullptr, 0), 0) << what;
  }
  for (int what = GOFS_INFO_SSD_BYTES; what <= GOFS_INFO_CLEAN; ++what) {
    EXPECT_EQ(gofs_info_number(volume, what, &number), 0) << what;
  }
  char text[8];
  EXPECT_EQ(gofs_info_text(volume, GOFS_INFO_LABEL, text, 5), -ERANGE) << "no room for the NUL";
  EXPECT_STREQ(gofs_last_error(), "gofs_info_text: the buffer has too little room");
  EXPECT_EQ(gofs_info_text(volume, GOFS_INFO_LABEL, text, 6), 5);
  EXPECT_STREQ(text, "label");
}

TEST_F(CApiTest, what_cannot_be_mounted_is_an_errno_and_a_sentence) {
  gofs_volume* volume = reinterpret_cast<gofs_volume*>(this);
  EXPECT_EQ(gofs_mount("/no/such/image", nullptr, &volume), -ENOENT);
  EXPECT_EQ(volume, nullptr);
  EXPECT_TRUE(last_error_has("/no/such/image"));
  EXPECT_EQ(gofs_attach("/no/such/socket", &volume), -ENOENT);
  EXPECT_EQ(gofs_attach(nullptr, &volume), -EINVAL);
  EXPECT_EQ(gofs_mount("vol.img?no_such_option=1", nullptr, &volume), -EINVAL);
  EXPECT_TRUE(last_error_has("no_such_option"));
  EXPECT_EQ(gofs_mount("", nullptr, &volume), -EINVAL);
  EXPECT_STREQ(gofs_last_error(), "\"\": no image or device is named");
  gofs_mount_options_t options = options_of_cpu(false);
  options.backend = "abacus";
  EXPECT_LT(gofs_mount(image(), &options, &volume), 0);
  EXPECT_TRUE(last_error_has("abacus")) << gofs_last_error();
}

TEST_F(CApiTest, more_than_all_segments_are_refused) {
  for (const auto percent :
       {&gofs_mount_options_t::clean_percent, &gofs_mount_options_t::idle_clean_percent}) {
    gofs_mount_options_t options = options_of_cpu(true);
    options.*percent = 101;
    EXPECT_EQ(gofs_mount(image(), &options, &volume_), -EINVAL);
    EXPECT_TRUE(last_error_has("100 percent")) << gofs_last_error();
  }
}

TEST_F(CApiTest, periods_that_never_end_keep_no_thread_busy) {
  gofs_mount_options_t options = options_of_cpu(true);
  options.checkpoint_period_ns = UINT64_MAX;
  options.clock_period_ns = UINT64_MAX;
  ASSERT_EQ(gofs_mount(image(), &options, &volume_), 0) << gofs_last_error();
  const std::clock_t begun = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(std::clock() - begun, CLOCKS_PER_SEC / 50) << "processor time, of all threads";
  auto report = sized<gofs_clock_report_t>();
  EXPECT_EQ(gofs_clock(volume_, &report), 0);
  EXPECT_LE(report.looks, 1u);
}

TEST_F(CApiTest, several_threads_may_unmount_while_others_ask) {
  gofs_volume* const volume = mount(true);
  ASSERT_EQ(gofs_mkdir(volume, "/new", 0755), 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, volume] {
      EXPECT_EQ(gofs_unmount(volume), 0) << gofs_last_error();
      // Whichever of them has done it: the image has been given back.
      gofs_volume* reading = nullptr;
      const gofs_mount_options_t options = options_of_cpu(false);
      EXPECT_EQ(gofs_mount(image(), &options, &reading), 0) << gofs_last_error();
      gofs_volume_free(reading);
    });
    threads.emplace_back([volume] {
      auto report = sized<gofs_clock_report_t>();
      do {
        EXPECT_EQ(gofs_clock(volume, &report), 0);
      } while (report.looks != 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  char memory[64];
  uint64_t id = 0;
  EXPECT_EQ(gofs_register_buffer(volume, memory, sizeof(memory), &id), -ENODEV);
}

TEST_F(CApiTest, mounts_are_for_reading_unless_it_is_said) {
  gofs_volume* const volume = mount(false);
  EXPECT_EQ(gofs_mkdir(volume, "/a", 0777), -EROFS);
  EXPECT_TRUE(last_error_has("/a"));
  gofs_volume* other = nullptr;
  EXPECT_EQ(gofs_mount((image_.path() + "?backend=cpu").c_str(), nullptr, &other), -EINVAL);
  const gofs_mount_options_t reading = options_of_cpu(false);
  EXPECT_EQ(gofs_mount(image(), &reading, &other), 0) << "two that read";
  gofs_volume_free(other);
}

TEST_F(CApiTest, an_image_that_is_written_to_is_busy) {
  mount(true);
  gofs_volume* other = nullptr;
  for (const bool writable : {false, true}) {
    const gofs_mount_options_t options = options_of_cpu(writable);
    EXPECT_EQ(gofs_mount(image(), &options, &other), -EBUSY);
    EXPECT_TRUE(last_error_has(image()));
  }
  EXPECT_EQ(gofs_unmount(volume_), 0);
  const gofs_mount_options_t options = options_of_cpu(true);
  EXPECT_EQ(gofs_mount(image(), &options, &other), 0) << gofs_last_error();
  gofs_volume_free(other);
}

TEST_F(CApiTest, options_of_a_mount_come_over) {
  gofs_mount_options_t options = options_of_cpu(true);
  options.queues = 3;
  options.queue_depth = 64;
  options.ablations = kAblateBlockMaps;
  options.log_structured = 1;
  ASSERT_EQ(gofs_mount(image(), &options, &volume_), 0) << gofs_last_error();
  uint64_t number = 0;
  char text[32];
  EXPECT_TRUE(gofs_info_number(volume_, GOFS_INFO_QUEUES, &number) == 0 && number == 3);
  EXPECT_TRUE(gofs_info_number(volume_, GOFS_INFO_QUEUE_DEPTH, &number) == 0 && number == 64);
  EXPECT_EQ(gofs_info_text(volume_, GOFS_INFO_ABLATIONS, text, sizeof(text)), 7);
  EXPECT_STREQ(text, "no-maps");
  EXPECT_EQ(gofs_info_text(volume_, GOFS_INFO_MODE, text, sizeof(text)), 3);
  EXPECT_STREQ(text, "lfs");
  const int fd = gofs_open(volume_, "/secret", O_WRONLY | O_CREAT, 0640);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(gofs_fchown(volume_, fd, 7, 8), 0);
  ASSERT_EQ(gofs_unmount(volume_), 0);
  for (const bool member : {false, true}) {
    const uint32_t groups[] = {5, 8};
    gofs_mount_options_t others = options_of_cpu(false);
    others.uid = others.gid = 1000;
    others.groups = groups;
    others.group_count = member ? 2 : 1;
    gofs_volume* other = nullptr;
    ASSERT_EQ(gofs_mount(image(), &others, &other), 0) << gofs_last_error();
    EXPECT_EQ(gofs_access(other, "/secret", GOFS_MAY_READ), member ? 0 : -EACCES);
    gofs_volume_free(other);
  }
}

TEST_F(CApiTest, groups_that_are_too_many_or_nowhere_are_refused) {
  gofs_mount_options_t options = options_of_cpu(false);
  options.group_count = GOFS_GROUPS_MAX;
  EXPECT_EQ(gofs_mount(image(), &options, &volume_), -EINVAL);
  EXPECT_TRUE(last_error_has("groups is null"));
  const uint32_t group = 5;
  options.groups = &group;
  for (const uint32_t count : {uint32_t{GOFS_GROUPS_MAX + 1}, ~uint32_t{0}}) {
    options.group_count = count;
    EXPECT_EQ(gofs_mount(image(), &options, &volume_), -EINVAL);
    EXPECT_TRUE(last_error_has("64")) << gofs_last_error();
  }
}

/// Options of a program that was compiled with a version in which they were longer.
struct LaterOptions {
  gofs_mount_options_t known;
  uint64_t later[3];
};

TEST_F(CApiTest, options_of_a_later_version_are_taken_where_they_are_not_used) {
  LaterOptions options = {options_of_cpu(false), {}};
  options.known.struct_bytes = sizeof(options);
  EXPECT_EQ(gofs_mount(image(), &options.known, &volume_), 0) << gofs_last_error();
  gofs_volume* other = nullptr;
  options.later[2] = 1;
  EXPECT_EQ(gofs_mount(image(), &options.known, &other), -E2BIG);
  options.known.struct_bytes = uint64_t{1} << 40;
  EXPECT_EQ(gofs_mount(image(), &options.known, &other), -E2BIG);
}

TEST_F(CApiTest, structs_without_their_size_are_refused) {
  gofs_mount_options_t options = options_of_cpu(true);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{8}, sizeof(options) - 1}) {
    options.struct_bytes = bytes;
    EXPECT_EQ(gofs_mount(image(), &options, &volume_), -EINVAL) << bytes;
    EXPECT_TRUE(last_error_has("struct_bytes")) << gofs_last_error();
  }
  gofs_volume* const volume = mount(true);
  gofs_clock_report_t clock = {};
  EXPECT_EQ(gofs_clock(volume, &clock), -EINVAL);
  gofs_cleaning_report_t cleaned = {};
  EXPECT_EQ(gofs_cleaning_totals(volume, &cleaned), -EINVAL);
  EXPECT_EQ(gofs_collect_garbage(volume, nullptr, &cleaned), -EINVAL);
  gofs_cleaning_options_t cleaning = {};
  EXPECT_EQ(gofs_collect_garbage(volume, &cleaning, nullptr), -EINVAL);
}

TEST_F(CApiTest, a_report_of_a_later_version_gets_zeros_at_its_end) {
  struct {
    gofs_clock_report_t known;
    uint64_t later;
    uint64_t beyond;
  } clock = {{}, 7, 9};
  clock.known.struct_bytes = offsetof(decltype(clock), beyond);
  EXPECT_EQ(gofs_clock(mount(true), &clock.known), 0);
  EXPECT_EQ(clock.known.struct_bytes, offsetof(decltype(clock), beyond));
  EXPECT_GT(clock.known.looks, 0u);
  EXPECT_EQ(clock.later, 0u);
  EXPECT_EQ(clock.beyond, 9u);
}

TEST_F(CApiTest, the_last_error_is_each_threads_own) {
  gofs_volume* const volume = mount(false);
  EXPECT_EQ(gofs_access(volume, "/here", 0), -ENOENT);
  std::thread other([volume] {
    EXPECT_STREQ(gofs_last_error(), "");
    EXPECT_EQ(gofs_last_errno(), 0);
    EXPECT_EQ(gofs_mkdir(volume, "/there", 0), -EROFS);
    EXPECT_TRUE(last_error_has("/there"));
  });
  other.join();
  EXPECT_EQ(gofs_access(volume, "/", 0), 0) << "leaves it as it is";
  EXPECT_TRUE(last_error_has("/here"));
  EXPECT_EQ(gofs_last_errno(), -ENOENT);
}

TEST_F(CApiTest, of_a_long_sentence_both_ends_are_kept) {
  gofs_volume* const volume = mount(true);
  const std::string from = "/from" + std::string(3000, 'a') + "/x";
  const std::string to = "/to" + std::string(3000, 'b') + "/y";
  EXPECT_EQ(gofs_rename(volume, from.c_str(), to.c_str(), 0), -ENAMETOOLONG);
  const std::string sentence = gofs_last_error();
  EXPECT_EQ(sentence.size(), 4095u);
  EXPECT_EQ(sentence.rfind("/from", 0), 0u);
  EXPECT_NE(sentence.find(" ... "), std::string::npos);
  EXPECT_NE(sentence.find(error_text(-ENAMETOOLONG)), std::string::npos) << sentence;
  EXPECT_EQ(gofs_access(volume, std::string(100'000, 'a').c_str(), 0), -ENAMETOOLONG);
}

TEST_F(CApiTest, counts_that_no_memory_has_are_refused) {
  gofs_volume* const volume = mount(true);
  const int fd = gofs_open(volume, "/file", O_RDWR | O_CREAT, 0644);
  ASSERT_GE(fd, 0);
  char byte = 'a';
  EXPECT_EQ(gofs_pread(volume, fd, &byte, UINT64_MAX, 0), -EINVAL);
  EXPECT_EQ(gofs_pread(volume, fd, &byte, 1, UINT64_MAX), -EINVAL);
  EXPECT_EQ(gofs_pwrite(volume, fd, &byte, UINT64_MAX, 0), -EINVAL);
  EXPECT_EQ(gofs_write(volume, fd, &byte, UINT64_MAX), -EINVAL);
  EXPECT_EQ(gofs_read(volume, fd, &byte, UINT64_MAX), -EINVAL);
  EXPECT_LT(gofs_fallocate(volume, fd, 0, 0, UINT64_MAX), 0);
  EXPECT_LT(gofs_ftruncate(volume, fd, UINT64_MAX), 0);
  EXPECT_EQ(gofs_lseek(volume, fd, INT64_MIN, GOFS_SEEK_SET), -EINVAL);
  const gofs_new_file_t file = {"one", &byte, 1};
  EXPECT_EQ(gofs_batch_create(volume, "/", &file, UINT64_MAX, 0600, nullptr), -EINVAL);
  EXPECT_EQ(gofs_batch_create(volume, "/", &file, 0, 0600, nullptr), 0);
  const std::string value(kXattrValueBytesMax + 1, 'v');
  EXPECT_EQ(gofs_setxattr(volume, "/file", "user.a", value.data(), UINT64_MAX, 0), -E2BIG);
  EXPECT_EQ(gofs_register_buffer(volume, &byte, UINT64_MAX, nullptr), -EINVAL);
  gofs_stat_t stat;
  EXPECT_EQ(gofs_fstat(volume, fd, &stat), 0);
  EXPECT_EQ(stat.size_bytes, 0u);
}

TEST_F(CApiTest, room_for_more_than_there_is_does_no_harm) {
  gofs_volume* const volume = mount(true);
  ASSERT_EQ(gofs_mkdir(volume, "/a", 0755), 0);
  ASSERT_EQ(gofs_symlink(volume, "a", "/l"), 0);
  std::vector<gofs_directory_entry_t> entries(GOFS_READDIR_ENTRIES_MIN);
  const int fd = gofs_opendir(volume, "/");
  EXPECT_EQ(gofs_readdir(volume, fd, entries.data(), UINT64_MAX), 2);
  EXPECT_EQ(gofs_readdir(volume, fd, entries.data(), UINT64_MAX), 0);
  char text[2];
  EXPECT_EQ(gofs_readlink(volume, "/l", text, UINT64_MAX), 1);
  EXPECT_EQ(gofs_readdir(volume, gofs_open(volume, "/f", O_CREAT, 0600), entries.data(), 100),
            -ENOTDIR);
  EXPECT_EQ(gofs_opendir(volume, "/f"), -ENOTDIR);
}

TEST_F(CApiTest, every_call_fails_once_the_volume_is_unmounted) {
  mount(true);
  ASSERT_EQ(gofs_unmount(volume_), 0);
  for (const auto& call : calls_of_what_is_known()) EXPECT_GE(call(volume_), 0);
  int number = 0;
  for (const auto& call : calls_about_a_volume()) {
    const int64_t result = call(volume_);
    // unmount() again is no error, and there is nothing that buffers would be registered for.
    if (number == 0) {
      EXPECT_EQ(result, 0) << gofs_last_error();
    } else if (number != 6 && number != 7) {
      EXPECT_EQ(result, -ENODEV) << "call " << number;
    }
    ++number;
  }
}

TEST_F(CApiTest, every_call_fails_in_a_child_of_fork) {
  mount(true);
  const int fd = gofs_open(volume_, "/file", O_RDWR | O_CREAT, 0644);
  ASSERT_EQ(gofs_pwrite(volume_, fd, "parent", 6, 0), 6);
  ASSERT_EQ(gofs_sync(volume_), 0);
  EXPECT_EQ(in_child([this] {
              int number = 0;
              for (const auto& call : calls_about_a_volume()) {
                if (call(volume_) != -ENODEV || !last_error_has("forked")) return 1 + number;
                ++number;
              }
              std::string sentence;
              const auto keep = [](void* to, const char* words) {
                *static_cast<std::string*>(to) = words;
              };
              if (gofs_warnings(volume_, keep, &sentence) != 1) return 91;
              if (sentence.find("forked") == std::string::npos) return 92;
              char spec[256];
              if (gofs_info_text(volume_, GOFS_INFO_SPEC, spec, sizeof(spec)) <= 0) return 93;
              gofs_volume_free(volume_);
              return spec == image_.path() ? 0 : 94;
            }),
            0);
  EXPECT_EQ(gofs_pwrite(volume_, fd, "again!", 6, 0), 6);
  EXPECT_EQ(gofs_unmount(volume_), 0);
}

TEST_F(CApiTest, warnings_are_given_once) {
  EXPECT_EQ(in_child([this] {
              mount(true);
              const bool made = gofs_mkdir(volume_, "/a", 0755) == 0 && gofs_sync(volume_) == 0;
              return made ? 0 : 1;  // and the volume is left as it is
            }),
            0);
  std::vector<std::string> sentences;
  const auto keep = [](void* to, const char* sentence) {
    static_cast<std::vector<std::string>*>(to)->emplace_back(sentence);
  };
  gofs_volume* const volume = mount(false);
  EXPECT_EQ(gofs_warnings(volume, keep, &sentences), 1);
  ASSERT_EQ(sentences.size(), 1u);
  EXPECT_NE(sentences[0].find("not cleanly unmounted"), std::string::npos);
  EXPECT_EQ(gofs_warnings(volume, keep, &sentences), 0);
}

TEST_F(CApiTest, threads_share_a_volume) {
  gofs_volume* const volume = mount(true);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([volume, i] {
      const std::string path = "/file" + std::to_string(i);
      const std::string missing = "/nothing" + std::to_string(i);
      for (int round = 0; round < 20; ++round) {
        const int fd = gofs_open(volume, path.c_str(), O_RDWR | O_CREAT, 0644);
        EXPECT_EQ(gofs_pwrite(volume, fd, path.data(), path.size(), 0), int64_t(path.size()));
        EXPECT_EQ(gofs_access(volume, missing.c_str(), 0), -ENOENT);
        EXPECT_EQ(gofs_close(volume, fd), 0);
        EXPECT_TRUE(last_error_has(missing));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// tests/gpu/device_c_test.cu has one that has it.
TEST_F(CApiTest, a_volume_that_is_on_no_gpu_has_no_pointer_for_kernels) {
  EXPECT_EQ(gofs_volume_device_pointer(mount(false)), nullptr);
  EXPECT_EQ(gofs_last_errno(), -ENODEV);
  EXPECT_TRUE(last_error_has("CPU")) << gofs_last_error();
}

}  // namespace
}  // namespace gofs
