# SPDX-License-Identifier: Apache-2.0
"""SMEPilot: an on-device LLM engine that treats the matrix unit as a shared colleague of the CPU cores."""
