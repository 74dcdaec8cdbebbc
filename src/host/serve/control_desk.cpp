// SPDX-License-Identifier: Apache-2.0
#include "host/serve/control_desk.h"

#include <cerrno>
#include <utility>
#include <vector>

#include "host/messages.h"

namespace gofs::host {

namespace {

bool is_for_all(Ask ask) { return ask < Ask::kOpenWindow; }  // the order of Ask

/// The clients from channel `from` on, as many as a message has room for.
ServerStatus part_of(ServerStatus status, uint32_t from) {
  std::vector<ClientStatus>& clients = status.clients;
  std::erase_if(clients, [from](const ClientStatus& one) { return one.channel < from; });
  if (clients.size() > kClientsOfPart) {
    status.next = clients[kClientsOfPart].channel;
    clients.resize(kClientsOfPart);
  }
  return status;
}

}  // namespace

Expected<std::string> ControlDesk::find(const Question& question) {
  switch (question.ask) {
    case Ask::kInfo: {
      auto memory = volume_.memory();
      if (!memory) return memory.error();
      return packed(ServedInfo{volume_.info(), std::move(*memory), volume_.clock(),
                               volume_.cleaning_totals()});
    }
    case Ask::kStatus:
      return packed(part_of(channels_.status(), question.from));
    case Ask::kCommandTimes: {
      const auto times = volume_.command_times();
      if (!times) return times.error();
      return packed(*times);
    }
    case Ask::kForKernels:  // these are the connection's business
    case Ask::kOpenWindow:
    case Ask::kCloseWindow:
      break;
    case Ask::kCollectGarbage: {
      const auto report = volume_.collect_garbage(question.cleaning);
      if (!report) return report.error();
      return packed(*report);
    }
    case Ask::kDrain:
      channels_.drain();
      return std::string();
    case Ask::kStop:
      stop_();
      return std::string();
  }
  return make_error(EINVAL, volume_.name(), "a question that is not known");
}

Answer ControlDesk::answer(const Question& question, const vfs::Credentials& who) {
  if (!is_for_all(question.ask) && !is_trusted(who)) {
    return {EPERM, "for root and the user of the server", {}};
  }
  auto found = find(question);
  if (!found) return {found.error().code, found.error().message, {}};
  return {0, {}, std::move(*found)};
}

}  // namespace gofs::host
