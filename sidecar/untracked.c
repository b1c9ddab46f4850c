/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Why an image ran untracked: what the reasons are called. */
#include "sidecar/coverage.h"

#include "common/run_meta.h"

bool mt_untracked_is_not_loaded(enum mt_untracked_reason reason)
{
	return reason == MT_UNTRACKED_ENDED || reason == MT_UNTRACKED_STARTING;
}

bool mt_untracked_is_in_part(enum mt_untracked_reason reason)
{
	return reason == MT_UNTRACKED_DEEPBIND || reason == MT_UNTRACKED_DLMOPEN;
}

enum mt_untracked_reason mt_untracked_reason_of_exec(uint32_t flags)
{
	if (!(flags & MT_EXEC_KNOWN))
		return MT_UNTRACKED_UNKNOWN;
	if (flags & MT_EXEC_FOREIGN)
		return MT_UNTRACKED_FOREIGN;
	if (flags & MT_EXEC_SECURE)
		return MT_UNTRACKED_SECURE;
	if (flags & MT_EXEC_NO_INTERP)
		return MT_UNTRACKED_STATIC;
	if (flags & MT_EXEC_NO_PRELOAD)
		return MT_UNTRACKED_ENVIRONMENT;
	return MT_UNTRACKED_UNKNOWN;
}

enum mt_untracked_reason mt_untracked_reason_of(enum mt_command_kind kind)
{
	switch (kind) {
	case MT_COMMAND_STATIC:
		return MT_UNTRACKED_STATIC;
	case MT_COMMAND_LIBC:
		return MT_UNTRACKED_LIBC;
	case MT_COMMAND_FOREIGN:
		return MT_UNTRACKED_FOREIGN;
	case MT_COMMAND_SET_ID:
		return MT_UNTRACKED_SECURE;
	case MT_COMMAND_SANITIZER:
		return MT_UNTRACKED_SANITIZER;
	case MT_COMMAND_TRACKABLE:
	case MT_COMMAND_UNKNOWN:
		break;
	}
	return MT_UNTRACKED_UNKNOWN;
}

const char *mt_untracked_reason_name(enum mt_untracked_reason reason)
{
	static const char *const names[MT_UNTRACKED_REASONS] = {
		[MT_UNTRACKED_UNKNOWN] = "unknown",
		[MT_UNTRACKED_SECURE] = "set-id",
		[MT_UNTRACKED_STATIC] = "static",
		[MT_UNTRACKED_FOREIGN] = "architecture",
		[MT_UNTRACKED_ENVIRONMENT] = "environment",
		[MT_UNTRACKED_LIBC] = "libc",
		[MT_UNTRACKED_SANITIZER] = "sanitizer",
		[MT_UNTRACKED_ALLOCATOR] = "own-malloc",
		[MT_UNTRACKED_REFUSED] = "no-room",
		[MT_UNTRACKED_WAITED] = "sidecar-stood-still",
		[MT_UNTRACKED_ELSEWHERE] = "elsewhere",
		[MT_UNTRACKED_DEEPBIND] = "deepbind",
		[MT_UNTRACKED_DLMOPEN] = "dlmopen",
		[MT_UNTRACKED_ENDED] = MT_REASON_ENDED,
		[MT_UNTRACKED_STARTING] = MT_REASON_STARTING,
	};

	return reason < MT_UNTRACKED_REASONS ? names[reason] : names[MT_UNTRACKED_UNKNOWN];
}

const char *mt_untracked_reason_text(enum mt_untracked_reason reason)
{
	static const char *const texts[MT_UNTRACKED_REASONS] = {
		[MT_UNTRACKED_UNKNOWN] = "for a reason that is not known",
		[MT_UNTRACKED_SECURE] = "it runs set-ID or with file capabilities",
		[MT_UNTRACKED_STATIC] = "it is statically linked",
		[MT_UNTRACKED_FOREIGN] = "it is built for another architecture",
		[MT_UNTRACKED_ENVIRONMENT] = "it was started without us in LD_PRELOAD",
		[MT_UNTRACKED_LIBC] = "it uses another C library",
		[MT_UNTRACKED_SANITIZER] = "it runs with a sanitizer",
		[MT_UNTRACKED_ALLOCATOR] = "its own malloc comes before ours",
		[MT_UNTRACKED_REFUSED] = "no memory or descriptor was left for it",
		[MT_UNTRACKED_WAITED] = "the sidecar stood still when it started",
		[MT_UNTRACKED_ELSEWHERE] = "another run of memtrack records it, or it was killed "
					   "or could not reach this one",
		[MT_UNTRACKED_DEEPBIND] =
			"in part: what it opened with RTLD_DEEPBIND calls malloc past ours",
		[MT_UNTRACKED_DLMOPEN] =
			"in part: what it opened by dlmopen has a malloc of its own",
		[MT_UNTRACKED_ENDED] = "it ended before the library was loaded",
		[MT_UNTRACKED_STARTING] = "the recording ended before it started",
	};

	return reason < MT_UNTRACKED_REASONS ? texts[reason] : texts[MT_UNTRACKED_UNKNOWN];
}
