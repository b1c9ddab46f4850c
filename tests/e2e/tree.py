# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints the shape of a process tree: what each process executed, how it ended, its children.

usage: tree.py strace FILE        what strace -f -e trace=process -o FILE saw
       tree.py artifact FILE JSON an artifact and what memtrack stat --json says of it
"""
import json
import os
import re
import signal
import sys

import artifact


class Process:
    def __init__(self):
        self.execs = []
        self.end = "?"
        self.children = []


def shape(processes, pid, depth=0):
    process = processes[pid]
    yield "  " * depth + " ".join([os.path.realpath(path) for path in process.execs] + [process.end])
    for child in process.children:
        yield from shape(processes, child, depth + 1)


CALL = re.compile(r"^(\d+)\s+(?:<\.\.\. )?(\w+)(.*)$")
FORKS = ("fork", "vfork", "clone", "clone3")


def from_strace(path):
    processes, root, begun, threads = {}, None, {}, set()

    def get(pid):
        return processes.setdefault(pid, Process())

    for line in open(path, encoding="utf-8", errors="replace"):
        ended = re.match(r"^(\d+)\s+\+\+\+ (exited with|killed by) (\w+)", line)
        if ended:
            pid, how, what = int(ended[1]), ended[2], ended[3]
            get(pid).end = f"exit {what}" if how == "exited with" else f"signal {int(signal.Signals[what])}"
            continue
        call = CALL.match(line)
        if not call:
            continue
        pid, name, rest = int(call[1]), call[2], call[3]
        root = root or pid
        if rest.rstrip().endswith("<unfinished ...>"):
            begun[pid, name] = rest
            continue
        rest = begun.pop((pid, name), "") + rest
        result = re.search(r"= (-?\d+)[^=]*$", rest)
        if not result or int(result[1]) < 0:
            continue
        if name in FORKS:
            if "CLONE_THREAD" in rest:
                threads.add(int(result[1]))
            else:
                get(pid).children.append(int(result[1]))
                get(int(result[1]))
        elif name in ("execve", "execveat"):
            get(pid).execs.append(re.search(r'"([^"]*)"', rest)[1])
    return processes, root


def from_artifact(path, stat):
    processes, root, fresh = {}, None, set()

    def get(pid):
        return processes.setdefault(pid, Process())

    for event in artifact.events(path):
        pid, kind = event["pid"], event["type"]
        if kind == "Fork":
            get(event["parent_pid"]).children.append(pid)
        elif kind == "Exec":
            root = root or pid
            fresh.add(pid)
        elif kind == "Mapping" and pid in fresh:
            # The first mapping of an image is the executable's own.
            fresh.discard(pid)
            get(pid).execs.append(event["path"])
    for process in json.load(open(stat, encoding="utf-8"))["processes"]:
        one = get(process["pid"])
        if process.get("exit_signal") is not None:
            one.end = f"signal {process['exit_signal']}"
        elif process.get("exit_status") is not None:
            one.end = f"exit {process['exit_status']}"
    return processes, root


def main():
    if sys.argv[1] == "strace":
        processes, root = from_strace(sys.argv[2])
    else:
        processes, root = from_artifact(sys.argv[2], sys.argv[3])
    print("\n".join(shape(processes, root)))


if __name__ == "__main__":
    main()
