// SPDX-License-Identifier: Apache-2.0
#include "host/serve/control_desk.h"

#include <unistd.h>

#include <cerrno>

#include "host/messages.h"

namespace gofs::host {

namespace {

bool is_for_all(Ask ask) { return ask == Ask::kInfo || ask == Ask::kStatus; }

bool is_trusted(const vfs::Credentials& who) { return who.uid == 0 || who.uid == ::geteuid(); }

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
      return packed(channels_.status());
    case Ask::kForKernels:  // which is the connection's business
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
