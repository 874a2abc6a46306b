# SPDX-License-Identifier: Apache-2.0
"""A listener that accepts, reads, and closes. Prints its port; ends with its input."""

import os
import select
import socket
import sys


def main():
    os.nice(10)
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    print(listener.getsockname()[1], flush=True)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        connection.settimeout(0.02)
        taken = 0
        try:
            while taken < 1 << 17 and (part := connection.recv(1 << 16)):
                taken += len(part)
        except OSError:
            pass
        connection.close()


if __name__ == "__main__":
    main()
