# SPDX-License-Identifier: Apache-2.0
"""Compares TransferQueue with its own storage and with reprise.frameworks.transfer_queue.

One client puts batches of samples, gets them and clears them, through TransferQueue's controller. A
sample has tokens (int64) and log-probabilities (float32), of a length between 3/4 and 5/4 of the one that
is named: `short` has 256 tokens, `long` 8,192. Each side has one process that stores. The two take turns;
each turn starts TransferQueue anew. The best batch of each side counts, in samples per second.
"""

import argparse
import logging
import os
import pathlib
import subprocess
import sys
import time
import warnings

import environment

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench-python"
LENGTHS = {"": 256, ".long": 8_192}
HOOK = "reprise.frameworks.transfer_queue.register"


def samples(count, length):
    import torch
    from tensordict import TensorDict

    lengths = torch.randint(length * 3 // 4, length * 5 // 4, (count,)).tolist()
    nested = torch.nested.as_nested_tensor
    return TensorDict({
        "tokens": nested([torch.randint(100_000, (n,)) for n in lengths], layout=torch.jagged),
        "logprob": nested([torch.rand(n) for n in lengths], layout=torch.jagged)}, batch_size=count)


def turn(backend, count, batches, best):
    """Measures one side. Updates the best rates, by operation and length."""
    import transfer_queue as tq
    from omegaconf import OmegaConf

    tq.init(OmegaConf.create({"backend": backend}))
    client, name = tq.get_client(), backend["storage_backend"]
    for suffix, length in LENGTHS.items():
        data = samples(count, length)
        for batch in range(batches):
            begin = time.perf_counter()
            meta = client.put(data=data, partition_id=f"batch {batch}")
            middle = time.perf_counter()
            found = client.get_data(meta)
            end = time.perf_counter()
            if batch == 0:
                same = zip(data["tokens"].unbind(), found["tokens"].unbind())
                assert all(a.equal(b) for a, b in same)
            client.clear_samples(meta)
            for what, seconds in (("put", middle - begin), ("get", end - middle)):
                key = name, what + suffix
                best[key] = max(best.get(key, 0), count / seconds)
    tq.close()


def measure(options):
    import ray

    import reprise
    import reprise.frameworks.transfer_queue  # noqa: F401: registers the storage

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level="error",
             runtime_env={"worker_process_setup_hook": HOOK})
    best = {}
    for _ in range(options.turns):
        turn({"storage_backend": "SimpleStorage", "SimpleStorage": {"num_data_storage_units": 1}},
             options.samples, options.batches, best)
        with reprise.Server([reprise.Table.queue("unused", 1)], where="child") as server:
            turn({"storage_backend": "Reprise", "Reprise": {"servers": [f"localhost:{server.port}"]}},
                 options.samples, options.batches, best)
    for what in sorted({what for _, what in best}, key=lambda what: (what.count("."), what)):
        mine, theirs = best["Reprise", what], best["SimpleStorage", what]
        print(f"ratio transfer_queue.{what} {mine / theirs:.2f} (ours {mine:.0f} vs SimpleStorage "
              f"{theirs:.0f} samples/s)", flush=True)
    print(f"#   {options.samples} samples a batch; load {os.getloadavg()[0]:.0f}", flush=True)
    ray.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--samples", type=int, default=256, help="of a batch")
    parser.add_argument("--batches", type=int, help="of a turn; 20, or 5 with --quick")
    parser.add_argument("--turns", type=int, help="of each side; 3, or 1 with --quick")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.batches = options.batches or (5 if options.quick else 20)
    options.turns = options.turns or (1 if options.quick else 3)
    if options.inside:
        measure(options)
        return
    python = environment.interpreter("buffers", __file__)
    site = environment.build_package(python, BUILD)
    variables = {"PYTHONPATH": str(site), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1",
                 "PYTHONWARNINGS": "ignore", "RAY_DEDUP_LOGS": "0", "TQ_LOGGING_LEVEL": "ERROR"}
    sys.exit(subprocess.call([python, __file__, "--inside", *sys.argv[1:]],
                             env={**os.environ, **variables}))


if __name__ == "__main__":
    main()
