// SPDX-License-Identifier: Apache-2.0
#include "qtest_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "hexadecimal.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

using Clock = std::chrono::steady_clock;

// As many answers, of 3 bytes each, fit into any socket: QEMU never waits for us to read them while
// we wait for it.
constexpr size_t kPendingMax = 64;
// The longest answer is "OK 0x" and 16 digits.
constexpr size_t kAnswerBytesMax = 4096;

constexpr std::string_view kInterruptNews = "IRQ ";

Descriptor connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    fail_with(ENAMETOOLONG, "qtest socket " + path + ": a socket's path has at most " +
                                std::to_string(sizeof(address.sun_path) - 1) + " bytes");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) fail_with(errno, "qtest: cannot make a socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    fail_with(errno, "qtest socket " + path + ": cannot connect to QEMU");
  }
  return socket;
}

/// "OK" or "OK 0x1234". False for anything else.
bool parse_answer(std::string_view line, uint64_t& value) {
  value = 0;
  if (line == "OK") return true;
  constexpr std::string_view kOkHexadecimal = "OK 0x";
  if (!line.starts_with(kOkHexadecimal)) return false;
  line.remove_prefix(kOkHexadecimal.size());
  const char* const end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data(), end, value, 16);
  return error == std::errc() && stop == end;
}

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

}  // namespace

QtestClient::QtestClient(const std::string& socket_path, std::chrono::milliseconds answer_timeout)
    : answer_timeout_(answer_timeout), socket_(connect_to(socket_path)) {}

uint32_t QtestClient::readl(uint64_t address) {
  return static_cast<uint32_t>(ask("readl " + hexadecimal(address)));
}

uint64_t QtestClient::readq(uint64_t address) { return ask("readq " + hexadecimal(address)); }

void QtestClient::writel(uint64_t address, uint32_t value) {
  post("writel " + hexadecimal(address) + ' ' + hexadecimal(value));
}

void QtestClient::writeq(uint64_t address, uint64_t value) {
  post("writeq " + hexadecimal(address) + ' ' + hexadecimal(value));
}

uint32_t QtestClient::inl(uint16_t port) {
  return static_cast<uint32_t>(ask("inl " + hexadecimal(port)));
}

void QtestClient::outl(uint16_t port, uint32_t value) {
  post("outl " + hexadecimal(port) + ' ' + hexadecimal(value));
}

uint64_t QtestClient::ask(std::string request) {
  const std::lock_guard lock(mutex_);
  const Deadline deadline = Clock::now() + answer_timeout_;
  send_request(std::move(request), deadline);
  uint64_t value = 0;
  while (!gone() && !pending_.empty()) value = take_answer(deadline);
  return gone() ? ~uint64_t{0} : value;
}

void QtestClient::post(std::string request) {
  const std::lock_guard lock(mutex_);
  const Deadline deadline = Clock::now() + answer_timeout_;
  // What is there already is looked at for free.
  while (!gone() && !pending_.empty() && (has_answer() || receive(Clock::now()))) {
    if (has_answer()) take_answer(deadline);
  }
  while (!gone() && pending_.size() >= kPendingMax) take_answer(deadline);
  send_request(std::move(request), deadline);
}

void QtestClient::send_request(std::string request, Deadline deadline) {
  if (gone()) return;
  std::string line = request + '\n';
  std::string_view rest = line;
  pending_.push_back(std::move(request));
  while (!rest.empty()) {
    const ssize_t sent =
        ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      rest.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_until_ready(POLLOUT, deadline)) give_up(pending_.back());
    } else if (errno != EINTR) {
      return become_gone();
    }
  }
}

uint64_t QtestClient::take_answer(Deadline deadline) {
  while (!has_answer()) {
    if (received_.size() > kAnswerBytesMax) give_up(pending_.front());
    if (!receive(deadline)) give_up(pending_.front());
    if (gone()) return 0;
  }
  const size_t length = received_.find('\n');
  const std::string line = received_.substr(0, length);
  received_.erase(0, length + 1);
  const std::string asked = std::move(pending_.front());
  pending_.pop_front();
  uint64_t value = 0;
  if (!parse_answer(line, value)) {
    fail_with(EPROTO, "qtest: QEMU answered " + in_quotes(line) + " to " + in_quotes(asked));
  }
  return value;
}

bool QtestClient::has_answer() {
  for (;;) {
    const size_t length = received_.find('\n');
    if (length == std::string::npos) return false;
    if (!std::string_view(received_).starts_with(kInterruptNews)) return true;
    received_.erase(0, length + 1);
  }
}

bool QtestClient::receive(Deadline deadline) {
  if (!wait_until_ready(POLLIN, deadline)) return false;
  char bytes[512];
  const ssize_t count = ::recv(socket_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
  if (count > 0) {
    received_.append(bytes, static_cast<size_t>(count));
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    become_gone();
  }
  return true;
}

bool QtestClient::wait_until_ready(short events, Deadline deadline) {
  pollfd wanted{socket_.get(), events, 0};
  for (;;) {
    // Rounded up, or the last millisecond would be spent asking.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) fail_with(errno, "qtest: cannot wait for QEMU");
    if (left <= 0) return false;
  }
}

void QtestClient::give_up(const std::string& asked) {
  std::string text = "qtest: no answer to " + in_quotes(asked) + " in " +
                     std::to_string(answer_timeout_.count()) + " ms";
  if (!received_.empty()) text += ", only " + in_quotes(received_.substr(0, 80));
  // An answer that comes later would be taken for the next one's.
  become_gone();
  fail_with(ETIMEDOUT, text);
}

void QtestClient::become_gone() {
  gone_.store(true, std::memory_order_release);  // pairs with gone()
  pending_.clear();
  received_.clear();
}

}  // namespace gofs::ssd
