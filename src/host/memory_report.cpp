// SPDX-License-Identifier: Apache-2.0
//
// What a mounted volume takes of memory: what the backend's allocators have on record, and how much
// of it is in use.
#include <array>

#include "host/attached_ssd.h"
#include "host/volume_state.h"
#include "vfs/memory_use.h"

namespace gofs::host {

namespace {

using simt::MemoryPart;

/// In the order in which a report has them.
struct NamedPart {
  MemoryPart part;
  const char* name;
};
constexpr std::array<NamedPart, simt::kMemoryParts> kNamedParts = {{
    {MemoryPart::kPageCache, "page_cache"},
    {MemoryPart::kCheckpoint, "checkpoint"},
    {MemoryPart::kSegments, "segments"},
    {MemoryPart::kNames, "names"},
    {MemoryPart::kBlockMaps, "block_maps"},
    {MemoryPart::kOpenInodes, "open_inodes"},
    {MemoryPart::kRangeLocks, "range_locks"},
    {MemoryPart::kDescriptors, "descriptors"},
    {MemoryPart::kBatches, "batches"},
    {MemoryPart::kOperations, "operations"},
    {MemoryPart::kSpareBlocks, "spare_blocks"},
    {MemoryPart::kBounces, "bounces"},
    {MemoryPart::kRecords, "records"},
    {MemoryPart::kLocks, "locks"},
    {MemoryPart::kWriter, "writer"},
    {MemoryPart::kQueues, "queues"},
    {MemoryPart::kStaging, "staging"},
    {MemoryPart::kVolume, "volume"},
    {MemoryPart::kCalls, "calls"},
    {MemoryPart::kController, "ssd_controller"},
    {MemoryPart::kMedia, "ssd_media"},
}};

struct NamedKind {
  f2fs::PageKind kind;
  const char* name;
};
constexpr NamedKind kNamedKinds[] = {{f2fs::PageKind::kNode, "nodes"},
                                     {f2fs::PageKind::kDirectory, "directories"},
                                     {f2fs::PageKind::kNat, "nat"},
                                     {f2fs::PageKind::kBlock, "others"}};
static_assert(std::size(kNamedKinds) + 1 == f2fs::kPageKinds);

}  // namespace

Expected<MemoryReport> VolumeState::memory() {
  vfs::MemoryUse use{};
  const CallAnswer answer = call({.verb = request::Verb::kMemory}, use);
  if (answer.result < 0) return explain(answer.result, spec_.text);
  // Afterwards: the call may have allocated what it needs.
  const simt::MemoryBytes device = backend_->memory().bytes_by_part();
  const bool apart = &backend_->shared_memory() != &backend_->memory();
  simt::MemoryBytes host = apart ? backend_->shared_memory().bytes_by_part() : simt::MemoryBytes{};
  for (const auto& ssd : ssds_) {
    simt::MemorySpace& reached = ssd->device_memory().dma;
    if (&reached == &backend_->memory() || &reached == &backend_->shared_memory()) continue;
    const simt::MemoryBytes bytes = reached.bytes_by_part();
    for (size_t part = 0; part < bytes.size(); ++part) host[part] += bytes[part];
  }
  MemoryReport report;
  for (const NamedPart& named : kNamedParts) {
    const auto index = static_cast<size_t>(named.part);
    MemoryPartReport part;
    part.name = named.name;
    part.of_ssd = simt::is_of_ssd(named.part);
    part.device_bytes = device[index];
    part.host_bytes = host[index];
    if ((use.told >> index & 1u) != 0) part.in_use = use.parts[index];
    (part.of_ssd ? report.ssd_bytes : report.filesystem_bytes) += part.bytes();
    report.parts.push_back(std::move(part));
  }
  for (const NamedKind& named : kNamedKinds) {
    const auto& pages = use.pages[static_cast<size_t>(named.kind)];
    report.cached.push_back({named.name, pages.valid, pages.dirty});
  }
  return report;
}

}  // namespace gofs::host
