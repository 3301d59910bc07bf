// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cpu/device.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool append(const char *root, const char *path, const char *content, const char *mode) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, mode);
    if (file == NULL) return false;
    fprintf(file, "%s\n", content);
    return fclose(file) == 0;
}

bool sp_device_put(const char *root, const char *path, const char *content) { return append(root, path, content, "w"); }

bool sp_device_open(const char *name, char root[SP_DEVICE_ROOT]) {
    strcpy(root, "/tmp/smepilot-device-XXXXXX");
    if (mkdtemp(root) == NULL) return false;
    if (name == NULL) return true;
    // This file is tests/native/cpu/device.c.
    char source[512], line[512];
    snprintf(source, sizeof source, "%.*s../../devices/%s/sys.txt", (int)(strrchr(__FILE__, '/') + 1 - __FILE__),
             __FILE__, name);
    FILE *file = fopen(source, "r");
    bool ok = file != NULL;
    while (ok && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *colon = strchr(line, ':');
        ok = colon != NULL;
        if (ok) {
            *colon = '\0';
            ok = append(root, line, colon + 1, "a");
        }
    }
    if (file != NULL) fclose(file);
    return ok;
}

static int remove_one(const char *path, const struct stat *stat, int flag, struct FTW *at) {
    (void)stat, (void)flag, (void)at;
    return remove(path);
}

void sp_device_close(const char *root) { nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS); }
