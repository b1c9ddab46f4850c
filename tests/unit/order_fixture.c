/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tests/unit/order_fixture.h"

struct bench bench;
struct bench_image image;
struct mt_writer one, two;

void add_image(void)
{
	bench_image(&bench, &image, PID, 0);
	one = bench_thread(&image, image.proc, PID);
	two = bench_thread(&image, image.proc, PID + 1);
}

void open_image(void)
{
	struct bench_options options = { 0 };

	bench_open(&bench, &options);
	add_image();
}

void open_kernel(void)
{
	struct bench_options options = { .kernel_events = true };

	bench_open(&bench, &options);
}

void close_bench(void)
{
	bench_close(&bench);
}

void put(struct mt_writer *writer, uint64_t at, enum mt_rec_kind kind, uint64_t addr)
{
	bench_put(&bench, &image, writer, at, kind, addr, 8);
}

struct mt_kev kernel_event(enum mt_kev_type type, int32_t pid, int32_t parent_pid, uint64_t at)
{
	return (struct mt_kev){
		.type = (int32_t)type,
		.pid = pid,
		.tid = pid,
		.ns_pid = pid,
		.ns_tid = pid,
		.parent_pid = parent_pid,
		.parent_tid = parent_pid,
		.time_ns = bench.base + at,
	};
}

void kernel(enum mt_kev_type type, int32_t pid, int32_t parent_pid, uint64_t at)
{
	bench.kernel[bench.kernel_count++] = kernel_event(type, pid, parent_pid, at);
}
