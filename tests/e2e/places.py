# SPDX-License-Identifier: MIT OR Apache-2.0
"""Looks up the lines of places.c, by time and address, in what memtrack modules prints.

usage: memtrack modules FILE | places.py LINES [--code] [--late-forks]

Says how many lines were looked up, and each that comes out otherwise than the program saw it. With
--code the bytes at that place of the file have to be those that the program saw in memory. With
--late-forks a process may speak before its Fork, as it may where no kernel tells of processes.
"""
import json
import os
import sys


class Process:
    def __init__(self, parent=None):
        self.mappings = list(parent.mappings) if parent else []

    def find(self, address):
        """The newest mapping that covers the address: what was there before is gone."""
        for mapping in reversed(self.mappings):
            if mapping["addr"] <= address < mapping["addr"] + mapping["len"]:
                return mapping
        return None


def take_in(processes, event):
    pid = event["pid"]
    if event["type"] == "Fork":
        processes[pid] = Process(processes.get(event["parent_pid"]))
    elif event["type"] == "Exec":
        processes[pid] = Process()
    else:
        processes.setdefault(pid, Process()).mappings.append(event)


def wrong(mapping, line, check_code):
    _, _, address, offset, device, inode, code, path = line
    if mapping is None:
        return "no mapping"
    major, minor = (int(part, 16) for part in device.split(":"))
    address = int(address)
    if (mapping["path"], mapping["ino"], mapping["dev"]) != (path, int(inode), major << 20 | minor):
        return f"found {mapping}"
    place = address - mapping["addr"] + mapping["file_offset"]
    # /proc/self/maps tells the offset of its line's start, which may be another piece of the file.
    if mapping["file_offset"] % 4096 or int(offset) % 4096:
        return f"an offset between pages: {mapping}"
    if check_code:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_ino == int(inode):
                file.seek(place)
                if file.read(len(code) // 2).hex() != code:
                    return f"other code at {place}: {mapping}"
    return None


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [line.rstrip("\n").split(" ", 7) for line in file]
    lines.sort(key=lambda line: int(line[1]))
    events = [json.loads(line) for line in sys.stdin]
    processes, at = {}, 0
    for line in lines:
        pid, time = int(line[0]), int(line[1])
        late = "--late-forks" in sys.argv and pid not in processes
        while at < len(events) and (events[at]["timestamp"] <= time or late):
            late = late and not (events[at]["type"] == "Fork" and events[at]["pid"] == pid)
            take_in(processes, events[at])
            at += 1
        problem = wrong(processes.get(pid, Process()).find(int(line[2])), line, "--code" in sys.argv)
        if problem:
            print(f"{' '.join(line)}: {problem}")
    print(f"{len(lines)} looked up")


if __name__ == "__main__":
    main()
