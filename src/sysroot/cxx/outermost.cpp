// Calls main and a thread's function in a program that is linked as C++, in place of libc's
// (src/env/wasm32/outermost.c). WebAssembly unwinds in one phase: a throw does not know whether
// there is a handler, and the engine ends a program in which none was found. So there is a handler
// here, in which std::terminate says what was thrown.

#include <exception>

extern "C" {
int __main_void();

int __lind_call_main()
{
	try {
		return __main_void();
	} catch (...) {
		std::terminate();
	}
}

void *__lind_call_thread(void *(*function)(void *), void *argument)
{
	try {
		return function(argument);
	} catch (...) {
		std::terminate();
	}
}
}
