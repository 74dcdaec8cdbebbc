// SPDX-License-Identifier: Apache-2.0
#include "host/serve/control.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "host/serve/message.h"

namespace gofs::host {

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

bool is_trusted(const vfs::Credentials& who) { return who.uid == 0 || who.uid == ::geteuid(); }

std::string ControlLine::ask(const Question& question, std::vector<ssd::Descriptor>* descriptors,
                             const ssd::Descriptor& with) {
  const std::lock_guard lock(mutex_);
  return ask_next(question, descriptors, with);
}

std::string ControlLine::ask_at_once(const Question& question, const ssd::Descriptor& with) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) ssd::fail_with(EBUSY, "another question is under way");
  return ask_next(question, nullptr, with);
}

/// By the holder of the mutex.
std::string ControlLine::ask_next(const Question& question,
                                  std::vector<ssd::Descriptor>* descriptors,
                                  const ssd::Descriptor& with) {
  const int file = with.get();
  const auto files = with.is_open() ? std::span(&file, 1) : std::span<const int>();
  if (!is_in_step_) ssd::fail_with(ETIMEDOUT, "the server has not answered a question before");
  if (!send_control(connection_, packed(question), files)) {
    if (errno == EPERM) ssd::fail_with(EPERM, "the server takes no descriptors of this user's");
    ssd::fail_with(ESTALE, "the server has ended");
  }
  is_in_step_ = false;
  const int error = await_message(connection_, std::chrono::steady_clock::now() + timeout_);
  if (error != 0) ssd::fail_with(error, "the server's answer");
  const std::string bytes = receive_control(connection_, descriptors);
  if (bytes.empty()) ssd::fail_with(ESTALE, "the server has ended");
  is_in_step_ = true;
  Answer answer = unpacked<Answer>(bytes);
  if (answer.error != 0) ssd::fail_with(answer.error, answer.words);
  return std::move(answer.found);
}

std::string ask_server(const ssd::Descriptor& connection, const Question& question,
                       std::vector<ssd::Descriptor>* descriptors) {
  return ControlLine(connection).ask(question, descriptors);
}

ServerStatus status_of(const ssd::Descriptor& connection) {
  ServerStatus all{};
  std::vector<ClientStatus> clients;
  do {
    const uint32_t from = all.next;
    all = unpacked<ServerStatus>(ask_server(connection, {Ask::kStatus, {}, from}));
    if (all.next != 0 && all.next <= from) ssd::fail_with(EPROTO, "a status without an end");
    clients.insert(clients.end(), all.clients.begin(), all.clients.end());
  } while (all.next != 0);
  all.clients = std::move(clients);
  return all;
}

}  // namespace gofs::host
