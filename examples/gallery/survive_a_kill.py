# SPDX-License-Identifier: Apache-2.0
"""A server whose data survives kill -9: a journal keeps every change that was acknowledged.

The child process is killed without a warning. Another one loads the same directory, and has every item, with its priority.
"""

import tempfile

import numpy as np

import reprise


def table() -> reprise.Table:
    return reprise.Table("replay", reprise.selectors.Prioritized(0.6), reprise.selectors.Fifo(), max_size=1000,
                         rate_limiter=reprise.rate_limiters.MinSize(1))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        storage = reprise.Storage(folder, durability="interval")
        server = reprise.Server([table()], where="child", storage=storage)
        client = server.localhost_client()
        for i in range(100):
            client.insert([np.float32(i)], {"replay": 1.0})
        keys = [sample.info.key for sample in client.sample("replay", 1, emit_timesteps=False)]
        client.mutate_priorities("replay", updates={keys[0]: 1e6})
        server.kill()

        with reprise.Server([table()], where="child", storage=storage) as again:
            client = again.localhost_client()
            print(f"after the kill: {client.server_info()['replay'].current_size} items")
            assert client.server_info()["replay"].current_size == 100
            samples = client.sample("replay", 100, emit_timesteps=False)  # nearly all draw the item of priority 1e6
            assert 1e6 in [sample.info.priority for sample in samples if sample.info.key == keys[0]]
