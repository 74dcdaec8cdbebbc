// SPDX-License-Identifier: Apache-2.0
//
// The device API on a GPU, by every scope: a volume is made, mounted on the CUDA backend and read
// by kernels; what they read is compared with what was written. Reads run over a table of offsets
// and lengths around every edge (blocks, LBAs, inline data, node levels, holes, the end of the
// file).
#include <cooperative_groups.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "gofs/gofs.cuh"
#include "gofs/volume.hpp"
#include "host/image/image_builder.h"
#include "host/image/mkfs.h"

namespace {

namespace cg = cooperative_groups;

#define CHECK_CUDA(call) ASSERT_EQ(call, cudaSuccess) << cudaGetErrorString(cudaGetLastError())

enum class Scope { kThread, kWarp, kBlock, kGrid, kAsyncThread, kAsyncWarp };

struct ReadCase {
  const char* path;  // device memory
  uint64_t offset;
  uint64_t bytes;
  uint8_t* buffer;
  int64_t result;
};

template <typename Group>
__device__ void run_case(const Group& group, gofs::VolumeHandle vol, ReadCase& one, bool writes) {
  const int fd = gofs::open(group, vol, one.path);
  const int64_t got = fd < 0 ? fd : gofs::pread(group, vol, fd, one.buffer, one.bytes, one.offset);
  if (fd >= 0) gofs::close(group, vol, fd);
  if (writes) one.result = got;
}

template <typename Group>
__device__ void run_async(const Group& group, gofs::VolumeHandle vol, ReadCase& one, bool writes) {
  const int fd = gofs::open(group, vol, one.path);
  int64_t got = fd;
  if (fd >= 0) {
    const gofs::Ticket ticket =
        gofs::pread_async(group, vol, fd, one.buffer, one.bytes, one.offset);
    got = gofs::wait(group, vol, ticket);
    gofs::close(group, vol, fd);
  }
  if (writes) one.result = got;
}

__global__ void read_kernel(gofs::VolumeHandle vol, ReadCase* cases, uint32_t count, Scope scope) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t threads = gridDim.x * blockDim.x;
  switch (scope) {
    case Scope::kThread:
      for (uint32_t i = thread; i < count; i += threads) {
        run_case(gofs::this_thread(), vol, cases[i], true);
      }
      break;
    case Scope::kAsyncThread:
      for (uint32_t i = thread; i < count; i += threads) {
        run_async(gofs::this_thread(), vol, cases[i], true);
      }
      break;
    case Scope::kWarp: {
      const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
      for (uint32_t i = thread / 32; i < count; i += threads / 32) {
        run_case(tile, vol, cases[i], tile.thread_rank() == 0);
      }
      break;
    }
    case Scope::kAsyncWarp:
      for (uint32_t i = thread / 32; i < count; i += threads / 32) {
        run_async(gofs::this_warp(), vol, cases[i], threadIdx.x % 32 == 0);
      }
      break;
    case Scope::kBlock:
      for (uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
        run_case(cg::this_thread_block(), vol, cases[i], threadIdx.x == 0);
      }
      break;
    case Scope::kGrid:
      for (uint32_t i = 0; i < count; ++i) {
        run_case(gofs::this_grid(), vol, cases[i], thread == 0);
      }
      break;
  }
}

struct MetadataResults {
  int stat_result;
  gofs::Stat stat;
  int64_t link_bytes;
  char link[64];
  int missing;
  int loop;
  int not_directory;
  int writing;
  int bad_descriptor;
  int64_t names;
  int64_t end;
  int64_t seek_data;
  int64_t seek_hole;
  int64_t first_read;
  int64_t second_read;
  int64_t third_read;
  uint64_t free_blocks;
};

constexpr uint32_t kXattrBytes = 4000;

/// What one group was told about extended attributes.
struct XattrResults {
  int64_t list_bytes;
  int64_t link_list_bytes;
  int64_t fd_list_bytes;
  int64_t value_bytes;
  int64_t link_value;
  int64_t fd_value_bytes;
  int64_t size;
  int64_t too_small;
  int64_t acl_bytes;
  char list[128];
  char value[kXattrBytes];
  char fd_value[kXattrBytes];
  char acl[64];
};

/// `out` belongs to the group, which all of its threads pass.
template <typename Group>
__device__ void ask_xattrs(const Group& group, gofs::VolumeHandle vol, XattrResults* out,
                           bool writes) {
  XattrResults* const r = out;
  const int64_t list = gofs::listxattr(group, vol, "/marked", r->list, sizeof(r->list));
  const int64_t link_list = gofs::llistxattr(group, vol, "/links/to_marked", nullptr, 0);
  const int64_t value =
      gofs::getxattr(group, vol, "/links/to_marked", "user.long", r->value, kXattrBytes);
  const int64_t link_value =
      gofs::lgetxattr(group, vol, "/links/to_marked", "user.long", r->fd_value, kXattrBytes);
  const int64_t size = gofs::getxattr(group, vol, "/marked", "user.long", nullptr, 0);
  const int64_t small = gofs::getxattr(group, vol, "/marked", "user.long", r->fd_value, 5);
  const int64_t acl =
      gofs::getxattr(group, vol, "/marked", "system.posix_acl_access", r->acl, sizeof(r->acl));
  const int fd = gofs::open(group, vol, "/marked");
  const int64_t fd_list = gofs::flistxattr(group, vol, fd, nullptr, 0);
  const int64_t fd_value = gofs::fgetxattr(group, vol, fd, "user.long", r->fd_value, kXattrBytes);
  gofs::close(group, vol, fd);
  if (!writes) return;
  r->list_bytes = list;
  r->link_list_bytes = link_list;
  r->fd_list_bytes = fd_list;
  r->value_bytes = value;
  r->link_value = link_value;
  r->fd_value_bytes = fd_value;
  r->size = size;
  r->too_small = small;
  r->acl_bytes = acl;
}

__global__ void xattr_kernel(gofs::VolumeHandle vol, XattrResults* results, Scope scope) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  switch (scope) {
    case Scope::kThread:
      ask_xattrs(gofs::this_thread(), vol, results + thread, true);
      break;
    case Scope::kWarp:
      ask_xattrs(gofs::this_warp(), vol, results + thread / 32, threadIdx.x % 32 == 0);
      break;
    case Scope::kBlock:
      ask_xattrs(gofs::this_block(), vol, results + blockIdx.x, threadIdx.x == 0);
      break;
    default:
      ask_xattrs(gofs::this_grid(), vol, results, thread == 0);
      break;
  }
}

/// One string in device memory.
struct DeviceString {
  char* data = nullptr;
  explicit DeviceString(const std::string& text) {
    cudaMalloc(&data, text.size() + 1);
    cudaMemcpy(data, text.c_str(), text.size() + 1, cudaMemcpyHostToDevice);
  }
  ~DeviceString() { cudaFree(data); }
  DeviceString(const DeviceString&) = delete;
};

__global__ void metadata_kernel(gofs::VolumeHandle vol, MetadataResults* out,
                                gofs::NamedEntry* entries, uint8_t* scratch) {
  const auto block = gofs::this_block();
  const bool first = threadIdx.x == 0;
  const int stat_result = gofs::stat(block, vol, "/links/to_medium", &out->stat);
  const int64_t link_bytes =
      gofs::readlink(block, vol, "/links/to_medium", out->link, sizeof(out->link));
  const int missing = gofs::open(block, vol, "/nothing/here");
  const int loop = gofs::open(block, vol, "/links/loop");
  const int not_directory = gofs::open(block, vol, "/medium/x");
  const int writing = gofs::open(block, vol, "/medium", 2);
  const int bad_descriptor = gofs::close(block, vol, 4000);
  const int dir = gofs::opendir(block, vol, "/many");
  int64_t names = 0;
  int64_t got = 0;
  while ((got = gofs::readdir(block, vol, dir, entries, 256)) > 0) names += got;
  gofs::close(block, vol, dir);
  const int sparse = gofs::open(block, vol, "/sparse");
  const int64_t seek_data = gofs::lseek(block, vol, sparse, 0, gofs::kSeekData);
  const int64_t seek_hole = gofs::lseek(block, vol, sparse, seek_data, gofs::kSeekHole);
  gofs::close(block, vol, sparse);
  const int medium = gofs::open(block, vol, "/medium");
  const int64_t first_read = gofs::read(block, vol, medium, scratch, 100000);
  const int64_t second_read = gofs::read(block, vol, medium, scratch, 1 << 20);
  const int64_t third_read = gofs::read(block, vol, medium, scratch, 10);
  gofs::close(block, vol, medium);
  if (first) {
    out->stat_result = stat_result;
    out->link_bytes = link_bytes;
    out->missing = missing;
    out->loop = loop;
    out->not_directory = not_directory;
    out->writing = writing;
    out->bad_descriptor = bad_descriptor;
    out->names = names;
    out->end = got;
    out->seek_data = seek_data;
    out->seek_hole = seek_hole;
    out->first_read = first_read;
    out->second_read = second_read;
    out->third_read = third_read;
    out->free_blocks = gofs::statfs(vol).blocks_free;
  }
}

struct BatchResults {
  int opened;
  int64_t count;
  int64_t bytes;
  int closed;
  int closed_twice;
};

template <typename Group>
__device__ void run_batch(const Group& group, gofs::VolumeHandle vol, const char* path,
                          const char* const* names, uint32_t count, uint8_t* buffer,
                          const uint64_t* offsets, int* errors, BatchResults* out, bool first) {
  const int bd = gofs::batch_open(group, vol, path, names, count);
  BatchResults results{bd, 0, 0, 0, 0};
  if (bd >= 0) {
    results.count = gofs::batch_count(vol, bd);
    results.bytes = gofs::batch_read(group, vol, bd, buffer, offsets);
    if (first) {
      for (uint32_t i = 0; i < results.count; ++i) errors[i] = gofs::batch_file(vol, bd, i).error;
    }
    results.closed = gofs::batch_close(group, vol, bd);
    results.closed_twice = gofs::batch_close(group, vol, bd);
  }
  if (first) *out = results;
}

__global__ void batch_kernel(gofs::VolumeHandle vol, const char* path, const char* const* names,
                             uint32_t count, uint8_t* buffer, const uint64_t* offsets, int* errors,
                             BatchResults* out, Scope scope) {
  const bool first = blockIdx.x == 0 && threadIdx.x == 0;
  if (scope == Scope::kGrid) {
    run_batch(gofs::this_grid(), vol, path, names, count, buffer, offsets, errors, out, first);
  } else if (scope == Scope::kBlock) {
    run_batch(gofs::this_block(), vol, path, names, count, buffer, offsets, errors, out, first);
  } else {
    run_batch(gofs::this_warp(), vol, path, names, count, buffer, offsets, errors, out, first);
  }
}

/// Inode numbers of all regular files of `path`, at most `room`. `counted`: how many, or an errno.
template <typename Group>
__device__ void list_files(const Group& group, gofs::VolumeHandle vol, const char* path,
                           uint32_t room, uint32_t* inos, int64_t* counted, bool first) {
  const int bd = gofs::batch_open(group, vol, path, nullptr, room);
  const int64_t count = bd < 0 ? bd : gofs::batch_count(vol, bd);
  if (first) {
    for (uint32_t i = 0; i < count; ++i) inos[i] = gofs::batch_file(vol, bd, i).ino;
    *counted = count;
  }
  if (bd >= 0) gofs::batch_close(group, vol, bd);
}

__global__ void list_kernel(gofs::VolumeHandle vol, const char* path, uint32_t room, uint32_t* inos,
                            int64_t* counted, Scope scope) {
  const bool first = blockIdx.x == 0 && threadIdx.x == 0;
  if (scope == Scope::kGrid) {
    list_files(gofs::this_grid(), vol, path, room, inos, counted, first);
  } else if (blockIdx.x != 0) {
    return;
  } else if (scope == Scope::kBlock) {
    list_files(gofs::this_block(), vol, path, room, inos, counted, first);
  } else if (scope == Scope::kWarp) {
    if (threadIdx.x < 32) list_files(gofs::this_warp(), vol, path, room, inos, counted, first);
  } else if (first) {
    list_files(gofs::this_thread(), vol, path, room, inos, counted, first);
  }
}

constexpr uint64_t kMediumBytes = 300 * 4096 + 123;
constexpr uint64_t kLargeBytes = uint64_t{24} << 20;
constexpr uint64_t kSparseBytes = uint64_t{6} << 30;
constexpr uint32_t kManyFiles = 3000;

struct File {
  std::string path;
  uint64_t bytes;
  uint64_t seed;
  gofs::image::Content content;
};

class DeviceApi : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    int devices = 0;
    ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess) << "these tests need a GPU";
    char name[] = "/tmp/gofs_device_api_XXXXXX";
    const int fd = mkstemp(name);
    ASSERT_GE(fd, 0);
    ::close(fd);
    image_ = name;
    build();
    gofs::MountOptions options;
    options.backend = "cuda";
    // Instrumented code is slow, and threads of one warp that diverge share its turns.
    const bool slow = getenv("GOFS_UNDER_SANITIZER") != nullptr;
    options.command_timeout_ns = (slow ? 90 : 20) * uint64_t{1'000'000'000};
    auto mounted =
        gofs::Volume::mount(image_ + "?media=memory&lba=" + std::to_string(GetParam()), options);
    ASSERT_TRUE(mounted) << mounted.error().message;
    volume_ = std::make_unique<gofs::Volume>(std::move(*mounted));
  }
  void TearDown() override {
    volume_.reset();
    std::filesystem::remove(image_);
  }

  void add(gofs::image::ImageBuilder& builder, const std::string& name, uint64_t bytes,
           bool inline_data, uint32_t run_blocks) {
    File file{"/" + name, bytes, files_.size() + 1, nullptr};
    file.content = gofs::image::pattern_content(file.seed);
    gofs::image::FileSpec spec;
    spec.name = name;
    spec.size_bytes = bytes;
    spec.content = file.content;
    spec.inline_data = inline_data;
    gofs::image::FileLayout layout;
    layout.run_blocks = run_blocks;
    ASSERT_TRUE(builder.add_file(builder.root(), spec, layout).ok());
    files_.push_back(file);
  }

  /// Of user.long of /marked: begins in the inode and ends in a node.
  static std::string long_value() {
    std::string value(3500, ' ');
    for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 31 + i / 256);
    return value;
  }

  void build() {
    gofs::image::VolumeOptions options;
    options.seed = 7;
    options.overwrite = true;
    options.flush = false;
    std::unique_ptr<gofs::image::ImageTarget> target;
    ASSERT_TRUE(
        gofs::image::open_volume_target(image_, uint64_t{256} << 20, options, &target).ok());
    std::unique_ptr<gofs::image::ImageBuilder> builder;
    ASSERT_TRUE(gofs::image::ImageBuilder::create(*target, options, &builder).ok());
    add(*builder, "tiny", 10, true, 0);
    add(*builder, "inline", 3400, true, 0);
    add(*builder, "one", 4096, false, 0);
    add(*builder, "odd", 5000, false, 0);
    add(*builder, "medium", kMediumBytes, false, 0);
    add(*builder, "large", kLargeBytes, false, 0);
    add(*builder, "scattered", kLargeBytes / 2 + 77, false, 1);
    gofs::image::FileSpec sparse;
    sparse.name = "sparse";
    sparse.size_bytes = kSparseBytes;
    sparse.content = gofs::image::pattern_content(99);
    sparse.sparse = true;
    sparse.ranges = {{1000, 3}, {700000, 2}, {1500000, 5}};
    ASSERT_TRUE(builder->add_file(builder->root(), sparse).ok());
    gofs::image::Directory links;
    ASSERT_TRUE(builder->add_directory(builder->root(), "links", {}, {}, &links).ok());
    ASSERT_TRUE(builder->add_symlink(links, "to_medium", "../medium", {}).ok());
    ASSERT_TRUE(builder->add_symlink(links, "to_marked", "../marked", {}).ok());
    gofs::image::FileSpec marked;
    marked.name = "marked";
    marked.inline_xattr = true;
    marked.xattrs = {
        {gofs::format::kXattrUser, "colour", "green"},
        {gofs::format::kXattrUser, "long", long_value()},
        {gofs::format::kXattrAclAccess, "", std::string("\1\0\0\0\1\0\6\0\4\0\4\0\x20\0\4\0", 16)}};
    ASSERT_TRUE(builder->add_file(builder->root(), marked).ok());
    ASSERT_TRUE(builder->add_symlink(links, "loop", "/links/loop", {}).ok());
    gofs::image::Directory many;
    ASSERT_TRUE(builder->add_directory(builder->root(), "many", {}, {}, &many).ok());
    for (uint32_t i = 0; i < kManyFiles; ++i) {
      gofs::image::FileSpec spec;
      const std::string name = "entry_" + std::to_string(i);
      spec.name = name;
      ASSERT_TRUE(builder->add_file(many, spec).ok());
    }
    ASSERT_TRUE(builder->finish().ok());
  }

  /// Reads every case on the GPU by `scope` and compares with the contents.
  void check(Scope scope, uint32_t blocks, uint32_t threads) {
    struct Expectation {
      size_t file;
      uint64_t offset;
      uint64_t bytes;
      uint32_t shift;  // misalignment of the buffer
    };
    std::vector<Expectation> wanted;
    for (size_t f = 0; f < files_.size(); ++f) {
      const uint64_t size = files_[f].bytes;
      const uint64_t offsets[] = {0,          1,        511,      512,  4095,    4096,
                                  8192 + 512, size / 2, size - 1, size, size + 5};
      const uint64_t lengths[] = {1, 512, 4096, 4097, 40000, 140000};
      for (const uint64_t offset : offsets) {
        for (const uint64_t length : lengths) {
          if (offset > size + 5) continue;
          wanted.push_back({f, offset, length, static_cast<uint32_t>(wanted.size() % 7 == 0)});
        }
      }
      if (size < (2 << 20)) wanted.push_back({f, 0, size, 0});
    }
    uint64_t total = 0;
    std::vector<ReadCase> cases;
    std::vector<std::unique_ptr<DeviceString>> paths;
    for (const File& file : files_) paths.push_back(std::make_unique<DeviceString>(file.path));
    std::vector<uint64_t> places;
    for (const Expectation& one : wanted) {
      places.push_back(total + one.shift);
      total += (one.bytes + 4096 + 8191) / 4096 * 4096;
    }
    uint8_t* buffer = nullptr;
    CHECK_CUDA(cudaMalloc(&buffer, total));
    CHECK_CUDA(cudaMemset(buffer, 0xee, total));
    for (size_t i = 0; i < wanted.size(); ++i) {
      cases.push_back({paths[wanted[i].file]->data, wanted[i].offset, wanted[i].bytes,
                       buffer + places[i], -9999});
    }
    ReadCase* device_cases = nullptr;
    CHECK_CUDA(cudaMalloc(&device_cases, cases.size() * sizeof(ReadCase)));
    CHECK_CUDA(cudaMemcpy(device_cases, cases.data(), cases.size() * sizeof(ReadCase),
                          cudaMemcpyHostToDevice));
    gofs::VolumeHandle handle = volume_->device();
    auto count = static_cast<uint32_t>(cases.size());
    if (scope == Scope::kGrid) {
      void* arguments[] = {&handle, &device_cases, &count, &scope};
      CHECK_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(read_kernel), dim3(blocks),
                                             dim3(threads), arguments, 0, nullptr));
    } else {
      read_kernel<<<blocks, threads>>>(handle, device_cases, count, scope);
    }
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaMemcpy(cases.data(), device_cases, cases.size() * sizeof(ReadCase),
                          cudaMemcpyDeviceToHost));
    std::vector<uint8_t> bytes(total);
    CHECK_CUDA(cudaMemcpy(bytes.data(), buffer, total, cudaMemcpyDeviceToHost));
    std::vector<uint8_t> expected;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Expectation& one = wanted[i];
      const File& file = files_[one.file];
      const uint64_t available = one.offset >= file.bytes ? 0 : file.bytes - one.offset;
      const uint64_t length = std::min(available, one.bytes);
      const std::string what =
          file.path + " at " + std::to_string(one.offset) + " for " + std::to_string(one.bytes);
      ASSERT_EQ(cases[i].result, static_cast<int64_t>(length)) << what;
      expected.resize(length);
      if (length != 0) {
        // Content is asked from the block's start, as the builder does.
        const uint64_t start = one.offset / 4096 * 4096;
        std::vector<uint8_t> whole(one.offset - start + length);
        ASSERT_EQ(file.content(start, whole.data(), whole.size()), 0);
        std::memcpy(expected.data(), whole.data() + (one.offset - start), length);
      }
      ASSERT_EQ(std::memcmp(expected.data(), bytes.data() + places[i], length), 0) << what;
      // Not a byte past what was read.
      for (uint64_t k = length; k < length + 64; ++k) {
        ASSERT_EQ(bytes[places[i] + k], 0xee) << what << ": byte " << k << " was touched";
      }
    }
    cudaFree(buffer);
    cudaFree(device_cases);
  }

  std::string image_;
  std::vector<File> files_;
  std::unique_ptr<gofs::Volume> volume_;
};

TEST_P(DeviceApi, threads_read_for_themselves) { check(Scope::kThread, 4, 96); }
TEST_P(DeviceApi, warps_read_together) { check(Scope::kWarp, 8, 128); }
TEST_P(DeviceApi, blocks_read_together) { check(Scope::kBlock, 6, 128); }
TEST_P(DeviceApi, a_block_smaller_than_a_warp_reads) { check(Scope::kBlock, 3, 20); }
TEST_P(DeviceApi, the_grid_reads_together) { check(Scope::kGrid, 8, 64); }
TEST_P(DeviceApi, threads_read_asynchronously) { check(Scope::kAsyncThread, 4, 64); }
TEST_P(DeviceApi, warps_read_asynchronously) { check(Scope::kAsyncWarp, 8, 64); }

TEST_P(DeviceApi, metadata_is_what_was_written) {
  MetadataResults* results = nullptr;
  gofs::NamedEntry* entries = nullptr;
  uint8_t* scratch = nullptr;
  CHECK_CUDA(cudaMalloc(&results, sizeof(MetadataResults)));
  CHECK_CUDA(cudaMalloc(&entries, 256 * sizeof(gofs::NamedEntry)));
  CHECK_CUDA(cudaMalloc(&scratch, 2 << 20));
  metadata_kernel<<<1, 128>>>(volume_->device(), results, entries, scratch);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
  MetadataResults got{};
  CHECK_CUDA(cudaMemcpy(&got, results, sizeof(got), cudaMemcpyDeviceToHost));
  EXPECT_EQ(got.stat_result, 0);
  EXPECT_EQ(got.stat.size_bytes, kMediumBytes);
  EXPECT_EQ(std::string(got.link, got.link + std::max<int64_t>(got.link_bytes, 0)), "../medium");
  EXPECT_EQ(got.missing, -ENOENT);
  EXPECT_EQ(got.loop, -ELOOP);
  EXPECT_EQ(got.not_directory, -ENOTDIR);
  EXPECT_EQ(got.writing, -EROFS);
  EXPECT_EQ(got.bad_descriptor, -EBADF);
  EXPECT_EQ(got.names, kManyFiles);
  EXPECT_EQ(got.end, 0);
  EXPECT_EQ(got.seek_data, 1000 * 4096);
  EXPECT_EQ(got.seek_hole, 1003 * 4096);
  EXPECT_EQ(got.first_read, 100000);
  EXPECT_EQ(got.second_read, std::min<int64_t>(1 << 20, kMediumBytes - 100000));
  EXPECT_EQ(got.third_read,
            std::min<int64_t>(10, static_cast<int64_t>(kMediumBytes) - 100000 - got.second_read));
  EXPECT_GT(got.free_blocks, 0u);
  EXPECT_TRUE(volume_->warnings().empty());
  cudaFree(results);
  cudaFree(entries);
  cudaFree(scratch);
}

TEST_P(DeviceApi, extended_attributes_are_the_same_at_every_scope) {
  constexpr uint32_t kBlocks = 3;
  constexpr uint32_t kThreads = 96;
  const std::string names =
      std::string("user.colour") + '\0' + "user.long" + '\0' + "system.posix_acl_access" + '\0';
  const std::string acl(
      "\2\0\0\0\1\0\6\0\xff\xff\xff\xff\4\0\4\0\xff\xff\xff\xff"
      "\x20\0\4\0\xff\xff\xff\xff",
      28);
  const auto bytes = static_cast<int64_t>(names.size());
  for (const auto& [scope, groups] :
       {std::pair{Scope::kThread, kBlocks * kThreads},
        std::pair{Scope::kWarp, kBlocks * kThreads / 32}, std::pair{Scope::kBlock, kBlocks},
        std::pair{Scope::kGrid, 1u}}) {
    XattrResults* results = nullptr;
    CHECK_CUDA(cudaMalloc(&results, groups * sizeof(XattrResults)));
    CHECK_CUDA(cudaMemset(results, 0x5c, groups * sizeof(XattrResults)));
    gofs::VolumeHandle handle = volume_->device();
    Scope scope_argument = scope;
    void* arguments[] = {&handle, &results, &scope_argument};
    CHECK_CUDA(cudaLaunchCooperativeKernel(xattr_kernel, dim3(kBlocks), dim3(kThreads), arguments));
    CHECK_CUDA(cudaDeviceSynchronize());
    std::vector<XattrResults> all(groups);
    CHECK_CUDA(
        cudaMemcpy(all.data(), results, groups * sizeof(XattrResults), cudaMemcpyDeviceToHost));
    cudaFree(results);
    for (const XattrResults& got : all) {
      ASSERT_EQ(got.list_bytes, bytes) << static_cast<int>(scope);
      EXPECT_EQ(std::string(got.list, names.size()), names);
      EXPECT_EQ(got.fd_list_bytes, bytes);
      EXPECT_EQ(got.link_list_bytes, 0);
      EXPECT_EQ(got.link_value, -ENODATA);
      EXPECT_EQ(got.size, 3500);
      EXPECT_EQ(got.too_small, -ERANGE);
      ASSERT_EQ(got.value_bytes, 3500);
      ASSERT_EQ(got.fd_value_bytes, 3500);
      EXPECT_EQ(std::string(got.value, 3500), long_value());
      EXPECT_EQ(std::string(got.fd_value, 3500), long_value());
      ASSERT_EQ(got.acl_bytes, 28);
      EXPECT_EQ(std::string(got.acl, 28), acl);
    }
  }
  EXPECT_EQ(volume_->getxattr("/marked", "user.long").value(), long_value());
  EXPECT_EQ(volume_->listxattr("/marked").value(),
            (std::vector<std::string>{"user.colour", "user.long", "system.posix_acl_access"}));
  EXPECT_TRUE(volume_->warnings().empty());
}

TEST_P(DeviceApi, a_batch_reads_files_by_name_and_says_which_failed) {
  std::vector<std::string> names = {"tiny",      "inline",    "one",   "odd",  "medium",
                                    "scattered", "not there", "links", "large"};
  for (const Scope scope : {Scope::kWarp, Scope::kBlock, Scope::kGrid}) {
    const DeviceString path("/");
    std::vector<std::unique_ptr<DeviceString>> strings;
    std::vector<const char*> pointers;
    std::vector<uint64_t> offsets;
    uint64_t total = 0;
    uint64_t readable = 0;
    for (const std::string& name : names) {
      strings.push_back(std::make_unique<DeviceString>(name));
      pointers.push_back(strings.back()->data);
      offsets.push_back(total);
      for (const File& file : files_) {
        if (file.path == "/" + name) {
          total += (file.bytes + 4095) / 4096 * 4096;
          readable += file.bytes;
        }
      }
    }
    const char** device_names = nullptr;
    uint64_t* device_offsets = nullptr;
    uint8_t* buffer = nullptr;
    int* errors = nullptr;
    BatchResults* results = nullptr;
    CHECK_CUDA(cudaMalloc(&device_names, pointers.size() * sizeof(char*)));
    CHECK_CUDA(cudaMalloc(&device_offsets, offsets.size() * sizeof(uint64_t)));
    CHECK_CUDA(cudaMalloc(&buffer, total));
    CHECK_CUDA(cudaMalloc(&errors, names.size() * sizeof(int)));
    CHECK_CUDA(cudaMalloc(&results, sizeof(BatchResults)));
    CHECK_CUDA(cudaMemcpy(device_names, pointers.data(), pointers.size() * sizeof(char*),
                          cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(device_offsets, offsets.data(), offsets.size() * sizeof(uint64_t),
                          cudaMemcpyHostToDevice));
    gofs::VolumeHandle handle = volume_->device();
    const char* path_data = path.data;
    auto count = static_cast<uint32_t>(names.size());
    Scope by = scope;
    void* arguments[] = {&handle,         &path_data, &device_names, &count, &buffer,
                         &device_offsets, &errors,    &results,      &by};
    const unsigned blocks = scope == Scope::kGrid ? 4 : 1;
    const unsigned threads = scope == Scope::kWarp ? 32 : 128;
    CHECK_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(batch_kernel), dim3(blocks),
                                           dim3(threads), arguments, 0, nullptr));
    CHECK_CUDA(cudaDeviceSynchronize());
    BatchResults got{};
    std::vector<int> file_errors(names.size());
    std::vector<uint8_t> bytes(total);
    CHECK_CUDA(cudaMemcpy(&got, results, sizeof(got), cudaMemcpyDeviceToHost));
    CHECK_CUDA(
        cudaMemcpy(file_errors.data(), errors, names.size() * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaMemcpy(bytes.data(), buffer, total, cudaMemcpyDeviceToHost));
    ASSERT_GE(got.opened, 0);
    EXPECT_EQ(got.count, static_cast<int64_t>(names.size()));
    EXPECT_EQ(got.bytes, static_cast<int64_t>(readable));
    EXPECT_EQ(got.closed, 0);
    EXPECT_EQ(got.closed_twice, -EBADF);
    for (size_t i = 0; i < names.size(); ++i) {
      const int wanted = names[i] == "not there" ? -ENOENT : names[i] == "links" ? -EISDIR : 0;
      EXPECT_EQ(file_errors[i], wanted) << names[i];
      for (const File& file : files_) {
        if (file.path != "/" + names[i]) continue;
        std::vector<uint8_t> expected(file.bytes);
        ASSERT_EQ(file.content(0, expected.data(), expected.size()), 0);
        ASSERT_EQ(std::memcmp(expected.data(), bytes.data() + offsets[i], file.bytes), 0)
            << names[i];
      }
    }
    for (void* memory :
         {static_cast<void*>(device_names), static_cast<void*>(device_offsets),
          static_cast<void*>(buffer), static_cast<void*>(errors), static_cast<void*>(results)}) {
      cudaFree(memory);
    }
  }
}

TEST_P(DeviceApi, a_batch_lists_a_directory_in_the_order_of_readdir_at_every_scope) {
  std::vector<uint32_t> wanted;
  const int dir = volume_->opendir("/many").value();
  for (auto some = volume_->readdir(dir).value(); !some.empty();
       some = volume_->readdir(dir).value()) {
    for (const auto& entry : some) wanted.push_back(static_cast<uint32_t>(entry.ino));
  }
  ASSERT_EQ(wanted.size(), kManyFiles);
  const DeviceString path("/many");
  uint32_t* inos = nullptr;
  int64_t* counted = nullptr;
  CHECK_CUDA(cudaMalloc(&inos, 2 * kManyFiles * sizeof(uint32_t)));
  CHECK_CUDA(cudaMalloc(&counted, sizeof(int64_t)));
  for (const Scope scope : {Scope::kThread, Scope::kWarp, Scope::kBlock, Scope::kGrid}) {
    for (const uint32_t room : {2 * kManyFiles, 1000u}) {
      gofs::VolumeHandle handle = volume_->device();
      const char* path_data = path.data;
      uint32_t most = room;
      Scope by = scope;
      void* arguments[] = {&handle, &path_data, &most, &inos, &counted, &by};
      CHECK_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(list_kernel), dim3(4),
                                             dim3(128), arguments, 0, nullptr));
      CHECK_CUDA(cudaDeviceSynchronize());
      int64_t count = 0;
      CHECK_CUDA(cudaMemcpy(&count, counted, sizeof(count), cudaMemcpyDeviceToHost));
      const size_t least = std::min<size_t>(room, wanted.size());
      ASSERT_EQ(count, static_cast<int64_t>(least)) << static_cast<int>(scope);
      std::vector<uint32_t> got(least);
      CHECK_CUDA(cudaMemcpy(got.data(), inos, least * sizeof(uint32_t), cudaMemcpyDeviceToHost));
      EXPECT_TRUE(std::equal(got.begin(), got.end(), wanted.begin())) << static_cast<int>(scope);
    }
  }
  cudaFree(inos);
  cudaFree(counted);
}

INSTANTIATE_TEST_SUITE_P(LbaBytes, DeviceApi, testing::Values(512u, 4096u));

}  // namespace
