# SPDX-License-Identifier: Apache-2.0
# Linux on arm64, for programs that run in an emulator here: linked statically against Debian's libraries, whose place
# CMAKE_SYSROOT says.
include(${CMAKE_CURRENT_LIST_DIR}/clang.cmake)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_ASM_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_C_FLAGS_INIT "-mno-outline-atomics")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static --ld-path=${SP_CROSS}/bin/ld.lld")
