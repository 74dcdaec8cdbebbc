// SPDX-License-Identifier: Apache-2.0
#include "host/serve/socket_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "ssd/hosted/quiet_thread.h"
#include "ssd/system_failure.h"

namespace gofs::host {

namespace {

// How often it is looked whether the calls of a client that has gone have ended.
constexpr int kLeavingMs = 2;
constexpr int kClosingLooksMax = 10;
// Who gets no channel may ask all the same, but not any number of them.
constexpr size_t kAskingMax = 16;

uint32_t mark_of(const ssd::Descriptor& one) { return static_cast<uint32_t>(one.get()); }

/// Whether the other end waits for nothing more. One that only says nothing more (SHUT_WR) waits
/// until this end hangs up.
bool has_let_go(const ssd::Descriptor& connection) {
  pollfd look{connection.get(), 0, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & POLLHUP) != 0;
}

/// False: it cannot be sent at once.
bool send_answer(const ssd::Descriptor& connection, const Answer& answer,
                 std::span<const int> descriptors) {
  const std::string bytes = packed(answer);
  if (bytes.size() <= kControlBytesMax) return send_control(connection, bytes, descriptors);
  return send_control(
      connection,
      packed(Answer{EMSGSIZE, "there is more to tell than a message has room for", {}}));
}

}  // namespace

SocketServer::SocketServer(ChannelServer& channels, const ssd::Descriptor& listening,
                           AnswerBy answer_by)
    : channels_(channels),
      listening_(copy_of(listening)),
      stop_(make_bell()),
      answer_by_(std::move(answer_by)) {
  events_.add(listening_, mark_of(listening_));
  events_.add(stop_, mark_of(stop_));
  try {
    answering_ = ssd::start_quiet_thread([this] { answer_all(); });
    tidying_ = ssd::start_quiet_thread([this] { tidy_up(); });
    thread_ = ssd::start_quiet_thread([this] { run(); });
  } catch (...) {
    end_threads();
    throw;
  }
}

void SocketServer::end_threads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  has_asked_.notify_one();
  has_to_tidy_.notify_one();
  ring_bell(stop_);
  for (std::thread* const one : {&answering_, &tidying_, &thread_}) {
    if (one->joinable()) one->join();
  }
}

SocketServer::~SocketServer() { (void)end(); }

std::vector<ssd::Descriptor> SocketServer::end() {
  end_threads();
  while (!connections_.empty()) end_client(connections_.begin()->first);
  for (const Leaving& leaving : leaving_) {
    if (leaving.for_kernels) (void)channels_.close(*leaving.for_kernels);
    (void)channels_.close(leaving.channel);
    hang_up(*leaving.connection);
  }
  leaving_.clear();
  std::vector<ssd::Descriptor> waiting;
  for (const auto& one : stopping_) waiting.push_back(std::move(one->descriptor));
  stopping_.clear();
  return waiting;
}

void SocketServer::run() {
  for (;;) {
    const std::optional<uint32_t> ready = events_.wait(-1);
    if (ready == mark_of(stop_)) return;
    if (ready == mark_of(listening_)) {
      take_client();
    } else if (ready) {
      hear(*ready);
    }
  }
}

void SocketServer::take_client() {
  ssd::Descriptor descriptor(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!descriptor.is_open()) {
    // There are no descriptors left, perhaps: the client waits until there are.
    std::this_thread::sleep_for(std::chrono::milliseconds(kLeavingMs));
    return;
  }
  const uint32_t mark = mark_of(descriptor);
  try {
    // It is known before it has anything: whatever fails, end_client() ends all of it.
    const auto connection = std::make_shared<Connection>();
    connections_.emplace(mark, connection);
    connection->descriptor = std::move(descriptor);
    if (!welcome(*connection)) end_client(mark);
  } catch (const std::exception& problem) {
    const auto* const refused = dynamic_cast<const std::system_error*>(&problem);
    const auto found = connections_.find(mark);
    if (found == connections_.end()) return;
    if (!found->second->channel) {
      (void)greet(found->second->descriptor, nullptr, refused ? refused->code().value() : ENOMEM);
    }
    end_client(mark);
  }
}

/// Opens its channel, and waits for its questions. False: it is not to stay. Throws
/// std::system_error, std::bad_alloc.
bool SocketServer::welcome(Connection& connection) {
  const Peer peer = peer_of(connection.descriptor);
  connection.who = peer.credentials;
  if (is_trusted(connection.who)) take_descriptors_of(connection.descriptor);
  const auto opened = channels_.open({peer.credentials, peer.pid});
  if (opened) connection.channel = opened->number;
  const bool may_stay = opened || connections_.size() <= channels_.channels_max() + kAskingMax;
  const bool there = greet(connection.descriptor, opened ? &opened->ends : nullptr,
                           opened ? 0 : opened.error().code);
  {
    const std::lock_guard lock(mutex_);
    ring_was_taken_ = true;
  }
  has_to_tidy_.notify_one();
  if (!there || !may_stay) return false;
  events_.add(connection.descriptor, mark_of(connection.descriptor));
  return true;
}

/// It asks something, or has hung up. Who does not wait for his answer is no client of ours.
void SocketServer::hear(uint32_t mark) {
  const auto found = connections_.find(mark);
  if (found == connections_.end()) return;
  const std::shared_ptr<Connection>& connection = found->second;
  try {
    std::vector<ssd::Descriptor> with;
    const std::string bytes =
        receive_control(connection->descriptor, is_trusted(connection->who) ? &with : nullptr);
    if (bytes.empty()) return end_client(mark, has_let_go(connection->descriptor));
    if (connection->asks.exchange(true)) return end_client(mark);
    Asked asked{connection, unpacked<Question>(bytes), std::move(with)};
    if (is_quick(asked.question.ask)) {
      if (!answer(std::move(asked))) end_client(mark);
      return;
    }
    const std::lock_guard lock(mutex_);
    asked_.push_back(std::move(asked));
    has_asked_.notify_one();
  } catch (const std::exception&) {
    end_client(mark);
  }
}

void SocketServer::answer_all() {
  for (;;) {
    std::unique_lock lock(mutex_);
    has_asked_.wait(lock, [this] { return ending_ || !asked_.empty(); });
    if (ending_) return;
    Asked asked = std::move(asked_.front());
    asked_.pop_front();
    lock.unlock();
    const std::shared_ptr<Connection> by = asked.by;
    bool answered = false;
    try {
      answered = answer(std::move(asked));
    } catch (const std::exception&) {  // there is no memory
    }
    // It is ended then, rather than left waiting. It is told when its calls under way have ended.
    if (!answered) (void)::shutdown(by->descriptor.get(), SHUT_RD);
  }
}

/// Whether it has an answer, or will have one at the end that it has asked for.
bool SocketServer::answer(Asked asked) {
  ssd::Descriptor memory;
  const Answer answer = answer_of(asked, memory);
  if (asked.question.ask == Ask::kStop && answer.error == 0) {
    const std::lock_guard lock(mutex_);
    stopping_.push_back(asked.by);
    asked.by->stops = true;
    return true;
  }
  asked.by->asks = false;  // before it can ask again
  const int with[] = {memory.get()};
  return send_answer(asked.by->descriptor, answer,
                     memory.is_open() ? std::span<const int>(with) : std::span<const int>());
}

/// `memory` goes along with it, if it is open.
Answer SocketServer::answer_of(Asked& asked, ssd::Descriptor& memory) {
  switch (asked.question.ask) {
    case Ask::kForKernels:
      return open_for_kernels(*asked.by, memory);
    case Ask::kOpenWindow:
      return open_window(asked);
    case Ask::kCloseWindow:
      return close_window(*asked.by, asked.question.window);
    default:
      return answer_by_(asked.question, asked.by->who);
  }
}

Answer SocketServer::open_window(Asked& asked) {
  Connection& connection = *asked.by;
  if (!is_trusted(connection.who)) return {EPERM, "for root and the user of the server", {}};
  const std::lock_guard lock(connection.mutex);
  if (connection.ended || !connection.channel) return {ESTALE, "a client without a channel", {}};
  ssd::Descriptor descriptor;
  if (!asked.with.empty()) descriptor = std::move(asked.with.front());
  const auto number =
      channels_.open_window(*connection.channel, asked.question.memory, std::move(descriptor));
  if (!number) return {number.error().code, number.error().message, {}};
  return {0, {}, packed(*number)};
}

Answer SocketServer::close_window(Connection& connection, uint32_t window) {
  const std::lock_guard lock(connection.mutex);
  if (connection.ended || !connection.channel) return {ESTALE, "a client without a channel", {}};
  if (!channels_.close_window(*connection.channel, window)) return {EINVAL, "no such window", {}};
  return {0, {}, {}};
}

/// A client has one such channel: each takes memory of the GPU. Who asks again could not use the
/// first, which makes room.
Answer SocketServer::open_for_kernels(Connection& connection, ssd::Descriptor& memory) {
  const std::lock_guard lock(connection.mutex);
  if (connection.ended || !connection.channel) return {ESTALE, "a client without a channel", {}};
  if (!close_for_kernels(connection)) return {EBUSY, "the client's kernels make calls", {}};
  auto opened = channels_.open_for_kernels(*connection.channel);
  if (!opened) return {opened.error().code, opened.error().message, {}};
  connection.for_kernels = opened->number;
  memory = std::move(opened->memory);
  return {0, {}, packed(KernelRing{opened->of_gpu, opened->bytes})};
}

/// False: a call is under way there, for longer than others are to wait. By the holder of the
/// connection's mutex.
bool SocketServer::close_for_kernels(Connection& connection) {
  if (!connection.for_kernels) return true;
  (void)channels_.begin_close(*connection.for_kernels, true);
  for (int look = 0; look < kClosingLooksMax; ++look) {
    if (channels_.finish_close(*connection.for_kernels)) {
      connection.for_kernels.reset();
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kLeavingMs));
  }
  return false;
}

/// What those who come do not wait for: to close what a client has left open takes long where files
/// that were removed are large, and so does making the next client's ring.
void SocketServer::tidy_up() {
  std::vector<Leaving> mine;
  for (;;) {
    bool makes_ring = false;
    {
      std::unique_lock lock(mutex_);
      const auto is_called = [this] { return ending_ || !leaving_.empty() || ring_was_taken_; };
      if (mine.empty()) {
        has_to_tidy_.wait(lock, is_called);
      } else {
        has_to_tidy_.wait_for(lock, std::chrono::milliseconds(kLeavingMs), is_called);
      }
      mine.insert(mine.end(), leaving_.begin(), leaving_.end());
      leaving_.clear();
      if (ending_) {
        leaving_ = std::move(mine);
        return;
      }
      makes_ring = std::exchange(ring_was_taken_, false);
    }
    if (makes_ring) channels_.prepare_ring();
    std::erase_if(mine, [this](Leaving& leaving) { return has_left(leaving); });
  }
}

/// Whether it has gone by now. The client's descriptors are closed with the last of its channels.
bool SocketServer::has_left(Leaving& leaving) {
  if (leaving.for_kernels && !channels_.finish_close(*leaving.for_kernels)) return false;
  leaving.for_kernels.reset();
  if (!channels_.finish_close(leaving.channel)) return false;
  hang_up(*leaving.connection);
  return true;
}

/// An answer under way still has the descriptor: the client is to see that it is over.
void SocketServer::hang_up(Connection& connection) {
  if (!connection.stops) (void)::shutdown(connection.descriptor.get(), SHUT_RDWR);
}

void SocketServer::end_client(uint32_t mark, bool has_let_go) {
  const auto found = connections_.find(mark);
  if (found == connections_.end()) return;
  const std::shared_ptr<Connection> connection = std::move(found->second);
  connections_.erase(found);
  events_.remove(connection->descriptor);
  if (!connection->channel) return hang_up(*connection);
  std::optional<uint32_t> for_kernels;
  {
    const std::lock_guard lock(connection->mutex);
    connection->ended = true;
    for_kernels = connection->for_kernels;
  }
  if (for_kernels) channels_.begin_close(*for_kernels, has_let_go);
  channels_.begin_close(*connection->channel, has_let_go);
  const std::lock_guard lock(mutex_);
  leaving_.push_back({for_kernels, *connection->channel, connection});
  has_to_tidy_.notify_one();
}

}  // namespace gofs::host
