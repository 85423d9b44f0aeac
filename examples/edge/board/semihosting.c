#include "board.h"

enum {
    SYS_OPEN = 0x01, SYS_CLOSE = 0x02, SYS_WRITE0 = 0x04, SYS_WRITE = 0x05, SYS_READ = 0x06,
    SYS_SEEK = 0x0a, SYS_GET_CMDLINE = 0x15, SYS_EXIT_EXTENDED = 0x20,
    STOPPED_BY_EXIT = 0x20026,
};

static intptr_t call(int number, const void *block)
{
    register intptr_t r0 __asm__("r0") = number;
    register const void *r1 __asm__("r1") = block;
#if __ARM_ARCH_PROFILE == 'M'
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
#elif defined(__thumb__)
    __asm__ volatile("svc 0xab" : "+r"(r0) : "r"(r1) : "memory", "lr");
#else
    __asm__ volatile("svc 0x123456" : "+r"(r0) : "r"(r1) : "memory", "lr");
#endif
    return r0;
}

static size_t length_of(const char *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    return n;
}

int open_file(const char *name, int mode)
{
    const uintptr_t block[] = {(uintptr_t)name, (uintptr_t)mode, length_of(name)};
    return (int)call(SYS_OPEN, block);
}

size_t read_file(int file, void *bytes, size_t n)
{
    const uintptr_t block[] = {(uintptr_t)file, (uintptr_t)bytes, n};
    return n - (size_t)call(SYS_READ, block);
}

int write_file(int file, const void *bytes, size_t n)
{
    const uintptr_t block[] = {(uintptr_t)file, (uintptr_t)bytes, n};
    return (int)call(SYS_WRITE, block);
}

int seek_file(int file, size_t place)
{
    const uintptr_t block[] = {(uintptr_t)file, place};
    return (int)call(SYS_SEEK, block);
}

void close_file(int file)
{
    const uintptr_t block[] = {(uintptr_t)file};
    call(SYS_CLOSE, block);
}

void print(const char *text) { call(SYS_WRITE0, text); }

void print_number(int64_t number)
{
    char digits[21], *first = digits + sizeof digits - 1;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    *first = '\0';
    do
        *--first = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--first = '-';
    print(first);
}

size_t read_command_line(char *line, size_t n)
{
    uintptr_t block[] = {(uintptr_t)line, n};
    return call(SYS_GET_CMDLINE, block) == 0 ? (size_t)block[1] : 0;
}

void leave(int status)
{
    const uintptr_t block[] = {STOPPED_BY_EXIT, (uintptr_t)status};
    for (;;)
        call(SYS_EXIT_EXTENDED, block);
}
