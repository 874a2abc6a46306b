# SPDX-License-Identifier: Apache-2.0
"""Checkpointers, where Reverb has them."""
