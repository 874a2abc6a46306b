# SPDX-License-Identifier: Apache-2.0
"""Files of agents: safetensors with the settings as metadata.

The C library writes the parameters, in the layout of PyTorch; here the metadata are added. The
values are texts without quotes and backslashes, which the C library need not unescape.
"""

import json
import os
import re
from typing import Dict, Tuple

MAX_HEADER = 1 << 24


def _split(path: str) -> Tuple[Dict[str, object], bytes]:
    """Reads the header and the data. ValueError if the file is not safetensors."""
    with open(path, "rb") as file:
        content = file.read()
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > min(len(content) - 8, MAX_HEADER):
        raise ValueError(f"{path!r} is not a safetensors file: its first 8 bytes are not the "
                         "length of a header")
    try:
        header = json.loads(content[8:8 + size])
    except ValueError as error:
        raise ValueError(f"{path!r} is not a safetensors file: its header is not JSON: "
                         f"{error}") from None
    if not isinstance(header, dict):
        raise ValueError(f"{path!r} is not a safetensors file: its header is not an object")
    return header, content[8 + size:]


def add_metadata(source: str, path: str, metadata: Dict[str, str]) -> None:
    """Replaces `path` by the file `source`, with metadata."""
    header, data = _split(source)
    plain = {key: re.sub(r'["\\\x00-\x1f]', "?", value) for key, value in metadata.items()}
    text = json.dumps({"__metadata__": plain, **header}, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with open(source, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)
    os.replace(source, path)


def read_metadata(path: str) -> Dict[str, str]:
    """Reads the metadata of an agent. ValueError if there are none."""
    metadata = _split(path)[0].get("__metadata__")
    if not isinstance(metadata, dict) or metadata.get("reprise.agent") != "dqn":
        raise ValueError(f"{path!r} has no settings of an agent: DQN.save() did not write it")
    return metadata
