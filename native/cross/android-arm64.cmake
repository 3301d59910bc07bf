# SPDX-License-Identifier: Apache-2.0
# Android on arm64 (arm64-v8a), API 24, without an NDK: sysroots.py says what stands in for it. Android 15 and later may
# have pages of 16 KiB, so segments are aligned to them.
include(${CMAKE_CURRENT_LIST_DIR}/clang.cmake)
set(CMAKE_SYSTEM_NAME Linux) # CMake's "Android" wants the NDK
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-android24)
set(CMAKE_ASM_COMPILER_TARGET aarch64-linux-android24)
set(CMAKE_FIND_ROOT_PATH ${SP_CROSS}/android)
set(CMAKE_C_FLAGS_INIT "-nostdlibinc -idirafter ${SP_CROSS}/android/include -mno-outline-atomics")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-nostdlib --ld-path=${SP_CROSS}/bin/ld.lld -L${SP_CROSS}/android/lib \
-Wl,-z,max-page-size=16384 -Wl,-z,relro -Wl,-z,now -Wl,--no-undefined -Wl,--hash-style=both -Wl,--build-id=sha1")
set(CMAKE_C_STANDARD_LIBRARIES "-lc")
set(CMAKE_HAVE_LIBC_PTHREAD ON) # threads are part of libc, and CMake's trial wants more of them than the engine
