// SPDX-License-Identifier: Apache-2.0
#include "host/serve/channel_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "host/serve/bell.h"
#include "host/serve/ring_head.h"
#include "simt/clock.h"
#include "simt/host_sleep.h"
#include "ssd/system_failure.h"

namespace gofs::host {

namespace {

// A call from memory takes a few microseconds, one from an SSD some tens; to sleep and be woken
// takes as long. So a client looks for twice as long as the last call took that it slept for, if
// that was not long. Stores of a GPU wake nobody: how long a call took is not known then, but for
// the nap that it ended in.
constexpr uint64_t kSpinNsMin = 20'000;
constexpr uint64_t kSpinNsMax = 200'000;
// A nap is a part of what has been waited for, so an answer is seen that much later at the most.
constexpr uint64_t kNapsOfWait = 8;
constexpr uint64_t kNapNsMin = 50'000;
constexpr uint64_t kNapNsMax = 1'000'000;
// Who waits for a slot looks so often for the server.
constexpr std::chrono::milliseconds kSlotWait{100};

/// A view of the ring, if it is one.
serve::Ring view_of(const SharedMemory& memory) {
  if (memory.bytes() < sizeof(serve::RingHead)) ssd::fail_with(EPROTO, "a channel too small");
  serve::RingHead head{};
  std::memcpy(&head, memory.data(), sizeof(head));
  return serve::view_of_ring(memory.data(), checked_head(head, memory.bytes()));
}

/// For how long to look for the next answer, after a call that was slept for.
uint64_t spin_after(bool was_woken, uint64_t took_ns) {
  if (was_woken) return took_ns < kSpinNsMax / 2 ? 2 * took_ns : kSpinNsMin;
  return took_ns < 2 * kSpinNsMax ? kSpinNsMax : kSpinNsMin;
}

/// Whether the call moves bytes, which may lie in a window.
bool is_data(const CallRequest& request) {
  return static_cast<uint32_t>(request.verb) < request::kVerbs &&
         request::moves_bytes(request::row_of(request.verb)) && request.bytes != 0 &&
         (request.input != nullptr || request.buffer != nullptr);
}

/// Puts a text behind those that are there.
request::Text put(const std::string* text, const request::TextRule& rule, char* room,
                  uint32_t& at) {
  if (text == nullptr) return {};
  const request::Text where{at, copy_text(*text, rule, room + at)};
  at += (where.bytes + serve::kTextAlign - 1) / serve::kTextAlign * serve::kTextAlign;
  return where;
}

}  // namespace

ChannelClient::ChannelClient(ChannelEnds ends, uint64_t answer_timeout_ns)
    : ends_(std::move(ends)),
      ring_(view_of(ends_.memory)),
      answer_timeout_ns_(answer_timeout_ns),
      part_bytes_(ring_.buffer_bytes / ring_.depth),
      laps_(ring_.depth, 0) {
  for (uint32_t slot = ring_.depth; slot-- > 0;) free_slots_.push_back(slot);
}

/// Whether no answer comes any more.
bool ChannelClient::has_ended() const {
  return hung_up_.load(std::memory_order_acquire) ||
         simt::load_system_acquire(ring_.head->gone) != 0;  // [H9]
}

bool ChannelClient::is_gone() const {
  return has_ended() || leaves_.load(std::memory_order_relaxed);
}

void ChannelClient::leave() {
  leaves_.store(true, std::memory_order_relaxed);
  // The other direction stays open: the server hangs up when it has answered.
  if (ends_.connection.is_open()) (void)::shutdown(ends_.connection.get(), SHUT_WR);
  const std::lock_guard lock(mutex_);
  freed_.notify_all();
}

void ChannelClient::look_for_server() {
  if (!ends_.connection.is_open()) return;
  pollfd look{ends_.connection.get(), POLLRDHUP, 0};
  if (::poll(&look, 1, 0) > 0) hung_up_.store(true, std::memory_order_release);
}

/// False: none is free, or the server has gone.
bool ChannelClient::take_slot(bool may_wait, uint32_t& slot) {
  std::unique_lock lock(mutex_);
  const uint64_t began = simt::now_ns();
  while (may_wait && free_slots_.empty() && !is_gone() &&
         simt::now_ns() - began < answer_timeout_ns_) {
    if (freed_.wait_for(lock, kSlotWait) == std::cv_status::timeout) look_for_server();
  }
  if (is_gone() || free_slots_.empty()) return false;
  slot = free_slots_.back();
  free_slots_.pop_back();
  return true;
}

void ChannelClient::release_slot(uint32_t slot) {
  const std::lock_guard lock(mutex_);
  ++laps_[slot];
  free_slots_.push_back(slot);
  freed_.notify_one();
}

/// Of a call that was not answered: what comes late would be taken for the answer to another.
void ChannelClient::lose_slot() {
  const std::lock_guard lock(mutex_);
  if (++lost_slots_ < ring_.depth) return;
  hung_up_.store(true, std::memory_order_release);
  freed_.notify_all();
}

/// Whether there is an answer.
bool ChannelClient::await_answer(const serve::RingPlace& place) {
  const uint64_t began = simt::now_ns();
  const uint64_t spin_ns = spin_ns_.load(std::memory_order_relaxed);
  for (uint64_t took = 0; took < spin_ns; took = simt::now_ns() - began) {
    if (serve::is_answered(ring_, place)) return true;
    std::this_thread::yield();
  }
  const std::atomic_ref<uint32_t> sleepers(ring_.head->sleepers);
  uint32_t& word = ring_.answers[place.slot].lap;
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  bool answered = false;
  for (;;) {
    const uint32_t before = simt::load_system_relaxed(word);
    answered = serve::is_answered(ring_, place);
    const uint64_t waited = simt::now_ns() - began;
    if (answered || has_ended() || waited > answer_timeout_ns_) break;
    simt::sleep_while(word, before, std::clamp(waited / kNapsOfWait, kNapNsMin, kNapNsMax));
    look_for_server();
  }
  sleepers.fetch_sub(1, std::memory_order_relaxed);
  // The server answers before it goes.
  if (!answered) answered = serve::is_answered(ring_, place);
  const uint64_t took = simt::now_ns() - began;
  spin_ns_.store(spin_after(ring_.head->wakes != 0, took), std::memory_order_relaxed);
  return answered;
}

void ChannelClient::add_window(const WindowOfClient& window) {
  const std::lock_guard lock(mutex_);
  windows_.push_back(window);
  has_windows_.store(true, std::memory_order_relaxed);
}

void ChannelClient::remove_window(uint32_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(windows_, [&](const WindowOfClient& one) { return one.number == number; });
  has_windows_.store(!windows_.empty(), std::memory_order_relaxed);
}

/// The window that has all of it; none.
std::optional<WindowOfClient> ChannelClient::window_of(const void* memory, uint64_t bytes) {
  if (!has_windows_.load(std::memory_order_relaxed)) return std::nullopt;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  for (const WindowOfClient& window : windows_) {
    const auto begin = reinterpret_cast<uintptr_t>(window.memory);
    if (address < begin || address - begin > window.bytes) continue;
    if (bytes <= window.bytes - (address - begin)) return window;
  }
  return std::nullopt;
}

bool ChannelClient::reaches(const void* memory, uint64_t bytes) {
  return window_of(memory, bytes).has_value();
}

/// Names the memory of a call, where it lies in a window.
bool ChannelClient::place_in_window(const CallRequest& request, request::Request& record) {
  const void* const memory = request.input != nullptr ? request.input : request.buffer;
  const uint64_t bytes = std::min(request.bytes, part_bytes_);
  const auto window = window_of(memory, bytes);
  if (!window) return false;
  record.bytes = bytes;
  record.buffer = window->number;
  record.buffer_offset =
      reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(window->memory);
  return true;
}

/// Has the server begin a call. False: no slot is free, and it may not wait for one.
bool ChannelClient::begin(const CallRequest& request, bool may_wait, UnderWay& call) {
  call.refusal = check_texts(request);
  if (call.refusal != 0) return true;
  request::Request& record = call.record;
  record = record_of(request);
  const bool in_window = is_data(request) && place_in_window(request, record);
  if (request.is_direct && !in_window) {
    call.refusal = -EFAULT;
    return true;
  }
  if (!take_slot(may_wait, call.slot)) {
    call.refusal = is_gone() ? -ESTALE : -ETIMEDOUT;
    return may_wait || is_gone();
  }
  char* const texts = ring_.texts + uint64_t{call.slot} * serve::kTextBytes;
  uint32_t at = 0;
  record.path = put(request.path, request::path_rule(), texts, at);
  record.other = put(request.other, request::path_rule(), texts, at);
  record.name = put(request.name, request::name_rule(), texts, at);
  if (!in_window) {
    record.buffer_offset = call.slot * part_bytes_;
    stage_data(request, record, ring_.buffer + record.buffer_offset, part_bytes_);
  }
  serve::publish(ring_, {call.slot, laps_[call.slot]}, record);
  // A server that goes to sleep says so before it looks for the last time.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (simt::load_system_relaxed(ring_.head->server_sleeps) != 0) ring_bell(ends_.bell);
  return true;
}

CallAnswer ChannelClient::end(const CallRequest& request, const UnderWay& call) {
  if (call.refusal != 0) return {call.refusal, 0};
  const serve::RingPlace place{call.slot, laps_[call.slot]};
  if (!await_answer(place)) {
    if (has_ended()) return {-ESTALE, 0};
    // An answer may still come: the slot, with all that is in it, is the server's.
    lose_slot();
    return {-ETIMEDOUT, 0};
  }
  const int64_t result = serve::answer_of(ring_, place);
  if (call.record.buffer == 0) {
    take_results(request, call.record, result, ring_.buffer + call.record.buffer_offset);
  }
  release_slot(call.slot);
  return {result, call.record.bytes};
}

CallAnswer ChannelClient::call(const CallRequest& request) {
  UnderWay call{};
  begin(request, true, call);
  return end(request, call);
}

void ChannelClient::call_all(std::span<const CallRequest> requests, std::span<CallAnswer> answers) {
  std::vector<UnderWay> calls(requests.size());
  size_t ended = 0;
  const auto end_next = [&] {
    answers[ended] = end(requests[ended], calls[ended]);
    ++ended;
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    // Who has slots does not wait for others, who may wait for them.
    while (!begin(requests[i], ended == i, calls[i])) end_next();
  }
  while (ended < requests.size()) end_next();
}

}  // namespace gofs::host
