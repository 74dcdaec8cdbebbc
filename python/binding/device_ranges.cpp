// SPDX-License-Identifier: Apache-2.0
//
// Ranges of open files and memory that is named by its address: a GPU's, in the order of a stream.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "classes.hpp"
#include "open_file.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

/// File, offset in it, address, bytes.
using Given = std::vector<std::tuple<nb::object, uint64_t, uint64_t, uint64_t>>;

/// The ranges of `given`, whose files stay open as long as `locks`. With the GIL.
std::vector<IoRange> ranges_of(const MountedVolume& volume, const Given& given,
                               std::vector<std::shared_lock<std::shared_mutex>>& locks) {
  std::vector<IoRange> ranges;
  ranges.reserve(given.size());
  for (const auto& [file, offset, address, bytes] : given) {
    auto& open = nb::cast<OpenFile&>(file);
    if (!open.is_of(volume)) throw nb::value_error("the file is of another volume");
    locks.emplace_back();
    ranges.push_back(
        {open.keep_open(locks.back()), reinterpret_cast<void*>(address), bytes, offset});
  }
  return ranges;
}

Expected<RangeCall> begin(Volume& volume, bool writes, const std::vector<IoRange>& ranges,
                          uint64_t stream) {
  auto* const in_order = reinterpret_cast<CUstream_st*>(stream);
  return writes ? volume.write_ranges(ranges, in_order) : volume.read_ranges(ranges, in_order);
}

/// Moves them, and waits. Of each range its bytes, or a negative errno.
std::vector<int64_t> move_ranges(MountedVolume& self, const Given& given, bool writes,
                                 uint64_t stream) {
  std::vector<std::shared_lock<std::shared_mutex>> locks;
  const std::vector<IoRange> ranges = ranges_of(self, given, locks);
  return take(self.call([&](Volume& volume) -> Expected<std::vector<int64_t>> {
    auto begun = begin(volume, writes, ranges, stream);
    if (!begun) return begun.error();
    return begun->wait();
  }),
              &self.name());
}

/// Whether such memory can be moved: tried with a file that is not open.
bool reaches(MountedVolume& self, uint64_t address, uint64_t bytes) {
  return self.call([&](Volume& volume) {
    return begin(volume, false, {{-1, reinterpret_cast<void*>(address), bytes, 0}}, 0).has_value();
  });
}

/// What was begun and is not waited for.
class Transfer {
 public:
  Transfer(RangeCall call, const Path& name, std::vector<nb::object> files)
      : call_(std::move(call)), name_(name), files_(std::move(files)) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  /// Waits, so that no file is closed that is read.
  ~Transfer() {
    if (!call_.is_done()) (void)finish();
  }

  bool is_done() const { return call_.is_done(); }
  /// As move_ranges().
  std::vector<int64_t> wait() const { return take(finish(), &name_); }

 private:
  Expected<std::vector<int64_t>> finish() const {
    const nb::gil_scoped_release released;
    return call_.wait();
  }

  const RangeCall call_;
  const Path name_;  // of the volume
  const std::vector<nb::object> files_;
};

/// The files are no other caller's, who might close them meanwhile.
Transfer* begin_ranges(MountedVolume& self, const Given& given, bool writes, uint64_t stream) {
  std::vector<std::shared_lock<std::shared_mutex>> locks;
  const std::vector<IoRange> ranges = ranges_of(self, given, locks);
  std::vector<nb::object> files;
  for (const auto& each : given) files.push_back(std::get<0>(each));
  auto begun = self.call([&](Volume& volume) { return begin(volume, writes, ranges, stream); });
  return new Transfer(take(std::move(begun), &self.name()), self.name(), std::move(files));
}

}  // namespace

void define_device_ranges(nb::module_& module, VolumeClass& volume) {
  nb::class_<Transfer>(module, "Transfer")
      .def("done", &Transfer::is_done)
      .def("wait", &Transfer::wait);
  volume
      .def_prop_ro("reaches_gpu",
                   [](MountedVolume& self) {
                     return self.call([](Volume& of) {
                       return static_cast<bool>(of.device()) && of.info().backend == "cuda";
                     });
                   })
      .def("reaches", &reaches, "address"_a, "bytes"_a)
      .def("move_ranges", &move_ranges, "ranges"_a, "writes"_a, "stream"_a)
      .def("begin_ranges", &begin_ranges, "ranges"_a, "writes"_a, "stream"_a);
}

}  // namespace gofs::python
