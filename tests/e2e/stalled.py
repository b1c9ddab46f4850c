#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""stalled.py FOLDER LAUNCHER... -o FILE -- COMMAND...: runs the launcher with a terminal that nobody
reads in place of FILE, until the command makes FOLDER/read; from then on it is read into FILE.
FOLDER/peak says how much private memory (RssAnon, KiB) the sidecar had at most before that, and
FOLDER/descriptors how many descriptors. The status is the launcher's."""
import os
import subprocess
import sys
import time
import watched

folder, arguments = sys.argv[1], sys.argv[2:]
begin = os.path.join(folder, "read")
watched.forget(begin)
output = watched.LateReader(arguments)
peak, most = 0, 0
process = subprocess.Popen(arguments)
while process.poll() is None and not os.path.exists(begin):
    peak = max(peak, watched.private_kib(process.pid))
    most = max(most, watched.descriptors(process.pid))
    time.sleep(0.005)
watched.say(os.path.join(folder, "peak"), peak)
watched.say(os.path.join(folder, "descriptors"), most)
while process.poll() is None:
    if not output.read_on():
        time.sleep(0.001)
output.finish()
sys.exit(watched.status_of(process))
