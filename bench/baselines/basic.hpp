// SPDX-License-Identifier: Apache-2.0
//
// The baseline `basic`: host threads, each with pread or pwrite and a copy through pinned memory.
#pragma once

#include "host_load.hpp"
#include "storage.hpp"

namespace gofs::bench {

class Basic final : public Baseline {
 public:
  Basic(Device& device, Storage& storage, const HostLoad& load);
  ~Basic() override;

  std::string name() const override { return "basic"; }
  std::string note() const override { return storage_.describe(); }
  bool has_files() const override { return true; }
  Expected<Sample> measure(const Point& point) override;

 private:
  Device& device_;
  Storage& storage_;
  const HostLoad load_;
  const std::unique_ptr<Transfer> transfer_;
};

}  // namespace gofs::bench
