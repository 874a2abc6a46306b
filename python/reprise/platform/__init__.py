# SPDX-License-Identifier: Apache-2.0
"""Checkpointers, under the module names that they have in Reverb."""
