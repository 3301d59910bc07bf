# SPDX-License-Identifier: Apache-2.0
# What the toolchain files share: the compiler and its tools as tools.sh laid them out. SP_CROSS is their folder.
set(SP_CROSS ${CMAKE_CURRENT_LIST_DIR}/../../build/cross)
cmake_path(NORMAL_PATH SP_CROSS)

set(CMAKE_C_COMPILER ${SP_CROSS}/bin/clang)
set(CMAKE_AR ${SP_CROSS}/bin/llvm-ar)
set(CMAKE_RANLIB ${SP_CROSS}/bin/llvm-ranlib)
set(CMAKE_INSTALL_NAME_TOOL ${SP_CROSS}/bin/llvm-install-name-tool)

# Where a system's libraries are stand-ins (sysroots.py), no program can be linked to try something out.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Headers and libraries are the target's alone, programs (Python, for Cython) this machine's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
