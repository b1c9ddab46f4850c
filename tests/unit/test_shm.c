/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <unistd.h>

#include "common/atomic.h"
#include "common/shm.h"

static struct mt_shm_options options_of(uint64_t pool_bytes, uint64_t max_map_bytes)
{
	return (struct mt_shm_options){
		.pool_bytes = pool_bytes,
		.max_bytes = UINT64_C(256) << 20,
		.max_map_bytes = max_map_bytes,
		.counter = MT_COUNTER_MONOTONIC,
	};
}

Test(shm, chunk_size_follows_the_pool)
{
	static const struct {
		uint64_t pool_bytes;
		uint32_t chunk_bytes;
	} cases[] = { { 64 << 10, 4096 }, { 8 << 20, 16384 }, { 64 << 20, 32768 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mt_shm_options options = options_of(cases[i].pool_bytes, UINT64_MAX);
		struct mt_shm shm;

		cr_assert_eq(mt_shm_create(&options, &shm), 0);
		cr_assert_eq(shm.layout.chunk_bytes, cases[i].chunk_bytes);
		cr_assert_eq((uint64_t)shm.layout.limit * shm.layout.chunk_bytes,
			     cases[i].pool_bytes);
		mt_shm_destroy(&shm);
	}
}

Test(shm, size_is_sealed)
{
	struct mt_shm_options options = options_of(1 << 20, UINT64_MAX);
	struct mt_shm shm;

	cr_assert_eq(mt_shm_create(&options, &shm), 0);
	cr_assert_eq(ftruncate(shm.fd, 0), -1);
	cr_assert_eq(ftruncate(shm.fd, (off_t)shm.layout.total_bytes * 2), -1);
	cr_assert_eq(fcntl(shm.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	mt_shm_destroy(&shm);
}

Test(shm, fits_into_any_address_space_or_says_no)
{
	unsigned made = 0;

	for (uint64_t room = 1024; room < UINT64_C(1) << 32; room += room / 3) {
		struct mt_shm_options options = options_of(8 << 20, room);
		struct mt_shm shm;
		int ret = mt_shm_create(&options, &shm);

		if (ret < 0) {
			cr_assert_eq(ret, -EINVAL);
			cr_assert_lt(room, 256 << 10);
			continue;
		}
		made++;
		cr_assert_leq(shm.layout.total_bytes, room);
		cr_assert_geq(shm.layout.chunk_count, 4);
		cr_assert_eq(shm.header->total_bytes, shm.layout.total_bytes);
		mt_shm_destroy(&shm);
	}
	cr_assert_gt(made, 10);
}

static struct mt_shm held[3];

static void *hold(void *result)
{
	int *ret = result;

	*ret = 0;
	for (int i = 0; i < 3 && *ret == 0; i++)
		*ret = mt_shm_hold_alive(&held[i]);
	/* In the middle of the list. */
	mt_shm_destroy(&held[1]);
	return NULL;
}

Test(shm, death_of_the_holder_is_marked)
{
	struct mt_shm_options options = options_of(64 << 10, UINT64_MAX);
	pthread_t id;
	int ret;

	for (int i = 0; i < 3; i++)
		cr_assert_eq(mt_shm_create(&options, &held[i]), 0);
	cr_assert_eq(pthread_create(&id, NULL, hold, &ret), 0);
	pthread_join(id, NULL);
	if (ret == -ENOSYS)
		cr_skip_test("no robust futexes here: an emulator, not a kernel");
	cr_assert_eq(ret, 0);
	/* join() sees the thread's tid cleared, which the kernel does after the robust list. */
	for (int i = 0; i < 3; i += 2) {
		cr_assert(mt_load_acquire(&held[i].header->alive) & FUTEX_OWNER_DIED);
		mt_shm_destroy(&held[i]);
	}
}
