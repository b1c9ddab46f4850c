# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks an unpacked event stream byte by byte and writes it as the lines that dump should print.

usage: stream.py STREAM LINES
"""
import json
import sys

import msgpack

COMMON = ["pid", "tid", "timestamp", "addr", "type"]
FIELDS = {
    "Malloc": ["size", "stack_hash?"],
    "Calloc": ["size", "stack_hash?"],
    "AlignedAlloc": ["size", "stack_hash?"],
    "Realloc": ["old_addr?", "size", "stack_hash?"],
    "Free": [],
    "Fork": ["parent_pid"],
    "Exec": [],
    "Exit": [],
    "Mapping": ["path", "dev", "ino", "file_offset", "len"],
    "Stack": ["hash", "sp", "regs", "bytes", "fp_chain", "truncated"],
    "Mmap": ["size"],
    "Munmap": ["size"],
}


def check(event, packed):
    keys = list(event)
    if keys[:5] != COMMON or event["type"] not in FIELDS:
        return "keys or type"
    wanted = [name for name in FIELDS[event["type"]] if not name.endswith("?") or name[:-1] in event]
    if keys[5:] != [name.rstrip("?") for name in wanted]:
        return f"fields {keys[5:]}"
    if msgpack.packb(event) != packed:
        return "not in the shortest forms"
    if event["timestamp"] <= 0 or event["pid"] <= 0:
        return "timestamp or pid"
    return None


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    reader = msgpack.Unpacker(raw=False, max_buffer_size=1 << 30)
    reader.feed(data)
    start = count = 0
    with open(sys.argv[2], "w", encoding="utf-8") as lines:
        for event in reader:
            problem = check(event, data[start:reader.tell()])
            if problem:
                sys.exit(f"byte {start}: {problem}: {event}")
            start = reader.tell()
            count += 1
            lines.write(json.dumps(event, separators=(",", ":"), ensure_ascii=False) + "\n")
    if start != len(data):
        sys.exit(f"{len(data) - start} bytes at the end are no event")
    if count < 1000:
        sys.exit(f"only {count} events")


if __name__ == "__main__":
    main()
