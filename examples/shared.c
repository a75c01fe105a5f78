/* Sends every line of standard input as one element to a shm: source of Holdfast, through memory that both share.
 *
 *   holdfast record r.hf --size 1GiB --source shm:/tmp/demo.sock --name demo &
 *   cc -O2 -o shared shared.c && seq 1000000 | ./shared put /tmp/demo.sock
 *
 * `put` waits where there is no room, so that nothing is lost; `drop` never waits: what finds no room is given up, and the ring
 * has a gap that counts it. `given` sends with each line its number and its first word as attributes:
 * --frame attr32 --attr line:uint=given --attr word:text=given. A recorder that ends and starts again is waited for.
 */
#define _GNU_SOURCE
#include "holdfast_producer.h"
#include <stdio.h>
#include <stdlib.h>

static int send_line(holdfast_producer *producer, const char *how, uint64_t number, const char *line, size_t len)
{
    unsigned char header[128];
    size_t word = 0, header_len = 0;
    if (strcmp(how, "put") == 0)
        return holdfast_put(producer, line, len);
    if (strcmp(how, "drop") == 0)
        return holdfast_send(producer, HOLDFAST_DROP, NULL, 0, line, len);
    while (word < len && word < 100 && line[word] != ' ')
        word++;
    header_len = holdfast_number(header, header_len, number);
    header_len = holdfast_value(header, header_len, line, word);
    return holdfast_send(producer, HOLDFAST_WAIT, header, header_len, line, len);
}

/* The recorder has ended: until another one answers there. */
static void come_back(holdfast_producer *producer, const char *path)
{
    struct timespec while_it_starts = {0, 20 * 1000 * 1000};
    holdfast_close(producer);
    while (holdfast_open(producer, path) != 0)
        nanosleep(&while_it_starts, NULL);
}

int main(int argc, char **argv)
{
    const char *how = argc == 3 ? argv[1] : "";
    if (strcmp(how, "put") != 0 && strcmp(how, "drop") != 0 && strcmp(how, "given") != 0) {
        fprintf(stderr, "usage: shared put|drop|given PATH < lines\n");
        return 2;
    }
    holdfast_producer producer;
    if (holdfast_open(&producer, argv[2]) != 0) {
        perror("shared: cannot open");
        return 1;
    }
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    uint64_t number = 0, dropped = 0;
    while ((len = getline(&line, &room, stdin)) >= 0) {
        int sent;
        if (len > 0 && line[len - 1] == '\n')
            len--;
        number++;
        /* What is told not to be in was not taken: it is sent again. */
        while ((sent = send_line(&producer, how, number, line, (size_t)len)) < 0 && errno == EPIPE)
            come_back(&producer, argv[2]);
        if (sent < 0) {
            perror("shared: cannot send");
            return 1;
        }
        dropped += (uint64_t)sent;
    }
    free(line);
    holdfast_close(&producer);
    if (dropped > 0)
        fprintf(stderr, "shared: %llu lines were dropped\n", (unsigned long long)dropped);
    return 0;
}
