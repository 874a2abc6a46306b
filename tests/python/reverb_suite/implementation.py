# SPDX-License-Identifier: Apache-2.0
"""The implementation under test, and the few names that differ between the two."""

import importlib
import os

import numpy as np

NAME = os.environ.get("REPLAY_IMPLEMENTATION", "reprise")
if NAME == "reverb":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # The interval at which a channel without waiting calls polls its sockets. The default is 5 s.
    os.environ.setdefault("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "100")

reverb = importlib.import_module(NAME)

TRANSPORTS = {"reverb": ["in-process", "child"],
              "reprise": ["in-process", "child", "tcp"]}[NAME]


def submodule(name):
    """Returns a module of the implementation that is not an attribute of its package."""
    return importlib.import_module(f"{NAME}.{name}")


class Spec:
    """A leaf of a signature, which can be converted for both implementations."""

    def __init__(self, shape, dtype, name=None):
        self.shape, self.dtype, self.name = shape, dtype, name


def tensor_spec(shape, dtype, name=None):
    """Returns a spec of the implementation: tf.TensorSpec, or reprise's own."""
    if NAME == "reverb":
        import tensorflow as tf

        return tf.TensorSpec(shape, tf.string if dtype == "string" else tf.as_dtype(dtype), name)
    return submodule("specs").TensorSpec(shape, "S" if dtype == "string" else dtype, name)


def map_nest(function, nest):
    """Returns the nest with `function` applied to its leaves."""
    if isinstance(nest, dict):
        return type(nest)((key, map_nest(function, value)) for key, value in nest.items())
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return type(nest)(*[map_nest(function, value) for value in nest])
    if isinstance(nest, (list, tuple)):
        return type(nest)(map_nest(function, value) for value in nest)
    return function(nest)


def specs(nest):
    """Converts a nest of Spec to specs of the implementation."""
    return map_nest(lambda s: tensor_spec(s.shape, s.dtype, s.name), nest)


def shape_of(spec):
    """Returns the shape of a spec as a tuple."""
    return tuple(None if size is None else int(size) for size in spec.shape)


def dtype_of(spec):
    """Returns NumPy's name of a spec's dtype; "string" for strings."""
    dtype = getattr(spec.dtype, "as_numpy_dtype", spec.dtype)
    if dtype is object or np.dtype(dtype).kind in "SOU":
        return "string"
    return np.dtype(dtype).name


SELECTORS = ["fifo", "lifo", "uniform", "min_heap", "max_heap", "prioritized"]


def table(name="t", *, sampler="fifo", remover="fifo", max_size=1000, limiter=("min_size", 1),
          max_times_sampled=0, signature=None):
    """Returns the description of a table, which can be sent to another process."""
    return dict(name=name, sampler=sampler, remover=remover, max_size=max_size, limiter=limiter,
                max_times_sampled=max_times_sampled, signature=signature)


def queue(name, size):
    return dict(queue=name, max_size=size)


def stack(name, size):
    return dict(stack=name, max_size=size)


def selector(description):
    """Returns a selector, from its name or from a pair of name and exponent."""
    if isinstance(description, tuple):
        return reverb.selectors.Prioritized(description[1])
    if description == "prioritized":
        return reverb.selectors.Prioritized(1.0)
    kinds = {"fifo": "Fifo", "lifo": "Lifo", "uniform": "Uniform", "min_heap": "MinHeap",
             "max_heap": "MaxHeap"}
    return getattr(reverb.selectors, kinds[description])()


def limiter(description):
    kind, *numbers = description
    kinds = {"min_size": "MinSize", "ratio": "SampleToInsertRatio", "queue": "Queue",
             "stack": "Stack", "plain": "RateLimiter"}
    return getattr(reverb.rate_limiters, kinds[kind])(*numbers)


def build(description):
    """Makes the table of a description."""
    d = description
    if "queue" in d:
        return reverb.Table.queue(d["queue"], d["max_size"])
    if "stack" in d:
        return reverb.Table.stack(d["stack"], d["max_size"])
    return reverb.Table(
        name=d["name"], sampler=selector(d["sampler"]), remover=selector(d["remover"]),
        max_size=d["max_size"], rate_limiter=limiter(d["limiter"]),
        max_times_sampled=d["max_times_sampled"],
        signature=None if d["signature"] is None else specs(d["signature"]))
