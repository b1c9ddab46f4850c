#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""standstill.py FOLDER LAUNCHER... -o FILE -- COMMAND...: runs the launcher with a terminal that
nobody reads in place of FILE, until the command makes FOLDER/half; FOLDER/half_ms says how long that
took. From then on the terminal is read into FILE, and FOLDER/go tells the command to go on. The
status is the launcher's."""
import os
import subprocess
import sys
import time
import watched

folder, arguments = sys.argv[1], sys.argv[2:]
half, go = os.path.join(folder, "half"), os.path.join(folder, "go")
watched.forget(half, go)
output = watched.LateReader(arguments)
start = time.monotonic()
process = subprocess.Popen(arguments)
while process.poll() is None and not os.path.exists(half):
    time.sleep(0.005)
watched.say(half + "_ms", int((time.monotonic() - start) * 1000))
# All that had piled up is out when nothing came for a while.
quiet = time.monotonic()
while process.poll() is None:
    if output.read_on():
        quiet = time.monotonic()
        continue
    if time.monotonic() - quiet > 0.5 and not os.path.exists(go):
        open(go, "w").close()
    time.sleep(0.002)
output.finish()
sys.exit(watched.status_of(process))
