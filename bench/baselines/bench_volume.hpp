// SPDX-License-Identifier: Apache-2.0
//
// The volume that baselines share: /large, each of whose blocks begins with its index; a file that
// is written through the file system, and one that is written past it; and a range behind the
// volume for raw writes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bench/volume.hpp"
#include "bench/writes.hpp"
#include "host/volume_state.h"
#include "options.hpp"

namespace gofs::bench {

class BenchVolume {
 public:
  /// Makes the image in the folder and mounts it on `backend`. `ready` is told its path before.
  static Expected<std::unique_ptr<BenchVolume>> make(
      const Options& options, const std::string& backend, const std::string& model,
      const std::function<void(const std::string&)>& ready);
  ~BenchVolume();
  BenchVolume(const BenchVolume&) = delete;
  BenchVolume& operator=(const BenchVolume&) = delete;

  host::VolumeState& state() const { return *state_; }
  int large() const { return large_; }
  uint64_t large_bytes() const { return large_bytes_; }
  uint32_t small_files() const { return small_files_; }  // in /small, each of kSmallFileBytes
  uint64_t main_start() const { return main_start_; }  // where raw reads come from, and /large lies
  uint64_t raw_start() const { return raw_start_; }    // of as many bytes as written() has
  BenchFiles& written() const { return *written_; }
  /// Nobody writes to it through the file system, which would move its blocks.
  BenchFiles& in_place() const { return *in_place_; }

  /// Makes the last writes durable, and empties segments that they have left partly empty, before
  /// anybody has to clean who would be measured.
  Expected<void> make_room();

 private:
  explicit BenchVolume(std::string image) : image_(std::move(image)) {}
  Expected<void> mount(const std::string& backend, const std::string& model);
  Expected<void> prepare(const Options& options);
  Expected<std::unique_ptr<BenchFiles>> make_file(const std::string& folder, uint64_t bytes);
  Expected<void> fill(BenchFiles& files);
  Expected<void> checkpoint();
  Expected<void> warm_up(uint64_t raw_bytes);

  const std::string image_;
  uint64_t large_bytes_ = 0;
  uint32_t small_files_ = 0;
  uint64_t raw_start_ = 0;
  uint64_t main_start_ = 0;
  std::unique_ptr<host::VolumeState> state_;
  int large_ = -1;
  std::unique_ptr<BenchFiles> written_;  // go before the volume
  std::unique_ptr<BenchFiles> in_place_;
};

}  // namespace gofs::bench
