// SPDX-License-Identifier: Apache-2.0
//
// The client's side of the qtest protocol, against a server that answers what a test tells it.
#include "qtest_client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "errors_for_test.h"
#include "scratch_folder.h"

namespace gofs::ssd {
namespace {

using std::chrono::milliseconds;

/// Takes one client, and answers each line with what `answer` makes of it. "close" closes.
class FakeServer {
 public:
  using Answer = std::function<std::string(const std::string& request)>;

  FakeServer(const std::string& path, Answer answer) : answer_(std::move(answer)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    listener_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  static constexpr const char* kClose = "close";

 private:
  void serve() {
    const Descriptor client(::accept(listener_.get(), nullptr, nullptr));
    std::string received;
    char byte = 0;
    while (client.is_open() && ::recv(client.get(), &byte, 1, 0) == 1) {
      if (byte != '\n') {
        received += byte;
        continue;
      }
      const std::string answer = answer_(received);
      received.clear();
      if (answer == kClose) return;
      ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  Answer answer_;
  Descriptor listener_;
  std::thread thread_;
};

class QtestClientTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.file("socket"); }

 private:
  ScratchFolder folder_{::testing::TempDir()};
};

TEST_F(QtestClientTest, asks_in_the_words_of_the_protocol) {
  std::vector<std::string> asked;
  {
    FakeServer server(path(), [&](const std::string& request) {
      asked.push_back(request);
      const bool reads = request.starts_with("read") || request.starts_with("in");
      return std::string(reads ? "OK 0x00000000fedcba98\n" : "OK\n");
    });
    QtestClient client(path());
    client.writel(0xfe000014, 0x460001);
    client.writeq(0x28, 0x123456789abcdef0);
    client.outl(0xcf8, 0x80002000);
    EXPECT_EQ(client.readl(0xfe00001c), 0xfedcba98u);
    EXPECT_EQ(client.readq(0x0), 0xfedcba98u);
    EXPECT_EQ(client.inl(0xcfc), 0xfedcba98u);
  }
  EXPECT_EQ(asked, (std::vector<std::string>{
                       "writel 0xfe000014 0x460001", "writeq 0x28 0x123456789abcdef0",
                       "outl 0xcf8 0x80002000", "readl 0xfe00001c", "readq 0x0", "inl 0xcfc"}));
}

TEST_F(QtestClientTest, interrupts_and_parts_of_lines_are_no_answers) {
  const auto answer = [](const std::string& request) -> std::string {
    if (request == "writel 0x0 0x1") return "IRQ raise 3\nO";
    if (request == "writel 0x4 0x1") return "K\nIRQ lower 3\nOK\nIRQ raise 3";
    if (request == "readl 0x8") return "\nIRQ lower 3\nOK 0x7\nIRQ raise 4\n";
    return "OK 0x9\n";
  };
  // With a pause, what has come of the answer so far is there when the next request is made.
  for (const milliseconds pause : {milliseconds(0), milliseconds(30)}) {
    FakeServer server(path() + std::to_string(pause.count()), answer);
    QtestClient client(path() + std::to_string(pause.count()));
    client.writel(0, 1);
    std::this_thread::sleep_for(pause);
    client.writel(4, 1);
    std::this_thread::sleep_for(pause);
    EXPECT_EQ(client.readl(8), 7u);
    EXPECT_EQ(client.readl(12), 9u);
  }
}

TEST_F(QtestClientTest, an_answer_other_than_ok_is_told_with_its_request) {
  FakeServer server(path(), [](const std::string& request) -> std::string {
    if (request == "readl 0x4") return "FAIL Unknown command 'readl'\n";
    if (request == "writel 0x8 0x1") return "ERR\n";
    if (request == "readl 0xc") return "OK 0x12z\n";
    return "OK 0x5\n";
  });
  QtestClient client(path());
  const Trouble failed = trouble_of([&] { client.readl(4); });
  EXPECT_EQ(failed.error, EPROTO);
  EXPECT_TRUE(failed.says("\"FAIL Unknown command 'readl'\" to \"readl 0x4\"")) << failed.text;
  EXPECT_EQ(client.readl(0), 5u);
  // Nobody waited for the answer to the write.
  client.writel(8, 1);
  const Trouble later = trouble_of([&] { client.readl(0); });
  EXPECT_EQ(later.error, EPROTO);
  EXPECT_TRUE(later.says("\"ERR\" to \"writel 0x8 0x1\"")) << later.text;
  EXPECT_TRUE(trouble_of([&] { client.readl(0xc); }).says("OK 0x12z"));
  EXPECT_EQ(client.readl(0), 5u);
  EXPECT_FALSE(client.gone());
}

TEST_F(QtestClientTest, no_answer_in_time_is_the_last_wait) {
  FakeServer server(path(), [](const std::string&) { return std::string("IRQ raise 1\n"); });
  QtestClient client(path(), milliseconds(50));
  const Trouble trouble = trouble_of([&] { client.readl(0x1c); });
  EXPECT_EQ(trouble.error, ETIMEDOUT);
  EXPECT_TRUE(trouble.says("no answer to \"readl 0x1c\" in 50 ms")) << trouble.text;
  EXPECT_TRUE(client.gone());
  EXPECT_EQ(client.readl(0x1c), ~0u);
  client.writel(0x14, 0);
}

TEST_F(QtestClientTest, an_answer_without_end_is_none) {
  FakeServer server(path(), [](const std::string&) { return std::string(100000, 'O'); });
  QtestClient client(path(), milliseconds(5000));
  EXPECT_EQ(trouble_of([&] { client.readl(0); }).error, ETIMEDOUT);
  EXPECT_TRUE(client.gone());
}

TEST_F(QtestClientTest, a_server_that_goes_reads_as_all_ones) {
  FakeServer server(path(), [](const std::string& request) {
    return std::string(request == "readl 0x4" ? FakeServer::kClose : "OK 0x5\n");
  });
  QtestClient client(path());
  EXPECT_EQ(client.readl(0), 5u);
  EXPECT_FALSE(client.gone());
  EXPECT_EQ(client.readl(4), ~0u);
  EXPECT_TRUE(client.gone());
  EXPECT_EQ(client.readq(0), ~uint64_t{0});
  EXPECT_EQ(client.inl(0xcfc), ~0u);
  client.writel(0, 1);
  client.outl(0xcf8, 1);
}

TEST_F(QtestClientTest, many_writes_wait_for_answers_now_and_then) {
  std::atomic<int> writes{0};
  FakeServer server(path(), [&](const std::string& request) {
    if (request.starts_with("writel")) ++writes;
    return std::string("OK\n");
  });
  QtestClient client(path());
  for (uint32_t i = 0; i < 1000; ++i) client.writel(0, i);
  client.readl(0);
  EXPECT_EQ(writes.load(), 1000);
}

TEST_F(QtestClientTest, threads_get_their_own_answers) {
  FakeServer server(path(), [](const std::string& request) {
    return request.starts_with("readl") ? "OK " + request.substr(6) + "\n" : std::string("OK\n");
  });
  QtestClient client(path());
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&client, thread] {
      for (uint32_t i = 0; i < 200; ++i) {
        const uint32_t address = thread << 16 | i << 2;
        client.writel(address, i);
        EXPECT_EQ(client.readl(address), address);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(QtestClientTest, a_socket_where_nobody_listens_is_named) {
  const Trouble missing = trouble_of([&] { QtestClient client(path()); });
  EXPECT_EQ(missing.error, ENOENT);
  EXPECT_TRUE(missing.says(path())) << missing.text;
  const Trouble long_path = trouble_of([] { QtestClient client(std::string(200, 'x')); });
  EXPECT_EQ(long_path.error, ENAMETOOLONG);
  EXPECT_TRUE(long_path.says("at most 107 bytes")) << long_path.text;
}

}  // namespace
}  // namespace gofs::ssd
