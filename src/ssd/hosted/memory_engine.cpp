// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ssd/hosted/io_call.h"
#include "ssd/hosted/io_engine.h"

namespace gofs::ssd {

namespace {

/// What takes longer to hand to another thread than to copy.
constexpr uint64_t kSmallBytes = 16 << 10;
/// Small requests that are done before their completions are looked at: the first ones should not
/// wait for too many others.
constexpr size_t kDoneMax = 16;

class MemoryEngine final : public IoEngine {
 public:
  MemoryEngine(const IoTarget& target, std::unique_ptr<IoEngine> others)
      : target_(target),
        others_(std::move(others)),
        name_(std::string("system calls and ") + others_->name()) {
    done_.reserve(kDoneMax);
  }

  const char* name() const override { return name_.c_str(); }

  bool start(const IoRequest& request) override {
    using Kind = IoRequest::Kind;
    const bool moves = request.kind == Kind::kRead || request.kind == Kind::kWrite;
    if (!moves || request.bytes > kSmallBytes) return others_->start(request);
    if (done_.size() == kDoneMax) return false;
    done_.push_back({request.tag, call_kernel(target_, request)});
    return true;
  }

  void submit() override { others_->submit(); }

  uint32_t reap(std::span<IoCompletion> completions) override {
    const size_t count = std::min(done_.size(), completions.size());
    std::copy_n(done_.begin(), count, completions.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
    return static_cast<uint32_t>(count) + others_->reap(completions.subspan(count));
  }

  void wait(uint64_t timeout_ns) override {
    if (done_.empty()) others_->wait(timeout_ns);
  }
  void wake() override { others_->wake(); }
  void close() override { others_->close(); }
  void abandon() override { others_->abandon(); }

 private:
  const IoTarget target_;
  const std::unique_ptr<IoEngine> others_;
  const std::string name_;
  std::vector<IoCompletion> done_;
};

}  // namespace

std::unique_ptr<IoEngine> make_memory_engine(const IoTarget& target,
                                             std::unique_ptr<IoEngine> others) {
  return std::make_unique<MemoryEngine>(target, std::move(others));
}

}  // namespace gofs::ssd
