// SPDX-License-Identifier: Apache-2.0
//
// Ranges of open files and memory that is named by its address: a GPU's, in the order of a stream.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "begin_ranges.hpp"
#include "classes.hpp"
#include "gofs/gpu_memory.hpp"
#include "open_file.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gofs::python {

namespace {

/// File, offset in it, address, bytes.
using Given = std::vector<std::tuple<nb::object, uint64_t, uint64_t, uint64_t>>;

/// The ranges of `given`. `files` are theirs, each once.
std::vector<IoRange> ranges_of(const MountedVolume& volume, const Given& given,
                               std::set<OpenFile*>& files) {
  std::vector<IoRange> ranges;
  ranges.reserve(given.size());
  for (const auto& [file, offset, address, bytes] : given) {
    auto& open = nb::cast<OpenFile&>(file);
    if (!open.is_of(volume)) throw nb::value_error("the file is of another volume");
    files.insert(&open);
    ranges.push_back({open.descriptor(), reinterpret_cast<void*>(address), bytes, offset});
  }
  return ranges;
}

/// What `body` answers, which is given the volume while all of `files` are open: without the GIL,
/// which who closes one of them may need to come to its end. Raises ValueError where one is closed.
template <typename Body>
auto call_with(MountedVolume& self, const std::set<OpenFile*>& files, Body body) {
  auto answer = self.call([&](Volume& volume) -> std::optional<decltype(body(volume))> {
    std::vector<std::shared_lock<std::shared_mutex>> locks(files.size());
    auto lock = locks.begin();
    for (OpenFile* const file : files) {
      if (!file->keep_open(*lock++)) return std::nullopt;
    }
    return body(volume);
  });
  if (!answer) OpenFile::raise_closed();
  return take(*std::move(answer), &self.name());
}

/// Moves them, and waits. Of each range its bytes, or a negative errno.
std::vector<int64_t> move_ranges(MountedVolume& self, const Given& given, bool writes,
                                 uint64_t stream) {
  std::set<OpenFile*> files;
  const std::vector<IoRange> ranges = ranges_of(self, given, files);
  return call_with(self, files, [&](Volume& volume) -> Expected<std::vector<int64_t>> {
    auto begun = begin_ranges(volume, writes, ranges, stream);
    if (!begun) return begun.error();
    return begun->wait();
  });
}

/// Address, bytes.
using Memory = std::vector<std::tuple<uint64_t, uint64_t>>;

/// What to move such memory in the order of `stream` would answer, before a file is touched: tried
/// with a file that is not open.
Expected<RangeCall> try_memory(MountedVolume& self, const Memory& given, uint64_t stream) {
  std::vector<IoRange> ranges;
  for (const auto& [address, bytes] : given) {
    ranges.push_back({-1, reinterpret_cast<void*>(address), bytes, 0});
  }
  return self.call([&](Volume& volume) { return begin_ranges(volume, false, ranges, stream); });
}

/// Raises its error, and that of a stream which is captured.
void check_memory(MountedVolume& self, const Memory& given, uint64_t stream) {
  const RangeCall tried = take(try_memory(self, given, stream), &self.name());
  if (self.is_on_gpu()) return;
  for (const int64_t result : take(tried.wait(), &self.name())) {  // which has ended already
    if (result != -EBADF) {
      raise({static_cast<int>(-result), "the stream is captured for a graph"}, &self.name());
    }
  }
}

/// Whether such memory can be moved: by the GPU that has mounted the volume, or, where none has, by
/// the driver, whose memory it then is.
bool reaches(MountedVolume& self, uint64_t address, uint64_t bytes) {
  if (self.is_on_gpu()) return try_memory(self, {{address, bytes}}, 0).has_value();
  return bytes == 0 || is_gpu_memory(reinterpret_cast<const void*>(address));
}

/// The number of the registration.
uint64_t register_buffer(MountedVolume& self, uint64_t address, uint64_t bytes) {
  auto buffer = self.call([&](Volume& volume) {
    return volume.register_buffer(reinterpret_cast<void*>(address), bytes);
  });
  return take(std::move(buffer), &self.name()).id;
}

void unregister_buffer(MountedVolume& self, uint64_t number) {
  take(self.call([&](Volume& volume) { return volume.unregister_buffer({number}); }), &self.name());
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
    return without_gil([&] { return call_.wait(); });
  }

  const RangeCall call_;
  const Path name_;  // of the volume
  const std::vector<nb::object> files_;
};

/// The files are no other caller's, who might close them meanwhile.
Transfer* begin_transfer(MountedVolume& self, const Given& given, bool writes, uint64_t stream) {
  std::set<OpenFile*> files;
  const std::vector<IoRange> ranges = ranges_of(self, given, files);
  std::vector<nb::object> kept;
  for (const auto& each : given) kept.push_back(std::get<0>(each));
  RangeCall begun = call_with(
      self, files, [&](Volume& volume) { return begin_ranges(volume, writes, ranges, stream); });
  return new Transfer(std::move(begun), self.name(), std::move(kept));
}

}  // namespace

void define_device_ranges(nb::module_& module, VolumeClass& volume) {
  nb::class_<Transfer>(module, "Transfer")
      .def("done", &Transfer::is_done)
      .def("wait", &Transfer::wait);
  volume.def_prop_ro("reaches_gpu", &MountedVolume::is_on_gpu)
      .def("reaches", &reaches, "address"_a, "bytes"_a)
      .def("register_buffer", &register_buffer, "address"_a, "bytes"_a)
      .def("unregister_buffer", &unregister_buffer, "number"_a)
      .def("check_memory", &check_memory, "memory"_a, "stream"_a)
      .def("move_ranges", &move_ranges, "ranges"_a, "writes"_a, "stream"_a)
      .def("begin_ranges", &begin_transfer, "ranges"_a, "writes"_a, "stream"_a);
}

}  // namespace gofs::python
