/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/artifact_writer.h"

static off_t size_of(int fd)
{
	struct stat st;

	cr_assert(!fstat(fd, &st));
	return st.st_size;
}

Test(artifact_writer, appends_and_counts)
{
	struct mt_artifact_writer w;
	int fd = memfd_create("artifact", MFD_CLOEXEC);
	char bytes[16] = "";

	cr_assert(!mt_artifact_writer_init(&w, fd, 0));
	cr_expect_eq(mt_artifact_writer_append(&w, "hello ", 6), 0);
	cr_expect_eq(mt_artifact_writer_append(&w, "frames", 6), 0);
	cr_expect_eq(w.bytes, 12);
	cr_expect_eq(w.frames, 2);
	cr_assert_eq(pread(fd, bytes, sizeof(bytes), 0), 12);
	cr_expect_str_eq(bytes, "hello frames");
	close(fd);
}

Test(artifact_writer, its_own_limit_leaves_room_for_the_end)
{
	struct mt_artifact_writer w;
	int fd = memfd_create("artifact", MFD_CLOEXEC);

	cr_assert(!mt_artifact_writer_init(&w, fd, 10));
	cr_expect_eq(mt_artifact_writer_append(&w, "12345678", 8), 0);
	cr_expect_eq(mt_artifact_writer_append(&w, "123", 3), -EFBIG);
	cr_expect_eq(size_of(fd), 8);
	cr_expect_eq(mt_artifact_writer_append(&w, "12", 2), 0);
	cr_expect_eq(mt_artifact_writer_append_last(&w, "closed", 6), 0);
	cr_expect_eq(size_of(fd), 16);
	cr_expect_eq(mt_artifact_writer_append(&w, "1", 1), -EFBIG);
	close(fd);
}

/* A limit of the system in the middle of a frame, as a full disk gives it. */
Test(artifact_writer, half_a_frame_is_taken_back)
{
	char path[] = "/tmp/memtrack-writer-XXXXXX";
	struct mt_artifact_writer w;
	struct rlimit limit, was;
	int fd = mkstemp(path);

	cr_assert(fd >= 0);
	unlink(path);
	signal(SIGXFSZ, SIG_IGN);
	cr_assert(!getrlimit(RLIMIT_FSIZE, &was));
	limit = was;
	limit.rlim_cur = 20;
	cr_assert(!setrlimit(RLIMIT_FSIZE, &limit));
	cr_assert(!mt_artifact_writer_init(&w, fd, 0));
	cr_expect_eq(mt_artifact_writer_append(&w, "0123456789", 10), 0);
	cr_expect_eq(mt_artifact_writer_append(&w, "0123456789abcdef", 16), -EFBIG);
	cr_expect_eq(size_of(fd), 10);
	cr_expect_eq(w.bytes, 10);
	/* What fits may come later, and all when there is room again. */
	cr_expect_eq(mt_artifact_writer_append(&w, "abc", 3), 0);
	cr_assert(!setrlimit(RLIMIT_FSIZE, &was));
	cr_expect_eq(mt_artifact_writer_append(&w, "0123456789abcdef", 16), 0);
	cr_expect_eq(size_of(fd), 29);
	cr_expect_eq(w.frames, 3);
	close(fd);
}

Test(artifact_writer, a_full_device_is_reported)
{
	struct mt_artifact_writer w;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		cr_skip_test("there is no /dev/full here");
	cr_assert(!mt_artifact_writer_init(&w, fd, 0));
	cr_expect_eq(mt_artifact_writer_append(&w, "x", 1), -ENOSPC);
	cr_expect_eq(w.bytes, 0);
	close(fd);
}

Test(artifact_writer, half_a_frame_in_a_pipe_ends_it)
{
	struct mt_artifact_writer w;
	char *bytes = calloc(1, 1 << 20);
	int fds[2];

	cr_assert(bytes && !pipe(fds));
	signal(SIGPIPE, SIG_IGN);
	cr_assert(!mt_artifact_writer_init(&w, fds[1], 0));
	cr_expect_eq(mt_artifact_writer_append(&w, "head", 4), 0);
	close(fds[0]);
	cr_expect_eq(mt_artifact_writer_append(&w, bytes, 1 << 20), -EPIPE);
	cr_expect_eq(w.bytes, 4);
	cr_expect_eq(mt_artifact_writer_append(&w, "x", 1), -EPIPE);
	close(fds[1]);
	free(bytes);
}

Test(artifact_writer, wrong_descriptors_are_refused)
{
	char path[] = "/tmp/memtrack-writer-XXXXXX";
	struct mt_artifact_writer w;
	int fd = mkstemp(path), appending;

	cr_assert(fd >= 0);
	appending = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	unlink(path);
	cr_expect_eq(mt_artifact_writer_init(&w, appending, 0), -EINVAL);
	cr_expect_eq(mt_artifact_writer_init(&w, -1, 0), -EBADF);
	close(fd);
	close(appending);
}
