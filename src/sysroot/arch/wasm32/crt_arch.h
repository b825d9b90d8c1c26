/* See crt/wasm32/crt1.c: the entry is a C function. */
