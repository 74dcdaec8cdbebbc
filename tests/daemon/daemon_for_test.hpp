// SPDX-License-Identifier: Apache-2.0
//
// For tests only: gofsd over an image of its own, and what clients of it may expect.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "../cli/run_gofs.h"
#include "../qemu/child_process.h"
#include "gofs/mkfs.hpp"
#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/serve/control.h"
#include "host/serve/socket.h"
#include "ssd/descriptor.h"
#include "testing/comes_true.hpp"

namespace gofs::daemon_test {

using std::chrono::milliseconds;
using testing::comes_true;

class Daemon {
 public:
  Daemon() {
    gofs::MkfsOptions options;
    options.size_bytes = uint64_t{128} << 20;
    options.overwrite = true;
    const auto made = mkfs(image(), options);
    EXPECT_TRUE(made) << made.error().message;
  }

  std::string image() const { return image_.path(); }
  std::string socket() const { return image_.path() + ".socket"; }
  std::string said() const { return cli_test::read_file(log_.path()); }
  bool has_said(const std::string& words) const {
    return comes_true([&] { return said().find(words) != std::string::npos; });
  }

  static std::string built(const std::string& program) {
    return std::string(std::getenv("GOFS_BUILD_DIR")) + "/" + program;
  }
  void start(std::vector<std::string> words = {}, const std::string& volume = {}) {
    words.insert(words.begin(), {volume.empty() ? image() : volume, "--socket", socket()});
    start_as({built("src/daemon/gofsd"), words, {}, -1});
  }
  /// Another program, or what it says goes elsewhere.
  void start_as(ssd::ChildCommand command) {
    const ssd::Descriptor log = ssd::Descriptor::open(log_.path(), O_WRONLY | O_TRUNC | O_APPEND);
    if (command.output < 0) command.output = log.get();
    keeper_ = std::make_unique<ssd::ChildProcess>(command);
  }
  ssd::ChildProcess& keeper() { return *keeper_; }

  host::ServerStatus status() const { return host::status_of(host::connect_at(socket())); }
  /// Whether one serves that is not the process `former`.
  bool is_served_by_another(int32_t former) const {
    return comes_true([&] {
      try {
        return status().pid != former;
      } catch (const std::system_error&) {
        return false;
      }
    });
  }
  /// One that has served for some time: after one that dies at once the keeper pauses.
  void kill_worker() const {
    std::this_thread::sleep_for(milliseconds(60));
    EXPECT_EQ(::kill(status().pid, SIGKILL), 0);
  }
  /// As `gofs ctl stop`; afterwards the volume is sound.
  void stop() {
    EXPECT_EQ(cli_test::run_gofs({"ctl", socket(), "stop"}).status, 0);
    EXPECT_TRUE(comes_true([&] { return !keeper_->running(); })) << said();
    EXPECT_EQ(keeper_->state(), "ended with status 0") << said();
    EXPECT_NE(::access(socket().c_str(), F_OK), 0) << "the socket's name goes";
    expect_sound();
  }
  void expect_sound() const {
    GOFS_NEED_TOOL("fsck.f2fs");
    EXPECT_TRUE(image::fsck_is_clean(image()));
  }

 private:
  const image::TemporaryPath image_;
  const image::TemporaryPath log_;
  std::unique_ptr<ssd::ChildProcess> keeper_;
};

/// A client that counts in a file of its own: after each fsync that has returned, no less may be
/// found there, whatever happens to the server.
class Counter {
 public:
  Counter(const std::string& socket, int number)
      : path_("/counter" + std::to_string(number)), thread_([this, socket] { run(socket); }) {}
  ~Counter() { (void)end(); }

  /// How often it has counted. What went wrong is a failure of the test.
  uint64_t end() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
    EXPECT_EQ(problem_, "") << path_;
    return durable_;
  }
  uint64_t counted() const { return durable_; }

 private:
  /// Whether another server may do better.
  bool may_go_on(const Error& error) {
    if (error.code == ESTALE || error.code == ENOTCONN) return true;
    problem_ = error.message;
    return false;
  }
  void run(const std::string& socket) {
    auto volume = Volume::attach(socket, {.attach_timeout_ns = 60'000'000'000});
    if (!volume) {
      problem_ = volume.error().message;
      return;
    }
    while (!ending_ && problem_.empty()) count_with(*volume);
  }
  void count_with(Volume& volume) {
    const auto fd = volume.open(path_, O_RDWR | O_CREAT, 0600);
    if (!fd) {
      (void)may_go_on(fd.error());
      return;
    }
    uint64_t value = 0;
    const auto found = volume.pread(*fd, &value, sizeof(value), 0);
    if (!found) {
      (void)may_go_on(found.error());
    } else if (value < durable_) {
      problem_ = "found " + std::to_string(value) + " after " + std::to_string(durable_.load());
    } else {
      count_on(volume, *fd, value);
    }
    (void)volume.close(*fd);
  }
  void count_on(Volume& volume, int fd, uint64_t value) {
    while (!ending_) {
      ++value;
      const auto written = volume.pwrite(fd, &value, sizeof(value), 0);
      if (!written) return void(may_go_on(written.error()));
      const auto synced = volume.fsync(fd);
      if (!synced) return void(may_go_on(synced.error()));
      durable_ = value;
    }
  }

  const std::string path_;
  std::atomic<bool> ending_{false};
  std::atomic<uint64_t> durable_{0};
  std::string problem_;
  std::thread thread_;
};

/// Kills the worker so many times while clients count.
inline void kill_workers_under_load(int kills) {
  Daemon daemon;
  daemon.start();
  ASSERT_TRUE(daemon.has_said("is served at"));
  std::vector<std::unique_ptr<Counter>> counters;
  for (int i = 0; i < 4; ++i) counters.push_back(std::make_unique<Counter>(daemon.socket(), i));
  for (int turn = 0; turn < kills; ++turn) {
    // Each goes on with the server that there is now.
    for (const auto& counter : counters) {
      const uint64_t before = counter->counted();
      ASSERT_TRUE(comes_true([&] { return counter->counted() != before; })) << daemon.said();
    }
    daemon.kill_worker();
  }
  for (const auto& counter : counters) {
    const uint64_t before = counter->counted();
    EXPECT_TRUE(comes_true([&] { return counter->counted() != before; })) << daemon.said();
    (void)counter->end();
  }
  daemon.stop();
}

}  // namespace gofs::daemon_test
