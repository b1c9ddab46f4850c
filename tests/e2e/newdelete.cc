/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Every form of operator new and delete, each block with a size of its own, a class with its own
 * operators, a new that throws, and a new_handler that helps once. The exit status says what
 * failed.
 */
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

/* gcc 10 takes a new with its delete away. */
#ifndef __clang__
#pragma GCC optimize("O0")
#endif

namespace
{

const std::align_val_t wide{ 64 };

struct own {
	static void *operator new(std::size_t size)
	{
		return std::malloc(size);
	}
	static void operator delete(void *block)
	{
		std::free(block);
	}
	char bytes[7001];
};

struct alignas(128) aligned {
	char bytes[128];
};

int helped;

void help_once()
{
	helped++;
	std::set_new_handler(nullptr);
}

/* Sizes 5001 to 5008. */
void plain_forms()
{
	::operator delete(::operator new(5001));
	::operator delete[](::operator new[](5002));
	::operator delete (::operator new(5003), std::size_t{ 5003 });
	::operator delete[](::operator new[](5004), std::size_t{ 5004 });
	::operator delete(::operator new(5005, std::nothrow), std::nothrow);
	::operator delete[](::operator new[](5006, std::nothrow), std::nothrow);
	::operator delete(::operator new(5007, std::nothrow));
	::operator delete[](::operator new[](5008, std::nothrow));
}

/* Sizes 6016 to 6208, multiples of the alignment, as aligned_alloc would have them. */
void aligned_forms()
{
	::operator delete(::operator new(6016, wide), wide);
	::operator delete[](::operator new[](6080, wide), wide);
	::operator delete (::operator new(6144, wide), std::size_t{ 6144 }, wide);
	::operator delete[](::operator new[](6208, wide), std::size_t{ 6208 }, wide);
	::operator delete(::operator new(6272, wide, std::nothrow), wide, std::nothrow);
	::operator delete[](::operator new[](6336, wide, std::nothrow), wide, std::nothrow);
}

bool throws(std::size_t size)
{
	try {
		::operator delete(::operator new(size));
	} catch (const std::bad_alloc &) {
		return true;
	}
	return false;
}

} /* namespace */

int main()
{
	/* A size that the compiler does not see through. */
	volatile std::size_t most = PTRDIFF_MAX - 100;

	for (int round = 0; round < 100; round++) {
		plain_forms();
		aligned_forms();
		delete new own;
		delete new aligned;
		::operator delete(nullptr);
	}
	if (!throws(most))
		return 1;
	if (::operator new(most, std::nothrow))
		return 2;
	std::set_new_handler(help_once);
	if (!throws(most) || helped != 1)
		return 3;
	/* After an exception has passed through, blocks are still recorded, once each. */
	for (int round = 0; round < 10; round++)
		::operator delete(::operator new(5555));
	std::vector<std::string> many;
	for (int i = 0; i < 10000; i++)
		many.push_back(std::string(static_cast<std::size_t>(i % 100), 'x'));
	return many.size() == 10000 ? 0 : 4;
}
