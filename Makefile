# SPDX-License-Identifier: Apache-2.0
# The contributor's interface; `make` alone lists the verbs.
#
# Everything made here lives in .venv and build/. Tools and libraries come from the package index that pip is configured
# for, and a step runs again only when something it depends on has changed. Needed beforehand: Python >= 3.11, a C
# compiler, make. All but the answer of `make chat` goes to standard error.

PYTHON ?= python3
MODEL ?= smollm2:135m
ARGS ?=
PYTEST_ARGS ?=
PEERS ?=
ARM ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --no-input --disable-pip-version-check
CMAKE := $(BIN)/cmake
NINJA := $(abspath $(BIN)/ninja)
PYTHON_SOURCES := sdk tests native/cross
C_SOURCES = $(shell find native tests/native -name '*.[ch]')
SAY := @echo >&2

# ThreadSanitizer cannot map its shadow when addresses are randomised widely; run it without, where that is allowed.
FIXED_ADDRESSES := $(shell setarch $$(uname -m) -R true 2>/dev/null && echo setarch $$(uname -m) -R)

.DEFAULT_GOAL := help
.PHONY: help env build chat test check lint format native-test sanitize test-arm arm-count peers clean
.DELETE_ON_ERROR:

help:  ## list the verbs
	@echo "make VERB [PYTHON=python3]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' Makefile

# ---- the environment, step by step, each with its stamp

define PREREQUISITES
import os, shutil, sys, sysconfig
if sys.version_info < (3, 11):
    sys.exit("error: Python %d.%d is too old, 3.11 is needed: make PYTHON=/path/to/python3.11" % sys.version_info[:2])
try:
    import ensurepip, venv
except ImportError:
    sys.exit("error: this Python has no venv module; install it (Debian: python3-venv)")
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    sys.exit("error: the headers of this Python are missing; install them (Debian: python3-dev)")
if not any(map(shutil.which, [os.environ.get("CC") or "cc", "gcc", "clang"])):
    sys.exit("error: no C compiler found; install one (Debian: gcc) or set CC")
endef
export PREREQUISITES

$(VENV)/made:
	@command -v '$(PYTHON)' >/dev/null || { echo "error: no $(PYTHON); make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@'$(PYTHON)' -c "$$PREREQUISITES"
	$(SAY) "making $(VENV)"
	@'$(PYTHON)' -m venv $(VENV) >&2
	@touch $@

# Build tools go into the environment and the package is built without isolation, so that an editable install can
# rebuild later with the very tools that built it.
$(VENV)/tools: $(VENV)/made pyproject.toml
	$(SAY) "installing build tools"
	@$(PIP) install cmake ninja $$($(BIN)/python -c \
	  'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])') >&2
	@touch $@

# An editable install knows the packages that were there when it was made: a new one needs it made anew.
PACKAGES := $(wildcard sdk/smepilot/*/__init__.py)

$(VENV)/built: $(VENV)/tools $(PACKAGES)
	$(SAY) "building and installing smepilot"
	@$(PIP) install --no-build-isolation --editable . >&2
	@touch $@

$(VENV)/dev: $(VENV)/tools $(PACKAGES)
	$(SAY) "building and installing smepilot with its test and development tools"
	@$(PIP) install --no-build-isolation --editable '.[dev]' >&2
	@touch $(VENV)/built $@

env: $(VENV)/dev  ## make .venv with everything that development needs

build: $(VENV)/built  ## build and install (editable: it rebuilds itself when a native source has changed)
	@$(BIN)/python -c 'import smepilot._native'

# ---- use

chat: $(VENV)/built  ## talk to a model: make chat [MODEL=name-or-file.gguf] [ARGS="--temp 0"]
	@case '$(MODEL)' in */* | *.gguf) ;; *) \
	  $(BIN)/smepilot show '$(MODEL)' </dev/null >/dev/null 2>&1 || $(BIN)/smepilot pull '$(MODEL)' </dev/null >&2 ;; \
	esac
	@$(BIN)/smepilot run '$(MODEL)' $(ARGS)

# ---- judge

test: lint native-test sanitize  ## everything: checks, C tests (plain and sanitised), Python tests
	@$(BIN)/python -c 'import smepilot._native'
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

check: lint  ## formatting, lint, types, floors, names, documents
	@$(BIN)/python -m pytest --quiet -m 'not slow' tests/contract

lint: $(VENV)/dev
	@$(BIN)/ruff format --quiet --check $(PYTHON_SOURCES) || { echo "make format mends this" >&2; exit 1; }
	@$(BIN)/ruff check --quiet $(PYTHON_SOURCES)
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo --no-cache
	@$(BIN)/clang-format --style=file:native/.clang-format --dry-run --Werror $(C_SOURCES)

format: $(VENV)/dev  ## rewrite sources in the house's format, and the generated parts of documents
	@$(BIN)/ruff check --quiet --select I --fix $(PYTHON_SOURCES)
	@$(BIN)/ruff format --quiet $(PYTHON_SOURCES)
	@$(BIN)/clang-format --style=file:native/.clang-format -i $(C_SOURCES)
	@$(BIN)/python -m tests.contract.documents

# $(call c-tests,NAME,CMAKE OPTIONS,WRAPPER): configure, build and run the C tests in build/NAME.
define c-tests
@$(CMAKE) -S native -B build/$(1) -G Ninja -DCMAKE_MAKE_PROGRAM='$(NINJA)' -DSP_BUILD_TESTS=ON \
  -DSP_BUILD_EXTENSION=OFF $(2) >/dev/null
@$(CMAKE) --build build/$(1) -- --quiet
@echo "C tests, $(1):"
@$(3) build/$(1)/sp_test
endef

# Assertions are on in the sanitised builds (no -DNDEBUG).
SANITIZED := -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O2

native-test: $(VENV)/tools
	$(call c-tests,test-plain,-DCMAKE_BUILD_TYPE=Release)

sanitize: $(VENV)/tools  ## C tests under AddressSanitizer and UBSan, then under ThreadSanitizer
	$(call c-tests,test-address,$(SANITIZED) -DSP_SANITIZE=address$(comma)undefined)
	$(call c-tests,test-thread,$(SANITIZED) -DSP_SANITIZE=thread,$(FIXED_ADDRESSES))

comma := ,

# ---- Arm, from x86-64

include native/cross/cross.mk

arm:  ## wheel for arm64 Linux (glibc 2.28), in build/wheels
macos-wheel:  ## wheel for arm64 macOS, in build/wheels
android-native:  ## the engine as a shared library for arm64 Android, without an NDK

test-arm: arm macos-wheel android-native cross-test $(EMULATORS) $(SITE).made $(VENV)/dev  ## judge them, on emulated processors: ARM="NAME ..." for some
	@CROSS_PYTHON=$(CROSS_PYTHON) $(BIN)/python -m tests.arm.run $(ARM)

arm-count: cross-test $(CROSS)/qemu-trixie-backports $(VENV)/dev  ## count the instructions of kernels: ARGS="WORD ... --record FOLDER"
	@$(CMAKE) --build $(CROSS)/test-arm64 --target sp_count -- --quiet
	@$(BIN)/python -m tests.arm.count --qemu $(CROSS)/qemu-trixie-backports --objdump $(CROSS)/bin/llvm-objdump \
	  --compiler $(CROSS)/bin/clang --program $(CROSS)/test-arm64/sp_count $(ARGS)

# ---- measure

# Both engines as a user installs them: ours as a wheel, llama.cpp built natively from its Python package's sources.
PEERS_ENV := build/peers
PEERS_PIP := $(PEERS_ENV)/bin/python -m pip --quiet --no-input --disable-pip-version-check

$(PEERS_ENV)/built: $(VENV)/tools
	$(SAY) "building llama-cpp-python in $(PEERS_ENV) (10 to 30 minutes on 2 cores)"
	@$(BIN)/python -m venv $(PEERS_ENV) >&2
	@$(PEERS_PIP) install --no-binary llama-cpp-python 'llama-cpp-python==0.3.36' >&2
	@touch $@

peers: $(PEERS_ENV)/built  ## measure against llama.cpp, every promise or those that PEERS="WORD ..." names (an hour)
	@rm -f $(PEERS_ENV)/smepilot-*.whl
	@$(PIP) wheel --no-deps --no-build-isolation --wheel-dir $(PEERS_ENV) . >&2
	@$(PEERS_PIP) install "$$(echo $(PEERS_ENV)/smepilot-*.whl)[test]" >&2
	@$(PEERS_PIP) install --force-reinstall --no-deps $(PEERS_ENV)/smepilot-*.whl >&2
	@$(PEERS_ENV)/bin/python -m tests.bench.peers $(PEERS)

clean:  ## remove .venv and everything built
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
