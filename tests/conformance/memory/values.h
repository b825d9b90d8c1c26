/* Initial data of any length in which no two words are alike: V4096(i) is 4096 of them, from the
 * i-th. */
#define V(i)     ((unsigned)(i) * 2654435761u + 1)
#define V4(i)    V(i), V((i) + 1), V((i) + 2), V((i) + 3)
#define V16(i)   V4(i), V4((i) + 4), V4((i) + 8), V4((i) + 12)
#define V64(i)   V16(i), V16((i) + 16), V16((i) + 32), V16((i) + 48)
#define V256(i)  V64(i), V64((i) + 64), V64((i) + 128), V64((i) + 192)
#define V1024(i) V256(i), V256((i) + 256), V256((i) + 512), V256((i) + 768)
#define V4096(i) V1024(i), V1024((i) + 1024), V1024((i) + 2048), V1024((i) + 3072)
