// Tests that an uncaught exception ends the program by std::terminate, which says what was thrown:
// in main, in a thread, out of a function that may not throw, and by a handler of the program's
// own.
#include "check.h"
#include <csignal>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>

struct Ended { int status; std::string said; };

static Ended ended(const std::function<void()> &program)
{
	int ends[2];
	NEED(pipe(ends) == 0);
	pid_t child = fork();
	NEED(child >= 0);
	if (child == 0) {
		dup2(ends[1], 2);
		close(ends[0]);
		close(ends[1]);
		program();
		_exit(0);
	}
	close(ends[1]);
	Ended result{};
	char buffer[512];
	for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
		result.said.append(buffer, n);
	close(ends[0]);
	NEED(waitpid(child, &result.status, 0) == child);
	return result;
}

static void aborted(const Ended &end, const char *part)
{
	CHECK(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT);
	if (!CHECK(end.said.find(part) != std::string::npos))
		printf("said: %s\n", end.said.c_str());
}

static void thrower() { throw std::runtime_error("never"); }
static void never() noexcept { thrower(); }

int main()
{
	// In the child the exception leaves main, whose caller is the same as the parent's.
	aborted(ended([] { std::thread([] { throw std::runtime_error("in a thread"); }).join(); }), "in a thread");
	aborted(ended([] { never(); }), "terminat");
	aborted(ended([] { std::thread unjoined([] { }); }), "terminat");
	aborted(ended([] { throw; }), "terminat");

	Ended own = ended([] {
		std::set_terminate([] {
			try { std::rethrow_exception(std::current_exception()); } catch (int n) { _exit(n); }
		});
		std::thread([] { throw 42; }).join();
	});
	CHECK(WIFEXITED(own.status) && WEXITSTATUS(own.status) == 42);

	pid_t child;
	int ends[2], status;
	NEED(pipe(ends) == 0);
	child = fork();
	NEED(child >= 0);
	if (child == 0) {
		dup2(ends[1], 2);
		throw std::runtime_error("out of main");
	}
	close(ends[1]);
	std::string said;
	char buffer[512];
	for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
		said.append(buffer, n);
	NEED(waitpid(child, &status, 0) == child);
	aborted({status, said}, "out of main");
	aborted({status, said}, "runtime_error");
	return check_done();
}
