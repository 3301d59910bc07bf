// SPDX-License-Identifier: Apache-2.0
// The only reader of /proc and /sys. The root can be another folder, so that tests read the recorded trees of other
// machines. A file that is missing or unreadable is an ordinary answer: false, the output untouched.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// The first line of root + path (printf style), without the line break, cut at size - 1 bytes. `root` is "" for the
// machine itself. False when the file has no readable first line.
__attribute__((format(printf, 4, 5))) bool sp_sysfile_line(const char *root, char *out, size_t size, const char *path,
                                                           ...);

// The whole text, cut at size - 1 bytes.
__attribute__((format(printf, 4, 5))) bool sp_sysfile_text(const char *root, char *out, size_t size, const char *path,
                                                           ...);

// A file that holds one integer, decimal or 0x…; text after it is ignored ("32K" gives 32).
__attribute__((format(printf, 3, 4))) bool sp_sysfile_int(const char *root, long long *out, const char *path, ...);
