#ifndef _SYS_CDEFS_H
#define _SYS_CDEFS_H
#include <features.h>

#ifdef __cplusplus
#define __BEGIN_DECLS extern "C" {
#define __END_DECLS }
#define __THROW throw()
#else
#define __BEGIN_DECLS
#define __END_DECLS
#define __THROW
#endif
#define __P(args) args
#define __PMT(args) args
#define __CONCAT(x, y) x ## y
#define __STRING(x) #x
#define __glibc_unlikely(x) __builtin_expect((x), 0)
#define __glibc_likely(x) __builtin_expect((x), 1)
#define __attribute_pure__ __attribute__((__pure__))
#define __attribute_used__ __attribute__((__used__))
#define __attribute_noinline__ __attribute__((__noinline__))
#define __attribute_deprecated__ __attribute__((__deprecated__))
#define __wur

#endif
