/* Takes the room on the disk away from a process, and gives it back, while it runs. Preloaded into a node:
 *
 *   FULL_DISK_FLAG  a path; the disk is full for as long as there is a file
 *
 * A write to a regular file then fails, and so does an allocation. The first one of each file gets half of what it has to write
 * onto the disk before, as the last write to a disk that fills up does. What has no length on a disk is left alone: sockets,
 * pipes, terminals. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_FDS 4096

static atomic_uchar torn[MOST_FDS];

static int is_full(int fd) {
    const char *flag = getenv("FULL_DISK_FLAG");
    struct stat status;
    int before = errno;
    int full = flag && access(flag, F_OK) == 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    errno = before;
    return full;
}

/* How much of a write finds room; -1 with the error where nothing does. */
static ssize_t room(int fd, size_t count) {
    if (count > 1 && fd < MOST_FDS && !atomic_exchange(&torn[fd], 1))
        return (ssize_t)(count / 2);
    errno = ENOSPC;
    return -1;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    if (count > 0 && is_full(fd)) {
        ssize_t left = room(fd, count);
        return left < 0 ? -1 : syscall(SYS_write, fd, bytes, (size_t)left);
    }
    return syscall(SYS_write, fd, bytes, count);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    if (count > 0 && is_full(fd)) {
        ssize_t left = room(fd, count);
        return left < 0 ? -1 : syscall(SYS_pwrite64, fd, bytes, (size_t)left, at);
    }
    return syscall(SYS_pwrite64, fd, bytes, count, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    return pwrite64(fd, bytes, count, at);
}

int fallocate64(int fd, int mode, off64_t at, off64_t length) {
    if (is_full(fd)) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, at, length);
}

int fallocate(int fd, int mode, off_t at, off_t length) {
    return fallocate64(fd, mode, at, length);
}
