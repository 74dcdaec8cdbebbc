// SPDX-License-Identifier: Apache-2.0
//
// Named timing models and the text form of models. The figures of the presets are those of the
// drives' data sheets and published measurements; timing_test.cpp holds the models to them.
#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string>

#include "ssd/virtual_ssd.h"

namespace gofs::ssd {

namespace {

/// A PCIe 4.0 flash SSD: 1.4 M random reads/s, 50 us for one, 7.45 GB/s read and 6.9 GB/s written.
/// Many dies that each take tens of microseconds, and a write buffer in front of them.
TimingModel make_990pro() {
  TimingModel model;
  model.units = 128;
  model.read_block_ns = 40000;
  model.write_block_ns = 76000;
  model.read_latency_ns = 9000;
  model.write_latency_ns = 8000;
  model.flush_latency_ns = 20000;
  model.write_buffer_ns = 1000000;
  model.link_bytes_per_us = 7450;
  model.link_write_bytes_per_us = 6900;
  model.iops = 1400000;
  return model;
}

/// A low-latency SSD: 1.5 M random commands/s, 7 us for one, about 7 GB/s. Few fast units and no
/// volatile buffer, so flushes cost little.
TimingModel make_p5800x() {
  TimingModel model;
  model.units = 8;
  model.read_fixed_ns = model.write_fixed_ns = 1100;
  model.read_block_ns = model.write_block_ns = 4200;
  model.read_latency_ns = model.write_latency_ns = 1200;
  model.flush_latency_ns = 1000;
  model.link_bytes_per_us = 7100;
  model.link_write_bytes_per_us = 6100;
  model.iops = 1500000;
  return model;
}

struct Setting {
  std::string_view name;
  void (*set)(TimingModel& model, uint32_t value);
};

constexpr Setting kSettings[] = {
    {"units", [](TimingModel& m, uint32_t v) { m.units = v; }},
    {"stripe_bytes", [](TimingModel& m, uint32_t v) { m.stripe_bytes = v; }},
    {"unit_ns", [](TimingModel& m, uint32_t v) { m.read_block_ns = m.write_block_ns = v; }},
    {"read_ns", [](TimingModel& m, uint32_t v) { m.read_block_ns = v; }},
    {"write_ns", [](TimingModel& m, uint32_t v) { m.write_block_ns = v; }},
    {"read_fixed_ns", [](TimingModel& m, uint32_t v) { m.read_fixed_ns = v; }},
    {"write_fixed_ns", [](TimingModel& m, uint32_t v) { m.write_fixed_ns = v; }},
    {"latency_ns",
     [](TimingModel& m, uint32_t v) {
       m.read_latency_ns = m.write_latency_ns = m.flush_latency_ns = v;
     }},
    {"read_latency_ns", [](TimingModel& m, uint32_t v) { m.read_latency_ns = v; }},
    {"write_latency_ns", [](TimingModel& m, uint32_t v) { m.write_latency_ns = v; }},
    {"flush_latency_ns", [](TimingModel& m, uint32_t v) { m.flush_latency_ns = v; }},
    {"write_buffer_ns", [](TimingModel& m, uint32_t v) { m.write_buffer_ns = v; }},
    {"link_mb_s",
     [](TimingModel& m, uint32_t v) { m.link_bytes_per_us = m.link_write_bytes_per_us = v; }},
    {"link_read_mb_s", [](TimingModel& m, uint32_t v) { m.link_bytes_per_us = v; }},
    {"link_write_mb_s", [](TimingModel& m, uint32_t v) { m.link_write_bytes_per_us = v; }},
    {"iops", [](TimingModel& m, uint32_t v) { m.iops = v; }},
};

[[noreturn]] void reject(std::string_view what, std::string_view word) {
  throw std::invalid_argument("timing model: " + std::string(what) + " \"" + std::string(word) +
                              "\"");
}

bool apply_preset(TimingModel& model, std::string_view name) {
  if (name == "none") {
    model = TimingModel{};
  } else if (name == "990pro") {
    model = make_990pro();
  } else if (name == "p5800x") {
    model = make_p5800x();
  } else {
    return false;
  }
  return true;
}

void apply_setting(TimingModel& model, std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) reject("neither a model nor a setting:", word);
  const std::string_view name = word.substr(0, equals);
  const std::string_view text = word.substr(equals + 1);
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) reject("not a number in", word);
  for (const Setting& setting : kSettings) {
    if (setting.name != name) continue;
    setting.set(model, value);
    return;
  }
  reject("no such setting:", name);
}

}  // namespace

TimingModel parse_timing_model(std::string_view text) {
  TimingModel model;
  bool first = true;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, comma - begin);
    if (!first || !apply_preset(model, word)) apply_setting(model, word);
    first = false;
    begin = comma + 1;
  }
  if (model.units > kTimingUnitsMax) reject("more than 1024 units in", text);
  if (model.stripe_bytes == 0) reject("a stripe of no bytes in", text);
  if (model.iops > 1000000000) reject("more than 10^9 commands/s in", text);
  return model;
}

}  // namespace gofs::ssd
