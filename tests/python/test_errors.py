# SPDX-License-Identifier: Apache-2.0
"""The exceptions, and their base classes."""

import pickle

import pytest
import reprise
from reprise import errors


def test_errors_are_in_package_and_module():
    assert reprise.ReverbError is errors.ReverbError
    assert reprise.DeadlineExceededError is errors.DeadlineExceededError
    assert errors.ReverbError.__module__ == "reprise.errors"
    assert errors.ReverbError.__qualname__ == "ReverbError"


def test_error_classes_have_their_bases():
    assert issubclass(errors.DeadlineExceededError, errors.ReverbError)
    assert issubclass(errors.StatusError, RuntimeError)
    assert not issubclass(errors.StatusError, errors.ReverbError)
    assert not issubclass(errors.ReverbError, RuntimeError)
    assert not issubclass(errors.DeadlineExceededError, (RuntimeError, TimeoutError))


@pytest.mark.parametrize("kind", [errors.ReverbError, errors.DeadlineExceededError,
                                  errors.StatusError])
def test_errors_can_be_made_raised_and_pickled(kind):
    with pytest.raises(kind, match="some text"):
        raise kind("some text")
    error = kind("some text")
    error.code = "NOT_FOUND"
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind and copy.args == ("some text",) and copy.code == "NOT_FOUND"


def test_codes_of_the_classes():
    assert errors.DeadlineExceededError.code == "DEADLINE_EXCEEDED"
    assert errors.ReverbError.code == errors.StatusError.code == "UNKNOWN"


EVIL = "x\x1b]0;owned\x07\u202egnp.exe"


@pytest.mark.parametrize("transport", [None, "tcp"])
def test_names_in_their_texts_are_escaped(transport):
    """The text of an exception is printed on terminals, so names in it must be escaped."""
    table = reprise.Table.queue("q", 1)
    with reprise.Server([table]) as server:
        client = server.localhost_client(transport=transport)
        calls = [lambda: client.reset(EVIL),
                 lambda: next(client.sample(EVIL)),
                 lambda: client.mutate_priorities(EVIL, {1: 1.0})]
        for call in calls:
            with pytest.raises((errors.StatusError, ValueError)) as found:
                call()
            assert "x\\x1b]0;owned\\x07\\u202egnp.exe" in str(found.value)
            assert not set("\x1b\x07\u202e") & set(str(found.value))
