// Exceptions: matching by type, rethrowing, unwinding, and what they have to do with setjmp, fork
// and cancellation.
#include "check.h"
#include <csetjmp>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <typeinfo>
#include <vector>

static int alive;
struct Counted {
	Counted() { alive++; }
	Counted(const Counted &) { alive++; }
	~Counted() { alive--; }
};

struct Base { virtual ~Base() = default; virtual int number() const { return 1; } };
struct Left : virtual Base { int number() const override { return 2; } };
struct Right : virtual Base { };
struct Both : Left, Right { int number() const override { return 3; } };

__attribute__((noinline)) static void descend(int depth, const std::function<void()> &end)
{
	Counted here;
	if (depth == 0)
		end();
	else
		descend(depth - 1, end);
	CHECK(alive > 0);
}

static void by_type()
{
	try { throw Both(); } catch (const Base &e) { CHECK_EQ(e.number(), 3); }
	try { throw Both(); } catch (const Right &e) { CHECK_EQ(e.number(), 3); }
	try { throw 5L; } catch (int) { CHECK(false); } catch (long n) { CHECK_EQ(n, 5); }
	try { throw "text"; } catch (const std::string &) { CHECK(false); } catch (const char *s) { CHECK_STR(s, "text"); }
	try { throw nullptr; } catch (void *p) { CHECK(p == nullptr); }
	try { throw static_cast<Left *>(nullptr); } catch (Base *p) { CHECK(p == nullptr); }
	try { throw std::out_of_range("o"); } catch (const std::logic_error &e) { CHECK_STR(e.what(), "o"); }
	Base *none = nullptr;
	try { (void)typeid(*none).name(); CHECK(false); } catch (const std::bad_typeid &) { }
	Left left;
	try { (void)dynamic_cast<Right &>(static_cast<Base &>(left)); CHECK(false); } catch (const std::bad_cast &) { }
	CHECK(dynamic_cast<Right *>(static_cast<Base *>(&left)) == nullptr);
}

static void unwinding()
{
	for (int depth : {0, 1, 10, 1000}) {
		try { descend(depth, [] { throw 1.5; }); CHECK(false); } catch (...) { }
		CHECK_EQ(alive, 0);
	}
	// While it unwinds, a destructor may throw and catch.
	struct Throws { ~Throws() { try { throw 1; } catch (int) { CHECK_EQ(std::uncaught_exceptions(), 1); } } };
	try { Throws t; throw 2; } catch (int n) { CHECK_EQ(n, 2); }
	CHECK_EQ(std::uncaught_exceptions(), 0);
	// A constructor that throws: what was built goes, the rest was never there.
	struct Members { Counted a; Counted b; Members() { throw 3; } };
	try { Members m; CHECK(false); } catch (int) { }
	CHECK_EQ(alive, 0);
	try { std::unique_ptr<Counted[]> many(new Counted[7]); throw 4; } catch (int) { }
	CHECK_EQ(alive, 0);
}

static void again()
{
	std::exception_ptr kept;
	try {
		try { throw std::runtime_error("first"); }
		catch (std::runtime_error &) { kept = std::current_exception(); throw; }
	} catch (const std::exception &e) { CHECK_STR(e.what(), "first"); }
	for (int i = 0; i < 2; i++) {
		try { std::rethrow_exception(kept); } catch (const std::runtime_error &e) { CHECK_STR(e.what(), "first"); }
	}
	try {
		try { throw std::runtime_error("inner"); }
		catch (...) { std::throw_with_nested(std::logic_error("outer")); }
	} catch (const std::logic_error &e) {
		CHECK_STR(e.what(), "outer");
		try { std::rethrow_if_nested(e); CHECK(false); } catch (const std::runtime_error &i) { CHECK_STR(i.what(), "inner"); }
	}
	try { (void)std::vector<int>(static_cast<size_t>(-1)); CHECK(false); } catch (const std::length_error &) { }
	try { (void)std::vector<int>(3).at(3); CHECK(false); } catch (const std::out_of_range &) { }
	// More than any machine has; volatile, since compilers know.
	volatile size_t size = static_cast<size_t>(-1) / 2;
	try { delete[] new char[size]; CHECK(false); } catch (const std::bad_alloc &) { }
}

// longjmp goes past handlers of C++ exceptions that are in frames without destructors.
static jmp_buf place;
__attribute__((noinline)) static void jumps() { try { longjmp(place, 7); } catch (...) { CHECK(false); } }

static void jumping()
{
	int came = setjmp(place);
	if (came == 0)
		jumps();
	CHECK_EQ(came, 7);
	try { throw came; } catch (int n) { CHECK_EQ(n, 7); }
}

static void forking()
{
	Counted here;
	try {
		throw 9;
	} catch (int n) {
		pid_t child = fork();
		NEED(child >= 0);
		if (child == 0) {
			try { descend(3, [n] { throw n + 1; }); } catch (int m) { _exit(m + alive); }
			_exit(0);
		}
		int status = 0;
		NEED(waitpid(child, &status, 0) == child);
		CHECK_EQ(WEXITSTATUS(status), 11);
		CHECK_EQ(n, 9);
	}
	// A child below destructors and a try of its parent.
	pid_t child = 0;
	try {
		descend(5, [&] { child = fork(); if (child == 0) throw 12; });
	} catch (int n) {
		_exit(n + alive);
	}
	int status = 0;
	NEED(waitpid(child, &status, 0) == child);
	CHECK_EQ(WEXITSTATUS(status), 13);
}

int main()
{
	by_type();
	unwinding();
	again();
	jumping();
	forking();
	return check_done();
}
