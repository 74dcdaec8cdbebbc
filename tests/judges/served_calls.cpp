// SPDX-License-Identifier: Apache-2.0
#include "served_calls.h"

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/cpu_backend.h"
#include "host/serve/channel_client.h"
#include "host/serve/channel_server.h"

namespace gofs::judges {

namespace {

/// Larger than any call of a judge, none of which expects to be cut.
host::ChannelServerOptions options() {
  host::ChannelServerOptions options;
  options.threads = 2;
  options.channels_max = 512;
  options.depth = 16;
  options.part_bytes = uint64_t{8} << 20;
  return options;
}

}  // namespace

struct ServedCalls::Parts {
  explicit Parts(vfs::Filesystem& fs)
      : backend(host::make_cpu_backend(1)), server(served(fs), options()) {}

  host::ServedFilesystem served(vfs::Filesystem& fs) {
    const auto run = [this](const kernels::Body& body, const kernels::Grid& grid, void* params) {
      return backend->run(body, grid, params);
    };
    const auto begin = [this](const kernels::Body& body, const kernels::Grid& grid, void* params) {
      return backend->begin_apart(body, grid, params);
    };
    return {"the session", &fs, backend.get(), run, begin};
  }

  host::ChannelClient& channel_of(const vfs::Credentials& who) {
    std::vector<uint32_t> key = {who.uid, who.gid};
    key.insert(key.end(), who.groups, who.groups + who.group_count);
    const std::lock_guard lock(mutex);
    auto& channel = channels[key];
    if (channel == nullptr) {
      auto opened = server.open({who, 0, true});
      if (!opened) throw std::runtime_error(opened.error().message);
      channel = std::make_unique<host::ChannelClient>(std::move(opened->ends));
    }
    return *channel;
  }

  const std::unique_ptr<kernels::Backend> backend;
  host::ChannelServer server;
  std::mutex mutex;
  std::map<std::vector<uint32_t>, std::unique_ptr<host::ChannelClient>> channels;
};

ServedCalls::ServedCalls(vfs::Filesystem& fs) : parts_(std::make_unique<Parts>(fs)) {}
ServedCalls::~ServedCalls() = default;

int64_t ServedCalls::perform(const vfs::Credentials& who, const request::Arguments& call) {
  const request::Request& record = call.request;
  const uint32_t takes = request::row_of(record.verb).takes;
  const auto text = [](const char* from) { return std::string(from != nullptr ? from : ""); };
  const std::string path = text(call.path);
  const std::string other = text(call.other);
  const std::string name = text(call.name);
  const bool reads = (takes & request::kInput) != 0;
  host::CallRequest passed{};
  passed.verb = record.verb;
  if ((takes & request::kPath) != 0) passed.path = &path;
  if ((takes & request::kOther) != 0) passed.other = &other;
  if ((takes & request::kName) != 0) passed.name = &name;
  passed.number = record.number;
  passed.keep_link = (record.bits & request::kKeepLink) != 0;
  passed.flags = record.flags;
  passed.mode = record.mode;
  passed.device_major = record.device_major;
  passed.device_minor = record.device_minor;
  passed.descriptor = record.descriptor;
  passed.buffer = reads ? nullptr : call.buffer;
  passed.input = reads ? call.buffer : nullptr;
  passed.bytes = record.bytes;
  passed.offset = record.offset;
  passed.other_descriptor = record.other_descriptor;
  passed.other_offset = record.other_offset;
  passed.length = record.length;
  passed.uid = record.uid;
  passed.gid = record.gid;
  passed.accessed = record.accessed;
  passed.modified = record.modified;
  return parts_->channel_of(who).call(passed).result;
}

}  // namespace gofs::judges
