# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads an artifact without any code of memtrack: zstd(1) unpacks it, msgpack splits it.

Also writes small artifacts, for the tests of the comparison itself.
"""
import subprocess
import struct

import msgpack

ALLOCATIONS = {"Malloc": "malloc", "Calloc": "calloc", "AlignedAlloc": "aligned", "Realloc": "realloc"}
KINDS = ("malloc", "calloc", "aligned", "realloc", "free")


class Bad(Exception):
    """The artifact or the counter file is not what it should be."""


def events(path):
    """Yields the events of the artifact; Bad when the stream is not clean to its last byte."""
    unpack = subprocess.Popen(["zstd", "-dc", "--", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    reader = msgpack.Unpacker(raw=False, max_buffer_size=1 << 28)
    total = 0
    try:
        while True:
            data = unpack.stdout.read(1 << 20)
            if not data:
                break
            total += len(data)
            reader.feed(data)
            for event in reader:
                if not isinstance(event, dict) or "type" not in event:
                    raise Bad(f"{path}: not an event before byte {reader.tell()}: {event!r:.100}")
                yield event
    finally:
        unpack.stdout.close()
        said = unpack.stderr.read().decode(errors="replace").strip()
        unpack.stderr.close()
        status = unpack.wait()
    if status:
        raise Bad(f"{path}: zstd ends with {status}: {said}")
    if reader.tell() != total:
        raise Bad(f"{path}: {total - reader.tell()} bytes at the end are no whole event")


def write(path, many):
    packed = b"".join(msgpack.packb(event) for event in many)
    done = subprocess.run(["zstd", "-q", "-c"], input=packed, stdout=subprocess.PIPE, check=True)
    with open(path, "wb") as out:
        out.write(done.stdout)


def slots(path):
    """The counter's slots that hold events, in the order in which they were claimed."""
    with open(path, "rb") as file:
        data = file.read()
    size, capacity = 256, len(data) // 256 - 1
    used = struct.unpack_from("=I", data, 0)[0]
    if used > capacity:
        raise Bad(f"{path}: {used} images, but room for {capacity}")
    found = []
    for index in range(used):
        at = size * (index + 1)
        pid, origin, claim, started, ended = struct.unpack_from("=IIQII", data, at)
        calls = struct.unpack_from("=8Q", data, at + 24)
        size_sums = struct.unpack_from("=8Q", data, at + 88)
        if any(calls):
            found.append({"pid": pid, "origin": origin, "claim_ns": claim, "alive": started - ended,
                          "calls": dict(zip(KINDS, calls)), "bytes": dict(zip(KINDS, size_sums))})
    return found
