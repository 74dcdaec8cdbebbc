// SPDX-License-Identifier: Apache-2.0
//
// What a client and its server say at their connection, once the greeting is over: the client asks,
// the server answers, in turn, a message each. Calls of the file system do not go this way.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "gofs/command_times.hpp"
#include "gofs/volume.hpp"
#include "host/serve/packing.h"
#include "ssd/descriptor.h"
#include "vfs/credentials.h"

namespace gofs::host {

/// The last four are for root and for the user of the server; EPERM.
enum class Ask : uint32_t {
  kInfo,          // -> ServedInfo
  kStatus,        // -> ServerStatus, a part of it: status_of()
  kCommandTimes,  // -> CommandTimes
  // -> KernelRing, with its memory: a second channel of the client's own, in the place of one that
  // it had; EBUSY where calls are under way there.
  kForKernels,
  kCloseWindow,  // `window`, which no call names any more
  // MemoryName, perhaps with a descriptor -> the number of a window, for the calls of all channels
  // of the client. Whoever has a name of a GPU's memory reaches it, so the server takes it only of
  // those who could do so themselves.
  kOpenWindow,
  kCollectGarbage,  // CleaningOptions -> CleaningReport
  kDrain,           // from now on no new client is taken
  kStop,            // all clients are ended; the answer comes when the volume is unmounted
};

/// Memory of a GPU that a client has, and what part of it is to be a window.
struct MemoryName {
  std::string handle;    // kernels::ForeignMemory::handle
  uint64_t whole_bytes;  // kernels::ForeignMemory::whole_bytes
  uint64_t offset;       // in that
  uint64_t bytes;
};

struct Question {
  Ask ask;
  CleaningOptions cleaning{};
  uint32_t from = 0;    // of kStatus: the first channel
  uint32_t window = 0;  // of kCloseWindow
  MemoryName memory{};  // of kOpenWindow
};

struct Answer {
  int32_t error;      // an errno
  std::string words;  // about it
  std::string found;  // what was asked for, packed
};

struct ServedInfo {
  VolumeInfo volume;
  MemoryReport memory;
  ClockReport clock;
  CleaningReport cleaning;
};

/// A channel for kernels.
struct KernelRing {
  bool of_gpu;  // it lies in memory of a GPU
  uint64_t bytes;
};

struct ClientStatus {
  uint32_t channel;
  uint32_t uid;
  uint32_t gid;
  int32_t pid;
  uint64_t calls;             // that were taken
  bool leaving;               // its process has gone, and a call of it is under way
  uint64_t window_bytes = 0;  // of memory of its own that the server reaches
};

struct ServerStatus {
  std::string volume;
  int32_t pid;
  uint32_t threads;
  bool draining;
  std::vector<ClientStatus> clients;  // by their channels
  uint32_t next = 0;                  // the first channel of the next part; 0: this is the last one
};
/// In a part are no more.
inline constexpr size_t kClientsOfPart = 1024;

/// Whether who is at the other end may do what this process may: its user, and root.
bool is_trusted(const vfs::Credentials& who);

/// Whether it is answered at once, also while another question takes long.
constexpr bool is_quick(Ask ask) {
  return ask == Ask::kStatus || ask == Ask::kCommandTimes || ask == Ask::kOpenWindow ||
         ask == Ask::kCloseWindow;
}

/// No message has more bytes.
inline constexpr size_t kControlBytesMax = 64 * 1024;

/// The message that has come. Empty: the other end has hung up, or what it says is none. What comes
/// with it is dropped unseen (message.h) where nobody wants it.
std::string receive_control(const ssd::Descriptor& connection,
                            std::vector<ssd::Descriptor>* descriptors = nullptr);
/// False: it cannot be sent at once.
bool send_control(const ssd::Descriptor& connection, const std::string& bytes,
                  std::span<const int> descriptors = {});

/// A client's end of it. Any thread may ask, one at a time.
class ControlLine {
 public:
  /// Emptying segments takes long.
  static constexpr std::chrono::milliseconds kAnswerTimeout{600'000};

  /// `connection` outlives it.
  explicit ControlLine(const ssd::Descriptor& connection,
                       std::chrono::milliseconds timeout = kAnswerTimeout)
      : connection_(connection), timeout_(timeout) {}

  /// Asks, waits, and gives what was found, and what has come with it. Throws std::system_error:
  /// the answer's error, ESTALE where the server has gone, EPROTO; ETIMEDOUT, also for all
  /// questions after one whose answer has not come: it would be taken for theirs. `with` goes
  /// along, if it is open; EPERM where the server takes none of this user's.
  std::string ask(const Question& question, std::vector<ssd::Descriptor>* descriptors = nullptr,
                  const ssd::Descriptor& with = {});
  /// The same where no other question is under way; EBUSY.
  std::string ask_at_once(const Question& question, const ssd::Descriptor& with);

  const ssd::Descriptor& connection() const { return connection_; }

 private:
  std::string ask_next(const Question& question, std::vector<ssd::Descriptor>* descriptors,
                       const ssd::Descriptor& with);

  const ssd::Descriptor& connection_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;  // of a question and its answer
  bool is_in_step_ = true;
};

/// The only question at a connection, or one after which there was an answer to each. Throws as
/// ControlLine::ask().
std::string ask_server(const ssd::Descriptor& connection, const Question& question,
                       std::vector<ssd::Descriptor>* descriptors = nullptr);

/// All parts of it: who comes or goes meanwhile may be missing. Throws as ControlLine::ask().
ServerStatus status_of(const ssd::Descriptor& connection);

template <typename Struct>
std::string packed(const Struct& it) {
  Packer packer;
  packer(it);
  return std::move(packer.bytes);
}

/// Throws std::system_error (EPROTO).
template <typename Struct>
Struct unpacked(const std::string& bytes) {
  Struct it{};
  Unpacker unpack(bytes);
  unpack(it);
  if (!unpack.is_at_end()) ssd::fail_with(EPROTO, "a message that goes on");
  return it;
}

template <typename Archive>
void fields(Archive& archive, CleaningOptions& it) {
  archive(it.segments_max, it.emptiest_first);
}
template <typename Archive>
void fields(Archive& archive, MemoryName& it) {
  archive(it.handle, it.whole_bytes, it.offset, it.bytes);
}
template <typename Archive>
void fields(Archive& archive, Question& it) {
  archive(it.ask, it.cleaning, it.from, it.window, it.memory);
}
template <typename Archive>
void fields(Archive& archive, Answer& it) {
  archive(it.error, it.words, it.found);
}
template <typename Archive>
void fields(Archive& archive, VolumeInfo& it) {
  archive(it.spec, it.backend, it.backend_detail, it.ssd, it.ssd_bytes, it.lba_bytes, it.queues,
          it.queue_depth, it.transfer_bytes_max, it.mode, it.ablations, it.label, it.uuid,
          it.writer, it.features, it.block_count, it.segment_count, it.main_segments,
          it.free_segments, it.checkpoint_version, it.checkpoint_pack, it.checkpoint_flags,
          it.clean);
}
template <typename Archive>
void fields(Archive& archive, MemoryPartReport& it) {
  archive(it.name, it.of_ssd, it.device_bytes, it.host_bytes, it.in_use);
}
template <typename Archive>
void fields(Archive& archive, CachedPages& it) {
  archive(it.kind, it.bytes, it.dirty_bytes);
}
template <typename Archive>
void fields(Archive& archive, MemoryReport& it) {
  archive(it.parts, it.cached, it.filesystem_bytes, it.ssd_bytes);
}
template <typename Archive>
void fields(Archive& archive, ClockReport& it) {
  archive(it.looks, it.error_ns, it.late_ns, it.drift_ppm);
}
template <typename Archive>
void fields(Archive& archive, CleaningReport& it) {
  archive(it.segments, it.data_blocks, it.directory_blocks, it.node_blocks, it.left_blocks,
          it.free_segments_before, it.free_segments);
}
template <typename Archive>
void fields(Archive& archive, ServedInfo& it) {
  archive(it.volume, it.memory, it.clock, it.cleaning);
}
template <typename Archive>
void fields(Archive& archive, TimedCommands& it) {
  for (uint64_t& count : it.counts) archive(count);
  archive(it.total_ns);
}
template <typename Archive>
void fields(Archive& archive, CommandTimes& it) {
  archive(it.ssds, it.busy_ns, it.under_way);
  for (TimedCommands& kind : it.kinds) archive(kind);
}
template <typename Archive>
void fields(Archive& archive, KernelRing& it) {
  archive(it.of_gpu, it.bytes);
}
template <typename Archive>
void fields(Archive& archive, ClientStatus& it) {
  archive(it.channel, it.uid, it.gid, it.pid, it.calls, it.leaving, it.window_bytes);
}
template <typename Archive>
void fields(Archive& archive, ServerStatus& it) {
  archive(it.volume, it.pid, it.threads, it.draining, it.clients, it.next);
}

}  // namespace gofs::host
