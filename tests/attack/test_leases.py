# SPDX-License-Identifier: Apache-2.0
"""Attacks by clients of the same host on the memory that a server shares with them."""

import array
import errno
import fcntl
import os
import socket
import stat
import struct
import tempfile

import pytest

import messages as m

SHARED = "/reprise.v1.Replay/SampleShared"
MIB = 1 << 20
F_GET_SEALS = 1034
SHRINK, GROW, FUTURE_WRITE, SEALED = 2, 4, 16, 1


@pytest.fixture(scope="module")
def path():
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, "socket")


def lease(path):
    """Returns a connection with a lease, and the id of the lease."""
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(20)
    link.connect(path)
    link.sendall(b"RSM1\0\0")
    answer = link.recv(32, socket.MSG_WAITALL)
    assert answer[:8] == b"RSM1\2\0\0\0"
    return link, answer[16:]


def parts(link):
    """Returns the parts of the memory that have arrived: (bytes, descriptor)."""
    got = []
    link.setblocking(False)
    while True:
        try:
            data, control, _, _ = link.recvmsg(8, socket.CMSG_LEN(4))
        except BlockingIOError:
            return got
        fds = array.array("i")
        fds.frombytes(control[0][2])
        got.append((struct.unpack("<Q", data)[0], fds[0]))


def insert_large(target, peer):
    """Inserts an item of 200 kB. If it needs a new part of the shared memory, the server keeps a
    descriptor more."""
    stream = peer.open(m.INSERT)
    before = target.descriptors()
    peer.write(stream, m.one(1, row_bytes=200000))
    assert m.confirmed(peer.reply(stream)) == [1]
    target.descriptors_before += target.descriptors() - before


def refused(call, *arguments):
    with pytest.raises(OSError) as caught:
        call(*arguments)
    assert caught.value.errno in (errno.EPERM, errno.EACCES), caught.value


def test_shared_memory_cannot_be_written_or_resized(attack, path):
    """A descriptor that is opened again for writing through /proc, by the same user, still cannot
    make the file longer or shorter, write to it, punch holes into it or unseal it."""
    target = attack(arguments=("--listen", f"unix:{path}"))
    link, name = lease(path)
    with target.peer() as peer:
        insert_large(target, peer)
        ask = m.sample("a", 3, 0, m.octets(15, name) + m.number(16, 1))
        assert peer.ask(SHARED, ask).status == m.OK
        got = parts(link)
        assert got, "nothing was shared"
        for size, fd in got:
            os.fchmod(fd, 0o777)  # as its owner may
            again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
            seals = fcntl.fcntl(again, F_GET_SEALS)
            assert seals == SHRINK | GROW | FUTURE_WRITE | SEALED
            refused(os.ftruncate, again, size + 1024 * MIB)
            refused(os.ftruncate, again, 0)
            refused(os.posix_fallocate, again, size, 1024 * MIB)
            refused(os.pwrite, again, b"x", 0)
            found = os.fstat(again)
            assert found.st_size == size and stat.S_ISREG(found.st_mode)
            os.close(again)
            os.close(fd)
        link.close()
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK


def test_a_client_that_reads_no_descriptors_gets_its_samples_inline(attack, path):
    """If a part cannot be sent without waiting, the client only loses the shared memory."""
    target = attack(arguments=("--listen", f"unix:{path}"))
    with target.peer() as peer:
        insert_large(target, peer)
        link, name = lease(path)
        link.shutdown(socket.SHUT_RD)  # now the server cannot send to it
        ask = m.sample("a", 3, 0, m.octets(15, name) + m.number(16, 1))
        assert peer.ask(SHARED, ask).status in (m.OK, m.PRECONDITION)
        link.close()
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK


def test_a_hold_counts_for_the_slices_that_it_keeps(attack, path):
    """An item of 100,000 slices takes 2.4 MB of memory in addition to its chunk of 200 kB."""
    path += ".small"  # this server has another limit
    target = attack(arguments=("--listen", f"unix:{path}"), limits={"shared_held_bytes": MIB})
    link, name = lease(path)
    with target.peer() as peer:
        insert_large(target, peer)
        ask = m.sample("a", 1, 0, m.octets(15, name) + m.number(16, 1))
        assert peer.ask(SHARED, ask).status == m.OK
        assert target.metrics()["shared_held_bytes"] >= 200000
        assert target.metrics()["shared_refused_items_total"] == 0
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK
        tensors = [m.tensor((1, n), m.snappy(b"x" * n)) for n in (200000, 1)]
        columns = [m.column([m.piece(2)]), m.column([m.piece(2, index=1)] * 100000)]
        item = m.insert([m.chunk(2, tensors)], [m.item(2, columns=columns)])
        assert peer.ask(m.INSERT, item).status == m.OK
        ask = m.sample("a", 1, 0, m.octets(15, name) + m.number(16, 2))
        assert peer.ask(SHARED, ask).status == m.OK
        assert target.metrics()["shared_refused_items_total"] == 1
        for _, fd in parts(link):
            os.close(fd)
        link.close()
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK


def test_descriptors_sent_to_the_server_are_not_kept(attack, path):
    """Target.finish() counts the server's descriptors."""
    target = attack(arguments=("--listen", f"unix:{path}"))
    link, _ = lease(path)
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(50)]
    socket.send_fds(link, [struct.pack("<Q", 1 << 63)], fds)  # half of a closing: legal so far
    greeting = socket.socket(socket.AF_UNIX)
    greeting.connect(path)
    socket.send_fds(greeting, [b"RSM1"], fds)
    http = socket.socket(socket.AF_UNIX)
    http.connect(path)
    socket.send_fds(http, [b"PRI * HTTP/2.0\r\n"], fds)
    assert target.metrics()
    for fd in fds:
        os.close(fd)
    for s in (link, greeting, http):
        s.close()
