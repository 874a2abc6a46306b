# SPDX-License-Identifier: Apache-2.0
"""The message for the configuration of a server, under the module name that it has in Reverb."""

from reprise.protos import ReverbServerConfig

__all__ = ["ReverbServerConfig"]
