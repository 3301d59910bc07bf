# SPDX-License-Identifier: Apache-2.0
"""Floor 2: model files as they are on disk. A reader gives metadata, a tensor table and read-only bytes, no more."""
