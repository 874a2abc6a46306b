# SPDX-License-Identifier: Apache-2.0
"""Floods of frames, each of which is allowed.

A connection has one budget for all frames that are cheap to send and cost the server work: a number
at once, and a number each second. Within the budget nothing happens. One frame more, and the
connection gets GOAWAY with the code ENHANCE_YOUR_CALM, is closed, and is counted once."""

import time

import pytest

import frames as f
import messages as m
from floods import ALL, FLOODS, MADE_RESETS, OVER, bomb, resets
from target import IS_SHORT, SANITIZER

BURST = 60
SMALL = {"abuse_burst": BURST, "abuse_per_second": 1}


def begin(target, name):
    """Opens a connection in the state that the flood needs."""
    peer = target.peer()
    if OVER in name:
        peer.windows = False
        assert peer.ask(m.INFO, b"").status == m.OK
    else:
        assert peer.open(m.INSERT) == 1
    peer.next_stream = 10001
    # The settings are acknowledged now, so that no later frame of the peer is an acknowledgement.
    assert peer.until(lambda: any(x.type == f.SETTINGS for x in peer.frames))
    return peer


def lives(peer):
    """Returns whether the server still serves this connection."""
    return peer.ask(m.INFO, b"").status == m.OK


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_is_ended_one_event_above_the_budget(attack, name):
    make, kind = FLOODS[name]
    target = attack(limits=SMALL)
    with begin(target, name) as peer:
        peer.send(make(BURST))
        assert lives(peer)
    assert target.limits_hit().get("abuse") is None, target.refused()
    target.begin()
    with begin(target, name) as peer:
        peer.send(make(BURST + 1))
        assert peer.gone()
        assert peer.goaway == f.ENHANCE_YOUR_CALM
        assert peer.goaway_text == (
            f"abuse budget used up, last by {kind}: it has {BURST} events and 1 more a second "
            "(limits abuse_burst, abuse_per_second)").encode()
    assert target.refused()["abuse"] == 1
    assert target.refused()[f"abuse:{kind}"] >= BURST


@pytest.mark.parametrize("name", MADE_RESETS)
def test_resets_that_the_server_is_made_to_send_count_too(attack, name):
    target = attack(limits=SMALL)
    with begin(target, name) as peer:
        peer.send(MADE_RESETS[name](BURST // 4))
        assert lives(peer)
    assert "abuse" not in target.refused()
    with begin(target, name) as peer:
        peer.send(MADE_RESETS[name](BURST + 1))
        assert peer.gone()
        assert peer.goaway == f.ENHANCE_YOUR_CALM
    assert target.refused()["abuse"] == 1


@pytest.mark.parametrize("name", ALL)
def test_a_flood_costs_little_under_default_limits(attack, name):
    """20,000 events at once, in a long run repeatedly, until a million frames were sent or half a
    second has passed: each connection is ended when its budget is used up, and nothing is left
    behind."""
    target = attack()
    octets = ALL[name](20000)
    offered, connections, cpu, start = 0, 0, target.cpu(), time.monotonic()
    while offered < (1 if IS_SHORT else 1000000) and time.monotonic() - start < 0.5:
        with begin(target, name) as peer:
            peer.flood(octets)
            assert peer.gone()
            assert peer.goaway == f.ENHANCE_YOUR_CALM
        offered += 20000
        connections += 1
    assert target.limits_hit()["abuse"] == connections
    cost = (target.cpu() - cpu) / connections
    assert SANITIZER or cost < 0.1, f"{cost} s of processor time a connection"


@pytest.mark.parametrize("name", ALL)
def test_a_flood_from_a_peer_that_does_not_read_is_ended(attack, name):
    """The receive buffer of the peer has the smallest size, and is full of samples."""
    target = attack()
    target.may_change = True
    with target.peer(receive_bytes=4096, windows=False,
                     pairs=[(f.INITIAL_WINDOW, (1 << 31) - 1)]) as peer:
        stream = peer.open(m.INSERT)
        peer.write(stream, m.one(1, row_bytes=60000))
        assert m.confirmed(peer.reply(stream)) == [1]
        peer.send(f.window(0, (1 << 31) - 65536))
        shut = peer.open(m.SAMPLE)
        peer.write(shut, m.sample("a", 100000))
        peer.next_stream = 10001
        time.sleep(0.05)
        taken = peer.flood(ALL[name](20000), 2)
        queued = target.metrics()["queued_bytes"]
        assert queued < 16 << 20, f"{queued} bytes wait after {taken}"
        assert peer.gone()
    # Calls that are reset stay open until the reset is sent, so there may be too many of them.
    hit = target.limits_hit()
    assert hit.get("abuse", 0) + hit.get("protocol", 0) == 1, hit
    with target.peer() as peer:
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK


CALLS = 4  # the limit `streams` of the next tests


def fill(peer):
    """Opens as many calls as the limit allows. One more, on stream 9, is refused."""
    assert peer.until(lambda: any(x.type == f.SETTINGS for x in peer.frames))
    peer.send(b"".join(f.headers(s, f.request_block(m.INSERT)) for s in range(1, 10, 2)))


def test_data_in_flight_when_its_call_ended_is_not_charged(attack):
    """A window of DATA may be in flight to a call that the server refuses or ends early."""
    target = attack(limits={**SMALL, "streams": CALLS})
    part, parts = b"\0" * 16384, 200
    with target.peer() as peer:
        fill(peer)
        peer.send(f.data(9, part) * parts + f.data(9, b"", end=True))
        assert peer.until(lambda: peer.calls[9].reset == f.REFUSED_STREAM)
        peer.send(f.rst(1))
        peer.next_stream = 11
        assert lives(peer)
        peer.send(f.headers(101, f.request_block("/no/such/method"))  # ends at once
                  + f.data(101, part) * parts + f.data(101, b"", end=True))
        assert peer.until(lambda: peer.calls[101].over)
        peer.next_stream = 103
        assert lives(peer)
    assert target.refused()["streams"] == 1
    assert "abuse:late_frame" not in target.refused(), target.refused()


def test_data_after_a_reset_is_charged_beyond_its_window(attack):
    target = attack(limits={**SMALL, "streams": CALLS})
    with target.peer() as peer:
        fill(peer)
        peer.send(f.data(9, b"x" * 16384) * (256 + BURST + 1))
        assert peer.gone()
        assert peer.goaway == f.ENHANCE_YOUR_CALM
    assert target.refused()["abuse:late_frame"] >= BURST - 2


def test_the_abuse_budget_refills(attack):
    target = attack(limits={"abuse_burst": 20, "abuse_per_second": 100})
    with target.peer() as peer:
        for _ in range(6):
            peer.send(f.ping() * 20)
            time.sleep(0.25)
        assert lives(peer)
    assert "abuse" not in target.refused()


def test_pings_caused_by_data_are_not_charged(attack):
    """gRPC measures the speed of a connection with pings, one for a certain amount of data."""
    target = attack(limits=SMALL)
    target.may_change = True
    with target.peer() as peer:
        for _ in range(2 * BURST):
            assert lives(peer)
            peer.send(f.ping() + f.window(0, 1))
        assert lives(peer)
    assert not target.refused()


def test_cancelling_a_sampler_after_its_samples_is_not_charged(attack):
    """Samplers read their samples and cancel. The call had a response, so this is not abuse."""
    target = attack(limits=SMALL)
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        peer.write(stream, m.one(1))
        peer.reply(stream)
        for _ in range(2 * BURST):
            stream = peer.open(m.SAMPLE)
            peer.write(stream, m.sample())
            assert m.samples(peer.reply(stream)) == 1
            peer.send(f.rst(stream))
        assert lives(peer)
    assert not target.limits_hit()


def test_resets_after_a_deadline_are_not_charged(attack):
    """A client resets its call at its deadline. A busy server reads the reset together with the
    call, and cannot tell how long before that the call was sent: at most since it last read from
    the connection."""
    target = attack(limits=SMALL)
    with target.peer() as peer:
        peer.send(resets(2 * BURST, m.SAMPLE, grpc_timeout="3m"))
        assert peer.echo()
        peer.next_stream = 10001
        for _ in range(4):  # the time passes, and nothing else is sent
            time.sleep(0.06)
            peer.send(b"".join(f.headers(s, f.request_block(m.SAMPLE, grpc_timeout="50m"))
                               + f.rst(s) for s in (peer.stream() for _ in range(BURST // 2))))
            assert peer.echo()  # the server has read this before the next pause begins
        assert lives(peer)
    assert "abuse:client_reset" not in target.refused(), target.refused()
    assert not target.limits_hit()


def test_resets_before_a_deadline_are_charged(attack):
    """Even if the time since the last read was almost as long."""
    target = attack(limits=SMALL)
    with target.peer() as peer:
        assert peer.echo()
        time.sleep(0.05)
        peer.send(resets(BURST + 1, m.SAMPLE, grpc_timeout="30S"))
        assert peer.gone()
        assert peer.goaway == f.ENHANCE_YOUR_CALM
    assert target.refused()["abuse:client_reset"] >= BURST


@pytest.mark.parametrize("timeout", ["0n", "1n", "1m"])
def test_rapid_resets_with_a_tiny_deadline_are_ended(attack, timeout):
    """In a turn of the event loop as many of them are free as calls may be open: so many calls the
    server could have ended itself. The bytes are read in a few turns."""
    target = attack(limits={**SMALL, "streams": CALLS})
    with target.peer() as peer:
        peer.send(resets(5 * BURST, m.SAMPLE, grpc_timeout=timeout))
        assert peer.gone()
        assert peer.goaway == f.ENHANCE_YOUR_CALM
    assert target.refused()["abuse"] == 1
    assert target.refused()["abuse:client_reset"] >= BURST


def many_fields(count, value="v"):
    return [(f"x-{i}", value) for i in range(count)]


def listed(pairs):
    """Returns the size of headers as HTTP/2 counts it."""
    return sum(len(k) + len(v) + 32 for k, v in pairs)


def test_header_fields_have_a_limit(attack):
    target = attack(limits={"header_fields": 20})
    base = len(f.request_fields(m.INFO))
    with target.peer() as peer:
        assert peer.ask(m.INFO, b"", more=many_fields(20 - base)).status == m.OK
        assert not target.refused()
        call = peer.ask(m.INFO, b"", more=many_fields(21 - base))
        assert call.status == m.EXHAUSTED
        assert target.limits_hit() == {"header_fields": 1}
        assert lives(peer)


def test_header_bytes_have_a_limit(attack):
    target = attack(limits={"header_bytes": 2000})
    base = listed(f.request_fields(m.INFO)) + listed([("x", "")])
    with target.peer() as peer:
        assert peer.ask(m.INFO, b"", more=[("x", "v" * (2000 - base))]).status == m.OK
        assert not target.refused()
        call = peer.ask(m.INFO, b"", more=[("x", "v" * (2001 - base))])
        assert call.status == m.EXHAUSTED
        assert target.limits_hit() == {"header_bytes": 1}
        assert lives(peer)


@pytest.mark.parametrize("more", [
    [("x", "v" * 17000)], [("x" * 17000, "v")], many_fields(65), many_fields(1000),
    [("x", "v")] * 2000], ids=["value", "name", "65", "1000", "same"])
def test_headers_over_the_default_limits_are_refused(attack, more):
    target = attack()
    with target.peer() as peer:
        assert peer.echo()  # after this, frames may have the size in our settings
        call = peer.ask(m.INFO, b"", more=more)
        assert call.status == m.EXHAUSTED
        assert lives(peer)
    assert sum(target.limits_hit().values()) == 1, target.refused()


@pytest.mark.parametrize("long", ["name", "value"])
def test_header_decompression_is_charged(attack, long):
    """A block of 12,000 bytes that expands to 47 MB of names or values: a budget of 5,000 events is
    used up before its end."""
    target = attack(limits={"abuse_burst": 5000, "abuse_per_second": 1})
    with target.peer() as peer:
        assert peer.echo()
        peer.send(f.headers(1, bomb(12000, long=long)))
        assert peer.gone()
        assert peer.goaway == f.ENHANCE_YOUR_CALM
    assert target.refused()["abuse"] == 1


@pytest.mark.parametrize("references", [10, 10000, 1000000])
def test_header_bombs_are_not_decompressed(attack, references):
    target = attack()
    with target.peer() as peer:
        assert peer.echo()
        cpu = target.cpu()
        octets = bomb(references)
        parts = [octets[i:i + 1000000] for i in range(0, len(octets), 1000000)]
        out = f.headers(1, parts[0], more=len(parts) > 1)
        for i, part in enumerate(parts[1:], 2):
            out += f.continuation(1, part, more=i < len(parts))
        peer.flood(out)
        peer.until(lambda: peer.calls[1].over or peer.closed)
        assert peer.calls[1].status == m.EXHAUSTED or peer.goaway == f.ENHANCE_YOUR_CALM
        assert SANITIZER or target.cpu() - cpu < 0.1
    assert sum(target.limits_hit().values()) == 1, target.refused()


@pytest.mark.parametrize("size", [0, 1, 16000])
def test_headers_without_end_are_ended(attack, size):
    """CONTINUATION frames without end, empty or not."""
    target = attack()
    part = f.literal("x", "v" * (size - 4)) if size > 4 else b"\x82"[:size]
    with target.peer() as peer:
        peer.send(f.headers(1, f.request_block(m.INFO), more=True))
        peer.flood(f.continuation(1, part, more=True) * 2000)
        assert peer.gone()
        assert peer.goaway is not None
    assert sum(target.limits_hit().values()) == 1, target.refused()


def test_a_few_continuations_are_headers_like_any_other(attack):
    target = attack()
    block = f.request_block(m.INFO)
    with target.peer() as peer:
        cut = [block[i * 16:(i + 1) * 16] for i in range(7)] + [block[112:]]
        out = f.headers(1, cut[0], more=True)
        for i, part in enumerate(cut[1:], 1):
            out += f.continuation(1, part, more=i < len(cut) - 1)
        peer.send(out + f.data(1, f.message(b""), end=True))
        assert peer.result(1).status == m.OK


def test_calls_open_at_once_have_a_limit(attack):
    target = attack(limits={"streams": 4})
    with target.peer() as peer:
        for _ in range(3):
            peer.open(m.INSERT)
        assert lives(peer)
        assert not target.limits_hit()
        peer.open(m.INSERT)
        assert peer.echo()
        stream = peer.open(m.INSERT)
        assert peer.until(lambda: peer.calls[stream].over or peer.closed)
        assert peer.calls[stream].reset == f.REFUSED_STREAM
        peer.send(f.rst(1))
        assert peer.echo() and peer.goaway is None  # the others continue; a new call is accepted
        stream = peer.open(m.INSERT)
        assert peer.echo() and not peer.calls[stream].over
    assert sum(target.limits_hit().values()) == 1, target.refused()


def test_as_many_calls_as_allowed_are_served(attack):
    target = attack()
    with target.peer() as peer:
        streams = [peer.open(m.SAMPLE) for _ in range(1024)]
        peer.send(b"".join(f.data(s, f.message(m.sample("empty"))) for s in streams))
        assert peer.echo()
        assert target.metrics()["streams"] >= 1024
        peer.send(b"".join(f.rst(s) for s in streams[:500]))
        assert peer.echo()
