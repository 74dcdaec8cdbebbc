// SPDX-License-Identifier: Apache-2.0
#include "host/serve/control.h"

#include <poll.h>

#include <cerrno>
#include <utility>

#include "host/serve/message.h"

namespace gofs::host {

namespace {

// Emptying segments takes long.
constexpr int kAnswerTimeoutMs = 600'000;

}  // namespace

bool send_control(const ssd::Descriptor& connection, const std::string& bytes,
                  std::span<const int> descriptors) {
  return bytes.size() <= kControlBytesMax && send_message(connection, bytes, descriptors);
}

std::string receive_control(const ssd::Descriptor& connection,
                            std::vector<ssd::Descriptor>* descriptors) {
  Message message =
      receive_message(connection, kControlBytesMax,
                      descriptors != nullptr ? Descriptors::kTaken : Descriptors::kDropped);
  if (descriptors != nullptr) *descriptors = std::move(message.descriptors);
  return std::move(message.bytes);
}

std::string ask_server(const ssd::Descriptor& connection, const Question& question,
                       std::vector<ssd::Descriptor>* descriptors) {
  if (!send_control(connection, packed(question))) ssd::fail_with(ESTALE, "the server has ended");
  pollfd waiting{connection.get(), POLLIN, 0};
  const int ready = ::poll(&waiting, 1, kAnswerTimeoutMs);
  if (ready <= 0) ssd::fail_with(ready == 0 ? ETIMEDOUT : errno, "the server's answer");
  const std::string bytes = receive_control(connection, descriptors);
  if (bytes.empty()) ssd::fail_with(ESTALE, "the server has ended");
  Answer answer = unpacked<Answer>(bytes);
  if (answer.error != 0) ssd::fail_with(answer.error, answer.words);
  return std::move(answer.found);
}

}  // namespace gofs::host
