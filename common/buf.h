/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A byte buffer that grows. Zeroed is empty; mt_buf_fini() takes any state and
 * leaves it empty. The memory is kept when `len` is set back to 0, so a buffer
 * that is reused stops allocating.
 *
 * Thread rule: one owner.
 */
#ifndef MT_COMMON_BUF_H
#define MT_COMMON_BUF_H

#include <stddef.h>
#include <stdint.h>

struct mt_buf {
	uint8_t *data;
	size_t len;
	size_t cap;
};

/* Makes room for `extra` bytes behind `len`. 0, or -ENOMEM with the buffer as it was. */
int mt_buf_reserve(struct mt_buf *buf, size_t extra);
/* Appends. 0 or -ENOMEM. */
int mt_buf_append(struct mt_buf *buf, const void *data, size_t len);
void mt_buf_fini(struct mt_buf *buf);

#endif
