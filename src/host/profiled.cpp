// SPDX-License-Identifier: Apache-2.0
#include "host/profiled.h"

#if GOFS_HAS_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace gofs::host {

#if GOFS_HAS_NVTX

namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("gofs");
  return made;
}

}  // namespace

Profiled::Profiled(const char* what, uint64_t amount) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = what;
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = amount;
  nvtxDomainRangePushEx(domain(), &event);
}

Profiled::~Profiled() { nvtxDomainRangePop(domain()); }

#else

Profiled::Profiled(const char* what, uint64_t amount) {
  (void)what;
  (void)amount;
}

Profiled::~Profiled() = default;

#endif

}  // namespace gofs::host
