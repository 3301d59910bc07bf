// SPDX-License-Identifier: Apache-2.0
#include "base/sysfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

static size_t read_fully(int file, char *out, size_t size) {
    size_t filled = 0;
    while (filled < size) {
        ssize_t got = read(file, out + filled, size - filled);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        filled += (size_t)got;
    }
    return filled;
}

static bool read_text(const char *root, char *out, size_t size, const char *path, va_list args) {
    char full[PATH_BYTES];
    int prefix = snprintf(full, sizeof full, "%s", root);
    if (prefix < 0 || prefix >= PATH_BYTES) return false;
    int rest = vsnprintf(full + prefix, sizeof full - (size_t)prefix, path, args);
    if (rest < 0 || rest >= PATH_BYTES - prefix) return false;
    int file = open(full, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    char first;
    bool some = read_fully(file, &first, 1) == 1;  // a directory opens and does not read
    if (some) {
        out[0] = first;
        out[1 + read_fully(file, out + 1, size - 2)] = '\0';
    }
    close(file);
    return some;
}

bool sp_sysfile_text(const char *root, char *out, size_t size, const char *path, ...) {
    va_list args;
    va_start(args, path);
    bool ok = read_text(root, out, size, path, args);
    va_end(args);
    return ok;
}

bool sp_sysfile_line(const char *root, char *out, size_t size, const char *path, ...) {
    va_list args;
    va_start(args, path);
    bool ok = read_text(root, out, size, path, args);
    va_end(args);
    if (ok) out[strcspn(out, "\n")] = '\0';
    return ok;
}

bool sp_sysfile_int(const char *root, long long *out, const char *path, ...) {
    char text[64];
    va_list args;
    va_start(args, path);
    bool ok = read_text(root, text, sizeof text, path, args);
    va_end(args);
    if (!ok) return false;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 0);
    if (end == text || errno != 0) return false;
    *out = value;
    return true;
}
