/* Programs are linked statically; nothing is relocated at run time. */
#define LDSO_ARCH "wasm32"

#define REL_SYMBOLIC 1
#define REL_GOT 2
#define REL_PLT 3

#define CRTJMP(pc, sp) __builtin_trap()
