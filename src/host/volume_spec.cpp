// SPDX-License-Identifier: Apache-2.0
#include "host/volume_spec.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <exception>
#include <limits>

#include "host/ablations.h"
#include "host/messages.h"
#include "host/providers.h"
#include "nvme/device.h"
#include "ssd/virtual_ssd.h"

namespace gofs::host {

namespace {

constexpr std::string_view kMemoryPrefix = "ram:";
constexpr std::string_view kFilePrefix = "file:";

Error invalid(std::string_view spec, const std::string& what) {
  return make_error(EINVAL, std::string(spec), what);
}

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Digits at the head of `text`, which is left with the rest.
std::optional<uint64_t> take_number(std::string_view& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto value = parse_number(text.substr(0, digits));
  text.remove_prefix(digits);
  return value;
}

std::optional<uint64_t> scaled(uint64_t value, uint64_t unit) {
  if (value > std::numeric_limits<uint64_t>::max() / unit) return std::nullopt;
  return value * unit;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return bytes;
}

/// Where the path at the head of `text` ends; see the top of volume_spec.h.
size_t path_end(std::string_view text, const std::function<bool(const std::string&)>& exists) {
  constexpr std::string_view kEnds = "?+";
  const size_t first = std::min(text.find_first_of(kEnds), text.size());
  if (text.starts_with(kMemoryPrefix) || text.starts_with(kFilePrefix)) return first;
  if (!provider_of(text).empty()) return first;
  size_t end = text.size();
  while (end != first) {
    if (exists(std::string(text.substr(0, end)))) return end;
    end = text.find_last_of(kEnds, end - 1);
  }
  return first;
}

/// A number that an option must have between two bounds; what is wrong with it otherwise.
std::string set_bounded(std::string_view value, uint64_t low, uint64_t high,
                        std::optional<uint32_t>& target) {
  const auto number = parse_number(value);
  if (!number || *number < low || *number > high) {
    return "wants a number from " + std::to_string(low) + " to " + std::to_string(high);
  }
  target = static_cast<uint32_t>(*number);
  return {};
}

/// Whether an option is about an image or block device, whatever is made of it.
bool is_of_image(std::string_view name) {
  return name == "model" || name == "lba" || name == "media" || name == "spare" ||
         name == "threads" || name == "poll";
}

std::string set_media(VolumeSpec& spec, std::string_view value) {
  if (value == "hosted") {
    spec.media = MediaKind::kHosted;
  } else if (value == "memory") {
    spec.media = MediaKind::kMemory;
  } else if (value == "hbm") {
    spec.media = MediaKind::kDeviceMemory;
  } else {
    return "wants hosted, memory or hbm";
  }
  return {};
}

/// Takes from a member what it has of another one's options, `from`, and what is not about its
/// kind.
void drop_others_options(VolumeSpec& spec, const VolumeSpec& from) {
  if (!spec.is_physical()) {
    // What says how a physical SSD is reached chooses no kind here.
    const VolumeSpec usual;
    spec.doorbells = usual.doorbells;
    spec.queue_place = usual.queue_place;
    spec.data_place = usual.data_place;
    if (from.is_physical()) spec.staging_bytes.reset();
  }
  if (!spec.path.empty()) return;
  spec.media = MediaKind::kAuto;
  spec.threads.reset();
  spec.always_polls = false;
  if (!spec.is_physical()) spec.staging_bytes.reset();
}

/// Options that one kind of SSD has choose it, where nothing else does. Empty, or which of them
/// does not go with the kind that was chosen.
std::string settle_media(VolumeSpec& spec) {
  const bool of_virtual = spec.has_model || spec.spare_bytes.has_value();
  const bool of_hosted = spec.threads.has_value() || spec.always_polls;
  if (spec.path.empty()) {
    if (spec.is_hosted()) return "media=hosted is about an image or a block device";
    if (of_hosted) return "'threads' and 'poll' are about a hosted SSD";
    if (spec.staging_bytes) return "'staging' is about a physical or a hosted SSD";
    return {};
  }
  const bool stages = spec.staging_bytes.has_value();
  if (spec.media == MediaKind::kAuto && (of_hosted || stages)) spec.media = MediaKind::kHosted;
  if (spec.media == MediaKind::kAuto && of_virtual) spec.media = MediaKind::kMemory;
  if (spec.is_hosted() && of_virtual) return "'model' and 'spare' are about a virtual SSD";
  if (!spec.is_hosted() && of_hosted) return "'threads' and 'poll' are about a hosted SSD";
  if (!spec.is_hosted() && spec.staging_bytes) {
    return "'staging' is about a physical or a hosted SSD";
  }
  return {};
}

/// One of a physical SSD alone. Empty, or what is wrong with it; `known` is false for others.
std::string set_physical_option(VolumeSpec& spec, std::string_view name, std::string_view value,
                                bool& known) {
  const bool is_place = value == "host" || value == "gpu" || value.find('/') != value.npos;
  known = true;
  if (name == "doorbell") {
    if (value != "auto" && value != "gpu" && value != "cpu") return "wants gpu, cpu or auto";
    spec.doorbells = value == "auto"  ? Doorbells::kAuto
                     : value == "gpu" ? Doorbells::kGpu
                                      : Doorbells::kCpu;
  } else if (name == "data") {
    if (!is_place) return "wants host, gpu or a file's path";
    spec.data_place = value;
  } else if (name == "queues" && is_place) {
    spec.queue_place = value;
  } else {
    known = false;
  }
  return {};
}

/// Sets one option. Empty, or what is wrong with it.
std::string set_option(VolumeSpec& spec, std::string_view name, std::string_view value) {
  constexpr uint64_t kTransferBytesMax = uint64_t{kBlockBytes} << 16;
  constexpr uint32_t kDescriptorsMax = 1u << 24;
  constexpr uint64_t kStagingBytesMax = nvme::kPrpBytesMax;
  constexpr uint32_t kThreadsMax = 64;
  bool known = false;
  std::string wrong = set_physical_option(spec, name, value, known);
  if (known) return spec.is_physical() ? wrong : "is about a physical SSD";
  if (spec.is_physical() && is_of_image(name)) return "is about an image or a block device";
  if (name == "model") {
    try {
      spec.model = ssd::parse_timing_model(value);
    } catch (const std::exception& problem) {
      return std::string("is no ") + problem.what();  // "timing model: ..."
    }
    spec.model_name = value;
    spec.has_model = true;
  } else if (name == "queues") {
    return set_bounded(value, 1, nvme::kIoQueuesMax, spec.queues);
  } else if (name == "depth") {
    return set_bounded(value, 2, kQueueDepthMax, spec.queue_depth);
  } else if (name == "lba") {
    if (value != "512" && value != "4096") return "wants 512 or 4096";
    spec.lba_bytes = value == "512" ? 512 : 4096;
  } else if (name == "media") {
    return set_media(spec, value);
  } else if (name == "threads") {
    return set_bounded(value, 1, kThreadsMax, spec.threads);
  } else if (name == "poll") {
    if (value != "always" && value != "auto") return "wants always or auto";
    spec.always_polls = value == "always";
  } else if (name == "staging") {
    const auto size = parse_size(value);
    if (!size || *size == 0 || *size % kBlockBytes != 0 || *size > kStagingBytesMax) {
      return "wants a multiple of 4K up to 256K";
    }
    spec.staging_bytes = static_cast<uint32_t>(*size);
  } else if (name == "spare") {
    const auto size = parse_size(value);
    if (!size || *size > uint64_t{1} << 40) return "wants a size up to 1T";
    spec.spare_bytes = *size;
  } else if (name == "mdts") {
    const auto size = parse_size(value);
    if (!size || *size < kBlockBytes || *size > kTransferBytesMax || !std::has_single_bit(*size)) {
      return "wants a power of two from 4K to 256M";
    }
    spec.transfer_bytes_max = *size;
  } else if (name == "cache") {
    const auto size = parse_size(value);
    if (!size || *size < 64 * kBlockBytes || *size > uint64_t{1} << 40) {
      return "wants a size from 256K to 1T";
    }
    spec.cache_bytes = *size;
  } else if (name == "descriptors") {
    return set_bounded(value, 1, kDescriptorsMax, spec.descriptors);
  } else if (name == "timeout") {
    const auto time_ns = parse_duration_ns(value);
    if (!time_ns || *time_ns == 0) return "wants a time such as 5s or 250ms";
    spec.command_timeout_ns = *time_ns;
  } else if (name == "checkpoint") {
    const auto time_ns = parse_duration_ns(value);
    if (!time_ns || *time_ns == 0) return "wants a time such as 30s or 500ms";
    spec.checkpoint_period_ns = *time_ns;
  } else if (name == "stripe") {
    const auto size = parse_size(value);
    if (!size || *size < kBlockBytes || *size > uint64_t{1} << 30 || !std::has_single_bit(*size)) {
      return "wants a power of two from 4K to 1G";
    }
    spec.stripe_bytes = *size;
  } else if (name == "mode") {
    if (value != "adaptive" && value != "lfs") return "wants adaptive or lfs";
    spec.log_structured = value == "lfs";
  } else if (name == "ablate") {
    return parse_ablations(value, spec.ablations.emplace());
  } else {
    return "is no option (queues, depth, lba, mdts, media, cache, descriptors, timeout, "
           "checkpoint, stripe, mode, ablate; of a virtual SSD model, spare; of a hosted SSD "
           "threads, poll, staging; of a physical SSD doorbell, data, staging)";
  }
  return {};
}

/// Takes the options at the head of `text`, up to a `+` or the end.
Expected<void> take_options(std::string_view whole, std::string_view& text, VolumeSpec& spec) {
  const size_t end = std::min(text.find('+'), text.size());
  std::string_view options = text.substr(0, end);
  text.remove_prefix(end);
  for (;;) {
    const size_t length = std::min(options.find('&'), options.size());
    const std::string_view option = options.substr(0, length);
    const size_t equals = option.find('=');
    if (equals == std::string_view::npos) {
      return invalid(whole, "option '" + std::string(option) + "' has no value");
    }
    const std::string_view name = option.substr(0, equals);
    const std::string problem = set_option(spec, name, option.substr(equals + 1));
    if (!problem.empty()) return invalid(whole, "'" + std::string(name) + "' " + problem);
    if (length == options.size()) return {};
    options.remove_prefix(length + 1);
  }
}

/// A physical SSD's address, and the namespace that may follow it.
Expected<void> set_address(std::string_view whole, std::string_view text, VolumeSpec& spec) {
  const size_t slash = std::min(text.find('/'), text.size());
  spec.address = text.substr(0, slash);
  if (spec.address.empty()) return invalid(whole, "no device is named");
  if (slash == text.size()) return {};
  const auto nsid = parse_number(text.substr(slash + 1));
  if (!nsid || *nsid == 0 || *nsid >= 0xffffffff) {
    return invalid(whole, "wants the number of a namespace after the /, from 1");
  }
  spec.nsid = static_cast<uint32_t>(*nsid);
  return {};
}

Expected<void> set_path(std::string_view whole, std::string_view path, VolumeSpec& spec) {
  spec.provider = provider_of(path);
  if (spec.is_physical()) return set_address(whole, path.substr(spec.provider.size() + 1), spec);
  if (path.starts_with(kMemoryPrefix)) {
    const auto size = parse_size(path.substr(kMemoryPrefix.size()));
    if (!size || *size == 0) {
      return invalid(whole, "wants a size after ram:, such as ram:64M");
    }
    spec.memory_bytes = *size;
  } else if (path.starts_with(kFilePrefix)) {
    const auto decoded = percent_decoded(path.substr(kFilePrefix.size()));
    if (!decoded || decoded->empty()) {
      return invalid(whole, "wants a path after file:, with %XX for special bytes");
    }
    spec.path = *decoded;
  } else if (path.empty()) {
    return invalid(whole, "no image or device is named");
  } else {
    spec.path = path;
  }
  return {};
}

/// Completions and data to two memories have no order between them.
bool spec_is_split(const VolumeSpec& spec) { return spec.queue_place != spec.data_place; }

}  // namespace

std::optional<uint64_t> parse_size(std::string_view text) {
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  uint32_t shift = 0;
  if (!text.empty()) {
    switch (text.front()) {
      case 'K':
      case 'k':
        shift = 10;
        break;
      case 'M':
      case 'm':
        shift = 20;
        break;
      case 'G':
      case 'g':
        shift = 30;
        break;
      case 'T':
      case 't':
        shift = 40;
        break;
      default:
        break;
    }
    if (shift != 0) text.remove_prefix(1);
  }
  if (!text.empty() && text != "B" && (shift == 0 || text != "iB")) return std::nullopt;
  return scaled(*number, uint64_t{1} << shift);
}

std::optional<uint64_t> parse_duration_ns(std::string_view text) {
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  if (text.empty() || text == "s") return scaled(*number, 1'000'000'000);
  if (text == "ms") return scaled(*number, 1'000'000);
  if (text == "us") return scaled(*number, 1'000);
  return std::nullopt;
}

Expected<std::vector<VolumeSpec>> parse_volume_specs(
    std::string_view text, const std::function<bool(const std::string&)>& exists) {
  std::vector<VolumeSpec> specs;
  if (text.find('\0') != std::string_view::npos) {
    return Error{EINVAL, "a volume's name holds a NUL byte"};
  }
  std::string_view rest = text;
  std::vector<size_t> bare;  // those without options
  for (;;) {
    VolumeSpec spec;
    const size_t end = path_end(rest, exists);
    if (auto result = set_path(text, rest.substr(0, end), spec); !result) return result.error();
    std::string_view after = rest.substr(end);
    const bool has_options = after.starts_with('?');
    if (has_options) {
      after.remove_prefix(1);
      if (auto result = take_options(text, after, spec); !result) return result.error();
    }
    spec.text = rest.substr(0, rest.size() - after.size());
    if (!has_options) bare.push_back(specs.size());
    specs.push_back(std::move(spec));
    if (spec_is_split(specs.back())) {
      return invalid(text, "queues and data lie in the same memory: both options, or none");
    }
    if (after.empty()) break;
    rest = after.substr(1);  // a `+`
  }
  for (const size_t index : bare) {
    VolumeSpec filled = specs.back();
    filled.text = std::move(specs[index].text);
    filled.path = std::move(specs[index].path);
    filled.memory_bytes = specs[index].memory_bytes;
    filled.provider = std::move(specs[index].provider);
    filled.address = std::move(specs[index].address);
    filled.nsid = specs[index].nsid;
    drop_others_options(filled, specs.back());
    specs[index] = std::move(filled);
  }
  for (VolumeSpec& spec : specs) {
    if (spec.is_physical()) continue;
    const std::string problem = settle_media(spec);
    if (!problem.empty()) return invalid(text, problem);
  }
  return specs;
}

Expected<std::vector<VolumeSpec>> parse_volume_specs(std::string_view text) {
  return parse_volume_specs(text, [](const std::string& path) {
    struct stat unused;
    return ::stat(path.c_str(), &unused) == 0;
  });
}

}  // namespace gofs::host
