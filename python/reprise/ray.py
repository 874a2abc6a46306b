# SPDX-License-Identifier: Apache-2.0
"""Runs a program of `reprise train` on a Ray cluster: replay, learner, evaluator and actors.

    import reprise

    program = reprise.ray.Program("cartpole", actors=8, options={"hidden": 64, "steps": 500_000})
    # or: program = reprise.ray.Program.read("program.yaml")
    with reprise.ray.launch(program) as run:
        print("look at", run.address)
        run.wait()

Each part is an actor of Ray that runs one process: `reprise serve` for a shard of the replay,
`reprise train ... --role` for the others. A process that dies is restarted where it was, after a time
that doubles from 0.1 s to 5 s. Ray starts a part again on another node if its node dies. If that moves
a shard of the replay, the other parts are restarted with its new address. The program ends when the
evaluator has found the task solved, or the learner has seen `steps` items.

The shards keep their data in `data`, a folder that all nodes see. Without it a shard that moves
begins empty, and a learner that is restarted then begins anew.

Ray is imported only here. The package `reprise` has to be installed on every node. docs/cluster.md
has the details.
"""

from __future__ import annotations

import collections
import ctypes
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional, Tuple, Union

import ray

from reprise.__main__ import command as _own_command

__all__ = ["Program", "Run", "launch"]

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_HEALTHY_S = 5.0  # a process that lived this long is restarted at once
_MOST_FAILURES = 10  # in a row
_MISUSE = 2  # exit status
_GRACE_S = 5.0  # between SIGTERM and SIGKILL
_LINES = 1000  # that a part keeps until they are fetched
_POLL_S = 0.25
_PR_SET_PDEATHSIG = 1
_ROLES = ("replay", "learner", "evaluator", "actor")
_NODES = ("replay", "learner", "actors", "evaluator", "settings")  # sections of a program's file
_EVALUATOR = {"episodes": "eval_episodes"}  # the name of the option, if it is not that of the key
_DEFAULT_CPUS = {"replay": 1.0, "learner": 1.0, "evaluator": 0.5, "actor": 0.5}

Log = Callable[[str, str], None]


@dataclasses.dataclass(frozen=True)
class Program:
    """What to run.

    Attributes:
      env: the environment, as in `reprise train --env`.
      actors, shards: how many actors, and servers of the replay.
      agent: `apex-dqn`, or another one whose parts can be started with `--role`.
      options: further options of `reprise train`, without dashes before their names; True and False
        are those of switches.
      resources: options of Ray's actors by role (replay, learner, evaluator, actor), for example
        `{"learner": {"num_gpus": 1}, "actor": {"num_cpus": 2}}`.
      data: a folder that all nodes see, for the shards and the policy; None: a scratch folder on each
        node.
      command: the program `reprise` on the nodes; None: that of the package.
    """

    env: str
    actors: int = 8
    shards: int = 1
    agent: str = "apex-dqn"
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    resources: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    data: Optional[str] = None
    command: Optional[str] = None

    def __post_init__(self) -> None:
        if self.actors < 1 or self.shards < 1:
            raise ValueError(f"actors and shards must be >= 1, got {self.actors} and {self.shards}")
        unknown = sorted(set(self.resources) - set(_ROLES))
        if unknown:
            raise ValueError(f"resources: there is no role {unknown[0]!r}, only {', '.join(_ROLES)}")

    @classmethod
    def read(cls, path: Union[str, os.PathLike[str]], **changes: Any) -> Program:
        """Reads a program from a file, as `reprise train --program` does (docs/program.yaml).

        `dir` of the file is `data`; addresses of the replay only say how many shards there are.

        Args:
          path: the file, on this host.
          changes: attributes that replace those of the file; `options` are added to its own.

        Raises:
          ValueError: the file is wrong; the text names the line.
        """
        command = changes.get("command") or _own_command()
        done = subprocess.run([command, "train", f"--program={os.fspath(path)}", "--print-program", "--json"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ValueError(done.stderr.strip())
        found = json.loads(done.stdout)
        nodes: Dict[str, Dict[str, Any]] = {name: found.pop(name, {}) for name in _NODES}
        replay = nodes["replay"]
        taken = {"env": found.pop("env"), "agent": found.pop("agent"), "data": found.pop("dir", None),
                 "actors": nodes["actors"]["count"],
                 "shards": len(replay.get("addresses", [])) or replay.get("shards", 1)}
        found.pop("image", None)  # of Kubernetes
        options = {**found, **nodes["learner"], **nodes["settings"],
                   **{_EVALUATOR.get(name, name): value for name, value in nodes["evaluator"].items()},
                   **changes.pop("options", {})}
        return cls(**{**taken, "options": options, **changes})

    def arguments(self) -> List[str]:
        """The arguments of `reprise` that learner, evaluator and actors share."""
        line = ["train", self.agent, f"--env={self.env}", f"--of={self.actors}"]
        for name, value in self.options.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            line.append(f"--{name.replace('_', '-')}={text}")
        return line


def _die_with_parent() -> None:
    """In a child process: it gets SIGTERM when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class _Process:
    """One process that is restarted when it dies, on a thread that lives as long as it does."""

    def __init__(self, name: str, line: Callable[[], List[str]], environment: Mapping[str, str],
                 see: Callable[[str], None]) -> None:
        self._name, self._line, self._see = name, line, see
        self._environment = {**os.environ, **environment}
        self._changed = threading.Condition()
        self._process: Optional[subprocess.Popen[str]] = None
        self._ending = self._again = False
        self.restarts = 0
        self.status: Optional[int] = None  # of the last process, if no other one follows
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run_once(self) -> int:
        process = subprocess.Popen(  # noqa: PLW1509: nothing else runs between fork and exec
            self._line(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", env=self._environment, preexec_fn=_die_with_parent)
        with self._changed:
            self._process = process
            if self._ending:
                process.terminate()
        assert process.stdout is not None
        for text in process.stdout:
            self._see(text.rstrip("\n"))
        status = process.wait()
        with self._changed:
            self._process = None
        return status

    def _run(self) -> None:
        pause, failures = _FIRST_PAUSE_S, 0
        while True:
            began = time.monotonic()
            try:
                status = self._run_once()
            except OSError as error:
                self._see(f"cannot be started: {error}")
                status = _MISUSE
            is_healthy = time.monotonic() - began > _HEALTHY_S
            failures = 0 if is_healthy or status < 0 else failures + 1
            with self._changed:
                if self._again and not self._ending:  # with other arguments
                    self._again, failures = False, 0
                    continue
                if self._ending or status in (0, _MISUSE) or failures >= _MOST_FAILURES:
                    self.status = status
                    return
                self.restarts += 1
                pause = _FIRST_PAUSE_S if is_healthy else pause
                self._see(f"ended with status {status}: again in {pause:.1f} s")
                self._changed.wait_for(lambda: self._ending or self._again, pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)

    def renew(self) -> None:
        """Restarts the process, with a new command line."""
        with self._changed:
            self._again = True
            if self._process is not None:
                self._process.terminate()
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._ending = True
            process = self._process
            if process is not None:
                process.terminate()
            self._changed.notify_all()
        self._thread.join(_GRACE_S)
        if self._thread.is_alive() and process is not None:
            process.kill()
            self._thread.join(_GRACE_S)


class _Part:
    """An actor of Ray: one part of the program. Ray restarts it on another node if its node dies."""

    def __init__(self, program: Program, role: str, index: int, token: str) -> None:
        self._program, self._role, self._index = program, role, index
        self._life = secrets.token_hex(8)
        self._lines: Deque[str] = collections.deque(maxlen=_LINES)
        self._seen = 0
        self._lock = threading.Lock()
        self._replay: Tuple[str, ...] = ()
        self._port = 0
        self._scratch = tempfile.TemporaryDirectory(prefix="reprise-ray-")
        folder = pathlib.Path(program.data or self._scratch.name)
        self._folder = folder / (f"replay-{index}" if role == "replay" else "run")
        self._tokens = pathlib.Path(self._scratch.name) / "tokens"  # only this user can open it
        self._tokens.write_text(f"admin parts sha256:{hashlib.sha256(token.encode()).hexdigest()}\n")
        self._environment = {"REPRISE_TOKEN": token}
        self._process: Optional[_Process] = None
        if role == "replay":
            self._start()

    def _start(self) -> None:
        self._process = _Process(self._role, self._line, self._environment, self._see)

    def _line(self) -> List[str]:
        command = [self._program.command or _own_command()]
        if self._role == "replay":
            return [*command, "serve", f"--listen=:{self._port}", f"--tokens={self._tokens}",
                    f"--data={self._folder}", "--durability=interval", "--table=job:fifo:1"]
        more = [f"--role={self._role}", f"--index={self._index}", f"--replay={','.join(self._replay)}"]
        if self._role == "evaluator":
            more.append(f"--dir={self._folder}")
        return [*command, *self._program.arguments(), *more]

    def _see(self, text: str) -> None:
        serving = re.search(r"event=serving addresses=\S*?:(\d+)", text)
        with self._lock:
            if serving:
                self._port = int(serving.group(1))  # a restarted server keeps it
            self._lines.append(text)
            self._seen += 1

    def poll(self, replay: Tuple[str, ...], after: int, life: str) -> Dict[str, Any]:
        """Takes the addresses of the replay, and returns the state and the lines since `after`."""
        if replay and self._role != "replay" and replay != self._replay:
            self._replay = replay
            if self._process is None:
                self._start()
            else:
                self._process.renew()
        with self._lock:
            new = self._seen - (after if life == self._life else 0)
            lines = list(self._lines)[-new:] if new > 0 else []
            state: Dict[str, Any] = {"life": self._life, "seen": self._seen, "lines": lines,
                                     "lost": max(0, new - len(lines)), "address": None}
        if self._port:
            state["address"] = f"{ray.util.get_node_ip_address()}:{self._port}"
        state["status"] = self._process.status if self._process is not None else None
        state["restarts"] = self._process.restarts if self._process is not None else 0
        policy = self._folder / "policy.safetensors"
        if self._role == "evaluator" and state["status"] == 0 and policy.exists():
            state["policy"] = policy.read_bytes()
        return state

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
        self._scratch.cleanup()


@dataclasses.dataclass
class _Handle:
    """What the driver knows of a part."""

    name: str
    role: str
    actor: Any
    life: str = ""
    seen: int = 0
    moves: int = 0  # how often Ray has started it again
    restarts: int = 0  # of its process, in this life
    status: Optional[int] = None
    address: Optional[str] = None
    asked: Any = None  # the call that is under way
    away: str = ""  # why it does not answer


def _print(name: str, text: str) -> None:
    print(f"{name:11s}{text}", file=sys.stderr, flush=True)


class Run:
    """A program that runs on a cluster. Made by `launch`; a thread of this process watches the parts.

    Attributes:
      policy: the contents of policy.safetensors, once the task is solved; `reprise eval` reads it.
    """

    def __init__(self, program: Program, log: Log) -> None:
        self.program, self._log = program, log
        self.policy: Optional[bytes] = None
        self._error: Optional[str] = None
        self._stopping, self._ended = threading.Event(), threading.Event()
        token = secrets.token_hex(32)
        part = ray.remote(_Part)
        counts = {"replay": program.shards, "learner": 1, "evaluator": 1, "actor": program.actors}
        self._parts: List[_Handle] = []
        for role, count in counts.items():
            options = {"num_cpus": _DEFAULT_CPUS[role], "max_restarts": -1,
                       "scheduling_strategy": "SPREAD", **program.resources.get(role, {})}
            for i in range(count):
                name = f"{role} {i}" if count > 1 else role
                actor = part.options(**options).remote(program, role, i, token)
                self._parts.append(_Handle(name, role, actor))
        self._thread = threading.Thread(target=self._watch, name="reprise.ray", daemon=True)
        self._thread.start()

    @property
    def _replay(self) -> Tuple[str, ...]:
        """The addresses of all shards; empty until all are known."""
        found = [p.address for p in self._parts if p.role == "replay"]
        return tuple(a for a in found if a) if all(found) else ()

    @property
    def address(self) -> str:
        """The addresses of the replay, separated by commas, as `reprise.Client` takes them.

        Waits until the servers listen."""
        while not self._replay:
            if self._ended.wait(_POLL_S):
                raise RuntimeError(self._error or "the program has ended")
        return ",".join(self._replay)

    def _take(self, part: _Handle, state: Dict[str, Any]) -> None:
        """Takes the answer of a part."""
        part.away = ""
        if part.life and part.life != state["life"]:
            part.moves += 1
            part.seen = 0
            self._log(part.name, "was started again by Ray")
        if state["lost"]:
            self._log(part.name, f"({state['lost']} lines were lost)")
        for text in state["lines"]:
            self._log(part.name, text)
        part.life, part.seen = state["life"], state["seen"]
        part.restarts, part.status, part.address = (
            state["restarts"], state["status"], state["address"])
        self.policy = state.get("policy", self.policy)
        if part.status is None:
            return
        if part.status != 0:
            self._error = f"{part.name} failed with status {part.status}"
        if part.status != 0 or part.role in ("learner", "evaluator"):
            self._stopping.set()

    def _watch(self) -> None:
        try:
            while not self._stopping.is_set():
                for part in self._parts:
                    if part.asked is None:
                        part.asked = part.actor.poll.remote(self._replay, part.seen, part.life)
                began = time.monotonic()
                ready, _ = ray.wait([p.asked for p in self._parts], num_returns=len(self._parts),
                                    timeout=_POLL_S)
                for part in [p for p in self._parts if p.asked in ready]:
                    self._answer(part)
                self._stopping.wait(max(0.0, _POLL_S - (time.monotonic() - began)))
        except Exception as error:  # the cluster itself is gone
            self._error = f"the cluster: {error}"
        finally:
            self._end()

    def _answer(self, part: _Handle) -> None:
        asked, part.asked = part.asked, None
        try:
            self._take(part, ray.get(asked))
        except ray.exceptions.RayActorError as error:  # its node or its worker has died
            if not part.away:
                self._log(part.name, "is away: Ray starts it again")
            part.away = str(error).partition("\n")[0]

    def _end(self) -> None:
        """Stops all parts, and waits for those that answer."""
        try:
            calls = [p.actor.stop.remote() for p in self._parts]
            ray.wait(calls, num_returns=len(calls), timeout=2 * _GRACE_S)
            for part in self._parts:
                ray.kill(part.actor)
        except Exception as error:
            self._error = self._error or f"the cluster: {error}"
        self._ended.set()

    def status(self) -> Dict[str, Dict[str, Any]]:
        """Returns the state of each part by name: how often its process was restarted, and Ray moved
        it; its exit status; why it is away, or ""."""
        return {p.name: {"restarts": p.restarts, "moves": p.moves, "status": p.status, "away": p.away}
                for p in self._parts}

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until the program has ended; False: `timeout` seconds have passed before.

        Raises:
          RuntimeError: a part failed and cannot be restarted, or the cluster is gone.
        """
        if not self._ended.wait(timeout):
            return False
        if self._error is not None:
            raise RuntimeError(self._error)
        return True

    def stop(self) -> None:
        """Ends all parts, and waits until they have ended."""
        self._stopping.set()
        self._thread.join()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()


def launch(program: Program, *, log: Log = _print) -> Run:
    """Starts a program on the cluster that this process is connected to (`ray.init`), and returns at
    once.

    Args:
      program: what to run.
      log: is called with the name of a part and each line of its output, on another thread. The
        default prints them on the standard error stream.
    """
    if not ray.is_initialized():
        ray.init()
    return Run(program, log)
