// SPDX-License-Identifier: Apache-2.0
#include "scenario.h"

#include <stdexcept>

namespace gofs::judges {

namespace {

constexpr uint64_t kVolumeBytes = uint64_t{64} << 20;

}  // namespace

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all;
  for (const auto& some :
       {file_scenarios(), growth_scenarios(), name_scenarios(), volume_scenarios(),
        fsync_scenarios(), fsync_name_scenarios(), random_scenarios()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

Prepared prepare(const Scenario& scenario, uint64_t seed, uint32_t width, const Striping& striping,
                 bool log_structured) {
  const std::string old_bytes = scenario.old_bytes ? "bytes that were another file's once. " : "";
  Prepared prepared{Disks(make_empty_volume(kVolumeBytes, "", old_bytes), striping), {}, {}};
  prepared.mount.width = width;
  prepared.mount.cache_pages = scenario.cache_pages;
  prepared.mount.log_structured = log_structured;
  prepared.mount.discard = !scenario.old_bytes;
  if (scenario.prepare == nullptr) return prepared;
  Session session(prepared.disks, prepared.mount);
  if (session.mounted() != 0 || session.begun().error != 0) {
    throw std::runtime_error("cannot mount a new volume");
  }
  Actor actor(session, prepared.model, nullptr, seed);
  scenario.prepare(actor);
  if (session.unmount() != 0) throw std::runtime_error("cannot unmount what was prepared");
  return prepared;
}

}  // namespace gofs::judges
