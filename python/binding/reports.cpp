// SPDX-License-Identifier: Apache-2.0
//
// The structs of types.h and volume.hpp that calls answer with.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "classes.hpp"
#include "gofs/command_times.hpp"
#include "gofs/types.h"
#include "gofs/volume.hpp"
#include "path.hpp"

namespace nb = nanobind;

namespace gofs::python {

namespace {

/// The name of its class, and all that it has.
std::string shown(nb::handle report) {
  std::string text = nb::cast<std::string>(report.type().attr("__name__")) + "(";
  const char* between = "";
  for (const nb::handle each : nb::iter(report.type().attr("__dict__"))) {
    const auto name = nb::cast<std::string>(each);
    if (name.starts_with("_")) continue;
    text += between + name + "=" + nb::cast<std::string>(nb::repr(report.attr(each)));
    between = ", ";
  }
  return text + ")";
}

template <typename T>
nb::class_<T> report(nb::module_& module, const char* name, const char* documentation) {
  return nb::class_<T>(module, name, documentation)
      .def("__repr__", &shown, nb::sig("def __repr__(self) -> str"));
}

void define_stat(nb::module_& module) {
  report<TimeStamp>(module, "TimeStamp", "A point in time: UTC, since 1970.")
      .def_ro("seconds", &TimeStamp::seconds)
      .def_ro("nanoseconds", &TimeStamp::nanoseconds);
  report<Stat>(module, "Stat", "As struct stat, with F2FS's extras.")
      .def_ro("ino", &Stat::ino)
      .def_ro("size_bytes", &Stat::size_bytes)
      .def_ro("blocks_512", &Stat::blocks_512)
      .def_ro("mode", &Stat::mode)
      .def_ro("links", &Stat::links)
      .def_ro("uid", &Stat::uid)
      .def_ro("gid", &Stat::gid)
      .def_ro("device_major", &Stat::device_major)
      .def_ro("device_minor", &Stat::device_minor)
      .def_ro("accessed", &Stat::accessed)
      .def_ro("modified", &Stat::modified)
      .def_ro("changed", &Stat::changed)
      .def_ro("created", &Stat::created)
      .def_ro("flags", &Stat::flags)
      .def_ro("advise", &Stat::advise)
      .def_ro("project_id", &Stat::project_id)
      .def_ro("generation", &Stat::generation);
  report<FilesystemStat>(module, "FilesystemStat", "As struct statvfs.")
      .def_ro("block_bytes", &FilesystemStat::block_bytes)
      .def_ro("blocks", &FilesystemStat::blocks)
      .def_ro("blocks_free", &FilesystemStat::blocks_free)
      .def_ro("blocks_available", &FilesystemStat::blocks_available)
      .def_ro("files", &FilesystemStat::files)
      .def_ro("files_free", &FilesystemStat::files_free)
      .def_ro("files_used", &FilesystemStat::files_used)
      .def_ro("name_bytes_max", &FilesystemStat::name_bytes_max);
}

void define_info(nb::module_& module) {
  report<VolumeInfo>(module, "VolumeInfo", "What mount() found.")
      .def_prop_ro("spec", [](const VolumeInfo& info) { return decoded(info.spec); })
      .def_ro("backend", &VolumeInfo::backend, "'cpu' or 'cuda'.")
      .def_ro("backend_detail", &VolumeInfo::backend_detail, "The processor or GPU.")
      .def_prop_ro(
          "ssd", [](const VolumeInfo& info) { return decoded(info.ssd); },
          "What the volume lies on, and its timing model.")
      .def_ro("ssd_bytes", &VolumeInfo::ssd_bytes)
      .def_ro("lba_bytes", &VolumeInfo::lba_bytes)
      .def_ro("queues", &VolumeInfo::queues)
      .def_ro("queue_depth", &VolumeInfo::queue_depth)
      .def_ro("transfer_bytes_max", &VolumeInfo::transfer_bytes_max)
      .def_ro("mode", &VolumeInfo::mode, "Of a mount for writing: 'adaptive' or 'lfs'.")
      .def_ro("ablations", &VolumeInfo::ablations)
      .def_prop_ro("label", [](const VolumeInfo& info) { return decoded(info.label); })
      .def_ro("uuid", &VolumeInfo::uuid)
      .def_prop_ro(
          "writer", [](const VolumeInfo& info) { return decoded(info.writer); },
          "The kernel or tool that wrote the superblock.")
      .def_ro("features", &VolumeInfo::features)
      .def_ro("block_count", &VolumeInfo::block_count, "Of 4 KiB.")
      .def_ro("segment_count", &VolumeInfo::segment_count)
      .def_ro("main_segments", &VolumeInfo::main_segments)
      .def_ro("free_segments", &VolumeInfo::free_segments)
      .def_ro("checkpoint_version", &VolumeInfo::checkpoint_version)
      .def_ro("checkpoint_pack", &VolumeInfo::checkpoint_pack)
      .def_ro("checkpoint_flags", &VolumeInfo::checkpoint_flags)
      .def_ro("clean", &VolumeInfo::clean, "It had been unmounted properly.");
}

void define_memory(nb::module_& module) {
  report<MemoryPartReport>(module, "MemoryPart",
                           "What one part of a volume takes of memory, in bytes.")
      .def_ro("name", &MemoryPartReport::name)
      .def_ro("of_ssd", &MemoryPartReport::of_ssd,
              "A virtual SSD's own, and not the file system's.")
      .def_ro("device_bytes", &MemoryPartReport::device_bytes, "In the backend's memory.")
      .def_ro("host_bytes", &MemoryPartReport::host_bytes,
              "On a GPU: in pinned memory of the host.")
      .def_ro("in_use", &MemoryPartReport::in_use, "Of these; None where it cannot be told.")
      .def_prop_ro("bytes", &MemoryPartReport::bytes);
  report<CachedPages>(module, "CachedPages",
                      "Metadata blocks of one kind in the page cache, in bytes.")
      .def_ro("kind", &CachedPages::kind, "'nodes', 'directories', 'nat' or 'others'.")
      .def_ro("bytes", &CachedPages::bytes)
      .def_ro("dirty_bytes", &CachedPages::dirty_bytes, "Of these: newer than the disk.");
  report<MemoryReport>(module, "MemoryReport", "What a volume takes of memory, in bytes.")
      .def_ro("parts", &MemoryReport::parts)
      .def_ro("cached", &MemoryReport::cached)
      .def_ro("filesystem_bytes", &MemoryReport::filesystem_bytes,
              "Sum of the parts, but for the virtual SSD's.")
      .def_ro("ssd_bytes", &MemoryReport::ssd_bytes, "Sum of these.");
}

void define_cleaning(nb::module_& module) {
  report<CleaningReport>(module, "CleaningReport", "What cleaning has done.")
      .def_ro("segments", &CleaningReport::segments, "Segments that were emptied.")
      .def_ro("data_blocks", &CleaningReport::data_blocks)
      .def_ro("directory_blocks", &CleaningReport::directory_blocks)
      .def_ro("node_blocks", &CleaningReport::node_blocks)
      .def_ro("left_blocks", &CleaningReport::left_blocks, "In segments that could not be emptied.")
      .def_ro("free_segments_before", &CleaningReport::free_segments_before)
      .def_ro("free_segments", &CleaningReport::free_segments);
}

/// A dict of what is counted by kind, with the kinds' names.
template <typename Count, size_t kKinds>
nb::dict by_kind(const Count (&counts)[kKinds], const char* const (&names)[kKinds]) {
  nb::dict dict;
  for (size_t i = 0; i < kKinds; ++i) dict[names[i]] = counts[i];
  return dict;
}

void define_statistics(nb::module_& module) {
  report<OutcomeCounts>(module, "OutcomeCounts", "How often something went well, or not.")
      .def_ro("succeeded", &OutcomeCounts::succeeded)
      .def_ro("failed", &OutcomeCounts::failed);
  report<LookupCounts>(module, "LookupCounts", "How often what was looked up was in memory.")
      .def_ro("hits", &LookupCounts::hits)
      .def_ro("misses", &LookupCounts::misses);
  report<Statistics>(module, "Statistics",
                     "What a volume has done since it was mounted, and how it is now.")
      .def_prop_ro(
          "calls", [](const Statistics& seen) { return by_kind(seen.calls, kCallKindNames); },
          nb::for_getter(nb::sig("def calls(self) -> dict[str, OutcomeCounts]")),
          "By kind: 'open', 'close', 'read', 'write', 'sync', 'stat', 'readdir', 'name', "
          "'attribute', 'resize'.")
      .def_ro("bytes_read", &Statistics::bytes_read, "By calls.")
      .def_ro("bytes_written", &Statistics::bytes_written, "By calls.")
      .def_prop_ro(
          "commands",
          [](const Statistics& seen) { return by_kind(seen.commands, kCommandKindNames); },
          nb::for_getter(nb::sig("def commands(self) -> dict[str, OutcomeCounts]")),
          "NVMe commands that have completed: 'read', 'write', 'flush', 'deallocate'.")
      .def_ro("ssd_bytes_read", &Statistics::ssd_bytes_read, "By commands.")
      .def_ro("ssd_bytes_written", &Statistics::ssd_bytes_written, "By commands.")
      .def_ro("command_timeouts", &Statistics::command_timeouts)
      .def_ro("commands_under_way", &Statistics::commands_under_way)
      .def_prop_ro(
          "lookups", [](const Statistics& seen) { return by_kind(seen.lookups, kCacheKindNames); },
          nb::for_getter(nb::sig("def lookups(self) -> dict[str, LookupCounts]")),
          "By what was looked up: 'nodes', 'directories', 'nat', 'others', 'names', 'paths'.")
      .def_ro("cache_pages", &Statistics::cache_pages, "Of 4 KiB, for metadata.")
      .def_ro("dirty_pages", &Statistics::dirty_pages, "Of these: newer than the disk.")
      .def_ro("dirty_node_pages", &Statistics::dirty_node_pages, "Of these: nodes.")
      .def_prop_ro(
          "segments",
          [](const Statistics& seen) { return by_kind(seen.segments, kSegmentStateNames); },
          nb::for_getter(nb::sig("def segments(self) -> dict[str, int]")),
          "By state: 'free', 'prefree', 'dirty', 'valid'; 0 where it is mounted for reading.")
      .def_ro("checkpoints", &Statistics::checkpoints)
      .def_ro("cleaned_segments", &Statistics::cleaned_segments)
      .def_ro("moved_blocks", &Statistics::moved_blocks, "By cleaning.");
}

void define_command_times(nb::module_& module) {
  report<TimedCommands>(module, "TimedCommands", "NVMe commands of one kind that have ended.")
      .def_prop_ro(
          "counts",
          [](const TimedCommands& timed) {
            return std::vector<uint64_t>(std::begin(timed.counts), std::end(timed.counts));
          },
          "By how long each took. The first: up to 1 us; number i: more than 2**(i-1) and up to "
          "2**i us; the last: all that took longer.")
      .def_ro("total_ns", &TimedCommands::total_ns, "Of all of them.");
  report<CommandTimes>(module, "CommandTimes",
                       "How long NVMe commands have taken since the volume was mounted.")
      .def_ro("ssds", &CommandTimes::ssds, "Whose commands are timed.")
      .def_prop_ro(
          "commands",
          [](const CommandTimes& times) { return by_kind(times.kinds, kCommandKindNames); },
          nb::for_getter(nb::sig("def commands(self) -> dict[str, TimedCommands]")),
          "By kind: 'read', 'write', 'flush', 'deallocate'.")
      .def_ro("busy_ns", &CommandTimes::busy_ns,
              "While an SSD had a command under way; the sum over SSDs.")
      .def_ro("under_way", &CommandTimes::under_way, "Commands, now.");
}

}  // namespace

void define_reports(nb::module_& module) {
  define_stat(module);
  define_info(module);
  define_memory(module);
  define_cleaning(module);
  define_statistics(module);
  define_command_times(module);
}

}  // namespace gofs::python
