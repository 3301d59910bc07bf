# SPDX-License-Identifier: Apache-2.0
"""The tests, as a package so that modules of equal name in different folders do not collide."""
