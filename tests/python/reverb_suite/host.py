# SPDX-License-Identifier: Apache-2.0
"""Runs servers in another process. Reads pickled requests on standard input, and writes results:

    ("start", [table descriptions], checkpoint folder or None)    the port, or the exception
    ("stop", port)                                                None
"""

import os
import pathlib
import pickle
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from reverb_suite.implementation import build, reverb  # noqa: E402


def main():
    tempfile.tempdir = sys.argv[1]
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # other output of the implementation goes to stderr
    servers = {}
    while True:
        try:
            what, *words = pickle.load(requests)
        except EOFError:
            os._exit(0)  # no process waits for an orderly end
        try:
            if what == "start":
                tables, folder = words
                checkpointer = folder and reverb.checkpointers.DefaultCheckpointer(folder)
                server = reverb.Server([build(t) for t in tables], checkpointer=checkpointer)
                servers[server.port] = server
                answer = server.port
            else:
                servers.pop(words[0]).stop()
                answer = None
        except Exception as error:  # the other side raises it
            answer = RuntimeError(f"{type(error).__name__}: {error}")
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
