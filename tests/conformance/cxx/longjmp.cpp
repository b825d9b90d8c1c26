// longjmp runs no destructors, neither of the functions that it leaves nor of the one that it comes
// back to, whose objects live on.
#include <csetjmp>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

struct Noted {
	const char *name;
	explicit Noted(const char *name) : name(name) { std::printf("+%s\n", name); }
	Noted(const Noted &) = delete;
	Noted(Noted &&other) noexcept : name(other.name) { std::printf("*%s\n", name); }
	~Noted() { std::printf("-%s\n", name); }
};

static jmp_buf back;

[[gnu::noinline]] static void leave(int value)
{
	Noted here("leave");
	if (value)
		longjmp(back, value);
}

[[gnu::noinline]] static void between(int value)
{
	Noted here("between");
	try {
		leave(value);
	} catch (...) {
		std::puts("caught between");
		throw;
	}
}

[[gnu::noinline]] static void silent(int value) noexcept
{
	Noted here("silent");
	between(value);
}

[[gnu::noinline]] static void fails(int value)
{
	Noted here("fails");
	if (value)
		throw std::runtime_error("failed");
}

/* Exceptions take the way that they took, around what longjmp passes by. */
static void exceptions()
{
	for (int i = 0; i < 3; i++) {
		Noted loop("loop");
		try {
			Noted tried("tried");
			fails(i);
			if (!i)
				continue;
		} catch (const std::exception &e) {
			std::printf("caught %s\n", e.what());
			if (i == 2)
				break;
		}
	}
}

[[gnu::noinline]] static int jumps()
{
	std::string text(100, 'x');
	Noted whole("whole");
	int came = setjmp(back);

	std::printf("came by %d, %c\n", came, text[50]);
	switch (came) {
	case 0:
		leave(1);
		break;
	case 1:
		between(2);
		break;
	case 2:
		silent(3);
		break;
	case 3: {
		std::vector<Noted> all;
		all.emplace_back("element");
		try {
			Noted tried("tried");
			if (all.size() == 1)
				longjmp(back, 4);
		} catch (...) {
			std::puts("never");
		}
		break;
	}
	default:
		exceptions();
	}
	return came;
}

/* The inner one is come back to from below the outer one's function. */
[[gnu::noinline]] static void nested()
{
	jmp_buf inner;
	Noted outside("outside");

	if (!setjmp(inner)) {
		Noted inside("inside");
		longjmp(inner, 1);
	}
	std::puts("nested");
}

int main()
{
	int status = 0;

	setvbuf(stdout, NULL, _IONBF, 0);
	std::printf("%d\n", jumps());
	nested();
	if (!fork()) {
		Noted child("child");
		std::printf("%d in the child\n", jumps());
		_exit(3);
	}
	wait(&status);
	std::printf("%d\n", WEXITSTATUS(status));
	Noted last("last");
	return 0;
}
