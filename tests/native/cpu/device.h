// SPDX-License-Identifier: Apache-2.0
// Recorded machines: the file trees under tests/devices, unpacked where the engine can read them.
#pragma once

#include <stdbool.h>

#include "cpu/features.h"

enum { SP_DEVICE_ROOT = 64 };

// Unpacks tests/devices/<name>/sys.txt into a fresh folder whose path goes to `root`. NULL makes an empty tree.
bool sp_device_open(const char *name, char root[SP_DEVICE_ROOT]);

// Writes one more file of the tree, or replaces it.
bool sp_device_put(const char *root, const char *path, const char *content);

void sp_device_close(const char *root);

// The processor that tests/devices/<name>/hwcap.txt describes, as arm64 Linux would show it; false when it cannot be
// read.
bool sp_device_cpu(const char *name, sp_cpu *out);

// Answers from tests/devices/<name>/sysctl.txt, until the next call.
sp_sysctl_fn sp_device_sysctl(const char *name);
