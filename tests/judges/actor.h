// SPDX-License-Identifier: Apache-2.0
//
// Does what a scenario says on a volume and on its model, and notes it in a history. Answers that
// differ from the model's end the scenario with std::runtime_error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "history.h"
#include "model.h"
#include "session.h"

namespace gofs::judges {

/// An operation, or the look at what it did, met the fault that was planned.
class Faulted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Actor {
 public:
  /// All of them outlive it. `history` may be null: nothing is noted.
  Actor(Session& session, Model& model, History* history, uint64_t seed)
      : session_(session), model_(model), history_(history), random_(seed) {}

  /// From now on operations may fail with EIO. The first that does ends the scenario with Faulted;
  /// it is noted as one that never ended.
  void expect_faults() { faults_ = true; }

  int open(const std::string& path, uint32_t flags, uint32_t mode = 0644);
  void close(int fd);
  /// At `offset`, or at the end where the descriptor appends. Bytes written: fewer than given only
  /// where the volume is full.
  uint64_t pwrite(int fd, uint64_t offset, std::string_view bytes);
  /// Starts to write whole blocks, which changes nothing; a number for wait(), after which it has
  /// happened. One that is not waited for never does.
  int start_pwrite(int fd, uint64_t offset, std::string_view bytes);
  void wait(int started);
  void ftruncate(int fd, uint64_t size);
  void truncate(const std::string& path, uint64_t size);
  /// False: the volume is full.
  bool mkdir(const std::string& path, uint32_t mode = 0755);
  bool create(const std::string& path, uint32_t mode = 0644);
  bool mknod(const std::string& path, uint32_t mode, uint32_t major = 0, uint32_t minor = 0);
  bool symlink(const std::string& target, const std::string& path);
  bool link(const std::string& existing, const std::string& path);
  void unlink(const std::string& path);
  void rmdir(const std::string& path);
  void rename(const std::string& from, const std::string& to, uint32_t flags = 0);
  void chmod(const std::string& path, uint32_t mode);
  void chown(const std::string& path, uint32_t uid, uint32_t gid);
  void utimens(const std::string& path, const f2fs::TimeStamp& accessed,
               const f2fs::TimeStamp& modified);
  void setxattr(const std::string& path, const std::string& name, const std::string& value,
                uint32_t flags = 0);
  void removexattr(const std::string& path, const std::string& name);
  void sync();
  void fsync(int fd);
  void fdatasync(int fd);
  /// fsync of a directory.
  void fsync_directory(const std::string& path);
  void fallocate(int fd, uint32_t mode, uint64_t offset, uint64_t bytes);
  /// New files of one directory, `contents[i]` in each; those that need nodes are made empty first.
  void batch_create(const std::string& directory, const std::vector<std::string>& names,
                    const std::vector<std::string>& contents);
  /// Writes to the beginning of files that are there.
  void batch_write(const std::string& directory, const std::vector<std::string>& names,
                   const std::vector<std::string>& contents);
  void collect_garbage();

  /// A file with contents, made, written and closed.
  void put(const std::string& path, std::string_view bytes);
  /// Several teams of the volume at once, on open files: `work(team)` makes calls of the session
  /// alone; then `note()` tells the model what they have done together. `synced`: descriptors of
  /// files that are durable then, with their times unless they were opened with kOpenDataSync.
  void together(const std::string& what, uint32_t teams,
                const std::function<void(uint32_t team)>& work, const std::function<void()>& note,
                const std::vector<int>& synced = {});

  /// The same with work that may meet a fault: 0 or a negative errno. `note(on_the_way)` may say
  /// what the files were in between. Whose contents it has changed are mixed by `unit_bytes`
  /// (Object::unit_bytes), and its sizes are as `sizes` says.
  struct Mixture {
    uint64_t unit_bytes = kBlockBytes;
    Sizes sizes = Sizes::kBetween;
  };
  void side_by_side(const std::string& what, uint32_t teams,
                    const std::function<int(uint32_t team)>& work,
                    const std::function<void(OnTheWay& on_the_way)>& note, const Mixture& mixture,
                    const std::vector<int>& synced = {});
  /// As History::keep().
  void keep(const std::vector<KeptBytes>& bytes) {
    if (history_ != nullptr) history_->keep(bytes);
  }

  /// Bytes that no other call of this gives.
  std::string bytes(size_t count);
  uint64_t below(uint64_t limit) { return random_() % limit; }
  Session& session() { return session_; }
  Model& model() { return model_; }
  uint32_t id_of(int fd) const { return files_.at(fd).id; }

 private:
  struct OpenFile {
    uint32_t id;
    uint32_t flags;
  };
  using Call = std::function<int64_t()>;
  using Expect = std::function<int64_t(int64_t answer)>;
  /// What an operation is beside its call.
  struct Terms {
    OperationKind kind = OperationKind::kAtOnce;
    std::set<uint32_t> synced = {};
    std::set<uint32_t> synced_contents = {};
    OnTheWay on_the_way = {};
    bool times_go_first = false;  // one that fails may have set them
  };
  int64_t act(const std::string& what, const Terms& terms, const Call& call, const Expect& expect);
  std::set<uint32_t> synced_by(const std::vector<int>& fds, bool contents) const;
  static Terms terms_of_writing(const OpenFile& file, OperationKind kind);
  bool act_if_room(const std::string& what, const Call& call, const Call& expect);

  Session& session_;
  Model& model_;
  History* const history_;
  std::mt19937_64 random_;
  struct StartedWrite {
    OpenFile file;
    uint64_t offset;
    std::string bytes;
  };
  std::map<int, OpenFile> files_;
  std::map<int, StartedWrite> started_;
  uint64_t stamp_ = 0;
  bool faults_ = false;
};

}  // namespace gofs::judges
