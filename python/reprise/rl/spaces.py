# SPDX-License-Identifier: Apache-2.0
"""Spaces of environments: which ones an agent takes, and how observations become rows of arrays.

Spaces are known by the names of their classes, so that Gymnasium need not be imported.
"""

from typing import Any, Dict, Tuple

import numpy as np

PIXELS_FROM = 36  # the smallest height and width of images that the network takes as images


def _is(space: Any, name: str) -> bool:
    return any(c.__name__ == name for c in type(space).__mro__)


class Observations:
    """The observations of a space, as rows of float32 or uint8.

    `given` is the shape of an observation of the environment, `shape` that of a row. They differ
    for a Discrete space, whose rows are one-hot, and for images with their channels last.
    """

    def __init__(self, given: Tuple[int, ...], pixels: bool, one_hot: int = 0) -> None:
        self.given, self.pixels, self.one_hot = given, pixels, one_hot
        self.channels_last = (
            pixels and len(given) == 3 and given[2] < min(given[0], given[1])
            and min(given[0], given[1]) >= PIXELS_FROM)
        self.shape: Tuple[int, ...] = given
        if one_hot:
            self.shape = (one_hot,)
        elif self.channels_last:
            self.shape = (given[2], given[0], given[1])
        elif not given:
            self.shape = (1,)
        self.dtype = np.dtype(np.uint8 if pixels else np.float32)

    @classmethod
    def of(cls, space: Any) -> "Observations":
        """Returns the observations of a space. ValueError if an agent cannot take them."""
        if _is(space, "Discrete"):
            if getattr(space, "start", 0) != 0:
                raise ValueError(f"DQN takes Discrete observations from 0 on, not {space}")
            return cls((), False, int(space.n))
        if _is(space, "MultiBinary"):
            return cls(tuple(int(n) for n in space.shape), False)
        if _is(space, "Box"):
            dtype = np.dtype(space.dtype)
            if dtype.kind in "fiu" and all(n > 0 for n in space.shape):
                return cls(tuple(int(n) for n in space.shape), dtype == np.uint8)
        raise ValueError(f"DQN takes observations of a Box of numbers, a Discrete or a MultiBinary "
                         f"space, not {space}; gymnasium.wrappers.FlattenObservation may help")

    @classmethod
    def from_text(cls, text: Dict[str, str]) -> "Observations":
        given = tuple(int(n) for n in text["observation.shape"].split())
        return cls(given, text["observation.pixels"] == "1", int(text["observation.one_hot"]))

    def as_text(self) -> Dict[str, str]:
        return {"observation.shape": " ".join(map(str, self.given)),
                "observation.pixels": str(int(self.pixels)),
                "observation.one_hot": str(self.one_hot)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Observations) and self.as_text() == other.as_text()

    def __hash__(self) -> int:
        return hash((self.given, self.pixels, self.one_hot))

    def __str__(self) -> str:
        if self.one_hot:
            return f"Discrete({self.one_hot})"
        return f"{'uint8' if self.pixels else 'float32'} of shape {self.given}"

    def write(self, row: np.ndarray, observation: Any) -> None:
        """Writes an observation to a row. ValueError if it is not one of the space."""
        array = np.asarray(observation)
        if array.shape != self.given:
            raise ValueError(f"an observation of shape {array.shape}, not {self.given}")
        if self.one_hot:
            if array.dtype.kind not in "iu" or not 0 <= array < self.one_hot:
                raise ValueError(f"the observation {observation!r}, not an integer from 0 to "
                                 f"{self.one_hot - 1}")
            row[...] = 0
            row[int(array)] = 1
            return
        if array.dtype.kind not in "fiub" or (self.pixels and array.dtype != np.uint8):
            raise ValueError(f"an observation of dtype {array.dtype}, not {self.dtype}")
        row[...] = array.transpose(2, 0, 1) if self.channels_last else array

    def rows(self, observations: Any) -> Tuple[np.ndarray, bool]:
        """Returns one or several observations as rows, and whether there were several."""
        array = np.asarray(observations)
        several = array.ndim == len(self.given) + 1
        each = array if several else array[None]
        if each.shape[1:] != self.given:
            raise ValueError(f"expected one observation of shape {self.given}, or a batch of them, "
                             f"got shape {array.shape}")
        if (not self.one_hot and array.dtype.kind in "fiub" and not self.channels_last
                and (not self.pixels or array.dtype == np.uint8)):
            return np.ascontiguousarray(each, self.dtype).reshape(len(each), *self.shape), several
        out = np.empty((len(each), *self.shape), self.dtype)
        for row, observation in zip(out, each):
            self.write(row, observation)
        return out, several


def read_actions(space: Any) -> Tuple[int, int]:
    """Returns the number of actions, and the first one."""
    if not _is(space, "Discrete"):
        raise ValueError(f"DQN needs a Discrete action space, not {space}")
    return int(space.n), int(getattr(space, "start", 0))
