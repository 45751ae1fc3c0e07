/* What a command of exec: writes, in pieces: the first byte says how long the pieces are, and whether scores are
 * wanted. Two requests are open; each that is answered has a class for every text. */
#include "remote/exec.c" /* its parser is its own */

#include "fuzz.h"

static char *names[] = {"neg", "pos", "7"};
static const sf_labels labels = {names, 3, 0};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    exec x = {.labels = &labels, .lock = PTHREAD_MUTEX_INITIALIZER};
    worker w = {.exec = &x, .load = 2};
    request requests[2] = {{.id = 1, .count = 1, .woken = PTHREAD_COND_INITIALIZER},
                           {.id = 2, .count = 2, .woken = PTHREAD_COND_INITIALIZER}};
    int classes[2][2] = {{-9, -9}, {-9, -9}};
    float scores[2][6];
    safer_error error = {0};
    safer_status status = SAFER_OK;
    const size_t piece = 1 + (data[0] >> 1);
    for (int i = 0; i < 2; i++) {
        requests[i].labels = classes[i];
        requests[i].scores = data[0] & 1 ? scores[i] : NULL;
        sf_queue_push(&w.sent, &requests[i].link);
    }
    for (size_t at = 1; status == SAFER_OK && at < size; at += piece) {
        const size_t fresh = size - at < piece ? size - at : piece;
        require(sf_buffer_add(&w.reply, data + at, fresh) == 0);
        status = take_lines(&w, fresh, &error);
        require(status == SAFER_OK || (status == SAFER_INPUT && strncmp(error.message, "exec: ", 6) == 0));
    }
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; requests[i].done && k < requests[i].count; k++)
            require(classes[i][k] >= SF_NO_LABEL && classes[i][k] < 3);
    require(w.load == (size_t)(2 - requests[0].done - requests[1].done));
    sf_buffer_free(&w.reply);
    return 0;
}
