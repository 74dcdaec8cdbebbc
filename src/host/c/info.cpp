// SPDX-License-Identifier: Apache-2.0
//
// gofs/gofs.h: what is mounted, what it takes, and what cleaning does.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "host/c/call.h"
#include "host/c/give.h"
#include "host/messages.h"

namespace gofs::host::c {

namespace {

std::optional<std::string> text_of(const VolumeInfo& info, int what) {
  switch (what) {
    case GOFS_INFO_SPEC:
      return info.spec;
    case GOFS_INFO_BACKEND:
      return info.backend;
    case GOFS_INFO_BACKEND_DETAIL:
      return info.backend_detail;
    case GOFS_INFO_SSD:
      return info.ssd;
    case GOFS_INFO_MODE:
      return info.mode;
    case GOFS_INFO_ABLATIONS:
      return joined(info.ablations, ",");
    case GOFS_INFO_LABEL:
      return info.label;
    case GOFS_INFO_UUID:
      return info.uuid;
    case GOFS_INFO_WRITER:
      return info.writer;
    case GOFS_INFO_FEATURES:
      return joined(info.features, ",");
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> number_of(const VolumeInfo& info, int what) {
  switch (what) {
    case GOFS_INFO_SSD_BYTES:
      return info.ssd_bytes;
    case GOFS_INFO_LBA_BYTES:
      return info.lba_bytes;
    case GOFS_INFO_QUEUES:
      return info.queues;
    case GOFS_INFO_QUEUE_DEPTH:
      return info.queue_depth;
    case GOFS_INFO_TRANSFER_BYTES_MAX:
      return info.transfer_bytes_max;
    case GOFS_INFO_BLOCK_COUNT:
      return info.block_count;
    case GOFS_INFO_SEGMENT_COUNT:
      return info.segment_count;
    case GOFS_INFO_MAIN_SEGMENTS:
      return info.main_segments;
    case GOFS_INFO_FREE_SEGMENTS:
      return info.free_segments;
    case GOFS_INFO_CHECKPOINT_VERSION:
      return info.checkpoint_version;
    case GOFS_INFO_CHECKPOINT_PACK:
      return info.checkpoint_pack;
    case GOFS_INFO_CHECKPOINT_FLAGS:
      return info.checkpoint_flags;
    case GOFS_INFO_CLEAN:
      return info.clean ? 1 : 0;
    default:
      return std::nullopt;
  }
}

/// Names that C gets in a struct are short and GoFS's own.
template <size_t kBytes>
void give_name(const std::string& name, char (&to)[kBytes]) {
  const size_t length = std::min(name.size(), kBytes - 1);
  std::memcpy(to, name.data(), length);
  std::memset(to + length, 0, kBytes - length);
}

gofs_memory_part_t plain(const MemoryPartReport& part) {
  gofs_memory_part_t out{};
  give_name(part.name, out.name);
  out.device_bytes = part.device_bytes;
  out.host_bytes = part.host_bytes;
  out.in_use_bytes = part.in_use ? static_cast<int64_t>(*part.in_use) : -1;
  out.of_ssd = part.of_ssd ? 1 : 0;
  return out;
}

gofs_cached_pages_t plain(const CachedPages& pages) {
  gofs_cached_pages_t out{};
  give_name(pages.kind, out.kind);
  out.bytes = pages.bytes;
  out.dirty_bytes = pages.dirty_bytes;
  return out;
}

gofs_cleaning_report_t plain(const CleaningReport& report) {
  gofs_cleaning_report_t out{};
  out.segments = report.segments;
  out.data_blocks = report.data_blocks;
  out.directory_blocks = report.directory_blocks;
  out.node_blocks = report.node_blocks;
  out.left_blocks = report.left_blocks;
  out.free_segments_before = report.free_segments_before;
  out.free_segments = report.free_segments;
  return out;
}

/// Fills an array of the caller's with all that fit, and says how many there are.
template <typename From, typename To>
int64_t give_list(const std::vector<From>& list, To* to, uint64_t count) {
  if (count != 0 && to == nullptr) return fail(EINVAL, {"the array is null"});
  const size_t fit = std::min<uint64_t>(list.size(), count);
  for (size_t i = 0; i < fit; ++i) to[i] = plain(list[i]);
  return static_cast<int64_t>(list.size());
}

int collect_garbage(Volume& volume, const gofs_cleaning_options_t* options,
                    gofs_cleaning_report_t* report) {
  gofs_cleaning_options_t given;
  if (const int error = take_struct(options, given); error < 0) return error;
  // Before anything is done: a report that cannot be given is no success.
  if (report != nullptr) {
    if (const int64_t error = struct_bytes_of(report); error < 0) return static_cast<int>(error);
  }
  const auto done = volume.collect_garbage(
      {.segments_max = given.segments_max, .emptiest_first = given.emptiest_first != 0});
  if (!done) return fail(done.error());
  return report != nullptr ? give_struct(plain(*done), report) : 0;
}

}  // namespace

}  // namespace gofs::host::c

using namespace gofs::host::c;

int64_t gofs_info_text(const gofs_volume* volume, int what, char* buffer, uint64_t bytes) {
  return call({{"volume", volume}}, [&]() -> int64_t {
    const auto text = text_of(volume->volume.info(), what);
    if (!text) return fail(EINVAL, {"there is no such text"});
    return give_text(*text, buffer, bytes);
  });
}

int gofs_info_number(const gofs_volume* volume, int what, uint64_t* number) {
  return call({{"volume", volume}, {"number", number}}, [&] {
    const auto found = number_of(volume->volume.info(), what);
    if (!found) return fail(EINVAL, {"there is no such number"});
    *number = *found;
    return 0;
  });
}

int gofs_statfs(gofs_volume* volume, gofs_filesystem_stat_t* stat) {
  return call({{"volume", volume}, {"stat", stat}},
              [&] { return give(volume->volume.statfs(), stat); });
}

int gofs_clock(const gofs_volume* volume, gofs_clock_report_t* report) {
  return call({{"volume", volume}, {"report", report}}, [&] {
    const gofs::ClockReport found = volume->volume.clock();
    gofs_clock_report_t out{};
    out.looks = found.looks;
    out.error_ns = found.error_ns;
    out.late_ns = found.late_ns;
    out.drift_ppm = found.drift_ppm;
    return give_struct(out, report);
  });
}

int64_t gofs_memory(gofs_volume* volume, gofs_memory_part_t* parts, uint64_t count) {
  return call({{"volume", volume}}, [&]() -> int64_t {
    const auto report = volume->volume.memory();
    return report ? give_list(report->parts, parts, count) : fail(report.error());
  });
}

int64_t gofs_cached_pages(gofs_volume* volume, gofs_cached_pages_t* kinds, uint64_t count) {
  return call({{"volume", volume}}, [&]() -> int64_t {
    const auto report = volume->volume.memory();
    return report ? give_list(report->cached, kinds, count) : fail(report.error());
  });
}

int gofs_statistics(gofs_volume* volume, gofs_statistics_t* statistics) {
  return call({{"volume", volume}, {"statistics", statistics}}, [&]() -> int {
    const auto found = volume->volume.statistics();
    if (!found) return fail(found.error());
    // layouts.cpp: what stands behind `struct_bytes` is alike.
    gofs_statistics_t out{};
    std::memcpy(&out.calls, &*found, sizeof(*found));
    return give_struct(out, statistics);
  });
}

int64_t gofs_warnings(gofs_volume* volume, void (*each)(void* context, const char* sentence),
                      void* context) {
  return call({{"volume", volume}, {"each", reinterpret_cast<const void*>(each)}}, [&] {
    const std::vector<std::string> sentences = volume->volume.warnings();
    for (const std::string& sentence : sentences) each(context, sentence.c_str());
    return static_cast<int64_t>(sentences.size());
  });
}

int gofs_collect_garbage(gofs_volume* volume, const gofs_cleaning_options_t* options,
                         gofs_cleaning_report_t* report) {
  return call({{"volume", volume}},
              [&] { return collect_garbage(volume->volume, options, report); });
}

int gofs_cleaning_totals(const gofs_volume* volume, gofs_cleaning_report_t* report) {
  return call({{"volume", volume}, {"report", report}},
              [&] { return give_struct(plain(volume->volume.cleaning_totals()), report); });
}

int gofs_register_buffer(gofs_volume* volume, void* memory, uint64_t bytes, uint64_t* id) {
  return call({{"volume", volume}, {"memory", memory}, {"id", id}}, [&] {
    const auto buffer = volume->volume.register_buffer(memory, bytes);
    if (!buffer) return fail(buffer.error());
    *id = buffer->id;
    return 0;
  });
}

int gofs_unregister_buffer(gofs_volume* volume, uint64_t id) {
  return call({{"volume", volume}}, [&] { return volume->volume.unregister_buffer({id}); });
}
