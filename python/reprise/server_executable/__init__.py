# SPDX-License-Identifier: Apache-2.0
"""A server as a program, as Reverb has it."""
