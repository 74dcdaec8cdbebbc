// SPDX-License-Identifier: Apache-2.0
//
// Buffers that a client has registered, as windows of its server's: calls then move data there
// directly. Of what the server does not reach, data is copied.
#include <optional>
#include <system_error>
#include <utility>

#include "host/gpu_memory.h"
#include "host/serve/attached_link.h"

namespace gofs::host {

/// Has the server reach what is registered. By the holder of opening_.
void AttachedVolume::open_windows(Link& link) const {
  const uint64_t added = buffers_.added();
  if (link.windows_as_of == added) return;
  for (const RegisteredBuffers::Buffer& buffer : buffers_.all()) {
    auto* const memory = reinterpret_cast<void*>(buffer.begin);
    if (link.windows.contains(memory)) continue;
    link.windows[memory] = open_window(link, memory, buffer.end - buffer.begin);
  }
  link.windows_as_of = added;
}

/// Number 0: the server does not reach it.
WindowOfClient AttachedVolume::open_window(Link& link, void* memory, uint64_t bytes) const {
  WindowOfClient window{0, memory, bytes};
  const std::optional<GpuMemory> gpu = GpuMemory::at(memory);
  if (!gpu) return window;
  const std::optional<NamedGpuMemory> named = gpu->name(memory, bytes);
  if (!named) return window;
  Question question{.ask = Ask::kOpenWindow, .cleaning = {}};
  question.memory = {named->handle, named->bytes, named->offset, bytes};
  try {
    window.number = unpacked<uint32_t>(link.line.ask(question, nullptr, named->descriptor));
  } catch (const std::system_error&) {
    return window;
  }
  link.channel.add_window(window);
  const std::lock_guard lock(mutex_);
  if (link.kernels != nullptr) link.kernels->add_window(window);
  return window;
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
    (void)link.line.ask({.ask = Ask::kCloseWindow, .cleaning = {}, .window = number});
  } catch (const std::system_error&) {  // the server has ended, and the window with it
  }
}

bool AttachedVolume::reaches(const void* memory, uint64_t bytes) {
  if (!process_.is_ours() || buffers_.added() == 0) return false;
  const std::shared_ptr<Link> link = this->link();
  if (link == nullptr) return false;
  if (link->windows_as_of != buffers_.added()) {
    // Who opens a channel may have to wait for long, others need not.
    const std::unique_lock opening(opening_, std::try_to_lock);
    if (opening) open_windows(*link);
  }
  return link->channel.reaches(memory, bytes);
}

Expected<BufferHandle> AttachedVolume::register_buffer(void* memory, uint64_t bytes) {
  if (!process_.is_ours()) return not_ours();
  auto buffer = buffers_.add(memory, bytes, [] {});
  if (!buffer) return buffer;
  const std::lock_guard opening(opening_);
  const std::shared_ptr<Link> link = this->link();
  if (link != nullptr) open_windows(*link);
  return buffer;
}

Expected<void> AttachedVolume::unregister_buffer(BufferHandle buffer) {
  if (!process_.is_ours()) return not_ours();
  const void* memory = nullptr;
  auto removed = buffers_.remove(buffer, [&](void* its) { memory = its; });
  if (!removed) return removed;
  const std::lock_guard opening(opening_);
  const std::shared_ptr<Link> link = this->link();
  if (link != nullptr) close_window(*link, memory);
  return removed;
}

}  // namespace gofs::host
