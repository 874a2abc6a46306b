# SPDX-License-Identifier: Apache-2.0
"""dm-reverb's own server as a process: dm_server.py PORT TABLES.json

Prints READY when it serves. "restart" on standard input makes it stop and start again, empty, on
the same port. SIGTERM, or the end of the input, ends it.
"""

import json
import os
import pathlib
import signal
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import reverb  # noqa: E402

import specs  # noqa: E402


def selector(description):
    if isinstance(description, list):
        return reverb.selectors.Prioritized(description[1])
    return {
        "fifo": reverb.selectors.Fifo,
        "lifo": reverb.selectors.Lifo,
        "uniform": reverb.selectors.Uniform,
        "min_heap": reverb.selectors.MinHeap,
        "max_heap": reverb.selectors.MaxHeap,
    }[description]()


def limiter(description):
    kind, *numbers = description
    return {
        "min_size": reverb.rate_limiters.MinSize,
        "ratio": reverb.rate_limiters.SampleToInsertRatio,
        "queue": reverb.rate_limiters.Queue,
        "stack": reverb.rate_limiters.Stack,
    }[kind](*numbers)


def tables(descriptions):
    return [
        reverb.Table(
            name=d["name"], sampler=selector(d["sampler"]), remover=selector(d["remover"]),
            max_size=d["max_size"], rate_limiter=limiter(d["limiter"]),
            max_times_sampled=d["max_times_sampled"],
            signature=specs.tensor_specs(d["signature"]) if d["signature"] else None)
        for d in descriptions
    ]


def main():
    port, path = int(sys.argv[1]), sys.argv[2]
    descriptions = json.loads(pathlib.Path(path).read_text())
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        server = reverb.Server(tables(descriptions), port=port)
        print("READY", flush=True)
        line = sys.stdin.readline()
        server.stop()
        del server
        if line.strip() != "restart":
            return


if __name__ == "__main__":
    main()
