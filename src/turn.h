/* A lock whose turn costs next to nothing when nobody waits for one.
 *
 * From Python 3.13 on PyMutex is that.  Before, Python's lock reads the clock at every turn, which
 * takes as long as a third of a query; but there a GIL is held wherever a turn is taken or ended, so
 * that a plain count tells who must wait.  Only they touch Python's lock, which is otherwise taken:
 * whoever ends a turn lets one of them have it.
 */
#ifndef RADABOUND_TURN_H
#define RADABOUND_TURN_H

#include <Python.h>

#if PY_VERSION_HEX >= 0x030D0000

struct turn {
    PyMutex mutex;
};

static inline int turn_new(struct turn *turn)
{
    turn->mutex = (PyMutex){0};
    return 1;
}

static inline void turn_free(struct turn *turn) { (void)turn; }
static inline void turn_take(struct turn *turn) { PyMutex_Lock(&turn->mutex); }
static inline void turn_end(struct turn *turn) { PyMutex_Unlock(&turn->mutex); }

#else

struct turn {
    Py_ssize_t n_takers; /* who has it and who waits */
    PyThread_type_lock next;
};

static inline int turn_new(struct turn *turn)
{
    turn->n_takers = 0;
    turn->next = PyThread_allocate_lock();
    return turn->next != NULL && PyThread_acquire_lock(turn->next, NOWAIT_LOCK);
}

static inline void turn_free(struct turn *turn)
{
    if (turn->next != NULL)
        PyThread_free_lock(turn->next);
}

static inline void turn_take(struct turn *turn)
{
    if (turn->n_takers++ == 0)
        return;
    Py_BEGIN_ALLOW_THREADS
    PyThread_acquire_lock(turn->next, WAIT_LOCK);
    Py_END_ALLOW_THREADS
}

static inline void turn_end(struct turn *turn)
{
    if (--turn->n_takers > 0)
        PyThread_release_lock(turn->next);
}

#endif
#endif
