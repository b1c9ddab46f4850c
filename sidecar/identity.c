/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/identity.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sidecar/say.h"

static bool read_id(const char *variable, unsigned long *ret_id)
{
	const char *text = getenv(variable);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret_id = strtoul(text, &end, 10);
	/* (uid_t)-1 means "leave it" to the calls that take ids. */
	return errno == 0 && *end == 0 && *ret_id < UINT32_MAX;
}

static void fill_from_passwd(struct mt_identity *identity)
{
	const struct passwd *pw = getpwuid(identity->uid);

	identity->group_count = 1;
	identity->groups[0] = identity->gid;
	if (!pw) {
		/* A user without an entry is usual in containers: the ids are enough to run. */
		snprintf(identity->home, sizeof(identity->home), "/");
		return;
	}
	snprintf(identity->name, sizeof(identity->name), "%s", pw->pw_name);
	snprintf(identity->home, sizeof(identity->home), "%s", pw->pw_dir);
	snprintf(identity->shell, sizeof(identity->shell), "%s", pw->pw_shell);
	identity->group_count = MT_GROUPS_MAX;
	if (getgrouplist(pw->pw_name, identity->gid, identity->groups, &identity->group_count) < 0)
		identity->group_count = MT_GROUPS_MAX;
}

int mt_identity_find(bool as_root, struct mt_identity *ret_identity)
{
	const char *text = getenv("SUDO_UID");
	unsigned long uid, gid;

	memset(ret_identity, 0, sizeof(*ret_identity));
	ret_identity->uid = getuid();
	ret_identity->gid = getgid();
	if (geteuid() != 0 || as_root || !text || !*text)
		return 0;
	if (!read_id("SUDO_UID", &uid) || !read_id("SUDO_GID", &gid)) {
		mt_say_error("SUDO_UID and SUDO_GID are not the numbers of a user and a group: "
			     "unset them, or keep root with --as-root");
		return -EINVAL;
	}
	if (uid == 0)
		return 0;
	ret_identity->change = true;
	ret_identity->uid = (uid_t)uid;
	ret_identity->gid = (gid_t)gid;
	fill_from_passwd(ret_identity);
	return 0;
}

int mt_identity_take(const struct mt_identity *identity)
{
	if (!identity->change)
		return 0;
	if (setgroups((size_t)identity->group_count, identity->groups) < 0 ||
	    setresgid(identity->gid, identity->gid, identity->gid) < 0 ||
	    setresuid(identity->uid, identity->uid, identity->uid) < 0)
		return -errno;
	return 0;
}

void mt_identity_drop_capabilities(bool keep_files)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	uint32_t keep = CAP_TO_MASK(CAP_KILL) | CAP_TO_MASK(CAP_SYS_PTRACE);

	if (keep_files)
		keep |= CAP_TO_MASK(CAP_DAC_OVERRIDE);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	memset(data, 0, sizeof(data));
	if (syscall(SYS_capget, &header, data) < 0)
		return;
	data[0].effective &= keep;
	data[0].permitted &= keep;
	data[0].inheritable = 0;
	data[1].effective = 0;
	data[1].permitted = 0;
	data[1].inheritable = 0;
	/* Cannot fail: it only takes away. */
	syscall(SYS_capset, &header, data);
}
