// SPDX-License-Identifier: Apache-2.0
#include "host/serve/http_exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace gofs::host {

namespace {

constexpr const char* kHeadEnd = "\r\n\r\n";

std::string answer_of(const char* status, const std::string& body, const char* type,
                      bool with_body = true) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, type, body.size(), with_body ? body : "");
}

std::string refusal(const char* status, const char* words) {
  return answer_of(status, std::string(words) + "\n", "text/plain; charset=utf-8");
}

bool may_come_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

std::string http_answer(const std::string& head, const HttpExchange::TextBy& text_by) {
  if (head.find(kHeadEnd) == std::string::npos) {
    return refusal("431 Request Header Fields Too Large", "a request may have 4096 bytes");
  }
  const std::string line = head.substr(0, head.find("\r\n"));
  const size_t first = line.find(' ');
  const size_t second = line.find(' ', first == std::string::npos ? first : first + 1);
  if (second == std::string::npos || line.compare(second + 1, 7, "HTTP/1.") != 0) {
    return refusal("400 Bad Request", "this is no request of HTTP/1.1");
  }
  const std::string method = line.substr(0, first);
  const std::string target = line.substr(first + 1, second - first - 1);
  if (method != "GET" && method != "HEAD") {
    return refusal("405 Method Not Allowed", "there is GET alone");
  }
  if (target.substr(0, target.find('?')) != "/metrics") {
    return refusal("404 Not Found", "what there is to see is at /metrics");
  }
  const std::string text = text_by();
  if (text.empty()) return refusal("503 Service Unavailable", "the volume does not answer");
  return answer_of("200 OK", text, "text/plain; version=0.0.4; charset=utf-8", method == "GET");
}

short HttpExchange::waits_for() const { return !answer_.empty() && !leaving_ ? POLLOUT : POLLIN; }

bool HttpExchange::step(const TextBy& text_by) {
  if (leaving_) return leave();
  return answer_.empty() ? hear(text_by) : tell();
}

bool HttpExchange::hear(const TextBy& text_by) {
  char bytes[1024];
  const ssize_t got = ::recv(connection_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
  if (got == 0) return false;
  if (got < 0) return may_come_later(errno);
  request_.append(bytes, static_cast<size_t>(got));
  if (request_.find(kHeadEnd) == std::string::npos && request_.size() < kRequestBytesMax) {
    return true;
  }
  answer_ = http_answer(request_, text_by);
  return tell();
}

bool HttpExchange::tell() {
  const ssize_t sent = ::send(connection_.get(), answer_.data() + told_, answer_.size() - told_,
                              MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return may_come_later(errno);
  told_ += static_cast<size_t>(sent);
  if (told_ < answer_.size()) return true;
  // Closed with bytes unread, a connection would be reset, and the answer with it.
  (void)::shutdown(connection_.get(), SHUT_WR);
  leaving_ = true;
  return true;
}

/// Until the other end has hung up; what it says still is not looked at.
bool HttpExchange::leave() {
  char bytes[1024];
  const ssize_t got = ::recv(connection_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
  return got > 0 || (got < 0 && may_come_later(errno));
}

}  // namespace gofs::host
