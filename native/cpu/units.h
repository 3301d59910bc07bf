// SPDX-License-Identifier: Apache-2.0
// Linux: which cores share which matrix unit. Part of the reading of a topology, after its cores are known.
#pragma once

#include "cpu/topology.h"

// Fills sme_units, sme_private and the cores' `unit` from the registers that the kernel shows below `root`.
void sp_units_read_linux(sp_topology *topology, const char *root);
