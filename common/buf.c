/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mt_buf_reserve(struct mt_buf *buf, size_t extra)
{
	size_t want, cap;
	uint8_t *data;

	if (buf->cap - buf->len >= extra)
		return 0;
	if (extra > SIZE_MAX / 4 - buf->len)
		return -ENOMEM;
	want = buf->len + extra;
	cap = buf->cap + buf->cap / 2;
	if (cap < want)
		cap = want;
	data = realloc(buf->data, cap);
	if (!data)
		return -ENOMEM;
	buf->data = data;
	buf->cap = cap;
	return 0;
}

int mt_buf_append(struct mt_buf *buf, const void *data, size_t len)
{
	int ret;

	if (!len)
		return 0;
	ret = mt_buf_reserve(buf, len);
	if (ret)
		return ret;
	memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	return 0;
}

void mt_buf_fini(struct mt_buf *buf)
{
	free(buf->data);
	*buf = (struct mt_buf){ 0 };
}
