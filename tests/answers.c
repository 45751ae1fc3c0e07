/* A model that is a program of its own (docs/models.md), for tests that start one very often: "neg" for texts in which
 * the word bad or poor stands, "pos" for all others. An argument is the milliseconds that an answer takes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const unsigned pause = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) * 1000 : 0;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        char *id = strstr(line, "\"id\":"), *at = strstr(line, "\"texts\":[");
        if (!id || !at) return 1;
        printf("{\"id\":%ld,\"labels\":[", strtol(id + 5, NULL, 10));
        at += strlen("\"texts\":[");
        for (int first = 1; *at == '"'; first = 0) {
            char *begin = ++at;
            while (*at != '"') at += *at == '\\' ? 2 : 1;
            *at++ = '\0';
            printf("%s\"%s\"", first ? "" : ",", strstr(begin, "bad") || strstr(begin, "poor") ? "neg" : "pos");
            at += *at == ',';
        }
        puts("]}");
        usleep(pause);
        if (fflush(stdout) != 0) return 1;
    }
    free(line);
    return 0;
}
