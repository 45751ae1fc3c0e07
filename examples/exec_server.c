/* A classifier that `safer` can ask: the smallest useful example of --model exec:COMMAND.
 *
 * It reads requests, one JSON object per line, and answers each with a line:
 *
 *     {"id":7,"texts":["a fine film","dull"]}      ->      {"id":7,"labels":["1","0"]}
 *
 * Any program that does the same will do. Three rules: answer every text; write nothing else
 * to standard output (standard error is free for messages); flush after every line. When
 * standard input ends, end. Answers may come in any order, null stands for "no answer", and
 * {"id":7,"error":"why"} stops the run. Instead of labels there may be scores, one per class:
 * {"id":7,"scores":[[0.1,0.9],[0.8,0.2]]}.
 *
 *     cc -O2 -o exec_server exec_server.c -ljansson
 *     safer certify --model 'exec:./exec_server' --labels 0,1 --lexicon L --data D --model-name N -o OUT.jsonl
 *
 * It counts praise and blame. With --fixed LABEL it gives that label to every text without
 * reading it: what is left is the cost of asking, which bench/bench_exec.c measures. */
#define _GNU_SOURCE
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const praise[] = {"good",      "great",     "fine",    "best", "love", "loved",
                                     "excellent", "wonderful", "perfect", "fun",  NULL};
static const char *const blame[] = {"bad",      "worst", "dull",   "boring", "awful", "poor",
                                    "terrible", "waste", "stupid", "worse",  NULL};

static int is_in(const char *const *list, const char *word, size_t length)
{
    for (; *list; list++)
        if (strlen(*list) == length && strncasecmp(*list, word, length) == 0) return 1;
    return 0;
}

/* "1" when there is at least as much praise as blame. */
static const char *classify(const char *text)
{
    int balance = 0;
    while (*text) {
        size_t length = 0;
        while (isalpha((unsigned char)text[length])) length++;
        balance += is_in(praise, text, length) - is_in(blame, text, length);
        text += length ? length : 1;
    }
    return balance >= 0 ? "1" : "0";
}

static void answer(const char *line, size_t length)
{
    json_error_t problem;
    json_t *request = json_loadb(line, length, JSON_ALLOW_NUL, &problem), *labels = json_array(), *text;
    size_t i;
    if (!request) { /* its message reaches the user when this program ends with a failure */
        fprintf(stderr, "exec_server: a request is not JSON: %s\n", problem.text);
        exit(1);
    }
    json_array_foreach(json_object_get(request, "texts"), i, text)
        json_array_append_new(labels, json_string(classify(json_string_value(text))));
    json_t *reply = json_pack("{s:O, s:o}", "id", json_object_get(request, "id"), "labels", labels);
    json_dumpf(reply, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(reply);
    json_decref(request);
}

/* ------------------------------------------------------------------- --fixed */

/* The end of a JSON string that begins before p: a quote that no backslash takes away. */
static const char *end_of_string(const char *p, const char *end)
{
    for (; (p = memchr(p, '"', (size_t)(end - p))); p++) {
        size_t backslashes = 0;
        while (p[-1 - (long)backslashes] == '\\') backslashes++;
        if (backslashes % 2 == 0) return p;
    }
    return NULL;
}

/* Only counts the texts. Relies on the requests being as safer writes them. */
static void answer_fixed(const char *line, size_t length, const char *label)
{
    const char *end = line + length, *p = strchr(line, '[');
    int first = 1;
    printf("{\"id\":%lld,\"labels\":[", atoll(line + strlen("{\"id\":")));
    while (p && (p = memchr(p, '"', (size_t)(end - p))) && (p = end_of_string(p + 1, end))) {
        printf("%s%s", first ? "" : ",", label);
        first = 0;
        p++;
    }
    puts("]}");
}

int main(int argc, char **argv)
{
    const char *fixed = argc == 3 && strcmp(argv[1], "--fixed") == 0 ? argv[2] : NULL;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    if (argc > 1 && !fixed) {
        fprintf(stderr, "usage: exec_server [--fixed LABEL]\n");
        return 2;
    }
    setvbuf(stdin, NULL, _IOFBF, 1 << 18);
    while ((length = getline(&line, &capacity, stdin)) > 0) {
        if (fixed)
            answer_fixed(line, (size_t)length, fixed);
        else
            answer(line, (size_t)length);
        fflush(stdout); /* safer waits for it */
    }
    free(line);
    return 0;
}
