# dlopen and dlsym in a program that is linked statically: ports/dlfcn.
from=$CASES/../../../ports/dlfcn
cat >names.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int answer = 42;
double half(double of, int times) { return times ? half(of / 2, times - 1) : of; }
int main(void)
{
	void *self = dlopen(NULL, RTLD_NOW), *libc = dlopen("libc.so.6", RTLD_NOW);
	double (*found)(double, int) = (double (*)(double, int))dlsym(self, "half");
	size_t (*length)(const char *) = (size_t (*)(const char *))dlsym(libc, "strlen");
	int *value = dlsym(RTLD_DEFAULT, "answer");
	printf("%g %zu %d\n", found(12, 2), length("four"), *value);
	printf("%d ", dlsym(self, "nothing") == NULL);
	printf("%s\n", dlerror());
	printf("%d ", dlopen("/lib/libother.so", RTLD_NOW) == NULL);
	printf("%s\n", strstr(dlerror(), "linked statically") ? "static" : "?");
	printf("%d %d %d\n", dlerror() == NULL, dlclose(self), dlclose(&answer));
	return 0;
}
END
lind-cc -O1 -c names.c -o names.o
"$from/symbols.py" '(?!dlinfo$)[a-z]\w*' "$CASES/../../../build/sysroot/lib/libc.a" '\w*' names.o >symbols.s
lind-cc -O1 -Wall -Wextra -Werror names.o "$from/dl.c" symbols.s -o "$CAGE/names.wasm"
[ "$(lind_run --root "$CAGE" names.wasm)" = "3 4 42
1 symbol not found: nothing
1 static
1 0 -1" ]
