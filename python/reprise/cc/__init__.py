# SPDX-License-Identifier: Apache-2.0
"""Messages, where Reverb has them."""
