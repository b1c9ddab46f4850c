/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench/hook_steps.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/chunk_producer.h"

/* More than a pass takes, and as often used again as the library's chunks are. */
#define POOL_BYTES  (2u << 20)
#define CHUNK_COUNT (POOL_BYTES / MT_CHUNK_BYTES_MAX)

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

struct thread {
	uint64_t guard;
	uint64_t epoch;
	struct mt_writer writer;
};

static __thread struct thread thread_state __attribute__((tls_model("initial-exec")));

/* As the allocator's addresses in the preloaded library: a table that is filled at start. */
static struct bench_hooks real;
static char *pool;
static uint32_t chunks_taken;
static uint32_t recording;
static uint64_t epoch;

__attribute__((constructor)) static void prepare(void)
{
	int fd = memfd_create("bench-hook-steps", MFD_CLOEXEC);
	void *map;

	real = (struct bench_hooks){ malloc, free };
	if (fd < 0 || ftruncate(fd, POOL_BYTES) != 0)
		abort();
	map = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		abort();
	close(fd);
	pool = memset(map, 1, POOL_BYTES); /* a pass meets no new page */
	recording = 1;
}

/* The next chunk, from the first again behind the last. */
static __attribute__((noinline, cold)) void turn_over(struct thread *thread)
{
	char *bytes = pool + (size_t)(chunks_taken++ % CHUNK_COUNT) * MT_CHUNK_BYTES_MAX;
	struct mt_chunk *chunk = (struct mt_chunk *)bytes;

	thread->writer.chunk = chunk;
	thread->writer.next = chunk->records;
	thread->writer.end =
		chunk->records + (MT_CHUNK_BYTES_MAX - sizeof(*chunk)) / sizeof(struct mt_rec);
}

static inline __attribute__((always_inline)) uint64_t read_clock(bool ordered)
{
#if defined(__x86_64__)
	unsigned int cpu;

	return ordered ? __builtin_ia32_rdtscp(&cpu) : __builtin_ia32_rdtsc();
#else
	uint64_t value;

	if (ordered)
		__asm__ volatile("isb" ::: "memory");
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
#endif
}

static inline __attribute__((always_inline)) void record(struct thread *thread,
							 enum bench_step step, const void *block,
							 uint64_t size, enum mt_rec_kind kind)
{
	struct mt_writer *writer = &thread->writer;
	struct mt_rec *rec;

	if (step >= BENCH_STEP_FLAG && unlikely(mt_load_relaxed(&recording) == 0))
		return;
	if (step >= BENCH_STEP_FORK && unlikely(thread->epoch != mt_load_relaxed(&epoch)))
		return;
	if (unlikely(writer->next == writer->end))
		turn_over(thread);
	rec = writer->next;
	rec->stamp = 0;
	if (step >= BENCH_STEP_CLOCK)
		rec->stamp = read_clock(step >= BENCH_STEP_STRICT && kind == MT_REC_MALLOC);
	rec->addr = (uintptr_t)block;
	rec->size_kind = size << 8 | (uint64_t)kind;
	mt_store_relaxed(&writer->next, rec + 1);
	if (step >= BENCH_STEP_PUBLISH)
		mt_store_release(&writer->chunk->used_bytes,
				 (uint32_t)((char *)(rec + 1) - (char *)writer->chunk));
}

static inline void set_guard(struct thread *thread, enum bench_step step, uint64_t value)
{
	if (step < BENCH_STEP_GUARD)
		return;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mt_store_relaxed(&thread->guard, value);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline __attribute__((always_inline)) void *step_malloc(enum bench_step step, size_t size)
{
	struct thread *thread = &thread_state;
	void *block;

	if (step >= BENCH_STEP_GUARD && unlikely(thread->guard != 0))
		return real.malloc(size);
	set_guard(thread, step, 1);
	block = real.malloc(size);
	if (step >= BENCH_STEP_STORE && likely(block != NULL))
		record(thread, step, block, size, MT_REC_MALLOC);
	set_guard(thread, step, 0);
	return block;
}

static inline __attribute__((always_inline)) void step_free(enum bench_step step, void *block)
{
	struct thread *thread = &thread_state;

	if (step >= BENCH_STEP_GUARD && unlikely(thread->guard != 0)) {
		real.free(block);
		return;
	}
	set_guard(thread, step, 1);
	if (step >= BENCH_STEP_STORE && likely(block != NULL))
		record(thread, step, block, 0, MT_REC_FREE);
	real.free(block);
	set_guard(thread, step, 0);
}

#define STEP(name, step)                        \
	static void *name##_malloc(size_t size) \
	{                                       \
		return step_malloc(step, size); \
	}                                       \
	static void name##_free(void *block)    \
	{                                       \
		step_free(step, block);         \
	}

STEP(empty, BENCH_STEP_EMPTY)
STEP(store, BENCH_STEP_STORE)
STEP(publish, BENCH_STEP_PUBLISH)
STEP(guard, BENCH_STEP_GUARD)
STEP(flag, BENCH_STEP_FLAG)
STEP(fork, BENCH_STEP_FORK)
STEP(clock, BENCH_STEP_CLOCK)
STEP(strict, BENCH_STEP_STRICT)

const struct bench_hooks bench_step_hooks[BENCH_STEPS] __attribute__((visibility("default"))) = {
	[BENCH_STEP_EMPTY] = { empty_malloc, empty_free },
	[BENCH_STEP_STORE] = { store_malloc, store_free },
	[BENCH_STEP_PUBLISH] = { publish_malloc, publish_free },
	[BENCH_STEP_GUARD] = { guard_malloc, guard_free },
	[BENCH_STEP_FLAG] = { flag_malloc, flag_free },
	[BENCH_STEP_FORK] = { fork_malloc, fork_free },
	[BENCH_STEP_CLOCK] = { clock_malloc, clock_free },
	[BENCH_STEP_STRICT] = { strict_malloc, strict_free },
};
