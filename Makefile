# The short way in; CMake does the work. `make help` lists the targets.
#
#   JOBS=N        parallel compilations (default: the number of processors)
#   PREFIX=DIR    where to install (default /usr/local), below DESTDIR if set
#   SECONDS=N     how long to fuzz each target (default 60); TOTAL=N: all of them together
#   FAST=1        make asan: only the tests that take seconds there
#   BOOTSTRAP=:   do not look for missing packages
#   WERROR=OFF    a warning of the compiler does not stop the build
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
PREFIX ?= /usr/local
BOOTSTRAP ?= scripts/bootstrap
WERROR ?= ON
ifeq ($(origin SECONDS),undefined)
SECONDS := 60
endif

# A build below this one takes its parallelism from JOBS, not from this make.
cmake := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL cmake
# $(call configure,FOLDER,OPTIONS) and $(call compile,FOLDER)
configure = $(cmake) -S . -B $(1) -DSAFER_WERROR=$(WERROR) $(2) >/dev/null
compile = $(cmake) --build $(1) -j $(JOBS)
# $(call check,FOLDER,RUNNER,OPTIONS): the tests, and a closing line that counts their cases.
check = $(2) ctest --test-dir $(1) $(3) --output-on-failure --output-junit $(abspath $(1))/tests.xml \
  --test-output-size-passed 1000000 --test-output-size-failed 1000000; status=$$?; \
  awk -f scripts/count-tests.awk $(1)/tests.xml; exit $$status

# gcc counts branches before it optimises much; without -O1 the tests would take an hour. Tests that do not run this build
# are left out.
counted := -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=gcc -DSAFER_HARDEN=OFF -DSAFER_WERROR=OFF \
  -DCMAKE_C_FLAGS='-O1 --coverage -fprofile-update=prefer-atomic -DNDEBUG'
uncounted := ^(test_(abi|browser|build|format|fuzz_list|install|make|packages|proof|python\w*|rooms|trial)|same_bits)$$

sanitized := -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1

.PHONY: all bootstrap build clang demo test test-browser bench asan tsan coverage fuzz format proof dist wheel deb install clean help
.NOTPARALLEL:

all: build

bootstrap: # 3: no apt-get here; CMake will say what it cannot find
	@$(BOOTSTRAP) || test $$? = 3

build: bootstrap
	@$(call configure,build)
	@$(call compile,build)

clang: bootstrap
	@$(call configure,build-clang,-DCMAKE_C_COMPILER=clang)
	@$(call compile,build-clang)

demo: build
	@scripts/demo

test: build clang
	@$(call check,build)

# Chromium is large, so it is installed for this target alone.
test-browser: build
	@$(BOOTSTRAP) --browser || test $$? = 3
	@SAFER_BROWSER=required python3 tests/test_browser.py build

bench: build
	@for program in build/bench/bench_*; do \
	  test ! -f "$$program" || test ! -x "$$program" || { echo "== $${program##*/}"; "$$program" || exit 1; }; \
	done

asan: bootstrap
	@$(call configure,build-asan,$(sanitized) -DCMAKE_C_COMPILER=gcc -DSAFER_SANITIZE=address$(comma)undefined)
	@$(call compile,build-asan)
	@$(call check,build-asan,,$(if $(FAST),-L fast -j $(JOBS)))

# Without address randomisation: its widest setting does not leave room for the shadow memory.
tsan: bootstrap
	@$(call configure,build-tsan,$(sanitized) -DCMAKE_C_COMPILER=clang -DSAFER_SANITIZE=thread)
	@$(call compile,build-tsan)
	@$(call check,build-tsan,setarch -R)

coverage: bootstrap
	@$(call configure,build-coverage,$(counted))
	@$(call compile,build-coverage)
	@find build-coverage -name '*.gcda' -delete
	@ctest --test-dir build-coverage --output-on-failure -E '$(uncounted)'; status=$$?; \
	  scripts/coverage build-coverage && exit $$status

fuzz: bootstrap
	@$(call configure,build-fuzz,$(sanitized) -DCMAKE_C_COMPILER=clang -DSAFER_FUZZ=ON \
	  -DSAFER_SANITIZE=address$(comma)undefined)
	@JOBS=$(JOBS) scripts/fuzz $(if $(TOTAL),--total $(TOTAL),$(SECONDS))

format: bootstrap
	@scripts/format

# Coq is large too: scripts/bootstrap --proof installs it. Without it this says that it does nothing.
proof:
	@scripts/proof

# What a release consists of, in out/dist: docs/release.md.
dist:
	@scripts/dist

wheel:
	@$(BOOTSTRAP) --packages || test $$? = 3
	@JOBS=$(JOBS) scripts/wheel

deb:
	@$(BOOTSTRAP) --packages || test $$? = 3
	@JOBS=$(JOBS) scripts/deb

install: bootstrap
	@$(call configure,build,-DCMAKE_INSTALL_PREFIX=$(PREFIX))
	@$(call compile,build)
	@DESTDIR=$(DESTDIR) $(cmake) --install build

clean:
	rm -rf build build-asan build-clang build-coverage build-deb build-fuzz build-tsan build-wheel out/demo

help:
	@echo 'make            the same as make build'
	@echo 'make all        the same as make build'
	@echo 'make build      build build/safer and the library, installing missing packages first'
	@echo 'make clang      the same with clang, in build-clang'
	@echo 'make demo       make up reviews, build a lexicon, train two models, certify them, write a report'
	@echo 'make test       build with gcc and clang, run the tests'
	@echo 'make test-browser  the report and the explorer in Chromium, which is installed if need be'
	@echo 'make bench      run the benchmarks'
	@echo 'make asan       the tests under AddressSanitizer and UBSan'
	@echo 'make tsan       the tests under ThreadSanitizer'
	@echo 'make coverage   lines and branches of src/ that the tests run, per room'
	@echo 'make fuzz       fuzz every parser for SECONDS=60 seconds each'
	@echo 'make format     lay out all C code as .clang-format says (clang-format 14)'
	@echo 'make proof      check the theorems of proof/ with Coq, and print the axioms they rest on'
	@echo 'make dist       the sources of a release, out/dist/safer-VERSION.tar.xz'
	@echo 'make wheel      the wheel of safer_nlp, which needs nothing but the C library, and its source archive, in out/dist'
	@echo 'make deb        Debian packages of the library, the program and the Python package, in out/dist'
	@echo 'make install    install below PREFIX=/usr/local (and DESTDIR)'
	@echo 'make bootstrap  only install missing packages; make BOOTSTRAP=: never does'
	@echo 'make clean      remove the build folders'
	@echo 'make help       this text'

comma := ,
