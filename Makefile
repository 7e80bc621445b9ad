# A short front for Meson. Every target works from a clean clone: what is
# missing is installed by tools/setup. `make help` lists the targets.

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 30
SEEDS ?= 100000
DEMO_SECONDS ?= 20
TORTURE_SECONDS ?= 60
TESTFLAGS ?=
# From Meson 1.7 on, "all" leaves out what only tests need.
WITH_TESTS = all meson-test-prereq
BENCHFLAGS ?=
MATRIXFLAGS ?=

.PHONY: all bench demo matrix-servers test asan threads tsan sim torture fuzz style install clean help

all: build/build.ninja ## build the program and the libraries into build/
	ninja -C build

demo: all ## see it work for DEMO_SECONDS, and have it checked
	@build/src/cli/outbox demo --seconds $(DEMO_SECONDS)

bench: ## measure the release build beside the baseline: an hour and a half, BENCHFLAGS=--quick for 4 minutes
	tools/setup test
	bench/baseline
	bench/node/install
	meson setup build -Dbuildtype=release -Dtests=disabled $$([ ! -e build/build.ninja ] || echo --reconfigure)
	ninja -C build measure
	build/bench/outbox-bench --json build/bench.json --markdown build/bench.md --svg build/bench.svg $(BENCHFLAGS)

test: build-test/build.ninja ## run the tests
	ninja -C build-test $(WITH_TESTS)
	tools/run-tests build-test $(TESTFLAGS)

asan: build-asan/build.ninja ## run the tests under AddressSanitizer and UBSan
	ninja -C build-asan $(WITH_TESTS)
	ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		tools/run-tests build-asan --timeout-multiplier 4 $(TESTFLAGS)

threads: build-tsan/build.ninja ## run the tests of threads, and only these, under ThreadSanitizer
	ninja -C build-tsan thread-tests
	TSAN_OPTIONS=halt_on_error=1 tools/run-tests build-tsan --timeout-multiplier 8 --suite threads $(TESTFLAGS)

tsan: build-tsan/build.ninja ## run the tests under ThreadSanitizer
	ninja -C build-tsan $(WITH_TESTS)
	TSAN_OPTIONS=halt_on_error=1 tools/run-tests build-tsan --timeout-multiplier 8 $(TESTFLAGS)

sim: build-test/build.ninja ## run the simulator over SEEDS seeds
	ninja -C build-test tests/sim/sim
	build-test/tests/sim/sim --seeds $(SEEDS) --jobs $$(nproc)

torture: build-test/build.ninja ## kill and pause relays for TORTURE_SECONDS on each database
	ninja -C build-test $(WITH_TESTS)
	TORTURE_SECONDS=$(TORTURE_SECONDS) CK_DEFAULT_TIMEOUT=$$(( $(TORTURE_SECONDS) + 280 )) \
		tools/run-tests build-test --timeout-multiplier 0 --num-processes 1 --verbose \
		torture-sqlite torture-postgres torture-mysql

matrix-servers: build-test/build.ninja ## fetch servers of many versions and test with each; an hour, see docs/servers.md
	-tools/setup servers
	ninja -C build-test $(WITH_TESTS)
	tools/matrix-servers $(MATRIXFLAGS)

fuzz: build-fuzz/build.ninja ## run each fuzz target for FUZZ_SECONDS
	ninja -C build-fuzz fuzzers
	tools/fuzz build-fuzz $(FUZZ_SECONDS)

style: build-clang/build.ninja ## format, lint, layers, exports; warnings of gcc and clang
	tools/check-style build-clang

install: all ## install under PREFIX
	meson configure build --prefix $(PREFIX)
	ninja -C build install
	@[ "$$(id -u)" != 0 ] || ldconfig # so that programs find the libraries at once
	@tools/libdir-hint $(PREFIX)

clean: ## remove every build
	rm -rf build build-baseline build-test build-asan build-tsan build-fuzz build-clang

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 24

build/build.ninja:
	tools/setup build
	meson setup build -Dbuildtype=release -Dtests=disabled

build-test/build.ninja:
	tools/setup test
	meson setup build-test -Dtests=enabled -Dfault_points=enabled -Dwerror=true

build-asan/build.ninja:
	tools/setup test
	meson setup build-asan -Dtests=enabled -Dfault_points=enabled -Db_sanitize=address,undefined -Doptimization=1

build-tsan/build.ninja:
	tools/setup test
	meson setup build-tsan -Dtests=enabled -Dfault_points=enabled -Db_sanitize=thread

build-fuzz/build.ninja:
	tools/setup fuzz
	CC=clang meson setup build-fuzz -Dtests=enabled -Dfuzz=enabled -Db_lundef=false

build-clang/build.ninja:
	tools/setup style
	CC=clang meson setup build-clang -Dtests=enabled -Dfault_points=enabled -Dwerror=true -Doptimization=0
