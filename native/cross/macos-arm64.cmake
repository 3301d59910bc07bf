# SPDX-License-Identifier: Apache-2.0
# macOS on arm64. 13 is the first whose sysctls tell of every feature that the engine asks for.
include(${CMAKE_CURRENT_LIST_DIR}/clang.cmake)
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_OSX_DEPLOYMENT_TARGET 13.0)
set(CMAKE_OSX_ARCHITECTURES arm64)
set(CMAKE_OSX_SYSROOT ${SP_CROSS}/macos)
set(CMAKE_C_COMPILER_TARGET arm64-apple-macos13.0)
set(CMAKE_ASM_COMPILER_TARGET arm64-apple-macos13.0)
set(CMAKE_FIND_ROOT_PATH ${SP_CROSS}/macos)
set(Python_INCLUDE_DIR ${SP_CROSS}/macos/python)

# CMake's FindPython lets a bundle take Python's symbols from the process that loads it.
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-fuse-ld=lld --ld-path=${SP_CROSS}/bin/ld64.lld")
