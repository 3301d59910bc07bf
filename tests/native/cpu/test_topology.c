// SPDX-License-Identifier: Apache-2.0
// Topology of recorded machines, and of this one.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sysfile.h"
#include "cpu/device.h"
#include "cpu/topology.h"
#include "test.h"

static sp_topology topology;

static const sp_topology *read_device(const char *name, const char *affinity) {
    char root[SP_DEVICE_ROOT];
    sp_cpuset set = {{0}};
    SP_CHECK(sp_cpuset_parse(&set, affinity));
    SP_CHECK(sp_device_open(name, root));
    sp_topology_read_linux(&topology, root, &set);
    sp_device_close(root);
    return &topology;
}

SP_TEST(cpuset_parses_kernel_lists) {
    sp_cpuset set = {{0}};
    SP_CHECK(sp_cpuset_parse(&set, "0-3,8,1022-1023\n"));
    SP_CHECK_INT(sp_cpuset_count(&set), 7);
    SP_CHECK(sp_cpuset_has(&set, 8) && sp_cpuset_has(&set, 1023) && !sp_cpuset_has(&set, 4));
    SP_CHECK(!sp_cpuset_has(&set, 5000));
    sp_cpuset bad = {{0}};
    SP_CHECK(sp_cpuset_parse(&bad, ""));
    const char *const wrong[] = {"x", "-1", "1-", "0-99999", "99999999999999999999", "1;2", ","};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sp_test_label("%s", wrong[i]);
        SP_CHECK(!sp_cpuset_parse(&bad, wrong[i]));
    }
}

SP_TEST(topology_hybrid_laptop) {
    const sp_topology *t = read_device("laptop-hybrid-smt", "0-15");
    SP_CHECK_INT(t->cpus, 16);
    SP_CHECK_INT(t->cores, 12);
    SP_CHECK_INT(t->smt, 2);
    SP_CHECK_INT(t->usable, 12);
    SP_CHECK(t->quota == 0);
    SP_CHECK_INT(t->clusters_count, 3);  // P cores, and two groups of four E cores
    const sp_cluster *p = &t->clusters[0], *e = &t->clusters[1];
    SP_CHECK_INT(p->cores, 4);
    SP_CHECK_INT(p->max_khz, 4700000);
    SP_CHECK_INT(p->l1d.bytes, 48 << 10);
    SP_CHECK_INT(p->l1d.sharers, 1);
    SP_CHECK_INT(p->l2.bytes, 1280 << 10);
    SP_CHECK_INT(p->l3.bytes, 18432 << 10);
    SP_CHECK_INT(p->l3.sharers, 12);
    SP_CHECK_INT(e->cores, 4);
    SP_CHECK_INT(e->l2.bytes, 2 << 20);
    SP_CHECK_INT(e->l2.sharers, 4);
    const uint16_t order[] = {0, 2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    for (uint32_t i = 0; i < 12; i++) SP_CHECK_INT(t->allowed[i].cpu, order[i]);
}

// Half a core is a core, and its second thread stands for it when the first may not be used.
SP_TEST(topology_affinity_counts_cores) {
    const sp_topology *t = read_device("laptop-hybrid-smt", "1,2-3,9");
    SP_CHECK_INT(t->cores, 12);
    SP_CHECK_INT(t->usable, 3);
    SP_CHECK_INT(t->allowed[0].cpu, 1);
    SP_CHECK_INT(t->allowed[1].cpu, 2);
    SP_CHECK_INT(t->allowed[2].cpu, 9);
    SP_CHECK_INT(t->allowed[2].cluster, 1);
    SP_CHECK_INT(t->clusters[0].usable, 2);
    SP_CHECK_INT(t->clusters[2].usable, 0);
}

SP_TEST(topology_phone_strongest_first) {
    const sp_topology *t = read_device("phone-1-3-4", "0-7");
    SP_CHECK_INT(t->cores, 8);
    SP_CHECK_INT(t->clusters_count, 3);
    SP_CHECK_INT(t->clusters[0].cores, 1);
    SP_CHECK_INT(t->clusters[1].cores, 3);
    SP_CHECK_INT(t->clusters[2].cores, 4);
    SP_CHECK_INT(t->clusters[0].max_khz, 4210000);
    SP_CHECK_INT(t->allowed[0].cpu, 7);
    SP_CHECK_INT(t->allowed[1].cpu, 4);
    SP_CHECK_INT(t->allowed[7].cpu, 3);
    SP_CHECK_INT(t->clusters[0].l2.bytes, 0);  // unknown, not guessed
    SP_CHECK_INT(t->sme_units, 0);             // unknown means none
    t = read_device("phone-1-3-4", "0-3");     // an app in the background
    SP_CHECK_INT(t->usable, 4);
    SP_CHECK_INT(t->allowed[0].cluster, 2);
}

SP_TEST(topology_quota_limits_the_default) {
    const sp_topology *t = read_device("container-1.5-cpus", "0-3");
    SP_CHECK(t->quota == 1.5);
    SP_CHECK_INT(t->allowed_count, 4);
    SP_CHECK_INT(t->usable, 1);
    SP_CHECK_INT(t->clusters_count, 1);
    t = read_device("container-cgroup-v1", "0-3");
    SP_CHECK(t->quota == 2.5);
    SP_CHECK_INT(t->usable, 2);
}

SP_TEST(topology_quota_smallest_on_the_way_up) {
    static const struct {
        const char *group, *own, *parent;
        double quota;
    } cases[] = {
        {"0::/a/b", "200000 100000", "max 100000", 2.0},   {"0::/a/b", "max 100000", "50000 100000", 0.5},
        {"0::/a/b", "400000 100000", "300000 100000", 3},  {"0::/a/b", "max 100000", "max 100000", 0},
        {"0::/gone/b", "200000 100000", "100000 0", 0},    {"0::/a/b", "-5 100000", "x y", 0},
        {"nonsense", "200000 100000", "100000 100000", 0}, {"0::/../../../..", "200000 100000", "1000 1000", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char root[SP_DEVICE_ROOT];
        sp_cpuset set = {{3}};
        sp_test_label("case %zu", i);
        SP_REQUIRE(sp_device_open(NULL, root));
        SP_CHECK(sp_device_put(root, "proc/self/cgroup", cases[i].group));
        SP_CHECK(sp_device_put(root, "sys/fs/cgroup/a/b/cpu.max", cases[i].own));
        SP_CHECK(sp_device_put(root, "sys/fs/cgroup/a/cpu.max", cases[i].parent));
        sp_topology_read_linux(&topology, root, &set);
        SP_CHECK(topology.quota == cases[i].quota);
        SP_CHECK_INT(topology.usable, cases[i].quota == 0.5 ? 1 : 2);
        sp_device_close(root);
    }
}

SP_TEST(topology_without_sysfs_counts_the_affinity) {
    const sp_topology *t = read_device(NULL, "0-2,7");
    SP_CHECK_INT(t->cpus, 4);
    SP_CHECK_INT(t->cores, 4);
    SP_CHECK_INT(t->usable, 4);
    SP_CHECK_INT(t->smt, 1);
    SP_CHECK_INT(t->clusters_count, 1);
    SP_CHECK_INT(t->clusters[0].l1d.bytes, 0);
    SP_CHECK_INT(t->allowed[3].cpu, 7);
    t = read_device(NULL, "");  // not even that
    SP_CHECK_INT(t->usable, 1);
    t = read_device("phone-1-3-4", "20-23");  // an affinity of CPUs that are not there
    SP_CHECK_INT(t->usable, 8);
}

SP_TEST(topology_nonsense_in_files_is_ignored) {
    static const char *const junk[] = {"", "-1", "99999999999999999999999", "0-99999", "\xff\xfe", "K", "4-2"};
    static const char *const files[] = {"online",
                                        "cpu0/topology/core_cpus_list",
                                        "cpu1/topology/cluster_id",
                                        "cpu0/cpufreq/cpuinfo_max_freq",
                                        "cpu0/cache/index0/size",
                                        "cpu0/cache/index0/level",
                                        "cpu0/cache/index0/shared_cpu_list"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        for (size_t j = 0; j < sizeof junk / sizeof *junk; j++) {
            char root[SP_DEVICE_ROOT], path[128] = "sys/devices/system/cpu/";
            sp_cpuset set = {{15}};
            sp_test_label("%s=%s", files[f], junk[j]);
            SP_REQUIRE(sp_device_open("container-1.5-cpus", root));
            SP_CHECK(sp_device_put(root, strcat(path, files[f]), junk[j]));
            sp_topology_read_linux(&topology, root, &set);
            SP_CHECK_INT(topology.cores, 4);
            SP_CHECK_INT(topology.usable, 1);
            sp_device_close(root);
        }
    }
}

SP_TEST(topology_mac) {
    sp_topology_from_sysctl(&topology, sp_device_sysctl("mac-m4-like"));
    SP_CHECK_INT(topology.cores, 10);
    SP_CHECK_INT(topology.cpus, 10);
    SP_CHECK_INT(topology.smt, 1);
    SP_CHECK_INT(topology.usable, 10);
    SP_CHECK_INT(topology.clusters_count, 2);
    const sp_cluster *p = &topology.clusters[0], *e = &topology.clusters[1];
    SP_CHECK(p->rank == 0 && p->cores == 4 && p->l1d.bytes == 128 << 10 && p->l2.bytes == 16 << 20);
    SP_CHECK(e->rank == 1 && e->cores == 6 && e->l2.sharers == 6);
    SP_CHECK(topology.allowed[3].cluster == 0 && topology.allowed[4].cluster == 1 && topology.allowed[9].cpu == 9);
    sp_topology_from_sysctl(&topology, sp_device_sysctl("mac-m4-max-like"));
    SP_CHECK_INT(topology.clusters_count, 3);  // two groups of six P cores
    SP_CHECK(topology.clusters[1].rank == 0 && topology.clusters[1].cores == 6);
    SP_CHECK_INT(topology.allowed[11].cluster, 1);
}

static bool silent(const char *name, uint64_t *value) {
    (void)name, (void)value;
    return false;
}

static bool absurd(const char *name, uint64_t *value) {
    (void)name;
    *value = UINT64_MAX / 3;
    return true;
}

SP_TEST(topology_mac_that_says_nothing_or_nonsense) {
    const sp_sysctl_fn answers[] = {silent, absurd};
    for (int i = 0; i < 2; i++) {
        sp_topology_from_sysctl(&topology, answers[i]);
        SP_CHECK(topology.cores == 1 && topology.usable == 1 && topology.cpus == 1 && topology.clusters_count == 1);
        SP_CHECK_INT(topology.sme_units, 0);
    }
}

SP_TEST(topology_of_this_machine) {
    sp_topology_detect(&topology);
    SP_CHECK(topology.usable >= 1 && topology.usable <= topology.allowed_count);
    SP_CHECK(topology.cores >= topology.allowed_count && topology.cpus >= topology.cores);
    SP_CHECK(topology.clusters_count >= 1);
    uint32_t cores = 0;
    for (uint32_t i = 0; i < topology.clusters_count; i++) cores += topology.clusters[i].cores;
    SP_CHECK_INT(cores, topology.cores);
}

SP_TEST(sysfile_answers_false_for_what_cannot_be_read) {
    char root[SP_DEVICE_ROOT], text[8] = "before";
    long long value = 7;
    SP_REQUIRE(sp_device_open(NULL, root));
    SP_CHECK(sp_device_put(root, "a/long", "123456789abc"));
    SP_CHECK(sp_device_put(root, "a/hex", "0x1f rest"));
    SP_CHECK(!sp_sysfile_line(root, text, sizeof text, "/none"));
    SP_CHECK(!sp_sysfile_line(root, text, sizeof text, "/a"));  // a folder
    SP_CHECK_TEXT(text, "before");
    SP_CHECK(sp_sysfile_line(root, text, sizeof text, "/%s/long", "a"));
    SP_CHECK_TEXT(text, "1234567");
    SP_CHECK(sp_sysfile_int(root, &value, "/a/hex") && value == 31);
    SP_CHECK(sp_device_put(root, "a/hex", "words"));
    SP_CHECK(!sp_sysfile_int(root, &value, "/a/hex") && value == 31);
    sp_device_close(root);
}
