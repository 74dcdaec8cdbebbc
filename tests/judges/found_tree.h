// SPDX-License-Identifier: Apache-2.0
//
// All that a volume holds, read through the calls that programs make, and whether it is what a
// model has.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calls.h"
#include "model.h"

namespace gofs::judges {

struct FoundObject {
  std::string path;  // one of its names
  vfs::Stat stat{};
  Content content;
  std::string target;
  std::map<std::string, std::string> xattrs;
  std::map<std::string, uint32_t> entries;  // name -> ino
};

struct FoundTree {
  uint32_t root = 0;
  bool root_has_its_times = true;           // else they are not compared
  std::map<uint32_t, FoundObject> objects;  // by ino
};

/// Reads what lies below the directory `path`. What could not be read, or nothing.
std::string read_tree(Calls& session, const std::string& path, FoundTree& tree);

/// What an object may be: one of these, or, of several, a mixture: each attribute, name and block
/// (or sector, or byte: Object::unit_bytes) of contents as one of them has it.
using Versions = std::vector<const Object*>;

/// The versions of an object of the model that are allowed; none: there is no such object.
using VersionsOf = std::function<Versions(uint32_t id)>;

/// How the tree differs from that of `root` in the model, or nothing.
std::string difference(const FoundTree& tree, uint32_t root, const VersionsOf& versions_of);

/// Compares what has changed in a model with the volume, and takes the times from there. How they
/// differ, or nothing. `clock_moved`: since the last call, so that times differ too.
std::string observe(Calls& session, Model& model, const std::set<uint32_t>& touched,
                    bool clock_moved = true);

}  // namespace gofs::judges
