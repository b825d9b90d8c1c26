#include "cxx.h"
#include <stdexcept>
#include <string>
thread_local int Counted::count = 0;
Counted::~Counted() {}
int Counted::add() { return ++count; }
void throws(int what)
{
	if (what == 1)
		throw std::runtime_error("thrown " + std::to_string(what));
	if (what == 2)
		throw Own{42};
	throw what;
}
Counted *make() { return new Derived; }
static struct Global {
	Global() { events() += "base,"; }
} global;
