// SPDX-License-Identifier: Apache-2.0
//
// Runs in the guest, on an SSD that is bound to vfio-pci: whether VfioTransport does what
// ssd/transport.h promises. Each line of output is "PASS name" or "FAIL name: why".
// usage: gofs_vfio_selftest ADDRESS [FILE]
//   FILE is memory of another device (sysfs resource2), for queues and data in a peer's BAR.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

#include "ssd/admin_probe.h"
#include "ssd/memory_source.h"
#include "ssd/vfio/vfio_transport.h"

namespace gofs {
namespace {

namespace nvme = format::nvme;
using ssd::AdminProbe;
using ssd::MemorySource;
using ssd::vfio::VfioTransport;

constexpr uint64_t kMiB = uint64_t{1} << 20;

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

int failures = 0;

void test(const std::string& name, const std::function<void()>& body) {
  try {
    body();
    std::printf("PASS %s\n", name.c_str());
  } catch (const std::exception& problem) {
    ++failures;
    std::printf("FAIL %s: %s\n", name.c_str(), problem.what());
  }
  std::fflush(stdout);
}

/// Identify through queues and a page that lie in `source`, more often than the ring has slots.
void identify_in(VfioTransport& transport, MemorySource& source) {
  const uint64_t address = transport.map(source.base(), source.bytes());
  {
    AdminProbe probe(transport, source.base(), address);
    for (int i = 0; i < 20; ++i) {
      const nvme::IdentifyController controller = probe.identify_controller();
      expect(std::strncmp(controller.serial_number, "gofs-ssd", 8) == 0, "another serial number");
    }
    const nvme::IdentifyNamespace space = probe.identify_namespace(1);
    expect(space.nsze != 0, "the namespace is empty");
    expect(probe.io_queue_count() >= 4, "less than four I/O queues");
  }
  transport.unmap(address, source.bytes());
}

void registers(const std::string& address) {
  VfioTransport transport(address);
  expect(transport.name() == address, "its name is " + transport.name());
  expect(transport.bar() != nullptr && transport.bar_bytes() >= 0x2000, "no registers");
  expect(transport.read_register(offsetof(nvme::Registers, vs)) >= 0x10000, "no version");
  expect((transport.read_register(offsetof(nvme::Registers, csts)) & nvme::kCstsReady) == 0,
         "it is not disabled");
}

void only_one(const std::string& address) {
  VfioTransport transport(address);
  try {
    VfioTransport second(address);
  } catch (const std::system_error& problem) {
    expect(std::strstr(problem.what(), "another process") != nullptr, problem.what());
    return;
  }
  throw std::runtime_error("it was opened twice");
}

/// What was never mapped is refused by the kernel, and leaves nothing behind.
void refusals(const std::string& address) {
  VfioTransport transport(address);
  void* const hole = ::mmap(nullptr, kMiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expect(hole != MAP_FAILED, "no address space");
  bool refused = false;
  try {
    transport.map(hole, kMiB);
  } catch (const std::system_error&) {
    refused = true;
  }
  ::munmap(hole, kMiB);
  expect(refused, "memory that nobody can use was mapped");
  refused = false;
  try {
    transport.unmap(kMiB * 64, kMiB);
  } catch (const std::system_error&) {
    refused = true;
  }
  expect(refused, "what was not mapped was unmapped");
}

void many_mappings(const std::string& address) {
  VfioTransport transport(address);
  const auto memory = ssd::make_host_memory(4 * kMiB);
  for (int round = 0; round < 3; ++round) {
    uint64_t addresses[8] = {};
    for (uint64_t i = 0; i < 8; ++i) {
      addresses[i] = transport.map(memory->base() + i * kMiB / 2, kMiB / 2);
      for (uint64_t j = 0; j < i; ++j) {
        const uint64_t apart = addresses[i] - addresses[j];
        expect(apart + kMiB / 2 > kMiB - 1, "two mappings overlap");
      }
    }
    for (const uint64_t one : addresses) transport.unmap(one, kMiB / 2);
  }
  // Some stay: the transport takes them away itself.
  transport.map(memory->base(), memory->bytes());
}

/// A command whose page the IOMMU does not know. What the controller says of it differs (QEMU's
/// says nothing): that the IOMMU stopped it is in the kernel's log, which the caller reads.
void stray(const std::string& address) {
  VfioTransport transport(address);
  const auto memory = ssd::make_host_memory(2 * kMiB);
  const uint64_t mapped = transport.map(memory->base(), memory->bytes());
  AdminProbe probe(transport, memory->base(), mapped);
  nvme::SubmissionEntry entry{};
  entry.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kIdentify);
  entry.prp1 = 0x7ff000000;
  entry.cdw10 = nvme::kIdentifyController;
  probe.execute(entry);
  probe.identify_controller();  // it goes on
}

int run(const std::string& address, const std::string& file) {
  test("registers_can_be_read_after_a_reset", [&] { registers(address); });
  test("an_ssd_is_given_to_one_at_a_time", [&] { only_one(address); });
  test("identify_with_queues_in_host_memory", [&] {
    VfioTransport transport(address);
    const auto memory = ssd::make_host_memory(2 * kMiB);
    std::printf("%s\n", memory->description().c_str());
    identify_in(transport, *memory);
    identify_in(transport, *memory);
  });
  test("memory_is_in_huge_pages_where_there_are_some", [&] {
    const std::string description = ssd::make_host_memory(2 * kMiB)->description();
    expect(description == "2 MiB of host memory in huge pages", description);
    const std::string large = ssd::make_host_memory(256 * kMiB)->description();
    expect(large == "256 MiB of host memory in ordinary pages", large);
  });
  if (!file.empty()) {
    test("identify_with_queues_in_the_bar_of_another_device", [&] {
      VfioTransport transport(address);
      const auto memory = ssd::make_file_memory(file);
      identify_in(transport, *memory);
    });
  }
  test("what_cannot_be_mapped_is_refused", [&] { refusals(address); });
  test("mappings_do_not_overlap_and_can_be_taken_back", [&] { many_mappings(address); });
  test("a_stray_access_does_not_stop_it", [&] { stray(address); });
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace gofs

int main(int argument_count, char** arguments) {
  if (argument_count < 2) {
    std::fprintf(stderr, "usage: gofs_vfio_selftest ADDRESS [FILE]\n");
    return 2;
  }
  return gofs::run(arguments[1], argument_count > 2 ? arguments[2] : "");
}
