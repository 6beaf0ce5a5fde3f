# The commands of this project. `make run` and `make test` are all a newcomer needs.
#   run              set-up, build, train the digits example: 2 workers x 2 devices, then 1 x 4
#   test             set-up, build, all tests but the exhaustive ones
#   test-fast        set-up, build, the fast tests: about two minutes
#   test-exhaustive  set-up, build, grids that may take hours
#   test-gpu         set-up, build, the tests of GPUs on those of this machine; says why if there are none
#   build            set-up, then libraries, examples, tests, and the tool as build/onesum
#   bench            set-up, build, measure all-reduces on this machine
#   bench-peers      install other systems below build/peers, measure them and ours in turns, show the ratios
#   check-instructions  set-up, build, compare the instructions of planning and of small calls with the baseline
#   soak             set-up, build, ten minutes of workers that are killed and stopped at random
#   lint             everything that can be said without running: check-format, check-layers, tidy
#   docs             write the pages that are made from plans: docs/algorithms.md
#   format           lay out the sources
#   test-python      set-up, build, the tests of the Python package
#   test-bridges     set-up, build, the tests of the bridges to TensorFlow and PyTorch; installs both below build/bridges
#   python-stubs     write python/onesum/_core.pyi from the extension
#   setup-python     make build/python, a virtual environment for the Python package
#   setup-cuda       install CUDA's compiler and headers below build/, for the GPU plug-in; no GPU is needed
#   setup, clean

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := build
.PHONY: setup setup-dev setup-cuda setup-python build run test test-fast test-python test-bridges python-stubs test-exhaustive test-gpu bench bench-peers \
        check-instructions soak docs lint check-format check-layers tidy format clean

jobs := $(shell nproc)
folders := $(wildcard include src tests bench fuzz examples tools python)
sources = $(shell find $(folders) -name '*.h' -o -name '*.cc' -o -name '*.cu')

setup:
	@tools/setup

setup-dev:
	@tools/setup --dev

setup-cuda: setup
	@tools/setup_cuda

setup-python: setup
	@tools/setup_python

build/build.ninja: CMakePresets.json | setup setup-python
	cmake --preset release

build: setup setup-python build/build.ninja
	@grep -q '^nanobind_DIR:PATH=/' build/CMakeCache.txt || cmake --preset release
	cmake --build --preset release

run: setup build/build.ninja
	cmake --build --preset release --target onesum_example_train_digits onesum_tool
	build/onesum run -n 2 --no-prefix -- build/examples/train_digits --devices 2 | tee build/run-2x2.txt
	@echo "the same with 1 worker x 4 devices:"
	build/examples/train_digits --devices 4 | tee build/run-1x4.txt | tail -n 2
	@diff <(grep ^weights build/run-2x2.txt) <(grep ^weights build/run-1x4.txt) && \
	  echo "2 workers x 2 devices and 1 worker x 4 devices have trained the same weights, bit by bit."

test: build
	ctest --preset release -j $(jobs)

test-fast: build
	ctest --preset fast -j $(jobs)

test-exhaustive: build
	@if find tests -name '*_exhaustive_test.cc' | grep -q .; then \
	  ctest --preset exhaustive -j $(jobs); \
	else \
	  echo "There are no exhaustive tests yet (tests/*/*_exhaustive_test.cc)."; \
	fi

test-python: setup setup-python build/build.ninja
	@grep -q '^nanobind_DIR:PATH=/' build/CMakeCache.txt || cmake --preset release
	cmake --build --preset release --target onesum_python onesum_tool
	ctest --preset release -R '^python/'

# Those that are there; make test-bridges bridges=torch tests one of them.
bridges := $(notdir $(wildcard python/tests/tensorflow python/tests/torch))
test-bridges: setup
	@for bridge in $(bridges); do tools/test_bridge "$$bridge" || exit 1; done

python-stubs: setup setup-python build/build.ninja
	cmake --build --preset release --target onesum_python
	PYTHONPATH=build/python-package build/python/bin/python -m nanobind.stubgen -q -m onesum._core \
	  -o python/onesum/_core.pyi

test-gpu: build
	@tools/test_gpu

bench: setup build/build.ninja
	cmake --build --preset release --target onesum_tool
	build/onesum bench --devices 2 --sizes 4,65536,8388608,268435456

# bench/peers/README.md says what can be set, and what for:
#   make bench-peers peers="mpich impi oneccl" sections="shm tcp" workers=2 sizes=4,1048576 rounds=5 budget=0.1
PEERS ?= $(CURDIR)/build/peers
sections := phys shm tcp inproc sets
rounds := 5
results := build/bench-peers
measure_peers := PEERS='$(PEERS)' ONESUM=build/onesum bench/peers/peers.py
bench-peers: setup build/build.ninja
	cmake --build --preset release --target onesum_tool
	$(measure_peers) setup --peers "$(peers)"
	rm -f $(results).jsonl
	$(if $(budget),BENCH_BUDGET=$(budget)) $(measure_peers) run $(sections) --peers "$(peers)" --worlds "$(workers)" \
	  --sizes "$(sizes)" --rounds $(rounds) $(more) --out $(results).jsonl
	$(measure_peers) draw $(results).jsonl --out $(results)
	@$(measure_peers) table $(results).jsonl > $(results).md
	@$(measure_peers) ratio $(results).jsonl | tee -a $(results).md
	@echo "results: $(results).jsonl, the tables: $(results).md"

check-instructions: setup-dev build/build.ninja
	cmake --build --preset release --target onesum_tool onesum_instructions
	@tools/check_instructions

soak: setup build/build.ninja
	cmake --build --preset release --target onesum_soak
	build/onesum_soak --seconds 600

docs: setup build/build.ninja
	cmake --build --preset release --target onesum_docs

lint: check-format check-layers tidy

check-format: setup-dev
	@clang-format-19 --dry-run -Werror $(sources) && echo "format: good"

check-layers:
	@tools/check_layers

# Only what the developer build compiles: the consumer's project and the fuzz targets are not in it. CI, which
# is short of time, leaves the tests to whoever writes them: make tidy tidied='src|bench|examples|tools|python'.
tidied := src|tests|bench|examples|tools|python
tidy: setup-dev
	@cmake --preset dev >/dev/null
	run-clang-tidy-19 -quiet -p build/dev -j $(jobs) '^$(CURDIR)/($(tidied))/' | \
	  sed -E '/warnings? generated\.$$|^$$/d'

format: setup-dev
	clang-format-19 -i $(sources)

clean:
	rm -rf build build-*
