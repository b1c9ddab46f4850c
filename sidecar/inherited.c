/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A descriptor that we open must never land on 0, 1 or 2: the program would find it there, and our
 * messages would go into it. Close-on-exec gives the command its closed descriptor back.
 */
static void fill_standard_fds(void)
{
	int fd;

	for (fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
			return;
	}
}

void mt_inherited_save(struct mt_inherited *ret_inherited)
{
	struct sigaction action;
	int i;

	memset(ret_inherited, 0, sizeof(*ret_inherited));
	fill_standard_fds();
	sigprocmask(SIG_SETMASK, NULL, &ret_inherited->mask);
	for (i = 1; i < NSIG; i++) {
		if (sigaction(i, NULL, &action) == 0)
			ret_inherited->ignored[i] = action.sa_handler == SIG_IGN;
	}
	for (i = 0; i < RLIMIT_NLIMITS; i++) {
		/* One that could not be read is not touched. */
		if (getrlimit((__rlimit_resource_t)i, &ret_inherited->limits[i]) == 0)
			ret_inherited->limit_known[i] = true;
		else
			ret_inherited->limits[i].rlim_cur = RLIM_INFINITY;
	}
	ret_inherited->umask = umask(077);
	umask(ret_inherited->umask);
	for (i = 0; i < MT_TIMERS; i++)
		getitimer((__itimer_which_t)i, &ret_inherited->timers[i]);
	prctl(PR_GET_PDEATHSIG, &ret_inherited->parent_death_signal);
	prctl(PR_GET_CHILD_SUBREAPER, &ret_inherited->child_subreaper);
}

/* Soft limits that bind a helper with a descriptor and a mapping for each program it watches. */
static const int raised[] = { RLIMIT_NOFILE, RLIMIT_AS,	     RLIMIT_DATA,
			      RLIMIT_CPU,    RLIMIT_MEMLOCK, RLIMIT_FSIZE };

void mt_inherited_change(const struct mt_inherited *inherited)
{
	/* Faults of our own; and what is ignored, since a blocked signal is kept even so. */
	static const int never[] = { SIGSEGV, SIGBUS, SIGFPE,  SIGILL, SIGTRAP,
				     SIGABRT, SIGSYS, SIGPIPE, SIGXFSZ };
	static const struct itimerval none;
	struct sigaction action;
	sigset_t mask;
	size_t i;
	int sig;

	for (i = 0; i < MT_TIMERS; i++)
		setitimer((__itimer_which_t)i, &none, NULL); /* they are the command's */
	if (inherited->child_subreaper)
		prctl(PR_SET_CHILD_SUBREAPER, 0); /* orphans are the command's */
	memset(&action, 0, sizeof(action));
	for (sig = 1; sig < NSIG; sig++) {
		action.sa_handler = sig == SIGPIPE || sig == SIGXFSZ ? SIG_IGN : SIG_DFL;
		/* Also SIGCHLD: where it is ignored, children leave no status behind. */
		sigaction(sig, &action, NULL);
	}
	sigfillset(&mask);
	for (i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		sigdelset(&mask, never[i]);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	for (i = 0; i < sizeof(raised) / sizeof(raised[0]); i++) {
		struct rlimit limit = inherited->limits[raised[i]];

		if (!inherited->limit_known[raised[i]])
			continue;
		limit.rlim_cur = limit.rlim_max;
		/* Best effort: with the limit as it was we serve fewer programs. */
		setrlimit((__rlimit_resource_t)raised[i], &limit);
	}
}

void mt_inherited_restore(const struct mt_inherited *inherited)
{
	struct sigaction action;
	size_t i;
	int sig;

	for (i = 0; i < sizeof(raised) / sizeof(raised[0]); i++)
		if (inherited->limit_known[raised[i]])
			setrlimit((__rlimit_resource_t)raised[i], &inherited->limits[raised[i]]);
	umask(inherited->umask);
	for (i = 0; i < MT_TIMERS; i++)
		setitimer((__itimer_which_t)i, &inherited->timers[i], NULL);
	if (inherited->parent_death_signal)
		prctl(PR_SET_PDEATHSIG, inherited->parent_death_signal);
	if (inherited->child_subreaper)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	memset(&action, 0, sizeof(action));
	for (sig = 1; sig < NSIG; sig++) {
		action.sa_handler = inherited->ignored[sig] ? SIG_IGN : SIG_DFL;
		sigaction(sig, &action, NULL);
	}
}

void mt_inherited_unblock(const struct mt_inherited *inherited)
{
	sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
}
