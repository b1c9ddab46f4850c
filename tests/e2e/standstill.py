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
import tty

folder, arguments = sys.argv[1], sys.argv[2:]
half, go = os.path.join(folder, "half"), os.path.join(folder, "go")
for path in half, go:
    if os.path.exists(path):
        os.unlink(path)
at = arguments.index("-o") + 1
terminal, other_end = os.openpty()
tty.setraw(other_end)
os.set_blocking(terminal, False)
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

    start = time.monotonic()
    process = subprocess.Popen(arguments)
    while process.poll() is None and not os.path.exists(half):
        time.sleep(0.005)
    with open(half + "_ms", "w") as took:
        print(int((time.monotonic() - start) * 1000), file=took)
    # All that had piled up is out when nothing came for a while.
    quiet = time.monotonic()
    while process.poll() is None:
        if read_on():
            quiet = time.monotonic()
            continue
        if time.monotonic() - quiet > 0.5 and not os.path.exists(go):
            open(go, "w").close()
        time.sleep(0.002)
    while read_on():
        pass
sys.exit(process.returncode if process.returncode >= 0 else 128 - process.returncode)
