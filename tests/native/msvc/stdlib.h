/* What our sources need of Microsoft's header, to be looked at by Clang where there is none. */
#include <stddef.h>
void *malloc(size_t);
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void free(void *);
