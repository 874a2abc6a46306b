# SPDX-License-Identifier: Apache-2.0
"""Stacks of four frames that share their frames: each is stored once, although it is in four stacks.

Frames that resemble each other also compress well, because a chunk holds consecutive ones. The program prints how much
memory the table needs, and how much copies of all stacks would need.
"""

import numpy as np

import reprise

FRAMES, SIZE, STACK = 400, 84, 4
server = reprise.Server([reprise.Table(
    "replay", reprise.selectors.Uniform(), reprise.selectors.Fifo(), max_size=10_000,
    rate_limiter=reprise.rate_limiters.MinSize(1),
    signature={"stack": reprise.TensorSpec((STACK, SIZE, SIZE), np.uint8)})])
client = server.localhost_client()
background = np.random.default_rng(1).integers(0, 255, (SIZE, SIZE), dtype=np.uint8)

with client.trajectory_writer(num_keep_alive_refs=40) as writer:
    for step in range(FRAMES):
        frame = background.copy()
        row, column = (step * 3) % (SIZE - 8), (step * 5) % (SIZE - 8)
        frame[row:row + 8, column:column + 8] = 255  # a sprite that moves
        writer.append({"frame": frame})
        if step >= STACK - 1:
            writer.create_item("replay", 1.0, {"stack": writer.history["frame"][-STACK:]})

for batch in client.sampler("replay", batch_size=64):
    assert batch["stack"].shape == (64, STACK, SIZE, SIZE)
    break
taken = client.details()["replay"]["bytes"]
copies = (FRAMES - STACK + 1) * STACK * SIZE * SIZE
print(f"{copies / 1e6:.1f} MB as copies, {taken / 1e6:.2f} MB in the table: {copies / taken:.0f} times less")
assert taken * 4 < copies
server.stop()
