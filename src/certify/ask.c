/* Asking a model about the text at hand and its draws. */
#include "certify/ask.h"

#include "base/parallel.h"
#include "base/progress.h"

#include <pthread.h>
#include <string.h>

/* One batch, as its threads see it. */
typedef struct batch {
    safer_workspace *workspace;
    size_t first; /* of its draws */
    safer_status (*ask)(safer_workspace *w, size_t begin, size_t count, int worker, safer_error *error); /* a piece */
    safer_status status; /* of the piece that failed first */
    safer_error error;
    pthread_mutex_t lock; /* of status and error */
} batch;

static size_t piece_of(const safer_workspace *w) { return w->model->group ? w->model->group : 32; }

static safer_status ask_piece(safer_workspace *w, size_t begin, size_t count, int worker, safer_error *error)
{
    const size_t width = w->sampler.width;
    const uint32_t *draws = w->draws + begin * width;
    int *answers = w->answers + begin;
    if (w->prepared) return sf_model_sample(w->model, w->prepared, draws, count, answers, w->scratch[worker], error);
    for (size_t i = 0; i < count; i++) {
        sf_buffer *text = &w->texts[begin + i];
        sf_buffer_clear(text);
        if (sf_slots_render(text, &w->slots, w->lexicon, draws + i * width)) return sf_fail_memory(error);
        w->spans[begin + i] = (sf_span){text->bytes, text->length};
    }
    return sf_model_classify(w->model, w->spans + begin, count, answers, NULL, w->scratch[worker], error);
}

static safer_status confirm_piece(safer_workspace *w, size_t begin, size_t count, int worker, safer_error *error)
{
    return sf_model_confirm(w->model, w->spans + begin, w->answers + begin, count, w->scratch[worker], error);
}

static void ask_pieces(void *context, size_t begin, size_t end, int worker)
{
    batch *b = context;
    safer_error error = {0};
    safer_status status = b->ask(b->workspace, b->first + begin, end - begin, worker, &error);
    if (status == SAFER_OK) return;
    pthread_mutex_lock(&b->lock);
    if (b->status == SAFER_OK) {
        b->status = status;
        b->error = error;
    }
    pthread_mutex_unlock(&b->lock);
}

/* `count` draws from b->first on, on several threads where that is of use. */
static safer_status in_pieces(batch *b, size_t count, safer_error *error)
{
    const size_t piece = piece_of(b->workspace);
    if (b->workspace->threads == 1 || count <= piece) return b->ask(b->workspace, b->first, count, 0, error);
    pthread_mutex_init(&b->lock, NULL);
    sf_model_parallel(b->workspace->model, b->workspace->threads, count, piece, ask_pieces, b);
    pthread_mutex_destroy(&b->lock);
    if (b->status != SAFER_OK && error) *error = b->error;
    return b->status;
}

safer_status sf_ask_draws(safer_workspace *w, size_t count, safer_error *error)
{
    batch b = {.workspace = w, .ask = ask_piece};
    if (sf_duty_cancelled()) return sf_fail(error, SAFER_CANCELLED, "cancelled between two batches of draws");
    return in_pieces(&b, count, error);
}

static void exchange(safer_workspace *w, size_t i, size_t k)
{
    const sf_span span = w->spans[i];
    const int answer = w->answers[i];
    w->spans[i] = w->spans[k];
    w->answers[i] = w->answers[k];
    w->spans[k] = span;
    w->answers[k] = answer;
}

/* Draws with even numbers first, and when they are answered the others: two that came one after the other are not
 * together again, however many texts and threads share a request (base/feeder.h). */
safer_status sf_ask_again(safer_workspace *w, size_t count, safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t evens = count - count / 2;
    batch b = {.workspace = w, .ask = confirm_piece};
    if (!sf_model_is_remote(w->model)) return SAFER_OK;
    for (size_t i = 1; 2 * i < count; i++) exchange(w, i, 2 * i); /* place 2i has not been touched before */
    SF_TRY(in_pieces(&b, evens, error));
    b.first = evens;
    SF_TRY(in_pieces(&b, count - evens, error));
done:
    return status;
}

safer_status sf_ask_text(int *answer, safer_workspace *w, safer_error *error)
{
    return sf_model_classify(w->model, &w->text, 1, answer, NULL, w->scratch[0], error);
}

safer_status sf_ask_text_and_draw(int *answer, safer_workspace *w, safer_error *error)
{
    int answers[2] = {0};
    memset(w->draws, 0, w->sampler.width * sizeof *w->draws); /* draw number 0; where tokens are deleted, of none */
    sf_buffer_clear(&w->texts[0]);
    if (sf_slots_render(&w->texts[0], &w->slots, w->lexicon, w->draws)) return sf_fail_memory(error);
    const sf_span both[2] = {w->text, {w->texts[0].bytes, w->texts[0].length}};
    safer_status status = sf_model_classify(w->model, both, 2, answers, NULL, w->scratch[0], error);
    *answer = answers[0];
    w->answers[0] = answers[1];
    w->spans[0] = both[1];
    return status;
}
