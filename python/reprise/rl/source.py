# SPDX-License-Identifier: Apache-2.0
"""Where the copies of an environment come from: a name, a callable or one environment."""

import functools
from typing import Any, Callable, Optional

from reprise.rl.spaces import Observations, read_actions


def _make_by_name(name: str) -> Any:
    try:
        import gymnasium
    except ImportError:
        raise ImportError(f"reprise.rl needs Gymnasium to make {name!r}: pip install gymnasium, or "
                          "pass an environment") from None
    return gymnasium.make(name, disable_env_checker=True)  # groups check what they get


class EnvSource:
    """Makes copies of an environment, and knows their spaces.

    `given` is what the user passed. `single` is the environment itself, if he passed one: there are
    no copies of it.
    """

    def __init__(self, given: Any) -> None:
        self.given = given
        self.single: Optional[Any] = None
        self._first: Optional[Any] = None
        if given in ("MlpPolicy", "CnnPolicy", "MultiInputPolicy"):
            raise TypeError("the first argument is the environment; there are no names of policies")
        if isinstance(given, str):
            self.name = given
            self._make: Callable[[], Any] = functools.partial(_make_by_name, given)
        elif not isinstance(given, type) and hasattr(given, "step") and hasattr(given, "reset"):
            if hasattr(given, "num_envs") and hasattr(given, "single_action_space"):
                raise TypeError("pass the name of the environment, or a callable, and copies=, "
                                "instead of a vector environment")
            spec = getattr(given, "spec", None)
            self.name = getattr(spec, "id", None) or type(given).__name__
            self.single = given
        elif callable(given):
            self.name = getattr(given, "__name__", type(given).__name__)
            self._make = given
        else:
            raise TypeError("env must be the name of an environment, an environment or a callable "
                            f"that makes one, got {given!r}")
        probe = self.single if self.single is not None else self._make()
        for member in ("reset", "step", "observation_space", "action_space"):
            if not hasattr(probe, member):
                raise TypeError(f"environment {self.name!r} has no {member}; it is a "
                                f"{type(probe).__name__}")
        if self.single is None:
            spec = getattr(probe, "spec", None)
            self.name = getattr(spec, "id", None) or self.name
            self._first = probe
        self.observations = Observations.of(probe.observation_space)
        self.action_count, self.first_action = read_actions(probe.action_space)

    def make(self) -> Any:
        """Makes a copy, or returns the single environment."""
        if self.single is not None:
            return self.single
        made, self._first = self._first, None
        return made if made is not None else self._make()

    def close(self) -> None:
        """Closes the environment that was made to read its spaces, unless it is in use."""
        if self._first is not None and hasattr(self._first, "close"):
            self._first.close()
        self._first = None
