// SPDX-License-Identifier: Apache-2.0
//
// The host threads do what GPU threads do otherwise: the file system's own code, and the controller
// of the virtual SSD while they wait for it.
#include <cerrno>

#include "bench_volume.hpp"
#include "options.hpp"
#include "storage.hpp"
#include "vfs/open.h"
#include "vfs/read.h"
#include "vfs/write.h"

namespace gofs::bench {
namespace {

int outcome_of(int64_t moved, uint64_t bytes) {
  if (moved < 0) return static_cast<int>(moved);
  return static_cast<uint64_t>(moved) == bytes ? 0 : -EIO;
}

class VolumeStorage final : public Storage {
 public:
  explicit VolumeStorage(BenchVolume& volume)
      : volume_(volume),
        fs_(*volume.state().filesystem()),
        written_(*volume.written().descriptors()) {}

  std::string describe() const override { return "GoFS on host threads"; }
  uint64_t read_bytes() const override { return volume_.large_bytes(); }
  uint64_t written_bytes() const override { return volume_.written().bytes_each(); }
  uint32_t small_files() const override { return volume_.small_files(); }
  int read(void* buffer, uint64_t bytes, uint64_t offset) override {
    return outcome_of(vfs::pread(simt::Warp(), fs_, volume_.large(), buffer, bytes, offset), bytes);
  }
  int write(const void* buffer, uint64_t bytes, uint64_t offset) override {
    return outcome_of(vfs::pwrite(simt::Warp(), fs_, written_, buffer, bytes, offset), bytes);
  }
  int read_file(uint32_t index, void* buffer) override {
    const std::string path = small_file_path(index);
    const int fd = vfs::open(simt::Warp(), fs_, path.c_str(), vfs::kOpenReadOnly);
    if (fd < 0) return fd;
    const int error =
        outcome_of(vfs::pread(simt::Warp(), fs_, fd, buffer, kSmallFileBytes, 0), kSmallFileBytes);
    const int closed = vfs::close(simt::Warp(), fs_, fd);
    return error != 0 ? error : closed;
  }
  int read_back(void* buffer, uint64_t bytes, uint64_t offset) override {
    return outcome_of(vfs::pread(simt::Warp(), fs_, written_, buffer, bytes, offset), bytes);
  }
  Expected<void> make_room() override { return volume_.make_room(); }

 private:
  BenchVolume& volume_;
  vfs::Filesystem& fs_;
  const int written_;
};

}  // namespace

std::unique_ptr<Storage> make_volume_storage(BenchVolume& volume) {
  return std::make_unique<VolumeStorage>(volume);
}

}  // namespace gofs::bench
