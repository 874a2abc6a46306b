# SPDX-License-Identifier: Apache-2.0
"""The exceptions.

A mistake in an argument is a `ValueError` or a `TypeError`. The other exceptions are:

* `DeadlineExceededError`, a `ReverbError`: the timeout of a call has passed.
* `StatusError`, a `RuntimeError`: any other status; its `code` is gRPC's name of the status
  ("NOT_FOUND", "UNAVAILABLE", ...). It is not a `ReverbError`, since Reverb raises a plain
  `RuntimeError` in these cases.

    >>> issubclass(StatusError, RuntimeError), issubclass(StatusError, ReverbError)
    (True, False)
"""

from reprise._core import DeadlineExceededError, ReverbError, StatusError

__all__ = ["DeadlineExceededError", "ReverbError", "StatusError"]
