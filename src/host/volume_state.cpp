// SPDX-License-Identifier: Apache-2.0
#include "host/volume_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "host/ablations.h"
#include "host/attached_ssd.h"
#include "host/backends.h"
#include "host/clock_keeper.h"
#include "host/create_files.h"
#include "host/default_media.h"
#include "host/maintenance.h"
#include "host/messages.h"
#include "host/quiet_volume.h"
#include "host/stripe_members.h"
#include "kernels/bodies.h"
#include "kernels/call.h"
#include "ssd/descriptor.h"

namespace gofs::host {

namespace {

/// Room for what comes back from a call: enough directory entries for one launch to be worth it.
constexpr size_t kStagingBytes = VolumeState::kInputBytesMax;

std::string utf8_of_label(const uint16_t (&units)[format::kVolumeNameUnits]) {
  std::string text;
  for (size_t i = 0; i < std::size(units) && units[i] != 0; ++i) {
    uint32_t code = units[i];
    const bool pair = code >= 0xd800 && code < 0xdc00 && i + 1 < std::size(units) &&
                      units[i + 1] >= 0xdc00 && units[i + 1] < 0xe000;
    if (pair) {
      ++i;
      code = 0x10000 + ((code - 0xd800) << 10) + (units[i] - 0xdc00u);
    } else if (code >= 0xd800 && code < 0xe000) {
      code = 0xfffd;  // half of a pair: the replacement character
    }
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
      const uint32_t head = more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0;
      text += static_cast<char>(head | code >> (6 * more));
      for (int left = more - 1; left >= 0; --left) {
        text += static_cast<char>(0x80 | (code >> (6 * left) & 0x3f));
      }
    }
  }
  return text;
}

std::string uuid_text(const uint8_t (&uuid)[16]) {
  std::string text;
  for (size_t i = 0; i < std::size(uuid); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

/// Looks at the image before anything is set up for it, so that simple mistakes get simple words.
Expected<void> check_image(const VolumeSpec& spec) {
  struct stat status;
  if (::stat(spec.path.c_str(), &status) != 0) return make_error(errno, spec.path);
  if (S_ISDIR(status.st_mode)) return make_error(EISDIR, spec.path);
  if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)) {
    return make_error(EINVAL, spec.path, "neither an image nor a block device");
  }
  if (!ssd::Descriptor::open(spec.path, O_RDONLY | O_NONBLOCK).is_open()) {
    return make_error(errno, spec.path);
  }
  if (S_ISREG(status.st_mode) && status.st_size < int64_t{2 * kBlockBytes}) {
    return make_error(EINVAL, spec.path,
                      fmt::format("not an F2FS volume ({} bytes)", status.st_size));
  }
  return {};
}

/// Looks at what is not in the spec, before anything is set up.
Expected<void> check_options(const std::string& spec, const MountOptions& options) {
  if (options.groups.size() > kGroupsMax) {
    return make_error(EINVAL, spec, fmt::format("more than {} groups", kGroupsMax));
  }
  if ((options.ablations & ~vfs::kAblationsKnown) != 0) {
    return make_error(EINVAL, spec, "ablations that are not known");
  }
  if (options.clean_percent > 100 || options.idle_clean_percent > 100) {
    return make_error(EINVAL, spec, "more than 100 percent of the segments");
  }
  if (options.queues > nvme::kIoQueuesMax) {
    return make_error(EINVAL, spec, fmt::format("more than {} queues", nvme::kIoQueuesMax));
  }
  if (options.queue_depth == 1 || options.queue_depth > kQueueDepthMax) {
    return make_error(EINVAL, spec, fmt::format("a queue has 2 to {} entries", kQueueDepthMax));
  }
  return {};
}

/// How long a thread waits each time. More than a year is as good as never, and a clock that counts
/// nanoseconds cannot add all of that to the present.
uint64_t period_ns_of(uint64_t asked, uint64_t usual) {
  constexpr uint64_t kYearNs = uint64_t{365} * 24 * 3600 * 1'000'000'000;
  return asked != 0 ? std::min(asked, kYearNs) : usual;
}

/// A word that warps change at any time: read as one.
template <typename T>
T read_shared(kernels::Backend& backend, const T* word) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return backend.memory().read_object(word);
}

/// f2fs::take_findings() of a log wherever it lies. `taken` has room for kCorruptionsKept.
uint32_t take_from_log(kernels::Backend& backend, f2fs::CorruptionLog* log,
                       f2fs::Corruption* taken) {
  if (backend.is_host()) return f2fs::take_findings(*log, taken);
  simt::MemorySpace& memory = backend.memory();
  f2fs::CorruptionLog copy;
  // The keys first: a kernel of the user may be running, and what was published then is whole.
  memory.read(copy.keys, log->keys, sizeof(copy.keys));
  memory.read(copy.records, log->records, sizeof(copy.records));
  for (uint32_t i = 0; i < f2fs::kCorruptionsKept; ++i) {
    if (f2fs::holds_finding(copy, i)) memory.write_object(&log->keys[i], uint64_t{0});
  }
  return f2fs::take_findings(copy, taken);
}

/// A third of the cache may be dirty: the more there is, the fewer checkpoints make thousands of
/// warps wait. The volume has to keep room for those pages, so a small one has a small cache.
uint64_t default_cache_bytes(bool is_host, uint64_t ssd_bytes) {
  constexpr uint64_t kLeast = uint64_t{64} << 20;
  constexpr uint64_t kMost = uint64_t{1} << 30;
  return is_host ? kLeast : std::clamp(ssd_bytes / 64, kLeast, kMost);
}

}  // namespace

/// The driver's queues.
class VolumeState::Queues {
 public:
  Queues(AttachedSsd& ssd, const nvme::DeviceOptions& options)
      : memory_(ssd.device_memory()),
        device_(nvme::create_device(memory_, ssd.controller(), options)) {}
  ~Queues() { nvme::destroy_device(memory_, device_); }
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;
  nvme::Device* device() const { return device_; }

 private:
  const nvme::DeviceMemory memory_;
  nvme::Device* const device_;
};

/// Shared memory for one call at a time.
struct VolumeState::CallSlot {
  explicit CallSlot(simt::MemorySpace& memory)
      : params(memory, 1),
        path(memory, request::kPathRoomBytes),
        other(memory, request::kPathRoomBytes),
        name(memory, request::kNameRoomBytes),
        staging(memory, kStagingBytes) {}
  SharedArray<kernels::CallParams> params;
  SharedArray<char> path;
  SharedArray<char> other;
  SharedArray<char> name;
  SharedArray<uint8_t> staging;
};

VolumeState::VolumeState(VolumeSpec whole, std::vector<VolumeSpec> members,
                         const format::Stripe& stripe, const MountOptions& options)
    : spec_(std::move(whole)), members_(std::move(members)), stripe_(stripe), options_(options) {}

Expected<void> VolumeState::open_backend(const BackendMaker& make) {
  std::string error;
  backend_ = make(options_.backend, error);
  if (backend_ == nullptr) return make_error(ENODEV, "backend " + options_.backend, error);
  return {};
}

/// What the driver is told of a member: what its spec says, else the mount's options, else what
/// suits its kind.
nvme::DeviceOptions VolumeState::device_options_of(const VolumeSpec& member) const {
  const auto chosen = [](const auto& in_spec, auto in_options, auto usual) {
    if (in_spec) return static_cast<decltype(usual)>(*in_spec);
    return in_options != 0 ? static_cast<decltype(usual)>(in_options) : usual;
  };
  nvme::DeviceOptions usual;
  // An entry of a queue takes a staging area.
  constexpr uint32_t kStagedDepth = 128;
  const bool stages = member.is_physical() || (member.is_hosted() && !backend_->is_host());
  if (stages) usual.queue_depth = kStagedDepth;
  // As long as Linux itself waits for a disk.
  constexpr uint64_t kHostedTimeoutNs = 60'000'000'000;
  if (member.is_hosted()) usual.command_timeout_ns = kHostedTimeoutNs;
  usual.io_queues = chosen(member.queues, options_.queues, usual.io_queues);
  usual.queue_depth = chosen(member.queue_depth, options_.queue_depth, usual.queue_depth);
  usual.command_timeout_ns =
      chosen(member.command_timeout_ns, options_.command_timeout_ns, usual.command_timeout_ns);
  usual.single_doorbells = (ablations() & kAblateSharedDoorbells) != 0;
  return usual;
}

Expected<void> VolumeState::attach_ssds(MountKind kind) {
  choose_media(members_, kind == MountKind::kServed ? Lasting::kAlways : Lasting::kOnSync);
  for (const VolumeSpec& member : members_) {
    const bool is_copy = !member.path.empty() && !member.is_hosted() && !member.is_physical();
    if (is_copy && kind == MountKind::kServed) {
      return make_error(EOPNOTSUPP, member.text,
                        "is a copy in memory until the server syncs it, which a client's fsync() "
                        "does not do: media=hosted");
    }
    nvme::DeviceOptions options = device_options_of(member);
    auto ssd = attach_ssd(*backend_, member, !options_.read_only, options);
    if (!ssd) return ssd.error();
    ssds_.push_back(std::move(*ssd));
    queues_.push_back(std::make_unique<Queues>(*ssds_.back(), options));
  }
  return options_.read_only ? Expected<void>() : check_moments();
}

/// Refuses to write to SSDs of which some keep what is written at once, and others when all is
/// synced: after a crash they would be as of different moments, which is no state of a volume.
Expected<void> VolumeState::check_moments() const {
  const auto find = [this](auto wanted) -> const VolumeSpec* {
    for (size_t i = 0; i < ssds_.size(); ++i) {
      if (wanted(*ssds_[i], members_[i])) return &members_[i];
    }
    return nullptr;
  };
  const VolumeSpec* const copied =
      find([](AttachedSsd& ssd, const VolumeSpec&) { return ssd.copied_media() != nullptr; });
  const VolumeSpec* const direct = find([](AttachedSsd& ssd, const VolumeSpec& member) {
    return ssd.copied_media() == nullptr && (member.is_physical() || !member.path.empty());
  });
  if (copied == nullptr || direct == nullptr) return {};
  return make_error(EOPNOTSUPP, copied->text,
                    "is a copy in memory until all is synced, unlike " + direct->text +
                        ": a crash would leave a volume of two moments; media=hosted for both, or "
                        "mount it for reading");
}

void VolumeState::create_filesystem() {
  nvme::Array array{};
  array.stripe = stripe_;
  for (const auto& queues : queues_) array.devices[array.count++] = queues->device();
  const uint64_t bytes = ssds_.size() == 1 ? ssds_[0]->bytes() : format::stripe_bytes(stripe_);

  vfs::FilesystemOptions options;
  uint64_t cache_bytes = spec_.cache_bytes.value_or(options_.cache_bytes);
  if (cache_bytes == 0) cache_bytes = default_cache_bytes(backend_->is_host(), bytes);
  options.cache_pages =
      static_cast<uint32_t>(std::min<uint64_t>(cache_bytes / kBlockBytes, uint64_t{1} << 30));
  if (options_.read_only) options.record_buffers = 0;
  if (options_.lock_timeout_ns != 0) options.lock_timeout_ns = options_.lock_timeout_ns;
  const uint32_t descriptors = spec_.descriptors.value_or(options_.descriptors);
  if (descriptors != 0) options.descriptors = descriptors;
  options.ablations = ablations();
  options.credentials.uid = options_.uid;
  options.credentials.gid = options_.gid;
  options.credentials.group_count = static_cast<uint32_t>(options_.groups.size());
  std::copy(options_.groups.begin(), options_.groups.end(), options.credentials.groups);
  filesystem_ = std::make_unique<vfs::FilesystemMemory>(backend_->memory(), array, options);
}

Expected<void> VolumeState::bring_up(MountKind kind) {
  SharedArray<kernels::MountParams> params(backend_->shared_memory(), 1);
  params[0].fs = filesystem();
  params[0].device_only = kind == MountKind::kDeviceOnly;
  up_ = true;  // from here on the controller may be enabled
  const kernels::Grid one_warp{1, backend_->warp_width()};
  if (!run(kernels::bodies::kMount, one_warp, params.data())) return explain(kNotRun, spec_.text);
  if (params[0].device.step != nvme::BringUpStep::kDone) {
    return make_error(EIO, members_[params[0].failed_device].text, describe(params[0].device));
  }
  came_up_ = true;
  const f2fs::MountResult& result = params[0].volume;
  if (kind != MountKind::kDeviceOnly && result.error != 0) {
    std::string words = describe(result);
    for (const f2fs::Corruption& corruption : take_corruptions()) {
      words += "; " + describe(corruption);
    }
    const std::string cause = last_failure(std::abs(result.error));
    if (!cause.empty()) words += ": " + cause;
    return make_error(result.error, spec_.text, words);
  }
  return {};
}

Expected<std::unique_ptr<VolumeState>> VolumeState::mount(const std::string& spec,
                                                          const MountOptions& options,
                                                          MountKind kind,
                                                          const BackendMaker& make_backend) {
  auto specs = parse_volume_specs(spec);
  if (!specs) return specs.error();
  if (auto checked = check_options(spec, options); !checked) return checked.error();
  for (const VolumeSpec& one : *specs) {
    if (one.path.empty()) continue;
    if (auto checked = check_image(one); !checked) return checked.error();
  }
  // Errors are returned, not thrown: what the layers below throw at mounting ends here.
  try {
    format::Stripe stripe{.disks = 1, .chunk_shift = 0, .disk_bytes = 0, .start_bytes = {}};
    if (specs->size() > 1) {
      auto arranged = arrange_stripe(*specs);
      if (!arranged) return arranged.error();
      stripe = *arranged;
    }
    const auto make = [&] {
      VolumeSpec whole = specs->back();
      whole.text = spec;
      return std::unique_ptr<VolumeState>(
          new VolumeState(std::move(whole), *specs, stripe, options));
    };
    std::unique_ptr<VolumeState> state = make();
    auto up = state->come_up(kind, make_backend);
    if (!up && state->tries_doorbells()) {
      // The GPU's stores may not arrive: then a thread of the host writes the registers.
      for (VolumeSpec& one : *specs) one.doorbells = Doorbells::kCpu;
      state.reset();
      state = make();
      up = state->come_up(kind, make_backend);
    }
    if (!up) return up.error();
    return state;
  } catch (const std::bad_alloc&) {
    return make_error(ENOMEM, spec, "not enough memory to mount the volume");
  } catch (const std::exception& problem) {
    return make_error(EINVAL, spec, problem.what());
  }
}

/// All of mounting. Throws what the layers below throw, but where that comes of a GPU that has
/// failed.
Expected<void> VolumeState::come_up(MountKind kind, const BackendMaker& make) {
  try {
    return come_up_or_throw(kind, make);
  } catch (const std::exception&) {
    if (backend_ != nullptr && has_failed()) return explain(-EIO, spec_.text);
    throw;
  }
}

/// By the host and by warps.
Expected<void> VolumeState::come_up_or_throw(MountKind kind, const BackendMaker& make) {
  if (auto result = open_backend(make); !result) return result;
  if (auto result = attach_ssds(kind); !result) return result;
  create_filesystem();
  unmounting_ = std::make_unique<SharedArray<kernels::UnmountParams>>(backend_->shared_memory(), 1);
  if (auto result = bring_up(kind); !result) return result;
  if (kind == MountKind::kDeviceOnly) return {};
  if (options_.read_only) {
    const auto plan = plan_room();  // for statfs() alone
    if (plan && plan->withheld_segments != 0) {
      withheld_segments_ = plan->withheld_segments;
      const auto volume = backend_->memory().read_object(&filesystem()->volume);
      if (has_failed()) return explain(-EIO, spec_.text);
      read_only_withheld_blocks_ = f2fs::withheld_blocks_of(
          volume.geometry.main_segments, volume.user_block_count, withheld_segments_);
    }
    return {};
  }
  if (auto result = begin_writing(); !result) return result;
  begin_maintenance();
  return prepare_to_end();
}

/// Takes what unmount() and sync() cannot do without, as long as there is memory.
Expected<void> VolumeState::prepare_to_end() {
  quiet_memory_ = std::make_unique<QuietMemory>(backend_->shared_memory());
  for (const kernels::Body* body :
       {&kernels::bodies::kCall, &kernels::bodies::kHold, &kernels::bodies::kUnmount}) {
    if (!prepare(*body)) return explain(kNotRun, spec_.text);
  }
  return {};
}

/// Whether an SSD failed to come up whose registers the GPU was tried to write.
bool VolumeState::tries_doorbells() const {
  return !came_up_ && std::any_of(ssds_.begin(), ssds_.end(),
                                  [](const auto& one) { return one->tries_doorbells(); });
}

/// Which segments are not to be taken. ENOSPC: there is no room for a checkpoint.
Expected<RoomPlan> VolumeState::plan_room() {
  std::vector<const kernels::MediaRoom*> rooms;
  for (const auto& one : ssds_) rooms.push_back(one->room());
  const auto geometry = backend_->memory().read_object(&filesystem()->volume.geometry);
  if (has_failed()) return explain(-EIO, spec_.text);  // it is all zeros
  RoomPlan plan = host::plan_room(geometry, stripe_, rooms);
  if (plan.lacking_bytes == 0 || options_.read_only) return plan;
  return make_error(ENOSPC, spec_.text,
                    fmt::format("writing to it takes at least {} MiB more for holes of the image "
                                "(spare=)",
                                simt::divide_up(plan.lacking_bytes, uint64_t{1} << 20)));
}

/// Reads what only a writer wants to know, and sets the file system's clock.
Expected<void> VolumeState::begin_writing() {
  simt::MemorySpace& memory = backend_->memory();
  const auto geometry = memory.read_object(&filesystem()->volume.geometry);
  auto plan = plan_room();  // which has seen whether that has failed
  if (!plan) return plan.error();
  // Where segments are withheld it is a smaller volume in all that goes by its size.
  withheld_segments_ = plan->withheld_segments;
  format::Geometry usable = geometry;
  usable.main_segments -= withheld_segments_;
  constexpr uint64_t kCleanPercent = 5;
  const uint64_t percent = options_.clean_percent != 0 ? options_.clean_percent : kCleanPercent;
  f2fs::WriterOptions writer_options;
  writer_options.free_segments = static_cast<uint32_t>(
      std::clamp<uint64_t>(usable.main_segments * percent / 100, 1, geometry.main_segments));
  writer_options.discard = options_.discard;
  writer_options.log_structured = log_structured();
  writer_options.open_segments =
      (ablations() & kAblateOpenSegments) != 0 ? 0 : f2fs::open_segments_for(usable);
  writer_options.withheld = std::move(plan->withheld);
  writer_ = std::make_unique<f2fs::WriterMemory>(memory, geometry, writer_options);
  SharedArray<kernels::BeginWritingParams> params(backend_->shared_memory(), 1);
  params[0].fs = filesystem();
  params[0].writer = writer_->writer();
  const kernels::Grid one_warp{1, backend_->warp_width()};
  kernels::Grid reading = backend_->full_grid();
  reading.blocks = std::min(reading.blocks, geometry.sit_blocks_used());
  if (!run(kernels::bodies::kReadSegments, reading, params.data()) ||
      !run(kernels::bodies::kBeginWriting, one_warp, params.data())) {
    return explain(kNotRun, spec_.text);
  }
  const f2fs::WriteResult& result = params[0].result;
  recovered_nodes_ = simt::max<int64_t>(params[0].recovered, 0);
  if (result.error == 0) return begin_clock();
  std::string words = describe(result);
  for (const f2fs::Corruption& corruption : take_corruptions())
    words += "; " + describe(corruption);
  const std::string cause = last_failure(std::abs(result.error));
  if (!cause.empty()) words += ": " + cause;
  return make_error(result.error, spec_.text, words);
}

Expected<void> VolumeState::begin_clock() {
  constexpr uint64_t kClockPeriodNs = 600'000'000'000;  // as in the GoFS paper
  auto clock =
      std::make_unique<ClockKeeper>(*this, period_ns_of(options_.clock_period_ns, kClockPeriodNs));
  auto beginning = clock->beginning();
  const std::lock_guard lock(clock_mutex_);
  clock_ = std::move(clock);
  return beginning;
}

ClockReport VolumeState::clock() const {
  if (!is_ours()) return {};
  const std::lock_guard lock(clock_mutex_);
  return clock_ != nullptr ? clock_->report() : ClockReport{};
}

VolumeState::~VolumeState() {
  (void)end(true);
  detach();
}

void VolumeState::operator delete(VolumeState* volume, std::destroying_delete_t) {
  if (volume->is_ours()) {
    volume->~VolumeState();
    ::operator delete(volume);
    return;
  }
  // Still reachable, so that no leak is found where there is none.
  static std::atomic<VolumeState*> left{nullptr};
  volume->next_left_ = left.exchange(volume);
}

Error VolumeState::not_ours() const {
  return make_error(ENODEV, spec_.text,
                    "mounted by the process that this one was forked from, which alone can use it");
}

void VolumeState::begin_maintenance() {
  constexpr uint64_t kIdlePeriodNs = 1'000'000'000;
  const uint64_t period_ns = spec_.checkpoint_period_ns.value_or(options_.checkpoint_period_ns);
  const uint64_t percent = options_.idle_clean_percent;
  if (period_ns == 0 && percent == 0) return;
  const auto geometry = backend_->memory().read_object(&filesystem()->volume.geometry);
  const uint64_t usable = geometry.main_segments - withheld_segments_;
  maintenance_ = std::make_unique<Maintenance>(*this, period_ns_of(period_ns, kIdlePeriodNs),
                                               static_cast<uint32_t>(usable * percent / 100));
}

bool VolumeState::has_changed() const {
  if (has_failed()) return false;
  return read_shared(*backend_, &writer_->writer()->changed) != 0;
}

uint32_t VolumeState::free_segments() const {
  if (has_failed()) return 0;
  return read_shared(*backend_, &writer_->writer()->free_count);
}

uint64_t VolumeState::commands_issued() const {
  if (has_failed()) return 0;
  simt::MemorySpace& memory = backend_->memory();
  uint64_t commands = 0;
  for (const auto& one : queues_) {
    const nvme::Device& device = *one->device();
    const nvme::QueuePair* const queues = memory.read_object(&device.io);
    const uint32_t count = memory.read_object(&device.io_queue_count);
    for (uint32_t i = 0; i < count; ++i) {
      commands += read_shared(*backend_, &queues[i].next_ticket);
    }
  }
  return commands;
}

ssd::VirtualSsdCounters VolumeState::ssd_counters() const {
  ssd::VirtualSsdCounters sum;
  if (has_failed()) return sum;
  for (const auto& one : ssds_) {
    const auto counters = one->counters();
    sum.read_commands += counters.read_commands;
    sum.write_commands += counters.write_commands;
    sum.blocks_read += counters.blocks_read;
    sum.blocks_written += counters.blocks_written;
    sum.errors += counters.errors;
    sum.invalid_doorbells += counters.invalid_doorbells;
    sum.flush_requests += counters.flush_requests;
    sum.virtual_now_ns = std::max(sum.virtual_now_ns, counters.virtual_now_ns);
  }
  return sum;
}

/// Warps that make a checkpoint together. On a CPU starting them costs more than they save.
kernels::Grid VolumeState::checkpoint_grid() const {
  return backend_->is_host() ? kernels::Grid{1, 1} : kernels::Grid{32, 64};
}

/// Whether a launch may begin.
bool VolumeState::wake_ssds() {
  if (!is_ours()) return false;
  if (!backend_->is_host()) {
    for (const auto& ssd : ssds_) ssd->wake();
  }
  return true;
}

std::unique_ptr<kernels::Begun> VolumeState::begin(const kernels::Body& body,
                                                   const kernels::Grid& grid, void* params) {
  return wake_ssds() ? backend_->begin_apart(body, grid, params) : nullptr;
}

bool VolumeState::run(const kernels::Body& body, const kernels::Grid& grid, void* params) {
  if (!wake_ssds()) return false;
  if (backend_->run(body, grid, params)) return true;
  const std::lock_guard lock(failure_mutex_);
  launch_failure_ = backend_->error();
  return false;
}

bool VolumeState::prepare(const kernels::Body& body) {
  if (backend_->prepare(body)) return true;
  const std::lock_guard lock(failure_mutex_);
  launch_failure_ = backend_->error();
  return false;
}

std::unique_ptr<VolumeState::CallSlot> VolumeState::take_slot() {
  {
    const std::lock_guard lock(slots_mutex_);
    if (!free_slots_.empty()) {
      auto slot = std::move(free_slots_.back());
      free_slots_.pop_back();
      return slot;
    }
  }
  return std::make_unique<CallSlot>(backend_->shared_memory());
}

void VolumeState::release(std::unique_ptr<CallSlot> slot) {
  const std::lock_guard lock(slots_mutex_);
  try {
    free_slots_.push_back(std::move(slot));
  } catch (const std::bad_alloc&) {
    // What was called has its answer all the same, and the next call takes another slot.
  }
}

namespace {

/// Copies a text, if there is one, with a NUL behind it, to where the backend's warps see it.
const char* hand_over(const std::string* text, const request::TextRule& rule,
                      const SharedArray<char>& place) {
  if (text == nullptr) return nullptr;
  place[copy_text(*text, rule, place.data())] = '\0';
  return place.data();
}

}  // namespace

CallAnswer VolumeState::make(const CallRequest& request) {
  const CallsUnderWay::One under_way(calls_under_way_);
  if (!up_ || !is_ours()) return {-ENODEV, 0};
  if (has_failed()) return {-EIO, 0};
  if (const int error = check_texts(request); error != 0) return {error, 0};
  std::unique_ptr<CallSlot> slot;
  try {
    slot = take_slot();
  } catch (const std::bad_alloc&) {
    return {-ENOMEM, 0};
  }
  kernels::CallParams& params = slot->params[0];
  params = kernels::CallParams{};
  params.fs = filesystem();
  params.answer = -EIO;
  request::Request& record = params.call.request;
  record = record_of(request);
  params.call.path = hand_over(request.path, request::path_rule(), slot->path);
  params.call.other = hand_over(request.other, request::path_rule(), slot->other);
  params.call.name = hand_over(request.name, request::name_rule(), slot->name);
  const bool staged = !backend_->is_host() || wants_room(request);
  if (staged) {
    params.call.buffer = slot->staging.data();
    stage_data(request, record, slot->staging.data(), slot->staging.size());
  } else {
    // What such a call reads it does not change.
    params.call.buffer =
        request.input != nullptr ? const_cast<void*>(request.input) : request.buffer;
  }
  const kernels::Grid one_warp{1, backend_->warp_width()};
  const bool ran =
      run(kernels::bodies::kCall,
          request.verb == request::Verb::kSync ? checkpoint_grid() : one_warp, slot->params.data());
  const CallAnswer answer{ran ? params.answer : kNotRun, record.bytes};
  if (staged) take_results(request, record, answer.result, slot->staging.data());
  if (request.verb == request::Verb::kStatfs && answer.result >= 0) {
    // Who only reads has not counted which of the segments that are withheld are free: nearly all.
    uint64_t& available = static_cast<FilesystemStat*>(request.buffer)->blocks_available;
    available -= std::min(available, read_only_withheld_blocks_);
  }
  release(std::move(slot));
  return answer;
}

bool VolumeState::read_staged(std::span<const IoRange> ranges, std::span<int64_t> results) {
  const CallsUnderWay::One under_way(calls_under_way_);
  if (backend_->is_host() || ranges.empty()) return false;
  // What one call takes is for one warp.
  if (ranges.size() == 1 && ranges[0].bytes <= kStagingBytes) return false;
  if (!up_ || !is_ours() || has_failed()) return false;
  return staged_reads_.read(*this, ranges, results);
}

void VolumeState::make_all(std::span<const CallRequest> requests, std::span<CallAnswer> answers) {
  std::vector<const CallRequest*> together;
  std::vector<size_t> places;  // of these
  together.reserve(requests.size());
  places.reserve(requests.size());
  const CallsUnderWay::One under_way(calls_under_way_);
  const bool can_run = up_ && is_ours() && !has_failed();
  for (size_t i = 0; i < requests.size(); ++i) {
    if (can_run && CallsAtOnce::takes(requests[i]) && check_texts(requests[i]) == 0) {
      together.push_back(&requests[i]);
      places.push_back(i);
    }
  }
  if (together.size() < 2) return AnyVolume::make_all(requests, answers);
  std::vector<CallAnswer> found(together.size(), CallAnswer{-ENOMEM, 0});
  try {
    calls_at_once_.make(*this, together, found);
  } catch (const std::bad_alloc&) {
    // Some were made.
  }
  size_t next = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const bool is_made = next < places.size() && places[next] == i;
    answers[i] = is_made ? found[next++] : make(requests[i]);
  }
}

f2fs::CorruptionLog* VolumeState::corruption_log() const {
  return backend_->memory().read_object(&filesystem()->volume.corruptions);
}

/// Moves what the log holds to the end of `findings_`, whose lock is held. Returns how many.
size_t VolumeState::collect_findings() {
  if (has_failed()) return 0;
  f2fs::Corruption taken[f2fs::kCorruptionsKept];
  const size_t count = take_from_log(*backend_, corruption_log(), taken);
  for (size_t i = 0; i < count; ++i) {
    std::erase_if(findings_, [&](const Finding& one) { return one.corruption == taken[i]; });
    findings_.push_back({taken[i], false});
  }
  // Whoever met the same damage as another, whose report alone was kept, finds it here; but not
  // without end.
  constexpr size_t kToldKept = 1024;
  if (findings_.size() > kToldKept) {
    std::erase_if(findings_, [](const Finding& one) { return one.told; });
  }
  return count;
}

std::vector<f2fs::Corruption> VolumeState::take_corruptions() {
  if (!is_ours()) return {};
  const std::lock_guard lock(findings_mutex_);
  collect_findings();
  std::vector<f2fs::Corruption> fresh;
  for (Finding& one : findings_) {
    if (!std::exchange(one.told, true)) fresh.push_back(one.corruption);
  }
  return fresh;
}

/// What to say about damage of inode `ino` (0: not known), if anything.
std::string VolumeState::damage_met(uint64_t ino) {
  const std::lock_guard lock(findings_mutex_);
  const size_t fresh = collect_findings();
  const auto find = [&](auto wanted) {
    return std::find_if(findings_.rbegin(), findings_.rend(), wanted);
  };
  const auto own = [ino](const Finding& one) { return ino != 0 && one.corruption.id == ino; };
  // Its own, else the latest, which is the nearest to this error; the others wait for warnings().
  // Else its own that another call has reported, which met it at the same time.
  auto chosen = find([&](const Finding& one) { return own(one) && !one.told; });
  if (chosen == findings_.rend() && fresh != 0) chosen = findings_.rbegin();
  if (chosen == findings_.rend()) chosen = find(own);
  if (chosen == findings_.rend()) return {};
  chosen->told = true;
  return "damaged: " + describe(chosen->corruption);
}

std::vector<std::string> VolumeState::more_damage(uint64_t ino) {
  const std::lock_guard lock(findings_mutex_);
  collect_findings();
  std::vector<std::string> sentences;
  for (Finding& one : findings_) {
    if ((ino != 0 && one.corruption.id != ino) || std::exchange(one.told, true)) continue;
    sentences.push_back("damaged: " + describe(one.corruption));
  }
  tell_lost(sentences);
  return sentences;
}

/// Adds a sentence if there was damage, since the last time, for which the log had no room.
void VolumeState::tell_lost(std::vector<std::string>& sentences) {
  const uint32_t lost = read_shared(*backend_, &corruption_log()->lost);
  if (lost != std::exchange(lost_reports_, lost)) {
    sentences.emplace_back("damaged: there was more damage than could be noted");
  }
}

// In a child of fork() the lock may be held for ever.

void VolumeState::name_descriptor(int descriptor, const std::string& path) {
  if (is_ours()) descriptor_names_.set(descriptor, path);
}

std::string VolumeState::descriptor_name(int descriptor) {
  return is_ours() ? descriptor_names_.of(descriptor) : DescriptorNames::number(descriptor);
}

/// What GoFS cannot read on the way to `path`, or the file itself. Empty if it is not known.
std::string VolumeState::unsupported_part(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    Stat stat{};
    const CallAnswer answer =
        call({.verb = request::Verb::kStat, .path = &part, .keep_link = true}, stat);
    if (answer.result < 0) return {};
    const bool directory = (stat.mode & format::kModeTypeMask) == format::kModeDirectory;
    const std::string name = part == path ? std::string() : part + " is ";
    if (directory && (stat.flags & format::kFlagCasefold) != 0) {
      return name + "case-folded, which is not supported";
    }
    if (!directory && (stat.flags & format::kFlagCompressed) != 0) {
      return name + "compressed, which is not supported";
    }
    if ((stat.advise & format::kAdviseEncrypted) != 0) {
      return name + "encrypted, which is not supported";
    }
    if (end == std::string::npos) return {};
  }
}

/// `words` about one of the SSDs, with its name where there are several.
std::string VolumeState::on_ssd(size_t index, const std::string& words) const {
  return members_.size() == 1 ? words : members_[index].text + ": " + words;
}

/// What an SSD said to the last command that it failed, if `code` came of that. Else empty.
std::string VolumeState::last_failure(int code) {
  const bool from_ssd =
      code == EIO || code == ETIMEDOUT || code == ENOSPC || code == ENODEV || code == EAGAIN;
  if (!from_ssd) return {};
  // Of several SSDs rather one that has failed since the last one reported.
  const std::lock_guard lock(findings_mutex_);
  told_failures_.resize(queues_.size());
  std::string words;
  for (size_t i = 0; i < queues_.size(); ++i) {
    const uint64_t word = read_shared(*backend_, &queues_[i]->device()->last_failure);
    const auto failed = nvme::FailedCommand::unpacked(word);
    if (nvme::to_errno(failed.status) != -code) continue;
    const bool is_new = word != std::exchange(told_failures_[i], word);
    if (!words.empty() && !is_new) continue;
    words = on_ssd(i, describe(failed));
    const std::string problem = ssds_[i]->host_problem();
    if (!problem.empty() && nvme::is_media_error(failed.status)) words += ": " + problem;
  }
  return words;
}

Error VolumeState::explain(int64_t negative_errno, const std::string& subject, uint64_t ino) {
  if (!is_ours()) return not_ours();
  const int code = static_cast<int>(std::abs(negative_errno));
  if (has_failed()) {
    return make_error(EIO, subject,
                      "the backend has failed: " + backend_->failure() +
                          "; the image is as the last sync has left it, and only another process "
                          "can mount it again");
  }
  if (negative_errno == kNotRun) {
    const std::lock_guard lock(failure_mutex_);
    return make_error(EIO, subject, "the backend could not run it: " + launch_failure_);
  }
  if (code == EUCLEAN) {
    const std::string words = damage_met(ino);
    if (!words.empty()) return make_error(code, subject, words);
  }
  if (code == EOPNOTSUPP) {
    const std::string words = unsupported_part(subject);
    if (!words.empty()) return make_error(code, subject, words);
  }
  if (code == ENOSPC && withheld_segments_ != 0) {
    return make_error(code, subject,
                      errno_words(code) + ": there is memory for no more of the image's holes; " +
                          "a larger spare= when mounting gives it more");
  }
  const std::string cause = last_failure(code);
  // Who unmounts has disabled the controllers himself.
  const bool may_have_failed = up_ || cause.empty();
  if (may_have_failed && (code == EIO || code == ETIMEDOUT || code == EBUSY)) {
    for (size_t i = 0; i < queues_.size(); ++i) {
      if (read_shared(*backend_, &queues_[i]->device()->failure) == nvme::kWorking) continue;
      const std::string words = on_ssd(i, "the SSD has failed: its controller is disabled");
      return make_error(code, subject, errno_words(code) + " (" + words + ")");
    }
  }
  if (!cause.empty()) return make_error(code, subject, errno_words(code) + ": " + cause);
  return make_error(code, subject);
}

Error VolumeState::explain(int64_t negative_errno, const std::string& from, const std::string& to) {
  const std::string both = shown_path(from) + " -> " + shown_path(to);
  if (negative_errno == -EOPNOTSUPP && is_ours() && !has_failed()) {
    for (const std::string* path : {&from, &to}) {
      const std::string words = unsupported_part(*path);
      if (!words.empty()) return make_error(EOPNOTSUPP, both, words);
    }
  }
  return explain(negative_errno, both);
}

VolumeHandle VolumeState::device() const { return handle_of(filesystem()); }

Expected<std::vector<int>> VolumeState::create_files(const std::string& path,
                                                     const std::vector<NewFile>& files,
                                                     uint32_t permissions) {
  const CallsUnderWay::One under_way(calls_under_way_);
  return host::create_files(*this, path, files, permissions);
}

std::vector<std::string> VolumeState::storage_paths() const {
  std::vector<std::string> paths;
  for (const VolumeSpec& member : members_) {
    if (!member.path.empty()) paths.push_back(member.path);
  }
  return paths;
}

/// Of what kind the SSDs are, and what is to be said of them: once where that is the same.
std::string VolumeState::describe_ssds() const {
  const auto words_of = [](const AttachedSsd& ssd) { return ssd.kind() + ", " + ssd.details(); };
  const AttachedSsd& first = *ssds_.front();
  if (ssds_.size() == 1) return words_of(first);
  const std::string chunks = fmt::format(", chunks of {} KiB", 1u << (stripe_.chunk_shift - 10));
  const auto is_like_first = [&](const auto& ssd) { return ssd->kind() == first.kind(); };
  if (std::all_of(ssds_.begin(), ssds_.end(), is_like_first)) {
    std::string text = fmt::format("{} {}s", ssds_.size(), first.kind());
    std::string last;
    for (const auto& ssd : ssds_) {
      if (ssd->details() == last) continue;
      last = ssd->details();
      text += (&ssd == &ssds_.front() ? ", " : "; ") + last;
    }
    return text + chunks;
  }
  std::string text = fmt::format("{} SSDs", ssds_.size());
  for (const auto& ssd : ssds_) {
    text += (&ssd == &ssds_.front() ? ": " : "; ") + words_of(*ssd);
  }
  return text + chunks;
}

VolumeInfo VolumeState::info() const {
  VolumeInfo info;
  info.spec = spec_.text;
  if (!is_ours()) return info;
  info.backend = backend_->name();
  info.backend_detail = backend_->description();
  if (has_failed()) return info;
  simt::MemorySpace& memory = backend_->memory();
  // Field by field, for others may be at work: what no warp changes, and words.
  const auto read = [&memory](const auto& field) { return memory.read_object(&field); };
  const f2fs::Volume& volume = filesystem()->volume;
  const auto array = read(volume.array);
  info.ssd = describe_ssds();
  info.lba_bytes = array.lba_bytes();
  info.ssd_bytes = array.lba_count * info.lba_bytes;
  // As many of each SSD; entries as of the one that has the fewest.
  for (const auto& queues : queues_) {
    const nvme::Device& device = *queues->device();
    const uint32_t depth = read(read(device.io)->shape).depth;
    info.queues = read(device.io_queue_count);
    info.queue_depth = info.queue_depth == 0 ? depth : std::min(info.queue_depth, depth);
  }
  info.transfer_bytes_max = array.transfer_bytes_max;
  info.mode = log_structured() || array.atomic_blocks == 0 ? "lfs" : "adaptive";
  info.ablations = ablation_names(ablations());
  decltype(f2fs::Volume::label) label;
  decltype(f2fs::Volume::uuid) uuid;
  char writer[sizeof(f2fs::Volume::writer)];
  memory.read(label, volume.label, sizeof(label));
  memory.read(uuid, volume.uuid, sizeof(uuid));
  memory.read(writer, volume.writer, sizeof(writer));
  info.label = utf8_of_label(label);
  info.uuid = uuid_text(uuid);
  info.writer.assign(writer, ::strnlen(writer, sizeof(writer)));
  while (!info.writer.empty() && info.writer.back() == '\n') info.writer.pop_back();
  const auto geometry = read(volume.geometry);
  info.features = feature_names(geometry.feature);
  info.block_count = geometry.block_count;
  info.segment_count = geometry.segment_count;
  info.main_segments = geometry.main_segments;
  info.free_segments = read(volume.free_segments);
  info.checkpoint_version = read(volume.checkpoint_version);
  info.checkpoint_pack = read(volume.checkpoint_pack);
  info.checkpoint_flags = read(volume.checkpoint_flags);
  info.clean = (info.checkpoint_flags & format::kCheckpointUmount) != 0;
  return info;
}

std::vector<std::string> VolumeState::warnings() {
  if (!is_ours()) return {not_ours().message};
  if (has_failed()) return {explain(-EIO, spec_.text).message};
  std::vector<std::string> sentences;
  const bool clean = info().clean;
  const auto corruptions = take_corruptions();
  const std::lock_guard lock(findings_mutex_);
  if (options_.read_only && !clean && !std::exchange(told_unclean_, true)) {
    sentences.emplace_back(
        "not cleanly unmounted: read as of its last checkpoint; later changes are not seen");
  }
  if (recovered_nodes_ != 0) {
    sentences.push_back(fmt::format(
        "not cleanly unmounted: what fsync had made durable was recovered from {} nodes",
        std::exchange(recovered_nodes_, 0)));
  }
  for (const f2fs::Corruption& corruption : corruptions) {
    sentences.push_back("damaged: " + describe(corruption));
  }
  tell_lost(sentences);
  return sentences;
}

std::string VolumeState::refuses_buffer(const void* buffer, uint64_t bytes) const {
  // In a child of fork() nothing may be asked of the backend; the call gets an error that says
  // whose the volume is.
  if (bytes == 0 || !is_ours()) return {};
  if (buffer == nullptr) return "the buffer is null";
  const std::string what = backend_->what_else_than_host_memory(buffer);
  if (what.empty()) return {};
  return "the buffer is " + what + "; calls by the host take memory of the host";
}

Expected<BufferHandle> VolumeState::register_buffer(void* memory, uint64_t bytes) {
  const CallsUnderWay::One under_way(calls_under_way_);
  if (!is_ours()) return not_ours();
  if (has_failed()) return explain(-EIO, "register_buffer");
  if (!is_up()) return make_error(ENODEV, "register_buffer");
  return buffers_.add(memory, bytes, [&] {
    for (const auto& one : ssds_) one->map_buffer(memory, bytes);
  });
}

Expected<void> VolumeState::unregister_buffer(BufferHandle buffer) {
  if (!is_ours()) return not_ours();
  auto result = buffers_.remove(buffer, [&](void* memory) {
    for (const auto& one : ssds_) one->unmap_buffer(memory);
  });
  if (result && has_failed()) return explain(-EIO, "unregister_buffer");
  return result;
}

}  // namespace gofs::host
