/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The consumer's scans find every slot that was claimed before them, whatever is claimed meanwhile.
 */
#include <criterion/criterion.h>

#include "common/chunk_consumer.h"
#include "common/chunk_producer.h"

#define SLOTS 8

static struct mt_producer producer;
static struct mt_consumer consumer;

static void set_up(void)
{
	struct mt_shm_options options = { .pool_bytes = 1 << 20,
					  .max_bytes = 1 << 20,
					  .max_map_bytes = UINT64_MAX,
					  .counter = MT_COUNTER_MONOTONIC };
	struct mt_shm shm;

	cr_assert_eq(mt_shm_create(&options, &shm), 0);
	cr_assert_eq(mt_consumer_init(&consumer, &shm), 0);
	cr_assert_eq(mt_producer_open(shm.header, shm.layout.total_bytes, &producer), 0);
}

static void tear_down(void)
{
	mt_consumer_fini(&consumer);
}

static uint32_t claim_proc(void)
{
	struct mt_proc_birth birth = { .pid = 1, .tid = 1 };

	return mt_producer_claim_proc(&producer, &birth);
}

static uint32_t claim_thread(void)
{
	struct mt_writer writer;

	cr_assert(mt_writer_claim(&producer, &writer, 1, 1, 0, 1));
	return writer.slot;
}

/* The list of free slots ends up with the last slot on top: claims come from the back of a sweep.
 */
static void use_procs_once(void)
{
	struct mt_proc_claim claim;

	for (int i = 0; i < SLOTS; i++)
		cr_assert_neq(claim_proc(), 0);
	mt_consumer_scan_procs(&consumer);
	for (int i = 0; i < SLOTS; i++)
		cr_assert(mt_consumer_next_proc(&consumer, &claim));
	for (uint32_t i = 0; i < SLOTS; i++)
		mt_consumer_retire_proc(&consumer, i);
}

static void use_threads_once(void)
{
	struct mt_thread_claim claim;
	struct mt_stream stream;

	for (int i = 0; i < SLOTS; i++)
		(void)claim_thread();
	mt_consumer_scan_threads(&consumer);
	for (int i = 0; i < SLOTS; i++)
		cr_assert(mt_consumer_next_thread(&consumer, &claim));
	for (uint32_t i = 0; i < SLOTS; i++) {
		mt_stream_init(&stream, i);
		mt_consumer_retire_thread(&consumer, &stream);
	}
}

Test(scan, finds_a_process_in_spite_of_later_claims, .init = set_up, .fini = tear_down)
{
	bool found[SLOTS] = { false };
	struct mt_proc_claim claim;
	uint32_t early;

	use_procs_once();
	early = claim_proc();
	mt_consumer_scan_procs(&consumer);
	for (int i = 1; i < SLOTS; i++)
		cr_assert_lt(claim_proc(), early, "a later claim is met first");
	while (mt_consumer_next_proc(&consumer, &claim)) {
		cr_assert_not(found[claim.slot], "none is found twice");
		found[claim.slot] = true;
	}
	cr_assert(found[early - 1]);
	mt_consumer_scan_procs(&consumer);
	while (mt_consumer_next_proc(&consumer, &claim)) {
		cr_assert_not(found[claim.slot], "none is found twice");
		found[claim.slot] = true;
	}
	for (int i = 0; i < SLOTS; i++)
		cr_assert(found[i], "slot %d is never found", i);
	cr_assert_eq(consumer.procs.expected, 0, "later scans are free again");
}

Test(scan, finds_a_thread_in_spite_of_later_claims, .init = set_up, .fini = tear_down)
{
	bool found[SLOTS] = { false };
	struct mt_thread_claim claim;
	uint32_t early;

	use_threads_once();
	early = claim_thread();
	mt_consumer_scan_threads(&consumer);
	for (int i = 1; i < SLOTS; i++)
		cr_assert_lt(claim_thread(), early, "a later claim is met first");
	while (mt_consumer_next_thread(&consumer, &claim)) {
		cr_assert_not(found[claim.slot], "none is found twice");
		found[claim.slot] = true;
	}
	cr_assert(found[early - 1]);
	mt_consumer_scan_threads(&consumer);
	while (mt_consumer_next_thread(&consumer, &claim))
		found[claim.slot] = true;
	for (int i = 0; i < SLOTS; i++)
		cr_assert(found[i], "slot %d is never found", i);
	cr_assert_eq(consumer.threads.expected, 0, "later scans are free again");
}

Test(scan, finds_slots_that_were_never_used, .init = set_up, .fini = tear_down)
{
	struct mt_proc_claim claim;
	unsigned found = 0;

	use_procs_once();
	for (int i = 0; i < SLOTS; i++)
		(void)claim_proc();
	mt_consumer_scan_procs(&consumer);
	(void)claim_proc();
	(void)claim_proc();
	while (mt_consumer_next_proc(&consumer, &claim))
		found++;
	cr_assert_geq(found, SLOTS);
	mt_consumer_scan_procs(&consumer);
	while (mt_consumer_next_proc(&consumer, &claim))
		found++;
	cr_assert_eq(found, SLOTS + 2);
}
