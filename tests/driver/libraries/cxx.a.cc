// needs base
#include "cxx.h"
#include <stdexcept>
static struct Global {
	Global() { events() += "a,"; }
} global;
extern "C" int catches(int what)
{
	Counted counted;
	counted.add();
	try {
		throws(what);
	} catch (const std::exception &e) {
		return e.what()[0];
	} catch (const Own &own) {
		return own.value;
	}
	return -1;
}
extern "C" void passes(int what, int *left)
{
	struct Guard {
		int *left;
		~Guard() { ++*left; }
	} guard{left};
	throws(what);
}
extern "C" int is_derived() { return dynamic_cast<Derived *>(make()) != nullptr; }
extern "C" int *singleton() { return &once(); }
extern "C" int largest() { return bigger(3, 9); }
