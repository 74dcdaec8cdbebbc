// SPDX-License-Identifier: Apache-2.0
//
// Buffers that a client has registered, as windows of its server's: calls then move data there
// directly. Of what the server does not reach, data is copied.
#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>

#include "host/gpu_memory.h"
#include "host/serve/attached_link.h"
#include "host/serve/control.h"

namespace gofs::host {

/// Has the server reach what is registered; where others ask it something, later, unless this may
/// wait for them. By the holder of opening_. Throws std::bad_alloc.
void AttachedVolume::open_windows(Link& link, bool may_wait) const {
  const uint64_t added = buffers_.added();
  if (link.windows_as_of.load(std::memory_order_relaxed) == added) return;
  for (const RegisteredBuffers::Buffer& buffer : buffers_.all()) {
    auto* const memory = reinterpret_cast<void*>(buffer.begin);
    const auto [place, is_new] =
        link.windows.try_emplace(memory, WindowOfClient{0, memory, buffer.end - buffer.begin});
    if (!is_new || open_window(link, place->second, may_wait)) continue;
    link.windows.erase(place);
    return;
  }
  link.windows_as_of.store(added, std::memory_order_relaxed);
}

/// Number 0 stays where the server does not reach it. False: others ask it something.
bool AttachedVolume::open_window(Link& link, WindowOfClient& window, bool may_wait) const {
  try {
    // A name of memory is all that it takes to reach it: it is for a server of the same user.
    const std::optional<GpuMemory> gpu =
        link.server_is_trusted ? GpuMemory::at(window.memory) : std::nullopt;
    if (!gpu) return true;
    const std::optional<NamedGpuMemory> named = gpu->name(window.memory, window.bytes);
    if (!named) return true;
    Question question{.ask = Ask::kOpenWindow};
    question.memory = {named->handle, named->whole_bytes, named->offset, window.bytes};
    const auto number =
        unpacked<uint32_t>(may_wait ? link.line.ask(question, nullptr, named->descriptor)
                                    : link.line.ask_at_once(question, named->descriptor));
    if (number == 0 || number >= serve::kWindowsMax) return true;
    const WindowOfClient opened{number, window.memory, window.bytes};
    link.channel.add_window(opened);
    window = opened;
    const std::lock_guard lock(mutex_);
    if (link.kernels != nullptr) link.kernels->add_window(opened);
  } catch (const std::system_error& problem) {
    return problem.code().value() != EBUSY;
  } catch (const std::bad_alloc&) {
  }
  return true;
}

void AttachedVolume::close_window(Link& link, const void* memory) {
  const auto found = link.windows.find(memory);
  if (found == link.windows.end()) return;
  const uint32_t number = found->second.number;
  link.windows.erase(found);
  if (number == 0) return;
  link.channel.remove_window(number);
  {
    const std::lock_guard lock(mutex_);
    if (link.kernels != nullptr) link.kernels->remove_window(number);
  }
  try {
    (void)link.line.ask({.ask = Ask::kCloseWindow, .window = number});
  } catch (const std::exception&) {
    // It ends with this client, where that has not ended already; the next call attaches again.
    link.channel.leave();
  }
}

bool AttachedVolume::reaches(const void* memory, uint64_t bytes) {
  if (!process_.is_ours() || buffers_.added() == 0) return false;
  const std::shared_ptr<Link> link = this->link();
  if (link == nullptr) return false;
  if (link->windows_as_of.load(std::memory_order_relaxed) != buffers_.added()) {
    // Who opens a channel, or asks something, may take long: others do not wait for that.
    const std::unique_lock opening(opening_, std::try_to_lock);
    try {
      if (opening) open_windows(*link, false);
    } catch (const std::bad_alloc&) {
    }
  }
  return link->channel.reaches(memory, bytes);
}

Expected<BufferHandle> AttachedVolume::register_buffer(void* memory, uint64_t bytes) {
  if (!process_.is_ours()) return not_ours();
  const std::lock_guard opening(opening_);
  auto buffer = buffers_.add(memory, bytes, [] {});
  if (!buffer) return buffer;
  const std::shared_ptr<Link> link = this->link();
  try {
    if (link != nullptr) open_windows(*link, true);
  } catch (const std::bad_alloc&) {  // its data is copied
  }
  return buffer;
}

Expected<void> AttachedVolume::unregister_buffer(BufferHandle buffer) {
  if (!process_.is_ours()) return not_ours();
  const std::lock_guard opening(opening_);
  const void* memory = nullptr;
  auto removed = buffers_.remove(buffer, [&](void* its) { memory = its; });
  if (!removed) return removed;
  std::shared_ptr<Link> link;  // another server would know nothing of it
  {
    const std::lock_guard lock(mutex_);
    link = link_;
  }
  if (link != nullptr && !link->channel.is_gone()) close_window(*link, memory);
  return removed;
}

}  // namespace gofs::host
