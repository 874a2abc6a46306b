# SPDX-License-Identifier: Apache-2.0
"""The configuration of a server, by the name Reverb has for its module."""

from reprise.protos import ReverbServerConfig

__all__ = ["ReverbServerConfig"]
