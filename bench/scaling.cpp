// SPDX-License-Identifier: Apache-2.0
//
// Whether what an operation costs grows with what there is: names in a directory, the size of a
// file and of the volume, files that are open. Calls come from the host one at a time, so on a GPU
// each costs a launch besides; flat is what is wanted, and the last column says how far it is from
// that.
//
// usage: gofs_scaling FOLDER [BACKEND [SWEEP...]]
//   FOLDER takes a sparse image; BACKEND auto, cpu or cuda; SWEEP names, size, volume, open
// Prints a table: microseconds of one operation, the median of five rounds.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gofs/volume.hpp"
#include "host/image/mkfs.h"
#include "take.hpp"

namespace {

using gofs::Volume;
using gofs::measuring::fail;
using gofs::measuring::take;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1024 * kMiB;
constexpr uint32_t kRounds = 5;
constexpr uint32_t kOperations = 400;  // of a round

double seconds_of(const std::function<void()>& action) {
  const auto before = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

/// One volume on a sparse image, which goes with it.
class ScalingVolume {
 public:
  ScalingVolume(const std::string& folder, const std::string& backend, uint64_t bytes,
                uint32_t descriptors = 0)
      : path_(fmt::format("{}/gofs-scaling-{}.img", folder, ::getpid())) {
    gofs::image::VolumeOptions options;
    options.overwrite = true;
    options.flush = false;
    const auto made = gofs::image::make_volume(path_, bytes, options);
    if (!made.ok()) fail(made.message);
    gofs::MountOptions mount;
    mount.backend = backend;
    mount.read_only = false;
    mount.descriptors = descriptors;
    mount.cache_bytes = 512 * kMiB;
    mount_seconds_ =
        seconds_of([&] { volume_ = take(Volume::mount(path_ + "?spare=16G", mount)); });
  }
  ~ScalingVolume() {
    volume_.reset();
    (void)::unlink(path_.c_str());
  }
  ScalingVolume(const ScalingVolume&) = delete;
  ScalingVolume& operator=(const ScalingVolume&) = delete;
  Volume* operator->() { return &*volume_; }
  double mount_seconds() const { return mount_seconds_; }

 private:
  const std::string path_;
  std::optional<Volume> volume_;
  double mount_seconds_ = 0;
};

/// Rows of one table: operations down, sizes across.
class Table {
 public:
  explicit Table(std::string title) : title_(std::move(title)) {}

  /// The median of `kRounds` times `operations` calls of `operation(number)`, in microseconds.
  void measure(const std::string& name, uint64_t at, uint32_t operations,
               const std::function<void(uint32_t)>& operation) {
    std::vector<double> rounds;
    uint32_t number = 0;
    for (uint32_t round = 0; round < kRounds; ++round) {
      rounds.push_back(seconds_of([&] {
        for (uint32_t i = 0; i < operations; ++i) operation(number++);
      }));
    }
    std::sort(rounds.begin(), rounds.end());
    add(name, at, rounds[kRounds / 2] / operations);
  }
  void add(const std::string& name, uint64_t at, double seconds) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
    cells_[name][at] = seconds * 1e6;
  }
  void print() const {
    fmt::print("{:<34}", title_);
    for (const auto& [at, us] : cells_.at(names_.front())) fmt::print(" {:>10}", at);
    fmt::print(" {:>8}\n", "last/1st");
    for (const std::string& name : names_) {
      const auto& row = cells_.at(name);
      fmt::print("{:<34}", name);
      for (const auto& [at, us] : row) fmt::print(" {:>10.2f}", us);
      fmt::print(" {:>8.2f}\n", row.rbegin()->second / row.begin()->second);
    }
    fmt::print("\n");
    std::fflush(stdout);
  }

 private:
  const std::string title_;
  std::vector<std::string> names_;
  std::map<std::string, std::map<uint64_t, double>> cells_;
};

void fill_directory(ScalingVolume& volume, uint64_t from, uint64_t to) {
  constexpr uint64_t kAtOnce = 50'000;
  for (uint64_t first = from; first < to; first += kAtOnce) {
    std::vector<gofs::NewFile> files;
    for (uint64_t i = first; i < std::min(to, first + kAtOnce); ++i) {
      files.push_back({fmt::format("name{:07}", i), nullptr, 0});
    }
    for (const int error : take(volume->batch_create("/d", files))) {
      if (error != 0) fail(fmt::format("a name could not be made: {}", error));
    }
  }
  take(volume->sync());
}

void by_names(const std::string& folder, const std::string& backend) {
  Table table("us by names in the directory");
  ScalingVolume volume(folder, backend, 16 * kGiB);
  take(volume->mkdir("/d"));
  std::mt19937_64 random(1);
  uint64_t names = 0;
  for (const uint64_t wanted : {1'000u, 10'000u, 100'000u, 1'000'000u}) {
    fill_directory(volume, names, wanted);
    names = wanted;
    table.measure("stat of any name", names, kOperations, [&](uint32_t) {
      (void)take(volume->stat(fmt::format("/d/name{:07}", random() % names)));
    });
    table.measure("stat of a name that is not there", names, kOperations, [&](uint32_t number) {
      if (volume->stat(fmt::format("/d/none{:07}", number))) fail("a name that is not there");
    });
    table.measure("create and close", names, kOperations, [&](uint32_t number) {
      const int file = take(volume->open(fmt::format("/d/new{:07}", number), O_CREAT | O_RDWR));
      take(volume->close(file));
    });
    table.measure("unlink", names, kOperations, [&](uint32_t number) {
      take(volume->unlink(fmt::format("/d/new{:07}", number)));
    });
    take(volume->sync());
  }
  table.print();
}

void by_size(const std::string& folder, const std::string& backend) {
  Table table("us by MiB of a sparse file");
  ScalingVolume volume(folder, backend, 16 * kGiB);
  for (const uint64_t mib : {1u, 64u, 4'096u, 262'144u, 1'048'576u}) {
    const std::string path = fmt::format("/size{}", mib);
    const int file = take(volume->open(path, O_CREAT | O_RDWR));
    take(volume->ftruncate(file, mib * kMiB));
    std::mt19937_64 random(1);
    std::vector<uint64_t> places;
    for (uint32_t i = 0; i < 256; ++i) places.push_back(random() % (mib * 256) * gofs::kBlockBytes);
    std::vector<uint8_t> block(gofs::kBlockBytes, 0x5a);
    for (const uint64_t place : places) {
      (void)take(volume->pwrite(file, block.data(), block.size(), place));
    }
    take(volume->sync());
    table.measure("pread of a block that is there", mib, kOperations, [&](uint32_t number) {
      (void)take(volume->pread(file, block.data(), block.size(), places[number % places.size()]));
    });
    table.measure("pread of a hole", mib, kOperations, [&](uint32_t) {
      const uint64_t place = random() % (mib * 256) * gofs::kBlockBytes;
      (void)take(volume->pread(file, block.data(), block.size(), place));
    });
    table.measure("pwrite over a block", mib, kOperations, [&](uint32_t number) {
      (void)take(volume->pwrite(file, block.data(), block.size(), places[number % places.size()]));
    });
    table.measure("pwrite and fsync", mib, 40, [&](uint32_t number) {
      (void)take(volume->pwrite(file, block.data(), block.size(), places[number % places.size()]));
      take(volume->fsync(file));
    });
    take(volume->close(file));
    table.add("unlink, of 256 blocks", mib, seconds_of([&] { take(volume->unlink(path)); }));
    take(volume->sync());
  }
  table.print();
}

void by_volume(const std::string& folder, const std::string& backend) {
  Table table("us by GiB of the volume");
  for (const uint64_t gib : {1u, 16u, 128u, 1'024u}) {
    ScalingVolume volume(folder, backend, gib * kGiB);
    table.add("mount for writing", gib, volume.mount_seconds());
    std::vector<uint8_t> block(gofs::kBlockBytes, 0x5a);
    table.measure("create, write a block, close", gib, kOperations, [&](uint32_t number) {
      const int file = take(volume->open(fmt::format("/{:07}", number), O_CREAT | O_RDWR));
      (void)take(volume->pwrite(file, block.data(), block.size(), 0));
      take(volume->close(file));
    });
    const int file = take(volume->open("/0000000", O_RDWR));
    table.measure("pwrite over a block", gib, kOperations, [&](uint32_t) {
      (void)take(volume->pwrite(file, block.data(), block.size(), 0));
    });
    table.measure("pwrite and fsync", gib, 40, [&](uint32_t) {
      (void)take(volume->pwrite(file, block.data(), block.size(), 0));
      take(volume->fsync(file));
    });
    table.measure("pwrite and sync", gib, 10, [&](uint32_t) {
      (void)take(volume->pwrite(file, block.data(), block.size(), 0));
      take(volume->sync());
    });
    take(volume->close(file));
    table.measure("unlink", gib, kOperations,
                  [&](uint32_t number) { take(volume->unlink(fmt::format("/{:07}", number))); });
    table.add("unmount", gib, seconds_of([&] { take(volume->unmount()); }));
  }
  table.print();
}

void by_open_files(const std::string& folder, const std::string& backend) {
  Table table("us by files that are open");
  constexpr uint32_t kOpenMax = 1 << 20;
  ScalingVolume volume(folder, backend, 16 * kGiB, kOpenMax + 64);
  take(volume->mkdir("/d"));
  fill_directory(volume, 0, kOpenMax + 1);
  uint64_t open_files = 0;
  std::vector<uint8_t> block(gofs::kBlockBytes, 0x5a);
  for (const uint64_t wanted : {64u, 4'096u, 65'536u, 262'144u, kOpenMax}) {
    for (; open_files < wanted; ++open_files) {
      (void)take(volume->open(fmt::format("/d/name{:07}", open_files), O_RDWR));
    }
    const std::string one = fmt::format("/d/name{:07}", kOpenMax);
    table.measure("open and close", wanted, kOperations,
                  [&](uint32_t) { take(volume->close(take(volume->open(one, O_RDWR)))); });
    const int file = take(volume->open(one, O_RDWR));
    table.measure("pwrite over a block", wanted, kOperations, [&](uint32_t) {
      (void)take(volume->pwrite(file, block.data(), block.size(), 0));
    });
    table.measure("pread", wanted, kOperations, [&](uint32_t) {
      (void)take(volume->pread(file, block.data(), block.size(), 0));
    });
    take(volume->close(file));
  }
  table.print();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: gofs_scaling FOLDER [BACKEND [SWEEP...]]\n");
    return 2;
  }
  const std::string folder = argv[1];
  const std::string backend = argc > 2 ? argv[2] : "auto";
  std::vector<std::string> sweeps(argv + std::min(argc, 3), argv + argc);
  if (sweeps.empty()) sweeps = {"names", "size", "volume", "open"};
  const std::map<std::string, void (*)(const std::string&, const std::string&)> known = {
      {"names", by_names}, {"size", by_size}, {"volume", by_volume}, {"open", by_open_files}};
  for (const std::string& sweep : sweeps) {
    if (!known.contains(sweep)) fail(sweep + ": no such sweep");
  }
  for (const std::string& sweep : sweeps) known.at(sweep)(folder, backend);
  return 0;
}
