// SPDX-License-Identifier: Apache-2.0
//
// A volume as programs of this process reach it: mounted here (VolumeState), or by a server whose
// client this is (AttachedVolume). Volume (gofs/volume.hpp) is the skin around it; the command uses
// it directly.
//
// Calls may come from several threads.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gofs/command_times.hpp"
#include "gofs/volume.hpp"
#include "host/call_request.h"
#include "host/profiled.h"

namespace gofs::host {

class AnyVolume {
 public:
  virtual ~AnyVolume() = default;
  AnyVolume(const AnyVolume&) = delete;
  AnyVolume& operator=(const AnyVolume&) = delete;

  /// As it was given: a spec, or the path of a server's socket. Begins what is said of all of it.
  virtual const std::string& name() const = 0;
  /// For kernels; false where none can use it.
  virtual VolumeHandle device() const = 0;
  /// The paths of the images and block devices that the volume lies on, where they are known.
  virtual std::vector<std::string> storage_paths() const = 0;

  /// An answer where there is none, since the backend has not run the call. No errno.
  static constexpr int kNotRun = -(1 << 20);
  /// Makes a call of the file system.
  CallAnswer call(const CallRequest& request) {
    const Profiled profiled(request::row_of(request.verb).name, request.bytes);
    return make(request);
  }
  /// A call that answers with a struct.
  template <typename Struct>
  CallAnswer call(CallRequest request, Struct& result) {
    request.buffer = &result;
    request.bytes = sizeof(result);
    return call(request);
  }
  /// A call takes no more bytes of its buffer than these, and others may be under way beside it.
  virtual uint64_t part_bytes() const { return ~uint64_t{0}; }
  /// Makes calls that do not depend on each other, in any order, perhaps at once. `answers` has as
  /// many elements.
  void call_all(std::span<const CallRequest> requests, std::span<CallAnswer> answers) {
    if (requests.empty()) return;
    const Profiled profiled(request::row_of(requests[0].verb).name, requests.size());
    make_all(requests, answers);
  }

  /// Whether calls reach all of this memory, which threads of the host do not
  /// (CallRequest::is_direct).
  virtual bool reaches(const void* memory, uint64_t bytes) {
    (void)memory;
    (void)bytes;
    return false;
  }

  /// Reads into memory of the host by calls. Bytes, fewer than all only where the file ends; or a
  /// negative errno, or kNotRun.
  int64_t read_range(const IoRange& range);
  /// The same of several ranges, or of a long one, in a way of its own: `results[i]` is that of
  /// `ranges[i]`. False: there is no such way, or not now, or it is not worth it.
  virtual bool read_staged(std::span<const IoRange> ranges, std::span<int64_t> results) {
    (void)ranges;
    (void)results;
    return false;
  }
  /// Moves ranges of any memory, as Volume::read_ranges() has it, by calls that do not depend on
  /// each other; of a GPU's behind what was enqueued on `stream`, and waits. Never kNotRun.
  /// -EOPNOTSUPP where the stream is captured, -EFAULT where the driver copies nothing.
  std::vector<int64_t> move_ranges(bool writes, std::span<const IoRange> ranges,
                                   CUstream_st* stream);

  // As Volume has them.
  /// Volume::read_ranges(), or write_ranges(). Here: by move_ranges().
  virtual Expected<std::shared_ptr<RangeWork>> begin_ranges(bool writes,
                                                            const std::vector<IoRange>& ranges,
                                                            CUstream_st* stream);
  virtual Expected<std::vector<int>> create_files(const std::string& path,
                                                  const std::vector<NewFile>& files,
                                                  uint32_t permissions) = 0;
  virtual CleaningReport cleaning_totals() const = 0;
  virtual ClockReport clock() const = 0;
  virtual Expected<CleaningReport> collect_garbage(const CleaningOptions& options) = 0;
  virtual Expected<void> sync() = 0;
  /// `verb`: kFsync or kFdatasync.
  virtual Expected<void> fsync(request::Verb verb, int descriptor) = 0;
  virtual Expected<void> unmount() = 0;
  virtual VolumeInfo info() const = 0;
  virtual Expected<MemoryReport> memory() = 0;
  virtual Expected<CommandTimes> command_times() = 0;
  virtual std::vector<std::string> warnings() = 0;
  virtual Expected<BufferHandle> register_buffer(void* memory, uint64_t bytes) = 0;
  virtual Expected<void> unregister_buffer(BufferHandle buffer) = 0;

  /// An error about `subject` (a path, or what else the message shall begin with), with all that is
  /// known about its cause. `ino` is the inode at fault, if known: of several findings of damage
  /// its own is then reported. kNotRun becomes EIO.
  virtual Error explain(int64_t negative_errno, const std::string& subject, uint64_t ino = 0) = 0;
  /// The same of a call about two paths, "from -> to": either may be at fault.
  virtual Error explain(int64_t negative_errno, const std::string& from, const std::string& to) = 0;
  /// What else explain() has to say of damage of inode `ino` (0: any), each finding once, and
  /// whether there was more than could be noted.
  virtual std::vector<std::string> more_damage(uint64_t ino) = 0;
  /// Why a host program's buffer of `bytes` cannot be used (EFAULT): it is null, or not memory of
  /// the host. Empty: it can be.
  virtual std::string refuses_buffer(const void* buffer, uint64_t bytes) const = 0;

  /// Which path a descriptor was opened by: for messages.
  virtual void name_descriptor(int descriptor, const std::string& path) = 0;
  virtual std::string descriptor_name(int descriptor) = 0;

 protected:
  AnyVolume() = default;

  /// call() and call_all(), which profilers see.
  virtual CallAnswer make(const CallRequest& request) = 0;
  virtual void make_all(std::span<const CallRequest> requests, std::span<CallAnswer> answers) {
    for (size_t i = 0; i < requests.size(); ++i) answers[i] = make(requests[i]);
  }
};

/// Which paths descriptors were opened by. From any thread.
class DescriptorNames {
 public:
  void set(int descriptor, const std::string& path) {
    const std::lock_guard lock(mutex_);
    try {
      names_[descriptor] = path;
    } catch (const std::bad_alloc&) {
      names_.erase(descriptor);  // messages have its number; it is open all the same
    }
  }
  std::string of(int descriptor) const {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(descriptor);
    return found != names_.end() ? found->second : number(descriptor);
  }
  /// Where nothing else is known.
  static std::string number(int descriptor) { return "descriptor " + std::to_string(descriptor); }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<int, std::string> names_;
};

}  // namespace gofs::host
