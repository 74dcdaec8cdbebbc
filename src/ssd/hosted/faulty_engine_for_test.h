// SPDX-License-Identifier: Apache-2.0
//
// An engine that has another one do the work and gets in its way as a test says: errors, requests
// that move less than they were to, completions that are late or never come. For tests only.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "simt/clock.h"
#include "ssd/hosted/hosted_worker.h"

namespace gofs::ssd {

struct IoFault {
  std::optional<IoRequest::Kind> kind{};  // of which requests; none: all
  uint64_t first = 0;                     // that touch one of these bytes
  uint64_t last = ~uint64_t{0};
  uint32_t skip = 0;  // so many are let through first
  uint32_t count = ~0u;
  int error = 0;           // a negative errno instead of the work
  uint64_t bytes_max = 0;  // not 0: it moves so much at most
  uint64_t late_ns = 0;    // its completion comes so much later
  bool loses = false;      // its completion never comes
};

/// Faults that the threads of one controller share with a test.
class IoFaults {
 public:
  void add(const IoFault& fault) {
    const std::lock_guard lock(mutex_);
    faults_.push_back({fault, 0});
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    faults_.clear();
  }
  uint32_t lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }
  uint32_t seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  /// Requests that the first fault was about, hit or let through.
  uint32_t matches() const {
    const std::lock_guard lock(mutex_);
    return faults_.empty() ? 0 : faults_.front().second;
  }
  std::optional<IoFault> find(const IoRequest& request) {
    const std::lock_guard lock(mutex_);
    ++seen_;
    for (auto& [fault, matches] : faults_) {
      if (fault.kind && *fault.kind != request.kind) continue;
      const bool placed = request.kind != IoRequest::Kind::kSync;
      if (placed &&
          (request.offset > fault.last || request.offset + request.bytes <= fault.first)) {
        continue;
      }
      const uint32_t match = matches++;
      if (match < fault.skip || match - fault.skip >= fault.count) continue;
      if (fault.loses) ++lost_;
      return fault;
    }
    return std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<IoFault, uint32_t>> faults_;
  uint32_t lost_ = 0;
  uint32_t seen_ = 0;
};

class FaultyEngine final : public IoEngine {
 public:
  FaultyEngine(IoFaults& faults, std::unique_ptr<IoEngine> engine)
      : faults_(faults), engine_(std::move(engine)) {}

  const char* name() const override { return engine_->name(); }

  bool start(const IoRequest& request) override {
    const std::optional<IoFault> fault = faults_.find(request);
    if (!fault) return engine_->start(request);
    if (fault->error != 0) {
      ready_.push_back({{request.tag, fault->error}, simt::now_ns() + fault->late_ns});
      return true;
    }
    IoRequest less = request;
    if (fault->bytes_max != 0) shorten(less, fault->bytes_max);
    // Tags are told apart by what is to happen when they complete.
    if (!engine_->start(less)) return false;
    if (fault->late_ns != 0 || fault->loses) late_[request.tag] = *fault;
    return true;
  }

  void submit() override { engine_->submit(); }

  uint32_t reap(std::span<IoCompletion> completions) override {
    uint32_t count = 0;
    while (count < completions.size() && engine_->reap(completions.subspan(count, 1)) == 1) {
      const IoCompletion& completion = completions[count];
      const auto fault = late_.find(completion.tag);
      if (fault == late_.end()) {
        ++count;
        continue;
      }
      if (!fault->second.loses) {
        ready_.push_back({completion, simt::now_ns() + fault->second.late_ns});
      }
      late_.erase(fault);
    }
    const uint64_t now_ns = simt::now_ns();
    for (auto entry = ready_.begin(); entry != ready_.end() && count < completions.size();) {
      if (entry->due_ns > now_ns) {
        ++entry;
      } else {
        completions[count++] = entry->completion;
        entry = ready_.erase(entry);
      }
    }
    return count;
  }

  void wait(uint64_t timeout_ns) override {
    constexpr uint64_t kLooksAgainNs = 1'000'000;
    engine_->wait(ready_.empty() ? timeout_ns : std::min(timeout_ns, kLooksAgainNs));
  }
  void wake() override { engine_->wake(); }
  void close() override { engine_->close(); }
  void abandon() override { engine_->abandon(); }

 private:
  struct Ready {
    IoCompletion completion;
    uint64_t due_ns;
  };

  void shorten(IoRequest& request, uint64_t bytes) {
    std::vector<iovec>& parts = short_parts_[request.tag];
    parts.assign(request.parts.begin(), request.parts.end());
    request.bytes = std::min(request.bytes, bytes);
    uint64_t left = request.bytes;
    size_t kept = 0;
    for (; kept < parts.size() && left != 0; ++kept) {
      parts[kept].iov_len = std::min<uint64_t>(parts[kept].iov_len, left);
      left -= parts[kept].iov_len;
    }
    parts.resize(kept);
    request.parts = parts;
  }

  IoFaults& faults_;
  std::unique_ptr<IoEngine> engine_;
  std::unordered_map<uint64_t, IoFault> late_;
  std::unordered_map<uint64_t, std::vector<iovec>> short_parts_;
  std::deque<Ready> ready_;
};

}  // namespace gofs::ssd
