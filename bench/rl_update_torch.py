# SPDX-License-Identifier: Apache-2.0
"""DQN updates of libreprise-rl against PyTorch's, on one thread each, in turns.

    pip install torch==2.7.1 numpy
    python bench/rl_update_torch.py [--quick] [build/release/bench/bench_rl_update]

Prints `ratio <name> <value> (ours <x> vs torch <y>)`. The best of PyTorch's two kinds of Adam, plain
and fused, counts. Without PyTorch, prints our figures, then runs again in the environment that
tools/peers.py makes, if it can be made."""

import pathlib
import subprocess
import sys
import time

import environment

try:
    import torch
    from torch import nn
except ImportError:
    torch = None

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "build" / "release" / "bench" / "bench_rl_update"
# Inputs, width, actions, rows; as in rl_update.c.
FIGURES = {"rl.update.64": (4, 64, 2, 64), "rl.update.128": (8, 128, 4, 128),
           "rl.update.256": (8, 256, 4, 512), "rl.act.one": (4, 64, 2, 1)}


def network(inputs, width, actions):
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, actions))


def updates(inputs, width, actions, rows, fused):
    """Returns a function that does one update of double DQN."""
    online, target = network(inputs, width, actions), network(inputs, width, actions)
    adam = torch.optim.Adam(online.parameters(), lr=1e-4, fused=fused)
    now, after, reward = torch.randn(rows, inputs), torch.randn(rows, inputs), torch.randn(rows)
    taken, weights = torch.arange(rows)[:, None] % actions, torch.rand(rows)

    def update():
        with torch.no_grad():
            best = online(after).argmax(1, keepdim=True)
            wanted = reward + 0.99 * target(after).gather(1, best)[:, 0]
        q = online(now).gather(1, taken)[:, 0]
        loss = (nn.functional.huber_loss(q, wanted, reduction="none") * weights).mean()
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 10)
        adam.step()

    return update


def acts(inputs, width, actions, rows):
    net, now = network(inputs, width, actions), torch.randn(rows, inputs)

    def act():
        with torch.inference_mode():
            return net(now).argmax().item()

    return act


def best_of(call, seconds):
    """Returns the seconds of one call: the best of some rounds of 20 ms."""
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < 0.02:
        call()
        count += 1
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - started) / count)
    return best


def main(arguments):
    quick = "--quick" in arguments
    program = ([a for a in arguments if a not in ("--quick", "--inside")] or [PROGRAM])[0]
    if torch is None:
        if "--inside" in arguments:
            sys.exit("the environment has no PyTorch")
        subprocess.run([program], check=True)
        environment.run_inside("buffers", __file__, arguments, None)
    torch.set_num_threads(1)
    print(f"# DQN updates on one thread, PyTorch {torch.__version__}")
    for name, shape in FIGURES.items():
        calls = [acts(*shape)] if name == "rl.act.one" else [updates(*shape, f) for f in (False, True)]
        ours = peer = float("inf")
        for _ in range(1 if quick else 3):
            ours = min(ours, float(subprocess.run([program, name], check=True, capture_output=True,
                                                  text=True).stdout))
            peer = min([peer, *(best_of(call, 0.4) for call in calls)])
        print(f"ratio {name} {peer / ours:.2f} (ours {ours * 1e6:.3g} us vs torch {peer * 1e6:.3g} us)",
              flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
