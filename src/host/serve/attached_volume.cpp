// SPDX-License-Identifier: Apache-2.0
#include "host/serve/attached_volume.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "host/backends.h"
#include "host/files_by_calls.h"
#include "host/gpu_memory.h"
#include "host/messages.h"
#include "host/serve/attached_link.h"
#include "host/serve/control.h"
#include "host/serve/kernel_end.h"
#include "host/serve/socket.h"
#include "serve/descriptor_base.h"

namespace gofs::host {

using request::Verb;

namespace {

constexpr std::chrono::milliseconds kPauseBetweenTries{20};
// A server that is there has so long to say so, however little time is left.
constexpr std::chrono::milliseconds kGreetingTimeoutMin{1'000};
// So long others take over what one has found.
constexpr std::chrono::seconds kRefusalLasts{1};

bool takes(const CallRequest& request, uint32_t what) {
  return (request::row_of(request.verb).takes & what) != 0;
}

bool opens(Verb verb) { return (request::row_of(verb).takes & request::kGives) != 0; }

/// Whether the call may change the volume.
bool changes(const CallRequest& request) {
  if (request.verb == Verb::kOpen) return (request.flags & (O_CREAT | O_TRUNC)) != 0;
  return !takes(request, request::kLooks);
}

/// Whether a call of which nobody knows what has become may be made again, with another server.
bool may_repeat(const CallRequest& request) {
  if (takes(request, request::kDescriptor) || request.verb == Verb::kSync) return false;
  return !changes(request);
}

/// Whether another server may come there, after this error of attach_at().
bool may_come(int error) {
  return error == ECONNREFUSED || error == ENOENT || error == ESTALE || error == EAGAIN ||
         error == ETIMEDOUT || error == ECONNRESET || error == EPIPE;
}

}  // namespace

Expected<std::unique_ptr<AttachedVolume>> AttachedVolume::attach(const std::string& path,
                                                                 const AttachOptions& options) {
  try {
    auto link = std::make_unique<Link>(1, attach_at(path));
    return std::unique_ptr<AttachedVolume>(new AttachedVolume(path, options, std::move(link)));
  } catch (const std::system_error& problem) {
    const int error = problem.code().value();
    if (error == EAGAIN) return make_error(error, path, "as many clients are there as can be");
    // Whose message says what is there instead.
    const bool says_it = error == EPROTO || error == ECONNREFUSED;
    const std::string words = says_it ? problem.what() : errno_words(error);
    return make_error(error, path, "no server can be attached to: " + words);
  } catch (const std::bad_alloc&) {
    return make_error(ENOMEM, path);
  }
}

AttachedVolume::AttachedVolume(std::string path, const AttachOptions& options,
                               std::unique_ptr<Link> link)
    : path_(std::move(path)), options_(options), link_(std::move(link)) {}

/// In a child of fork() all is left as it is: the parent goes on with the connection, and its
/// threads may have waited for what would be destroyed.
AttachedVolume::~AttachedVolume() {
  if (process_.is_ours()) return;
  using Links = std::pair<std::shared_ptr<Link>, std::vector<std::shared_ptr<Link>>>;
  static std::vector<Links>* const left = new std::vector<Links>;
  left->emplace_back(std::move(link_), std::move(former_));
}

Error AttachedVolume::not_ours() const {
  return make_error(ENODEV, path_,
                    "attached by the process that this one was forked from, which alone can use "
                    "it");
}

/// One to a server that has not gone, as far as is known; null: there is none.
std::shared_ptr<AttachedVolume::Link> AttachedVolume::link() const {
  const std::lock_guard lock(mutex_);
  if (ended_) return nullptr;
  if (!link_->channel.is_gone()) return link_;
  return attach_again();
}

std::shared_ptr<AttachedVolume::Link> AttachedVolume::attach_again() const {
  const Clock::time_point now = Clock::now();
  if (!refusal_.empty() && now - refused_at_ < kRefusalLasts) return nullptr;
  const auto deadline = now + std::chrono::nanoseconds(options_.attach_timeout_ns);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    try {
      const auto patience = std::clamp(left, kGreetingTimeoutMin, kGreetingTimeout);
      auto fresh = std::make_shared<Link>(links_ + 1, attach_at(path_, patience));
      has_lost_ = has_lost_ || link_->may_lose();
      if (link_->kernels != nullptr) former_.push_back(link_);
      ++links_;
      refusal_.clear();
      link_ = std::move(fresh);
      return link_;
    } catch (const std::system_error& problem) {
      if (may_come(problem.code().value()) && Clock::now() < deadline) {
        std::this_thread::sleep_for(kPauseBetweenTries);
        continue;
      }
      refusal_ = errno_words(problem.code().value());
    } catch (const std::bad_alloc&) {
      refusal_ = errno_words(ENOMEM);
    }
    refused_at_ = Clock::now();
    return nullptr;
  }
}

/// The link for a call, or null: there is no server.
std::shared_ptr<AttachedVolume::Link> AttachedVolume::link_for(const CallRequest& request) const {
  std::shared_ptr<Link> link = this->link();
  if (link == nullptr || takes(request, request::kDescriptor) || may_repeat(request)) return link;
  // Rather now than when nobody knows any more what the server has done.
  link->channel.look_for_server();
  return link->channel.is_gone() ? this->link() : link;
}

int64_t AttachedVolume::no_server() const {
  const std::lock_guard lock(mutex_);
  return ended_ ? -ENODEV : -ENOTCONN;
}

/// The call as the server is to get it. 0, or the negative errno that is its answer.
int64_t AttachedVolume::translate(Link& link, CallRequest& request) {
  if (takes(request, request::kDescriptor)) {
    request.descriptor = serve::own_number(link.descriptor_base, request.descriptor);
    if (request.descriptor < 0) return request.descriptor;
  }
  if (takes(request, request::kOtherDescriptor)) {
    request.other_descriptor = serve::own_number(link.descriptor_base, request.other_descriptor);
    if (request.other_descriptor < 0) return request.other_descriptor;
  }
  if (changes(request)) link.changes.begin();
  return 0;
}

/// Whether the server's answer is one, which becomes this client's then; or whether the call is to
/// be made again, with another server.
bool AttachedVolume::is_answered(Link& link, const CallRequest& request, CallAnswer& answer) {
  if (answer.result == -ESTALE && link.channel.is_gone() && may_repeat(request)) return false;
  // After a timeout the server may yet perform it.
  if (changes(request) && answer.result != -ETIMEDOUT) link.changes.end();
  if (opens(request.verb) && answer.result >= 0) {
    answer.result += link.descriptor_base;
  }
  return true;
}

CallAnswer AttachedVolume::make(const CallRequest& request) {
  std::optional<CallAnswer> answer = try_call(request);
  // Once more and no longer: it may be what ends the servers.
  if (!answer) answer = try_call(request);
  return answer.value_or(CallAnswer{-ESTALE, 0});
}

/// None: the server has ended, and the call may be made again.
std::optional<CallAnswer> AttachedVolume::try_call(const CallRequest& request) {
  if (!process_.is_ours()) return CallAnswer{-ENODEV, 0};
  const std::shared_ptr<Link> link = link_for(request);
  if (link == nullptr) return CallAnswer{no_server(), 0};
  CallRequest passed = request;
  if (const int64_t error = translate(*link, passed); error < 0) return CallAnswer{error, 0};
  CallAnswer answer = link->channel.call(passed);
  if (!is_answered(*link, request, answer)) return std::nullopt;
  return answer;
}

uint64_t AttachedVolume::part_bytes() const {
  if (!process_.is_ours()) return AnyVolume::part_bytes();
  const std::lock_guard lock(mutex_);
  return link_ == nullptr ? AnyVolume::part_bytes() : link_->channel.part_bytes();
}

void AttachedVolume::make_all(std::span<const CallRequest> requests,
                              std::span<CallAnswer> answers) {
  const std::shared_ptr<Link> link =
      requests.empty() || !process_.is_ours() ? nullptr : link_for(requests.front());
  if (link == nullptr) return AnyVolume::make_all(requests, answers);  // which say why not
  std::vector<CallRequest> passed;
  std::vector<size_t> places;  // of those that are passed on
  passed.reserve(requests.size());
  places.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    CallRequest request = requests[i];
    answers[i] = {translate(*link, request), 0};
    if (answers[i].result < 0) continue;
    passed.push_back(request);
    places.push_back(i);
  }
  std::vector<CallAnswer> found(passed.size());
  link->channel.call_all(passed, found);
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t place = places[i];
    answers[place] = is_answered(*link, requests[place], found[i])
                         ? found[i]
                         : try_call(requests[place]).value_or(CallAnswer{-ESTALE, 0});
  }
}

Expected<std::shared_ptr<RangeWork>> AttachedVolume::begin_ranges(
    bool writes, const std::vector<IoRange>& ranges, CUstream_st* stream) {
  if (!process_.is_ours()) return not_ours();
  return AnyVolume::begin_ranges(writes, ranges, stream);
}

Expected<std::vector<int>> AttachedVolume::create_files(const std::string& path,
                                                        const std::vector<NewFile>& files,
                                                        uint32_t permissions) {
  return create_by_calls(*this, path, files, permissions);
}

Expected<void> AttachedVolume::sync() {
  if (!process_.is_ours()) return not_ours();
  const CallRequest request{.verb = Verb::kSync};
  const std::shared_ptr<Link> link = link_for(request);
  if (link == nullptr) return explain(no_server(), path_);
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_lost_, false)) {
      return make_error(ESTALE, path_,
                        "the server has ended meanwhile: what was not durable then may be lost");
    }
  }
  // Of this server, or of none: another one has not what was changed.
  const std::optional<uint64_t> covered = link->changes.covered();
  const CallAnswer answer = link->channel.call(request);
  if (answer.result < 0) return explain(answer.result, path_);
  link->changes.synced(covered);
  return {};
}

Expected<void> AttachedVolume::fsync(Verb verb, int descriptor) {
  const CallAnswer answer = call({.verb = verb, .descriptor = descriptor});
  if (answer.result < 0) return explain(answer.result, descriptor_name(descriptor));
  return {};
}

Expected<void> AttachedVolume::unmount() {
  if (!process_.is_ours()) return not_ours();
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return {};
  }
  auto result = sync();
  const std::lock_guard lock(mutex_);
  ended_ = true;
  link_.reset();
  former_.clear();
  return result;
}

VolumeHandle AttachedVolume::device() const {
  if (!process_.is_ours()) return {};
  // The server may be busy with another question for minutes: no other call is to wait for that.
  const std::lock_guard opening(opening_);
  std::shared_ptr<Link> link = this->link();
  if (link != nullptr) link->channel.look_for_server();
  if (link != nullptr && link->channel.is_gone()) link = this->link();
  if (link == nullptr) return {};
  {
    const std::lock_guard lock(mutex_);
    if (link->kernels != nullptr) return link->kernels->handle();
  }
  std::string problem;
  std::unique_ptr<KernelEnd> kernels = open_for_kernels(*link, problem);
  const std::lock_guard lock(mutex_);
  if (kernels != nullptr && link_ != link) {
    problem = "the server has ended meanwhile";
    kernels.reset();
  }
  no_device_ = problem;
  if (kernels == nullptr) return {};
  link->kernels = std::move(kernels);
  return link->kernels->handle();
}

/// Null, and why.
std::unique_ptr<KernelEnd> AttachedVolume::open_for_kernels(Link& link,
                                                            std::string& problem) const {
  std::unique_ptr<kernels::Backend> backend = make_backend("cuda", problem);
  if (backend == nullptr) return nullptr;
  try {
    open_windows(link, true);
    auto end = std::make_unique<KernelEnd>(std::move(backend), link.line, link.descriptor_base);
    for (const auto& [memory, window] : link.windows) {
      if (window.number != 0) end->add_window(window);
    }
    return end;
  } catch (const std::exception& why) {
    problem = why.what();
    return nullptr;
  }
}

/// What the server has found, packed.
Expected<std::string> AttachedVolume::ask(const Question& question) const {
  if (!process_.is_ours()) return not_ours();
  const std::shared_ptr<Link> link = this->link();
  if (link == nullptr) {
    const std::lock_guard lock(mutex_);
    return ended_ ? make_error(ENODEV, path_) : make_error(ENOTCONN, path_, refusal_);
  }
  try {
    return link->line.ask(question);
  } catch (const std::system_error& problem) {
    return make_error(problem.code().value(), path_, problem.what());
  } catch (const std::bad_alloc&) {
    return make_error(ENOMEM, path_);
  }
}

template <typename Found>
Expected<Found> AttachedVolume::ask_for(const Question& question) const {
  const auto found = ask(question);
  if (!found) return found.error();
  try {
    return unpacked<Found>(*found);
  } catch (const std::system_error& problem) {
    return make_error(problem.code().value(), path_, problem.what());
  }
}

Expected<CleaningReport> AttachedVolume::collect_garbage(const CleaningOptions& options) {
  return ask_for<CleaningReport>({Ask::kCollectGarbage, options});
}

Expected<CommandTimes> AttachedVolume::command_times() {
  return ask_for<CommandTimes>({Ask::kCommandTimes, {}});
}

Expected<ServedInfo> AttachedVolume::served_info() const {
  return ask_for<ServedInfo>({Ask::kInfo, {}});
}

CleaningReport AttachedVolume::cleaning_totals() const {
  const auto info = served_info();
  return info ? info->cleaning : CleaningReport();
}

ClockReport AttachedVolume::clock() const {
  const auto info = served_info();
  return info ? info->clock : ClockReport();
}

VolumeInfo AttachedVolume::info() const {
  const auto info = served_info();
  if (info) return info->volume;
  VolumeInfo unknown;
  unknown.spec = path_;
  return unknown;
}

Expected<MemoryReport> AttachedVolume::memory() {
  auto info = served_info();
  if (!info) return info.error();
  return std::move(info->memory);
}

std::vector<std::string> AttachedVolume::warnings() {
  if (!process_.is_ours()) return {not_ours().message};
  const std::lock_guard lock(mutex_);
  std::vector<std::string> told;
  if (std::exchange(told_links_, links_) != links_) {
    told.push_back("the server has ended and another has come: descriptors of before are stale");
  }
  if (!no_device_.empty()) told.push_back("kernels cannot use the volume: " + no_device_);
  no_device_.clear();
  return told;
}

Error AttachedVolume::explain(int64_t negative_errno, const std::string& subject, uint64_t) {
  if (!process_.is_ours()) return not_ours();
  const auto code = static_cast<int>(std::abs(negative_errno));
  if (code == ESTALE) {
    return make_error(code, subject, "the server that had it open, or was asked for it, has ended");
  }
  if (code == ENOTCONN) {
    const std::lock_guard lock(mutex_);
    return make_error(code, subject, path_ + ": no server is there: " + refusal_);
  }
  if (negative_errno == kNotRun) return make_error(EIO, subject);
  return make_error(code, subject);
}

Error AttachedVolume::explain(int64_t negative_errno, const std::string& from,
                              const std::string& to) {
  return explain(negative_errno, shown_path(from) + " -> " + shown_path(to));
}

std::string AttachedVolume::refuses_buffer(const void* buffer, uint64_t bytes) const {
  // The call says whose the volume is.
  if (bytes == 0 || !process_.is_ours()) return {};
  if (buffer == nullptr) return "the buffer is null";
  return GpuMemory::at(buffer)
             ? "the buffer is memory of a GPU: read_ranges() and write_ranges() take it"
             : "";
}

void AttachedVolume::name_descriptor(int descriptor, const std::string& path) {
  if (process_.is_ours()) descriptor_names_.set(descriptor, path);
}

std::string AttachedVolume::descriptor_name(int descriptor) {
  return process_.is_ours() ? descriptor_names_.of(descriptor)
                            : DescriptorNames::number(descriptor);
}

}  // namespace gofs::host
