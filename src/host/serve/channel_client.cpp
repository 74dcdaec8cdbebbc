// SPDX-License-Identifier: Apache-2.0
#include "host/serve/channel_client.h"

#include <poll.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "host/serve/bell.h"
#include "simt/clock.h"
#include "simt/host_sleep.h"
#include "ssd/system_failure.h"

namespace gofs::host {

namespace {

// A call from memory takes a few microseconds, one from an SSD some tens; to sleep and be woken
// takes as long. So a client looks for twice as long as the last call took, if that was not long.
constexpr uint64_t kSpinNsMin = 20'000;
constexpr uint64_t kSpinNsMax = 200'000;
// Stores of a GPU wake nobody.
constexpr uint64_t kNapNsMin = 50'000;
constexpr uint64_t kNapNsMax = 1'000'000;

/// A view of the ring, if it is one.
serve::Ring view_of(const SharedMemory& memory) {
  if (memory.bytes() < sizeof(serve::RingHead)) ssd::fail_with(EPROTO, "a channel too small");
  serve::RingHead head{};
  std::memcpy(&head, memory.data(), sizeof(head));
  if (head.magic != serve::kRingMagic || head.version != serve::kRingVersion) {
    ssd::fail_with(EPROTO, "a channel of another version of GoFS");
  }
  if (head.depth < serve::kRingDepthMin || head.depth > serve::kRingDepthMax ||
      !std::has_single_bit(head.depth) || head.bytes != memory.bytes() ||
      serve::layout_of_ring(head.depth, head.buffer_bytes).bytes != head.bytes) {
    ssd::fail_with(EPROTO, "a channel that is damaged");
  }
  return serve::view_of_ring(memory.data(), head);
}

/// Puts a text behind those that are there.
request::Text put(const std::string* text, const request::TextRule& rule, char* room,
                  uint32_t& at) {
  if (text == nullptr) return {};
  const request::Text where{at, copy_text(*text, rule, room + at)};
  at += where.bytes;
  return where;
}

}  // namespace

ChannelClient::ChannelClient(ChannelEnds ends)
    : ends_(std::move(ends)),
      ring_(view_of(ends_.memory)),
      part_bytes_(ring_.buffer_bytes / ring_.depth),
      laps_(ring_.depth, 0) {
  for (uint32_t slot = ring_.depth; slot-- > 0;) free_slots_.push_back(slot);
}

bool ChannelClient::is_gone() const {
  return hung_up_.load(std::memory_order_relaxed) ||
         simt::load_system_relaxed(ring_.head->gone) != 0;
}

void ChannelClient::look_for_server() {
  if (!ends_.connection.is_open()) return;
  pollfd look{ends_.connection.get(), POLLRDHUP, 0};
  if (::poll(&look, 1, 0) > 0) hung_up_.store(true, std::memory_order_relaxed);
}

bool ChannelClient::take_slot(uint32_t& slot) {
  std::unique_lock lock(mutex_);
  // Those that have the slots notice when the server goes.
  while (free_slots_.empty() && !is_gone()) freed_.wait_for(lock, std::chrono::milliseconds(100));
  if (is_gone()) return false;
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
  uint64_t nap_ns = kNapNsMin;
  bool answered = false;
  for (;;) {
    const uint32_t before = simt::load_system_relaxed(word);
    answered = serve::is_answered(ring_, place);
    if (answered || is_gone() || simt::now_ns() - began > kAnswerTimeoutNs) break;
    simt::sleep_while(word, before, nap_ns);
    look_for_server();
    nap_ns = std::min(2 * nap_ns, kNapNsMax);
  }
  sleepers.fetch_sub(1, std::memory_order_relaxed);
  const uint64_t took = simt::now_ns() - began;
  spin_ns_.store(took < kSpinNsMax / 2 ? 2 * took : kSpinNsMin, std::memory_order_relaxed);
  return answered;
}

/// The answer, if there is one.
std::optional<int64_t> ChannelClient::exchange(uint32_t slot, const request::Request& record) {
  const serve::RingPlace place{slot, laps_[slot]};
  serve::publish(ring_, place, record);
  // A server that goes to sleep says so before it looks for the last time.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (simt::load_system_relaxed(ring_.head->server_sleeps) != 0) ring_bell(ends_.bell);
  if (!await_answer(place)) return {};
  return serve::answer_of(ring_, place);
}

CallAnswer ChannelClient::call(const CallRequest& request) {
  if (const int error = check_texts(request); error != 0) return {error, 0};
  uint32_t slot = 0;
  if (!take_slot(slot)) return {-ESTALE, 0};
  request::Request record = record_of(request);
  char* const texts = ring_.texts + uint64_t{slot} * serve::kTextBytes;
  uint32_t at = 0;
  record.path = put(request.path, request::path_rule(), texts, at);
  record.other = put(request.other, request::path_rule(), texts, at);
  record.name = put(request.name, request::name_rule(), texts, at);
  record.buffer_offset = slot * part_bytes_;
  uint8_t* const part = ring_.buffer + record.buffer_offset;
  stage_data(request, record, part, part_bytes_);
  const std::optional<int64_t> result = exchange(slot, record);
  // An answer may still come: the slot, with all that is in it, is the server's.
  if (!result) return {is_gone() ? -ESTALE : -ETIMEDOUT, 0};
  take_results(request, record, *result, part);
  release_slot(slot);
  return {*result, record.bytes};
}

}  // namespace gofs::host
