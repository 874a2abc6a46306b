# SPDX-License-Identifier: Apache-2.0
"""Servers for the tests over each transport, and a limit on the time of every test."""

import faulthandler
import gc
import os
import pickle
import subprocess
import sys
import tempfile
import threading

import pytest

from reverb_suite import implementation
from reverb_suite.implementation import NAME, TRANSPORTS, build, reverb

TEST_S = 20.0

# dm-reverb's datasets lock a mutex that they never initialise, and hang unless its memory is zero.
# These variables make malloc() return zeroed memory; they must be set before the process starts.
ZEROED = {"MALLOC_PERTURB_": "255", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
if NAME == "reverb" and any(os.environ.get(n) != v for n, v in ZEROED.items()):
    pytest.exit("run this with " + " ".join(f"{n}={v}" for n, v in ZEROED.items()), 2)


def pytest_configure(config):
    config.addinivalue_line("markers", "seconds(n): the test may take this long")
    config.addinivalue_line("markers", "reverb_differs(reason): dm-reverb does not do this")


def pytest_collection_modifyitems(items):
    """Tests of known bugs of Reverb must fail with dm-reverb, so that we notice when it is
    fixed."""
    for item in items:
        mark = item.get_closest_marker("reverb_differs")
        if mark and NAME == "reverb":
            strict = mark.kwargs.get("strict", True)
            item.add_marker(pytest.mark.xfail(reason=mark.args[0], strict=strict))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Runs the test in a thread, so that a call that never returns fails only its test, not the
    whole run. Such a call is in a library that signals do not interrupt. If the call also keeps the
    GIL, everything stops, and the process ends after three times the limit."""
    mark = pyfuncitem.get_closest_marker("seconds")
    seconds = mark.args[0] if mark else TEST_S
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    raised = []

    def call():
        try:
            pyfuncitem.obj(**arguments)
        except BaseException as error:  # raised again below
            raised.append(error)

    thread = threading.Thread(target=call, daemon=True)
    faulthandler.dump_traceback_later(3 * seconds, exit=True, file=sys.__stderr__)
    thread.start()
    thread.join(seconds)
    faulthandler.cancel_dump_traceback_later()
    if thread.is_alive():
        frame = sys._current_frames().get(thread.ident)
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "nowhere"
        pytest.fail(f"still waiting after {seconds:.0f} s, at {where}", pytrace=False)
    if raised:
        raise raised[0]
    return True


def pytest_unconfigure(config):
    """Exits at once with dm-reverb, since stopping its threads may hang."""
    if NAME == "reverb" and hasattr(config, "suite_status"):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(config.suite_status)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    session.config.suite_status = int(exitstatus)


class Host:
    """The process with the servers of the transport "child"."""

    def __init__(self, folder):
        command = [sys.executable, os.path.join(os.path.dirname(__file__), "host.py"), folder]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)

    def ask(self, *words):
        pickle.dump(words, self.process.stdin)
        self.process.stdin.flush()
        answer = pickle.load(self.process.stdout)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(120)


@pytest.fixture(scope="session", autouse=True)
def scratch(tmp_path_factory):
    """The folder for temporary folders: dm-reverb makes one for each server and does not remove it.
    """
    tempfile.tempdir = str(tmp_path_factory.mktemp("scratch"))
    return tempfile.tempdir


@pytest.fixture(scope="session", autouse=True)
def host(scratch):
    """Launched at once, so that it imports its modules while the first tests run."""
    host = Host(scratch)
    yield host
    host.close()


class Service:
    """A running server: its address, and a client of it."""

    def __init__(self, transport, tables, host, folder):
        self.transport, self.host = transport, host
        self.server = None
        if transport == "child":
            self.port = host.ask("start", list(tables), folder)
        else:
            checkpointer = folder and reverb.checkpointers.DefaultCheckpointer(folder)
            self.tables = [build(t) for t in tables]
            self.server = reverb.Server(self.tables, checkpointer=checkpointer)
            self.port = self.server.port
        self.address = f"localhost:{self.port}"
        self.client = self.new_client()
        self.running = True

    def new_client(self):
        if self.transport == "tcp":
            return reverb.Client(self.address, transport="tcp")
        return reverb.Client(self.address)

    def stop(self):
        if not self.running:
            return
        self.running = False
        if self.server:
            self.server.stop()
            self.server = None
        else:
            self.host.ask("stop", self.port)


@pytest.fixture(params=TRANSPORTS)
def transport(request):
    return request.param


@pytest.fixture
def start(transport, host):
    """Starts servers with the described tables. They are stopped after the test."""
    services = []

    def start(*tables, folder=None):
        services.append(Service(transport, tables, host, folder))
        return services[-1]

    yield start
    for service in services:
        service.stop()


@pytest.fixture
def serve(start):
    """Returns the client of a new server with these tables."""
    return lambda *tables: start(*(tables or (implementation.table(),))).client


class Call:
    """A call in a new thread, which may have to wait."""

    def __init__(self, function, *args, **kwargs):
        self.value = self.error = None

        def run():
            try:
                self.value = function(*args, **kwargs)
            except BaseException as error:  # raised by result()
                self.error = error

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def waits(self, seconds=0.1):
        """Returns whether the call has not ended after that time."""
        self.thread.join(seconds)
        return self.thread.is_alive()

    def result(self, seconds=10.0):
        self.thread.join(seconds)
        assert not self.thread.is_alive(), f"no answer within {seconds} s"
        if self.error is not None:
            raise self.error
        return self.value


@pytest.fixture
def background():
    return Call


@pytest.fixture(autouse=True)
def tidy():
    """Collects the writers of a failed test, so that they do not use the server of the next one."""
    yield
    if NAME == "reverb":
        gc.collect(0)
