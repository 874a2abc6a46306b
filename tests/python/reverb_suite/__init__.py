# SPDX-License-Identifier: Apache-2.0
"""What Reverb does, as tests that run unchanged on dm-reverb itself and on reprise.

    REPLAY_IMPLEMENTATION=reprise python -m pytest tests/python/reverb_suite
    REPLAY_IMPLEMENTATION=reverb python -m pytest tests/python/reverb_suite

The first is what happens unless told. dm-reverb needs an environment of its own, which
tools/peers.py makes, and memory that comes zeroed (see conftest.py). What holds for dm-reverb as
well is proof that we test what Reverb does and not what we think it does.
"""
