// SPDX-License-Identifier: Apache-2.0
#include "block_map.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <vector>

#include "block_map.h"
#include "bodies.hpp"
#include "host/messages.h"

namespace gofs::bench {

Expected<std::unique_ptr<BlockMap>> BlockMap::make(Device& device, host::VolumeState& volume,
                                                   int descriptor, uint64_t bytes) {
  constexpr const char* kMapSubject = "block map";
  const uint64_t count = bytes / kBlockBytes;
  simt::MemorySpace& memory = volume.backend().memory();
  const BackendArray found(memory, count * sizeof(uint64_t));
  host::SharedArray<BlockMapParams> params(volume.backend().shared_memory(), 1);
  params[0] = {volume.filesystem(), descriptor, count, found.as<uint64_t>(), 0};
  if (!device.run(bodies::kBlockMap, device.backend().full_grid(), &params[0])) {
    return host::make_error(EIO, kMapSubject, device.error());
  }
  if (params[0].error != 0) return volume.explain(params[0].error, kMapSubject);
  // From here on the map is the host's, which hands it over.
  std::vector<uint64_t> blocks(count);
  memory.read(blocks.data(), found.data(), count * sizeof(uint64_t));
  const uint64_t end = volume.info().block_count;
  for (uint64_t index = 0; index < count; ++index) {
    if (blocks[index] != 0 && blocks[index] < end) continue;
    return host::make_error(EIO, kMapSubject,
                            fmt::format("block {} has the address {}", index, blocks[index]));
  }
  std::unique_ptr<BlockMap> map(new BlockMap(memory, count));
  memory.write(map->map_.data(), blocks.data(), count * sizeof(uint64_t));
  return map;
}

}  // namespace gofs::bench
