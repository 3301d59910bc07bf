// SPDX-License-Identifier: Apache-2.0
// Ten traps of SME that others fell into, and the test that keeps each shut. `sp_test trap` runs those written in C.
//
//   1  SME taken for SME2                      trap1_* here, trap1_* in probe/test_selftest.c
//   2  advertised, but it traps                trap2_* here; the child that finds out: trap2_* in
//                                              probe/test_guard.c and probe/test_selftest.c
//   3  runs, but gives wrong bits              trap3_* in probe/test_selftest.c; what becomes of the verdict:
//                                              tests/sdk/runtime/test_tiers.py, test_trust.py and cli/test_doctor.py
//   4  vector length assumed                   trap4_* here, and in thread/test_vector.c for the workers
//   5  SVE outside of streaming mode           tests/arm/test_disassembly.py (nothing_scalable_in_ordinary_units) and
//                                              test_illegal.py
//   6  runtime symbols that toolchains lack    tests/arm/test_disassembly.py (no_runtime_of_the_matrix_unit_is_needed)
//   7  system calls, signals, switches         trap7_* in probe/test_selftest.c; tests/arm/test_disassembly.py
//                                              (streaming_units_call_only_each_other): no system call in a kernel
//   8  NEON inside of streaming mode           tests/arm/test_disassembly.py (no_advanced_simd_in_streaming_units) and
//                                              test_illegal.py
//   9  a compiler that miscompiles them        the self-test of trap 3 runs the very build; inner loops are assembly
//  10  more workers than units                 trap10_* here
#include "cpu/device.h"
#include "cpu/topology.h"
#include "cpu/vector.h"
#include "test.h"

static sp_topology topology;

static const sp_topology *units_of(const char *device, const char *affinity) {
    char root[SP_DEVICE_ROOT];
    sp_cpuset set = {{0}};
    SP_CHECK(sp_cpuset_parse(&set, affinity));
    SP_CHECK(sp_device_open(device, root));
    sp_topology_read_linux(&topology, root, &set);
    sp_device_close(root);
    return &topology;
}

static uint64_t unit_cpus(uint32_t nth) { return sp_topology_unit_cpus(&topology, nth).bits[0]; }

// ---- 1

SP_TEST(trap1_sme_is_not_sme2) {
    sp_cpu cpu;
    SP_REQUIRE(sp_device_cpu("server-kunpeng-like", &cpu));
    SP_CHECK(cpu.sme && !cpu.sme2 && cpu.sme_fa64 && !cpu.sme_i16i64 && cpu.sve);
    SP_REQUIRE(sp_device_cpu("phone-dimensity-like", &cpu));
    SP_CHECK(cpu.sme && cpu.sme2 && !cpu.sme_fa64 && cpu.sme_i16i64 && !cpu.sve);
    sp_cpu_from_sysctl(&cpu, sp_device_sysctl("mac-m4-like"));
    SP_CHECK(cpu.sme && cpu.sme2 && !cpu.sme_fa64 && cpu.sme_i16i64 && !cpu.sve);
    SP_CHECK_INT(cpu.svl, 64);
}

// ---- 2

SP_TEST(trap2_advertised_without_a_vector_length_is_absent) {
    sp_cpu cpu;
    SP_REQUIRE(sp_device_cpu("vm-sme-no-length", &cpu));
    SP_CHECK(cpu.i8mm && !cpu.sme && !cpu.sme2 && !cpu.sme_i16i64 && cpu.svl == 0);
    sp_cpu_from_sysctl(&cpu, sp_device_sysctl("iphone-sme-blocked"));
    SP_CHECK(cpu.i8mm && !cpu.sme && !cpu.sme2 && !cpu.sme_i16i64 && cpu.svl == 0);
    sp_topology_from_sysctl(&topology, sp_device_sysctl("iphone-sme-blocked"));
    SP_CHECK_INT(topology.sme_units, 0);
}

SP_TEST(trap2_impossible_vector_lengths_are_not_believed) {
    const long lengths[] = {1, 15, 24, 48, 100, 512, 4096, -22};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        sp_cpu cpu;
        sp_cpu_from_hwcap(&cpu, &(sp_hwcap_facts){2, 1u << 23, lengths[i]});
        sp_test_label("%ld", lengths[i]);
        SP_CHECK(!cpu.sme && cpu.svl == 0);
    }
}

// ---- 4

SP_TEST(trap4_vector_length_is_raised_and_put_back) {
    uint32_t before = sp_svl();
    SP_CHECK_INT(sp_svl_raise(), before);
    SP_CHECK(sp_svl() >= before);
    SP_CHECK(before == 0 || sp_svl_valid(sp_svl()));
    SP_CHECK(before == 0 || sp_svl() <= SP_SVL_WANTED || sp_svl() == before);
    sp_svl_restore(before);
    SP_CHECK_INT(sp_svl(), before);
    sp_svl_restore(0);
    SP_CHECK_INT(sp_svl(), before);
}

// ---- 10

SP_TEST(trap10_units_of_their_own_need_no_workers_beside_the_cores) {
    const sp_topology *t = units_of("server-kunpeng-like", "0-7");
    SP_CHECK(t->sme_private && t->sme_units == 0 && t->cores == 8);
    SP_CHECK_INT(sp_topology_sme_workers(t), 0);
    SP_CHECK_INT(t->allowed[0].unit, SP_UNIT_NONE);
}

SP_TEST(trap10_one_worker_for_the_unit_that_strong_cores_share) {
    const sp_topology *t = units_of("phone-dimensity-like", "0-7");
    SP_CHECK(!t->sme_private && t->sme_units == 2);
    SP_CHECK_INT(sp_topology_sme_workers(t), 1);
    SP_CHECK_INT(unit_cpus(0), 0xf0);
    SP_CHECK_INT(unit_cpus(1), 0);
    t = units_of("phone-dimensity-like", "0-3");  // in the background: the little cores' unit is what there is
    SP_CHECK_INT(t->sme_units, 1);
    SP_CHECK_INT(sp_topology_sme_workers(t), 1);
    SP_CHECK_INT(unit_cpus(0), 0x0f);
}

SP_TEST(trap10_apple_has_a_unit_in_each_cluster) {
    sp_topology_from_sysctl(&topology, sp_device_sysctl("mac-m4-like"));
    SP_CHECK_INT(topology.sme_units, 2);
    SP_CHECK_INT(sp_topology_sme_workers(&topology), 1);  // the E cores' unit would hold it up
    sp_topology_from_sysctl(&topology, sp_device_sysctl("mac-m4-max-like"));
    SP_CHECK_INT(topology.sme_units, 3);
    SP_CHECK_INT(sp_topology_sme_workers(&topology), 2);
    SP_CHECK(unit_cpus(0) == 0x03f && unit_cpus(1) == 0xfc0);
}

SP_TEST(trap10_unknown_is_one) {
    const sp_topology *t = units_of("phone-1-3-4", "0-7");
    SP_CHECK(!t->sme_private && t->sme_units == 0);
    SP_CHECK_INT(sp_topology_sme_workers(t), 1);
    SP_CHECK_INT(unit_cpus(0), 0);  // its worker may run anywhere
}

// What one core's register says, the other cores of the server keeping theirs: a contradiction is unknown.
SP_TEST(trap10_registers_that_say_nothing_or_contradict_are_unknown) {
    static const char *const registers[] = {"0x0", "0x2000", "nonsense", "-1", "0x6001", ""};
    for (size_t i = 0; i < sizeof registers / sizeof *registers; i++) {
        char root[SP_DEVICE_ROOT];
        sp_cpuset set = {{0xff}};
        sp_test_label("%s", registers[i]);
        SP_REQUIRE(sp_device_open("server-kunpeng-like", root));
        SP_CHECK(sp_device_put(root, "sys/devices/system/cpu/cpu3/regs/identification/smidr_el1", registers[i]));
        sp_topology_read_linux(&topology, root, &set);
        SP_CHECK(!topology.sme_private && topology.sme_units == 0);
        SP_CHECK_INT(sp_topology_sme_workers(&topology), 1);
        sp_device_close(root);
    }
}

// Sharing 0 with an affinity names a unit; affinity has two parts.
SP_TEST(trap10_units_are_told_apart_by_both_parts_of_the_affinity) {
    static const char *const registers[] = {"0x1", "0x1", "0x100000001", "0x100000001"};
    char root[SP_DEVICE_ROOT];
    sp_cpuset set = {{0xf}};
    SP_REQUIRE(sp_device_open("container-1.5-cpus", root));
    for (int cpu = 0; cpu < 4; cpu++) {
        char path[96] = "sys/devices/system/cpu/cpu0/regs/identification/smidr_el1";
        path[26] = (char)('0' + cpu);
        SP_CHECK(sp_device_put(root, path, registers[cpu]));
    }
    sp_topology_read_linux(&topology, root, &set);
    sp_device_close(root);
    SP_CHECK_INT(topology.sme_units, 2);
    SP_CHECK_INT(sp_topology_sme_workers(&topology), 2);
    SP_CHECK(unit_cpus(0) == 3 && unit_cpus(1) == 12);
}
