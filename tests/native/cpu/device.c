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

// This file is tests/native/cpu/device.c.
static FILE *open_file(const char *name, const char *file) {
    char path[512];
    snprintf(path, sizeof path, "%.*s../../devices/%s/%s", (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__, name,
             file);
    return fopen(path, "r");
}

bool sp_device_open(const char *name, char root[SP_DEVICE_ROOT]) {
    strcpy(root, "/tmp/smepilot-device-XXXXXX");
    if (mkdtemp(root) == NULL) return false;
    if (name == NULL) return true;
    char line[512];
    FILE *file = open_file(name, "sys.txt");
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

// The number after `key:` in a file of facts; a key that is not there, or a file, is false.
static bool read_fact(const char *name, const char *facts, const char *key, long long *value) {
    char line[512];
    bool found = false;
    FILE *file = open_file(name, facts);
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        size_t length = strcspn(line, ":");
        found = length == strlen(key) && strncmp(line, key, length) == 0 && line[length] == ':';
        if (found) *value = strtoll(line + length + 1, NULL, 0);
    }
    if (file != NULL) fclose(file);
    return found;
}

bool sp_device_cpu(const char *name, sp_cpu *out) {
    long long hwcap, hwcap2, vl;
    if (!read_fact(name, "hwcap.txt", "hwcap", &hwcap) || !read_fact(name, "hwcap.txt", "hwcap2", &hwcap2) ||
        !read_fact(name, "hwcap.txt", "sme_vl", &vl)) {
        return false;
    }
    sp_cpu_from_hwcap(out, &(sp_hwcap_facts){(uint64_t)hwcap, (uint64_t)hwcap2, (long)vl});
    return true;
}

static const char *mac;

static bool answer(const char *key, uint64_t *value) {
    long long number;
    bool found = read_fact(mac, "sysctl.txt", key, &number);
    if (found) *value = (uint64_t)number;
    return found;
}

sp_sysctl_fn sp_device_sysctl(const char *name) {
    mac = name;
    return answer;
}
