# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kills the tracked program, or the sidecar, at random moments, and compares with the program's count.
idle: the sidecar of a program that records so little that no frame ever fills.

killed.py target|sidecar|idle ROUNDS LAUNCHER MEMTRACK TALLY FOLDER: TAP lines without a plan; `not ok` with the
round's seed when a record is missing or too many.
"""
import os
import random
import signal
import struct
import subprocess
import sys
import time

import artifact

THREADS = 8
SLICES = 1024
PAGE = struct.Struct(f"=3Q{THREADS * 8}Q{SLICES}Q")
LAST_SECOND = 1.3  # a flush a second, and the way to the disk on a busy machine


class Tally:
    def __init__(self, path):
        with open(path, "rb") as file:
            words = PAGE.unpack(file.read(PAGE.size))
        self.pid, self.start_ns, self.ended = words[:3]
        self.taken = [words[3 + 8 * t] for t in range(THREADS)]
        self.given = [words[4 + 8 * t] for t in range(THREADS)]
        self.taken_at = words[3 + 8 * THREADS:]

    def taken_by(self, age):
        """How many thread 0 had taken `age` seconds after its start; not less than it says."""
        return max(self.taken_at[:max(0, int(age * 100))], default=0)


def started(path, process):
    """The program's pid, when it has begun."""
    while process.poll() is None:
        try:
            pid = Tally(path).pid
        except (OSError, struct.error):
            pid = 0
        if pid:
            return pid
        time.sleep(0.001)
    raise SystemExit("the program did not start")


def recorded(path, pid):
    """Allocations and frees of each thread's size; frees of blocks that are not live count as wrong."""
    taken, given, live, wrong = [0] * THREADS, [0] * THREADS, {}, 0
    for event in artifact.events(path):
        if event["pid"] != pid:
            continue
        kind = event["type"]
        if kind == "Malloc" and 5000 <= event["size"] < 5000 + THREADS:
            thread = event["size"] - 5000
            taken[thread] += 1
            wrong += event["addr"] in live
            live[event["addr"]] = thread
        elif kind == "Free" and event["addr"] in live:
            given[live.pop(event["addr"])] += 1
    return taken, given, wrong


def run(launcher, tally, folder, *arguments):
    for name in ("run", "page"):
        if os.path.exists(f"{folder}/{name}"):
            os.unlink(f"{folder}/{name}")
    return subprocess.Popen([launcher, "-q", "-o", f"{folder}/run", "--", tally, f"{folder}/page",
                             *map(str, arguments)])


def kill_target(launcher, memtrack, tally, folder, chance):
    threads = chance.choice((1, 1, 2, 4))
    process = run(launcher, tally, folder, threads, 0)
    pid = started(f"{folder}/page", process)
    time.sleep(chance.uniform(0, 0.06))
    os.kill(pid, signal.SIGKILL)
    status = process.wait()
    if status not in (-9, 137):
        return f"status {status}"
    if subprocess.run([memtrack, "verify", f"{folder}/run"], stdout=subprocess.DEVNULL).returncode:
        return "verify is not clean"
    page = Tally(f"{folder}/page")
    taken, given, wrong = recorded(f"{folder}/run", pid)
    for thread in range(threads):
        if taken[thread] - page.taken[thread] not in (0, 1) or page.given[thread] - given[thread] not in (0, 1):
            return (f"thread {thread}: {taken[thread]} and {given[thread]} recorded, "
                    f"{page.taken[thread]} and {page.given[thread]} done")
    return f"{wrong} taken while live" if wrong else ""


def sidecar_killed(memtrack, folder, process, seconds):
    """Kills the sidecar after that time; returns what is wrong, the program's page, its age then."""
    started(f"{folder}/page", process)
    time.sleep(seconds)
    age = time.monotonic() - Tally(f"{folder}/page").start_ns / 1e9
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while not Tally(f"{folder}/page").ended:
        if time.monotonic() > deadline:
            return "the program did not go on to its end", None, age
        time.sleep(0.02)
    page = Tally(f"{folder}/page")
    said = subprocess.run([memtrack, "stat", f"{folder}/run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if said.returncode not in (0, 3) or "closed" not in said.stdout:
        return f"stat: {said.returncode}: {said.stdout[:200]}", page, age
    # A cut file is read as far as it is whole.
    dump = subprocess.run(f"'{memtrack}' dump --type Malloc '{folder}/run' 2>/dev/null | grep -c '\"size\":5000[,}}]'",
                          shell=True, stdout=subprocess.PIPE, text=True)
    got, want = int(dump.stdout), page.taken_by(age - LAST_SECOND)
    why = f"{got} recorded when killed at {age:.2f} s, {want} taken {LAST_SECOND} s before" if got < want else ""
    return why, page, age


def kill_sidecar(launcher, memtrack, tally, folder, chance):
    why, page, age = sidecar_killed(memtrack, folder, run(launcher, tally, folder, 2, 4000), chance.uniform(1.2, 2.0))
    if why:
        return why
    before = page.taken_by(age) / age
    after = (page.taken_by(3.9) - page.taken_by(3.4)) / 0.5
    return "" if after > before / 4 else f"{after:.0f} blocks a second at the end, {before:.0f} before the kill"


def kill_idle(launcher, memtrack, tally, folder, chance):
    return sidecar_killed(memtrack, folder, run(launcher, tally, folder, 1, 2600, 50000), chance.uniform(1.8, 2.4))[0]


def main():
    what, rounds = sys.argv[1], int(sys.argv[2])
    one = {"target": kill_target, "sidecar": kill_sidecar, "idle": kill_idle}[what]
    seed = int.from_bytes(os.urandom(4), "little")
    for number in range(rounds):
        why = one(*sys.argv[3:], random.Random(seed + number))
        if why:
            print(f"not ok - {what} killed at any moment: round {number} of seed {seed}: {why}", flush=True)
            return 1
    print(f"ok - {what} killed at any moment, {rounds} times", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
