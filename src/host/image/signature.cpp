// SPDX-License-Identifier: Apache-2.0
#include "host/image/signature.h"

#if GOFS_WITH_BLKID
#include <blkid/blkid.h>

#include <memory>
#endif

namespace gofs::image {

#if GOFS_WITH_BLKID

namespace {

struct ProbeDeleter {
  void operator()(blkid_probe probe) const { blkid_free_probe(probe); }
};
using Probe = std::unique_ptr<blkid_struct_probe, ProbeDeleter>;

std::string value_of(blkid_probe probe, const char* name) {
  const char* value = nullptr;
  return blkid_probe_lookup_value(probe, name, &value, nullptr) == 0 ? value : "";
}

}  // namespace

bool knows_signatures() { return true; }

std::string find_signature(int fd, uint64_t offset, uint64_t bytes) {
  constexpr int kNothing = 1;
  constexpr int kSeveral = -2;
  const Probe probe(blkid_new_probe());
  if (probe == nullptr || blkid_probe_set_device(probe.get(), fd, static_cast<blkid_loff_t>(offset),
                                                 static_cast<blkid_loff_t>(bytes)) != 0) {
    return {};
  }
  blkid_probe_enable_superblocks(probe.get(), 1);
  blkid_probe_set_superblocks_flags(probe.get(), BLKID_SUBLKS_TYPE);
  blkid_probe_enable_partitions(probe.get(), 1);
  const int result = blkid_do_safeprobe(probe.get());
  if (result == kSeveral) return "several file systems";
  if (result == kNothing || result < 0) return {};
  const std::string type = value_of(probe.get(), "TYPE");
  if (!type.empty()) return type;
  const std::string table = value_of(probe.get(), "PTTYPE");
  return table.empty() ? "data" : "a partition table (" + table + ")";
}

#else

bool knows_signatures() { return false; }

std::string find_signature(int, uint64_t, uint64_t) { return {}; }

#endif

}  // namespace gofs::image
