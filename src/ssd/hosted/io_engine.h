// SPDX-License-Identifier: Apache-2.0
//
// How a thread of the host has the kernel move the data of a file or block device while it goes on:
// by io_uring, or where that is refused by a pool of threads that wait for it; of a file that lies
// in memory, where there is nothing to wait for, the thread copies what is small itself. What is
// started is told apart by tags. Host only.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace gofs::ssd {

struct IoRequest {
  enum class Kind : uint8_t {
    kRead,
    kWrite,
    kSync,     // all writes that have completed before become durable (fdatasync)
    kZero,     // `bytes` at `offset` read zeros then, and take no room where that can be
    kDiscard,  // what they hold is of no use, and they need take no room
  };
  Kind kind = Kind::kRead;
  bool durable = false;  // kWrite: it is, when it completes
  uint64_t tag = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::span<const iovec> parts{};  // of kRead and kWrite; they stay until it completes
};

struct IoCompletion {
  uint64_t tag;
  int64_t result;  // bytes that were moved, perhaps fewer than wanted; or a negative errno
};

/// Used by one thread, but for wake().
class IoEngine {
 public:
  static constexpr uint64_t kTagMax = ~uint64_t{0} - 2;

  /// After close(), or abandoned: nothing is under way any more, or it never goes.
  virtual ~IoEngine() = default;
  /// For people: "io_uring", "threads".
  virtual const char* name() const = 0;
  /// Starts a request, at the latest with the next submit(). False: there is no room before
  /// submit() and reap().
  virtual bool start(const IoRequest& request) = 0;
  virtual void submit() = 0;
  /// What has completed, as far as `completions` has room. How many.
  virtual uint32_t reap(std::span<IoCompletion> completions) = 0;
  /// Returns when something has completed, after wake(), or after `timeout_ns`, whatever comes
  /// first. Submits.
  virtual void wait(uint64_t timeout_ns) = 0;
  /// Ends a wait() that is under way, or the next one. From any thread.
  virtual void wake() = 0;
  /// Lets go of memory that the kernel was told of, by the thread that has used it; nothing is
  /// under way any more. Only wake() may come afterwards.
  virtual void close() {}
  /// Something is under way that does not end: nothing else is begun.
  virtual void abandon() {}
};

/// What an engine works on.
struct IoTarget {
  int descriptor = -1;
  bool is_device = false;  // a block device
  /// Memory that most data lies in, which the kernel is told of once; may be empty.
  std::span<uint8_t> buffers{};
};

/// Makes one in the thread that is to use it. Throws std::system_error.
std::unique_ptr<IoEngine> make_uring_engine(const IoTarget& target);
std::unique_ptr<IoEngine> make_thread_engine(const IoTarget& target);
/// Of so many threads, one of which calls `news` after each request that has completed.
std::unique_ptr<IoEngine> make_waiting_threads(const IoTarget& target, uint32_t threads,
                                               std::function<void()> news);
/// For a file that lies in memory: what is small it does at once by system calls, and has `others`
/// do the rest.
std::unique_ptr<IoEngine> make_memory_engine(const IoTarget& target,
                                             std::unique_ptr<IoEngine> others);

/// Whether io_uring can be had: 0, or the errno that the kernel answers (EPERM, ENOSYS).
int uring_refusal();

}  // namespace gofs::ssd
