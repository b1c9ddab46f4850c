# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares an artifact with what the independent counter saw, image by image.

usage: compare.py [--uncounted-root N] [--killed] [--quiet] ARTIFACT COUNTER

Exact for an image in which one thread was alive at its end. Else each other living thread may have
been stopped inside one call: then the artifact lacks that allocation, or has that free too many.
--killed says that the ends came from outside, so the last thread may have been in a call as well.
--uncounted-root N: the first N images of the root process ran without the counter.

The artifact is replayed as well: contradictions, unknown frees and time running backwards fail.
Exit status: 0 equal, 1 different, 2 usage, 3 input damaged.
"""
import argparse
import sys

import artifact

MOST_SHOWN = 20


class Image:
    """The events of one process between two execs."""

    def __init__(self, pid, number):
        self.pid = pid
        self.number = number  # 0 before the first exec
        self.calls = dict.fromkeys(artifact.KINDS, 0)
        self.bytes = dict.fromkeys(artifact.KINDS, 0)
        self.splits = 0

    def empty(self):
        return not any(self.calls.values())


class Replay:
    """Lives through the events: what each process holds, what contradicts it."""

    def __init__(self):
        self.images = []
        self.current = {}  # pid -> Image
        self.live = {}  # pid -> {addr: inherited}
        self.root = None
        self.problems = []
        self.problem_count = 0
        self.events = 0
        self.last_time = 0

    def problem(self, event, what):
        self.problem_count += 1
        if len(self.problems) < MOST_SHOWN:
            self.problems.append(f"event {self.events}: {what}: {event}")

    def image(self, pid):
        if pid not in self.current:
            self.start(pid, 0)
        return self.current[pid]

    def start(self, pid, number):
        self.current[pid] = Image(pid, number)
        self.images.append(self.current[pid])

    def allocate(self, live, event):
        address = event["addr"]
        if live.get(address) is False:
            self.problem(event, "allocated while live")
        live[address] = False

    def release(self, live, event, address):
        if live.pop(address, None) is None:
            self.problem(event, "freed, but not live")

    def heap(self, event):
        kind, pid = event["type"], event["pid"]
        image = self.image(pid)
        live = self.live.setdefault(pid, {})
        if kind == "Free":
            image.calls["free"] += 1
            self.release(live, event, event["addr"])
            return
        name = artifact.ALLOCATIONS[kind]
        image.calls[name] += 1
        image.bytes[name] += event["size"]
        if kind == "Realloc":
            if "old_addr" not in event:
                image.splits += 1
            elif event["old_addr"]:
                self.release(live, event, event["old_addr"])
        self.allocate(live, event)

    def process(self, event):
        kind, pid = event["type"], event["pid"]
        if kind == "Fork":
            self.start(pid, 0)
            self.live[pid] = dict.fromkeys(self.live.get(event["parent_pid"], ()), True)
        elif kind == "Exec":
            if self.root is None:
                self.root = pid
            self.start(pid, self.current[pid].number + 1 if pid in self.current else 1)
            self.live[pid] = {}
        elif kind == "Exit":
            self.live.pop(pid, None)
            self.current.pop(pid, None)

    def run(self, path):
        for event in artifact.events(path):
            self.events += 1
            if event["timestamp"] < self.last_time:
                self.problem(event, f"{self.last_time - event['timestamp']} ns before its predecessor")
            self.last_time = event["timestamp"]
            if event["type"] == "Free" or event["type"] in artifact.ALLOCATIONS:
                self.heap(event)
            else:
                self.process(event)


def differences(image, slot, slack):
    """Says what differs between an image of the artifact and a slot of the counter."""
    found = []
    off_by = 0
    for kind in artifact.KINDS:
        ours, theirs = image.calls[kind], slot["calls"][kind]
        if kind == "free":
            ours -= image.splits
            low, high = 0, slack
        else:
            low, high = -slack, 0
        off_by += abs(ours - theirs)
        if not low <= ours - theirs <= high:
            found.append(f"{kind}: {ours} calls, the counter saw {theirs}")
        elif kind != "free" and ours == theirs and image.bytes[kind] != slot["bytes"][kind]:
            found.append(f"{kind}: {image.bytes[kind]} bytes, the counter saw {slot['bytes'][kind]}")
    if not found and off_by > slack:
        found.append(f"{off_by} calls off in all, but {slack} threads could have been in one")
    return found


def pair(images, slots):
    """Yields (image, slot): those of one pid in their order; None where one is missing."""
    by_pid = {}
    for side, many in ((0, images), (1, slots)):
        for one in many:
            pid = one.pid if side == 0 else one["pid"]
            by_pid.setdefault(pid, ([], []))[side].append(one)
    for ours, theirs in by_pid.values():
        for index in range(max(len(ours), len(theirs))):
            yield (ours[index] if index < len(ours) else None,
                   theirs[index] if index < len(theirs) else None)


def compare(options):
    replay = Replay()
    replay.run(options.artifact)
    slots = artifact.slots(options.counter)
    failed = list(replay.problems)
    if replay.problem_count > len(replay.problems):
        failed.append(f"... {replay.problem_count} problems in the replay")
    images = [one for one in replay.images if not one.empty()]
    if options.uncounted_root:
        if not any(one.pid == replay.root for one in images):
            failed.append(f"the root process {replay.root} has no events")
        images = [one for one in images
                  if one.pid != replay.root or one.number > options.uncounted_root]
    if not slots:
        failed.append("the counter saw nothing")
    for image, slot in pair(images, slots):
        if slot is None:
            failed.append(f"pid {image.pid} image {image.number}: only in the artifact: {image.calls}")
        elif image is None:
            failed.append(f"pid {slot['pid']}: only in the counter: {slot['calls']}")
        else:
            slack = max(0, slot["alive"] - 1) + (1 if options.killed else 0)
            failed += [f"pid {image.pid} image {image.number} ({slack} threads in doubt): {text}"
                       for text in differences(image, slot, slack)]
    if not options.quiet or failed:
        print(f"{replay.events} events, {len(images)} images, {len(slots)} counted images, "
              f"{sum(one.splits for one in images)} split reallocs")
    for text in failed:
        print(text)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--uncounted-root", type=int, default=0, metavar="N")
    parser.add_argument("--killed", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("artifact")
    parser.add_argument("counter")
    try:
        return compare(parser.parse_args())
    except artifact.Bad as bad:
        print(bad)
        return 3


if __name__ == "__main__":
    sys.exit(main())
