/* A lock that costs a few nanoseconds when nobody waits for it, knows whose it is, and lets Ctrl-C
 * through.
 *
 * A plain count tells who must wait: where there is a GIL, it is held wherever the lock is taken or
 * ended, and where there is none a mutex is, for these few steps.  Only who waits touches Python's
 * lock, which is otherwise taken: whoever ends lets one of them have it.  In a child made by fork no
 * thread lives but the one that forked, so nobody else has it there or waits.  Python's lock alone reads
 * the clock each time, which takes as long as a third of a query, and PyMutex ignores signals.
 */
#ifndef RADABOUND_QUICK_LOCK_H
#define RADABOUND_QUICK_LOCK_H

#include <Python.h>

enum { LOOK_AT_SIGNALS = 50000 }; /* microseconds: not every system wakes who waits for a signal */

struct quick_lock {
    Py_ssize_t n_takers;  /* who has it and who waits */
    unsigned long holder; /* the thread that has it; 0: none */
    long n_forks;         /* before it was taken last */
    PyThread_type_lock next;
#ifdef Py_GIL_DISABLED
    PyMutex steps;
#endif
};

#ifdef Py_GIL_DISABLED
#define BEGIN_STEPS(lock) PyMutex_Lock(&(lock)->steps)
#define END_STEPS(lock) PyMutex_Unlock(&(lock)->steps)
#else
#define BEGIN_STEPS(lock) ((void)0)
#define END_STEPS(lock) ((void)0)
#endif

static inline int quick_lock_new(struct quick_lock *lock)
{
    memset(lock, 0, sizeof *lock);
    lock->next = PyThread_allocate_lock();
    return lock->next != NULL && PyThread_acquire_lock(lock->next, NOWAIT_LOCK);
}

static inline void quick_lock_free(struct quick_lock *lock)
{
    if (lock->next != NULL)
        PyThread_free_lock(lock->next);
}

/* Whether this very thread has it. */
static inline int quick_lock_is_mine(struct quick_lock *lock)
{
    BEGIN_STEPS(lock);
    const int is_mine = lock->holder == PyThread_get_thread_ident();
    END_STEPS(lock);
    return is_mine;
}

static inline void quick_lock_end(struct quick_lock *lock)
{
    BEGIN_STEPS(lock);
    lock->holder = 0;
    if (--lock->n_takers > 0)
        PyThread_release_lock(lock->next);
    END_STEPS(lock);
}

/* Of one who is counted.  -1: a signal handler raised, and he has left. */
static int quick_lock_wait(struct quick_lock *lock)
{
    PyLockStatus status;
    for (;;) {
        Py_BEGIN_ALLOW_THREADS
        status = PyThread_acquire_lock_timed(lock->next, LOOK_AT_SIGNALS, 1);
        Py_END_ALLOW_THREADS
        if (status == PY_LOCK_ACQUIRED)
            break;
        if (PyErr_CheckSignals() < 0) {
            BEGIN_STEPS(lock);
            /* it may have been handed over meanwhile: then somebody else gets it */
            const int is_given = PyThread_acquire_lock(lock->next, NOWAIT_LOCK);
            if (--lock->n_takers > 0 && is_given)
                PyThread_release_lock(lock->next);
            END_STEPS(lock);
            return -1;
        }
    }
    BEGIN_STEPS(lock);
    lock->holder = PyThread_get_thread_ident();
    END_STEPS(lock);
    return 0;
}

static void quick_lock_inherit(struct quick_lock *lock, long n_forks, unsigned long forker)
{
    lock->n_forks = n_forks;
    lock->n_takers = lock->holder == forker;
    lock->holder = lock->n_takers ? forker : 0;
    PyThread_acquire_lock(lock->next, NOWAIT_LOCK); /* it may have been handed over */
}

/* After so many forks, the last by the thread `forker`, 0 if there was none.
 * 0: taken.  1: this very thread has it.  -1: a signal handler raised meanwhile. */
static inline int quick_lock_take(struct quick_lock *lock, long n_forks, unsigned long forker)
{
    const unsigned long me = PyThread_get_thread_ident();
    BEGIN_STEPS(lock);
    if (lock->n_forks != n_forks)
        quick_lock_inherit(lock, n_forks, forker);
    const int is_mine = lock->holder == me;
    const int is_free = lock->n_takers == 0;
    lock->n_takers += !is_mine;
    if (is_free)
        lock->holder = me;
    END_STEPS(lock);
    return is_mine ? 1 : is_free ? 0 : quick_lock_wait(lock);
}

#endif
