/* How deep a stack guard_stream needs, the C library's printf included: it runs on one that was
 * painted, and what keeps its colour was never touched. */
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

int guard_main(int n_arguments, char **arguments); /* the main of guard_stream.c */

enum { COLOUR = 0x5a, STACK_BYTES = 1 << 18 };

static char stack[STACK_BYTES];
static ucontext_t here, there;
static int n, status;
static char **words;

static void run(void) { status = guard_main(n, words); }

int main(int n_arguments, char **arguments)
{
    n = n_arguments;
    words = arguments;
    memset(stack, COLOUR, sizeof stack);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    there.uc_link = &here;
    makecontext(&there, run, 0);
    swapcontext(&here, &there);
    int untouched = 0;
    while (stack[untouched] == COLOUR)
        untouched++;
    fprintf(stderr, "stack %d\n", STACK_BYTES - untouched);
    return status;
}
