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
#include "host/serve/kernel_end.h"

namespace gofs::judges {

namespace {

/// Parts are larger than any call of a judge, none of which expects to be cut; but for those of
/// kernels, if so wanted.
host::ChannelServerOptions options(uint64_t kernel_part_bytes) {
  host::ChannelServerOptions options;
  options.threads = 2;
  options.channels_max = 512;
  options.depth = 16;
  options.part_bytes = uint64_t{8} << 20;
  options.kernel_depth = 256;  // no judge has so much under way that none is left for later
  options.kernel_part_bytes = kernel_part_bytes;
  return options;
}

}  // namespace

struct ServedCalls::Parts {
  Parts(vfs::Filesystem& fs, const Options& wanted)
      : shares_descriptors(!wanted.one_user),
        backend(host::make_cpu_backend(1)),
        server(served(fs), options(wanted.kernel_part_bytes)) {}

  /// A user's channels.
  struct Client {
    explicit Client(host::ChannelServer::Opened opened)
        : number(opened.number), host(std::move(opened.ends)) {}

    const uint32_t number;
    host::ChannelClient host;
    std::unique_ptr<host::KernelEnd> kernels;
  };

  host::ServedFilesystem served(vfs::Filesystem& fs) {
    const auto run = [this](const kernels::Body& body, const kernels::Grid& grid, void* params) {
      return backend->run(body, grid, params);
    };
    const auto begin = [this](const kernels::Body& body, const kernels::Grid& grid, void* params) {
      return backend->begin_apart(body, grid, params);
    };
    return {"the session", &fs, backend.get(), run, begin};
  }

  /// By the holder of the mutex.
  Client& client_of(const vfs::Credentials& who) {
    std::vector<uint32_t> key = {who.uid, who.gid};
    key.insert(key.end(), who.groups, who.groups + who.group_count);
    auto& client = clients[key];
    if (client == nullptr) {
      auto opened = server.open({who, 0, shares_descriptors});
      if (!opened) throw std::runtime_error(opened.error().message);
      client = std::make_unique<Client>(std::move(*opened));
    }
    return *client;
  }

  host::ChannelClient& channel_of(const vfs::Credentials& who) {
    const std::lock_guard lock(mutex);
    return client_of(who).host;
  }

  serve::KernelChannel& channel_of_kernels(const vfs::Credentials& who) {
    const std::lock_guard lock(mutex);
    Client& client = client_of(who);
    if (client.kernels == nullptr) {
      auto opened = server.open_for_kernels(client.number);
      if (!opened) throw std::runtime_error(opened.error().message);
      host::KernelEnds ends{{opened->of_gpu, opened->bytes}, std::move(opened->memory)};
      client.kernels = std::make_unique<host::KernelEnd>(host::make_cpu_backend(1), std::move(ends),
                                                         in_this_process, 0);
    }
    return *serve::channel_of(client.kernels->handle());
  }

  const bool shares_descriptors;
  const std::unique_ptr<kernels::Backend> backend;
  host::ChannelServer server;
  const ssd::Descriptor in_this_process;  // no connection, which would tell that the server ends
  std::mutex mutex;
  std::map<std::vector<uint32_t>, std::unique_ptr<Client>> clients;
};

ServedCalls::ServedCalls(vfs::Filesystem& fs, const Options& options)
    : parts_(std::make_unique<Parts>(fs, options)) {}
ServedCalls::~ServedCalls() = default;

serve::KernelChannel& ServedCalls::channel_of_kernels(const vfs::Credentials& who) {
  return parts_->channel_of_kernels(who);
}

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
