# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, as exceptions.

A mistake in an argument is a `ValueError` or a `TypeError`. Everything else is a `ReverbError`:

* `DeadlineExceededError`: the timeout of a call passed first.
* `StatusError`: any other status; its `code` is the name of the status in gRPC's words
  ("NOT_FOUND", "UNAVAILABLE", ...). It is a `RuntimeError` too, which is what Reverb raises.

    >>> issubclass(StatusError, RuntimeError) and issubclass(StatusError, ReverbError)
    True
"""

from reprise._core import DeadlineExceededError, ReverbError, StatusError

__all__ = ["DeadlineExceededError", "ReverbError", "StatusError"]
