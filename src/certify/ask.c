/* Asking a model about the text at hand and its draws. */
#include "certify/ask.h"

#include "base/parallel.h"

#include <pthread.h>
#include <string.h>

/* One batch, as its threads see it. */
typedef struct batch {
    safer_workspace *workspace;
    safer_status status; /* of the piece that failed first */
    safer_error error;
    pthread_mutex_t lock; /* of status and error */
} batch;

static size_t piece_of(const safer_workspace *w) { return w->model->class->group ? w->model->class->group : 32; }

static safer_status ask_piece(safer_workspace *w, size_t begin, size_t count, int worker, safer_error *error)
{
    const size_t slots = w->slots.slot_count;
    const uint32_t *draws = w->draws + begin * slots;
    int *answers = w->answers + begin;
    if (w->prepared) return sf_model_sample(w->model, w->prepared, draws, count, answers, w->scratch[worker], error);
    for (size_t i = 0; i < count; i++) {
        sf_buffer *text = &w->texts[begin + i];
        sf_buffer_clear(text);
        if (sf_slots_render(text, &w->slots, w->lexicon, draws + i * slots)) return sf_fail_memory(error);
        w->spans[begin + i] = (sf_span){text->bytes, text->length};
    }
    return sf_model_classify(w->model, w->spans + begin, count, answers, NULL, w->scratch[worker], error);
}

static void ask_pieces(void *context, size_t begin, size_t end, int worker)
{
    batch *b = context;
    safer_error error = {0};
    safer_status status = ask_piece(b->workspace, begin, end - begin, worker, &error);
    if (status == SAFER_OK) return;
    pthread_mutex_lock(&b->lock);
    if (b->status == SAFER_OK) {
        b->status = status;
        b->error = error;
    }
    pthread_mutex_unlock(&b->lock);
}

safer_status sf_ask_draws(safer_workspace *w, size_t count, safer_error *error)
{
    if (w->threads == 1 || count <= piece_of(w)) return ask_piece(w, 0, count, 0, error);
    batch b = {.workspace = w};
    pthread_mutex_init(&b.lock, NULL);
    sf_parallel(w->threads, count, piece_of(w), ask_pieces, &b);
    pthread_mutex_destroy(&b.lock);
    if (b.status != SAFER_OK && error) *error = b.error;
    return b.status;
}

safer_status sf_ask_text(int *answer, safer_workspace *w, safer_error *error)
{
    return sf_model_classify(w->model, &w->text, 1, answer, NULL, w->scratch[0], error);
}

safer_status sf_ask_text_and_draw(int *answer, safer_workspace *w, safer_error *error)
{
    int answers[2] = {0};
    memset(w->draws, 0, w->slots.slot_count * sizeof *w->draws); /* draw number 0 */
    sf_buffer_clear(&w->texts[0]);
    if (sf_slots_render(&w->texts[0], &w->slots, w->lexicon, w->draws)) return sf_fail_memory(error);
    const sf_span both[2] = {w->text, {w->texts[0].bytes, w->texts[0].length}};
    safer_status status = sf_model_classify(w->model, both, 2, answers, NULL, w->scratch[0], error);
    *answer = answers[0];
    w->answers[0] = answers[1];
    return status;
}
