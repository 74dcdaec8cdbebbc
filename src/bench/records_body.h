// SPDX-License-Identifier: Apache-2.0
//
// Records that many warps or threads append to one log, each with one write() under way at a time;
// and a warp that reads the log meanwhile and checks each record that it finds.
//
// A record of at least 8 bytes begins with the number of its writer and how manieth it is of that
// writer's; all that follows is known from these two.
#pragma once

#include "bench/write_body.h"

namespace gofs::bench {

struct RecordsParams {
  vfs::Filesystem* fs;
  bool by_threads;  // each lane is a writer; else each warp
  uint32_t writers;
  uint32_t records;      // of each writer, at most
  uint64_t time_ns;      // for which a writer begins new ones; the first it writes in any case
  uint32_t bytes;        // of a record
  int log;               // opened to append
  int reader;            // the same file; below 0: nothing reads it
  uint32_t read_bytes;   // at a time
  uint8_t* buffers;      // record_stride() for each writer
  uint8_t* read_buffer;  // read_bytes
  uint32_t* done;        // records of each writer
};

struct RecordsResults {
  uint64_t first_ns = ~uint64_t{0};  // start of the earliest and end of the latest writer, on the
  uint64_t last_ns = 0;              // backend's clock
  uint64_t records = 0;
  uint64_t longest_ns = 0;  // of one write
  uint64_t records_read = 0;
  uint64_t wrong = 0;       // of these
  uint32_t warps_done = 0;  // of writers
  int error = 0;
};

struct RecordsJob {
  RecordsParams params;
  RecordsResults results;
};

GOFS_HD constexpr uint64_t record_stride(uint32_t bytes) {
  return simt::align_up(uint64_t{bytes}, uint64_t{16});
}

inline constexpr uint32_t kRecordHead = 8;

/// Byte `at` of a record, behind its head.
GOFS_HD constexpr uint8_t record_byte(uint32_t writer, uint32_t number, uint32_t at) {
  return static_cast<uint8_t>(writer * 31 + number * 7 + at * 3 + 1);
}

/// Whether `data` is a whole record of one of `writers`; those that are too short for a head all
/// look the same.
GOFS_HD inline bool is_record(const uint8_t* data, uint32_t bytes, uint32_t writers,
                              uint32_t& writer, uint32_t& number) {
  writer = 0;
  number = 0;
  uint32_t at = 0;
  if (bytes >= kRecordHead) {
    for (uint32_t i = 0; i < 4; ++i) {
      writer |= uint32_t{data[i]} << 8 * i;
      number |= uint32_t{data[4 + i]} << 8 * i;
    }
    at = kRecordHead;
  }
  if (writer >= writers) return false;
  for (; at < bytes; ++at) {
    if (data[at] != record_byte(writer, number, at)) return false;
  }
  return true;
}

namespace detail {

/// Part `part` of `parts` of a record.
GOFS_HD inline void make_record(uint8_t* data, uint32_t bytes, uint32_t writer, uint32_t number,
                                uint32_t part, uint32_t parts) {
  const bool headed = bytes >= kRecordHead;
  for (uint32_t at = part; at < bytes; at += parts) {
    if (headed && at < kRecordHead) {
      data[at] = static_cast<uint8_t>((at < 4 ? writer : number) >> 8 * (at % 4));
    } else {
      data[at] = record_byte(headed ? writer : 0, headed ? number : 0, at);
    }
  }
}

template <typename Api>
GOFS_DEVICE void append_records_by_warp(simt::AnyWarp auto warp, uint32_t writer,
                                        const RecordsParams& params, WriteTally& tally) {
  const bool leader = warp.thread_rank() == 0;
  uint8_t* const buffer = params.buffers + writer * record_stride(params.bytes);
  uint64_t now_ns = simt::now_ns();
  const uint64_t end_ns = now_ns + params.time_ns;
  for (uint32_t number = 0; number < params.records; ++number) {
    if (number != 0 && warp.shfl(now_ns >= end_ns ? 1u : 0u, 0) != 0) break;
    make_record(buffer, params.bytes, writer, number, warp.thread_rank(), warp.size());
    warp.sync();
    const int64_t put = Api::write_by_warp(warp, *params.fs, params.log, buffer, params.bytes);
    if (put != params.bytes) {
      if (leader) tally.error = put < 0 ? static_cast<int>(put) : -EIO;
      break;
    }
    const uint64_t after_ns = simt::now_ns();
    if (leader) {
      ++tally.writes;
      tally.longest_ns = simt::max(tally.longest_ns, after_ns - now_ns);
    }
    now_ns = after_ns;
  }
  if (leader) params.done[writer] = tally.writes;
}

template <typename Api>
GOFS_DEVICE void append_records_by_thread(uint32_t writer, const RecordsParams& params,
                                          WriteTally& tally) {
  uint8_t* const buffer = params.buffers + writer * record_stride(params.bytes);
  uint64_t now_ns = simt::now_ns();
  const uint64_t end_ns = now_ns + params.time_ns;
  for (uint32_t number = 0; number < params.records; ++number) {
    if (number != 0 && now_ns >= end_ns) break;
    make_record(buffer, params.bytes, writer, number, 0, 1);
    const int64_t put = Api::write_by_thread(*params.fs, params.log, buffer, params.bytes);
    if (put != params.bytes) {
      tally.error = put < 0 ? static_cast<int>(put) : -EIO;
      break;
    }
    ++tally.writes;
    const uint64_t after_ns = simt::now_ns();
    tally.longest_ns = simt::max(tally.longest_ns, after_ns - now_ns);
    now_ns = after_ns;
  }
  params.done[writer] = tally.writes;
}

/// Reads the log from the beginning until its writers have gone and it has ended. Collective.
template <typename Api>
GOFS_DEVICE void follow_log(simt::AnyWarp auto warp, uint32_t writing_warps, RecordsJob& job,
                            const RecordsParams& params) {
  const uint64_t whole = params.read_bytes / params.bytes * params.bytes;
  uint64_t position = 0;
  for (;;) {
    const uint32_t gone = warp.shfl(simt::load_acquire(job.results.warps_done), 0);
    const int64_t got =
        Api::pread_by_warp(warp, *params.fs, params.reader, params.read_buffer, whole, position);
    if (got < 0) {
      if (warp.thread_rank() == 0) simt::store_relaxed(job.results.error, static_cast<int>(got));
      return;
    }
    const uint64_t count = static_cast<uint64_t>(got) / params.bytes;
    uint64_t wrong = 0;
    for (uint64_t i = warp.thread_rank(); i < count; i += warp.size()) {
      uint32_t writer = 0;
      uint32_t number = 0;
      if (!is_record(params.read_buffer + i * params.bytes, params.bytes, params.writers, writer,
                     number)) {
        ++wrong;
      }
    }
    wrong = simt::reduce_add(warp, wrong);
    // The file grows by whole records.
    if (static_cast<uint64_t>(got) % params.bytes != 0) ++wrong;
    if (warp.thread_rank() == 0) {
      simt::add_relaxed(job.results.records_read, count);
      simt::add_relaxed(job.results.wrong, wrong);
    }
    warp.sync();
    position += count * params.bytes;
    if (count == 0 && gone == writing_warps) return;
  }
}

}  // namespace detail

/// The last warp reads, if one is to.
template <typename Api>
GOFS_DEVICE void records_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                              RecordsJob& job) {
  const RecordsParams params = job.params;
  const uint32_t per_warp = params.by_threads ? warp.size() : 1;
  const auto writing = static_cast<uint32_t>(simt::divide_up(params.writers, per_warp));
  if (warp_index >= writing) {
    if (warp_index == writing && params.reader >= 0) {
      detail::follow_log<Api>(warp, writing, job, params);
    }
    return;
  }
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint64_t>(job.results.first_ns)
        .fetch_min(simt::now_ns(), simt::memory_order_relaxed);
  }
  warp.sync();
  detail::WriteTally tally;
  if (!params.by_threads) {
    detail::append_records_by_warp<Api>(warp, warp_index, params, tally);
  } else {
    const uint32_t writer = warp_index * warp.size() + warp.thread_rank();
    if (writer < params.writers) {
      detail::append_records_by_thread<Api>(writer, params, tally);
    }
  }
  warp.sync();
  const uint64_t records = simt::reduce_add(warp, uint64_t{tally.writes});
  const uint64_t longest_ns = simt::reduce_max(warp, tally.longest_ns);
  const int error = simt::first_error(warp, tally.error);
  if (warp.thread_rank() != 0) return;
  RecordsResults& results = job.results;
  simt::AtomicRef<uint64_t>(results.last_ns).fetch_max(simt::now_ns(), simt::memory_order_relaxed);
  simt::AtomicRef<uint64_t>(results.longest_ns).fetch_max(longest_ns, simt::memory_order_relaxed);
  simt::add_relaxed(results.records, records);
  if (error != 0) simt::store_relaxed(results.error, error);
  simt::AtomicRef<uint32_t>(results.warps_done).fetch_add(1, simt::memory_order_release);
}

}  // namespace gofs::bench
