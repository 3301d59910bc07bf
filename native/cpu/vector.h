// SPDX-License-Identifier: Apache-2.0
// The streaming vector length of a thread.
//
// Linux keeps one for each thread and starts it at 32 bytes, or the least the machine has, whatever the machine could
// do: a kernel that reads its length there does a quarter of the work that an outer product of 64 bytes would. A thread
// inherits its maker's. So threads that run matrix kernels raise theirs before the first one. Kernels never assume a
// length: they read it (RDSVL), and give the same bits at all.
//
// Threads of ours raise it once, for good. The thread that calls the engine is the application's: there it is raised
// when a pass begins and put back when it ends, and only on machines where it runs matrix kernels at all. Setting it
// clears the thread's vector and matrix state, which a caller of an ordinary function has none of.
//
// Apple's systems have one length, fixed.
#pragma once

#include <stdint.h>

// Bytes beyond which a longer vector gains nothing: a line of a weight panel.
enum { SP_SVL_WANTED = 64 };

// Bytes of the calling thread's streaming vector; 0 without SME, or where the system does not say.
uint32_t sp_svl(void);

// Raises it towards SP_SVL_WANTED, as far as machine and system go; never shortens it. Returns what it was.
uint32_t sp_svl_raise(void);

// Sets it to `bytes`, which sp_svl_raise returned on this thread; 0 does nothing.
void sp_svl_restore(uint32_t bytes);
