#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the stages of `make test`, `make check`, `make fuzz` and `make gpu-check` and adds up what
they counted.

Every stage runs, also after one has failed; each has a time limit; each leaves its whole output in
build/logs/STAGE.log and prints one line here, and the end of that log when it fails. The last line
is `N passed, N failed`, over all stages. The exit status is 0 only when nothing failed and
something ran. build/logs/times.txt has the seconds of each stage, on the clock and of processors,
and of each case.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

import ctest_sum

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "logs"
CORES = os.cpu_count() or 1
# Tests also wait: for sleeps, disks, guests.
TESTS_AT_ONCE = CORES + 1
# Of each preset's folder. Stages that run side by side may want the same.
BUILDS = collections.defaultdict(threading.Lock)

# Device code takes most of it on a slow machine: a limit is for what hangs.
BUILD_LIMIT_S = 2700
FUZZ_SECONDS = int(os.environ.get("GOFS_FUZZ_SECONDS", "20"))
SUM_LINE = re.compile(r"^(?:\w+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)


class Stage:
    """One stage's log, deadline and counts."""

    def __init__(self, name, limit_s):
        self.name = name
        self.deadline = time.monotonic() + limit_s
        self.passed = self.failed = self.skipped = 0
        self.seconds = self.cpu_seconds = 0
        self.case_seconds = []  # (seconds, name)
        self.notes = []
        self.log_path = LOGS / f"{name}.log"
        self.log = open(self.log_path, "wb")

    def run(self, command, env=None, limit_s=None):
        """Runs a command into the log; its exit status, or None when it ran out of time."""
        remaining = self.deadline - time.monotonic()
        limit = max(1, remaining if limit_s is None else min(limit_s, remaining))
        command = [str(word) for word in command]
        self.log.write(("$ " + " ".join(command) + "\n").encode())
        self.log.flush()
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})}, start_new_session=True)
        end = time.monotonic() + limit
        timed_out = False
        while True:
            # wait4() tells what it took with its children, also beside another stage's.
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid != 0:
                break
            if time.monotonic() > end and not timed_out:
                timed_out = True
                self.log.write(f"\nout of time after {limit:.0f} s\n".encode())
                # The whole group: a test that hangs has children (a guest, a loop) that hang too.
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.05)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_seconds += usage.ru_utime + usage.ru_stime
        self.log.flush()
        return None if timed_out else process.returncode

    def count_step(self, what, status):
        """Counts a step that holds no cases of its own, such as a build; True when it passed."""
        if status == 0:
            self.passed += 1
            return True
        self.failed += 1
        self.notes.append(f"{what} failed" if status is not None else f"{what} ran out of time")
        return False

    def build(self, preset, *targets):
        command = ["scripts/build.sh", preset, *targets]
        folder = preset if preset != "auto" else "cuda" if has_gpu() else "cpu"
        with BUILDS[folder]:
            status = self.run(command, env=fast_build(preset), limit_s=BUILD_LIMIT_S)
        return self.count_step(f"building {preset}", status)

    def ctest(self, preset, *selection, jobs=TESTS_AT_ONCE, env=None):
        """Runs ctest and adds its cases."""
        folder = ROOT / "build" / preset
        results = folder / "test-results"
        shutil.rmtree(results, ignore_errors=True)
        junit = folder / "ctest.xml"
        junit.unlink(missing_ok=True)
        prefix = [] if preset in ("cpu", "cuda") else fixed_addresses()
        status = self.run(
            [*prefix, "ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error",
             "-j", jobs, "--output-junit", junit, *selection], env=env)
        if not junit.exists():
            self.count_step("ctest", status or 1)
            return
        passed, failed, skipped, bad = ctest_sum.sum_results(junit, results)
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        self.notes += bad
        self.case_seconds += ctest_sum.case_seconds(junit, results)
        if status != 0 and failed == 0:
            self.count_step("ctest", status or 1)

    def script(self, command, env=None):
        """Runs a script whose closing `N passed, N failed` line is added; without one it counts as
        a single case."""
        if not (ROOT / command[0]).exists():
            self.failed += 1
            self.notes.append(f"{command[0]} does not exist")
            return
        start = self.log.tell()
        status = self.run(command, env=env)
        with open(self.log_path, "rb") as log:
            log.seek(start)
            sums = SUM_LINE.findall(log.read().decode(errors="replace"))
        if not sums:
            self.count_step(command[0], status)
            return
        passed, failed, skipped = (int(number or 0) for number in sums[-1])
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        if status != 0 and failed == 0:
            self.count_step(command[0], status)

    def log_tail(self, lines=60):
        self.log.flush()
        text = self.log_path.read_text(errors="replace").splitlines()
        return "\n".join("    " + line for line in text[-lines:])


def has_gpu():
    """True when a program could use a GPU here: the driver answers and lists one."""
    if not shutil.which("nvidia-smi"):
        return False
    answer = subprocess.run(["nvidia-smi", "-L"], stdin=subprocess.DEVNULL, timeout=60,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return answer.returncode == 0 and b"GPU" in answer.stdout


def fast_build(preset):
    """The environment of a build. Where nothing runs device code, it is only to compile. CI builds
    all once; people at work build after each change, and with `make build` too, which is not to
    begin anew."""
    fast = not has_gpu() and (preset == "cuda" or os.environ.get("CI") == "true")
    return {"GOFS_FAST_BUILD": "ON" if fast else "OFF"}


def fixed_addresses():
    """A command prefix for sanitized programs. Where the kernel spreads mappings over more than 28
    random bits (Ubuntu 24.04), they land now and then where a sanitizer wants its shadow."""
    prefix = ["setarch", os.uname().machine, "-R"]
    try:
        bits = int(pathlib.Path("/proc/sys/vm/mmap_rnd_bits").read_text())
        works = subprocess.run([*prefix, "true"], stderr=subprocess.DEVNULL, check=False)
    except (OSError, ValueError):
        return []
    return prefix if bits > 28 and works.returncode == 0 else []


# --- The stages. Each takes a Stage and fills in its counts. ------------------------------------

# Tests repeat less what takes long (src/testing/repetitions.hpp).
SHORT = {"GOFS_SHORT": "1"}


def structure(stage):
    stage.script(["scripts/check_structure.py"])


def unit(stage):
    """The unit tests as the library ships: optimised, by g++, with warps of one lane."""
    if stage.build("cpu", "gofs_tests"):
        stage.ctest("cpu", "-LE", "kernel|long|explorer", "-E", "^mutate_test$",
                    env={"GOFS_WIDTHS": "1"})


def cpu(stage):
    """All that is built for the CPU, optimised: what tests the whole, and those who explore. Unit
    tests are for the sanitizers to see."""
    if stage.build("cpu"):
        stage.ctest("cpu", "-LE", "kernel|long|unit", env={"GOFS_WIDTHS": "1"})


# Without it a report of clang's sanitizers has addresses where names should be.
SYMBOLIZER = shutil.which("llvm-symbolizer-16")
NAMES = {f"{tool}_SYMBOLIZER_PATH": SYMBOLIZER for tool in ("ASAN", "TSAN") if SYMBOLIZER}
# Leaks and use after return are findings too; UBSan names the place.
ASAN = {**NAMES,
        "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:"
                        "allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1"}
TSAN = {**NAMES,
        "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1"}


def cpu_asan(stage):
    # Freed memory that is kept longer is mostly page faults.
    options = ASAN["ASAN_OPTIONS"] + ":quarantine_size_mb=32"
    if stage.build("cpu-asan", "gofs_unit_tests"):
        stage.ctest("cpu-asan", "-L", "unit", "-LE", "long",
                    env={**ASAN, "ASAN_OPTIONS": options, "GOFS_WIDTHS": "32",
                         **SHORT})


def cpu_tsan(stage):
    if stage.build("cpu-tsan", "gofs_tests"):
        stage.ctest("cpu-tsan", "-L", "tsan", "-LE", "long|explorer",
                    env={**TSAN, "GOFS_WIDTHS": "4", **SHORT})


def cuda(stage):
    """All device code, and where there is a GPU what it does."""
    if not has_gpu():
        if stage.build("cuda", "device_code") and stage.build("cpu"):
            stage.script(["tests/install/device_test.py"], env={
                "GOFS_BUILD_DIR": str(ROOT / "build/cpu"),
                "GOFS_DEVICE_BUILD_DIR": str(ROOT / "build/cuda"),
                "PYTHONDONTWRITEBYTECODE": "1"})
    elif stage.build("cuda"):
        stage.ctest("cuda", "-L", "gpu", "-LE", "long", jobs=1,
                    env={"CUDA_MODULE_LOADING": "EAGER"})


def device(stage):
    """The file system's own device code compiles."""
    stage.build("cuda", "gofs_device", "gofs_gpu_code", "gofs_gpu_serve_code", "gofs_bench_code")


def neighbour(stage, seconds=60):
    """A volume on a partition, beside another program on the next one; by io_uring, and where that
    is refused."""
    if stage.build("cpu", "gofs_traffic"):
        stage.script(["tests/neighbour/judge.py", "--seconds", seconds])
        stage.script(["tests/neighbour/judge.py", "--seconds", seconds // 4, "--no-uring"])


def neighbour_long(stage):
    neighbour(stage, 480)


def python(stage):
    """The Python package in a fresh environment. What it is built of, the stage cpu has left in
    ccache; a test attaches to its gofsd."""
    stage.script(["scripts/python_tests.sh"], env=fast_build("cpu"))


def fuzz(stage):
    if stage.build("cpu-asan", "gofs_fuzzers"):
        stage.ctest("cpu-asan", "-L", "fuzz", "-LE", "long", env=ASAN)


def main_job(stage):
    if stage.build("auto", "gofs", "gofs-bench"):
        stage.script(["scripts/main_job.sh", "--small"])


def kernel(stage):
    if stage.build("auto", "gofs") and stage.build("cpu", "gofs_crash"):
        stage.script(["scripts/kernel_judge.sh", "--small"])
        stage.script(["scripts/kernel_rounds.sh"])
        stage.script(["scripts/kernel_rounds.sh", "--disks", "2", "--rounds", "1"])
        stage.script(["scripts/kernel_rounds.sh", "--disks", "3", "--rounds", "1", "--mdadm"])
        stage.script(["scripts/kernel_crashes.sh"])


def cpu_long(stage):
    if stage.build("cpu"):
        stage.ctest("cpu", "-LE", "kernel")


def cpu_asan_long(stage):
    # Of two hostile clients together: a million.
    if stage.build("cpu-asan"):
        stage.ctest("cpu-asan", "-LE", "kernel|fuzz",
                    env={**ASAN, "GOFS_HOSTILE_REQUESTS": "500000"})


def cpu_tsan_long(stage):
    if stage.build("cpu-tsan", "gofs_tests"):
        stage.ctest("cpu-tsan", "-L", "tsan", env=TSAN)


def kernel_long(stage):
    """All images, all scenarios with fsync; and the judges again with Debian's newest kernel."""
    if not (stage.build("auto", "gofs") and stage.build("cpu", "gofs_crash")):
        return
    stage.script(["scripts/kernel_judge.sh"])
    stage.script(["scripts/kernel_crashes.sh", "--long"])
    newest = {"GOFS_GUEST_KERNEL": "newest"}
    stage.script(["scripts/kernel_judge.sh", "--small"], env=newest)
    stage.script(["scripts/kernel_rounds.sh"], env=newest)
    stage.script(["scripts/kernel_rounds.sh", "--disks", "3", "--rounds", "1", "--mdadm"],
                 env=newest)
    stage.script(["scripts/kernel_crashes.sh"], env=newest)


def physical(stage):
    if stage.build("auto", "gofs", "gofs_vfio_selftest", "qemu_volume_test"):
        stage.script(["scripts/physical_judge.sh"])


def gpu_build(stage):
    stage.build("cuda")


def gpu_tests(stage):
    stage.ctest("cuda", "-L", "gpu", jobs=1, env={"CUDA_MODULE_LOADING": "EAGER"})


def gpu_main_job(stage):
    """The main job where its tools are, which a machine that is there for its GPU may lack."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    tools = ("mkfs.f2fs", "fsck.f2fs", "cpio")
    missing = [tool for tool in tools if shutil.which(tool, path=path) is None]
    if missing:
        stage.skipped += 1
        stage.notes.append("not installed: " + ", ".join(missing))
        return
    main_job(stage)


def gpu_sanitize(stage):
    """memcheck and racecheck over the binaries labelled sanitize; each run counts as one case."""
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.access(sanitizer, os.X_OK):
        stage.skipped += 1
        stage.notes.append("no compute-sanitizer on this machine")
        return
    listing = subprocess.run(
        ["ctest", "--test-dir", str(ROOT / "build/cuda"), "--show-only=json-v1", "-L", "sanitize"],
        stdout=subprocess.PIPE, timeout=60, check=True)
    tests = [test for test in json.loads(listing.stdout)["tests"] if "command" in test]
    for test in tests:
        program = [word for word in test["command"] if not word.startswith("--gtest_output")]
        for tool in ("memcheck", "racecheck"):
            status = stage.run(
                [sanitizer, "--tool", tool, "--error-exitcode", "99", *program], limit_s=240,
                env={"CUDA_MODULE_LOADING": "EAGER", "GOFS_UNDER_SANITIZER": "1",
                     "GOFS_SOURCE_DIR": str(ROOT), "GOFS_BUILD_DIR": str(ROOT / "build/cuda")})
            stage.count_step(f"{tool} {test['name']}", status)


def gpu_python(stage):
    """The Python package, with the torch, CuPy and Numba that the machine has."""
    stage.script(["scripts/gpu_python_tests.sh"])


def gpu_bench(stage):
    if stage.build("cuda", "gofs", "gofs-bench", "gofs_baselines", "gofs_write_matrix",
                   "gofs_scaling", "gofs_clock_skew", "gofs_served_bench", "gofsd",
                   "gofs_kernel_calls", "gofs_device_ranges"):
        stage.script(["scripts/gpu_bench.sh"])


# name -> (function, time limit in seconds)
STAGES = {
    "structure": (structure, 600),
    "unit": (unit, 1800),
    "cpu": (cpu, 3000),
    "cpu-asan": (cpu_asan, 3000),
    "cpu-tsan": (cpu_tsan, 2700),
    "device": (device, 900),
    "cuda": (cuda, 3000),
    "neighbour": (neighbour, 900),
    "python": (python, 1200),
    "fuzz": (fuzz, 1500 + 16 * FUZZ_SECONDS),
    "main-job": (main_job, 1200),
    "kernel": (kernel, 2100),
    "physical": (physical, 900),
    "cpu-long": (cpu_long, 4 * 3600),
    "cpu-asan-long": (cpu_asan_long, 4 * 3600),
    "cpu-tsan-long": (cpu_tsan_long, 4 * 3600),
    "kernel-long": (kernel_long, 4 * 3600),
    "neighbour-long": (neighbour_long, 1500),
    "gpu-build": (gpu_build, 540),
    "gpu-tests": (gpu_tests, 420),
    "gpu-main-job": (gpu_main_job, 300),
    "gpu-sanitize": (gpu_sanitize, 1200),
    "gpu-python": (gpu_python, 540),
    "gpu-bench": (gpu_bench, 3600),
}
# A suite has lanes, which run side by side; the stages of a lane run one after another. Guests,
# neighbours and the device compiler keep one core busy at most.
SUITES = {
    "test": [["structure", "cpu", "main-job", "cpu-asan", "fuzz", "cpu-tsan"],
             ["cuda", "kernel", "physical", "neighbour", "python"]],
    "check": [["structure", "unit", "device"]],
    "test-long": [["structure", "cpu-long", "main-job", "cpu-asan-long", "fuzz", "cpu-tsan-long",
                   "kernel-long"],
                  ["cuda", "physical", "neighbour-long", "python"]],
    "gpu-check": [["gpu-build", "gpu-tests", "gpu-main-job", "gpu-python", "gpu-sanitize"]],
}


def write_times(stages):
    """What took how long, longest first, for who wants to make it shorter."""
    rows = [f"{stage.seconds:8.1f} {stage.cpu_seconds:8.1f} {stage.name}" for stage in stages]
    text = ["# seconds on the clock, of processors, stage", *rows, "", "# seconds, case"]
    cases = sorted(((seconds, f"{stage.name} {name}") for stage in stages
                    for seconds, name in stage.case_seconds), reverse=True)
    text += [f"{seconds:8.2f} {name}" for seconds, name in cases]
    (LOGS / "times.txt").write_text("\n".join(text) + "\n")


def run_stage(name):
    """Runs a stage to its end."""
    function, limit_s = STAGES[name]
    began = time.monotonic()
    stage = Stage(name, limit_s)
    function(stage)
    stage.seconds = time.monotonic() - began
    return stage


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="suites: " + ", ".join(SUITES) + "; stages: " + ", ".join(STAGES))
    parser.add_argument("names", nargs="+", choices=[*SUITES, *STAGES], metavar="SUITE|STAGE")
    arguments = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    lines = []
    ended = []
    saying = threading.Lock()

    def say(line):
        print(line, flush=True)
        lines.append(line)

    def end(stage):
        with saying:
            verdict = "ok" if stage.failed == 0 else "FAILED"
            say(f"{stage.name:13} {verdict:6} {stage.passed:5} passed {stage.failed:3} failed "
                f"{stage.skipped:3} skipped {stage.seconds:6.0f} s {stage.cpu_seconds:6.0f} cpu-s"
                + "".join(f"\n    {note}" for note in stage.notes))
            if stage.failed:
                say(f"    end of {stage.log_path.relative_to(ROOT)}:\n{stage.log_tail()}")
            stage.log.close()
            ended.append(stage)
            write_times(ended)

    def run_lane(names):
        for name in names:
            end(run_stage(name))

    for word in arguments.names:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(run_lane, SUITES.get(word, [[word]])))

    # Once more, since what follows the first failure may be long.
    for stage in ended:
        for note in stage.notes if stage.failed else []:
            say(f"{stage.name}: {note}")
    passed, failed, skipped = (sum(getattr(stage, count) for stage in ended)
                               for count in ("passed", "failed", "skipped"))
    say(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))

    # Where the machine is borrowed, OUT is the folder that comes back from it.
    if os.environ.get("OUT"):
        out = pathlib.Path(os.environ["OUT"])
        out.mkdir(parents=True, exist_ok=True)
        label = "-".join(arguments.names)
        with open(out / f"{label}.log", "wb") as whole:
            whole.write(("\n".join(lines) + "\n").encode())
            for stage in ended:
                whole.write(f"\n===== {stage.name}\n".encode())
                whole.write(stage.log_path.read_bytes()[-4_000_000:])
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
