// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: the input is a program of edits (edit.h) for one of the base images, which is then
// mounted and walked. A promise that the reader broke ends the process, as a sanitizer would.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base_image.h"
#include "fuzz_volume.h"
#include "mutator.h"

// libFuzzer's own mutations; not there in the program that replays the corpus.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t size_max)
    __attribute__((weak));

namespace {

using namespace gofs::fuzz;

/// A base image with its volume, made when an input first asks for it.
struct Ground {
  explicit Ground(Base base)
      : memory(static_cast<uint8_t*>(std::aligned_alloc(gofs::kBlockBytes, base_bytes(base))),
               &std::free) {
    std::memset(memory.get(), 0, base_bytes(base));
    make_base(base, memory.get());
    image = std::make_unique<EditableImage>(memory.get(), base_bytes(base));
    volume = std::make_unique<FuzzVolume>(memory.get(), base_bytes(base), FuzzVolumeOptions{});
    mutator = std::make_unique<Mutator>(*image);
  }
  std::unique_ptr<uint8_t, decltype(&std::free)> memory;
  std::unique_ptr<EditableImage> image;
  std::unique_ptr<FuzzVolume> volume;
  std::unique_ptr<Mutator> mutator;
};

Ground& ground_of(Base base) {
  static std::unique_ptr<Ground> grounds[kBuiltCount];
  std::unique_ptr<Ground>& ground = grounds[static_cast<size_t>(base)];
  if (ground == nullptr) ground = std::make_unique<Ground>(base);
  return *ground;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Program program = decode({data, size});
  Ground& ground = ground_of(static_cast<Base>(program.base % kBuiltCount));
  const Outcome outcome = run_program(*ground.image, *ground.volume, program);
  if (!outcome.wrong.empty()) {
    std::fprintf(stderr, "volume_fuzz: %s\n", outcome.wrong.c_str());
    std::abort();
  }
  return 0;
}

/// Bytes are changed blindly half of the time; else the program gets another edit that knows what
/// it breaks, in the place of one that it has or at the end.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned int seed) {
  Random random(seed);
  if (LLVMFuzzerMutate != nullptr && random.chance(50)) {
    return LLVMFuzzerMutate(data, size, size_max);
  }
  Program program = decode({data, size});
  program.base = static_cast<uint8_t>(program.base % kBuiltCount);
  const Mutator& mutator = *ground_of(static_cast<Base>(program.base)).mutator;
  for (Edit& edit : mutator.random_program(random.next()).edits) {
    if (program.edits.size() < 8 && random.chance(50)) {
      program.edits.push_back(std::move(edit));
    } else if (!program.edits.empty()) {
      program.edits[random.below(program.edits.size())] = std::move(edit);
    }
  }
  const std::vector<uint8_t> bytes = encode(program);
  if (bytes.size() > size_max) return size;
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
