// SPDX-License-Identifier: Apache-2.0
//
// What a server costs: the same calls of a volume that this program has mounted, and of one that it
// is attached to, by the public API and in the same run. The server is this process: its threads
// serve a socket as those of gofsd do.
//
// usage: gofs_served_bench IMAGE SOCKET [SECONDS [BACKEND]]
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gofs/volume.hpp"
#include "host/serve/served_volume.h"
#include "host/serve/socket_server.h"
#include "host/volume_access.h"
#include "take.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using gofs::Volume;
using gofs::measuring::take;

constexpr uint64_t kFileBytes = uint64_t{64} << 20;
constexpr uint64_t kReadBytes = 4096;
constexpr uint64_t kLargeBytes = uint64_t{16} << 20;

/// One call, the n-th of its thread.
using Call = std::function<void(uint64_t n)>;

/// Microseconds of the calls of one thread: the median.
double lone_us(const Call& call, double seconds) {
  std::vector<double> each;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (uint64_t n = 0; Clock::now() < end; ++n) {
    const auto begin = Clock::now();
    call(n);
    each.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::nth_element(each.begin(), each.begin() + static_cast<std::ptrdiff_t>(each.size() / 2),
                   each.end());
  return each[each.size() / 2];
}

/// Calls a second of so many threads together.
double rate(const Call& call, uint32_t threads, double seconds) {
  std::atomic<bool> ending{false};
  std::atomic<uint64_t> calls{0};
  std::vector<std::thread> all;
  const auto begin = Clock::now();
  for (uint32_t i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      uint64_t n = 0;
      for (; !ending; ++n) call(n * threads + i);
      calls += n;
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  ending = true;
  for (std::thread& thread : all) thread.join();
  return static_cast<double>(calls) / std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Row {
  const char* what;
  std::function<Call(Volume&, int fd)> call_of;
};

Call stat_of(Volume& volume, int) {
  return [&volume](uint64_t) { take(volume.stat("/file")); };
}

Call read_of(Volume& volume, int fd) {
  return [&volume, fd](uint64_t n) {
    alignas(4096) static thread_local char buffer[kReadBytes];
    const uint64_t block = n * 2654435761u % (kFileBytes / kReadBytes);
    take(volume.pread(fd, buffer, kReadBytes, block * kReadBytes));
  };
}

Call large_read_of(Volume& volume, int fd) {
  return [&volume, fd](uint64_t n) {
    static thread_local std::vector<char> buffer(kLargeBytes);
    take(volume.pread(fd, buffer.data(), buffer.size(), n * kLargeBytes % kFileBytes));
  };
}

int make_file(Volume& volume) {
  const int fd = take(volume.open("/file", O_RDWR | O_CREAT, 0600));
  const std::vector<char> part(uint64_t{1} << 20, 'x');
  for (uint64_t at = 0; at < kFileBytes; at += part.size()) {
    take(volume.pwrite(fd, part.data(), part.size(), at));
  }
  return fd;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    fmt::print(stderr, "usage: gofs_served_bench IMAGE SOCKET [SECONDS [BACKEND]]\n");
    return 2;
  }
  const double seconds = count > 3 ? std::stod(words[3]) : 2;
  const std::string backend = count > 4 ? words[4] : "cpu";
  Volume direct = take(Volume::mount(words[1], {.backend = backend, .read_only = false}));
  const gofs::host::ListeningSocket listening(words[2], 0600);
  gofs::host::ChannelServer channels(gofs::host::served(gofs::host::state_of(direct)),
                                     {.threads = 2 * std::thread::hardware_concurrency()});
  const gofs::host::SocketServer server(channels, listening.descriptor(), {});
  Volume attached = take(Volume::attach(words[2]));
  const int direct_fd = make_file(direct);
  const int attached_fd = take(attached.open("/file"));
  const Row rows[] = {{"stat", stat_of}, {"pread 4 KiB", read_of}, {"pread 16 MiB", large_read_of}};
  fmt::print("{:<12} {:>8} {:>12} {:>12}\n", "call", "threads", "mounted", "attached");
  for (const Row& row : rows) {
    const Call of_direct = row.call_of(direct, direct_fd);
    const Call of_attached = row.call_of(attached, attached_fd);
    fmt::print("{:<12} {:>8} {:>9.2f} us {:>9.2f} us\n", row.what, 1, lone_us(of_direct, seconds),
               lone_us(of_attached, seconds));
    for (const uint32_t threads : {1u, 2u, 4u, 8u, 16u}) {
      fmt::print("{:<12} {:>8} {:>10.0f}/s {:>10.0f}/s\n", row.what, threads,
                 rate(of_direct, threads, seconds), rate(of_attached, threads, seconds));
    }
  }
  return 0;
}
