/* Journals what a process does to the files below one directory, in the order in which it takes effect, so that the
 * directory can be rebuilt as a power loss at any moment would have left it. Preloaded into the crash writer:
 *
 *   POWER_LOSS_ROOT     the directory that is followed, an absolute path without links
 *   POWER_LOSS_JOURNAL  the file that the journal is appended to
 *   POWER_LOSS_EVENTS   after so many events the process ends at once, as by kill -9; 0 is never
 *
 * A call and its record happen under one lock. A sync has two records, because what is written while it runs may or
 * may not be covered by it; it takes time but does not touch the disk, which is not what is tested. Lines written to
 * the standard output are recorded as marks. What the rebuilder has no model of ends the process with a message:
 * writable shared mappings, synchronous or direct files, links, holes, allocation that changes a length. Hints
 * (sync_file_range, allocation beyond the end) promise nothing about durability and are not recorded. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { START = 1, OPEN, CLOSE, WRITE, TRUNCATE, SYNC_BEGIN, SYNC_END, RENAME, UNLINK, MAKE_DIR, MARK };

/* Flags of OPEN, free of this system's numbers. */
enum { CREATES = 1, TRUNCATES = 2 };

/* In front of each record; two strings of bytes follow. All in the byte order of the machine. */
struct head {
    uint64_t number;
    uint32_t kind;
    int32_t fd;
    uint32_t first_len;
    uint32_t second_len;
};

#define SYNC_MICROS 200
#define MOST_FDS 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root;
static size_t root_len;
static int journal = -1;
static long events_left;
static uint64_t tickets;
static unsigned char followed_fds[MOST_FDS];

static void refuse(const char *what) {
    fprintf(stderr, "power loss: %s is not modelled\n", what);
    abort();
}

static int is_followed_path(const char *path) {
    return root && strncmp(path, root, root_len) == 0 && (path[root_len] == '/' || path[root_len] == 0);
}

static int is_followed(int fd) { return fd >= 0 && fd < MOST_FDS && followed_fds[fd]; }

/* Under the lock. Keeps errno. */
static void record(enum kind kind, int fd, uint64_t number, const void *first, size_t first_len, const void *second,
                   size_t second_len) {
    int saved = errno;
    struct head head = {number, kind, fd, (uint32_t)first_len, (uint32_t)second_len};
    struct iovec parts[] = {
        {&head, sizeof head}, {(void *)first, first_len}, {(void *)second, second_len}};
    ssize_t whole = (ssize_t)(sizeof head + first_len + second_len);
    if (syscall(SYS_writev, journal, parts, 3) != whole) refuse("a journal that cannot be written");
    if (events_left && --events_left == 0) syscall(SYS_exit_group, 137);
    errno = saved;
}

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("POWER_LOSS_JOURNAL"), *events = getenv("POWER_LOSS_EVENTS");
    root = getenv("POWER_LOSS_ROOT");
    if (!root || !path) {
        root = NULL;
        return;
    }
    root_len = strlen(root);
    events_left = events ? atol(events) : 0;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    /* Out of the way of the numbers that the process will see. */
    journal = fcntl(fd, F_DUPFD_CLOEXEC, 900);
    syscall(SYS_close, fd);
    if (journal < 0) refuse("a journal that cannot be opened");
    record(START, -1, 0, NULL, 0, NULL, 0);
}

static int open_followed(const char *path, int flags, mode_t mode) {
    if (!is_followed_path(path)) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (flags & (O_DSYNC | O_DIRECT)) refuse("a synchronous or direct file");
    pthread_mutex_lock(&lock);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= MOST_FDS) refuse("so many open files");
    if (fd >= 0) {
        followed_fds[fd] = 1;
        uint64_t how = (flags & O_CREAT ? CREATES : 0) | (flags & O_TRUNC ? TRUNCATES : 0);
        record(OPEN, fd, how, path, strlen(path), NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

#define OPEN_LIKE(name)                                                                                                \
    int name(const char *path, int flags, ...) {                                                                       \
        mode_t mode = 0;                                                                                               \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                                           \
            va_list rest;                                                                                              \
            va_start(rest, flags);                                                                                     \
            mode = va_arg(rest, mode_t);                                                                               \
            va_end(rest);                                                                                              \
        }                                                                                                              \
        return open_followed(path, flags, mode);                                                                       \
    }
OPEN_LIKE(open)
OPEN_LIKE(open64)

int close(int fd) {
    if (!is_followed(fd)) return (int)syscall(SYS_close, fd);
    pthread_mutex_lock(&lock);
    followed_fds[fd] = 0;
    record(CLOSE, fd, 0, NULL, 0, NULL, 0);
    int result = (int)syscall(SYS_close, fd);
    pthread_mutex_unlock(&lock);
    return result;
}

ssize_t write(int fd, const void *bytes, size_t len) {
    int marks = fd == STDOUT_FILENO && root;
    if (!is_followed(fd) && !marks) return syscall(SYS_write, fd, bytes, len);
    pthread_mutex_lock(&lock);
    ssize_t done = syscall(SYS_write, fd, bytes, len);
    if (done > 0 && marks) record(MARK, -1, 0, bytes, (size_t)done, NULL, 0);
    if (done > 0 && !marks) {
        /* Behind the write, because a file that is appended to finds its place then. */
        uint64_t end = (uint64_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
        record(WRITE, fd, end - (uint64_t)done, bytes, (size_t)done, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (is_followed(fd)) refuse("writev");
    return syscall(SYS_writev, fd, parts, count);
}

#define PWRITE_LIKE(name)                                                                                              \
    ssize_t name(int fd, const void *bytes, size_t len, off_t at) {                                                    \
        if (!is_followed(fd)) return syscall(SYS_pwrite64, fd, bytes, len, at);                                        \
        pthread_mutex_lock(&lock);                                                                                     \
        ssize_t done = syscall(SYS_pwrite64, fd, bytes, len, at);                                                      \
        if (done > 0) record(WRITE, fd, (uint64_t)at, bytes, (size_t)done, NULL, 0);                                   \
        pthread_mutex_unlock(&lock);                                                                                   \
        return done;                                                                                                   \
    }
PWRITE_LIKE(pwrite)
PWRITE_LIKE(pwrite64)

#define FTRUNCATE_LIKE(name)                                                                                           \
    int name(int fd, off_t len) {                                                                                      \
        if (!is_followed(fd)) return (int)syscall(SYS_ftruncate, fd, len);                                             \
        pthread_mutex_lock(&lock);                                                                                     \
        int result = (int)syscall(SYS_ftruncate, fd, len);                                                             \
        if (result == 0) record(TRUNCATE, fd, (uint64_t)len, NULL, 0, NULL, 0);                                        \
        pthread_mutex_unlock(&lock);                                                                                   \
        return result;                                                                                                 \
    }
FTRUNCATE_LIKE(ftruncate)
FTRUNCATE_LIKE(ftruncate64)

int fallocate(int fd, int mode, off_t at, off_t len) {
    struct stat status;
    if (is_followed(fd)) {
        int beyond = fstat(fd, &status) == 0 && at >= status.st_size;
        if (!(mode & FALLOC_FL_KEEP_SIZE) || ((mode & ~FALLOC_FL_KEEP_SIZE) && !beyond)) refuse("fallocate");
    }
    return (int)syscall(SYS_fallocate, fd, mode, at, len);
}

static int sync_followed(int fd) {
    pthread_mutex_lock(&lock);
    uint64_t ticket = ++tickets;
    record(SYNC_BEGIN, fd, ticket, NULL, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    usleep(SYNC_MICROS);
    pthread_mutex_lock(&lock);
    record(SYNC_END, fd, ticket, NULL, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return 0;
}

int fsync(int fd) { return is_followed(fd) ? sync_followed(fd) : (int)syscall(SYS_fsync, fd); }

int fdatasync(int fd) { return is_followed(fd) ? sync_followed(fd) : (int)syscall(SYS_fdatasync, fd); }

int rename(const char *from, const char *to) {
    if (!is_followed_path(from) && !is_followed_path(to)) {
        return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    }
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (result == 0) record(RENAME, -1, 0, from, strlen(from), to, strlen(to));
    pthread_mutex_unlock(&lock);
    return result;
}

static int by_path(enum kind kind, const char *path, long call, long argument) {
    pthread_mutex_lock(&lock);
    int result = (int)syscall(call, AT_FDCWD, path, argument);
    if (result == 0 && is_followed_path(path)) record(kind, -1, 0, path, strlen(path), NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int unlink(const char *path) { return by_path(UNLINK, path, SYS_unlinkat, 0); }

int rmdir(const char *path) { return by_path(UNLINK, path, SYS_unlinkat, AT_REMOVEDIR); }

int mkdir(const char *path, mode_t mode) { return by_path(MAKE_DIR, path, SYS_mkdirat, mode); }

int link(const char *from, const char *to) {
    if (is_followed_path(to)) refuse("a hard link");
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

#define MMAP_LIKE(name)                                                                                                \
    void *name(void *at, size_t len, int access, int flags, int fd, off_t from) {                                      \
        if (is_followed(fd) && (flags & MAP_SHARED) && (access & PROT_WRITE)) refuse("a writable mapping");            \
        return (void *)syscall(SYS_mmap, at, len, access, flags, fd, from);                                            \
    }
MMAP_LIKE(mmap)
MMAP_LIKE(mmap64)
