/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A C++ library for plugins.c: operator new, thread-local storage, an exception, a constructor. */
#include <new>
#include <stdexcept>
#include <string>

namespace
{
thread_local char storage[64];
const std::string *made = new std::string(70000, 'p');
} /* namespace */

extern "C" int plugin_run(unsigned long size);

extern "C" __attribute__((visibility("default"))) int plugin_run(unsigned long size)
{
	storage[0] = static_cast<char>(storage[0] % 100 + 1);
	::operator delete(::operator new(size));
	try {
		throw std::runtime_error(std::string(100, 'x'));
	} catch (const std::exception &) {
		return made->size() == 70000 ? storage[0] : -1;
	}
}
