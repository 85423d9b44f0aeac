/* A lock whose turn costs next to nothing when nobody waits for one.
 *
 * From Python 3.13 on PyMutex is that.  Before, Python's lock reads the clock at every turn, which
 * takes as long as a third of a query; but there a GIL is held wherever a turn is taken or ended, so
 * that a plain count tells who must wait.  Only they touch Python's lock, which is otherwise taken:
 * whoever ends a turn lets one of them have it.
 */
#ifndef RADABOUND_QUICK_LOCK_H
#define RADABOUND_QUICK_LOCK_H

#include <Python.h>

#if PY_VERSION_HEX >= 0x030D0000

struct quick_lock {
    PyMutex mutex;
};

static inline int quick_lock_new(struct quick_lock *lock)
{
    lock->mutex = (PyMutex){0};
    return 1;
}

static inline void quick_lock_free(struct quick_lock *lock) { (void)lock; }
static inline void quick_lock_take(struct quick_lock *lock) { PyMutex_Lock(&lock->mutex); }
static inline void quick_lock_end(struct quick_lock *lock) { PyMutex_Unlock(&lock->mutex); }

#else

struct quick_lock {
    Py_ssize_t n_takers; /* who has it and who waits */
    PyThread_type_lock next;
};

static inline int quick_lock_new(struct quick_lock *lock)
{
    lock->n_takers = 0;
    lock->next = PyThread_allocate_lock();
    return lock->next != NULL && PyThread_acquire_lock(lock->next, NOWAIT_LOCK);
}

static inline void quick_lock_free(struct quick_lock *lock)
{
    if (lock->next != NULL)
        PyThread_free_lock(lock->next);
}

static inline void quick_lock_take(struct quick_lock *lock)
{
    if (lock->n_takers++ == 0)
        return;
    Py_BEGIN_ALLOW_THREADS
    PyThread_acquire_lock(lock->next, WAIT_LOCK);
    Py_END_ALLOW_THREADS
}

static inline void quick_lock_end(struct quick_lock *lock)
{
    if (--lock->n_takers > 0)
        PyThread_release_lock(lock->next);
}

#endif
#endif
