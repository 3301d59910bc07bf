# SPDX-License-Identifier: Apache-2.0
"""Floor 5a: what runs a model: packed weights, one native step at a time, sequences and their scheduling."""
