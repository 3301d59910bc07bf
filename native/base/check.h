// SPDX-License-Identifier: Apache-2.0
// Preconditions inside the engine. What comes from a caller of the library or from a file is checked and answered
// with a status; SP_ASSERT is for what only a mistake of ours can break. It stops a debug build where it stands
// (a trap: nothing is printed) and costs a release build nothing.
#pragma once

#ifdef NDEBUG
#define SP_ASSERT(condition) ((void)sizeof(condition))
#else
#define SP_ASSERT(condition) ((condition) ? (void)0 : __builtin_trap())
#endif

#define SP_UNUSED(name) ((void)(name))
