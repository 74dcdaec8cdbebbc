// SPDX-License-Identifier: Apache-2.0
#include "basic.hpp"

#include <algorithm>
#include <cerrno>

#include "bench/actors.hpp"
#include "host_files.hpp"
#include "slots.h"

namespace gofs::bench {
namespace {

class StagedLane final : public Transfer::Lane {
 public:
  StagedLane(Device& device, Storage& storage, std::unique_ptr<Copies> copies)
      : storage_(storage),
        copies_(std::move(copies)),
        staging_(device.backend().shared_memory(), kBlockBytes) {}

  int read(uint8_t* slot, uint64_t offset) override {
    const int error = storage_.read(staging_.data(), kBlockBytes, offset);
    if (error != 0) return error;
    if (!has_block_stamp(staging_.data(), offset / kBlockBytes, 0)) return -EBADMSG;
    copies_->begin(slot, staging_.data(), kBlockBytes);
    return copies_->finish();
  }
  int write(const uint8_t* slot, uint64_t offset, uint64_t run) override {
    copies_->begin(staging_.data(), slot, kBlockBytes);
    const int error = copies_->finish();
    if (error != 0) return error;
    if (!has_block_stamp(staging_.data(), offset / kBlockBytes, run)) return -EBADMSG;
    return storage_.write(staging_.data(), kBlockBytes, offset);
  }

 private:
  Storage& storage_;
  const std::unique_ptr<Copies> copies_;
  const BackendArray staging_;
};

class StagedTransfer final : public Transfer {
 public:
  StagedTransfer(Device& device, Storage& storage) : device_(device), storage_(storage) {}

  uint64_t read_bytes() const override { return storage_.read_bytes(); }
  uint64_t written_bytes() const override { return storage_.written_bytes(); }
  Expected<void> make_room() override { return storage_.make_room(); }
  std::unique_ptr<Lane> make_lane() override {
    auto copies = device_.make_copies();
    if (copies == nullptr) return nullptr;
    return std::make_unique<StagedLane>(device_, storage_, std::move(copies));
  }
  int read_back(uint8_t* block, uint64_t offset) override {
    return storage_.read_back(block, kBlockBytes, offset);
  }

 private:
  Device& device_;
  Storage& storage_;
};

}  // namespace

Basic::Basic(Device& device, Storage& storage, const HostLoad& load)
    : device_(device),
      storage_(storage),
      load_(load),
      transfer_(std::make_unique<StagedTransfer>(device, storage)) {}

Basic::~Basic() = default;

Expected<Sample> Basic::measure(const Point& point) {
  if (!point.files) return run_host_load(device_, *transfer_, load_, point);
  return run_host_files(device_, storage_, std::min(point.outstanding, load_.threads_max),
                        storage_.small_files());
}

}  // namespace gofs::bench
