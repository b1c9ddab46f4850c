#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Mutants: small defects put into a copy of the sources, each with the test that has to turn red.

run.py SOURCES BUILD FOLDER   all mutants, or those that MUTANTS (a regular expression) finds in
                              "TEST: WHAT IS BROKEN"; the copy and its build stay in FOLDER
run.py --lint SOURCES         no build: is each entry well formed, does it still change its files?

Prints TAP. tests/mutants/*.mutants hold the entries, apart by empty lines; # starts a comment:

    test: tests/e2e/kind37_own_names.sh     the test that must fail
    breaks: a failed exec loses the stream  what is broken, in plain words
    file: preload/follow.c                  the file to change ...
    sed: s/old/new/                         ... and how; more of both may follow
    hang: yes                               only where the test may find it by never ending
"""
import ctypes
import fcntl
import filecmp
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

LIMIT_SECONDS = 100  # a test takes ten on a quiet machine
PR_SET_CHILD_SUBREAPER = 36
# What bootstrap, configure and make leave in a source folder: not copied again once it was.
COPIED = {".c", ".h", ".cc", ".sh", ".py", ".map", ".in", ".mk", ".am", ".ac", ".m4"}


class Rotten(Exception):
    """An entry that can not be used, and why."""


class Mutant:
    def __init__(self, place, lines):
        self.place, self.test, self.breaks, self.hang, self.edits = place, "", "", False, []
        for line in lines:
            key, colon, value = line.partition(": ")
            if key == "test":
                self.test = value
            elif key == "breaks":
                self.breaks = value
            elif key == "hang" and value == "yes":
                self.hang = True
            elif key == "file":
                self.edits.append((value, []))
            elif key == "sed" and self.edits:
                self.edits[-1][1].append(value)
            else:
                raise Rotten(f"{place}: what is this: {line}")

    @property
    def name(self):
        return f"{os.path.basename(self.test).removesuffix('.sh')}: {self.breaks}"

    def changed(self, sources):
        """The changed files, path and content; none of them as it was."""
        if not (self.test and self.breaks and self.edits):
            raise Rotten(f"{self.place}: test, breaks or file is missing")
        if not os.path.isfile(f"{sources}/{self.test}{'' if self.test.endswith('.sh') else '.c'}"):
            raise Rotten(f"{self.place}: there is no {self.test}")
        for path, scripts in self.edits:
            yield path, self.edited(f"{sources}/{path}", scripts)

    def edited(self, path, scripts):
        """Each script has to change something: of two that rotted the second would hide the first."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for script in scripts:
            done = subprocess.run(["sed", "-e", script], input=text, text=True, capture_output=True)
            if done.returncode != 0 or done.stdout == text:
                raise Rotten(f"{self.place}: changes nothing: {script} {done.stderr.strip()}")
            text = done.stdout
        if not scripts:
            raise Rotten(f"{self.place}: no sed after {path}")
        return text


def entries(sources):
    """(place, lines) of each entry."""
    for path in sorted(glob.glob(f"{sources}/tests/mutants/*.mutants")):
        lines = []
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(list(file) + ["\n"], 1):
                line = line.rstrip("\n")
                if line and not line.startswith("#"):
                    lines.append(line)
                elif not line and lines:
                    yield f"{os.path.basename(path)}:{number - len(lines)}", lines
                    lines = []


def lint(sources):
    count, bad = 0, 0
    for place, lines in entries(sources):
        count += 1
        try:
            dict(Mutant(place, lines).changed(sources))
        except (Rotten, OSError) as error:
            bad += 1
            print(f"not ok {bad} - mutants: {error}")
    print(f"{'not ' if count == 0 else ''}ok {bad + 1} - mutants: {count} entries, {bad} rotten")
    print(f"1..{bad + 1}")
    return bad != 0 or count == 0


class Tree:
    """A copy of the sources and its build. What differs from the sources is made anew by make."""

    def __init__(self, sources, build, folder):
        self.original, self.folder = sources, folder
        self.lock = open(f"{folder}.lock", "w", encoding="ascii")
        fcntl.flock(self.lock, fcntl.LOCK_EX)  # until we end
        self.sources, self.build = f"{folder}/src", f"{folder}/build"
        if not os.path.exists(f"{self.build}/Makefile"):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(sources, self.sources, symlinks=True, ignore=self.not_sources)
            if os.path.exists(f"{self.sources}/config.status"):
                self.call(self.sources, "make", "-s", "distclean")
            os.makedirs(self.build)
            options = subprocess.check_output([f"{build}/config.status", "--config"], text=True)
            # A defect may leave something unused.
            self.call(self.build, f"{self.sources}/configure", "-q", *shlex.split(options), "--disable-werror")
        self.put_back()

    def not_sources(self, folder, names):
        """Git's own, and build folders in the source folder."""
        return [name for name in names if name == ".git" or f"{folder}/{name}" == self.folder
                or os.path.exists(f"{folder}/{name}/config.status")]

    def put_back(self):
        """Every source as it is in the original, with a new time where it was not: make sees that."""
        for folder, folders, names in os.walk(self.original):
            for name in self.not_sources(folder, folders):
                folders.remove(name)
            there = self.sources + folder[len(self.original):]
            os.makedirs(there, exist_ok=True)
            for name in names:
                old, new = f"{folder}/{name}", f"{there}/{name}"
                if os.path.splitext(name)[1] in COPIED and not (
                        os.path.exists(new) and filecmp.cmp(old, new, shallow=False)):
                    shutil.copy(old, new)

    def write(self, path, text):
        with open(f"{self.sources}/{path}", "w", encoding="utf-8") as file:
            file.write(text)

    def call(self, folder, *command, seconds=1800, **more):
        """(status, output); the status is None when it takes too long. No process is left of it."""
        environ = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MUTANTS")}
        environ.update(more)
        with tempfile.TemporaryFile(mode="w+", errors="replace") as output:
            process = subprocess.Popen(command, cwd=folder, env=environ, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output, start_new_session=True)
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                end_children()
            output.seek(0)
            return status, output.read()

    def made(self):
        status, output = self.call(self.build, "make", "-s", f"-j{os.cpu_count()}", "mutants-build")
        return status == 0, output

    def tested(self, test):
        """(status, lines of TAP) of the test, run as make check runs it. 0: passed; None: never ends."""
        result = f"{self.build}/{test.removesuffix('.sh')}"
        for end in (".log", ".trs"):
            if os.path.exists(result + end):
                os.unlink(result + end)
        limit = f"timeout -k 5 {LIMIT_SECONDS}"  # so the log has what came before
        with tempfile.TemporaryDirectory(prefix="mt-mutant.") as scratch:
            os.chmod(scratch, 0o755)  # some tests become other users
            _, output = self.call(self.build, "make", "-s", f"LOG_COMPILER={limit}",
                                  f"SH_LOG_COMPILER={limit} sh", f"{result[len(self.build) + 1:]}.log",
                                  seconds=LIMIT_SECONDS + 30, TMPDIR=scratch)
        if not os.path.exists(f"{result}.trs"):
            return None, output.splitlines()
        with open(f"{result}.trs", encoding="utf-8") as file:
            passed = re.search("^:global-test-result: (PASS|SKIP)$", file.read(), re.MULTILINE)
        with open(f"{result}.log", encoding="utf-8", errors="replace") as file:
            output = file.read()
        if re.search("exited with status (124|137)", output):
            return None, output.splitlines()
        return 0 if passed else 1, output.splitlines()


def end_children():
    """Ends what a test left running, all of it ours: this process is the reaper of its descendants."""
    while True:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            children = [int(word) for word in file.read().split()]
        if not children:
            return
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def red(lines):
    return [line for line in lines if line.startswith("not ok")]


class Verdicts:
    def __init__(self, tree):
        self.tree, self.sound, self.count, self.failed = tree, {}, 0, 0

    def say(self, good, text, lines=()):
        self.count += 1
        self.failed += not good
        print(f"{'' if good else 'not '}ok {self.count} - {text}")
        for line in lines:
            print(f"# {line}")
        sys.stdout.flush()

    def is_sound(self, test):
        """Whether the test runs and passes without a defect: "", or why not."""
        if test not in self.sound:
            made, output = self.tree.made()
            status, lines = self.tree.tested(test) if made else (1, output.splitlines()[-20:])
            if any(re.match(r"1\.\.0\b", line) for line in lines):
                self.sound[test] = "SKIP " + lines[-1].partition("# SKIP ")[2]
            else:
                self.sound[test] = "" if made and status == 0 else "\n".join(
                    ["the test fails without the defect"] + (red(lines) or lines[-20:]))
        return self.sound[test]

    def judge(self, mutant):
        why = self.is_sound(mutant.test)
        if why.startswith("SKIP"):
            return self.say(True, f"{mutant.name} # {why}")
        if why:
            return self.say(False, mutant.name, why.splitlines())
        for path, text in mutant.changed(self.tree.sources):
            self.tree.write(path, text)
        made, output = self.tree.made()
        if not made:
            return self.say(False, f"{mutant.name} (does not build)", output.splitlines()[-20:])
        status, lines = self.tree.tested(mutant.test)
        cases = red(lines)
        if cases:
            return self.say(True, f"{mutant.name} ({len(cases)} cases red)", cases[:5])
        if status is None:
            return self.say(mutant.hang, f"{mutant.name} (never ends)", lines[-5:])
        return self.say(False, f"{mutant.name} (survives)", [f"{mutant.place}, status {status}"])


def main(sources, build, folder):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    wanted = re.compile(os.environ.get("MUTANTS", ""))
    mutants = [Mutant(place, lines) for place, lines in entries(sources)]
    mutants = [mutant for mutant in mutants if wanted.search(mutant.name)]
    tree = Tree(os.path.abspath(sources), os.path.abspath(build), os.path.abspath(folder))
    verdicts = Verdicts(tree)
    for mutant in sorted(mutants, key=lambda mutant: mutant.test):
        try:
            verdicts.judge(mutant)
        except (Rotten, OSError) as error:
            verdicts.say(False, f"{mutant.name}: {error}")
        finally:
            tree.put_back()
    made, output = tree.made()
    verdicts.say(made and bool(mutants), f"{len(mutants)} mutants; the unbroken tree is built again",
                 [] if made else output.splitlines()[-20:])
    print(f"1..{verdicts.count}")
    return verdicts.failed != 0


if __name__ == "__main__":
    sys.exit(lint(sys.argv[2]) if sys.argv[1] == "--lint" else main(*sys.argv[1:]))
