/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A file made of the fuzzer's bytes through the artifact reader: every batch, all metadata, over
 * all damage, in bounded steps. The first byte says whether the rest is the file itself, or parts
 * that are put into frames here (a fuzzer seldom finds a length or a checksum that fits).
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/artifact_reader.h"
#include "common/crc32.h"
#include "common/format.h"
#include "tests/fuzz/fuzz_input.h"

#define FILE_MAX  (256u << 10)
#define STEPS_MAX 100000u

struct file {
	uint8_t bytes[FILE_MAX];
	size_t len;
};

static void put(struct file *file, const void *bytes, size_t len)
{
	if (len > sizeof(file->bytes) - file->len)
		len = sizeof(file->bytes) - file->len;
	if (len)
		memcpy(file->bytes + file->len, bytes, len);
	file->len += len;
}

static void put_u32(struct file *file, uint32_t value)
{
	put(file, &value, sizeof(value));
}

/* A zstd frame of one raw block: window of 128 KiB, no content size, no checksum. */
static void put_data(struct file *file, const uint8_t *bytes, size_t len)
{
	static const uint8_t head[2] = { 0x00, 0x38 };
	uint32_t block = (uint32_t)len << 3 | 1;

	put_u32(file, MT_ZSTD_MAGIC);
	put(file, head, sizeof(head));
	put(file, &block, 3);
	put(file, bytes, len);
}

static void put_skippable(struct file *file, const uint8_t *bytes, size_t len, uint32_t magic)
{
	put_u32(file, magic);
	put_u32(file, (uint32_t)len);
	put(file, bytes, len);
}

/* A metadata frame or a hint whose checksum is right. */
static void put_meta(struct file *file, const uint8_t *bytes, size_t len, uint8_t kind,
		     uint8_t version)
{
	const uint8_t head[4] = { version, kind, 0, 0 };

	put_u32(file, MT_META_MAGIC);
	put_u32(file, (uint32_t)(MT_META_HEAD + len));
	put(file, MT_META_TAG, 4);
	put(file, head, sizeof(head));
	put_u32(file, mt_crc32(bytes, len));
	put(file, bytes, len);
}

static void make_file(struct file *file, struct fuzz_input *in)
{
	while (in->left && file->len < sizeof(file->bytes)) {
		unsigned kind = (unsigned)fuzz_take(in, 1);
		size_t len;
		const uint8_t *bytes = fuzz_take_run(in, 64u << 10, &len);

		switch (kind % 5) {
		case 0:
			put(file, bytes, len);
			break;
		case 1:
			put_data(file, bytes, len);
			break;
		case 2:
			put_skippable(file, bytes, len, MT_SKIPPABLE_MAGIC + (kind >> 4));
			break;
		case 3:
			put_meta(file, bytes, len, MT_META_MAP, MT_META_VERSION);
			break;
		case 4:
			put_meta(file, bytes, len, MT_META_HINT,
				 kind >> 4 & 1 ? MT_HINT_VERSION_CHECKED : MT_META_VERSION);
			break;
		}
	}
}

static void walk_meta(struct mt_artifact_reader *reader)
{
	struct mt_meta_value map, value;
	struct mt_mp_object key;
	struct mt_meta_iter it;

	for (size_t nth = 0; nth < 64 && mt_artifact_reader_meta(reader, NULL, nth, &map); nth++) {
		it = mt_meta_iter(&map);
		while (mt_meta_next(&it, &key, &value))
			;
	}
}

static void read_all(int fd, int filtered)
{
	struct mt_artifact_filter filter = { .types = filtered ? 1u << MT_EVENT_MAPPING : ~0u,
					     .to_ns = UINT64_MAX };
	struct mt_artifact_reader *reader;
	struct mt_artifact_batch batch;
	struct mt_diag diag;
	unsigned steps = 0;
	int ret;

	if (mt_artifact_reader_open_fd(fd, &reader, &diag) < 0)
		return;
	if (filtered)
		mt_artifact_reader_filter(reader, &filter);
	do {
		ret = mt_artifact_reader_next(reader, &batch);
		fuzz_must(++steps < STEPS_MAX, "reading ends");
		fuzz_must(ret != 1 || batch.n > 0, "a batch holds an event");
	} while (ret == 1 || (ret == -EBADMSG && mt_artifact_reader_skip_damaged(reader)));
	(void)mt_artifact_reader_load_meta(reader);
	walk_meta(reader);
	(void)mt_artifact_reader_closed(reader);
	mt_artifact_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct file file;
	struct fuzz_input in = { data, size };
	unsigned how = (unsigned)fuzz_take(&in, 1);
	int fd = memfd_create("artifact", MFD_CLOEXEC);

	fuzz_must(fd >= 0, "there is a descriptor");
	file.len = 0;
	if (how & 1)
		make_file(&file, &in);
	else
		put(&file, in.p, in.left);
	fuzz_must(write(fd, file.bytes, file.len) == (ssize_t)file.len, "the file was written");
	read_all(fd, how & 2);
	return 0;
}
