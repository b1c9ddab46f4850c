#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memory.py [--stalled-output] FILE COMMAND...: runs the command and writes the highest private
memory (RssAnon, KiB) that its process had into FILE; its status is the command's. The kernel keeps a
high-water mark only for private and shared memory together (VmHWM), and the mapped buffers are not
the question here, so this looks every few milliseconds.

With --stalled-output what follows -o is replaced by a terminal that nobody reads for a second."""
import os
import re
import subprocess
import sys
import time
import tty

STALL_S = 1.0


def private_kib(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            found = re.search(r"^RssAnon:\s*(\d+) kB", status.read(), re.MULTILINE)
    except OSError:
        return 0
    return int(found.group(1)) if found else 0


def read_away(terminal):
    try:
        while os.read(terminal, 1 << 16):
            pass
    except (BlockingIOError, OSError):
        pass  # nothing there now


arguments = sys.argv[1:]
terminal = None
if arguments[0] == "--stalled-output":
    arguments = arguments[1:]
    terminal, other_end = os.openpty()
    tty.setraw(other_end)
    os.set_blocking(terminal, False)
    arguments[arguments.index("-o") + 1] = os.ttyname(other_end)
peak = 0
start = time.monotonic()
process = subprocess.Popen(arguments[1:])
while process.poll() is None:
    peak = max(peak, private_kib(process.pid))
    if terminal is not None and time.monotonic() - start > STALL_S:
        read_away(terminal)
    else:
        time.sleep(0.003)
with open(arguments[0], "w") as out:
    print(peak, file=out)
sys.exit(process.returncode if process.returncode >= 0 else 128 - process.returncode)
