# SPDX-License-Identifier: Apache-2.0
"""The exceptions.

A mistake in an argument is a `ValueError` or a `TypeError`. The other exceptions are:

* `DeadlineExceededError`, a `ReverbError`: the timeout of a call has passed.
* `StatusError`, a `RuntimeError`: any other status; its `code` is gRPC's name of the status
  ("NOT_FOUND", "UNAVAILABLE", ...). It is not a `ReverbError`, since Reverb raises a plain
  `RuntimeError` in these cases.
* `NotFoundError`, a `StatusError`: there is no such table; the text lists the tables that exist. It is
  also a `ValueError`, since Reverb raises one if an item is inserted into a table that does not exist,
  and a `RuntimeError` if an item is sampled from it.
* `UnknownColumnError`, a `KeyError`: a batch or a step has no column of that name; the text lists the
  columns that there are.

    >>> issubclass(StatusError, RuntimeError), issubclass(StatusError, ReverbError)
    (True, False)
"""

from reprise._core import DeadlineExceededError, NotFoundError, ReverbError, StatusError

__all__ = ["DeadlineExceededError", "NotFoundError", "ReverbError", "StatusError",
           "UnknownColumnError"]


class UnknownColumnError(KeyError):
    """There is no column of that name."""

    def __str__(self) -> str:
        # KeyError would print the sentence in quotes.
        return str(self.args[0])
