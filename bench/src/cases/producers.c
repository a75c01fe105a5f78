/* Delivers `count` elements of `size` bytes as fast as it can: producers shm PATH | tcp PORT | pipe, then SIZE COUNT GATHER. Over
 * sockets and pipes each element has its length in front; it goes by itself, or in buffers of up to GATHER bytes. */
#define _GNU_SOURCE
#include "holdfast_producer.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what)
{
    perror(what);
    exit(1);
}

static void write_all(int fd, const unsigned char *at, size_t len)
{
    while (len > 0) {
        ssize_t took = write(fd, at, len);
        if (took < 0)
            fail("cannot write");
        at += took;
        len -= (size_t)took;
    }
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail("cannot connect");
    return fd;
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    size_t size = strtoull(argv[3], NULL, 10), count = strtoull(argv[4], NULL, 10), gather = strtoull(argv[5], NULL, 10);
    size_t frame = 4 + size, room = gather > frame ? gather / frame * frame : frame, filled = 0;
    unsigned char *element = malloc(frame), *buffer = malloc(room);
    memset(element, 'x', frame);
    for (int n = 0; n < 4; n++)
        element[n] = (unsigned char)(size >> 8 * n);
    if (strcmp(argv[1], "shm") == 0) {
        holdfast_producer producer;
        if (holdfast_open(&producer, argv[2]) != 0)
            fail("cannot open");
        for (size_t n = 0; n < count; n++)
            if (holdfast_put(&producer, element + 4, size) != 0)
                fail("cannot put");
        holdfast_close(&producer);
        return 0;
    }
    int fd = strcmp(argv[1], "tcp") == 0 ? connect_to(atoi(argv[2])) : 1;
    for (size_t n = 0; n < count; n++) {
        if (room == frame) {
            write_all(fd, element, frame);
            continue;
        }
        memcpy(buffer + filled, element, frame);
        filled += frame;
        if (filled == room || n + 1 == count) {
            write_all(fd, buffer, filled);
            filled = 0;
        }
    }
    return close(fd) == 0 ? 0 : 1;
}
