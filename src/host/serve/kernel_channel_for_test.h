// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a server, and programs whose kernels are its clients. Their warps are played by
// threads of this process.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "host/serve/kernel_end.h"
#include "host/serve/serving_for_test.h"
#include "serve/kernel_data.h"
#include "serve/move_for_test.h"
#include "testing/comes_true.hpp"
#include "testing/teams.hpp"

namespace gofs::host {

using request::Verb;
using serve::KernelCall;
using serve::KernelChannel;
using testing::comes_true;

/// A server of threads of the host, whose channels lie in memory of the host, or one of a grid of
/// warps as a GPU has it.
enum class Server { kThreads, kGrid };

inline std::string bytes_of(size_t count, uint32_t seed) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 31 + i / 257 + seed);
  return bytes;
}

/// By the kind of server, and the lanes of the program's warps.
class KernelChannelTest : public ServingTest,
                          public ::testing::WithParamInterface<std::tuple<Server, uint32_t>> {
 public:
  static auto all() {
    return ::testing::Combine(::testing::Values(Server::kThreads, Server::kGrid),
                              ::testing::Values(1u, 8u));
  }

 protected:
  static BackendMaker backend() {
    return std::get<0>(GetParam()) == Server::kThreads ? BackendMaker(make_backend) : make_grid;
  }
  KernelChannelTest() : ServingTest(backend()) {
    ChannelServerOptions options;
    options.depth = 4;
    options.part_bytes = 64 * 1024;
    options.kernel_depth = 4;
    options.kernel_part_bytes = 64 * 1024;
    begin_server(options);
  }
  uint32_t lanes() const { return std::get<1>(GetParam()); }

  /// A program with kernels.
  struct Program {
    explicit Program(const std::string& path)
        : host(attach_at(path)),
          end(std::in_place, std::make_unique<BackendForTest>(), line, kBase) {}
    KernelChannel& channel() { return *serve::channel_of(end->handle()); }

    static constexpr int kBase = 3 * serve::kDescriptorStride;
    ChannelClient host;
    ControlLine line{host.connection()};
    std::optional<KernelEnd> end;
  };
  static KernelCall about(Verb verb, const char* path) {
    KernelCall call(verb);
    call.path = path;
    return call;
  }
  static KernelCall about(Verb verb, int fd) {
    KernelCall call(verb);
    call.request.descriptor = fd;
    return call;
  }
  /// Runs `work(warp, index)` by `count` warps, as a kernel of so many.
  template <typename Work>
  void launch(uint32_t count, Work work) {
    testing::run_teams(count, lanes(),
                       [&](const simt::Warp& warp, uint32_t index) { work(warp, index); });
  }
  /// A call by one warp.
  int64_t ask(Program& program, const KernelCall& call) {
    std::atomic<int64_t> answer = 0;
    launch(1, [&](const simt::Warp& warp, uint32_t) {
      KernelCall own = call;
      const int64_t result = serve::ask(warp, program.channel(), own);
      if (warp.thread_rank() == 0) answer = result;
    });
    return answer;
  }
  int open(Program& program, const std::string& path, uint32_t flags = O_RDWR | O_CREAT) {
    KernelCall call = about(Verb::kOpen, path.c_str());
    call.request.flags = flags;
    call.request.mode = 0600;
    return static_cast<int>(ask(program, call));
  }
  /// Moves a range by `warps` warps together, or by one where it may not be shared.
  int64_t move(Program& program, const serve::MovedRange& range, uint32_t warps) {
    return serve::move_together(program.channel(), range, warps,
                                [&](uint32_t count, const auto& work) { launch(count, work); });
  }
  static uint8_t* data_of(std::string& bytes) { return reinterpret_cast<uint8_t*>(bytes.data()); }
};

}  // namespace gofs::host
