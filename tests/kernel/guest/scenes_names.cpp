// SPDX-License-Identifier: Apache-2.0
//
// Names and directories: what lookup and readdir must get right.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "ops.h"
#include "scenes.h"

namespace gofs::judge {
namespace {

// Pairs of names with the same 32-bit directory hash, found by trying four-letter names: only the
// comparison of the names themselves tells them apart.
constexpr std::pair<const char*, const char*> kEqualHashes[] = {
    {"vphc", "iuvc"}, {"jwob", "olgf"}, {"isre", "zrrf"}, {"gwed", "iktf"}, {"pbhe", "nqsh"},
    {"pdqa", "bbei"}, {"yepe", "jpwi"}, {"dobd", "ophj"}, {"isba", "eudk"}, {"hqeb", "uhuk"},
    {"zfxk", "dygl"}, {"tbck", "yvkl"}, {"weah", "afdo"}, {"uqsk", "jghq"}, {"aqem", "ymoq"},
    {"ophc", "lzkr"}, {"lstc", "znnr"}, {"hyvk", "norr"}, {"fgjo", "zids"}, {"mktf", "sqks"},
    {"wgnt", "kgpt"}, {"prwm", "ygmu"}, {"coai", "alsu"}, {"txwn", "wfnw"}, {"jjuj", "pcsw"},
};

constexpr const char* kUtf8[] = {
    "Grüße",       "naïve café", "русский",   "ελληνικά", "日本語のファイル名", "한국어", "עברית",
    "العربية",     "🦀🐧💾",     "e\u0301",   "\u00e9",   "\u200bzero width",   "ﬁ",      "ẞß",
    "İstanbul ıi", "\ufeffbom",  "\U0010ffff"};

constexpr const char* kAwkward[] = {
    "-rf",        "--help",    "...",       "..a",      ".hidden",         " ",
    "  two  ",    "trailing ", "new\nline", "\n",       "back\\slash",     "\\n",
    "\\\\",       "quote\"s'", "tab\there", "%s%n%d",   "*?[a]{b,c}",      "$HOME`id`",
    "semi;colon", "a:b",       "\x7f",      "\xff\xfe", "\xc0\x80",        "\xed\xa0\x80",
    "con",        "#comment",  "~",         "@",        "\x1b[31m",        "a=b",
    "\r",         "path\\to",  "{\"j\":1}", "<&>",      "\xf5\x90\x80\x80"};

void small_file(const std::string& path, uint64_t seed) {
  if (!make_file(path, 1 + seed % 60, seed)) die("no space for " + path);
}

}  // namespace

void names_scene(const Scene& scene) {
  Random random(scene.seed);
  make_directory("names");
  make_directory("names/bytes");
  for (int byte = 1; byte < 256; ++byte) {
    if (byte == '/' || byte == '.') continue;
    small_file("names/bytes/" + std::string(1, static_cast<char>(byte)), random.next());
  }
  make_directory("names/lengths");
  for (size_t length = 1; length <= 255; ++length) {
    std::string name = padded(length, 3) + std::string(255, 'x');
    name.resize(length);
    if (length == 1) name = "z";
    if (length == 2) name = "zz";
    small_file("names/lengths/" + name, random.next());
  }
  // 255 bytes that hold every value a name may have, rotated: no two begin alike.
  make_directory("names/all");
  std::string every;
  for (int byte = 1; byte < 256; ++byte) {
    if (byte != '/') every += static_cast<char>(byte);
  }
  every += "!";
  for (size_t turn = 0; turn < every.size(); turn += 17) {
    small_file("names/all/" + every.substr(turn) + every.substr(0, turn), random.next());
  }
  make_directory("names/utf8");
  for (const char* name : kUtf8) small_file(std::string("names/utf8/") + name, random.next());
  make_directory("names/awkward");
  for (const char* name : kAwkward) small_file(std::string("names/awkward/") + name, random.next());
  make_directory("names/awkward/new\nline dir");
  small_file("names/awkward/new\nline dir/\\back\nslash", random.next());
  make_directory("names/equal_hash");
  for (const auto& [one, other] : kEqualHashes) {
    small_file(std::string("names/equal_hash/") + one, random.next());
    small_file(std::string("names/equal_hash/") + other, random.next());
  }
  // Here only the second of each pair is left.
  make_directory("names/equal_hash_one");
  for (const auto& [one, other] : kEqualHashes) {
    small_file(std::string("names/equal_hash_one/") + one, random.next());
    small_file(std::string("names/equal_hash_one/") + other, random.next());
    check(::unlink((std::string("names/equal_hash_one/") + one).c_str()), "unlink");
  }
}

void directories_scene(const Scene& scene) {
  Random random(scene.seed);
  const auto count = static_cast<uint64_t>(scene.scale);
  make_directory("dirs");

  // Some entries are files of their own, the others are further names of a few: the directory grows
  // through many hash levels without costing a node for each name.
  const uint64_t files_each = count > 100000 ? 16 : 2;
  make_directory("dirs/huge");
  std::string target;
  for (uint64_t i = 0; i < count; ++i) {
    std::string name = padded(random.next() % 1000000007, 1) + "-" + std::to_string(i);
    if (i % 97 == 0) name += std::string(255 - name.size(), 'L');
    if (i % 11 == 0 && name.size() < 40) name += std::string(random.below(60), 'm');
    name.insert(0, "dirs/huge/");
    if (i % files_each == 0 || target.empty()) {
      const Fd file = open_or_die(name, O_CREAT | O_EXCL | O_WRONLY);
      if (i % 128 == 0) {
        target = name;
        if (!write_at(file.get(), content(random.below(5000), random.next()), 0)) die("full");
      }
    } else {
      check(::link(target.c_str(), name.c_str()), "link " + name);
    }
  }

  // Levels that became holes, and entries left behind in the higher ones.
  make_directory("dirs/emptied");
  const Fd seed_file = open_or_die("dirs/seed", O_CREAT | O_WRONLY);
  for (uint64_t i = 0; i < count / 4; ++i) {
    check(::link("dirs/seed", ("dirs/emptied/" + std::to_string(i * 7919)).c_str()), "link");
  }
  checkpoint(".");
  for (uint64_t i = 0; i < count / 4; ++i) {
    if (i % 50 != 0) {
      check(::unlink(("dirs/emptied/" + std::to_string(i * 7919)).c_str()), "unlink");
    }
  }
  const uint64_t some = 400 + count / 20;
  make_directory("dirs/all_gone");
  for (uint64_t i = 0; i < some; ++i) {
    check(::link("dirs/seed", ("dirs/all_gone/gone" + std::to_string(i)).c_str()), "link");
  }
  for (uint64_t i = 0; i < some; ++i) {
    check(::unlink(("dirs/all_gone/gone" + std::to_string(i)).c_str()), "unlink");
  }
  make_directory("dirs/refilled");
  for (uint64_t i = 0; i < some; ++i) {
    check(::link("dirs/seed", ("dirs/refilled/first" + std::to_string(i)).c_str()), "link");
  }
  for (uint64_t i = 0; i < some; i += 2) {
    check(::unlink(("dirs/refilled/first" + std::to_string(i)).c_str()), "unlink");
    const std::string name = std::string(1 + random.below(200), 's') + std::to_string(i);
    check(::link("dirs/seed", ("dirs/refilled/" + name).c_str()), "link");
  }

  // Around the number of entries at which an inline directory becomes one with blocks: 182 slots
  // of eight bytes with the usual inode, other numbers with other inode layouts.
  make_directory("dirs/inline_edge");
  for (const int entries : {0, 1, 2, 178, 179, 180, 181, 182, 183, 191, 192, 193, 214, 215}) {
    const std::string path = "dirs/inline_edge/" + padded(entries, 3);
    make_directory(path);
    for (int i = 0; i < entries; ++i) {
      check(::link("dirs/seed", (path + "/" + padded(i, 7)).c_str()), "link");
    }
  }
  make_directory("dirs/inline_long");
  for (int i = 0; i < 6; ++i) {  // 5 or 6 names of 255 bytes: each takes 32 slots
    check(::link("dirs/seed",
                 ("dirs/inline_long/" + std::string(254, 'n') + std::to_string(i)).c_str()),
          "link");
  }

  std::string deep = "dirs/deep";
  make_directory(deep);
  for (int i = 0; i < 300; ++i) {
    deep += "/" + std::to_string(i % 10);
    make_directory(deep);
    if (i % 50 == 49) small_file(deep + "/leaf", random.next());
  }
  deep = "dirs/deep_long";
  make_directory(deep);
  for (int i = 0; i < 14; ++i) {
    deep += "/" + std::string(250, static_cast<char>('a' + i));
    make_directory(deep);
  }
  small_file(deep + "/leaf", random.next());

  make_directory("dirs/wide");
  for (int i = 0; i < 300; ++i) make_directory("dirs/wide/" + std::to_string(i));
  for (int i = 0; i < 300; i += 3) {
    check(::rmdir(("dirs/wide/" + std::to_string(i)).c_str()), "rmdir");
  }
  // A directory that changed its parent, and one that took the place of an empty one.
  make_directory("dirs/wide/1/child");
  small_file("dirs/wide/1/child/file", random.next());
  check(::rename("dirs/wide/1/child", "dirs/wide/2/moved"), "rename");
  make_directory("dirs/wide/4/child");
  small_file("dirs/wide/4/child/file", random.next());
  check(::rename("dirs/wide/4/child", "dirs/wide/5"), "rename onto an empty directory");
}

}  // namespace gofs::judge
