// SPDX-License-Identifier: Apache-2.0
//
// For tests only: an operation for as long as the object lives, of which a test says nothing but
// what it is for. Never within another one of the same warp.
#pragma once

#include <gtest/gtest.h>

#include "f2fs/begin_operation.h"

namespace gofs::f2fs {

template <typename Warp>
class TestOperation {
 public:
  /// With room for so many pages, if nothing else is given, or as many as the cache can have.
  static constexpr uint32_t kPages = 40;

  TestOperation(const Warp& warp, Volume& volume, Writer& writer, const PagePool* pool = nullptr,
                const TimeStamp& now = {}, uint32_t wanted = kPages)
      : warp_(warp) {
    const uint32_t pages = simt::min(wanted, detail::dirty_pages_max(volume));
    const OperationContext context{volume, writer, pool};
    const int error = begin_operation(
        warp_, context, pages, [&] { return now; }, slot_);
    EXPECT_EQ(error, 0);
  }
  ~TestOperation() { end_operation(warp_, slot_); }
  TestOperation(const TestOperation&) = delete;
  TestOperation& operator=(const TestOperation&) = delete;

  Operation& operator*() { return *slot_; }

 private:
  const Warp warp_;
  OperationSlot slot_;
};

}  // namespace gofs::f2fs
