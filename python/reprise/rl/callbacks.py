# SPDX-License-Identifier: Apache-2.0
"""Callbacks of learn(), as Stable-Baselines3 has them."""

from typing import Any, Callable, Dict, List


class _Function:
    """A function callback(locals, globals)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def start(self, agent: Any, values: Dict[str, Any]) -> None:
        pass

    def step(self, values: Dict[str, Any]) -> bool:
        return self._function(values, {}) is not False

    def end(self) -> None:
        pass


class _Object:
    """An object with the methods of Stable-Baselines3's BaseCallback."""

    def __init__(self, callback: Any) -> None:
        self._callback = callback

    def start(self, agent: Any, values: Dict[str, Any]) -> None:
        if hasattr(self._callback, "init_callback"):
            self._callback.init_callback(agent)
        if hasattr(self._callback, "on_training_start"):
            self._callback.on_training_start(values, {})

    def step(self, values: Dict[str, Any]) -> bool:
        if hasattr(self._callback, "update_locals"):
            self._callback.update_locals(values)
        return self._callback.on_step() is not False

    def end(self) -> None:
        if hasattr(self._callback, "on_training_end"):
            self._callback.on_training_end()


class Callbacks:
    """All callbacks of a call of learn()."""

    def __init__(self, given: Any) -> None:
        each: List[Any] = []
        if given is not None:
            each = list(given) if isinstance(given, (list, tuple)) else [given]
        self._all: List[Any] = []
        for callback in each:
            if hasattr(callback, "on_step"):
                self._all.append(_Object(callback))
            elif callable(callback):
                self._all.append(_Function(callback))
            else:
                raise TypeError("callback must be a function of two dicts, an object with "
                                f"on_step(), or a list of them, got {callback!r}")

    def __bool__(self) -> bool:
        return bool(self._all)

    def start(self, agent: Any, values: Dict[str, Any]) -> None:
        for callback in self._all:
            callback.start(agent, values)

    def step(self, values: Dict[str, Any]) -> bool:
        """Returns False if one of them wants to stop."""
        return all([callback.step(values) for callback in self._all])

    def end(self) -> None:
        for callback in self._all:
            callback.end()
