// SPDX-License-Identifier: Apache-2.0
//
// A volume that a server has mounted, as one of its clients has it: calls go through a channel.
//
// A server that ends takes the channel with it, and all that this client had open. The next call
// attaches to the server that has come instead, and waits for it for a while. A descriptor of
// before answers -ESTALE (serve/descriptor_base.h).
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "host/any_volume.h"
#include "host/process_mark.h"
#include "host/registered_buffers.h"
#include "host/serve/channel_client.h"

namespace gofs::host {

class KernelEnd;
struct Question;
struct ServedInfo;

class AttachedVolume final : public AnyVolume {
 public:
  /// Errors: what attach_at() has.
  static Expected<std::unique_ptr<AttachedVolume>> attach(const std::string& path,
                                                          const AttachOptions& options);
  ~AttachedVolume() override;

  const std::string& name() const override { return path_; }
  /// Of a channel for kernels, which the first call opens; false where there is none, and
  /// warnings() says why. After the server has ended there is another one: kernels that have the
  /// old one get -ESTALE, for as long as this object is there.
  VolumeHandle device() const override;
  std::vector<std::string> storage_paths() const override { return {}; }

  uint64_t part_bytes() const override;

  bool reaches(const void* memory, uint64_t bytes) override;
  Expected<std::shared_ptr<RangeWork>> begin_ranges(bool writes, const std::vector<IoRange>& ranges,
                                                    CUstream_st* stream) override;
  Expected<std::vector<int>> create_files(const std::string& path,
                                          const std::vector<NewFile>& files,
                                          uint32_t permissions) override;
  CleaningReport cleaning_totals() const override;
  ClockReport clock() const override;
  Expected<CleaningReport> collect_garbage(const CleaningOptions& options) override;
  /// ESTALE, once, where a server has ended since the last sync() after this client had changed
  /// something, or its kernels may have: that may be lost.
  Expected<void> sync() override;
  Expected<void> fsync(request::Verb verb, int descriptor) override;
  /// sync(), and this client goes: its descriptors are closed.
  Expected<void> unmount() override;
  VolumeInfo info() const override;
  Expected<MemoryReport> memory() override;
  Expected<CommandTimes> command_times() override;
  std::vector<std::string> warnings() override;
  Expected<BufferHandle> register_buffer(void* memory, uint64_t bytes) override;
  Expected<void> unregister_buffer(BufferHandle buffer) override;

  Error explain(int64_t negative_errno, const std::string& subject, uint64_t ino = 0) override;
  Error explain(int64_t negative_errno, const std::string& from, const std::string& to) override;
  std::vector<std::string> more_damage(uint64_t) override { return {}; }
  std::string refuses_buffer(const void* buffer, uint64_t bytes) const override;
  void name_descriptor(int descriptor, const std::string& path) override;
  std::string descriptor_name(int descriptor) override;

 private:
  /// -ESTALE also where the server has ended while a call was under way that cannot be made again,
  /// or was made again and the next one has ended as well: whether it has had an effect is not
  /// known. -ENOTCONN: no server is there.
  CallAnswer make(const CallRequest& request) override;
  /// At once, as far as the channel has room.
  void make_all(std::span<const CallRequest> requests, std::span<CallAnswer> answers) override;

  struct Link;  // to one server
  using Clock = std::chrono::steady_clock;

  AttachedVolume(std::string path, const AttachOptions& options, std::unique_ptr<Link> link);
  std::shared_ptr<Link> link() const;
  std::shared_ptr<Link> attach_again() const;
  std::shared_ptr<Link> link_for(const CallRequest& request) const;
  std::optional<CallAnswer> try_call(const CallRequest& request);
  int64_t no_server() const;
  int64_t translate(Link& link, CallRequest& request);
  bool is_answered(Link& link, const CallRequest& request, CallAnswer& answer);
  std::unique_ptr<KernelEnd> open_for_kernels(Link& link, std::string& problem) const;
  void open_windows(Link& link, bool may_wait) const;
  bool open_window(Link& link, WindowOfClient& window, bool may_wait) const;
  void close_window(Link& link, const void* memory);
  Expected<std::string> ask(const Question& question) const;
  template <typename Found>
  Expected<Found> ask_for(const Question& question) const;
  Expected<ServedInfo> served_info() const;
  Error not_ours() const;

  const ProcessMark process_ = ProcessMark::of_this_process();
  const std::string path_;
  const AttachOptions options_;

  mutable std::mutex opening_;  // of a channel for kernels, and windows; taken before the other
  mutable std::mutex mutex_;    // of all down to the blank line
  mutable std::shared_ptr<Link> link_;
  mutable std::vector<std::shared_ptr<Link>> former_;  // whose channels kernels may still use
  mutable std::string no_device_;                      // why there is no channel for kernels
  mutable uint64_t links_ = 1;                         // that there were
  mutable bool has_lost_ = false;                      // what this client has changed, perhaps
  mutable std::string refusal_;                        // why there is no server
  mutable Clock::time_point refused_at_{};             // when that was found
  uint64_t told_links_ = 1;                            // by warnings()
  bool ended_ = false;

  DescriptorNames descriptor_names_;
  RegisteredBuffers buffers_;
};

}  // namespace gofs::host
