# SPDX-License-Identifier: Apache-2.0
"""The exceptions.

A mistake in an argument is a `ValueError` or a `TypeError`. Besides:

* `DeadlineExceededError`, a `ReverbError`: the timeout of a call passed first.
* `StatusError`, a `RuntimeError`: any other status; its `code` is the name of the status in
  gRPC's words ("NOT_FOUND", "UNAVAILABLE", ...). It is no `ReverbError`, as Reverb raises a plain
  `RuntimeError` there: writers flush at the end of a `with` that it leaves.

    >>> issubclass(StatusError, RuntimeError), issubclass(StatusError, ReverbError)
    (True, False)
"""

from reprise._core import DeadlineExceededError, ReverbError, StatusError

__all__ = ["DeadlineExceededError", "ReverbError", "StatusError"]
