/* setjmp and longjmp are rewritten by the compiler wherever a function calls setjmp. The rewritten
 * code needs from libc: a mark that a buffer belongs to this call of this function, the question
 * whether it does, and a throw. The exception carries the address of the two words below. */
#include <setjmp.h>
#include <stdint.h>

struct jump {
	void *call; /* which run of which function called setjmp */
	uint32_t label; /* which of its setjmp calls; 0 is none */
	struct {
		void *env;
		int value;
	} thrown;
};

_Static_assert(sizeof(struct jump) <= sizeof(((struct __jmp_buf_tag *)0)->__jb), "jmp_buf is too small");

void __wasm_setjmp(void *env, uint32_t label, void *call)
{
	struct jump *jump = env;
	jump->call = call;
	jump->label = label;
}

uint32_t __wasm_setjmp_test(void *env, void *call)
{
	struct jump *jump = env;
	return jump->call == call ? jump->label : 0;
}

void __wasm_longjmp(void *env, int value)
{
	struct jump *jump = env;
	jump->thrown.env = env;
	jump->thrown.value = value ? value : 1;
	__builtin_wasm_throw(1, &jump->thrown);
}

__asm__ (
	".globl __c_longjmp\n"
	".tagtype __c_longjmp i32\n"
	"__c_longjmp:\n"
);
