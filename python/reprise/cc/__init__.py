# SPDX-License-Identifier: Apache-2.0
"""Messages, under the module names that they have in Reverb."""
