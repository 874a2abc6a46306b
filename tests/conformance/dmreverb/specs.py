# SPDX-License-Identifier: Apache-2.0
"""Makes TensorFlow signatures from their descriptions."""

import tensorflow as tf


def leaf(text):
    """ "float32[?,2]": a float32 with two dimensions, of which the first is not fixed."""
    dtype, _, shape = text.rstrip("]").partition("[")
    sizes = [None if size == "?" else int(size) for size in shape.split(",") if size]
    return tf.TensorSpec(sizes, tf.as_dtype(dtype))


def tensor_specs(node, path=()):
    """Makes a nest of TensorSpec from nested dicts and lists of leaves."""
    if isinstance(node, str):
        spec = leaf(node)
        return tf.TensorSpec(spec.shape, spec.dtype, name="/".join(path) or None)
    if isinstance(node, list):
        return [tensor_specs(n, (*path, str(i))) for i, n in enumerate(node)]
    if set(node) == {"tuple"}:
        return tuple(tensor_specs(n, (*path, str(i))) for i, n in enumerate(node["tuple"]))
    return {key: tensor_specs(n, (*path, key)) for key, n in node.items()}
