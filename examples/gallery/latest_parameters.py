# SPDX-License-Identifier: Apache-2.0
"""The parameters of a learner, for any number of actors: a table of one item.

The learner inserts parameters; the table keeps the latest. Actors sample them, and wait until there are some. An actor that
joins late, or restarts, gets them like all others.
"""

import threading

import numpy as np

import reprise

VERSIONS = 50
server = reprise.Server([reprise.Table(
    "parameters", reprise.selectors.Fifo(), reprise.selectors.Fifo(), max_size=1,
    rate_limiter=reprise.rate_limiters.MinSize(1))])
seen: list[int] = []


def act() -> None:
    client = server.localhost_client()
    version = -1
    while version < VERSIONS - 1:  # an actor fetches parameters now and then
        [sample] = client.sample("parameters", emit_timesteps=False)
        weights, version = sample.data[0], sample.data[1].item()
        assert weights.shape == (1, 256, 256)
        seen.append(version)


actors = [threading.Thread(target=act) for _ in range(3)]
for actor in actors:
    actor.start()
learner = server.localhost_client()
for version in range(VERSIONS):
    learner.insert([np.full((256, 256), version, np.float32), version], {"parameters": 1.0})
for actor in actors:
    actor.join()
print(f"3 actors fetched parameters {len(seen)} times, {len(set(seen))} versions of {VERSIONS}")
assert seen.count(VERSIONS - 1) >= 3
server.stop()
