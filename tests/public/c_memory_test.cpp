// SPDX-License-Identifier: Apache-2.0
//
// Calls of gofs/gofs.h while memory is short: each allocation of the calling thread fails once.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>

#include "gofs/gofs.h"
#include "host/image/fsck_for_test.h"
#include "host/image/mkfs.h"

namespace {

/// How many more allocations of this thread succeed; below 0: all.
thread_local int64_t allocations_left = -1;

void* allocate(size_t bytes, size_t alignment) {
  if (allocations_left == 0) return nullptr;
  if (allocations_left > 0) --allocations_left;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}

void* allocate_or_throw(size_t bytes, size_t alignment) {
  void* const memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

/// Not inlined: g++ would see what operator new has given go to another function than its own.
[[gnu::noinline]] void give_back(void* memory) { std::free(memory); }

}  // namespace

void* operator new(size_t bytes) { return allocate_or_throw(bytes, 16); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 16); }
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { give_back(memory); }

namespace gofs {
namespace {

class CMemoryTest : public ::testing::Test {
 protected:
  CMemoryTest() {
    image::VolumeOptions options;
    options.flush = false;
    EXPECT_TRUE(image::make_volume(image_.path(), uint64_t{64} << 20, options).ok());
  }
  ~CMemoryTest() override { gofs_volume_free(volume_); }

  int mount() {
    gofs_mount_options_t options = {};
    options.struct_bytes = sizeof(options);
    options.backend = "cpu";
    options.writable = 1;
    return gofs_mount(image_.path().c_str(), &options, &volume_);
  }

  const image::TemporaryPath image_;
  gofs_volume* volume_ = nullptr;
};

/// Makes a call with fewer and fewer failing allocations, until it succeeds. How often it failed.
int fail_each_allocation(const char* name, const std::function<int64_t()>& call) {
  for (int failed = 0; failed < 10'000; ++failed) {
    allocations_left = failed;
    const int64_t result = call();
    const bool ran_out = allocations_left == 0;
    allocations_left = -1;
    if (result >= 0) return failed;
    EXPECT_EQ(result, -ENOMEM) << name << ": " << gofs_last_error();
    EXPECT_TRUE(ran_out) << name << " failed with memory left: " << gofs_last_error();
    if (result != -ENOMEM || !ran_out) return failed;
  }
  ADD_FAILURE() << name << " never succeeds";
  return 0;
}

TEST_F(CMemoryTest, calls_that_lack_memory_say_so_and_can_be_made_again) {
  ASSERT_EQ(mount(), 0) << gofs_last_error();
  const std::string path =
      "/" + std::string(100, 'p');  // longer than what strings hold by themselves
  const std::string other = path + "/other";
  const char* const name = "user.an_attribute_with_a_long_name";
  static char buffer[4096];
  static gofs_directory_entry_t entries[GOFS_READDIR_ENTRIES_MIN];
  gofs_stat_t stat;
  int fd = -1;
  const auto times = [](const char* what, const std::function<int64_t()>& call) {
    EXPECT_GT(fail_each_allocation(what, call), 0) << what << " allocates nothing";
  };
  times("mkdir", [&] { return gofs_mkdir(volume_, path.c_str(), 0755); });
  times("open", [&] { return fd = gofs_open(volume_, other.c_str(), O_RDWR | O_CREAT, 0644); });
  EXPECT_EQ(gofs_pwrite(volume_, fd, "hello", 5, 0), 5);
  times("stat", [&] { return gofs_stat(volume_, path.c_str(), &stat); });
  times("setxattr", [&] { return gofs_setxattr(volume_, path.c_str(), name, buffer, 99, 0); });
  times("getxattr", [&] { return gofs_getxattr(volume_, path.c_str(), name, buffer, 99); });
  times("listxattr", [&] { return gofs_listxattr(volume_, path.c_str(), buffer, 99); });
  times("rename", [&] { return gofs_rename(volume_, other.c_str(), "/new", 0); });
  times("symlink", [&] { return gofs_symlink(volume_, path.c_str(), "/link"); });
  times("readlink", [&] { return gofs_readlink(volume_, "/link", buffer, sizeof(buffer)); });
  times("opendir", [&] { return fd = gofs_opendir(volume_, path.c_str()); });
  (void)fail_each_allocation(
      "readdir", [&] { return gofs_readdir(volume_, fd, entries, GOFS_READDIR_ENTRIES_MIN); });
  const gofs_new_file_t files[2] = {{"a_file_with_a_long_name", buffer, 10}, {"b", buffer, 4000}};
  times("batch_create",
        [&] { return gofs_batch_create(volume_, path.c_str(), files, 2, 0600, nullptr); });
  times("memory", [&] { return gofs_memory(volume_, nullptr, 0); });
  times("info", [&] { return gofs_info_text(volume_, GOFS_INFO_SSD, buffer, sizeof(buffer)); });
  times("collect_garbage", [&] { return gofs_collect_garbage(volume_, nullptr, nullptr); });
  (void)fail_each_allocation("sync", [&] { return gofs_sync(volume_); });
  (void)fail_each_allocation("unmount", [&] { return gofs_unmount(volume_); });
  EXPECT_TRUE(image::fsck_is_clean(image_.path()));
}

TEST_F(CMemoryTest, a_mount_that_lacks_memory_gives_the_image_back) {
  EXPECT_GT(fail_each_allocation("mount", [this] { return mount(); }), 0);
}

}  // namespace
}  // namespace gofs
