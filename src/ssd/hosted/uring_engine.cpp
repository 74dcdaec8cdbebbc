// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <liburing.h>
#include <linux/falloc.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "ssd/descriptor.h"
#include "ssd/hosted/io_engine.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

constexpr uint32_t kEntries = 256;
constexpr uint32_t kCompletions = 4096;               // more wait in the kernel
constexpr uint64_t kWakeTag = IoEngine::kTagMax + 1;  // ~0 is liburing's own

class UringEngine final : public IoEngine {
 public:
  /// The file is not registered: the kernel would let go of it some while after the ring is closed
  /// or the process has been killed, and whoever comes next would find it in use.
  explicit UringEngine(const IoTarget& target) : file_(target.descriptor) {
    open_ring();
    try {
      register_buffers(target.buffers);
      wakes_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
      if (!wakes_.is_open()) fail_with(errno, "eventfd");
      // For what only ioctl() does, though rings can since Linux 6.12: it is rare.
      if (target.is_device) waiter_ = make_waiting_threads(target, 1, [this] { wake(); });
      listen();
    } catch (...) {
      io_uring_queue_exit(&ring_);
      throw;
    }
  }
  ~UringEngine() override { io_uring_queue_exit(&ring_); }
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;

  const char* name() const override { return "io_uring"; }

  bool start(const IoRequest& request) override {
    if (request.kind == IoRequest::Kind::kDiscard && waiter_ != nullptr) {
      return waiter_->start(request);
    }
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) return false;
    prepare(*entry, request);
    io_uring_sqe_set_data64(entry, request.tag);
    return true;
  }

  void submit() override {
    if (io_uring_sq_ready(&ring_) != 0) io_uring_submit(&ring_);
  }

  uint32_t reap(std::span<IoCompletion> completions) override {
    uint32_t count = 0;
    io_uring_cqe* entry = nullptr;
    while (count < completions.size() && io_uring_peek_cqe(&ring_, &entry) == 0) {
      const IoCompletion completion{io_uring_cqe_get_data64(entry), entry->res};
      io_uring_cqe_seen(&ring_, entry);
      if (completion.tag == kWakeTag) {
        listens_ = false;
        listen();
      } else {
        completions[count++] = completion;
      }
    }
    if (waiter_ != nullptr) count += waiter_->reap(completions.subspan(count));
    return count;
  }

  void wait(uint64_t timeout_ns) override {
    constexpr uint64_t kSecondNs = 1'000'000'000;
    __kernel_timespec timeout{static_cast<int64_t>(timeout_ns / kSecondNs),
                              static_cast<long long>(timeout_ns % kSecondNs)};
    io_uring_cqe* entry = nullptr;
    listen();
    io_uring_submit_and_wait_timeout(&ring_, &entry, 1, &timeout, nullptr);
  }

  void close() override {
    if (!buffers_.empty()) io_uring_unregister_buffers(&ring_);
  }

  void abandon() override {
    if (waiter_ != nullptr) waiter_->abandon();
  }

  void wake() override {
    const uint64_t one = 1;
    (void)!::write(wakes_.get(), &one, sizeof(one));
  }

 private:
  int open_ring_as(unsigned flags) {
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CQSIZE;
    params.cq_entries = kCompletions;
    return io_uring_queue_init_params(kEntries, &ring_, &params);
  }

  void open_ring() {
    // Completions are worked off in this thread when it asks for them, where the kernel can, and a
    // flag in memory says that there are some.
    constexpr unsigned kWanted =
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    int error = open_ring_as(kWanted);
    if (error == -EINVAL) error = open_ring_as(0);
    if (error != 0) fail_with(-error, "io_uring");
  }

  /// Where that is refused, for want of memory that may be locked, the kernel finds the pages of
  /// each command anew.
  void register_buffers(std::span<uint8_t> buffers) {
    if (buffers.empty()) return;
    const iovec all{buffers.data(), buffers.size()};
    if (io_uring_register_buffers(&ring_, &all, 1) == 0) buffers_ = buffers;
  }

  bool is_registered(const iovec& part) const {
    const auto* const begin = static_cast<const uint8_t*>(part.iov_base);
    return !buffers_.empty() && begin >= buffers_.data() &&
           begin + part.iov_len <= buffers_.data() + buffers_.size();
  }

  void prepare(io_uring_sqe& entry, const IoRequest& request) {
    const auto count = static_cast<unsigned>(request.parts.size());
    const bool fixed = count == 1 && is_registered(request.parts[0]);
    switch (request.kind) {
      case IoRequest::Kind::kRead:
        if (fixed) {
          io_uring_prep_read_fixed(&entry, file_, request.parts[0].iov_base,
                                   static_cast<unsigned>(request.parts[0].iov_len), request.offset,
                                   0);
        } else {
          io_uring_prep_readv(&entry, file_, request.parts.data(), count, request.offset);
        }
        break;
      case IoRequest::Kind::kWrite:
        if (fixed) {
          io_uring_prep_write_fixed(&entry, file_, request.parts[0].iov_base,
                                    static_cast<unsigned>(request.parts[0].iov_len), request.offset,
                                    0);
        } else {
          io_uring_prep_writev(&entry, file_, request.parts.data(), count, request.offset);
        }
        if (request.durable) entry.rw_flags = RWF_DSYNC;
        break;
      case IoRequest::Kind::kSync:
        io_uring_prep_fsync(&entry, file_, IORING_FSYNC_DATASYNC);
        break;
      case IoRequest::Kind::kZero:
      case IoRequest::Kind::kDiscard:  // of a file
        io_uring_prep_fallocate(&entry, file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(request.offset),
                                static_cast<off_t>(request.bytes));
        break;
    }
  }

  /// Has the ring say when wake() was called.
  void listen() {
    if (listens_) return;
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) {
      submit();
      entry = io_uring_get_sqe(&ring_);
    }
    if (entry == nullptr) return;  // the next wait() tries again
    io_uring_prep_read(entry, wakes_.get(), &woken_, sizeof(woken_), 0);
    io_uring_sqe_set_data64(entry, kWakeTag);
    listens_ = true;
  }

  const int file_;
  io_uring ring_{};
  Descriptor wakes_;
  uint64_t woken_ = 0;
  bool listens_ = false;
  std::span<uint8_t> buffers_;
  std::unique_ptr<IoEngine> waiter_;  // of a device
};

}  // namespace

std::unique_ptr<IoEngine> make_uring_engine(const IoTarget& target) {
  return std::make_unique<UringEngine>(target);
}

int uring_refusal() {
  io_uring ring{};
  const int error = io_uring_queue_init(2, &ring, 0);
  if (error == 0) io_uring_queue_exit(&ring);
  return -error;
}

}  // namespace gofs::ssd
