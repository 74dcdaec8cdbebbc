// SPDX-License-Identifier: Apache-2.0
//
// Metrics over HTTP: what is told, what is refused, and that clients who are slow, silent or loud
// keep nobody else from them.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "host/metrics_text.h"
#include "host/serve/metrics_address.h"
#include "host/serve/metrics_server.h"

namespace gofs::host {
namespace {

using std::chrono::milliseconds;

const std::string kGetMetrics = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";

class MetricsTest : public ::testing::Test {
 protected:
  void serve(const MetricsServerOptions& options = {}) {
    ssd::Descriptor listening = listen_for_metrics(":0");
    port_ = port_of(listening);
    server_ = std::make_unique<MetricsServer>(
        std::move(listening),
        [this] {
          ++made_;
          return text_;
        },
        options);
  }
  ssd::Descriptor connect() const {
    ssd::Descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto to = *parse_metrics_address(":" + std::to_string(port_));
    EXPECT_EQ(::connect(made.get(), &to.address.any, to.bytes), 0);
    return made;
  }
  static void say(const ssd::Descriptor& to, const std::string& words) {
    (void)!::send(to.get(), words.data(), words.size(), MSG_NOSIGNAL);
  }
  /// All that comes until the other end hangs up.
  static std::string hear(const ssd::Descriptor& from) {
    std::string heard;
    char bytes[4096];
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(from.get(), bytes, sizeof(bytes), 0);
      if (got > 0) heard.append(bytes, static_cast<size_t>(got));
    }
    return heard;
  }
  std::string ask(const std::string& words) const {
    const ssd::Descriptor connection = connect();
    say(connection, words);
    return hear(connection);
  }

  std::string text_ = "gofs_something 7\n";  // written before serve() alone
  std::atomic<int> made_{0};
  uint16_t port_ = 0;
  std::unique_ptr<MetricsServer> server_;
};

TEST_F(MetricsTest, are_told_to_who_asks) {
  serve();
  const std::string heard = ask(kGetMetrics);
  EXPECT_EQ(heard.rfind("HTTP/1.1 200 OK\r\n", 0), 0u) << heard;
  EXPECT_NE(heard.find("Content-Type: text/plain; version=0.0.4"), std::string::npos) << heard;
  EXPECT_NE(heard.find("Content-Length: 17\r\n"), std::string::npos) << heard;
  EXPECT_EQ(heard.substr(heard.find("\r\n\r\n") + 4), text_);
  EXPECT_NE(ask("GET /metrics?all=1 HTTP/1.0\r\n\r\n").find(text_), std::string::npos);
  const std::string head = ask("HEAD /metrics HTTP/1.1\r\n\r\n");
  EXPECT_EQ(head.substr(head.find("\r\n\r\n") + 4), "");
}

TEST_F(MetricsTest, what_is_asked_wrongly_is_refused_by_name) {
  serve();
  const auto status_of = [&](const std::string& words) { return ask(words).substr(9, 3); };
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), "404");
  EXPECT_EQ(status_of("POST /metrics HTTP/1.1\r\n\r\n"), "405");
  EXPECT_EQ(status_of("nonsense\r\n\r\n"), "400");
  EXPECT_EQ(status_of("GET /metrics\r\n\r\n"), "400");
  EXPECT_EQ(status_of("GET  \r\n\r\n"), "400");
  EXPECT_EQ(status_of(std::string("\0\xff\x80\r\n\r\n", 7)), "400");
  EXPECT_EQ(status_of("GET /metrics HTTP/1.1\r\nX: " + std::string(100'000, 'x')), "431");
  EXPECT_EQ(made_, 0);
}

TEST_F(MetricsTest, a_volume_that_does_not_answer_is_told) {
  text_.clear();
  serve();
  EXPECT_EQ(ask(kGetMetrics).substr(9, 3), "503");
}

TEST_F(MetricsTest, a_request_may_come_in_pieces) {
  serve();
  const ssd::Descriptor connection = connect();
  for (const char byte : kGetMetrics) say(connection, std::string(1, byte));
  EXPECT_NE(hear(connection).find(text_), std::string::npos);
}

TEST_F(MetricsTest, who_says_nothing_is_dropped_and_others_are_answered_meanwhile) {
  MetricsServerOptions options;
  options.exchange_max = milliseconds(300);
  options.exchanges_max = 4;
  serve(options);
  std::vector<ssd::Descriptor> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(connect());
  EXPECT_NE(ask(kGetMetrics).find(text_), std::string::npos);
  // With more of them than there is room for, others wait until the first ones are dropped.
  for (int i = 0; i < 9; ++i) silent.push_back(connect());
  say(silent.back(), "GET /met");
  EXPECT_NE(ask(kGetMetrics).find(text_), std::string::npos);
  for (const ssd::Descriptor& one : silent) EXPECT_EQ(hear(one), "");
}

TEST_F(MetricsTest, who_does_not_take_the_answer_is_dropped) {
  text_ = std::string(64 << 20, 'x');  // more than a connection holds
  MetricsServerOptions options;
  options.exchange_max = milliseconds(300);
  serve(options);
  const ssd::Descriptor deaf = connect();
  say(deaf, kGetMetrics);
  EXPECT_EQ(ask("GET / HTTP/1.1\r\n\r\n").substr(9, 3), "404");
}

TEST_F(MetricsTest, the_same_text_is_told_to_many_who_ask_at_once) {
  MetricsServerOptions options;
  options.text_for = std::chrono::hours(1);
  serve(options);
  for (int i = 0; i < 20; ++i) EXPECT_NE(ask(kGetMetrics).find(text_), std::string::npos);
  EXPECT_EQ(made_, 1);
}

TEST_F(MetricsTest, an_end_waits_for_nobody) {
  MetricsServerOptions options;
  options.exchange_max = std::chrono::hours(1);
  serve(options);
  const ssd::Descriptor silent = connect();
  EXPECT_NE(ask(kGetMetrics).find(text_), std::string::npos);
  server_.reset();
  EXPECT_EQ(hear(silent), "");
}

TEST(MetricsAddress, numbers_are_understood) {
  for (const char* good : {":9466", "127.0.0.1:1", "0.0.0.0:65535", "[::1]:9466", "[::]:0"}) {
    EXPECT_TRUE(parse_metrics_address(good)) << good;
  }
  EXPECT_EQ(parse_metrics_address(":9466")->address.v4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  for (const char* bad :
       {"", "9466", ":", ":x", ":65536", ":-1", ": 1", "localhost:9466", "1.2.3:4", "::1:9466",
        "[::1]", "[]:1", "[127.0.0.1]:1", "1.2.3.4:5:6", "/a/path"}) {
    EXPECT_FALSE(parse_metrics_address(bad)) << bad;
  }
}

TEST(MetricsAddress, one_that_is_taken_is_an_error_with_its_name) {
  const ssd::Descriptor first = listen_for_metrics(":0");
  const std::string taken = ":" + std::to_string(port_of(first));
  try {
    (void)listen_for_metrics(taken);
    FAIL();
  } catch (const std::system_error& problem) {
    EXPECT_EQ(problem.code().value(), EADDRINUSE);
    EXPECT_NE(std::string(problem.what()).find("metrics at " + taken), std::string::npos);
  }
}

TEST(MetricsText, has_each_kind_with_its_labels) {
  Statistics seen{};
  seen.calls[static_cast<uint32_t>(CallKind::kRead)] = {11, 12};
  seen.commands[static_cast<uint32_t>(CommandKind::kWrite)] = {13, 14};
  seen.lookups[static_cast<uint32_t>(CacheKind::kNodes)] = {15, 16};
  seen.segments[static_cast<uint32_t>(SegmentState::kDirty)] = 17;
  seen.bytes_read = ~uint64_t{0};
  CommandTimes times{};
  const std::string text = metrics_text(seen, times, 3);
  for (const char* line :
       {"gofs_operations_total{op=\"read\",result=\"success\"} 11\n",
        "gofs_operations_total{op=\"read\",result=\"error\"} 12\n",
        "gofs_nvme_commands_total{op=\"write\",status=\"success\"} 13\n",
        "gofs_nvme_commands_total{op=\"write\",status=\"error\"} 14\n",
        "gofs_cache_hits_total{kind=\"nodes\"} 15\n",
        "gofs_cache_misses_total{kind=\"nodes\"} 16\n", "gofs_segments{state=\"dirty\"} 17\n",
        "gofs_read_bytes_total 18446744073709551615\n", "gofs_clients 3\n",
        "# TYPE gofs_operations_total counter\n", "# TYPE gofs_segments gauge\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  EXPECT_NE(text.find("gofs_nvme_timed_ssds 0\n"), std::string::npos);
  EXPECT_EQ(text.find("seconds"), std::string::npos) << "what is not known is not told";

  times.ssds = 2;
  times.busy_ns = 2'500'000'000;
  TimedCommands& reads = times.kinds[static_cast<uint32_t>(CommandKind::kRead)];
  reads.counts[0] = 3;
  reads.counts[7] = 4;
  reads.counts[kTimeBuckets - 1] = 5;
  reads.total_ns = 90'000'000'000;
  const std::string timed = metrics_text(seen, times);
  for (const char* line : {"# TYPE gofs_nvme_command_seconds histogram\n",
                           "gofs_nvme_command_seconds_bucket{op=\"read\",le=\"1e-06\"} 3\n",
                           "gofs_nvme_command_seconds_bucket{op=\"read\",le=\"6.4e-05\"} 3\n",
                           "gofs_nvme_command_seconds_bucket{op=\"read\",le=\"0.000128\"} 7\n",
                           "gofs_nvme_command_seconds_bucket{op=\"read\",le=\"16.777216\"} 7\n",
                           "gofs_nvme_command_seconds_bucket{op=\"read\",le=\"+Inf\"} 12\n",
                           "gofs_nvme_command_seconds_sum{op=\"read\"} 90\n",
                           "gofs_nvme_command_seconds_count{op=\"read\"} 12\n",
                           "gofs_nvme_command_seconds_count{op=\"flush\"} 0\n",
                           "gofs_nvme_busy_seconds_total 2.5\n", "gofs_nvme_timed_ssds 2\n"}) {
    EXPECT_NE(timed.find(line), std::string::npos) << line << timed;
  }
  EXPECT_EQ(timed.find("gofs_clients"), std::string::npos) << "of a volume that is not served";
}

}  // namespace
}  // namespace gofs::host
