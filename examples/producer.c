/* Sends every line of standard input as one element to a tcp: or udp: source of Holdfast, or, as `given`, with its number
 * and its first word as attributes to a tcp: source.
 *
 *   holdfast record r.hf --size 1GiB --source tcp:127.0.0.1:5000 --name demo &
 *   cc -o producer producer.c && seq 1000 | ./producer tcp 127.0.0.1 5000
 *
 * Over TCP every element has its length in front: 4 bytes, little-endian (--frame len32, which tcp: has by default).
 * With attributes it has a header, too: --frame attr32 --attr line:uint=given --attr word:text=given.
 * Over UDP every element is a datagram. When the ring is slower than we are, a write to the TCP socket waits, and
 * nothing is lost; datagrams that find no room are dropped, and the ring has a gap that counts them.
 */
#define _POSIX_C_SOURCE 200809L
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_to(const char *host, const char *port, int kind)
{
    struct addrinfo wanted = {.ai_socktype = kind}, *found = NULL;
    int error = getaddrinfo(host, port, &wanted, &found);
    if (error != 0) {
        fprintf(stderr, "producer: %s port %s: %s\n", host, port, gai_strerror(error));
        return -1;
    }
    int fd = -1;
    for (struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    if (fd < 0)
        perror("producer: cannot connect");
    return fd;
}

/* write() may take less than it is given. */
static int write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t took = write(fd, at, len);
        if (took < 0)
            return -1;
        at += took;
        len -= (size_t)took;
    }
    return 0;
}

/* Little-endian, whatever the machine is. */
static void put_number(unsigned char *at, uint64_t number, int bytes)
{
    for (int n = 0; n < bytes; n++)
        at[n] = (unsigned char)(number >> (8 * n));
}

static int send_element(int fd, int kind, const char *bytes, size_t len)
{
    if (kind == SOCK_DGRAM)
        return send(fd, bytes, len, 0) < 0 ? -1 : 0;
    unsigned char prefix[4];
    put_number(prefix, len, 4);
    return write_all(fd, prefix, sizeof prefix) != 0 ? -1 : write_all(fd, bytes, len);
}

/* A value of a header, 65534 bytes at most; returns how many it takes. */
static size_t put_value(unsigned char *at, const void *value, size_t len)
{
    put_number(at, len, 2);
    memcpy(at + 2, value, len);
    return 2 + len;
}

static int send_given(int fd, uint64_t line, const char *bytes, size_t len)
{
    unsigned char number[8], frame[256];
    size_t word = 0, header = 0;
    while (word < len && word < 100 && bytes[word] != ' ')
        word++;
    put_number(number, line, 8);
    header += put_value(frame + 6 + header, number, 8);
    header += put_value(frame + 6 + header, bytes, word);
    put_number(frame, 2 + header + len, 4);
    put_number(frame + 4, header, 2);
    return write_all(fd, frame, 6 + header) != 0 ? -1 : write_all(fd, bytes, len);
}

int main(int argc, char **argv)
{
    const char *how = argc == 4 ? argv[1] : "";
    if (strcmp(how, "tcp") != 0 && strcmp(how, "udp") != 0 && strcmp(how, "given") != 0) {
        fprintf(stderr, "usage: producer tcp|udp|given HOST PORT < lines\n");
        return 2;
    }
    int given = strcmp(how, "given") == 0;
    int kind = strcmp(how, "udp") == 0 ? SOCK_DGRAM : SOCK_STREAM;
    int fd = connect_to(argv[2], argv[3], kind);
    if (fd < 0)
        return 1;
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    uint64_t number = 0;
    while ((len = getline(&line, &room, stdin)) >= 0) {
        if (len > 0 && line[len - 1] == '\n')
            len--;
        number++;
        if ((given ? send_given(fd, number, line, (size_t)len) : send_element(fd, kind, line, (size_t)len)) != 0) {
            perror("producer: cannot send");
            return 1;
        }
    }
    free(line);
    /* Closing between two elements is a clean end; inside one, that element counts as lost. */
    return close(fd) == 0 ? 0 : 1;
}
