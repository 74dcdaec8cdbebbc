// SPDX-License-Identifier: Apache-2.0
//
// gofs/gofs.h: mounting and unmounting.
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/c/call.h"
#include "host/c/give.h"
#include "host/messages.h"
#include "host/volume_access.h"

namespace gofs::host::c {

namespace {

int options_in_cpp(const gofs_mount_options_t* from, MountOptions& options) {
  gofs_mount_options_t given;
  const int error = take_struct(from, given);
  if (error < 0) return error;
  if (given.backend != nullptr) options.backend = given.backend;
  options.read_only = given.writable == 0;
  options.uid = given.uid;
  options.gid = given.gid;
  if (given.group_count > kGroupsMax) {
    return fail(EINVAL, {"options.group_count is more than 64"});
  }
  if (given.group_count != 0) {
    if (given.groups == nullptr) return fail(EINVAL, {"options.groups is null"});
    options.groups.assign(given.groups, given.groups + given.group_count);
  }
  options.cache_bytes = given.cache_bytes;
  options.queues = given.queues;
  options.queue_depth = given.queue_depth;
  options.command_timeout_ns = given.command_timeout_ns;
  options.lock_timeout_ns = given.lock_timeout_ns;
  options.descriptors = given.descriptors;
  options.clean_percent = given.clean_percent;
  options.checkpoint_period_ns = given.checkpoint_period_ns;
  options.clock_period_ns = given.clock_period_ns;
  options.idle_clean_percent = given.idle_clean_percent;
  options.discard = given.no_discard == 0;
  options.log_structured = given.log_structured != 0;
  options.ablations = given.ablations;
  return 0;
}

int mount(const char* spec, const gofs_mount_options_t* from, gofs_volume** out) {
  MountOptions options;
  const int error = options_in_cpp(from, options);
  if (error < 0) return error;
  auto volume = Volume::mount(spec, options);
  if (!volume) return fail(volume.error());
  *out = new gofs_volume{std::move(*volume)};
  return 0;
}

int attach(const char* path, gofs_volume** out) {
  auto volume = Volume::attach(path);
  if (!volume) return fail(volume.error());
  *out = new gofs_volume{std::move(*volume)};
  return 0;
}

/// What kernels take, or why there is nothing that they could.
Expected<const void*> pointer_for_kernels(const Volume& volume) {
  VolumeState* const mounted = mounted_of(volume);
  if (mounted == nullptr) {
    return make_error(ENODEV, any_of(volume).name(), "a server's, which kernels cannot use");
  }
  VolumeState& state = *mounted;
  if (!state.is_ours()) return state.not_ours();
  if (!state.is_up()) return state.explain(-ENODEV, state.spec().text);
  if (state.has_failed()) return state.explain(-EIO, state.spec().text);
  if (state.backend().is_host()) {
    return make_error(ENODEV, state.spec().text,
                      "mounted by the CPU, so there is nothing that a kernel could use");
  }
  return volume.device().state;
}

}  // namespace

}  // namespace gofs::host::c

using namespace gofs::host::c;

int gofs_mount(const char* spec, const gofs_mount_options_t* options, gofs_volume** volume) {
  if (volume != nullptr) *volume = nullptr;
  return call({{"spec", spec}, {"volume", volume}}, [&] { return mount(spec, options, volume); });
}

int gofs_attach(const char* path, gofs_volume** volume) {
  if (volume != nullptr) *volume = nullptr;
  return call({{"path", path}, {"volume", volume}}, [&] { return attach(path, volume); });
}

int gofs_unmount(gofs_volume* volume) {
  return call({{"volume", volume}}, [&] { return volume->volume.unmount(); });
}

void gofs_volume_free(gofs_volume* volume) {
  (void)call({}, [&] {
    delete volume;
    return 0;
  });
}

int gofs_sync(gofs_volume* volume) {
  return call({{"volume", volume}}, [&] { return volume->volume.sync(); });
}

const void* gofs_volume_device_pointer(const gofs_volume* volume) {
  const void* pointer = nullptr;
  (void)call({{"volume", volume}}, [&] {
    const auto found = pointer_for_kernels(volume->volume);
    if (!found) return fail(found.error());
    pointer = *found;
    return 0;
  });
  return pointer;
}
