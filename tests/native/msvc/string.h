/* What our sources need of Microsoft's header, to be looked at by Clang where there is none. */
#include <stddef.h>
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
