// SPDX-License-Identifier: Apache-2.0
//
// Clients of a server, as threads of this process: calls through channels do what direct ones do,
// each for its own user; what a client leaves open is closed; hostile rings harm nobody else.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "host/serve/channel_server.h"
#include "host/serve/hostile_client_for_test.h"
#include "host/serve/serve_bodies.h"
#include "host/serve/served_volume_for_test.h"
#include "testing/repetitions.hpp"

namespace gofs::host {
namespace {

using request::Verb;

constexpr uint32_t kReadWrite = O_RDWR | O_CREAT;

/// A client with calls by their names.
class Client {
 public:
  Client(std::optional<ChannelServer>& server, uint32_t uid) : server_(server) {
    vfs::Credentials who{};
    who.uid = who.gid = uid;
    auto opened = server->open({who});
    EXPECT_TRUE(opened);
    number_ = opened->number;
    channel_.emplace(std::move(opened->ends));
  }
  ~Client() { leave(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// How many descriptors were open.
  uint32_t leave() {
    if (left_ || !server_) return 0;
    left_ = true;
    return server_->close(number_);
  }

  int64_t call(const CallRequest& request) { return channel_->call(request).result; }
  int open(const std::string& path, uint32_t flags = kReadWrite, uint32_t mode = 0600) {
    return static_cast<int>(
        call({.verb = Verb::kOpen, .path = &path, .flags = flags, .mode = mode}));
  }
  int64_t close(int fd) { return call({.verb = Verb::kClose, .descriptor = fd}); }
  int64_t write(int fd, const std::string& bytes, uint64_t offset) {
    for (size_t done = 0; done < bytes.size();) {
      const int64_t part = call({.verb = Verb::kPwrite,
                                 .descriptor = fd,
                                 .input = bytes.data() + done,
                                 .bytes = bytes.size() - done,
                                 .offset = static_cast<int64_t>(offset + done)});
      if (part <= 0) return part;
      done += static_cast<size_t>(part);
    }
    return static_cast<int64_t>(bytes.size());
  }
  std::string read(int fd, size_t bytes, uint64_t offset) {
    std::string found(bytes, '\0');
    size_t done = 0;
    while (done < bytes) {
      const int64_t part = call({.verb = Verb::kPread,
                                 .descriptor = fd,
                                 .buffer = found.data() + done,
                                 .bytes = bytes - done,
                                 .offset = static_cast<int64_t>(offset + done)});
      EXPECT_GE(part, 0);
      if (part <= 0) break;
      done += static_cast<size_t>(part);
    }
    found.resize(done);
    return found;
  }
  int64_t stat(const std::string& path, Stat& stat) {
    return call({.verb = Verb::kStat, .path = &path, .buffer = &stat, .bytes = sizeof(stat)});
  }
  int64_t about(Verb verb, const std::string& path, uint32_t mode = 0) {
    return call({.verb = verb, .path = &path, .mode = mode});
  }
  int64_t between(Verb verb, const std::string& other, const std::string& path) {
    return call({.verb = verb, .path = &path, .other = &other});
  }
  ChannelClient& channel() { return *channel_; }

 private:
  std::optional<ChannelServer>& server_;
  std::optional<ChannelClient> channel_;
  uint32_t number_ = 0;
  bool left_ = false;
};

std::string some_bytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// By threads of the host that serve each by itself; by a grid, as on a GPU, of so many warps that
/// threads play; or on a GPU.
enum class Servants : uint32_t { kThreads = 0, kOneWarp = 1, kFourWarps = 4, kGpu };

BackendMaker backend_with(Servants servants) {
  if (servants == Servants::kThreads) return make_backend;
  if (servants == Servants::kGpu) {
    return [](const std::string&, std::string& error) { return make_backend("cuda", error); };
  }
  return [servants](const std::string&, std::string&) -> std::unique_ptr<kernels::Backend> {
    return std::make_unique<BackendForTest>(static_cast<uint32_t>(servants));
  };
}

class ChannelTest : public ServedVolumeTest, public ::testing::WithParamInterface<Servants> {
 protected:
  ChannelTest() : ServedVolumeTest(backend_with(GetParam())) {}
  std::optional<ChannelServer>& serve(const ChannelServerOptions& options = {}) {
    server_.emplace(served(*volume_), options);
    return server_;
  }
  uint64_t free_blocks() {
    FilesystemStat stat{};
    EXPECT_EQ(volume_->call({.verb = Verb::kStatfs}, stat).result, 0);
    return stat.blocks_free;
  }
  void expect_sound() {
    server_.reset();
    expect_sound_volume();
  }

  std::optional<ChannelServer> server_;
};

TEST_P(ChannelTest, calls_do_what_direct_ones_do) {
  Client client(serve(), 0);
  const std::string text = some_bytes(3'000'000, 1);
  const int fd = client.open("/large");
  ASSERT_GE(fd, 0);
  EXPECT_EQ(client.write(fd, text, 12'345), 3'000'000);
  EXPECT_TRUE(client.read(fd, 4'000'000, 12'345) == text);
  EXPECT_EQ(client.call({.verb = Verb::kFsync, .descriptor = fd}), 0);
  Stat stat{};
  EXPECT_EQ(client.stat("/large", stat), 0);
  EXPECT_EQ(stat.size_bytes, 3'012'345u);
  EXPECT_EQ(client.stat("/none", stat), -ENOENT);
  EXPECT_EQ(client.about(Verb::kMkdir, "/d", 0755), 0);
  EXPECT_EQ(client.between(Verb::kRename, "/large", "/d/larger"), 0);
  EXPECT_EQ(client.between(Verb::kSymlink, "d/larger", "/link"), 0);
  const std::string link = "/link";
  std::string target(100, '\0');
  EXPECT_EQ(client.call({.verb = Verb::kReadlink,
                         .path = &link,
                         .buffer = target.data(),
                         .bytes = target.size()}),
            8);
  EXPECT_EQ(target.substr(0, 8), "d/larger");
  const std::string name = "user.colour";
  EXPECT_EQ(
      client.call(
          {.verb = Verb::kFsetxattr, .name = &name, .descriptor = fd, .input = "blue", .bytes = 4}),
      0);
  std::string value(10, '\0');
  EXPECT_EQ(client.call({.verb = Verb::kGetxattr,
                         .path = &link,
                         .name = &name,
                         .buffer = value.data(),
                         .bytes = value.size()}),
            4);
  EXPECT_EQ(value.substr(0, 4), "blue");
  const int folder = client.open("/d", O_RDONLY | O_DIRECTORY);
  std::vector<NamedEntry> entries(64);
  const int64_t count = client.call({.verb = Verb::kReaddir,
                                     .descriptor = folder,
                                     .buffer = entries.data(),
                                     .bytes = entries.size() * sizeof(NamedEntry)});
  ASSERT_EQ(count, 1);
  EXPECT_EQ(std::string(entries[0].name), "larger");
  EXPECT_EQ(client.close(folder), 0);
  EXPECT_EQ(client.close(fd), 0);
  EXPECT_EQ(client.close(fd), -EBADF);
  FilesystemStat space{};
  EXPECT_EQ(client.call({.verb = Verb::kStatfs, .buffer = &space, .bytes = sizeof(space)}), 0);
  EXPECT_EQ(space.blocks_free, free_blocks());
  const std::string direct = "/d/larger";
  EXPECT_EQ(volume_->call({.verb = Verb::kStat, .path = &direct}, stat).result, 0);
  EXPECT_EQ(stat.size_bytes, 3'012'345u);
  expect_sound();
}

TEST_P(ChannelTest, what_is_wrong_with_a_call_is_said) {
  Client client(serve(), 0);
  Stat stat{};
  EXPECT_EQ(client.stat(std::string("/a\0b", 4), stat), -ENOENT);
  EXPECT_EQ(client.stat("/" + std::string(5000, 'x'), stat), -ENAMETOOLONG);
  EXPECT_EQ(client.stat("/" + std::string(300, 'x'), stat), -ENAMETOOLONG);
  EXPECT_EQ(client.call({.verb = Verb::kFstat, .descriptor = 3, .buffer = &stat, .bytes = 8}),
            -EBADF);
  const std::string root = "/";
  EXPECT_EQ(client.call({.verb = Verb::kStat, .path = &root, .buffer = &stat, .bytes = 8}),
            -EINVAL);
  EXPECT_EQ(client.call({.verb = static_cast<Verb>(999)}), -ENOSYS);
  EXPECT_EQ(client.call({.verb = Verb::kOpenInode, .number = 3}), -EPERM);
  Identity file{};
  const auto opens = [&](uint64_t bytes) {
    return client.call({.verb = Verb::kOpenIdentity, .input = &file, .bytes = bytes});
  };
  EXPECT_EQ(opens(sizeof(file)), -ESTALE);
  EXPECT_EQ(opens(sizeof(file) - 1), -EINVAL);
  EXPECT_EQ(client.call({.verb = Verb::kOpenIdentity}), -EINVAL);
  const std::string name(256, 'n');
  EXPECT_EQ(client.call({.verb = Verb::kRemovexattr, .path = &root, .name = &name}), -ERANGE);
}

TEST_P(ChannelTest, each_client_is_its_own_user) {
  serve();
  Client ann(server_, 7);
  Client bob(server_, 8);
  const int anns = ann.open("/anns");
  ASSERT_GE(anns, 0);
  EXPECT_EQ(ann.write(anns, "secret", 0), 6);
  EXPECT_EQ(bob.open("/anns", O_RDONLY), -EACCES);
  char byte = 'x';
  EXPECT_EQ(bob.call({.verb = Verb::kPread, .descriptor = anns, .buffer = &byte, .bytes = 1}),
            -EBADF);
  EXPECT_EQ(bob.close(anns), -EBADF);
  EXPECT_EQ(byte, 'x');
  Identity file{};
  const CallRequest asks{
      .verb = Verb::kIdentity, .descriptor = anns, .buffer = &file, .bytes = sizeof(file)};
  EXPECT_EQ(bob.call(asks), -EBADF);
  EXPECT_EQ(ann.call(asks), 0);
  const CallRequest opens{.verb = Verb::kOpenIdentity, .input = &file, .bytes = sizeof(file)};
  EXPECT_EQ(ann.call(opens), -EPERM) << "it may not search everything";
  Client root(server_, 0);
  const auto roots = static_cast<int>(root.call(opens));
  ASSERT_GE(roots, 0);
  EXPECT_EQ(root.close(roots), 0);
  EXPECT_EQ(bob.about(Verb::kUnlink, "/anns"), -EPERM) << "the directory is sticky";
  Stat stat{};
  EXPECT_EQ(bob.stat("/anns", stat), 0);
  EXPECT_EQ(stat.uid, 7u);
  EXPECT_EQ(ann.read(anns, 10, 0), "secret");
}

TEST_P(ChannelTest, what_a_client_leaves_open_is_closed) {
  serve();
  Client other(server_, 0);
  EXPECT_EQ(other.call({.verb = Verb::kSync}), 0);
  const uint64_t before = free_blocks();
  for (int turn = 0; turn < 3; ++turn) {
    Client client(server_, 0);
    const int fd = client.open("/goes");
    ASSERT_GE(fd, 0);
    EXPECT_EQ(client.write(fd, some_bytes(400'000, 2), 0), 400'000);
    for (int i = 0; i < 20; ++i) EXPECT_GE(client.open("/goes", O_RDONLY), 0);
    EXPECT_EQ(client.about(Verb::kUnlink, "/goes"), 0);
    EXPECT_EQ(server_->open_channels(), 2u);
    EXPECT_EQ(client.leave(), 21u);
    EXPECT_EQ(client.open("/late"), -ESTALE);
  }
  EXPECT_EQ(server_->open_channels(), 1u);
  EXPECT_EQ(other.call({.verb = Verb::kSync}), 0);
  EXPECT_EQ(free_blocks(), before);
  expect_sound();
}

TEST_P(ChannelTest, there_are_more_callers_than_slots) {
  serve({.threads = 2, .depth = 2});
  std::vector<std::unique_ptr<Client>> clients;
  for (uint32_t i = 0; i < 3; ++i) clients.push_back(std::make_unique<Client>(server_, i));
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 9; ++i) {
    threads.emplace_back([&, i] {
      Client& client = *clients[i % 3];
      const std::string path = "/file" + std::to_string(i);
      const int fd = client.open(path);
      ASSERT_GE(fd, 0);
      for (uint32_t turn = 0; turn < 40; ++turn) {
        const std::string text = some_bytes(100 + turn * 50, i * 100 + turn);
        ASSERT_EQ(client.write(fd, text, turn * 3000), static_cast<int64_t>(text.size()));
        ASSERT_EQ(client.read(fd, text.size(), turn * 3000), text);
      }
      EXPECT_EQ(client.close(fd), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  clients.clear();
  expect_sound();
}

TEST_P(ChannelTest, who_comes_after_a_pause_is_served_and_who_stays_is_told_of_the_end) {
  serve({.sleep_ms = 3'600'000});  // a bell that is not heard ends the test
  Client client(server_, 0);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(client.about(Verb::kAccess, "/"), 0);
  }
  std::thread caller([&] {
    int64_t answer = 0;
    while (answer == 0) answer = client.about(Verb::kAccess, "/");
    EXPECT_EQ(answer, -ESTALE);
  });
  client.leave();
  caller.join();
}

/// Of all threads of this process.
std::chrono::nanoseconds processor_time() {
  timespec used{};
  EXPECT_EQ(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

TEST_P(ChannelTest, a_client_that_has_gone_may_ring_its_bell) {
  using namespace std::chrono_literals;
  serve({});
  auto left = server_->open({});
  (void)server_->close(left->number);
  const auto before = processor_time();
  for (int i = 0; i < 50; ++i) {
    ring_bell(left->ends.bell);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_LT(processor_time() - before, 250ms) << "a thread of the server wakes again and again";
  Client other(server_, 0);
  EXPECT_EQ(other.about(Verb::kAccess, "/"), 0);
}

TEST_P(ChannelTest, hostile_rings_harm_nobody_else) {
  serve({.threads = 3, .depth = 8, .part_bytes = 16 * 4096});
  Client honest(server_, 7);
  EXPECT_EQ(honest.about(Verb::kMkdir, "/ours", 0700), 0);
  EXPECT_EQ(honest.about(Verb::kMkdir, "/mine", 0777), 0);
  vfs::Credentials enemy{};
  enemy.uid = enemy.gid = 66;
  auto first = server_->open({enemy}).value();
  auto second = server_->open({enemy}).value();
  std::atomic<uint32_t> hostile{2};
  const auto attack = [&hostile](ChannelEnds& ends, uint32_t seed) {
    be_hostile(ends.memory.data(), &ends.bell, seed);
    --hostile;
  };
  std::thread one([&] { attack(first.ends, 1); });
  std::thread two([&] { attack(second.ends, 2); });
  const int fd = honest.open("/ours/file");
  ASSERT_GE(fd, 0);
  for (uint32_t turn = 0; hostile.load() != 0; ++turn) {
    const std::string text = some_bytes(20'000, turn);
    const int64_t wrote = honest.write(fd, text, 1000 * (turn % 60));
    // They may fill the volume, as all users may.
    if (wrote == -ENOSPC) continue;
    EXPECT_EQ(wrote, 20'000);
    EXPECT_TRUE(honest.read(fd, 20'000, 1000 * (turn % 60)) == text) << turn;
  }
  one.join();
  two.join();
  (void)server_->close(first.number);
  (void)server_->close(second.number);
  Stat stat{};
  EXPECT_EQ(honest.stat("/ours/file", stat), 0);
  EXPECT_EQ(stat.uid, 7u);
  expect_sound();
}

/// A value of system.posix_acl_access.
std::string access_list(const std::vector<uint16_t>& tags) {
  std::string value(4 + 8 * tags.size(), '\0');
  const uint32_t version = 2;
  std::memcpy(value.data(), &version, sizeof(version));
  for (size_t i = 0; i < tags.size(); ++i) {
    const uint16_t entry[4] = {tags[i], 4, 77, 0};
    std::memcpy(value.data() + 4 + 8 * i, entry, sizeof(entry));
  }
  return value;
}

/// As another process would write: ThreadSanitizer, which sees one process, is not told of it.
__attribute__((no_sanitize("thread"))) void write_unseen(uint8_t* to, const std::string& bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    *static_cast<volatile uint8_t*>(to + i) = static_cast<uint8_t>(bytes.data()[i]);
  }
}

TEST_P(ChannelTest, an_access_list_may_change_while_it_is_set) {
  serve({});
  vfs::Credentials enemy{};
  enemy.uid = enemy.gid = 66;
  auto opened = server_->open({enemy}).value();
  uint8_t* const memory = opened.ends.memory.data();
  serve::RingHead head{};
  std::memcpy(&head, memory, sizeof(head));
  uint8_t* const buffer = serve::view_of_ring(memory, head).buffer;
  ChannelClient client(std::move(opened.ends));
  const std::string path = "/list";
  ASSERT_GE(
      client.call({.verb = Verb::kOpen, .path = &path, .flags = kReadWrite, .mode = 0600}).result,
      0);
  // Short on disk, and wrong; and right, but too long for any inode.
  const std::string few = access_list(std::vector<uint16_t>(900, 1));
  std::vector<uint16_t> tags(900, 2);
  tags.front() = 1;
  tags[tags.size() - 3] = 4;
  tags[tags.size() - 2] = 16;
  tags.back() = 32;
  const std::string many = access_list(tags);
  ASSERT_EQ(few.size(), many.size());
  std::atomic<bool> ending{false};
  std::thread changing([&] {
    // Of all slots: which one the call has is not known.
    while (!ending) {
      for (uint32_t slot = 0; slot < head.depth; ++slot) {
        write_unseen(buffer + slot * client.part_bytes(), many);
      }
    }
  });
  const std::string name = "system.posix_acl_access";
  const uint32_t calls = testing::repetitions(3000, 600);
  for (uint32_t i = 0; i < calls; ++i) {
    const int64_t answer = client
                               .call({.verb = Verb::kSetxattr,
                                      .path = &path,
                                      .name = &name,
                                      .input = few.data(),
                                      .bytes = few.size()})
                               .result;
    EXPECT_TRUE(answer == -EINVAL || answer == -ENOSPC) << answer;
  }
  ending = true;
  changing.join();
  (void)server_->close(opened.number);
  expect_sound();
}

std::string name_of(const ::testing::TestParamInfo<Servants>& info) {
  switch (info.param) {
    case Servants::kThreads:
      return "threads";
    case Servants::kOneWarp:
      return "one_warp";
    case Servants::kFourWarps:
      return "four_warps";
    case Servants::kGpu:
      return "gpu";
  }
  return "";
}

#if defined(GOFS_WITH_CUDA)
INSTANTIATE_TEST_SUITE_P(servants, ChannelTest, ::testing::Values(Servants::kGpu), name_of);
#else
/// A channel at which nobody is.
ChannelEnds unserved_channel(uint32_t depth) {
  const serve::RingHead head = serve::layout_of_ring(depth, depth * 4096);
  ChannelEnds ends{SharedMemory::make("gofs channel", head.bytes), make_bell(), {}};
  std::memcpy(ends.memory.data(), &head, sizeof(head));
  return ends;
}

using ProgressTest = ServedVolumeTest;

/// Whether it does, within a time that nothing here takes.
bool changes(const ChannelServer& server, uint64_t before) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (server.progress() == before) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST_F(ProgressTest, it_stands_still_where_all_threads_hang_and_not_where_they_rest) {
  constexpr uint32_t kThreads = 2;
  std::atomic<bool> hangs{false};
  std::atomic<uint32_t> hanging{0};
  ServedFilesystem served_here = served(*volume_);
  served_here.run = [&, run = served_here.run](const kernels::Body& body, const kernels::Grid& grid,
                                               void* params) {
    if (&body == &kernels::bodies::kServe && hangs) {
      ++hanging;
      while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return run(body, grid, params);
  };
  const ChannelServer server(served_here, {.threads = kThreads, .sleep_ms = 1});
  EXPECT_TRUE(changes(server, server.progress())) << "they look again and again";
  hangs = true;
  while (hanging != kThreads) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const uint64_t before = server.progress();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(server.progress(), before);
  hangs = false;
  EXPECT_TRUE(changes(server, before));
}

TEST_F(ProgressTest, a_thread_that_always_has_calls_makes_progress_by_them) {
  std::optional<ChannelServer> server;
  server.emplace(served(*volume_), ChannelServerOptions{.threads = 1});
  Client client(server, 0);
  const std::string root = "/";
  std::vector<CallRequest> calls(1'000, {.verb = Verb::kAccess, .path = &root});
  std::vector<CallAnswer> answers(calls.size());
  const uint64_t before = server->progress();
  client.channel().call_all(calls, answers);
  EXPECT_GE(server->progress() - before, 2 * calls.size()) << "they were taken and answered";
}

TEST(ChannelClientTest, calls_that_are_never_answered_cost_a_slot_each_and_the_last_the_channel) {
  constexpr uint64_t kTimeoutNs = 20'000'000;
  ChannelClient client(unserved_channel(2), kTimeoutNs);
  const CallRequest sync{.verb = Verb::kSync};
  EXPECT_EQ(client.call(sync).result, -ETIMEDOUT);
  EXPECT_FALSE(client.is_gone());
  EXPECT_EQ(client.call(sync).result, -ETIMEDOUT);
  EXPECT_TRUE(client.is_gone());
  EXPECT_EQ(client.call(sync).result, -ESTALE);
}

TEST(ChannelClientTest, who_waits_for_a_slot_waits_no_longer_than_for_an_answer) {
  constexpr uint64_t kTimeoutNs = 200'000'000;
  ChannelClient client(unserved_channel(2), kTimeoutNs);
  std::vector<std::thread> threads;
  std::atomic<uint32_t> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const int64_t answer = client.call({.verb = Verb::kSync}).result;
      wrong += answer != -ETIMEDOUT && answer != -ESTALE;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(client.is_gone());
}

INSTANTIATE_TEST_SUITE_P(servants, ChannelTest,
                         ::testing::Values(Servants::kThreads, Servants::kOneWarp,
                                           Servants::kFourWarps),
                         name_of);
#endif

}  // namespace
}  // namespace gofs::host
