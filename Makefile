# SPDX-License-Identifier: Apache-2.0
#
# `make run` and `make test` do everything on a fresh Debian or Ubuntu machine, set-up included.
# A line `target: ## text` is what `make help` prints.
.DEFAULT_GOAL := help
.PHONY: help run test check test-long build fuzz gpu-check gpu-bench format tidy setup clean

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

run: ## the main job: make a volume, read every file with GoFS, compare, report speed
	@scripts/setup.sh run
	@scripts/build.sh auto gofs gofs-bench
	@scripts/main_job.sh

test: ## all tests; STAGES="cpu-asan kernel" picks some (scripts/run_tests.py --help)
	@scripts/setup.sh test
	@scripts/run_tests.py $(or $(STAGES),test)

check: ## for people at work: structure, unit tests as they ship, device code compiles
	@scripts/setup.sh test
	@scripts/run_tests.py check

test-long: ## hours: all widths under all sanitizers, all explorers, all kernels
	@scripts/setup.sh test
	@GOFS_FUZZ_SECONDS=$(or $(SECONDS),600) scripts/run_tests.py test-long

build: ## build build/gofs (with CUDA where there is a GPU, or with GOFS_CUDA=1)
	@scripts/setup.sh run
	@scripts/build.sh auto

fuzz: ## fuzz for SECONDS (default 300) per target
	@scripts/setup.sh test
	@GOFS_FUZZ_SECONDS=$(or $(SECONDS),300) scripts/run_tests.py fuzz

gpu-check: ## GPU tests and compute-sanitizer; needs a GPU and a CUDA toolkit, no network
	@scripts/run_tests.py gpu-check

gpu-bench: ## GPU measurements; needs a GPU and a CUDA toolkit, no network; PARTS=micro picks some
	@$(if $(PARTS),GOFS_PARTS="$(PARTS)") scripts/run_tests.py gpu-bench

format: ## rewrite our sources with clang-format
	@scripts/setup.sh test
	@git ls-files -co --exclude-standard '*.h' '*.hpp' '*.cuh' '*.cu' '*.cpp' | \
	  xargs -r clang-format-16 -i

tidy: ## clang-tidy over the CPU build
	@scripts/setup.sh tidy
	@scripts/tidy.sh

setup: ## install what is missing, and nothing else
	@scripts/setup.sh test

clean: ## remove build/, except the wheels that were fetched
	@find build -mindepth 1 -maxdepth 1 ! -name toolchain ! -name wheels -exec rm -rf {} +
