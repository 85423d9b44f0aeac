# Whether names still are those of the files that they were.

cdef extern from *:
    """
    #ifdef _WIN32 /* where os.stat finds inodes, and C's own stat does not */
    static int is_file(const char *name, uint64_t inode, uint64_t device, uint64_t n_links)
    {
        (void)name, (void)inode, (void)device, (void)n_links;
        return 0;
    }
    #else
    #include <sys/stat.h>
    static int is_file(const char *name, uint64_t inode, uint64_t device, uint64_t n_links)
    {
        struct stat found;
        return stat(name, &found) == 0 && (uint64_t)found.st_ino == inode &&
               (uint64_t)found.st_dev == device && (uint64_t)found.st_nlink == n_links;
    }
    #endif
    """
    bint is_file(const char *name, uint64_t inode, uint64_t device, uint64_t n_links) noexcept nogil


def are_files(list files not None):
    """Whether all names still are those of their files.

    Parameters
    ----------
    files : list of tuple
        Name, bytes, and what `os.stat` found: st_ino, st_dev and st_nlink, modulo 2**64.

    Returns
    -------
    bool
        False may also mean that nobody knows: `os.stat`, which takes twice as long, tells.
    """
    cdef const char *name
    cdef uint64_t inode, device, n_links
    cdef bint same
    for name, inode, device, n_links in files:
        with nogil:
            same = is_file(name, inode, device, n_links)
        if not same:
            return False
    return True
