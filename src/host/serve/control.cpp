// SPDX-License-Identifier: Apache-2.0
#include "host/serve/control.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace gofs::host {

namespace {

// Emptying segments takes long.
constexpr int kAnswerTimeoutMs = 600'000;

}  // namespace

bool send_control(const ssd::Descriptor& connection, const std::string& bytes) {
  return bytes.size() <= kControlBytesMax &&
         ::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
             static_cast<ssize_t>(bytes.size());
}

std::string receive_control(const ssd::Descriptor& connection) {
  std::string bytes(kControlBytesMax, '\0');
  const ssize_t got =
      ::recv(connection.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_TRUNC);
  if (got <= 0 || static_cast<size_t>(got) > bytes.size()) return {};
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

std::string ask_server(const ssd::Descriptor& connection, const Question& question) {
  if (!send_control(connection, packed(question))) ssd::fail_with(ESTALE, "the server has ended");
  pollfd waiting{connection.get(), POLLIN, 0};
  const int ready = ::poll(&waiting, 1, kAnswerTimeoutMs);
  if (ready <= 0) ssd::fail_with(ready == 0 ? ETIMEDOUT : errno, "the server's answer");
  const std::string bytes = receive_control(connection);
  if (bytes.empty()) ssd::fail_with(ESTALE, "the server has ended");
  Answer answer = unpacked<Answer>(bytes);
  if (answer.error != 0) ssd::fail_with(answer.error, answer.words);
  return std::move(answer.found);
}

}  // namespace gofs::host
