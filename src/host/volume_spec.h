// SPDX-License-Identifier: Apache-2.0
//
// Naming a volume and the SSD that it lies on, in one word of a command line:
//
//   vol.img                              an image
//   /dev/nvme0n1p2                       a block device, as an image
//   vol.img?media=hosted&threads=2       behind a controller of host threads (ssd/hosted)
//   ram:64M                              memory, all zero
//   file:a%3Fb%2Bc.img                   an image whose name has a ? or a + (%XX is a byte)
//   vol.img?model=990pro&queues=16       options of the virtual SSD and of the mount
//   a.img+b.img?stripe=64K               a stripe over several SSDs (stripe_members.h)
//   vfio:0000:65:00.0                    a physical SSD, bound to vfio-pci (docs/operating.md)
//   vfio:0000:65:00.0/2?doorbell=cpu     its second namespace
//
// Options: queues=N, depth=N, lba=512|4096, mdts=SIZE, media=hosted|memory|hbm (an image or device
// behind a controller of host threads; a virtual SSD that has it in memory, or on a CPU reads and
// writes it; one that has it in the GPU's memory), cache=SIZE, descriptors=N (files open at once, 1
// KB each; 66,560), timeout=TIME, checkpoint=TIME (from one to the next, where something has
// changed), stripe=SIZE (of a chunk), mode=adaptive|lfs (whether blocks of files may be written
// over where they lie), ablate=NAME[,NAME...] (what the mount does without, vfs/ablations.h). Of a
// virtual SSD: model=NAME[,SETTING=NUMBER...] (ssd/virtual_ssd.h says which), spare=SIZE (what can
// be written to holes of a sparse image of more than 8 GiB, which a GPU keeps in memory; 4G,
// metadata included). Of a hosted SSD: threads=N (that carry commands out), poll=always|auto
// (whether they never sleep), staging=SIZE as below, where a GPU uses it. Of a physical SSD:
// doorbell=gpu|cpu|auto (who writes its registers: the warps, a thread of the host, or what works),
// queues=PLACE and data=PLACE (both the same: host, gpu, or a file such as the BAR of another
// device), staging=SIZE (of each queue entry, for buffers that the SSD does not reach; 32K); it has
// queues of 128 entries where depth=N does not say otherwise. SIZE takes K, M, G or T (powers of
// 1,024), TIME takes s, ms or us (s if it has none). Of several SSDs those without options have the
// last one's, and what is not about an SSD is the last one's as well.
//
// Where a path ends: at a `?`, a `+` or the end. Of several possible places the one counts that
// makes the path the longest name of an existing file, and if none exists, the first. So a name
// that has a
// `+` needs no quoting as long as the file is there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gofs/expected.hpp"
#include "ssd/timing.h"

namespace gofs::host {

/// Entries of a queue, at most; at least 2.
inline constexpr uint32_t kQueueDepthMax = 65535;

/// Who writes a physical SSD's registers.
enum class Doorbells : uint32_t {
  kAuto,  // the warps, where that works
  kGpu,   // the warps
  kCpu,   // a thread of the host
};

/// What stands for the SSD of an image or block device.
enum class MediaKind : uint32_t {
  kAuto,          // nothing is said
  kHosted,        // ssd/hosted
  kMemory,        // a virtual SSD
  kDeviceMemory,  // one whose contents are in the GPU's memory
};

struct VolumeSpec {
  std::string text;      // as it was given
  std::string path;      // of an image or block device
  std::string provider;  // of a physical SSD ("vfio"); empty, as `path` is: memory
  std::string address;   // of a physical SSD ("0000:65:00.0")
  uint32_t nsid = 1;
  Doorbells doorbells = Doorbells::kAuto;
  std::string queue_place = "host";
  std::string data_place = "host";
  std::optional<uint32_t> staging_bytes;  // a multiple of 4 KiB
  uint64_t memory_bytes = 0;
  MediaKind media = MediaKind::kAuto;
  std::optional<uint32_t> threads;  // of a hosted SSD
  bool always_polls = false;        // likewise
  std::optional<uint64_t> spare_bytes;
  bool has_model = false;  // it was named
  std::string model_name = "none";
  ssd::TimingModel model;
  std::optional<uint32_t> lba_bytes;
  std::optional<uint32_t> queues;
  std::optional<uint32_t> queue_depth;
  std::optional<uint64_t> transfer_bytes_max;  // a power of two of at least 4 KiB
  std::optional<uint64_t> cache_bytes;
  std::optional<uint32_t> descriptors;
  std::optional<uint64_t> command_timeout_ns;
  std::optional<uint64_t> checkpoint_period_ns;
  std::optional<uint64_t> stripe_bytes;  // a power of two of at least 4 KiB
  std::optional<bool> log_structured;    // mode=lfs, or mode=adaptive
  std::optional<uint32_t> ablations;     // of vfs::Ablation

  bool is_physical() const { return !provider.empty(); }
  bool is_hosted() const { return media == MediaKind::kHosted; }
};

/// The SSDs that `text` names, one or several (a stripe), each with its options. Errors: EINVAL,
/// with words that name the option. `exists` says whether a path names a file.
Expected<std::vector<VolumeSpec>> parse_volume_specs(
    std::string_view text, const std::function<bool(const std::string&)>& exists);

/// The same, looking at the file system.
Expected<std::vector<VolumeSpec>> parse_volume_specs(std::string_view text);

/// "512", "64K", "2GiB": digits, then nothing or one of K, M, G, T (powers of 1,024), then B, iB or
/// nothing. No value for anything else, and for what does not fit.
std::optional<uint64_t> parse_size(std::string_view text);

/// "5s", "250ms", "100us", "30" (seconds), in nanoseconds.
std::optional<uint64_t> parse_duration_ns(std::string_view text);

}  // namespace gofs::host
