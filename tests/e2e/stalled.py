#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""stalled.py FOLDER LAUNCHER... -o FILE -- COMMAND...: runs the launcher with a terminal that nobody
reads in place of FILE, until the command makes FOLDER/read; from then on it is read into FILE.
FOLDER/peak says how much private memory (RssAnon, KiB) the sidecar had at most before that, and
FOLDER/descriptors how many descriptors. The status is the launcher's."""
import os
import re
import subprocess
import sys
import time
import tty

folder, arguments = sys.argv[1], sys.argv[2:]
begin = os.path.join(folder, "read")
if os.path.exists(begin):
    os.unlink(begin)
at = arguments.index("-o") + 1
terminal, other_end = os.openpty()
tty.setraw(other_end)
os.set_blocking(terminal, False)


def private_kib(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            found = re.search(r"^RssAnon:\s*(\d+) kB", status.read(), re.MULTILINE)
    except OSError:
        return 0
    return int(found.group(1)) if found else 0


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


with open(arguments[at], "wb") as out:
    arguments[at] = os.ttyname(other_end)

    def read_on():
        """Whether anything was there."""
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:
            return False
        out.write(part)
        return bool(part)

    peak, most = 0, 0
    process = subprocess.Popen(arguments)
    while process.poll() is None and not os.path.exists(begin):
        peak = max(peak, private_kib(process.pid))
        most = max(most, descriptors(process.pid))
        time.sleep(0.005)
    for name, value in ("peak", peak), ("descriptors", most):
        with open(os.path.join(folder, name), "w") as told:
            print(value, file=told)
    while process.poll() is None:
        if not read_on():
            time.sleep(0.001)
    while read_on():
        pass
sys.exit(process.returncode if process.returncode >= 0 else 128 - process.returncode)
