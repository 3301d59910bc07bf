# SPDX-License-Identifier: Apache-2.0
# Builds for arm64 on x86-64 Debian, included by the Makefile. All that they need is fetched into build/cross, without
# root: the compiler and the emulators as Debian packages, headers of other systems from the package index (sysroots.py).
#
# The wheels come out of the package's own build, told by configuration what it builds for: a toolchain file, the wheel's
# tag and the extension's suffix. CROSS_PYTHON is the version of Python that they are for; this machine's may differ,
# since Cython writes C for all of them.
CROSS := build/cross
CROSS_PYTHON := 3.11
WHEELS := build/wheels

# The suite of Debian whose Python that is.
SUITE_3.11 := bookworm
SUITE_3.13 := trixie
SUITE := $(or $(SUITE_$(CROSS_PYTHON)),$(error CROSS_PYTHON is one of 3.11 and 3.13))

CP := cp$(subst .,,$(CROSS_PYTHON))
CPYTHON := cpython-$(subst .,,$(CROSS_PYTHON))
DEBIAN := $(CROSS)/debian-$(CROSS_PYTHON)
UNPACK := native/cross/debian.sh

$(CROSS)/tools.made: native/cross/tools.sh $(UNPACK)
	$(SAY) "fetching clang and lld, as far as this machine lacks them"
	@native/cross/tools.sh $(CROSS)
	@touch $@

$(CROSS)/zig.made: $(VENV)/made
	$(SAY) "fetching headers of Linux and macOS"
	@rm -rf $(CROSS)/zig
	@$(PIP) install --target $(CROSS)/zig 'ziglang==0.17.*' >&2
	@touch $@

# A Debian for arm64: its Python runs in the emulator, its headers and libraries build for it.
$(DEBIAN).made: $(UNPACK)
	$(SAY) "fetching Python $(CROSS_PYTHON) for arm64"
	@$(UNPACK) $(DEBIAN) arm64 $(SUITE) python$(CROSS_PYTHON)-minimal libpython$(CROSS_PYTHON)-stdlib \
	  libpython$(CROSS_PYTHON)-dev libstdc++6 libgomp1 libgcc-12-dev
	@touch $@

SYSROOTS := $(CROSS)/sysroots-$(CROSS_PYTHON).made
$(SYSROOTS): $(CROSS)/tools.made $(CROSS)/zig.made $(DEBIAN).made native/cross/sysroots.py native/cross/bionic.h.in
	@$(BIN)/python native/cross/sysroots.py $(CROSS) $(CROSS_PYTHON)
	@touch $@

# $(call cross-wheel,SYSTEM,PLATFORM TAG,SUFFIX): the wheel for SYSTEM, in build/wheels.
define cross-wheel
@rm -f $(WHEELS)/smepilot-*-$(CP)-$(CP)-$(2).whl
@SETUPTOOLS_EXT_SUFFIX=.$(CPYTHON)-$(3).so $(PIP) wheel --no-deps --no-build-isolation --wheel-dir $(WHEELS) \
  --config-settings=build-dir=$(CROSS)/$(1)-$(CP) \
  --config-settings=cmake.toolchain-file=$(CURDIR)/native/cross/$(1)-arm64.cmake \
  --config-settings=wheel.tags=$(CP)-$(CP)-$(2) . >&2
@ls $(WHEELS)/smepilot-*-$(CP)-$(CP)-$(2).whl
endef

.PHONY: arm macos-wheel android-native cross-test

arm: $(VENV)/tools $(SYSROOTS)
	$(call cross-wheel,linux,manylinux_2_28_aarch64,aarch64-linux-gnu)

macos-wheel: $(VENV)/tools $(SYSROOTS)
	$(call cross-wheel,macos,macosx_13_0_arm64,darwin)

# $(call cross-build,FOLDER,TOOLCHAIN,OPTIONS): configure and build the engine in build/cross/FOLDER.
define cross-build
@$(CMAKE) -S native -B $(CROSS)/$(1) -G Ninja -DCMAKE_MAKE_PROGRAM='$(NINJA)' -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/native/cross/$(2).cmake -DSP_BUILD_EXTENSION=OFF $(3) >/dev/null
@$(CMAKE) --build $(CROSS)/$(1) -- --quiet
endef

android-native: $(VENV)/tools $(SYSROOTS)
	$(call cross-build,android-arm64,android-arm64,-DSP_BUILD_SHARED=ON)
	@ls $(CROSS)/android-arm64/libsmepilot.so

# The C tests for the emulators.
cross-test: $(VENV)/tools $(CROSS)/tools.made $(DEBIAN).made
	$(call cross-build,test-arm64,linux-arm64-test,-DSP_BUILD_TESTS=ON -DCMAKE_SYSROOT=$(CURDIR)/$(DEBIAN))

# Emulators. The newest knows SME2, and SME without SVE; an older one knows SME and not SME2, as KunPeng does.
$(CROSS)/qemu-%: $(UNPACK)
	$(SAY) "fetching an emulator ($*)"
	@$(UNPACK) $(CROSS)/$*.tree $$(dpkg --print-architecture) $* qemu-user
	@mv $(CROSS)/$*.tree/usr/bin/qemu-aarch64 $@
	@rm -rf $(CROSS)/$*.tree
	@touch $@
EMULATORS := $(CROSS)/qemu-trixie-backports $(CROSS)/qemu-trixie

# What the package and its tests need, for the emulated Python.
define REQUIREMENTS
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print(*project["dependencies"], *project["optional-dependencies"]["test"], sep="\n")
endef
export REQUIREMENTS

SITE := $(CROSS)/site-$(CROSS_PYTHON)
$(SITE).made: pyproject.toml $(VENV)/made
	$(SAY) "fetching the package's dependencies for arm64"
	@rm -rf $(SITE)
	@$(BIN)/python -c "$$REQUIREMENTS" >$(SITE).txt
	@$(PIP) install --target $(SITE) --only-binary=:all: --python-version $(CROSS_PYTHON) --implementation cp \
	  $(foreach abi,$(CP) abi3 none,--abi $(abi)) \
	  $(foreach tag,manylinux_2_28 manylinux_2_17 manylinux2014,--platform $(tag)_aarch64) -r $(SITE).txt >&2
	@touch $@
