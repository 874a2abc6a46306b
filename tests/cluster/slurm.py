#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the job file of `reprise train apex-dqn --export slurm` on a real Slurm.

The controller and four nodes run on this host, in a folder of their own, on loopback addresses. Needs
Debian's packages slurmctld, slurmd and slurm-client, and root, because slurmd asks for it.
`make test-slurm` runs it.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 600  # seconds for anything, on a busy machine
NODES = [f"127.0.0.{i}" for i in range(11, 15)]  # names that can be resolved, too
CPUS = 8  # of each node in Slurm's configuration; the machine may have fewer
CATCH = ["--env", "catch", "--hidden", "32", "--start", "200", "--threshold", "0.9",
         "--confirm-episodes", "50"]


def free_ports(count):
    """Returns ports at which no program listens."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


class Slurm:
    """A controller and nodes of this host."""

    def __init__(self, folder):
        self.folder, self.daemons = folder, []
        ports = free_ports(len(NODES) + 1)
        nodes = "".join(f"NodeName={node} NodeHostname={socket.gethostname()} NodeAddr={node} "
                        f"Port={port} CPUs={CPUS}\n" for node, port in zip(NODES, ports[1:]))
        (folder / "slurm.conf").write_text(
            f"ClusterName=scratch\nSlurmctldHost={socket.gethostname()}(127.0.0.1)\n"
            f"SlurmctldPort={ports[0]}\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/none\n"
            "CredType=cred/none\nProctrackType=proctrack/pgid\nTaskPlugin=task/none\n"
            "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSchedulerType=sched/backfill\n"
            "SchedulerParameters=bf_interval=1,bf_max_job_test=100\nMpiDefault=none\nReturnToService=2\n"
            "SlurmdParameters=config_overrides\nJobAcctGatherType=jobacct_gather/none\n"
            f"StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool.%n\n"
            f"SlurmctldPidFile={folder}/ctld.pid\nSlurmdPidFile={folder}/d.%n.pid\n"
            f"SlurmctldLogFile={folder}/ctld.log\nSlurmdLogFile={folder}/d.%n.log\n"
            f"{nodes}PartitionName=all Nodes={','.join(NODES)} Default=YES State=UP\n")
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def __enter__(self):
        self.start("slurmctld", "-D", "-c")
        for node in NODES:
            self.start("slurmd", "-D", "-N", node)
        self.until("the nodes", lambda: self.run("sinfo", "-h", "-o", "%t %D") == f"idle {len(NODES)}\n")
        return self

    def __exit__(self, *_):
        self.run("scancel", "--user=root")
        self.until("the end of jobs", lambda: self.run("squeue", "-h") == "")
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(60)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def start(self, *command):
        path = shutil.which(command[0], path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        if path is None:
            sys.exit(f"skipped: there is no {command[0]} (Debian: apt install slurmctld slurmd)")
        log = (self.folder / f"{'-'.join(command).replace('/', '')}.out").open("w")
        self.daemons.append(subprocess.Popen([path, *command[1:]], env=self.environment, stdout=log,
                                             stderr=log, stdin=subprocess.DEVNULL))

    def run(self, *command, **more):
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE,
                              env={**self.environment, **more})
        return done.stdout + done.stderr

    def until(self, what, check):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            result = check()
            if result:
                return result
            time.sleep(0.5)
        logs = "".join(f"== {p.name}\n{p.read_text(errors='replace')[-1500:]}"
                       for p in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out")))
        sys.exit(f"waited {PATIENCE} s for {what}\n{logs}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reprise", type=pathlib.Path)
    parser.add_argument("--actors", type=int, default=3)
    options = parser.parse_args()
    reprise = options.reprise.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        script = subprocess.run(
            [reprise, "train", "apex-dqn", *CATCH, "--actors", str(options.actors), "--export", "slurm", "--report-name", "it's $(a name)"],
            capture_output=True, text=True, check=True).stdout
        (folder / "job.sh").write_text(script)
        with Slurm(folder) as slurm:
            given = {"REPRISE": str(reprise), "REPRISE_DIR": str(folder / "run"),
                     "REPRISE_PORT": str(free_ports(1)[0])}
            print("sbatch --test-only:", slurm.run("sbatch", "--test-only", str(folder / "job.sh")).strip())
            said = slurm.run("sbatch", f"--output={folder}/job.out", str(folder / "job.sh"), **given)
            print(said.strip())
            job = re.search(r"job (\d+)", said).group(1)
            slurm.until("the job", lambda: slurm.run("squeue", "-h", "-j", job) == "" or
                        "Invalid job" in slurm.run("squeue", "-h", "-j", job))
            text = (folder / "job.out").read_text()
            print(text[-3000:])
            assert "solved: the mean return of 50 fresh episodes" in text
            assert (folder / "run" / "policy.safetensors").exists()
    print("the job of Slurm solved catch")


if __name__ == "__main__":
    main()
