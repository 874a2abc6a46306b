#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Converts a FileDescriptorSet to C, for server reflection. The build runs it.

    protoc --descriptor_set_out=set.pb --include_imports ... && tools/embed.py set.pb descriptor_tables.c

Parses the few fields that it needs itself, so that the build needs no Python library. The header of
the generated file is src/wire/descriptors.h.
"""

import sys

# For FileDescriptorProto, DescriptorProto, EnumDescriptorProto and ServiceDescriptorProto: the
# numbers of the fields with nested declarations, and the kinds of these declarations.
INSIDE_FILE = {4: "message", 5: "enum", 6: "service"}
INSIDE_MESSAGE = {2: "leaf", 3: "message", 4: "enum", 8: "leaf"}
INSIDE_ENUM = {2: "value"}
INSIDE_SERVICE = {2: "leaf"}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Yields (number, bytes) for each length-delimited field of a message."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            _, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            yield tag >> 3, data[at:at + size]
            at += size
        else:
            at += {1: 8, 5: 4}[kind]


def text(data, number):
    return next((v.decode() for n, v in fields(data) if n == number), "")


def symbols(data, kind, scope):
    """Yields the full names of a declaration and of those inside it, the outermost first."""
    name = f"{scope}.{text(data, 1)}".lstrip(".")
    yield name, kind
    inside = {"message": INSIDE_MESSAGE, "enum": INSIDE_ENUM, "service": INSIDE_SERVICE}.get(kind, {})
    for number, value in fields(data):
        if number in inside:
            # The names of an enum's values are in the scope of the enum, not inside the enum.
            within = scope if inside[number] == "value" else name
            yield from symbols(value, inside[number], within)


class File:
    def __init__(self, data):
        self.data = data
        self.name = text(data, 1)
        self.imports = [v.decode() for n, v in fields(data) if n == 3]
        package = text(data, 2)
        self.symbols = [s for n, v in fields(data) if n in INSIDE_FILE
                        for s in symbols(v, INSIDE_FILE[n], package)]


def needs(file, files):
    """Returns the indices of all files that `file` imports, directly or not, in order of first
    occurrence."""
    names = [f.name for f in files]
    found, left = [], list(file.imports)
    while left:
        number = names.index(left.pop(0))
        if number not in found:
            found.append(number)
            left += files[number].imports
    return found


def rows(values, per_line):
    values = list(values)
    for i in range(0, len(values), per_line):
        yield "    " + " ".join(f"{v}," for v in values[i:i + per_line])


def table(head, lines):
    return [head + " = {", *lines, "};", ""]


def emit(files):
    out = ["/* Made by tools/embed.py from proto/. */", '#include "wire/descriptors.h"', ""]
    for i, file in enumerate(files):
        out += table(f"static const uint8_t data_{i}[]", rows(file.data, 20))
        needed = needs(file, files)
        if needed:
            out += table(f"static const uint8_t needs_{i}[]", rows(needed, 20))
    out += table("const rp_wire_file rp_wire_files[]",
                 [f'    {{"{f.name}", data_{i}, {len(f.data)}, '
                  + (f"needs_{i}, {len(needs(f, files))}}}," if f.imports else "NULL, 0},")
                  for i, f in enumerate(files)])
    named = sorted((name.encode(), i) for i, f in enumerate(files) for name, _ in f.symbols)
    out += table("const rp_wire_symbol rp_wire_symbols[]",
                 [f'    {{"{name.decode()}", {i}}},' for name, i in named])
    services = sorted(name for f in files for name, kind in f.symbols if kind == "service")
    out += table("const char *const rp_wire_services[]", [f'    "{s}",' for s in services])
    for what, count in (("file", len(files)), ("symbol", len(named)), ("service", len(services))):
        out.append(f"const size_t rp_wire_{what}_count = {count};")
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: embed.py SET OUT.c")
    with open(sys.argv[1], "rb") as source:
        files = [File(v) for n, v in fields(source.read()) if n == 1]
    assert 0 < len(files) < 256
    with open(sys.argv[2], "w") as target:
        target.write(emit(files))


if __name__ == "__main__":
    main()
