# SPDX-License-Identifier: MIT OR Apache-2.0
"""Counts an artifact again, without any code of memtrack, and compares with memtrack stat --json.

usage: recount.py ARTIFACT JSON      says every figure that differs; ends with 1 when one does
"""
import collections
import json
import sys

import artifact

SIZED = ("Malloc", "Calloc", "AlignedAlloc", "Realloc")


class Life:
    """One process: its blocks are addr -> (size, whether it allocated the block itself)."""

    def __init__(self, pid, parent_pid=None, blocks=()):
        self.pid, self.parent_pid, self.exited = pid, parent_pid, False
        self.blocks = {addr: (size, False) for addr, (size, own) in dict(blocks).items()}
        self.kinds, self.threads = collections.Counter(), set()
        self.allocations = self.frees = self.allocated = 0
        self.images, self.left = 1, (0, 0, 0, 0)
        self.own = 0
        self.inherited = sum(size for size, own in self.blocks.values())
        self.peak = None

    def drop(self, addr):
        """Takes a block out; True when it was there."""
        block = self.blocks.pop(addr, None)
        if block is None:
            return False
        if block[1]:
            self.own -= block[0]
        else:
            self.inherited -= block[0]
        return True

    def live(self):
        own = [size for size, mine in self.blocks.values() if mine]
        other = [size for size, mine in self.blocks.values() if not mine]
        return len(own), sum(own), len(other), sum(other)

    def note_peak(self, now):
        if self.peak is None or self.own + self.inherited > self.peak[0]:
            self.peak = (self.own + self.inherited, self.inherited, len(self.blocks), now)

    def end_image(self):
        self.left = self.live()
        self.blocks, self.own, self.inherited = {}, 0, 0


class Tree:
    def __init__(self):
        self.lives, self.current = [], {}
        self.bytes = 0
        self.peak = (0, 0)
        self.first = self.last = None
        self.bad = collections.Counter()
        self.ended = 0

    def start(self, pid, parent_pid=None, blocks=()):
        life = Life(pid, parent_pid, blocks)
        self.lives.append(life)
        self.current[pid] = life
        return life

    def life(self, event):
        pid, kind = event["pid"], event["type"]
        life = self.current.get(pid)
        if kind == "Fork":
            if life and not life.exited:
                self.bad["fork_after_event"] += 1
                self.end(life)
            parent = self.current.get(event["parent_pid"])
            alive = parent is not None and not parent.exited
            if event["parent_pid"] == pid:
                self.bad["fork_of_self"] += 1
            elif parent and parent.exited:
                self.bad["fork_by_dead"] += 1
            return self.start(pid, event["parent_pid"], parent.blocks if alive else {})
        if life is None:
            return self.start(pid)
        if life.exited and kind == "Exit":
            self.bad["exit_twice"] += 1
        elif life.exited and kind not in ("Rss", "Rmap"):
            self.bad["event_after_exit"] += 1
            return self.start(pid)
        elif kind == "Exec":
            self.bytes -= life.own
            life.end_image()
            life.images += 1
        return life

    def end(self, life):
        self.bytes -= life.own
        life.end_image()
        life.exited = True

    def release(self, life, addr):
        before = life.own
        life.frees += 1
        if not life.drop(addr):
            self.bad["no_block"] += 1
        self.bytes += life.own - before

    def allocate(self, life, event):
        addr, size = event["addr"], event["size"]
        old = life.blocks.get(addr)
        if old is not None:
            self.bytes -= old[0] if old[1] else 0
            self.bad["alloc_over_live"] += old[1]
            self.ended += not old[1]
            life.drop(addr)
        life.blocks[addr] = (size, True)
        life.own += size
        self.bytes += size
        life.allocations += 1
        life.allocated += size
        life.note_peak(event["timestamp"])
        if self.bytes > self.peak[0]:
            self.peak = (self.bytes, event["timestamp"])

    def take(self, event):
        now, kind = event["timestamp"], event["type"]
        if self.last is not None and now < self.last:
            self.bad["time_back"] += 1
        self.first = now if self.first is None else min(self.first, now)
        self.last = now if self.last is None else max(self.last, now)
        life = self.life(event)
        life.kinds[kind] += 1
        life.threads.add(event["tid"])
        if kind in ("Fork", "Exec") or life.peak is None:
            life.note_peak(now)
        if kind == "Free":
            self.release(life, event["addr"])
        elif kind in SIZED:
            if kind == "Realloc" and event.get("old_addr"):
                self.release(life, event["old_addr"])
            self.allocate(life, event)
        elif kind == "Exit" and not life.exited:
            self.end(life)


def of_life(life):
    left = life.left if life.exited else life.live()
    return {"pid": life.pid, "parent_pid": life.parent_pid, "exited": life.exited,
            "threads": len(life.threads), "images": life.images, "events": sum(life.kinds.values()),
            "by_kind": dict(life.kinds), "allocations": life.allocations, "frees": life.frees,
            "allocated_bytes": life.allocated, "peak": life.peak, "left": left}


def of_json(one):
    peak, left = one["peak"], one["live_at_end"]
    return {"pid": one["pid"], "parent_pid": one["parent_pid"], "exited": one["exited"],
            "threads": one["threads"], "images": len(one["images"]), "events": one["events"],
            "by_kind": {kind: n for kind, n in one["by_kind"].items() if n},
            "allocations": one["allocations"], "frees": one["frees"],
            "allocated_bytes": one["allocated_bytes"],
            "peak": (peak["bytes"], peak["inherited_bytes"], peak["blocks"], peak["time_ns"]),
            "left": (left["blocks"], left["bytes"], left["inherited_blocks"], left["inherited_bytes"])}


def main():
    tree = Tree()
    for event in artifact.events(sys.argv[1]):
        tree.take(event)
    with open(sys.argv[2], encoding="utf-8") as file:
        said = json.load(file)
    lives = [of_life(life) for life in tree.lives]
    found = said["contradictions"]
    kinds = sum((life.kinds for life in tree.lives), collections.Counter())
    wanted = {
        "events": sum(kinds.values()), "by_kind": dict(kinds), "process_count": len(lives),
        "thread_count": sum(life["threads"] for life in lives), "first_ns": tree.first or 0,
        "last_ns": tree.last or 0, "allocations": sum(life["allocations"] for life in lives),
        "frees": sum(life["frees"] for life in lives),
        "allocated_bytes": sum(life["allocated_bytes"] for life in lives), "peak": tree.peak,
        "left": tuple(map(sum, zip(*(life["left"] for life in lives)))) or (0, 0, 0, 0),
        "inherited_ended": tree.ended,
        "contradictions": {name: n for name, n in tree.bad.items() if n},
    }
    live = said["live_at_end"]
    got = {key: said[key] for key in wanted if key in said}
    got["by_kind"] = {kind: n for kind, n in said["by_kind"].items() if n}
    got["peak"] = (said["peak"]["bytes"], said["peak"]["time_ns"] if said["peak"]["bytes"] else 0)
    got["left"] = (live["blocks"], live["bytes"], live["inherited_blocks"], live["inherited_bytes"])
    # Which frees without a block are double frees is a matter of memory; stacks are not replayed here.
    got["contradictions"] = {name: n for name, n in found.items()
                             if n and name not in ("double_free", "unknown_free", "stack_undefined")}
    if found["double_free"] + found["unknown_free"]:
        got["contradictions"]["no_block"] = found["double_free"] + found["unknown_free"]
    differ = [f"{key}: counted {wanted[key]}, said {got.get(key)}" for key in wanted
              if wanted[key] != got.get(key)]
    pairs = zip(lives, map(of_json, said["processes"]))
    differ += [f"pid {one['pid']}: {key}: counted {one[key]}, said {other[key]}"
               for one, other in pairs for key in one if one[key] != other[key]]
    print("\n".join(differ[:40]))
    print(f"{wanted['events']} events, {len(lives)} processes, {len(differ)} figures differ")
    return bool(differ)


sys.exit(main())
