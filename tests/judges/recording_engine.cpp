// SPDX-License-Identifier: Apache-2.0
#include "recording_engine.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace gofs::judges {

namespace {

using ssd::IoRequest;

class RecordingEngine final : public ssd::IoEngine {
 public:
  RecordingEngine(RequestLog& log, uint32_t disk, std::unique_ptr<IoEngine> engine)
      : log_(log), disk_(disk), engine_(std::move(engine)) {}

  const char* name() const override { return engine_->name(); }
  bool start(const IoRequest& request) override {
    // Before it can have done anything. What finds no room did nothing, and comes again.
    const size_t number = log_.begin(disk_, request);
    if (!engine_->start(request)) return false;
    under_way_[request.tag] = number;
    return true;
  }
  void submit() override { engine_->submit(); }
  uint32_t reap(std::span<ssd::IoCompletion> completions) override {
    const uint32_t count = engine_->reap(completions);
    for (const ssd::IoCompletion& one : completions.first(count)) {
      log_.end(under_way_.at(one.tag), one.result);
    }
    return count;
  }
  void wait(uint64_t timeout_ns) override { engine_->wait(timeout_ns); }
  void wake() override { engine_->wake(); }
  void close() override { engine_->close(); }
  void abandon() override { engine_->abandon(); }

 private:
  RequestLog& log_;
  const uint32_t disk_;
  const std::unique_ptr<IoEngine> engine_;
  std::unordered_map<uint64_t, size_t> under_way_;  // by tag
};

ssd::LoggedKind kind_of(IoRequest::Kind kind) {
  switch (kind) {
    case IoRequest::Kind::kSync:
      return ssd::LoggedKind::kFlush;
    case IoRequest::Kind::kZero:
    case IoRequest::Kind::kDiscard:
      return ssd::LoggedKind::kZeroes;
    default:
      return ssd::LoggedKind::kWrite;
  }
}

}  // namespace

size_t RequestLog::begin(uint32_t disk, const IoRequest& request) {
  if (request.kind == IoRequest::Kind::kRead) return kNotLogged;
  const std::lock_guard lock(mutex_);
  ssd::LoggedCommand command{};
  command.kind = kind_of(request.kind);
  command.disk = disk;
  command.durable = request.durable ? 1 : 0;
  command.data = trace_.data.size();
  command.began = ++trace_.events;
  if (command.kind != ssd::LoggedKind::kFlush) {
    command.offset = request.offset;
    command.bytes = request.bytes;
  }
  if (command.kind == ssd::LoggedKind::kWrite) {
    for (const iovec& part : request.parts) {
      const auto* const first = static_cast<const uint8_t*>(part.iov_base);
      trace_.data.insert(trace_.data.end(), first, first + part.iov_len);
    }
    // Fewer parts may be asked for at once than the command has.
    command.bytes = trace_.data.size() - command.data;
  }
  trace_.commands.push_back(command);
  return trace_.commands.size() - 1;
}

void RequestLog::end(size_t number, int64_t result) {
  if (number == kNotLogged || result < 0) return;
  const std::lock_guard lock(mutex_);
  ssd::LoggedCommand& command = trace_.commands[number];
  // What it did not move is asked for again.
  if (command.kind == ssd::LoggedKind::kWrite) {
    command.bytes = std::min(command.bytes, static_cast<uint64_t>(result));
  }
  command.ended = ++trace_.events;
}

uint32_t RequestLog::moment() {
  const std::lock_guard lock(mutex_);
  return trace_.events;
}

ssd::WriteTrace RequestLog::trace() {
  const std::lock_guard lock(mutex_);
  return trace_;
}

std::unique_ptr<ssd::IoEngine> make_recording_engine(RequestLog& log, uint32_t disk,
                                                     std::unique_ptr<ssd::IoEngine> engine) {
  return std::make_unique<RecordingEngine>(log, disk, std::move(engine));
}

}  // namespace gofs::judges
