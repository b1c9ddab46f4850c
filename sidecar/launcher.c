/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * memtrack-preload: finds the parts of memtrack and becomes the sidecar, which runs the command.
 * Nothing else is done here: memtrack-preload(1) is about the sidecar.
 *
 * It is no shell script, since a shell does not hand on the environment as it is: it drops
 * variables whose names are none of a shell's (functions of bash, those of CI actions with a dash
 * or a dot), and adds some of its own.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define OUR_FAILURE 125
#define SIDECAR	    "memtrack-sidecar"
#define LIBRARY	    "libmemtrack-preload.so"
/* Before the name of a variable: the command's, and not for the sidecar. It gives them back. */
#define SAVED "MEMTRACK_SAVED_"

struct parts {
	char sidecar[PATH_MAX];
	char library[PATH_MAX];
};

/* Takes the last part off an absolute path. */
static void cut(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = 0;
}

/* The folder that this program is in, without links; false when that cannot be known. */
static bool find_self(char folder[static PATH_MAX])
{
	const char *executed = (const char *)getauxval(AT_EXECFN);
	ssize_t len = readlink("/proc/self/exe", folder, PATH_MAX - 1);

	if (len > 0)
		folder[len] = 0;
	else if (!executed || !realpath(executed, folder)) /* no /proc */
		return false;
	cut(folder);
	return true;
}

/* Not by access(X_OK): there are containers whose filter lets that fail for all files. */
static bool set_parts(struct parts *parts, const char *sidecar_folder, const char *library_folder)
{
	int sidecar_len = snprintf(parts->sidecar, PATH_MAX, "%s/" SIDECAR, sidecar_folder);
	int library_len = snprintf(parts->library, PATH_MAX, "%s/" LIBRARY, library_folder);

	return sidecar_len < PATH_MAX && library_len < PATH_MAX &&
	       access(parts->sidecar, F_OK) == 0;
}

/*
 * In a build tree this program lies beside the parts. Where memtrack was moved or unpacked, they
 * keep their places to each other. Else they are where configure said.
 */
static bool find_parts(struct parts *parts)
{
	char folder[PATH_MAX], libexec[PATH_MAX + 32], lib[PATH_MAX + 32];

	if (find_self(folder)) {
		snprintf(lib, sizeof(lib), "%s/preload/.libs", folder);
		if (set_parts(parts, folder, lib) && access(parts->library, F_OK) == 0)
			return true;
		cut(folder);
		snprintf(libexec, sizeof(libexec), "%s/libexec/memtrack", folder);
		snprintf(lib, sizeof(lib), "%s/lib/memtrack", folder);
		if (set_parts(parts, libexec, lib) && access(parts->library, F_OK) == 0)
			return true;
	}
	return set_parts(parts, MT_PKGLIBEXECDIR, MT_PKGLIBDIR);
}

static bool is_saved(const char *entry)
{
	/* What is meant for the command is not for the sidecar. */
	static const char *const names[] = { "LD_PRELOAD=", "LD_AUDIT=", "LD_DEBUG=",
					     "MEMTRACK_FOLLOW=" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(entry, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* The sidecar's environment: all of ours in its order; NULL: no memory. */
static char **make_environment(void)
{
	/* By a run that this program is part of. */
	static char not_followed[] = "MEMTRACK_FOLLOW=0";
	size_t count = 0;
	char **env;

	while (environ[count])
		count++;
	env = calloc(count + 2, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		env[i] = environ[i];
		if (is_saved(environ[i]) && asprintf(&env[i], SAVED "%s", environ[i]) < 0)
			return NULL;
	}
	env[count] = not_followed;
	return env;
}

/* memtrack-sidecar --library=FILE and our own arguments; NULL: no memory. */
static char **make_arguments(const struct parts *parts, int argc, char **argv)
{
	char **args = calloc((size_t)argc + 3, sizeof(*args));

	if (!args || asprintf(&args[1], "--library=%s", parts->library) < 0)
		return NULL;
	args[0] = (char *)parts->sidecar;
	for (int i = 1; i < argc; i++)
		args[i + 1] = argv[i];
	return args;
}

int main(int argc, char **argv)
{
	struct parts parts;
	char **args, **env;

	if (!find_parts(&parts)) {
		fputs("memtrack: " SIDECAR " is neither in " MT_PKGLIBEXECDIR
		      " nor where its launcher is: install memtrack, or build it\n",
		      stderr);
		return OUR_FAILURE;
	}
	args = make_arguments(&parts, argc, argv);
	env = make_environment();
	if (!args || !env) {
		fputs("memtrack: no memory to start with\n", stderr);
		return OUR_FAILURE;
	}
	execve(parts.sidecar, args, env);
	fprintf(stderr, "memtrack: %s cannot be started: %s\n", parts.sidecar, strerror(errno));
	return OUR_FAILURE;
}
