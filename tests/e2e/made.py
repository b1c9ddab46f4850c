# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes artifacts for the tests of the comparison.

usage: made.py from-counter COUNTER ARTIFACT    one that agrees with the counter's numbers
       made.py doctor HOW ARTIFACT CHANGED      the same with one fault, see FAULTS
"""
import sys

import artifact


class Maker:
    """Events of one thread a process, with addresses that never repeat."""

    def __init__(self):
        self.events = []
        self.address = 0x10000

    def add(self, pid, kind, **fields):
        event = {"pid": pid, "tid": pid, "timestamp": 1000 + len(self.events), "addr": fields.pop("addr", 0)}
        event["type"] = kind
        event.update(fields)
        self.events.append(event)

    def allocations(self, pid, kind, calls, size_sum, live):
        for index in range(calls):
            size = size_sum // calls + (size_sum % calls if index == 0 else 0)
            self.address += 64
            old = {"old_addr": 0} if kind == "Realloc" else {}
            self.add(pid, kind, addr=self.address, **old, size=size)
            live.append(self.address)


def from_counter(counter, path):
    maker = Maker()
    for slot in artifact.slots(counter):
        pid, live = slot["pid"], []
        maker.add(pid, "Exec")
        for kind, name in artifact.ALLOCATIONS.items():
            maker.allocations(pid, kind, slot["calls"][name], slot["bytes"][name], live)
        for address in live[: slot["calls"]["free"]]:
            maker.add(pid, "Free", addr=address)
    artifact.write(path, maker.events)


def last(events, kind):
    """The last one: the first may belong to an image that the counter did not see."""
    return next(index for index in range(len(events) - 1, -1, -1) if events[index]["type"] == kind)


def drop(kind):
    return lambda events: events.pop(last(events, kind))


def twice(kind):
    def change(events):
        at = last(events, kind)
        events.insert(at, dict(events[at]))
    return change


def change_field(kind, field, by):
    def change(events):
        event = events[last(events, kind)]
        event[field] += by
    return change


def time_back(events):
    """To when the machine started: below every other time, whatever its uptime."""
    events[last(events, "Free")]["timestamp"] = 1


def swap(events):
    """A free before its allocation."""
    free = last(events, "Free")
    address = events[free]["addr"]
    born = next(i for i in range(free - 1, -1, -1)
                if events[i]["addr"] == address and events[i]["type"] in artifact.ALLOCATIONS)
    times = [events[born]["timestamp"], events[free]["timestamp"]]
    events[born], events[free] = events[free], events[born]
    events[born]["timestamp"], events[free]["timestamp"] = times


def split(events):
    """A realloc told as its two halves: that is no fault."""
    at = next(i for i, event in enumerate(events) if event["type"] == "Realloc" and event["old_addr"])
    old = events[at].pop("old_addr")
    events.insert(at, {key: events[at][key] for key in ("pid", "tid", "timestamp")} | {"addr": old, "type": "Free"})


FAULTS = {
    "none": lambda events: None,
    "split": split,
    "malloc-missing": drop("Malloc"),
    "free-missing": drop("Free"),
    "malloc-twice": twice("Malloc"),
    "free-twice": twice("Free"),
    "one-byte-more": change_field("Malloc", "size", 1),
    "other-process": change_field("Malloc", "pid", 1),
    "time-back": time_back,
    "free-first": swap,
}


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["from-counter"] and len(arguments) == 3:
        from_counter(*arguments[1:])
    elif arguments[:1] == ["doctor"] and len(arguments) == 4 and arguments[1] in FAULTS:
        events = list(artifact.events(arguments[2]))
        FAULTS[arguments[1]](events)
        artifact.write(arguments[3], events)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
