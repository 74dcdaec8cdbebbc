// SPDX-License-Identifier: Apache-2.0
//
// Those who give commands up for lost, while another warp is between two words of deliver().
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "nvme/array.h"
#include "testing/ssd_rig.hpp"

namespace gofs::nvme {
namespace {

using gofs::testing::all_lanes;
using gofs::testing::run_alone;
using gofs::testing::SsdRig;
using gofs::testing::SsdRigOptions;

SsdRigOptions one_queue() {
  SsdRigOptions options;
  options.device.io_queues = 1;
  options.device.queue_depth = 16;
  return options;
}
void start_one(SsdRig& rig, Mailbox& mailbox) {
  uint8_t* const buffer = rig.arena().bytes(512);
  run_alone(1, [&](const simt::Warp& warp) {
    EXPECT_EQ(start(warp, rig.device(), rig.queue(), 1u, rig.read(0, 1, buffer), mailbox), 0);
  });
}

TEST(HalfDelivered, what_another_warp_is_delivering_is_not_lost) {
  SsdRig failed(one_queue());
  SsdRig working(one_queue());
  failed.bring_up_ready();
  working.bring_up_ready();
  Mailbox mailbox{};
  start_one(failed, mailbox);
  start_one(working, mailbox);
  ASSERT_EQ(mailbox.remaining, 2u);
  simt::store_release(failed.device().failure, uint32_t{kFailed});
  Slot& slot = failed.queue().slots[0];
  simt::store_relaxed(slot.done, uint64_t{slot.lap + 1} << 32);
  simt::add_relaxed(mailbox.remaining, ~0u);
  Array array{};
  array.count = 2;
  array.devices[0] = &failed.device();
  array.devices[1] = &working.device();
  bool lost = true;
  run_alone(1, [&](const simt::Warp& warp) { lost = is_lost(warp, array, 0, mailbox); });
  EXPECT_FALSE(lost) << "one is under way on an SSD that works";
}

TEST(HalfDelivered, settled_is_counted) {
  SsdRig rig(one_queue());
  rig.bring_up_ready();
  Mailbox mailbox{};
  start_one(rig, mailbox);
  Slot& slot = rig.queue().slots[0];
  const uint32_t lap = slot.lap;
  while (!simt::try_lock(rig.queue().head_lock)) {
  }
  simt::store_relaxed(slot.done, uint64_t{lap + 1} << 32);
  std::thread deliverer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    simt::AtomicRef<uint32_t>(mailbox.remaining).fetch_sub(1, simt::memory_order_release);
    simt::store_release(slot.lap, lap + 1);
    simt::unlock(rig.queue().head_lock);
  });
  uint32_t left = 0;
  run_alone(1, [&](const simt::Warp& warp) {
    recover_mailbox(warp, rig.device(), rig.queue(), mailbox);
    left = simt::load_acquire(mailbox.remaining);
  });
  deliverer.join();
  EXPECT_EQ(left, 0u) << "afterwards none remains";
}

}  // namespace
}  // namespace gofs::nvme
