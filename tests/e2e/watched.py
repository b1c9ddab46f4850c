# SPDX-License-Identifier: MIT OR Apache-2.0
"""What memory.py, stalled.py and standstill.py share: an output that is read late, and what a
process holds."""
import os
import re
import tty


class LateReader:
    """A terminal in place of the FILE behind -o in ARGUMENTS (which is changed). It takes a few KiB;
    then who writes has to wait until read_on() passes on what is there to FILE."""

    def __init__(self, arguments, keep=True):
        at = arguments.index("-o") + 1
        self._terminal, self._writers = os.openpty()
        tty.setraw(self._writers)
        os.set_blocking(self._terminal, False)
        self._out = open(arguments[at] if keep else os.devnull, "wb")
        arguments[at] = os.ttyname(self._writers)

    def read_on(self):
        """Whether anything was there."""
        try:
            part = os.read(self._terminal, 1 << 16)
        except OSError:
            return False
        self._out.write(part)
        return bool(part)

    def finish(self):
        while self.read_on():
            pass
        self._out.close()


def private_kib(pid):
    """RssAnon; 0 when the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as status:
            found = re.search(r"^RssAnon:\s*(\d+) kB", status.read(), re.MULTILINE)
    except OSError:
        return 0
    return int(found.group(1)) if found else 0


def descriptors(pid):
    """How many are open; 0 when the process is gone."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def say(path, value):
    """Writes VALUE, and a line end, into the file."""
    with open(path, "w") as told:
        print(value, file=told)


def forget(*paths):
    """Removes what an earlier run left."""
    for path in paths:
        if os.path.exists(path):
            os.unlink(path)


def status_of(process):
    """Of an ended process, as a shell gives it."""
    return process.returncode if process.returncode >= 0 else 128 - process.returncode
