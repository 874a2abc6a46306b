# SPDX-License-Identifier: Apache-2.0
"""Two networks of this host with a router between them, whose packets can be made to vanish.

    left  10.213.1.1 --- 10.213.1.2  router  10.213.2.2 --- 10.213.2.1  right

Each is a network namespace, which lives as long as a process that sleeps in it. A cut stops the router: both
sides keep their links and addresses, and get no answer of any kind.
"""

import subprocess

LEFT, RIGHT = "10.213.1.1", "10.213.2.1"


class NotAllowed(Exception):
    """This user, or this machine, may not make namespaces."""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise NotAllowed(f"{' '.join(command)}: {done.stderr.strip()}")


class Network:
    def __init__(self):
        self.holders = {}

    def __enter__(self):
        try:
            for name in ("left", "router", "right"):
                # The first byte comes from within the namespace.
                holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec sleep infinity"],
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.holders[name] = holder
                if not holder.stdout.readline():
                    raise NotAllowed(f"unshare -n: {holder.stderr.read().strip()}")
                self.do(name, "ip", "link", "set", "lo", "up")
            for side, net in (("left", "10.213.1"), ("right", "10.213.2")):
                self.do("router", "ip", "link", "add", side, "type", "veth", "peer", "name", "eth", "netns",
                        str(self.holders[side].pid))
                self.do("router", "ip", "address", "add", f"{net}.2/24", "dev", side)
                self.do("router", "ip", "link", "set", side, "up")
                self.do(side, "ip", "address", "add", f"{net}.1/24", "dev", "eth")
                self.do(side, "ip", "link", "set", "eth", "up")
                self.do(side, "ip", "route", "add", "default", "via", f"{net}.2")
            self.mend()
        except (NotAllowed, FileNotFoundError) as error:
            self.__exit__()
            raise NotAllowed(str(error)) from None
        return self

    def __exit__(self, *_):
        for holder in self.holders.values():
            holder.kill()
            holder.communicate()

    def inside(self, side):
        """The beginning of a command line that runs in a namespace."""
        return ["nsenter", "-t", str(self.holders[side].pid), "-n", "--"]

    def do(self, side, *command):
        run(*self.inside(side), *command)

    def forward(self, digit):
        self.do("router", "sh", "-c", f"echo {digit} > /proc/sys/net/ipv4/ip_forward")

    def cut(self):
        self.forward(0)

    def mend(self):
        self.forward(1)
