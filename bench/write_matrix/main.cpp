// SPDX-License-Identifier: Apache-2.0
//
// gofs_write_matrix FOLDER: how fast a volume is changed through the file API, beside raw NVMe
// commands on the same queues. bench/results/README.md says what each row means. FOLDER takes an
// image of 8 GiB, best in memory (/dev/shm). Each model has a new volume, which goes afterwards.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>

#include "host/volume_spec.h"
#include "matrix.hpp"

namespace gofs::bench {

bool Options::wants(const std::string& part) const {
  return std::find(what.begin(), what.end(), part) != what.end();
}

namespace {

void describe(const Report& report, const host::VolumeState& volume) {
  const VolumeInfo info = volume.info();
  report.say(fmt::format("{}: {}\n{}, {} queue pairs of depth {}, LBAs of {} bytes; {} segments",
                         info.backend, info.backend_detail, info.ssd, info.queues, info.queue_depth,
                         info.lba_bytes, info.main_segments));
}

void run_model(const Options& options, Report& report, const std::string& model) {
  const bool only_cleaning = options.what == std::vector<std::string>{"clean"};
  if (!only_cleaning) {
    const std::string path = options.folder + "/gofs-write-matrix.img";
    make_image(path, options.image_bytes, options.span_bytes);
    {
      const auto volume = mount_image(options, path, model, options.cache_bytes, false);
      describe(report, *volume);
      const Bench bench{options, report, *volume, model};
      measure_writes(bench);
      measure_names(bench);
      measure_batches(bench);
    }
    (void)unlink(path.c_str());
  }
  measure_cleaning(options, report, model);
}

/// Sizes are given as in volume specs: 64M, 1G.
CLI::Option* add_size(CLI::App& app, const std::string& name, uint64_t& bytes,
                      const std::string& help) {
  const auto take = [&bytes](const CLI::results_t& given) {
    const auto size = host::parse_size(given.front());
    if (size) bytes = *size;
    return size.has_value();
  };
  return app.add_option(name, take, help)->type_name("SIZE");
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Measures writing through the file API beside raw NVMe commands.");
  app.add_option("FOLDER", options.folder, "where the images lie meanwhile")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--models", options.models, "timing models of the virtual SSD, in order")
      ->delimiter(',');
  app.add_option("--what", options.what,
                 "parts, of: overwrite append fsync pause create batch clean")
      ->delimiter(',')
      ->check(CLI::IsMember(Options().what));
  app.add_option("--backend", options.backend, "auto, cpu or cuda");
  app.add_option("--seconds", options.seconds, "of each single measurement");
  add_size(app, "--cache", options.cache_bytes, "page cache of metadata");
  add_size(app, "--image", options.image_bytes, "the image, raw range included");
  add_size(app, "--span", options.span_bytes,
           "the raw range, the large file, and the small files together");
  app.add_option("--files", options.files, "files of their own that the warps write to");
  app.add_option("--batch", options.batch_files, "files of a batch")->check(CLI::PositiveNumber);
  add_size(app, "--clean-image", options.clean_image_bytes, "the volume that is nearly full");
  add_size(app, "--clean-cache", options.clean_cache_bytes, "its page cache");
  app.add_flag("--json", options.json, "a JSON object a line; the table goes to stderr");
  CLI11_PARSE(app, argc, argv);
  Report report(options.json);
  for (const std::string& model : options.models) {
    try {
      run_model(options, report, model);
    } catch (const std::exception& problem) {
      report.failure(model, {EIO, problem.what()});
    }
  }
  report.say(fmt::format("{} measurements failed", report.failures()));
  return report.failures() == 0 ? 0 : 1;
}

}  // namespace

}  // namespace gofs::bench

int main(int argc, char** argv) { return gofs::bench::run(argc, argv); }
