// SPDX-License-Identifier: Apache-2.0
// macOS and iOS: no pinning of user threads; the quality-of-service class decides between P and E cores.
#ifdef __APPLE__
#include "thread/affinity.h"

#include <pthread.h>
#include <pthread/qos.h>

#include "base/check.h"

sp_pin sp_thread_pin(const sp_cpuset *cpus) {
    SP_UNUSED(cpus);
    return SP_PIN_REFUSED;
}

void sp_thread_describe(const char *name) {
    pthread_set_qos_class_self_np(QOS_CLASS_USER_INITIATED, 0);
    pthread_setname_np(name);
}
#endif
