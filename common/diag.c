/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/diag.h"

#include <stdarg.h>
#include <stdio.h>

void mt_diag_set(struct mt_diag *diag, enum mt_diag_kind kind, uint64_t frame, uint64_t offset,
		 const char *format, ...)
{
	va_list args;

	if (!diag)
		return;
	diag->kind = kind;
	diag->frame = frame;
	diag->offset = offset;
	diag->missing = MT_DIAG_UNKNOWN;
	va_start(args, format);
	/* Cut to the array's size; a shorter message is still a message. */
	(void)vsnprintf(diag->why, sizeof(diag->why), format, args);
	va_end(args);
}
