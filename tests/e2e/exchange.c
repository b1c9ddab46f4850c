/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * exchange [OPTION...] TEST: threads hand blocks to each other as fast as they can. TEST:
 *
 *   swap    each takes a block, swaps it into a shared place and frees what comes out
 *   mixed   the same with calloc, aligned_alloc and reallocs that move, stay or fail
 *   batch   each takes 32 blocks, swaps the lot into a shared place and frees the lot that comes
 * out hand    each takes a block and frees it at once: the allocator hands it over
 *
 *   -t N    threads (2)
 *   -n N    events in all, about (100000)
 *   -f N    forks while they do so: parent and child free and reallocate the same blocks, and the
 *           child's own threads do the test as well
 *   -s N    threads of SCHED_BATCH that only spin
 *   -y N    rounds after which a thread yields (32), so that blocks change hands also where there
 * are few processors; 0: never -m N    MiB of other blocks, so that a fork takes long -w N    wrong
 * frees, about: of blocks that were freed before, and of what never was a block (needs libtorture)
 *   -r      a block that is freed twice may be in use again at once
 *
 * With MT_TRUTH=FILE it writes there what truth.h says. It ends with 0 when all went as it should.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/stopper.h"
#include "tests/e2e/truth.h"

#define THREADS_MAX   128u
#define PLACES	      64u
#define LOT	      32u
#define NUMBERS	      1024u /* that a thread claims at a time */
#define KEPT	      64u   /* blocks that parent and child both use */
#define CHILD_THREADS 2u
#define CHILD_ROUNDS  300u
#define CHILDREN      4u /* at a time */
#define HEAP_BLOCK    4080u
#define FRESH	      4096u /* addresses that never were a block */

/* What stands in a block. */
struct mark {
	uint64_t number;
	uint64_t pid;
};

struct lot {
	void *blocks[LOT];
};

struct worker {
	pthread_t id;
	uint64_t random;
	uint64_t number, numbers_end;
	uint64_t frees, wrong_frees;
	uint64_t rounds;
	uint64_t until_wrong;
	int32_t tid;
	struct lot *lot;
};

static struct {
	unsigned threads, forks, spinners, yield, stop_us;
	uint64_t events, heap_mib, wrong;
	bool reused;
	void (*round)(struct worker *worker);
	unsigned round_events;
} plan = { .threads = 2, .events = 100000, .yield = 32, .stop_us = 300 };

static struct truth *truth;
static void *places[PLACES];
static struct lot *lots[PLACES];
static struct lot lot_pool[PLACES + THREADS_MAX];
static uint32_t lots_used;
static pthread_barrier_t start;
static uint32_t forking; /* the workers go on until it is 0 */
static uint32_t spinning;
static uint64_t pid;
static uint32_t **directory; /* counters of addresses, by address >> DIRECTORY_SHIFT */
static torture_next_free_fn *torture_next_free;
static char never_a_block[FRESH][16] __attribute__((aligned(16)));

static void fail(const char *what)
{
	fprintf(stderr, "exchange: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static uint32_t dice(struct worker *worker)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return (uint32_t)(worker->random >> 16);
}

#define DIRECTORY_SHIFT	  21
#define DIRECTORY_ENTRIES (UINT64_C(1) << (47 - DIRECTORY_SHIFT))
#define DIRECTORY_COUNTS  (UINT64_C(1) << (DIRECTORY_SHIFT - 3))

static void *map(size_t bytes, int flags, int fd)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	return at;
}

/* The counter of an address: whoever owns the block may write it. */
static uint32_t *counter_of(const void *block)
{
	uint64_t addr = (uintptr_t)block;
	uint32_t **entry = &directory[addr >> DIRECTORY_SHIFT];
	uint32_t *counts = __atomic_load_n(entry, __ATOMIC_ACQUIRE), *mine;

	if (__builtin_expect(!counts, 0)) {
		mine = map(DIRECTORY_COUNTS * sizeof(*mine), MAP_PRIVATE | MAP_ANONYMOUS, -1);
		if (__atomic_compare_exchange_n(entry, &counts, mine, 0, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			counts = mine;
		else
			munmap(mine, DIRECTORY_COUNTS * sizeof(*mine));
	}
	return &counts[(addr >> 3) & (DIRECTORY_COUNTS - 1)];
}

static uint64_t new_number(struct worker *worker)
{
	if (!truth)
		return 0;
	if (worker->number == worker->numbers_end) {
		worker->number = __atomic_fetch_add(&truth->next, NUMBERS, __ATOMIC_RELAXED);
		worker->numbers_end = worker->number + NUMBERS;
		if (worker->numbers_end > truth->entries)
			fail("more allocations than the file has room for");
	}
	return worker->number++;
}

static size_t sized(uint64_t number, uint64_t bytes)
{
	return truth ? TRUTH_MARK | number << TRUTH_BYTES_BITS | bytes : bytes;
}

/* We own the block now. */
static void *note(void *block, uint64_t number)
{
	struct mark *mark = block;

	if (!block)
		fail("an allocation");
	mark->number = number;
	mark->pid = pid;
	if (truth)
		truth->entry[number].place = ++*counter_of(block);
	return block;
}

/* We are about to free it, or to reallocate it. */
static void sign(struct worker *worker, const void *block)
{
	const struct mark *mark = block;

	worker->frees++;
	if (truth && mark->pid == pid)
		truth->entry[mark->number].freer = worker->tid;
}

static void *take(struct worker *worker)
{
	uint64_t number = new_number(worker);

	return note(malloc(sized(number, 16 + dice(worker) % 48)), number);
}

static void give(struct worker *worker, void *block)
{
	sign(worker, block);
	free(block);
}

static void *take_somehow(struct worker *worker)
{
	uint32_t how = dice(worker) % 16;
	uint64_t number;

	if (how < 8)
		return take(worker);
	number = new_number(worker);
	if (how < 14)
		return note(calloc(1, sized(number, 16 + dice(worker) % 48)), number);
	return note(aligned_alloc(64, sized(number, 64)), number);
}

/* Grows out of its size class, shrinks, stays, or cannot be done. */
static void *change(struct worker *worker, void *block)
{
	static const uint16_t bytes[] = { 24, 40, 200, 1000, 3000 };
	uint32_t how = dice(worker) % 32;
	uint64_t number;

	if (how == 0) {
		if (realloc(block, SIZE_MAX / 4))
			fail("a realloc of a quarter of all there is did not fail, but");
		return block;
	}
	number = new_number(worker);
	sign(worker, block);
	return note(realloc(block, sized(number, bytes[how % 5])), number);
}

static void swap_round(struct worker *worker)
{
	void *block = take(worker);

	block = __atomic_exchange_n(&places[dice(worker) % PLACES], block, __ATOMIC_ACQ_REL);
	if (block)
		give(worker, block);
}

static void mixed_round(struct worker *worker)
{
	void *block = take_somehow(worker);

	if (dice(worker) % 4 == 0)
		block = change(worker, block);
	block = __atomic_exchange_n(&places[dice(worker) % PLACES], block, __ATOMIC_ACQ_REL);
	if (!block)
		return;
	if (dice(worker) % 4 == 0)
		block = change(worker, block);
	give(worker, block);
}

static void give_lot(struct worker *worker, struct lot *lot)
{
	for (unsigned i = 0; i < LOT; i++) {
		if (lot->blocks[i])
			give(worker, lot->blocks[i]);
		lot->blocks[i] = NULL;
	}
}

static void batch_round(struct worker *worker)
{
	struct lot *lot = worker->lot;

	if (!lot)
		lot = &lot_pool[__atomic_fetch_add(&lots_used, 1, __ATOMIC_RELAXED)];
	for (unsigned i = 0; i < LOT; i++)
		lot->blocks[i] = take(worker);
	lot = __atomic_exchange_n(&lots[dice(worker) % PLACES], lot, __ATOMIC_ACQ_REL);
	if (lot)
		give_lot(worker, lot);
	worker->lot = lot;
}

static void hand_round(struct worker *worker)
{
	give(worker, take(worker));
}

static void ignored_free(struct worker *worker, void *block)
{
	torture_next_free(TORTURE_IGNORE);
	worker->wrong_frees++;
	free(block);
}

/* Now a block is freed twice, now one that never was. */
static void free_wrongly(struct worker *worker)
{
	void *block;

	if (worker->wrong_frees % 2) {
		ignored_free(worker, never_a_block[dice(worker) % FRESH]);
		return;
	}
	block = take(worker);
	sign(worker, block);
	if (!plan.reused)
		torture_next_free(TORTURE_QUARANTINE);
	free(block);
	ignored_free(worker, block);
}

static void work(struct worker *worker, uint64_t rounds, const uint32_t *go_on)
{
	uint64_t step = plan.wrong ? plan.threads * rounds / plan.wrong + 1 : UINT64_MAX;

	for (uint64_t i = 0; i < rounds || __atomic_load_n(go_on, __ATOMIC_ACQUIRE); i++) {
		plan.round(worker);
		if (i % step == step - 1)
			free_wrongly(worker);
		if (plan.yield && i % plan.yield == 0)
			sched_yield();
	}
	if (truth) {
		__atomic_fetch_add(&truth->frees, worker->frees, __ATOMIC_RELAXED);
		__atomic_fetch_add(&truth->wrong_frees, worker->wrong_frees, __ATOMIC_RELAXED);
		worker->frees = worker->wrong_frees = 0;
	}
}

static void *run_worker(void *data)
{
	struct worker *worker = data;
	timer_t timer = NULL;

	worker->tid = (int32_t)syscall(SYS_gettid);
	pthread_barrier_wait(&start);
	if (plan.stop_us)
		timer = stopper_start(worker->tid, plan.stop_us * (plan.threads / 2 + 1));
	work(worker, worker->rounds, &forking);
	if (plan.stop_us)
		stopper_end(timer);
	return NULL;
}

static void *spin(void *unused)
{
	struct sched_param param = { 0 };

	if (sched_setscheduler(0, SCHED_BATCH, &param))
		fail("SCHED_BATCH");
	pthread_barrier_wait(&start);
	while (__atomic_load_n(&spinning, __ATOMIC_ACQUIRE))
		;
	return unused;
}

static void start_workers(struct worker *workers, unsigned count, uint64_t rounds)
{
	for (unsigned i = 0; i < count; i++) {
		workers[i] = (struct worker){
			.random = UINT64_C(0x9e3779b97f4a7c15) * (i + 1) ^ pid << 20,
			.rounds = rounds,
		};
		if (pthread_create(&workers[i].id, NULL, run_worker, &workers[i]))
			fail("pthread_create");
	}
}

/* Nobody else is left: gives all back that lies about. */
static void clear(struct worker *self)
{
	for (unsigned i = 0; i < PLACES; i++)
		if (places[i])
			give(self, places[i]);
	for (unsigned i = 0; i < PLACES + THREADS_MAX; i++)
		give_lot(self, &lot_pool[i]);
	work(self, 0, &(uint32_t){ 0 });
}

/* Changes or frees some blocks, takes others for them. Parent and child do it to the same ones. */
static void use_kept(struct worker *self, void **kept)
{
	for (unsigned i = 0; i < KEPT; i++) {
		switch (dice(self) % 4) {
		case 0:
			give(self, kept[i]);
			kept[i] = take(self);
			break;
		case 1:
		case 2:
			kept[i] = change(self, kept[i]);
			break;
		}
	}
}

/* Other threads' blocks are as the fork found them, which may be between any two instructions. */
static __attribute__((noreturn)) void be_child(struct worker *self, void **kept)
{
	static struct worker workers[CHILD_THREADS];

	alarm(60);
	pid = (uint64_t)getpid();
	*self = (struct worker){ .random = self->random ^ pid, .tid = (int32_t)pid };
	memset(places, 0, sizeof(places));
	memset(lots, 0, sizeof(lots));
	memset(lot_pool, 0, sizeof(lot_pool));
	lots_used = 0;
	forking = 0;
	use_kept(self, kept);
	pthread_barrier_init(&start, NULL, CHILD_THREADS + 1);
	start_workers(workers, CHILD_THREADS, CHILD_ROUNDS * 2 / plan.round_events);
	pthread_barrier_wait(&start);
	use_kept(self, kept);
	for (unsigned i = 0; i < CHILD_THREADS; i++)
		pthread_join(workers[i].id, NULL);
	for (unsigned i = 0; i < KEPT; i++)
		give(self, kept[i]);
	clear(self);
	_exit(0);
}

static void wait_for_child(void)
{
	int status;

	if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "exchange: a child ended with status %#x\n", (unsigned)status);
		_exit(1);
	}
}

static void fork_often(struct worker *self)
{
	void *kept[KEPT];
	unsigned children = 0;

	if (plan.forks == 0) /* and the first two workers are libtorture's first pair */
		return;
	for (unsigned i = 0; i < KEPT; i++)
		kept[i] = take(self);
	for (unsigned i = 0; i < plan.forks; i++) {
		pid_t child;

		/* Some that other threads took. */
		for (unsigned j = 0; plan.round == swap_round && j < KEPT; j += 2)
			kept[j] = __atomic_exchange_n(&places[j], kept[j], __ATOMIC_ACQ_REL)
					  ?: take(self);
		child = fork();
		if (child < 0)
			fail("fork");
		if (child == 0)
			be_child(self, kept);
		use_kept(self, kept);
		if (++children > CHILDREN) {
			wait_for_child();
			children--;
		}
	}
	for (; children > 0; children--)
		wait_for_child();
	for (unsigned i = 0; i < KEPT; i++)
		give(self, kept[i]);
}

static void open_truth(void)
{
	const char *path = getenv(TRUTH_ENV);
	/*
	 * Each thread leaves some of what it claims unused. As long as there are forks to do, the
	 * workers go on; room in a file that is not used costs nothing.
	 */
	uint64_t entries = plan.events + plan.events / 2 + 4 * plan.wrong + NUMBERS * THREADS_MAX +
			   (plan.forks ? UINT64_C(1) << 28 : 0);
	int fd;

	if (!path)
		return;
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 ||
	    ftruncate(fd, (off_t)(sizeof(struct truth) + entries * sizeof(struct truth_entry))))
		fail(path);
	truth = map(sizeof(struct truth) + entries * sizeof(struct truth_entry), MAP_SHARED, fd);
	close(fd);
	truth->entries = entries;
	truth->next = 1;
	directory = map(DIRECTORY_ENTRIES * sizeof(*directory), MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void **fill_heap(size_t *ret_count)
{
	size_t count = (size_t)(plan.heap_mib << 20) / (HEAP_BLOCK + 16);
	void **heap = calloc(count + 1, sizeof(*heap));

	if (!heap)
		fail("the heap");
	for (size_t i = 0; i < count; i++) {
		heap[i] = malloc(HEAP_BLOCK);
		if (!heap[i])
			fail("the heap");
		memset(heap[i], 1, HEAP_BLOCK);
	}
	*ret_count = count;
	return heap;
}

static bool set_test(const char *name)
{
	static const struct {
		const char *name;
		void (*round)(struct worker *worker);
		unsigned events;
	} tests[] = {
		{ "swap", swap_round, 2 },
		{ "mixed", mixed_round, 3 },
		{ "batch", batch_round, 2 * LOT },
		{ "hand", hand_round, 2 },
	};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (strcmp(name, tests[i].name) == 0) {
			plan.round = tests[i].round;
			plan.round_events = tests[i].events;
			return true;
		}
	}
	return false;
}

static bool parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "t:n:f:s:y:i:m:w:r")) != -1) {
		uint64_t value = optarg ? strtoull(optarg, NULL, 10) : 0;

		switch (option) {
		case 't':
			plan.threads = (unsigned)value;
			break;
		case 'n':
			plan.events = value;
			break;
		case 'f':
			plan.forks = (unsigned)value;
			break;
		case 's':
			plan.spinners = (unsigned)value;
			break;
		case 'y':
			plan.yield = (unsigned)value;
			break;
		case 'i':
			plan.stop_us = (unsigned)value;
			break;
		case 'm':
			plan.heap_mib = value;
			break;
		case 'w':
			plan.wrong = value;
			break;
		case 'r':
			plan.reused = true;
			break;
		default:
			return false;
		}
	}
	*(void **)&torture_next_free = dlsym(RTLD_DEFAULT, TORTURE_NEXT_FREE);
	return optind + 1 == argc && set_test(argv[optind]) && plan.threads > 0 &&
	       plan.threads <= THREADS_MAX && plan.spinners <= THREADS_MAX &&
	       (plan.wrong == 0 || torture_next_free);
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	static struct worker self = { .random = 88172645463325252u };
	pthread_t spinners[THREADS_MAX];
	void **heap;
	size_t heap_count;

	if (!parse(argc, argv)) {
		fputs("exchange: wrong arguments\n", stderr);
		return 2;
	}
	pid = (uint64_t)getpid();
	self.tid = (int32_t)pid;
	if (plan.stop_us)
		stopper_init();
	open_truth();
	heap = fill_heap(&heap_count);
	forking = plan.forks;
	spinning = 1;
	pthread_barrier_init(&start, NULL, plan.threads + plan.spinners + 1);
	start_workers(workers, plan.threads, plan.events / plan.round_events / plan.threads + 1);
	for (unsigned i = 0; i < plan.spinners; i++)
		if (pthread_create(&spinners[i], NULL, spin, NULL))
			fail("pthread_create");
	pthread_barrier_wait(&start);
	fork_often(&self);
	__atomic_store_n(&forking, 0, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < plan.threads; i++)
		pthread_join(workers[i].id, NULL);
	__atomic_store_n(&spinning, 0, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < plan.spinners; i++)
		pthread_join(spinners[i], NULL);
	clear(&self);
	for (size_t i = 0; i < heap_count; i++)
		free(heap[i]);
	free(heap);
	return 0;
}
