# SPDX-License-Identifier: Apache-2.0
"""Tests of Reverb's behaviour that run unchanged with dm-reverb itself and with reprise.

    REPLAY_IMPLEMENTATION=reprise python -m pytest tests/python/reverb_suite
    REPLAY_IMPLEMENTATION=reverb python -m pytest tests/python/reverb_suite

The first is the default. dm-reverb needs its own environment, which tools/peers.py makes, and
zeroed memory (see conftest.py). A test that also passes with dm-reverb tests what Reverb really
does.
"""
