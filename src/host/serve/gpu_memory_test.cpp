// SPDX-License-Identifier: Apache-2.0
//
// Memory of a GPU in a program whose volume is not there: mounted on the CPU, or attached.
#include "gofs/gpu_memory.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/image/mkfs.h"
#include "host/serve/serving_for_test.h"
#include "testing/fake_cuda.h"

namespace gofs::host {
namespace {

/// More than goes through the host's memory at once.
constexpr uint64_t kFileBytes = (uint64_t{9} << 20) + 77;

/// CUDA as this program loads it, while volumes are in use.
class FakeCuda {
 public:
  FakeCuda() : library_(::dlopen(GOFS_FAKE_CUDA, RTLD_NOW)) {
    EXPECT_NE(library_, nullptr) << ::dlerror();
    find("fake_gpu_allocate", allocate);
    find("fake_gpu_map", map);
    find("fake_gpu_copies", copies);
    find("fake_gpu_look", look);
    find("fake_gpu_fill", fill);
    find("fake_gpu_captured_stream", captured_stream);
    // It is noticed within 10 ms.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  decltype(&fake_gpu_allocate) allocate = nullptr;
  decltype(&fake_gpu_map) map = nullptr;
  decltype(&fake_gpu_copies) copies = nullptr;
  decltype(&fake_gpu_look) look = nullptr;
  decltype(&fake_gpu_fill) fill = nullptr;
  decltype(&fake_gpu_captured_stream) captured_stream = nullptr;

 private:
  template <typename Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    EXPECT_NE(function, nullptr) << name;
  }

  void* const library_;
};

/// Where the volume is: mounted by the program on the CPU, or by a server there, or on a GPU.
enum class Place { kMounted, kServed, kServedOnGpu };

class GpuMemoryTest : public ServingTest, public ::testing::WithParamInterface<Place> {
 protected:
  static BackendMaker backend() {
    return GetParam() != Place::kServedOnGpu ? BackendMaker(make_backend) : make_grid;
  }
  GpuMemoryTest() : ServingTest(backend()) {
    begin_server();
    EXPECT_TRUE(image::make_volume(own_image_.path(), uint64_t{128} << 20, {}).ok());
    auto used = GetParam() != Place::kMounted
                    ? Volume::attach(path_)
                    : Volume::mount(own_image_.path(), {.backend = "cpu", .read_only = false});
    EXPECT_TRUE(used) << used.error().message;
    used_.emplace(std::move(*used));
    // Before CUDA is there, too.
    fd_ = used_->open("/file", O_RDWR | O_CREAT).value();
    contents_.resize(kFileBytes);
    for (size_t i = 0; i < contents_.size(); ++i) contents_[i] = static_cast<char>(i * 31 / 7);
    EXPECT_EQ(used_->pwrite(fd_, contents_.data(), kFileBytes, 0).value(), kFileBytes);
    cuda_.emplace();
  }

  /// Whether the file comes to be there, and goes back, without a copy by the driver.
  bool is_moved_directly(void* memory, uint64_t bytes) {
    const uint64_t before = cuda_->copies();
    cuda_->fill(nullptr, memory, 'q', bytes);
    EXPECT_EQ(moved(used_->read_ranges({{fd_, memory, bytes, 100}})), bytes);
    EXPECT_TRUE(in_gpu(memory, bytes) == contents_.substr(100, bytes));
    cuda_->fill(nullptr, memory, 'w', bytes);
    EXPECT_EQ(moved(used_->write_ranges({{fd_, memory, bytes, 100}})), bytes);
    const bool directly = cuda_->copies() == before;
    std::string found(bytes + 200, '\0');
    EXPECT_EQ(used_->pread(fd_, found.data(), found.size(), 0).value(), found.size());
    EXPECT_TRUE(found == contents_.substr(0, 100) + std::string(bytes, 'w') +
                             contents_.substr(100 + bytes, 100));
    EXPECT_EQ(used_->pwrite(fd_, contents_.data(), kFileBytes, 0).value(), kFileBytes);
    return directly;
  }

  int64_t moved(const Expected<RangeCall>& call) { return call->wait().value().at(0); }
  std::string in_gpu(void* memory, uint64_t bytes) {
    return {reinterpret_cast<const char*>(cuda_->look(memory)), bytes};
  }

  const image::TemporaryPath own_image_;
  std::optional<FakeCuda> cuda_;
  std::optional<Volume> used_;
  int fd_ = -1;
  std::string contents_;
};

INSTANTIATE_TEST_SUITE_P(Volumes, GpuMemoryTest,
                         ::testing::Values(Place::kMounted, Place::kServed, Place::kServedOnGpu),
                         [](const auto& test) {
                           return std::string(test.param == Place::kMounted  ? "mounted_on_the_cpu"
                                              : test.param == Place::kServed ? "attached"
                                                                             : "attached_to_a_gpu");
                         });

TEST_P(GpuMemoryTest, is_read_and_written_by_ranges_in_the_order_of_the_stream) {
  int some = 0;
  auto* const stream = reinterpret_cast<CUstream_st*>(&some);
  void* const memory = cuda_->allocate(kFileBytes + 1000);
  cuda_->fill(stream, memory, 'q', kFileBytes + 1000);  // under way
  EXPECT_EQ(moved(used_->read_ranges({{fd_, memory, kFileBytes + 500, 0}}, stream)), kFileBytes);
  EXPECT_TRUE(in_gpu(memory, kFileBytes) == contents_);
  EXPECT_EQ(in_gpu(static_cast<uint8_t*>(memory) + kFileBytes, 1000), std::string(1000, 'q'));
  cuda_->fill(stream, memory, 'w', kFileBytes);
  EXPECT_EQ(moved(used_->write_ranges({{fd_, memory, kFileBytes, 5000}}, stream)), kFileBytes);
  std::string found(5000 + kFileBytes, '\0');
  EXPECT_EQ(used_->pread(fd_, found.data(), found.size(), 0).value(), found.size());
  EXPECT_TRUE(found == contents_.substr(0, 5000) + std::string(kFileBytes, 'w'));
  // Beside memory of the host, and with errors of their own.
  std::string own(100, '\0');
  const auto results =
      used_->read_ranges({{fd_, own.data(), 100, 0}, {77, memory, 10, 0}, {fd_, memory, 10, 0}})
          .value()
          .wait()
          .value();
  EXPECT_EQ(results, (std::vector<int64_t>{100, -EBADF, 10}));
  EXPECT_EQ(in_gpu(memory, 10), own.substr(0, 10));
}

TEST_P(GpuMemoryTest, many_ranges_go_their_ways_at_once) {
  constexpr uint64_t kRanges = 200;
  constexpr uint64_t kMost = 40'000;
  auto* const memory = static_cast<uint8_t*>(cuda_->allocate(kRanges * kMost));
  std::vector<std::string> own(kRanges);
  std::vector<IoRange> ranges;
  std::vector<int64_t> expected;
  for (uint64_t i = 0; i < kRanges; ++i) {
    const uint64_t bytes = i * 7919 % kMost;
    const uint64_t offset = i % 11 == 0 ? kFileBytes - bytes / 2 : i * 104'729 % (kFileBytes / 2);
    own[i].resize(bytes);
    auto* const own_memory = reinterpret_cast<uint8_t*>(own[i].data());
    ranges.push_back(
        {i % 7 == 0 ? 77 : fd_, i % 3 == 0 ? own_memory : memory + i * kMost, bytes, offset});
    expected.push_back(i % 7 == 0 ? -EBADF
                                  : static_cast<int64_t>(std::min(bytes, kFileBytes - offset)));
  }
  EXPECT_EQ(used_->read_ranges(ranges).value().wait().value(), expected);
  const auto read = [&](size_t i) {
    return i % 3 == 0 ? own[i] : in_gpu(memory + i * kMost, ranges[i].bytes);
  };
  for (size_t i = 0; i < kRanges; ++i) {
    const uint64_t bytes = expected[i] < 0 ? 0 : static_cast<uint64_t>(expected[i]);
    ASSERT_TRUE(read(i) == contents_.substr(ranges[i].offset, bytes) +
                               std::string(ranges[i].bytes - bytes, '\0'))
        << i;
  }
  // Written side by side, behind each other.
  for (size_t i = 0; i < kRanges; ++i) {
    if (expected[i] >= 0) expected[i] = static_cast<int64_t>(ranges[i].bytes);
    ranges[i].offset = i * kMost;
  }
  EXPECT_EQ(used_->write_ranges(ranges).value().wait().value(), expected);
  std::string found(kRanges * kMost, '\0');
  EXPECT_EQ(used_->pread(fd_, found.data(), found.size(), 0).value(), found.size());
  for (size_t i = 0; i < kRanges; ++i) {
    if (expected[i] < 0) continue;
    ASSERT_EQ(found.compare(i * kMost, ranges[i].bytes, read(i)), 0) << i;
  }
}

TEST_P(GpuMemoryTest, what_is_registered_is_reached_by_the_gpu_of_the_server) {
  constexpr uint64_t kBytes = (uint64_t{5} << 20) + 77;
  const bool on_gpu = GetParam() == Place::kServedOnGpu;
  auto* const mapped = static_cast<uint8_t*>(cuda_->map(uint64_t{8} << 20)) + 12'345;
  EXPECT_FALSE(is_moved_directly(mapped, kBytes));
  const auto buffer = used_->register_buffer(mapped, kBytes);
  ASSERT_TRUE(buffer) << buffer.error().message;
  EXPECT_EQ(is_moved_directly(mapped, kBytes), on_gpu);
  EXPECT_EQ(is_moved_directly(mapped + 999, 1), on_gpu);
  EXPECT_FALSE(is_moved_directly(mapped + 999, kBytes - 998)) << "all but one byte";
  // One that is not registered, or nobody opens, beside it, and one that is not there.
  void* const other = cuda_->allocate(kBytes);
  const auto unopened = used_->register_buffer(other, kBytes);
  ASSERT_TRUE(unopened);
  const auto results = used_
                           ->read_ranges({{fd_, mapped, 5000, 0},
                                          {fd_, other, 5000, 5000},
                                          {77, mapped + 5000, 10, 0},
                                          {fd_, mapped + 5000, 5000, kFileBytes - 10}})
                           .value()
                           .wait()
                           .value();
  EXPECT_EQ(results, (std::vector<int64_t>{5000, 5000, -EBADF, 10}));
  EXPECT_TRUE(in_gpu(mapped, 5000) + in_gpu(other, 5000) == contents_.substr(0, 10'000));
  EXPECT_TRUE(in_gpu(mapped + 5000, 10) == contents_.substr(kFileBytes - 10));
  EXPECT_FALSE(is_moved_directly(other, kBytes));
  if (GetParam() != Place::kMounted) {
    // Another server.
    end_server();
    begin_server();
    fd_ = used_->open("/file", O_RDWR).value();
    EXPECT_EQ(is_moved_directly(mapped, kBytes), on_gpu);
  }
  EXPECT_TRUE(used_->unregister_buffer(*buffer));
  EXPECT_FALSE(is_moved_directly(mapped, kBytes));
  EXPECT_FALSE(used_->unregister_buffer(*buffer));
  EXPECT_TRUE(used_->unregister_buffer(*unopened));
}

TEST_P(GpuMemoryTest, is_refused_where_only_memory_of_the_host_can_be_used) {
  void* const memory = cuda_->allocate(4096);
  EXPECT_TRUE(is_gpu_memory(memory));
  EXPECT_FALSE(is_gpu_memory(contents_.data()));
  EXPECT_FALSE(is_gpu_memory(nullptr));
  const auto error = used_->pread(fd_, memory, 10, 0).error();
  EXPECT_EQ(error.code, EFAULT);
  EXPECT_NE(error.message.find("memory of a GPU"), std::string::npos) << error.message;
  EXPECT_EQ(used_->pwrite(fd_, memory, 10, 0).error().code, EFAULT);
  EXPECT_EQ(moved(used_->read_ranges({{fd_, memory, 10, 0}}, cuda_->captured_stream())),
            -EOPNOTSUPP);
}

/// A server that is played by the test.
class PlayedServerTest : public GpuMemoryTest {
 protected:
  static constexpr uint32_t kDepth = 4;

  /// Attaches to it; the server's end of the connection.
  ssd::Descriptor attach_here(std::optional<Volume>& volume) {
    end_server();
    serve::RingHead head = serve::layout_of_ring(kDepth, kDepth * 65536);
    head.server_sleeps = 1;  // so its bell is rung
    std::memcpy(ends_.memory.data(), &head, sizeof(head));
    ring_ = serve::view_of_ring(ends_.memory.data(), head);
    std::jthread attaching([&] { volume.emplace(std::move(Volume::attach(path_).value())); });
    pollfd waiting{listening_.descriptor().get(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 10'000), 1);
    ssd::Descriptor connection(::accept4(waiting.fd, nullptr, nullptr, SOCK_CLOEXEC));
    take_descriptors_of(connection);
    EXPECT_TRUE(greet(connection, &ends_, 0));
    return connection;
  }
  /// What the client asks next.
  static Ask answer_next(const ssd::Descriptor& connection, const Answer& answer) {
    pollfd waiting{connection.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 10'000), 1);
    std::vector<ssd::Descriptor> with;
    const auto question = unpacked<Question>(receive_control(connection, &with));
    EXPECT_TRUE(send_control(connection, packed(answer)));
    return question.ask;
  }

  const ChannelEnds ends_{
      SharedMemory::make("gofs channel", serve::layout_of_ring(kDepth, kDepth * 65536).bytes),
      make_bell(),
      {}};
  serve::Ring ring_{};
};

INSTANTIATE_TEST_SUITE_P(Volumes, PlayedServerTest, ::testing::Values(Place::kServed));

TEST_P(PlayedServerTest, who_leaves_since_a_window_is_not_closed_has_the_answers_under_way) {
  constexpr uint64_t kBytes = 65536;
  std::optional<Volume> volume;
  const ssd::Descriptor connection = attach_here(volume);
  std::jthread answers([&] {
    EXPECT_EQ(answer_next(connection, {0, {}, packed(uint32_t{1})}), Ask::kOpenWindow);
    EXPECT_EQ(answer_next(connection, {EIO, "it is not closed", {}}), Ask::kCloseWindow);
  });
  const auto buffer = volume->register_buffer(cuda_->map(kBytes), kBytes);
  ASSERT_TRUE(buffer);
  Expected<void> made;
  std::jthread making([&] { made = volume->mkdir("/made"); });
  pollfd rings{ends_.bell.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&rings, 1, 10'000), 1);
  EXPECT_TRUE(volume->unregister_buffer(*buffer));
  answers.join();
  // The server is to end it, and to answer before.
  pollfd look{connection.get(), POLLRDHUP, 0};
  ASSERT_EQ(::poll(&look, 1, 10'000), 1);
  EXPECT_EQ(look.revents & POLLHUP, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ASSERT_TRUE(serve::is_published(ring_, {0, 0}));
  serve::answer(ring_, {0, 0}, 0);
  making.join();
  EXPECT_TRUE(made) << made.error().message;
  // And the next call attaches again, though the server has not hung up.
  begin_server();
  EXPECT_TRUE(volume->stat("/file"));
  EXPECT_EQ(volume->stat("/made").error().code, ENOENT) << "it is another server";
}

}  // namespace
}  // namespace gofs::host
