# SPDX-License-Identifier: Apache-2.0
"""A server as a program, under the module names that it has in Reverb."""
