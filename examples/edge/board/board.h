/* The little that the programs ask of a board: a host behind the debugger, and flash. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* As in string.h, which comes with a C library. */
void *memset(void *to, int value, size_t n);
void *memcpy(void *to, const void *from, size_t n);

/* ---- semihosting: the debugger, here QEMU, opens files for us -------------------------------- */

enum { READ_BYTES = 1, WRITE_BYTES = 5 }; /* modes: "rb", "wb" */

int open_file(const char *name, int mode); /* below 0: it cannot be opened */
size_t read_file(int file, void *bytes, size_t n); /* how many there were */
int write_file(int file, const void *bytes, size_t n); /* not 0: not all */
int seek_file(int file, size_t place);
void close_file(int file);
void print(const char *text);
void print_number(int64_t number);
size_t read_command_line(char *line, size_t n); /* its length; 0: it is too long */
void leave(int status) __attribute__((noreturn));

/* ---- flash of the nRF51: pages are erased to ones, and words are written into them ------------ */

enum { PAGE_BYTES = 1024 };

void erase_page(uintptr_t page);
void write_word(uintptr_t place, uint32_t word);

#endif
