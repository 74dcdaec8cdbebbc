// SPDX-License-Identifier: Apache-2.0
//
// The baseline `cufile`: NVIDIA's libcufile between a real file and the GPU's memory.
#pragma once

#include <memory>
#include <string>

#include "host_load.hpp"
#include "pacer.hpp"
#include "storage.hpp"

namespace gofs::bench {

/// libcufile and one file that it takes. Goes after all that use it.
class CufileFile {
 public:
  virtual ~CufileFile() = default;
  virtual std::unique_ptr<Transfer> make_transfer(const ssd::TimingModel& model) = 0;
  /// How libcufile moves the data.
  virtual const std::string& mode() const = 0;
};

/// Null where there is no libcufile, or where it does not take the file: `why` then says so. `file`
/// outlives the result.
std::unique_ptr<CufileFile> open_cufile(const StampedFile& file, Device& device, std::string& why);

class Cufile final : public Baseline {
 public:
  Cufile(Device& device, CufileFile& file, const ssd::TimingModel& model, const HostLoad& load)
      : device_(device), file_(file), transfer_(file.make_transfer(model)), load_(load) {}

  std::string name() const override { return "cufile"; }
  std::string note() const override { return file_.mode(); }
  Expected<Sample> measure(const Point& point) override {
    return run_host_load(device_, *transfer_, load_, point);
  }

 private:
  Device& device_;
  CufileFile& file_;
  const std::unique_ptr<Transfer> transfer_;
  const HostLoad load_;
};

}  // namespace gofs::bench
