# SPDX-License-Identifier: Apache-2.0
# Linux on arm64, for a wheel that runs with glibc 2.28 and later: manylinux_2_28_aarch64.
include(${CMAKE_CURRENT_LIST_DIR}/clang.cmake)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_ASM_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${SP_CROSS}/linux)
set(Python_INCLUDE_DIR ${SP_CROSS}/linux/python)

# The headers are those of a newer glibc and show what the version named here had. Atomics stay inline: out of line they
# would need libgcc. Kernels with pages of 64 KiB exist.
set(CMAKE_C_FLAGS_INIT "-nostdlibinc -idirafter ${SP_CROSS}/linux/include -D__GLIBC_MINOR__=28 -mno-outline-atomics")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-nostdlib --ld-path=${SP_CROSS}/bin/ld.lld -L${SP_CROSS}/linux/lib \
-Wl,--as-needed -Wl,-z,max-page-size=65536 -Wl,-z,relro -Wl,-z,now -Wl,--build-id=sha1")
set(CMAKE_C_STANDARD_LIBRARIES "-lc -lpthread")
