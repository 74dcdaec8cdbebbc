// SPDX-License-Identifier: Apache-2.0
//
// Calls about a volume as a whole.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>

#include "classes.hpp"
#include "gofs/command_times.hpp"
#include "gofs/metrics.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

template <auto call>
struct OnVolume;

template <typename Result, Expected<Result> (Volume::*call)()>
struct OnVolume<call> {
  static Result method(MountedVolume& self) {
    return take(self.call([](Volume& volume) { return (volume.*call)(); }), &self.name());
  }
};

/// For a member of Volume that takes nothing.
template <auto call>
constexpr auto on_volume = &OnVolume<call>::method;

/// None where no SSD of it is timed.
std::optional<CommandTimes> command_times(MountedVolume& self) {
  CommandTimes times =
      take(self.call([](Volume& volume) { return gofs::command_times(volume); }), &self.name());
  if (times.ssds == 0) return std::nullopt;
  return times;
}

std::string metrics(MountedVolume& self) {
  return take(self.call([](Volume& volume) { return gofs::metrics(volume); }), &self.name());
}

VolumeInfo info(MountedVolume& self) {
  return self.call([](Volume& volume) { return volume.info(); });
}

nb::list warnings(MountedVolume& self) {
  nb::list list;
  for (const std::string& sentence : self.call([](Volume& volume) { return volume.warnings(); })) {
    list.append(decoded(sentence));
  }
  return list;
}

CleaningReport collect_garbage(MountedVolume& self, uint32_t segments_max, bool emptiest_first) {
  CleaningOptions options;
  options.segments_max = segments_max;
  options.emptiest_first = emptiest_first;
  return take(self.call([&](Volume& volume) { return volume.collect_garbage(options); }),
              &self.name());
}

/// For kernels: gofs::VolumeHandle as a number; 0 where they cannot use the volume.
uintptr_t device_handle(MountedVolume& self) {
  const VolumeHandle handle = self.call([](Volume& volume) { return volume.device(); });
  return reinterpret_cast<uintptr_t>(handle.state);
}

}  // namespace

void define_upkeep(VolumeClass& volume) {
  volume.def("close", &MountedVolume::close)
      .def("await_closing", &MountedVolume::await_closing)
      .def_prop_ro("closed", &MountedVolume::is_closed)
      .def_prop_ro("is_ours", &MountedVolume::is_ours)
      .def("sync", on_volume<&Volume::sync>)
      .def("statfs", on_volume<&Volume::statfs>)
      .def("statistics", on_volume<&Volume::statistics>)
      .def("command_times", &command_times)
      .def("metrics", &metrics)
      .def("memory", on_volume<&Volume::memory>)
      .def("info", &info)
      .def("warnings", &warnings, nb::sig("def warnings(self) -> list[str]"))
      .def("collect_garbage", &collect_garbage, "segments_max"_a, "emptiest_first"_a)
      .def("device_handle", &device_handle);
}

}  // namespace gofs::python
