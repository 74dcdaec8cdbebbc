// SPDX-License-Identifier: Apache-2.0
#include "ssd/register_relay.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>

#include "simt/atomic.h"

namespace gofs::ssd {

namespace {

using Clock = std::chrono::steady_clock;
using format::nvme::Registers;

/// How long it looks again at once after the last doorbell; how long it sleeps then, and once
/// nothing has come for a while.
constexpr std::chrono::microseconds kLooksFor{200};
constexpr std::chrono::microseconds kSleeps{50};
constexpr std::chrono::milliseconds kIdleFrom{20};
constexpr std::chrono::milliseconds kIdleSleeps{1};
/// How often the device is asked how it is while nothing changes.
constexpr std::chrono::milliseconds kStatusPeriod{10};

}  // namespace

uint64_t RegisterRelay::copy_bytes(uint32_t io_queues) {
  return format::nvme::kDoorbellOffset + uint64_t{2} * (io_queues + 1) * sizeof(uint32_t);
}

RegisterRelay::RegisterRelay(Transport& transport, uint8_t* copy, uint32_t io_queues)
    : transport_(transport), copy_(copy), passed_(size_t{2} * (io_queues + 1)) {
  using namespace format::nvme;
  const uint64_t capabilities = transport.read_wide(offsetof(Registers, cap));
  stride_shift_ = 2 + static_cast<uint32_t>(capabilities >> kCapStrideShift & 0xf);
  this->copy().cap = static_cast<uint32_t>(capabilities) == kRegisterGone
                         ? capabilities
                         : capabilities & ~(uint64_t{0xf} << kCapStrideShift);
  this->copy().vs = transport.read_register(offsetof(Registers, vs));
  configuration_ = transport.read_register(offsetof(Registers, cc));
  this->copy().cc = configuration_;
  relay_status();
  thread_ = std::thread([this] { run(); });
}

RegisterRelay::~RegisterRelay() {
  ends_ = true;
  thread_.join();
}

void RegisterRelay::run() {
  try {
    relay();
  } catch (const std::exception&) {
    // A device that cannot be reached is as good as gone; the driver's deadlines do the rest.
    simt::store_system_release(copy().csts, format::nvme::kRegisterGone);
  }
}

void RegisterRelay::relay() {
  Clock::time_point last_doorbell = Clock::now();
  Clock::time_point last_status = last_doorbell;
  while (!ends_) {
    const bool busy = relay_doorbells();
    relay_configuration();
    const Clock::time_point now = Clock::now();
    if (busy) last_doorbell = now;
    if (changes() || now - last_status >= kStatusPeriod) {
      relay_status();
      last_status = now;
    }
    if (now - last_doorbell > kIdleFrom) {
      std::this_thread::sleep_for(kIdleSleeps);
    } else if (now - last_doorbell > kLooksFor) {
      std::this_thread::sleep_for(kSleeps);
    } else {
      std::this_thread::yield();
    }
  }
  // What was stored before its end was asked for.
  relay_doorbells();
  relay_configuration();
}

/// True if there was one to carry.
bool RegisterRelay::relay_doorbells() {
  bool busy = false;
  for (uint32_t index = 0; index < passed_.size(); ++index) {
    // [N4] The entries that it makes known are in memory.
    const uint32_t value = simt::load_system_acquire(doorbells()[index]);
    if (value == passed_[index]) continue;
    passed_[index] = value;
    transport_.write_register(format::nvme::kDoorbellOffset + (index << stride_shift_), value);
    busy = true;
  }
  return busy;
}

/// CC, and before it is enabled where the admin queue lies.
void RegisterRelay::relay_configuration() {
  using namespace format::nvme;
  const uint32_t configuration = simt::load_system_acquire(copy().cc);
  if (configuration == configuration_) return;
  const bool enables = (configuration & ~configuration_ & kCcEnable) != 0;
  if (enables) {
    // The device has lost its queues. No doorbell is rung before it is ready.
    std::fill(passed_.begin(), passed_.end(), 0);
    for (uint32_t index = 0; index < passed_.size(); ++index) {
      simt::store_system_relaxed(doorbells()[index], 0u);
    }
    transport_.write_register(offsetof(Registers, aqa), simt::load_system_relaxed(copy().aqa));
    transport_.write_wide(offsetof(Registers, asq), simt::load_system_relaxed(copy().asq));
    transport_.write_wide(offsetof(Registers, acq), simt::load_system_relaxed(copy().acq));
  }
  transport_.write_register(offsetof(Registers, cc), configuration);
  configuration_ = configuration;
  relay_status();
}

void RegisterRelay::relay_status() {
  status_ = transport_.read_register(offsetof(Registers, csts));
  simt::store_system_release(copy().csts, status_);
}

bool RegisterRelay::changes() const {
  using namespace format::nvme;
  if (status_ == kRegisterGone) return false;
  const bool is_ready = (status_ & kCstsReady) != 0;
  const bool shuts_down = (configuration_ & kCcShutdownMask) != 0 &&
                          (status_ & kCstsShutdownMask) != kCstsShutdownComplete;
  return is_ready != ((configuration_ & kCcEnable) != 0) || shuts_down;
}

}  // namespace gofs::ssd
