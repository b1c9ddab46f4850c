#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Mutants: small defects put into a copy of the sources, each with the test that has to turn red.

run.py SOURCES BUILD FOLDER   all mutants, or those that MUTANTS (a regular expression) finds in
                              "TEST: WHAT IS BROKEN"; the copies and their builds stay in FOLDER
run.py --lint SOURCES         no build: is each entry well formed, does it still change its files?
run.py --until-red SECONDS COMMAND...   a test, ended at its first red case; 124 when it takes too long

More settings are MUTANTS_JOBS, how many are tried at once, each in a copy of its own; MUTANTS_LOG, a
file to which verdicts are added, and what has one there is not tried again; MUTANTS_SECONDS, after
which no other is begun. With the last two a run can be had in pieces; a new run needs a new log.

Prints TAP. tests/mutants/*.mutants hold the entries, apart by empty lines; # starts a comment:

    test: tests/e2e/kind37_own_names.sh     the test that must fail
    breaks: a failed exec loses the stream  what is broken, in plain words
    file: preload/follow.c                  the file to change ...
    sed: s/old/new/                         ... and how; more of both may follow
    hang: yes                               only where the test may find it by never ending
    long: yes                               as make check-long runs the test
"""
import ctypes
import fcntl
import filecmp
import glob
import multiprocessing
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_SECONDS = 100  # a test takes ten on a quiet machine
PR_SET_CHILD_SUBREAPER = 36
# What bootstrap, configure and make leave in a source folder: not copied again once it was.
COPIED = {".c", ".h", ".cc", ".sh", ".py", ".map", ".in", ".mk", ".am", ".ac", ".m4", ".1"}


class Rotten(Exception):
    """An entry that can not be used, and why."""


class Mutant:
    def __init__(self, place, lines):
        self.place, self.test, self.breaks, self.edits = place, "", "", []
        self.hang = self.long = False
        for line in lines:
            key, colon, value = line.partition(": ")
            if key == "test":
                self.test = value
            elif key == "breaks":
                self.breaks = value
            elif key in ("hang", "long") and value == "yes":
                setattr(self, key, True)
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
        os.makedirs(os.path.dirname(folder), exist_ok=True)
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
        return [name for name in names if name == ".git" or f"{folder}/{name}" == os.path.dirname(self.folder)
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

    def tested(self, mutant):
        """(status, lines of TAP) of its test, run as make check runs it. 0: passed; None: never ends."""
        test, more = mutant.test, {"MT_LONG": "1"} if mutant.long else {}
        result = f"{self.build}/{test.removesuffix('.sh')}"
        for end in (".log", ".trs"):
            if os.path.exists(result + end):
                os.unlink(result + end)
        limit = f"{sys.executable} {os.path.abspath(__file__)} --until-red {LIMIT_SECONDS}"
        with tempfile.TemporaryDirectory(prefix="mt-mutant.") as scratch:
            os.chmod(scratch, 0o1777)  # some tests become other users
            _, output = self.call(self.build, "make", "-s", f"LOG_COMPILER={limit}",
                                  f"SH_LOG_COMPILER={limit} sh", f"{result[len(self.build) + 1:]}.log",
                                  seconds=LIMIT_SECONDS + 30, TMPDIR=scratch, **more)
        if not os.path.exists(f"{result}.trs"):
            return None, output.splitlines()
        with open(f"{result}.trs", encoding="utf-8") as file:
            passed = re.search("^:global-test-result: (PASS|SKIP)$", file.read(), re.MULTILINE)
        with open(f"{result}.log", encoding="utf-8", errors="replace") as file:
            output = file.read()
        if "exited with status 124" in output:
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


def until_red(seconds, command):
    """Runs a test and passes on what it prints. At the first red case the verdict is known: no more is run."""
    def late(number, frame):
        raise TimeoutError

    process = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=os.setpgrp)
    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        for line in process.stdout:
            os.write(1, line)
            if line.startswith(b"not ok"):
                return 1
        status = process.wait()
        return status if status >= 0 else 128 - status
    except TimeoutError:
        return 124
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


class Log:
    """The verdicts of earlier runs: on mutants, and on tests without a defect."""

    def __init__(self, path):
        self.path, self.verdicts = path, {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for verdict, _, what in (line.rstrip("\n").split("\t") for line in file if line[0] != "#"):
                    self.verdicts[what] = verdict == "ok"

    def add(self, good, seconds, what, lines=()):
        if self.path:
            text = "".join(f"# {line}\n" for line in lines)
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(f"{'ok' if good else 'not ok'}\t{seconds}\t{what}\n{text}")


class Judge:
    """Tries the mutants of a test, one after the other, in a tree of its own."""

    def __init__(self, tree, log):
        self.tree, self.log, self.sound = tree, log, {}

    def is_sound(self, mutant):
        """Whether its test runs and passes without the defect: "", or why not."""
        test = mutant.test + (" long" if mutant.long else "")
        if self.log.verdicts.get(test):
            return ""
        if test not in self.sound:
            begun = time.monotonic()
            made, output = self.tree.made()
            status, lines = self.tree.tested(mutant) if made else (1, output.splitlines()[-20:])
            if any(re.match(r"1\.\.0\b", line) for line in lines):
                self.sound[test] = "SKIP " + lines[-1].partition("# SKIP ")[2]
            else:
                self.sound[test] = "" if made and status == 0 else "\n".join(
                    ["the test fails without the defect"] + (red(lines) or lines[-20:]))
            self.log.add(not self.sound[test], round(time.monotonic() - begun), test)
        return self.sound[test]

    def judge(self, mutant):
        """(good, what to say, more lines)"""
        why = self.is_sound(mutant)
        if why.startswith("SKIP"):
            return True, f"{mutant.name} # {why}", []
        if why:
            return False, mutant.name, why.splitlines()
        for path, text in mutant.changed(self.tree.sources):
            self.tree.write(path, text)
        made, output = self.tree.made()
        if not made:
            return False, f"{mutant.name} (does not build)", output.splitlines()[-20:]
        status, lines = self.tree.tested(mutant)
        cases = red(lines)
        if cases:
            return True, f"{mutant.name} (red)", cases
        if status is None:
            return mutant.hang, f"{mutant.name} (never ends)", lines[-5:]
        return False, f"{mutant.name} (survives)", [f"{mutant.place}, status {status}"] + lines[-5:]

    def verdict(self, mutant):
        try:
            return self.judge(mutant)
        except (Rotten, OSError) as error:
            return False, f"{mutant.name}: {error}", []
        finally:
            self.tree.put_back()


class Score:
    """Shared by the processes that try mutants: which test is next, and what was printed."""

    def __init__(self):
        self.lock = multiprocessing.Lock()
        self.next, self.count, self.failed = (multiprocessing.Value("i", 0, lock=False) for _ in range(3))

    def take(self):
        with self.lock:
            self.next.value += 1
            return self.next.value - 1

    def say(self, good, text, lines=()):
        with self.lock:
            self.count.value += 1
            self.failed.value += not good
            print(f"{'' if good else 'not '}ok {self.count.value} - {text}")
            for line in lines:
                print(f"# {line}")
            sys.stdout.flush()


def work(tree_of, groups, score):
    """One of the processes: takes the mutants of one test after the other."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    end = time.monotonic() + float(os.environ.get("MUTANTS_SECONDS") or "inf")
    log = Log(os.environ.get("MUTANTS_LOG"))
    judge = Judge(Tree(*tree_of), log)
    made, output = judge.tree.made()
    if not made:
        return score.say(False, "the unbroken tree is built", output.splitlines()[-20:])
    while (number := score.take()) < len(groups):
        for mutant in groups[number]:
            begun = time.monotonic()
            if begun < end:
                good, text, lines = judge.verdict(mutant)
                log.add(good, round(time.monotonic() - begun), mutant.name, [text] + lines)
                score.say(good, text, lines)
    made, output = judge.tree.made()
    if not made:
        score.say(False, "the unbroken tree is built again", output.splitlines()[-20:])


def main(*places):
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    sources, build, folder = (os.path.abspath(place) for place in places)
    wanted, log, groups = re.compile(os.environ.get("MUTANTS", "")), Log(os.environ.get("MUTANTS_LOG")), {}
    mutants = [Mutant(place, lines) for place, lines in entries(sources)]
    mutants = [mutant for mutant in mutants if wanted.search(mutant.name)]
    score, jobs = Score(), int(os.environ.get("MUTANTS_JOBS") or 1)
    for mutant in mutants:
        if mutant.name not in log.verdicts:
            groups.setdefault(mutant.test, []).append(mutant)
        elif not log.verdicts[mutant.name]:
            score.say(False, f"{mutant.name} (by the log)")
    workers = [multiprocessing.Process(
        target=work, daemon=True,  # ended with us
        args=((sources, build, f"{folder}/{job}"), [groups[test] for test in sorted(groups)], score))
        for job in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    score.say(bool(mutants) and not any(worker.exitcode for worker in workers),
              f"{len(mutants)} mutants, {sum(map(len, groups.values()))} of them not in the log before")
    print(f"1..{score.count.value}")
    return score.failed.value != 0


if __name__ == "__main__":
    if sys.argv[1] == "--lint":
        sys.exit(lint(sys.argv[2]))
    if sys.argv[1] == "--until-red":
        sys.exit(until_red(int(sys.argv[2]), sys.argv[3:]))
    sys.exit(main(*sys.argv[1:]))
