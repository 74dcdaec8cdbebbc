// SPDX-License-Identifier: Apache-2.0
//
// The token of an operation: what changes a volume takes one, which says that its caller may, and
// carries what all of the operation has in common. Whoever has one holds the checkpoint lock
// (checkpoint_lock.h), shared or exclusively, so no checkpoint comes between two changes that are
// made with it.
//
// begin_operation() (begin_operation.h) makes those of everyday use, with room for as many pages
// as they are about to change; debug builds count these (simt::kDebugChecks). The three other
// makers are below.
//
// A warp has one at a time, each lane its own object. It is passed by reference and never copied:
// on a GPU it lies in local memory.
#pragma once

#include <new>
#include <type_traits>

#include "f2fs/checkpoint_lock.h"
#include "f2fs/credentials.h"
#include "f2fs/page_pool.h"
#include "f2fs/volume.h"

namespace gofs::f2fs {

using gofs::TimeStamp;

struct Writer;

/// Pages that an operation may make newer than the disk.
struct PageBudget {
  uint32_t own;         // for which it takes room
  uint32_t shared = 0;  // and those for which its caller has taken room, for several operations

  // NOLINTNEXTLINE(google-explicit-constructor): most have none that they share
  GOFS_HD constexpr PageBudget(uint32_t pages, uint32_t others = 0) : own(pages), shared(others) {}
};

namespace detail {

struct OperationFrame;

/// Pages that an operation, or one lane of it, has made newer than the disk. Counted in debug
/// builds alone.
struct PageCount {
  uint32_t pages = 0;
  uint32_t most = 0;
  uint32_t appended = 0;  // portions of the fsync log (fsync_log.h) that were on the disk when it
                          // began

  GOFS_HD void begin(const PageBudget& budget, uint32_t written) {
    most = budget.own + budget.shared;
    appended = written;
  }
  GOFS_HD void add(bool one) { pages += one ? 1 : 0; }
  /// Ends the count: no more than there is room for, unless an fsync has written pages meanwhile,
  /// which may have become dirty twice. `issued`: portions of the fsync log. Collective, with those
  /// of all lanes.
  GOFS_HD void check(simt::AnyWarp auto warp, uint32_t issued) const {
    const uint32_t all = simt::reduce_add(warp, pages);
    GOFS_ASSERT(all <= most || warp.shfl(issued, 0) != warp.shfl(appended, 0));
  }
};
struct NoPageCount {
  GOFS_HD void begin(const PageBudget&, uint32_t) {}
  GOFS_HD void add(bool) {}
  GOFS_HD void check(simt::AnyWarp auto, uint32_t) const {}
};

}  // namespace detail

class Operation {
 public:
  Volume& volume;
  Writer& writer;
  const TimeStamp now;  // when it began; all that it changes has this time

  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// That of the warp which holds the checkpoint lock exclusively, and of those that help it. There
  /// are no others meanwhile, so it needs no room; it has neither time nor caller nor pool.
  GOFS_HD static Operation under_checkpoint_lock(Volume& volume, Writer& writer);

  /// That of the one warp which makes a volume ready to be written to, before all others: there is
  /// no thread yet that the checkpoint lock would keep out.
  GOFS_HD static Operation before_others(Volume& volume, Writer& writer) {
    return Operation(volume, writer, nullptr, nullptr, TimeStamp{}, OpHold{}, 0);
  }
  /// That of an append which took the checkpoint lock by try_lock_op() (vfs/append.h), and neither
  /// waits nor reserves: the pages that it changes are newer than the disk already, but for two
  /// that a fsync may have written since it looked.
  GOFS_HD static Operation stepped_in(Volume& volume, Writer& writer, const TimeStamp& now) {
    return Operation(volume, writer, nullptr, nullptr, now, OpHold{}, 0);
  }
  /// The same as of another time: recovery gives what it changes the times of what it recovers.
  GOFS_HD Operation as_of(const TimeStamp& time) const {
    return Operation(volume, writer, pool_, caller_, time, hold_, pages_);
  }

  /// Spare blocks. Only where begin_operation() was given a pool.
  GOFS_HD const PagePool& pool() const {
    GOFS_ASSERT(pool_ != nullptr);
    return *pool_;
  }
  /// Who asks for the change. Only where begin_operation() was given it.
  GOFS_HD const Credentials& caller() const {
    GOFS_ASSERT(caller_ != nullptr);
    return *caller_;
  }

  /// Counts a page, if it was `made` newer than the disk and was not before. The lane that did so.
  GOFS_HD void count_dirtied(bool made) { dirtied_.add(made); }

 private:
  friend struct detail::OperationFrame;
  GOFS_HD Operation(Volume& its_volume, Writer& its_writer, const PagePool* pool,
                    const Credentials* caller, const TimeStamp& time, const OpHold& hold,
                    uint32_t pages)
      : volume(its_volume),
        writer(its_writer),
        now(time),
        pool_(pool),
        caller_(caller),
        hold_(hold),
        pages_(pages) {}

  const PagePool* const pool_;
  const Credentials* const caller_;
  const OpHold hold_;
  const uint32_t pages_;  // for which it has room of its own
  [[no_unique_address]] std::conditional_t<simt::kDebugChecks, detail::PageCount,
                                           detail::NoPageCount>
      dirtied_{};
};
static_assert(simt::kDebugChecks || sizeof(Operation) <= 56);

/// Room for the operation that a warp may have under way: begin_operation() makes one in it,
/// end_operation() ends it.
class OperationSlot {
 public:
  GOFS_HD OperationSlot() : none_(0) {}
  OperationSlot(const OperationSlot&) = delete;
  OperationSlot& operator=(const OperationSlot&) = delete;

  /// The operation, which is under way.
  GOFS_HD Operation& operator*() {
    GOFS_ASSERT(begun_);
    return operation_;
  }

 private:
  friend struct detail::OperationFrame;
  union {
    uint8_t none_;
    Operation operation_;
  };
  bool begun_ = false;
};

/// mark_dirty() and release_frame() of a page that the operation has changed.
GOFS_HD inline void mark_dirty(Operation& op, uint32_t frame,
                               PageChange change = PageChange::kContents) {
  op.count_dirtied(mark_dirty(op.volume.cache, frame, change));
}
GOFS_HD inline void release_frame(Operation& op, uint32_t frame, PageChange change) {
  op.count_dirtied(release_frame(op.volume.cache, frame, change));
}
GOFS_HD inline void release_frame(Operation& op, uint32_t frame, bool changed) {
  release_frame(op, frame, as_change(changed));
}

}  // namespace gofs::f2fs
