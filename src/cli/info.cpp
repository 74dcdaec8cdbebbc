// SPDX-License-Identifier: Apache-2.0
//
// gofs info VOL: what mounting found, and what it takes of memory.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/text.h"
#include "host/messages.h"

namespace gofs::cli {
namespace {

using Json = nlohmann::ordered_json;

/// For what should be UTF-8 but was written by others.
std::string printable(const std::string& text) { return is_utf8(text) ? text : escaped(text); }

Json json_of(const MemoryReport& memory) {
  Json parts;
  for (const MemoryPartReport& part : memory.parts) {
    Json& entry = parts[part.name];
    entry = {{"device", part.device_bytes}, {"host", part.host_bytes}};
    if (part.in_use) entry["in_use"] = *part.in_use;
  }
  Json cached;
  for (const CachedPages& pages : memory.cached) {
    cached[pages.kind] = {{"in_use", pages.bytes}, {"dirty", pages.dirty_bytes}};
  }
  return {{"filesystem", memory.filesystem_bytes},
          {"ssd", memory.ssd_bytes},
          {"parts", parts},
          {"cached", cached}};
}

void print_json(const VolumeInfo& info, const FilesystemStat& stat, const MemoryReport& memory) {
  Json object;
  object["volume"] = printable(info.spec);
  object["label"] = info.label;
  object["uuid"] = info.uuid;
  object["features"] = info.features;
  object["written_by"] = printable(info.writer);
  object["clean"] = info.clean;
  object["blocks"] = info.block_count;
  object["segments"] = info.segment_count;
  object["main_segments"] = info.main_segments;
  object["free_segments"] = info.free_segments;
  object["checkpoint"] = {{"version", info.checkpoint_version},
                          {"pack", info.checkpoint_pack},
                          {"flags", host::checkpoint_flag_names(info.checkpoint_flags)}};
  object["space"] = {{"block_bytes", stat.block_bytes},
                     {"blocks", stat.blocks},
                     {"blocks_free", stat.blocks_free},
                     {"blocks_available", stat.blocks_available},
                     {"files", stat.files},
                     {"files_free", stat.files_free},
                     {"files_used", stat.files_used}};
  object["backend"] = {{"name", info.backend}, {"detail", info.backend_detail}};
  object["ssd"] = {
      {"description", info.ssd},         {"bytes", info.ssd_bytes},
      {"lba_bytes", info.lba_bytes},     {"queues", info.queues},
      {"queue_depth", info.queue_depth}, {"transfer_bytes_max", info.transfer_bytes_max}};
  object["mode"] = info.mode;
  object["ablations"] = info.ablations;
  object["memory"] = json_of(memory);
  print(object.dump(2) + "\n");
}

/// "1.2 MiB in use", and of the page cache what that is.
std::string use_text(const MemoryPartReport& part, const MemoryReport& memory) {
  if (!part.in_use) return {};
  std::string text = fmt::format(", {} in use", size_text(*part.in_use));
  if (part.name != "page_cache") return text;
  uint64_t dirty = 0;
  const char* before = ": ";
  for (const CachedPages& pages : memory.cached) {
    text += fmt::format("{}{} {}", std::exchange(before, ", "), pages.kind, size_text(pages.bytes));
    dirty += pages.dirty_bytes;
  }
  return text + fmt::format("; {} not on the SSD yet", size_text(dirty));
}

void print_memory(const MemoryReport& memory) {
  print(fmt::format("{:<12} {}, and {} of the virtual SSD\n", "memory",
                    size_text(memory.filesystem_bytes), size_text(memory.ssd_bytes)));
  for (const MemoryPartReport& part : memory.parts) {
    if (part.bytes() == 0) continue;
    std::string name = part.name;
    std::replace(name.begin(), name.end(), '_', ' ');
    const std::string where =
        part.host_bytes == 0 ? "" : fmt::format(" ({} pinned)", size_text(part.host_bytes));
    print(fmt::format("  {:<14} {}{}{}\n", name, size_text(part.bytes()), where,
                      use_text(part, memory)));
  }
}

void print_table(const VolumeInfo& info, bool served, const FilesystemStat& stat,
                 const MemoryReport& memory) {
  const auto row = [](const char* name, const std::string& value) {
    print(fmt::format("{:<12} {}\n", name, escaped(value)));
  };
  const uint64_t used = stat.blocks - stat.blocks_free;
  row("volume", info.spec);
  row("label", info.label.empty() ? "(none)" : info.label);
  row("uuid", info.uuid);
  row("features",
      info.features.empty() ? "(none)" : fmt::format("{}", fmt::join(info.features, " ")));
  row("written by", info.writer);
  row("state", served       ? "mounted by a server, for writing"
               : info.clean ? "cleanly unmounted"
                            : "not cleanly unmounted: read as of its last checkpoint");
  row("size", fmt::format("{} ({} blocks of 4 KiB)", size_text(info.block_count * kBlockBytes),
                          info.block_count));
  std::string space = fmt::format("{} of {} in use", size_text(used * kBlockBytes),
                                  size_text(stat.blocks * kBlockBytes));
  if (stat.blocks_available < stat.blocks_free) {
    space += fmt::format("; {} can be written, with memory for no more holes of the image (spare=)",
                         size_text(stat.blocks_available * kBlockBytes));
  }
  row("space", space);
  row("files", fmt::format("{} of at most {}", stat.files_used, stat.files));
  row("segments", fmt::format("{} of 2 MiB, {} for data and nodes, {} of these free",
                              info.segment_count, info.main_segments, info.free_segments));
  row("checkpoint",
      fmt::format("version {}, pack {}, flags {}", info.checkpoint_version, info.checkpoint_pack,
                  fmt::join(host::checkpoint_flag_names(info.checkpoint_flags), " ")));
  row("backend", fmt::format("{}: {}", info.backend, info.backend_detail));
  row("ssd",
      fmt::format("{}, {}, LBAs of {} bytes", info.ssd, size_text(info.ssd_bytes), info.lba_bytes));
  row("queues", fmt::format("{} pairs of {} entries, commands of up to {}", info.queues,
                            info.queue_depth, size_text(info.transfer_bytes_max)));
  row("mode", info.mode == "lfs" ? "lfs: all writes go to new blocks"
                                 : "adaptive: blocks of files may be written over");
  if (!info.ablations.empty()) row("ablations", fmt::format("{}", fmt::join(info.ablations, " ")));
  print_memory(memory);
}

}  // namespace

void run_info(Session& session) {
  Volume volume = open_volume(session);
  const VolumeInfo info = volume.info();
  const FilesystemStat stat = take(volume.statfs());
  const MemoryReport memory = take(volume.memory());
  session.json ? print_json(info, stat, memory)
               : print_table(info, is_socket(session.volume), stat, memory);
}

}  // namespace gofs::cli
