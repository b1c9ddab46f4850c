/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "sidecar/say.h"

#define DIRECTORY_PREFIX "memtrack-session-"
#define LIBRARY_LINK	 "lib"
/* What LD_PRELOAD splits at, and what the loader expands. */
#define UNSPEAKABLE " \t\n:$"
/* A directory without a listening socket may be one that is being made right now. */
#define LEFTOVER_AGE_S 60
#define LEFTOVERS_MAX  1000
#define ENTRIES_MAX    20000 /* looked at: a folder that is fuller is somebody else's problem */

/* Variables that the launcher moves out of the way of the sidecar: "MEMTRACK_SAVED_LD_PRELOAD". */
#define SAVED_PREFIX "MEMTRACK_SAVED_"

extern char **environ;

static int random_hex(uint8_t *bytes, size_t len, char *hex)
{
	size_t i;

	if (getrandom(bytes, len, 0) != (ssize_t)len)
		return errno ? -errno : -EIO;
	for (i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", bytes[i]);
	return 0;
}

/* A directory of the user's own, or the one that all share. */
static const char *base_directory(uid_t uid)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (runtime && runtime[0] == '/' && strlen(runtime) < 24 && stat(runtime, &st) == 0 &&
	    S_ISDIR(st.st_mode) && st.st_uid == uid && (st.st_mode & 077) == 0)
		return runtime;
	return "/tmp";
}

static void make_directory(struct mt_session *session, const struct mt_identity *identity)
{
	char path[sizeof(session->directory)];

	snprintf(path, sizeof(path), "%s/" DIRECTORY_PREFIX "XXXXXX",
		 base_directory(identity->uid));
	if (!mkdtemp(path))
		return;
	if (identity->change && lchown(path, identity->uid, identity->gid) < 0) {
		rmdir(path);
		return;
	}
	memcpy(session->directory, path, sizeof(path));
}

int mt_session_open(const struct mt_identity *identity, struct mt_session *ret_session)
{
	uint8_t name[MT_TOKEN_BYTES];
	char token[2 * MT_TOKEN_BYTES + 1];
	int err;

	memset(ret_session, 0, sizeof(*ret_session));
	err = random_hex(name, sizeof(name), ret_session->name);
	if (!err)
		err = random_hex(ret_session->token, sizeof(ret_session->token), token);
	if (err)
		return err;
	ret_session->owner = identity->uid;
	make_directory(ret_session, identity);
	snprintf(ret_session->value, sizeof(ret_session->value), "1:%s:%s:%s", ret_session->name,
		 token, ret_session->directory);
	return 0;
}

int mt_session_set_library(struct mt_session *session, const char *library)
{
	char path[PATH_MAX], link[sizeof(session->directory) + sizeof(LIBRARY_LINK) + 1];
	char *slash;
	int n;

	if (!realpath(library, path)) {
		int err = -errno;

		mt_say_error("the preloaded library %s cannot be used: %s", library,
			     strerror(-err));
		return err;
	}
	if (!strpbrk(path, UNSPEAKABLE)) {
		memcpy(session->library, path, sizeof(path));
		return 0;
	}
	/* The link is to the library's directory, so that the file keeps its name in LD_PRELOAD. */
	slash = strrchr(path, '/');
	*slash = 0;
	snprintf(link, sizeof(link), "%s/" LIBRARY_LINK, session->directory);
	if (!session->directory[0] || strpbrk(link, UNSPEAKABLE) || symlink(path, link) < 0) {
		mt_say_error(
			"LD_PRELOAD cannot name %s/%s (it holds a space, a colon or a '$'), and "
			"no link to it could be made: install memtrack elsewhere",
			path, slash + 1);
		return -EINVAL;
	}
	n = snprintf(session->library, sizeof(session->library), "%s/%s", link, slash + 1);
	return n < (int)sizeof(session->library) ? 0 : -ENAMETOOLONG;
}

static bool names(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

/* Of several of a name the loader takes the last. NULL: there is none. */
static const char *last_value(const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; environ[i]; i++)
		if (names(environ[i], name))
			value = environ[i] + strlen(name) + 1;
	return value;
}

const char *mt_session_their_preload(void)
{
	const char *saved = last_value(SAVED_PREFIX "LD_PRELOAD");

	return saved ? saved : last_value("LD_PRELOAD");
}

/* Ours first, theirs behind it as it was, but for entries that are an earlier run of ours. */
static char *preload_value(const char *library)
{
	const char *theirs = mt_session_their_preload();
	size_t len = sizeof("LD_PRELOAD=") + strlen(library) + (theirs ? strlen(theirs) + 1 : 0);
	char *value = malloc(len), *end;
	const char *p;

	if (!value)
		return NULL;
	end = stpcpy(stpcpy(value, "LD_PRELOAD="), library);
	for (p = theirs; p && *p;) {
		size_t entry = strcspn(p, " :");
		const char *base = memrchr(p, '/', entry);

		base = base ? base + 1 : p;
		if (entry && !((size_t)(p + entry - base) == strlen(MT_LIBRARY_NAME) &&
			       memcmp(base, MT_LIBRARY_NAME, strlen(MT_LIBRARY_NAME)) == 0)) {
			*end++ = ':';
			end = mempcpy(end, p, entry);
		}
		p += entry + strspn(p + entry, " :");
	}
	*end = 0;
	return value;
}

/* Adds a variable to those that are there. Returns whether there was memory for it. */
static bool assign(char **env, size_t *n, const char *name, const char *value)
{
	if (asprintf(&env[*n], "%s=%s", name, value) < 0) {
		env[*n] = NULL;
		return false;
	}
	++*n;
	return true;
}

static bool assign_user(char **env, size_t *n, const struct mt_identity *identity)
{
	return assign(env, n, "HOME", identity->home) &&
	       (!identity->name[0] || (assign(env, n, "USER", identity->name) &&
				       assign(env, n, "LOGNAME", identity->name))) &&
	       (!identity->shell[0] || assign(env, n, "SHELL", identity->shell));
}

static bool is_replaced(const char *entry, const struct mt_identity *identity, bool preload)
{
	static const char *const of_user[] = { "HOME", "USER", "LOGNAME", "SHELL" };
	size_t i;

	if (names(entry, MT_ENV_SESSION))
		return true;
	if (names(entry, "MEMTRACK_FOLLOW")) /* the launcher's; the user's own was saved */
		return true;
	if (names(entry, "LD_PRELOAD") && preload)
		return true;
	for (i = 0; identity->change && i < sizeof(of_user) / sizeof(of_user[0]); i++) {
		if (names(entry, of_user[i]))
			return true;
	}
	return false;
}

/* Variables that the launcher saved come back under their own names. */
static char *give_back(char *entry, const struct mt_identity *identity, bool preload)
{
	char *own = entry + strlen(SAVED_PREFIX);

	if (strncmp(entry, SAVED_PREFIX, strlen(SAVED_PREFIX)) == 0)
		return preload && names(own, "LD_PRELOAD") ? NULL : own;
	return is_replaced(entry, identity, preload) ? NULL : entry;
}

char **mt_session_environment(const struct mt_session *session, const struct mt_identity *identity,
			      bool preload)
{
	size_t count = 0, n = 0, i;
	char **env;

	while (environ[count])
		count++;
	env = calloc(count + 8, sizeof(*env));
	if (!env)
		return NULL;
	for (i = 0; i < count; i++) {
		env[n] = give_back(environ[i], identity, preload);
		n += env[n] != NULL;
	}
	if (preload) {
		env[n] = preload_value(session->library);
		if (!env[n++])
			return NULL;
	}
	if (!assign(env, &n, MT_ENV_SESSION, session->value) ||
	    (identity->change && !assign_user(env, &n, identity)))
		return NULL;
	return env;
}

static void remove_directory(const char *directory)
{
	static const char *const files[] = { MT_SOCKET_FILE, MT_PULSE_FILE, LIBRARY_LINK };
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, files[i]);
		unlink(path);
	}
	rmdir(directory);
}

void mt_session_close(struct mt_session *session)
{
	if (session->directory[0])
		remove_directory(session->directory);
	session->directory[0] = 0;
}

/* Nobody listens any more: its sidecar was killed. */
static bool is_leftover(const char *directory, uid_t owner)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;
	int fd, err;

	if (lstat(directory, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != owner ||
	    time(NULL) - st.st_mtime < LEFTOVER_AGE_S)
		return false;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" MT_SOCKET_FILE, directory);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	err = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
	close(fd);
	return err == ECONNREFUSED || err == ENOENT;
}

void mt_session_clean_leftovers(const struct mt_session *session)
{
	char path[sizeof(session->directory)];
	struct dirent *entry;
	size_t base_len;
	int removed = 0, looked = 0;
	DIR *dir;

	if (!session->directory[0])
		return;
	base_len = (size_t)(strrchr(session->directory, '/') - session->directory);
	snprintf(path, sizeof(path), "%.*s", (int)base_len, session->directory);
	dir = opendir(path);
	if (!dir)
		return;
	while (removed < LEFTOVERS_MAX && looked++ < ENTRIES_MAX && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, DIRECTORY_PREFIX, strlen(DIRECTORY_PREFIX)) != 0 ||
		    snprintf(path, sizeof(path), "%.*s/%s", (int)base_len, session->directory,
			     entry->d_name) >= (int)sizeof(path) ||
		    strcmp(path, session->directory) == 0 || !is_leftover(path, session->owner))
			continue;
		remove_directory(path);
		removed++;
	}
	closedir(dir);
}
