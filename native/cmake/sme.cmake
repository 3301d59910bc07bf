# SPDX-License-Identifier: Apache-2.0
# The matrix unit's kernels, where the compiler knows the Arm C Language Extensions for SME (clang >= 18, gcc >= 14).
# An older compiler leaves them out, and `smepilot doctor` says that they were not built.
include(CheckCSourceCompiles)
include(CMakePushCheckState)

# No stack protector: its call for help is no streaming function, and would ask for the run-time ABI.
set(SP_SME_OPTIONS -march=armv8.2-a+sme -fno-stack-protector)
set(SP_SME2_OPTIONS -march=armv8.7-a+sme2 -fno-stack-protector)

function(sp_check_sme options result)
  cmake_push_check_state(RESET)
  list(JOIN options " " CMAKE_REQUIRED_FLAGS)
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  check_c_source_compiles("
    #include <arm_sme.h>
    void f(void) __arm_streaming __arm_inout(\"za\") { svzero_za(); }" ${result})
  cmake_pop_check_state()
endfunction()

sp_check_sme("${SP_SME_OPTIONS}" SP_COMPILES_SME)
sp_check_sme("${SP_SME2_OPTIONS}" SP_COMPILES_SME2)
if(SP_COMPILES_SME AND SP_COMPILES_SME2)
  enable_language(ASM)
  list(APPEND SP_SOURCES ${SP_SME_SOURCES} ${SP_SME2_SOURCES} ${SP_ENTRIES})
  set_source_files_properties(${SP_SME_SOURCES} PROPERTIES COMPILE_OPTIONS "${SP_SME_OPTIONS}")
  set_source_files_properties(${SP_SME2_SOURCES} ${SP_ENTRIES} PROPERTIES COMPILE_OPTIONS "${SP_SME2_OPTIONS}")
  list(APPEND SP_DEFINITIONS SP_BUILT_SME SP_BUILT_SME2)
else()
  message(STATUS "No SME kernels: ${CMAKE_C_COMPILER} does not know arm_sme.h")
endif()
