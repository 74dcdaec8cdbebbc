// SPDX-License-Identifier: Apache-2.0
#include "ssd/memory_source.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "ssd/descriptor.h"

namespace gofs::ssd {
namespace {

bool all_zero(const MemorySource& memory) {
  return std::all_of(memory.base(), memory.base() + memory.bytes(),
                     [](uint8_t byte) { return byte == 0; });
}

std::string refusal_of(const std::string& path, int error) {
  try {
    make_file_memory(path);
  } catch (const std::system_error& problem) {
    EXPECT_EQ(problem.code().value(), error) << problem.what();
    return problem.what();
  }
  ADD_FAILURE() << path << " was taken";
  return {};
}

/// A file in memory and a path that opens it.
struct MemoryFile {
  explicit MemoryFile(uint64_t bytes) : file(::memfd_create("gofs-test", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    path = "/proc/self/fd/" + std::to_string(file.get());
  }
  Descriptor file;
  std::string path;
};

TEST(HostMemory, is_zeroed_and_a_whole_number_of_huge_pages) {
  const auto memory = make_host_memory((uint64_t{3} << 20) + 1);
  EXPECT_EQ(memory->bytes(), uint64_t{4} << 20);
  EXPECT_EQ(reinterpret_cast<uint64_t>(memory->base()) % (uint64_t{2} << 20), 0u);
  EXPECT_TRUE(all_zero(*memory));
  EXPECT_NE(memory->description().find("4 MiB of host memory in "), std::string::npos);
  EXPECT_NE(memory->description().find("pages"), std::string::npos);
  std::memset(memory->base(), 0x5a, memory->bytes());
}

TEST(HostMemory, is_all_there_before_its_first_use) {
  const auto memory = make_host_memory(uint64_t{4} << 20);
  unsigned char there[1024] = {};
  ASSERT_EQ(::mincore(memory->base(), memory->bytes(), there), 0);
  for (const unsigned char page : there) EXPECT_EQ(page & 1, 1);
}

TEST(HostMemory, a_child_does_not_have_it) {
  const auto memory = make_host_memory(uint64_t{2} << 20);
  unsigned char there[512] = {};
  const pid_t child = ::fork();
  if (child == 0) {
    const bool gone = ::mincore(memory->base(), memory->bytes(), there) != 0 && errno == ENOMEM;
    ::_exit(gone ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(HostMemory, a_size_that_cannot_be_is_refused) {
  for (const uint64_t bytes : {uint64_t{0}, ~uint64_t{0}}) {
    EXPECT_THROW(make_host_memory(bytes), std::system_error);
  }
}

TEST(HostMemory, more_than_there_can_be_is_an_error_and_no_crash) {
  EXPECT_THROW(make_host_memory(uint64_t{1} << 62), std::system_error);
}

TEST(FileMemory, is_the_whole_file_shared_and_zeroed) {
  MemoryFile file(65536);
  const char old[] = "what was there";
  ASSERT_EQ(::pwrite(file.file.get(), old, sizeof old, 4096), ssize_t{sizeof old});
  const auto memory = make_file_memory(file.path);
  EXPECT_EQ(memory->bytes(), 65536u);
  EXPECT_TRUE(all_zero(*memory));
  EXPECT_EQ(memory->description(), "64 KiB of " + file.path);
  memory->base()[65535] = 0x77;
  uint8_t seen = 0;
  ASSERT_EQ(::pread(file.file.get(), &seen, 1, 65535), 1);
  EXPECT_EQ(seen, 0x77);
}

TEST(FileMemory, belongs_to_one_at_a_time) {
  MemoryFile file(4096);
  const auto memory = make_file_memory(file.path);
  EXPECT_NE(refusal_of(file.path, EWOULDBLOCK).find("in use"), std::string::npos);
}

TEST(FileMemory, a_file_on_a_disk_is_refused_and_kept) {
  // The folder of the build is on a disk wherever tests are run; where it is not, nothing is shown.
  const char* const folder = std::getenv("GOFS_BUILD_DIR");
  const std::string path = std::string(folder != nullptr ? folder : ".") + "/file_memory_test.tmp";
  const std::string text(4096, 'x');
  std::ofstream(path) << text;
  struct Remove {
    std::string path;
    ~Remove() { ::unlink(path.c_str()); }
  } remove{path};
  try {
    make_file_memory(path);
    GTEST_SKIP() << path << " is in memory";
  } catch (const std::system_error& problem) {
    EXPECT_NE(std::string(problem.what()).find("neither the resource file"), std::string::npos);
  }
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
}

TEST(FileMemory, memory_of_a_device_that_a_driver_has_is_refused) {
  std::string folder = "/dev/shm/gofs-device-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) GTEST_SKIP() << "no /dev/shm";
  std::ofstream(folder + "/resource1") << std::string(4096, 'x');
  std::filesystem::create_symlink("../../../bus/pci/drivers/nvidia", folder + "/driver");
  EXPECT_NE(refusal_of(folder + "/resource1", EBUSY).find("the driver nvidia has"),
            std::string::npos);
  std::filesystem::remove(folder + "/driver");
  EXPECT_EQ(make_file_memory(folder + "/resource1")->bytes(), 4096u);
  std::ofstream(folder + "/resource1_wc") << std::string(4096, 'x');
  EXPECT_NE(refusal_of(folder + "/resource1_wc", EINVAL).find("use " + folder + "/resource1"),
            std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(FileMemory, what_is_not_there_or_of_no_use_is_refused_with_its_path) {
  EXPECT_NE(refusal_of("/no/such/file", ENOENT).find("/no/such/file"), std::string::npos);
  refusal_of("/dev/null", EINVAL);
  MemoryFile empty(0);
  EXPECT_NE(refusal_of(empty.path, EINVAL).find("0 bytes"), std::string::npos);
  MemoryFile odd(5000);
  EXPECT_NE(refusal_of(odd.path, EINVAL).find("5000 bytes"), std::string::npos);
}

}  // namespace
}  // namespace gofs::ssd
