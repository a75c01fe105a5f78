/* Elements for a `shm:` source of Holdfast, put into memory that both share: no system call for each, one copy.
 *
 *   holdfast_producer producer;
 *   if (holdfast_open(&producer, "/run/camera.sock") != 0) …
 *   holdfast_put(&producer, bytes, len);
 *   holdfast_close(&producer);
 *
 * C or C++, Linux, nothing else to link with; where a standard is asked for (-std=c11), say -D_GNU_SOURCE. A producer belongs to
 * one thread at a time, and stays with its process: a child has to open one of its own. docs/protocol.md tells what happens
 * underneath; all of it is here.
 *
 * Calls return 0, or -1 with errno:
 *   EPIPE     the recorder has ended or was killed. What this call should have put was not taken: close, open, put it again.
 *   EBUSY     another producer is there (open). ECONNREFUSED, ENOENT, ECONNRESET: no recorder is.
 *   EAGAIN    there is no room now (HOLDFAST_TRY). EMSGSIZE: there never will be: too large.
 *   EINTR     a signal came while it waited; nothing was put.
 *   EINVAL    no element of this framing: of another size than fixed:N, with a newline in lines, with a header but for attr32.
 */
#ifndef HOLDFAST_PRODUCER_H
#define HOLDFAST_PRODUCER_H

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef HOLDFAST_API
#define HOLDFAST_API static inline
#endif

/* What to do when there is no room: wait for it; fail with EAGAIN; or give the element up, which the ring then has a gap for. */
enum { HOLDFAST_WAIT, HOLDFAST_TRY, HOLDFAST_DROP };

typedef struct {
    int socket;
    unsigned char *memory;
    size_t bytes;
    uint64_t size, head, tail, dropped, dropped_bytes;
    long looked;
} holdfast_producer;

/* Where the words stand, and behind them the ring. */
enum {
    HOLDFAST_SIZE = 8, HOLDFAST_FRAMING = 16, HOLDFAST_UNIT = 24,
    HOLDFAST_HEAD = 128, HOLDFAST_DROPPED = 136, HOLDFAST_DROPPED_BYTES = 144, HOLDFAST_DROPPED_AT = 152, HOLDFAST_ROOM_BELL = 160,
    HOLDFAST_TAIL = 256, HOLDFAST_BELL = 264, HOLDFAST_CLOSED = 272, HOLDFAST_COUNTED = 280,
    HOLDFAST_RING = 4096
};
enum { HOLDFAST_FIXED = 1, HOLDFAST_BLOCKS, HOLDFAST_LINES, HOLDFAST_LEN32, HOLDFAST_LEN32BE, HOLDFAST_ATTR32 };

static inline uint64_t *holdfast_word(const holdfast_producer *p, int at)
{
    return (uint64_t *)(void *)(p->memory + at);
}

static inline uint64_t holdfast_load(const holdfast_producer *p, int at)
{
    return __atomic_load_n(holdfast_word(p, at), __ATOMIC_ACQUIRE);
}

static inline void holdfast_store(const holdfast_producer *p, int at, uint64_t value)
{
    __atomic_store_n(holdfast_word(p, at), value, __ATOMIC_RELEASE);
}

static inline int holdfast_fail(int error)
{
    errno = error;
    return -1;
}

/* Whether the recorder's end of the socket is closed. What is there to be read are bells: who hears one looks around. */
static inline int holdfast_gone(const holdfast_producer *p)
{
    char bells[64];
    ssize_t heard = recv(p->socket, bells, sizeof bells, MSG_DONTWAIT);
    return heard == 0 || (heard < 0 && errno != EAGAIN && errno != EINTR);
}

/* Whether the recorder still takes what comes. That it ends it says; whether it was killed is looked up every few milliseconds. */
static inline int holdfast_there(holdfast_producer *p)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_nsec != p->looked) {
        p->looked = now.tv_nsec;
        if (holdfast_gone(p))
            return 0;
    }
    return holdfast_load(p, HOLDFAST_CLOSED) == 0;
}

/* Bytes of room; the recorder's word is asked only if those that are known of do not do. */
static inline uint64_t holdfast_room(holdfast_producer *p, uint64_t need)
{
    if (p->size - (p->head - p->tail) < need)
        p->tail = holdfast_load(p, HOLDFAST_TAIL);
    return p->size - (p->head - p->tail);
}

/* Waits until there is room for `need` bytes, and for some more if it is a few. */
static inline int holdfast_await(holdfast_producer *p, uint64_t need)
{
    if (holdfast_room(p, need) >= need)
        return 0;
    uint64_t wanted = p->head + need - p->size, more = p->tail + p->size / 4;
    if (wanted < more)
        wanted = more < p->head ? more : p->head;
    holdfast_store(p, HOLDFAST_ROOM_BELL, wanted);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    while (holdfast_load(p, HOLDFAST_TAIL) < wanted) {
        struct pollfd bell = {p->socket, POLLIN, 0};
        if (poll(&bell, 1, -1) < 0)
            return -1;
        if (holdfast_gone(p))
            return holdfast_fail(EPIPE);
    }
    p->tail = holdfast_load(p, HOLDFAST_TAIL);
    return holdfast_load(p, HOLDFAST_CLOSED) == 0 ? 0 : holdfast_fail(EPIPE);
}

/* Copies into the ring, around its end, what is not to be seen yet. */
static inline void holdfast_copy(const holdfast_producer *p, uint64_t at, const void *from, size_t len)
{
    unsigned char *ring = p->memory + HOLDFAST_RING;
    size_t start = (size_t)(at & (p->size - 1)), first = p->size - start < len ? (size_t)(p->size - start) : len;
    if (first > 0)
        memcpy(ring + start, from, first);
    if (len > first)
        memcpy(ring, (const unsigned char *)from + first, len - first);
}

/* Whether the recorder ends. What it has taken by then is certain when it has closed the socket: that is waited for. */
static inline int holdfast_ends(const holdfast_producer *p)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (holdfast_load(p, HOLDFAST_CLOSED) == 0)
        return 0;
    while (!holdfast_gone(p)) {
        struct pollfd end = {p->socket, POLLIN, 0};
        poll(&end, 1, -1);
    }
    return 1;
}

/* Lets the recorder see all up to `head`, and rings if it sleeps until then. */
static inline int holdfast_publish(holdfast_producer *p, uint64_t head)
{
    uint64_t before = p->head;
    p->head = head;
    holdfast_store(p, HOLDFAST_HEAD, head);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint64_t bell = holdfast_load(p, HOLDFAST_BELL);
    if (before < bell && bell <= head)
        send(p->socket, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    return holdfast_ends(p) && holdfast_load(p, HOLDFAST_TAIL) < head ? holdfast_fail(EPIPE) : 0;
}

/* Puts one element; `header` is for attr32, and for that only. 0: it is in. 1: it was given up (HOLDFAST_DROP). */
HOLDFAST_API int holdfast_send(holdfast_producer *p, int how, const void *header, size_t header_len, const void *bytes, size_t len)
{
    uint64_t framing = holdfast_load(p, HOLDFAST_FRAMING), body = len;
    unsigned char lead[6];
    struct iovec parts[4] = {{lead, 0}, {(void *)header, header_len}, {(void *)bytes, len}, {(void *)"\n", 0}};
    if (len > (size_t)1 << 30 || header_len > 8192)
        return holdfast_fail(EMSGSIZE);
    if ((header_len > 0 && framing != HOLDFAST_ATTR32) || (framing == HOLDFAST_FIXED && len != holdfast_load(p, HOLDFAST_UNIT))
        || (framing == HOLDFAST_LINES && len > 0 && memchr(bytes, '\n', len) != NULL))
        return holdfast_fail(EINVAL);
    if (framing == HOLDFAST_ATTR32) {
        body += 2 + header_len;
        lead[4] = (unsigned char)header_len;
        lead[5] = (unsigned char)(header_len >> 8);
        parts[0].iov_len = 6;
    } else if (framing >= HOLDFAST_LEN32) {
        parts[0].iov_len = 4;
    }
    for (int n = 0; n < 4; n++)
        lead[n] = (unsigned char)(body >> 8 * (framing == HOLDFAST_LEN32BE ? 3 - n : n));
    parts[3].iov_len = framing == HOLDFAST_LINES;

    uint64_t all = parts[0].iov_len + header_len + len + parts[3].iov_len;
    if (!holdfast_there(p))
        return holdfast_fail(EPIPE);
    if (how != HOLDFAST_WAIT && all > p->size)
        return holdfast_fail(EMSGSIZE);
    if (how != HOLDFAST_WAIT && holdfast_room(p, all) < all) {
        if (how == HOLDFAST_TRY)
            return holdfast_fail(EAGAIN);
        holdfast_store(p, HOLDFAST_DROPPED_AT, p->head);
        holdfast_store(p, HOLDFAST_DROPPED_BYTES, p->dropped_bytes += len);
        holdfast_store(p, HOLDFAST_DROPPED, ++p->dropped);
        return holdfast_ends(p) && holdfast_load(p, HOLDFAST_COUNTED) < p->dropped ? holdfast_fail(EPIPE) : 1;
    }
    if (all <= p->size / 2 || how != HOLDFAST_WAIT) {
        /* All at once: of a producer that dies nothing is seen that is not whole. */
        uint64_t at = p->head;
        if (holdfast_await(p, all) != 0)
            return -1;
        for (int n = 0; n < 4; at += parts[n++].iov_len)
            holdfast_copy(p, at, parts[n].iov_base, parts[n].iov_len);
        return holdfast_publish(p, at);
    }
    for (int n = 0; n < 4; n++) {
        for (size_t done = 0; done < parts[n].iov_len;) {
            while (holdfast_await(p, 1) != 0)
                if (errno != EINTR)
                    return -1;
            uint64_t room = holdfast_room(p, 1), left = parts[n].iov_len - done, piece = left < room ? left : room;
            holdfast_copy(p, p->head, (const unsigned char *)parts[n].iov_base + done, (size_t)piece);
            if (holdfast_publish(p, p->head + piece) != 0)
                return -1;
            done += (size_t)piece;
        }
    }
    return 0;
}

/* Puts one element, waiting for room: nothing is lost. */
HOLDFAST_API int holdfast_put(holdfast_producer *p, const void *bytes, size_t len)
{
    return holdfast_send(p, HOLDFAST_WAIT, NULL, 0, bytes, len);
}

/* Waits until the recorder has taken all that was put. */
HOLDFAST_API int holdfast_flush(holdfast_producer *p)
{
    int waited = holdfast_await(p, p->size);
    return holdfast_load(p, HOLDFAST_TAIL) == p->head ? 0 : waited;
}

/* Elements that were given up. */
HOLDFAST_API uint64_t holdfast_dropped(const holdfast_producer *p)
{
    return p->dropped;
}

/* Adds a value to a header that has `at` bytes, and returns how many it has then: 2 more than the value. NULL is a null. */
HOLDFAST_API size_t holdfast_value(unsigned char *header, size_t at, const void *value, size_t len)
{
    size_t said = value == NULL ? 65535 : len;
    header[at] = (unsigned char)said;
    header[at + 1] = (unsigned char)(said >> 8);
    if (value == NULL)
        return at + 2;
    memcpy(header + at + 2, value, len);
    return at + 2 + len;
}

/* The same with a number: an int, uint or time, or the bits of a float. */
HOLDFAST_API size_t holdfast_number(unsigned char *header, size_t at, uint64_t number)
{
    unsigned char bytes[8];
    for (int n = 0; n < 8; n++)
        bytes[n] = (unsigned char)(number >> 8 * n);
    return holdfast_value(header, at, bytes, sizeof bytes);
}

/* Ends the visit. What was put is taken; whether it was is for holdfast_flush to say. */
HOLDFAST_API void holdfast_close(holdfast_producer *p)
{
    if (p->memory != NULL)
        munmap(p->memory, p->bytes);
    if (p->socket >= 0)
        close(p->socket);
    p->memory = NULL;
    p->socket = -1;
}

/* What the recorder says to who comes, and the area's descriptor if it gives one. */
static inline int holdfast_greeting(holdfast_producer *p, int *area)
{
    uint64_t said[2];
    union { struct cmsghdr head; char space[CMSG_SPACE(sizeof(int))]; } control;
    struct iovec words = {said, sizeof said};
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = &words;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    ssize_t heard;
    do
        heard = recvmsg(p->socket, &message, MSG_CMSG_CLOEXEC);
    while (heard < 0 && errno == EINTR);
    if (heard < 0)
        return -1;
    if (heard == 0)
        return holdfast_fail(ECONNRESET);
    struct cmsghdr *with = CMSG_FIRSTHDR(&message);
    if (with != NULL && with->cmsg_level == SOL_SOCKET && with->cmsg_type == SCM_RIGHTS)
        memcpy(area, CMSG_DATA(with), sizeof *area);
    if (heard != sizeof said || said[0] != 0x0174656572674648u)
        return holdfast_fail(EPROTO);
    return said[1] == 0 && *area >= 0 ? 0 : holdfast_fail(said[1] == 1 ? EBUSY : said[1] == 2 ? ENOMEM : EPROTO);
}

/* Maps the area. */
static inline int holdfast_map(holdfast_producer *p, int area)
{
    struct stat about;
    if (fstat(area, &about) != 0)
        return -1;
    if (about.st_size <= HOLDFAST_RING)
        return holdfast_fail(EPROTO);
    void *memory = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, area, 0);
    if (memory == MAP_FAILED)
        return -1;
    p->memory = (unsigned char *)memory;
    p->bytes = (size_t)about.st_size;
    p->size = p->bytes - HOLDFAST_RING;
    madvise(memory, p->bytes, MADV_DONTFORK);
    int known = holdfast_load(p, 0) == 0x0100616572614648u && holdfast_load(p, HOLDFAST_SIZE) == p->size;
    return known ? 0 : holdfast_fail(EPROTO);
}

/* Comes to the socket of a source, and waits until the recorder answers there. */
HOLDFAST_API int holdfast_open(holdfast_producer *p, const char *path)
{
    struct sockaddr_un address;
    int area = -1, failed;
    memset(p, 0, sizeof *p);
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    p->looked = -1;
    p->socket = -1;
    if (strlen(path) >= sizeof address.sun_path)
        return holdfast_fail(ENAMETOOLONG);
    memcpy(address.sun_path, path, strlen(path));
    p->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    failed = p->socket < 0 || connect(p->socket, (struct sockaddr *)&address, sizeof address) != 0
        || holdfast_greeting(p, &area) != 0 || holdfast_map(p, area) != 0;
    int error = errno;
    if (area >= 0)
        close(area);
    if (!failed)
        return 0;
    holdfast_close(p);
    return holdfast_fail(error);
}

#endif
