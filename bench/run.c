// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Whole runs: a program bare, under memtrack-preload, and under heaptrack where it is installed, in
 * turns, so that a machine whose speed drifts drifts for all of them.
 *
 *   run MEMTRACK_PRELOAD BENCH_PAIRS [CASE ...]
 *
 * For each case it prints the wall time's median, minimum and maximum for each way, and the ratio
 * to bare; cases of a known number of pairs also give nanoseconds a pair over bare. The table goes
 * to stderr, one JSON line a row to stdout.
 *
 * The time of a run is from fork to the end of the child as wait(2) sees it, so it includes all
 * that the tool does before and after the program. What the programs print goes to /dev/null. Case
 * "memory" tells what a small program has touched, instead of times.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_MAX 16
#define RUNS_MAX 50
#define WAYS	 4

struct bench_case {
	const char *name;
	double pairs; /* 0: not known */
	unsigned runs;
	const char *argv[ARGS_MAX];
};

struct way {
	const char *name;
	const char *prefix[ARGS_MAX];
	bool usable;
};

static char output[] = "/tmp/bench-run-XXXXXX";
static char artifact[64], heaptrack_file[64];

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* `out`: where the program's standard output goes. */
static void become(const struct way *way, const struct bench_case *c, const char *out)
{
	const char *argv[2 * ARGS_MAX + 1];
	unsigned n = 0;
	int null = open("/dev/null", O_RDWR);
	int out_fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	for (unsigned i = 0; i < ARGS_MAX && way->prefix[i]; i++)
		argv[n++] = way->prefix[i];
	for (unsigned i = 0; i < ARGS_MAX && c->argv[i]; i++)
		argv[n++] = c->argv[i];
	argv[n] = NULL;
	dup2(null, 0);
	dup2(out_fd, 1);
	if (!getenv("BENCH_STDERR"))
		dup2(null, 2);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

/* Returns nanoseconds, or a negative number when the run failed. */
static double run_once(const struct way *way, const struct bench_case *c, const char *out)
{
	double start = now_ns();
	pid_t pid = fork();
	int status;

	if (pid == 0)
		become(way, c, out);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || status != 0)
		return -1;
	return now_ns() - start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_row(const struct bench_case *c, const struct way *way, double *times, unsigned n,
		      double bare, bool json)
{
	double median;

	qsort(times, n, sizeof(*times), by_value);
	median = times[n / 2];
	if (json) {
		printf("{\"bench\":\"run\",\"case\":\"%s\",\"way\":\"%s\",\"runs\":%u,\"median_"
		       "ns\":%.0f,"
		       "\"min_ns\":%.0f,\"max_ns\":%.0f,\"ratio\":%.3f",
		       c->name, way->name, n, median, times[0], times[n - 1], median / bare);
		if (c->pairs > 0)
			printf(",\"ns_per_pair\":%.1f,\"over_bare_ns_per_pair\":%.1f",
			       median / c->pairs, (median - bare) / c->pairs);
		printf("}\n");
		return;
	}
	fprintf(stderr, "%-22s %-14s %9.2f ms  [%9.2f .. %9.2f]  x%-7.2f", c->name, way->name,
		median / 1e6, times[0] / 1e6, times[n - 1] / 1e6, median / bare);
	if (c->pairs > 0)
		fprintf(stderr, " %7.1f ns/pair %+8.1f", median / c->pairs,
			(median - bare) / c->pairs);
	fprintf(stderr, "\n");
}

static void run_case(const struct bench_case *c, const struct way *ways)
{
	double times[WAYS][RUNS_MAX], copy[RUNS_MAX];
	unsigned n[WAYS] = { 0 };
	double bare;

	for (unsigned r = 0; r <= c->runs; r++) {
		for (unsigned w = 0; w < WAYS; w++) {
			double ns = ways[w].usable ? run_once(&ways[w], c, "/dev/null") : -1;

			/* The first round warms up. */
			if (r && ns > 0)
				times[w][n[w]++] = ns;
		}
	}
	if (!n[0]) {
		fprintf(stderr, "# %s: does not run here\n", c->name);
		return;
	}
	memcpy(copy, times[0], n[0] * sizeof(*copy));
	qsort(copy, n[0], sizeof(*copy), by_value);
	bare = copy[n[0] / 2];
	for (int json = 0; json < 2; json++)
		for (unsigned w = 0; w < WAYS; w++)
			if (n[w])
				print_row(c, &ways[w], times[w], n[w], bare, json);
			else if (!json && ways[w].usable)
				fprintf(stderr, "# %s: every run under %s failed\n", c->name,
					ways[w].name);
	fflush(stdout);
}

/* The KiB behind `name` in a /proc/PID/status that was kept; negative when it has none. */
static long read_kib(const char *path, const char *name)
{
	FILE *f = fopen(path, "r");
	char line[256];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kib = strtol(line + strlen(name), NULL, 10);
	if (f)
		fclose(f);
	return kib;
}

/* What a small program has touched, as it says itself at its end. */
static void run_memory(const struct way *ways)
{
	static const char *const names[] = { "RssAnon:", "RssFile:", "RssShmem:", "VmPTE:" };
	const struct bench_case c = { "memory", 0, 1, { "/bin/cat", "/proc/self/status" } };
	long kib[4], bare[4] = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "%s/status", output);
	for (unsigned w = 0; w < WAYS; w++) {
		if (!ways[w].usable || run_once(&ways[w], &c, path) < 0)
			continue;
		for (int i = 0; i < 4; i++) {
			kib[i] = read_kib(path, names[i]);
			if (w == 0)
				bare[i] = kib[i];
		}
		fprintf(stderr,
			"%-22s %-14s anon %ld file %ld shared %ld page tables %ld KiB; "
			"over bare %+ld KiB\n",
			c.name, ways[w].name, kib[0], kib[1], kib[2], kib[3],
			kib[0] + kib[1] + kib[2] + kib[3] - bare[0] - bare[1] - bare[2] - bare[3]);
		printf("{\"bench\":\"run\",\"case\":\"%s\",\"way\":\"%s\",\"anon_kib\":%ld,"
		       "\"file_kib\":%ld,\"shared_kib\":%ld,\"page_tables_kib\":%ld}\n",
		       c.name, ways[w].name, kib[0], kib[1], kib[2], kib[3]);
	}
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	bool wanted = argc == 3;

	for (int k = 3; k < argc; k++)
		wanted |= !strcmp(argv[k], name);
	return wanted;
}

static bool in_path(const char *program)
{
	char command[64];

	snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", program);
	return system(command) == 0;
}

static void make_source(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return;
	fprintf(f, "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
	for (int i = 0; i < 60; i++)
		fprintf(f,
			"int f%d(int a, char *b){int s=0;for(int i=0;i<a;i++){s+=b[i%%7]*%d;"
			"if(s&%d)s^=i;else s+=(int)strlen(b);}return s;}\n",
			i, i + 3, i | 1);
	fprintf(f, "int main(void){return 0;}\n");
	fclose(f);
}

int main(int argc, char **argv)
{
	static char source[80], object[80];
	const char *json =
		"import json\n"
		"for i in range(6):\n"
		" d=[{'id':k,'name':'item %d'%k,'tags':['a','b',str(k)]} for k in range(20000)]\n"
		" s=json.dumps(d); json.loads(s)\n";

	if (argc < 3) {
		fprintf(stderr, "usage: run MEMTRACK_PRELOAD BENCH_PAIRS [CASE ...]\n");
		return 2;
	}
	if (!mkdtemp(output))
		return 1;
	snprintf(artifact, sizeof(artifact), "%s/a.mt", output);
	snprintf(heaptrack_file, sizeof(heaptrack_file), "%s/h", output);
	snprintf(source, sizeof(source), "%s/unit.c", output);
	snprintf(object, sizeof(object), "%s/unit.o", output);
	make_source(source);

	const struct way ways[WAYS] = {
		{ "bare", { NULL }, true },
		{ "memtrack", { argv[1], "-q", "--force", "-o", artifact, "--" }, true },
		{ "memtrack-nobpf",
		  { argv[1], "-q", "--bpf=off", "--force", "-o", artifact, "--" },
		  true },
		{ "heaptrack",
		  { "heaptrack", "--raw", "-o", heaptrack_file },
		  in_path("heaptrack") },
	};
	const struct bench_case cases[] = {
		{ "true", 0, 31, { "/bin/true" } },
		{ "pairs-1-thread", 20e6, 5, { argv[2], "1", "20000000" } },
		{ "pairs-2-threads", 20e6, 5, { argv[2], "2", "10000000" } },
		{ "pairs-8-threads", 20e6, 5, { argv[2], "8", "2500000" } },
		{ "python3-json",
		  0,
		  5,
		  { "env", "PYTHONMALLOC=malloc", "/usr/bin/python3", "-c", json } },
		{ "gcc-O2", 0, 5, { "gcc", "-O2", "-c", source, "-o", object } },
	};

	fprintf(stderr, "%-22s %-14s %12s  [%9s .. %9s]  %-8s\n", "case", "way", "median", "min",
		"max", "ratio to bare");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (is_wanted(cases[i].name, argc, argv))
			run_case(&cases[i], ways);
	}
	if (is_wanted("memory", argc, argv))
		run_memory(ways);
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", output);
	return system(command) != 0;
}
