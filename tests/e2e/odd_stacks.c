/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * odd_stacks ROUNDS: takes and frees blocks from places where a walk over the stack would go wrong:
 * with a frame pointer that points nowhere (81001 bytes), from a code page of its own (81002), from
 * a coroutine (81003), from the last page of a stack (81004), from a signal's own stack (81005).
 * ROUNDS of each; the exit status says what went wrong, 77 that the machine has no such code.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define PAGE	    4096UL
#define STACK_BYTES (64 * 1024UL)

static long rounds;
static int failed;

static void check(int good, int what)
{
	if (!good && !failed)
		failed = what;
}

static void take_and_free(size_t size, int what)
{
	for (long i = 0; i < rounds; i++) {
		unsigned char *block = malloc(size);

		check(block != NULL, what);
		if (!block)
			return;
		block[0] = block[size - 1] = 1;
		free(block);
	}
}

#if defined(__x86_64__)
/* call_framed(function, argument, frame, stack): calls it with that rbp; on `stack` unless NULL. */
void *call_framed(void *(*function)(size_t), size_t argument, uint64_t frame, void *stack);
__asm__(".globl call_framed\n"
	".type call_framed, @function\n"
	"call_framed:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	sub $8, %rsp\n"
	"	mov %rsp, %rbx\n"
	"	test %rcx, %rcx\n"
	"	cmovnz %rcx, %rsp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rbp\n"
	"	call *%rax\n"
	"	mov %rbx, %rsp\n"
	"	add $8, %rsp\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size call_framed, .-call_framed\n");

/* sub $8,%rsp; movabs $function,%rax; call *%rax; add $8,%rsp; ret */
static const unsigned char caller[] = { 0x48, 0x83, 0xec, 8,	0x48, 0xb8, 0,	  0,	0, 0,	0,
					0,    0,    0,	  0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3 };
#define CALLER_TARGET 6

static void wild_frames(void)
{
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	uint64_t frames[] = { 0,
			      1,
			      8,
			      0xdeadbeefdeadbeef,
			      0x7ffffffffffffff8,
			      0xffffffffff600000,
			      UINT64_MAX,
			      here + 1,
			      here - 256,
			      (uint64_t)(uintptr_t)wild_frames,
			      (uint64_t)(uintptr_t)&frames };

	for (long i = 0; i < rounds; i++) {
		void *block = call_framed(malloc, 81001, frames[(size_t)i % 11], NULL);

		check(block != NULL, 1);
		call_framed((void *(*)(size_t))(uintptr_t)free, (size_t)(uintptr_t)block,
			    frames[(size_t)(i + 5) % 11], NULL);
	}
}

static void from_code_page(void)
{
	unsigned char *page =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *(*function)(size_t) = malloc;
	void *(*call)(size_t);

	check(page != MAP_FAILED, 2);
	memcpy(page, caller, sizeof(caller));
	memcpy(page + CALLER_TARGET, &function, sizeof(function));
	check(mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0, 2);
	call = (void *(*)(size_t))(uintptr_t)page;
	for (long i = 0; i < rounds; i++) {
		void *block = call(81002);

		check(block != NULL, 2);
		free(block);
	}
	munmap(page, PAGE);
}

/* Its pages end right above; below, the one page that is left has a guard. */
static void from_last_page(void)
{
	char *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(stack != MAP_FAILED && mprotect(stack, PAGE, PROT_NONE) == 0, 4);
	/* Bound before, since the loader's own look-up needs more than a page. */
	free(malloc(1));
	for (long i = 0; i < rounds; i++) {
		void *block = call_framed(malloc, 81004, 0, stack + 2 * PAGE);

		check(block != NULL, 4);
		call_framed((void *(*)(size_t))(uintptr_t)free, (size_t)(uintptr_t)block, 0,
			    stack + 2 * PAGE);
	}
	/* The other end: nothing is mapped above the frame that calls. */
	mprotect(stack + STACK_BYTES - PAGE, PAGE, PROT_NONE);
	for (long i = 0; i < rounds; i++) {
		void *block = call_framed(malloc, 81006,
					  (uint64_t)(uintptr_t)(stack + STACK_BYTES - PAGE - 8),
					  stack + STACK_BYTES - PAGE);

		check(block != NULL, 5);
		free(block);
	}
	munmap(stack, STACK_BYTES);
}
#endif

static ucontext_t main_context, coroutine;

static void run_coroutine(void)
{
	for (long i = 0; i < rounds; i++) {
		void *block = malloc(81003);

		check(block != NULL, 3);
		if (i % 7 == 0)
			swapcontext(&coroutine, &main_context);
		free(block);
	}
}

static void from_coroutine(void)
{
	char *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(stack != MAP_FAILED && getcontext(&coroutine) == 0, 3);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = STACK_BYTES;
	coroutine.uc_link = &main_context;
	makecontext(&coroutine, run_coroutine, 0);
	for (long i = 0; i <= (rounds + 6) / 7; i++)
		swapcontext(&main_context, &coroutine);
	munmap(stack, STACK_BYTES);
}

static void on_signal(int number)
{
	(void)number;
	take_and_free(81005, 6);
}

/* The signal is our own and comes outside of malloc. */
static void from_signal_stack(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	char *area =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = area, .ss_size = STACK_BYTES };

	check(area != MAP_FAILED && sigaltstack(&stack, NULL) == 0, 6);
	check(sigaction(SIGUSR1, &action, NULL) == 0 && raise(SIGUSR1) == 0, 6);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	munmap(area, STACK_BYTES);
}

int main(int argc, char **argv)
{
	rounds = argc > 1 ? atol(argv[1]) : 100;
	from_coroutine();
	from_signal_stack();
#if defined(__x86_64__)
	wild_frames();
	from_code_page();
	from_last_page();
#else
	if (!failed)
		return 77;
#endif
	return failed;
}
