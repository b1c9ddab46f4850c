#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memory.py [--stalled-output] FILE COMMAND...: runs the command and writes the highest private
memory (RssAnon, KiB) that its process had into FILE; its status is the command's. The kernel keeps a
high-water mark only for private and shared memory together (VmHWM), and the mapped buffers are not
the question here, so this looks every few milliseconds.

With --stalled-output what follows -o is replaced by a terminal that nobody reads for a second; what
is read then is not kept."""
import subprocess
import sys
import time
import watched

STALL_S = 1.0

arguments = sys.argv[1:]
output = None
if arguments[0] == "--stalled-output":
    arguments = arguments[1:]
    output = watched.LateReader(arguments, keep=False)
peak = 0
start = time.monotonic()
process = subprocess.Popen(arguments[1:])
while process.poll() is None:
    peak = max(peak, watched.private_kib(process.pid))
    read = output is not None and time.monotonic() - start > STALL_S and output.read_on()
    if not read:
        time.sleep(0.003)
watched.say(arguments[0], peak)
sys.exit(watched.status_of(process))
