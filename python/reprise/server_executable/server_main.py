# SPDX-License-Identifier: Apache-2.0
"""Runs a server with a configuration in protobuf's text format, like Reverb's `reverb_server`.

    python -m reprise.server_executable.server_main --config '
        port: 8000
        tables {
          table_name: "queue" max_size: 1000 max_times_sampled: 1
          sampler { fifo: true } remover { fifo: true }
          rate_limiter { samples_per_insert: 1 min_size_to_sample: 1 min_diff: 0 max_diff: 1000 }
        }'

The configuration of `reprise serve` has more options, and that command does not need Python.
"""

from __future__ import annotations

import argparse
import sys
from typing import List, Optional

from reprise import proto_text, protos, server
from reprise.server_executable import server_from_proto

__all__ = ["main"]


def _server(arguments: Optional[List[str]]) -> server.Server:
    parser = argparse.ArgumentParser(description="Serves the tables of a configuration.")
    parser.add_argument("--config", required=True, help="a ReverbServerConfig as text")
    parser.add_argument(
        "--address", default="localhost", help="the host to listen at; 0.0.0.0 is every one"
    )
    parser.add_argument(
        "--insecure", action="store_true", help="also where others than this host can connect"
    )
    options = parser.parse_args(arguments)
    try:
        config = protos.ReverbServerConfig()
        proto_text.parse_text(config, options.config)
        return server.Server(
            tables=server_from_proto.tables_from_proto(config.tables),
            port=config.port,
            address=options.address,
            insecure=options.insecure,
        )
    except (ValueError, NotImplementedError, RuntimeError) as error:
        parser.error(str(error))


def main(arguments: Optional[List[str]] = None) -> int:
    """Serves until Ctrl-C."""
    try:
        with _server(arguments) as running:
            print(f"serving at {running.address}", flush=True)
            running.wait()
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
