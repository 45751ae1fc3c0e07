/* What is attacked: a text, its choices, and the answers about them. The votes of the smoothed
 * classifier are in smoothed.c; docs/design.md, "From a text to an adversarial one", has the map. */
#include "attack/victim.h"

#include "base/hash.h"
#include "base/memory.h"
#include "draw/groups.h"
#include "text/unicode.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ memory */

enum { EXACT = 1, REFUTED = 2 };

static void memory_free(sf_memory *m)
{
    free(m->keys);
    free(m->labels);
    free(m->flags);
    free(m->scores);
    sf_hashtable_free(&m->table);
    *m = (sf_memory){0};
}

static void memory_clear(sf_memory *m, size_t slots)
{
    m->count = 0;
    m->slots = slots;
    sf_hashtable_clear(&m->table);
}

static uint32_t tag_of(const sf_memory *m, const uint32_t *key)
{
    return sf_hashtable_tag(sf_hash(key, m->slots * sizeof *key, 0));
}

/* The number of a key, or SF_NONE. */
static uint32_t number_of(const sf_memory *m, const uint32_t *key, uint32_t tag)
{
    sf_hashtable_walk walk = sf_hashtable_find(&m->table, tag);
    uint32_t i;
    while ((i = sf_hashtable_next(&m->table, &walk)) != SF_NONE)
        if (memcmp(m->keys + i * m->slots, key, m->slots * sizeof *key) == 0) break;
    return i;
}

/* Room for one more; its key is to be written behind the last. */
static int memory_reserve(sf_memory *m, size_t classes)
{
    return sf_grow(&m->keys, &m->key_capacity, (m->count + 1) * m->slots + 1, sizeof *m->keys) ||
           sf_grow(&m->labels, &m->label_capacity, m->count + 1, sizeof *m->labels) ||
           sf_grow(&m->flags, &m->flag_capacity, m->count + 1, sizeof *m->flags) ||
           sf_grow(&m->scores, &m->score_capacity, (m->count + 1) * classes, sizeof *m->scores);
}

/* ------------------------------------------------------------------- life */

void sf_victim_free(sf_victim *v)
{
    if (!v) return;
    if (v->prepared) v->model->class->release(v->prepared);
    if (v->scratch) v->model->class->scratch_free(v->scratch);
    for (size_t i = 0; v->texts && i < v->options.batch; i++) sf_buffer_free(&v->texts[i]);
    sf_slots_free(&v->slots);
    sf_slots_free(&v->check_slots);
    sf_shadow_free(&v->shadow);
    sf_sampler_free(&v->sampler);
    sf_tally_free(&v->tally);
    memory_free(&v->memory);
    sf_buffer_free(&v->check_text);
    free(v->first);
    free(v->items);
    free(v->token_of);
    free(v->votes);
    free(v->draws);
    free(v->mapped);
    free(v->texts);
    free(v->spans);
    free(v->labels);
    free(v->waiting);
    free(v->scores);
    free(v->numbers);
    free(v);
}

safer_status sf_victim_new(sf_victim **out, const safer_model *model, const safer_lexicon *lexicon,
                           const sf_victim_options *options, safer_error *error)
{
    safer_status status;
    sf_victim *v = sf_calloc(1, sizeof *v);
    if (!v) return sf_fail_memory(error);
    v->model = model;
    v->lexicon = lexicon;
    v->options = *options;
    v->votes = sf_calloc(model->classes, sizeof *v->votes);
    v->texts = sf_calloc(options->batch, sizeof *v->texts);
    v->spans = sf_alloc(options->batch, sizeof *v->spans);
    v->labels = sf_alloc(options->batch, sizeof *v->labels);
    v->waiting = sf_alloc(options->batch, sizeof *v->waiting);
    v->scores = sf_alloc(options->batch, model->classes * sizeof *v->scores);
    if (!v->votes || !v->texts || !v->spans || !v->labels || !v->waiting || !v->scores) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_tally_new(&v->tally, model->classes, error));
    if (model->class->scratch_new) SF_TRY(model->class->scratch_new(model, &v->scratch, error));
    *out = v;
    v = NULL;
done:
    sf_victim_free(v);
    return status;
}

/* ---------------------------------------------------------------- the text */

/* The words that may stand in each slot. */
static int list_items(sf_victim *v)
{
    const safer_lexicon *l = v->lexicon;
    size_t count = 0;
    if (sf_grow(&v->first, &v->first_capacity, v->slots.slot_count + 1, sizeof *v->first)) return -1;
    for (size_t s = 0; s < v->slots.slot_count; s++) {
        const uint32_t word = v->slots.words[v->slots.slots[s]].word;
        const uint64_t synonyms = l->synonym_offsets[word], end = l->synonym_offsets[word + 1];
        const uint32_t *map = v->prepared ? sf_shadow_maps(&v->shadow, word) : NULL;
        v->first[s] = (uint32_t)count;
        if (sf_grow(&v->items, &v->item_capacity, count + 1 + (size_t)(end - synonyms), sizeof *v->items)) return -1;
        for (uint64_t k = synonyms; k <= end; k++) {
            const uint32_t x = k == synonyms ? word : l->synonyms[k - 1];
            sf_item item = {.word = x, .row = l->kernel.row_of[x]};
            if (v->options.smoothed) item.rule = sf_sampler_rule(l, x);
            if (map) {
                item.map = map;
                map += item.rule.count;
            }
            if (x == word || !v->options.likeness || sf_likeness_words(v->options.likeness, word, x))
                v->items[count++] = item;
        }
    }
    v->first[v->slots.slot_count] = (uint32_t)count;
    return 0;
}

safer_status sf_victim_draw(const sf_victim *v, sf_slots *slots, sf_sampler *sampler, safer_error *error)
{
    safer_status status;
    SF_TRY(sf_slots_split(slots, v->options.deletion, error));
    SF_TRY(sf_sampler_prepare(sampler, slots, v->lexicon, error));
    if (!slots->groups) goto done;
    if (sf_model_is_random(v->model))
        return sf_fail(error, SAFER_INVALID, "`groups`: the model answers at random, and groups are asked only once");
    SF_TRY(sf_sampler_group(sampler, slots, v->lexicon, v->options.key, error));
done:
    return status;
}

/* What the smoothed classifier needs: preparation and room for draws. */
static safer_status prepare_votes(sf_victim *v, safer_error *error)
{
    safer_status status;
    SF_TRY(sf_victim_draw(v, &v->slots, &v->sampler, error));
    const size_t width = v->sampler.width;
    if (width && v->options.batch > SIZE_MAX / sizeof *v->draws / width) return sf_fail_memory(error);
    if (sf_grow(&v->draws, &v->draw_capacity, v->options.batch * width + 1, sizeof *v->draws) ||
        sf_grow(&v->mapped, &v->mapped_capacity, v->options.batch * width + 1, sizeof *v->mapped) ||
        sf_grow(&v->token_of, &v->token_capacity, v->slots.slot_count + 1, sizeof *v->token_of))
        return sf_fail_memory(error);
    for (size_t t = 0; t < v->sampler.token_count; t++)
        if (v->slots.tokens[t].slot != SF_NONE) v->token_of[v->slots.tokens[t].slot] = (uint32_t)t;
    if (!sf_victim_prepares(v)) return SAFER_OK;
    SF_TRY(sf_shadow_make(&v->shadow, v->lexicon, &v->slots, error));
    SF_TRY(v->model->class->prepare(v->model, &v->shadow.lexicon, &v->slots, &v->prepared, error));
    if (v->model->class->visible && !sf_deletes(v->options.deletion))
        v->visible = v->model->class->visible(v->prepared);
done:
    return status;
}

safer_status sf_victim_read(sf_victim *v, const char *text, size_t length, safer_error *error)
{
    safer_status status;
    const size_t valid = sf_utf8_valid(text, length);
    if (valid < length) return sf_fail(error, SAFER_INPUT, "the text is not valid UTF-8 at byte %zu", valid);
    if (v->prepared) v->model->class->release(v->prepared);
    v->prepared = NULL;
    v->queries = v->checks = 0;
    v->exhausted = 0;
    v->target = -1;
    SF_TRY(sf_slots_read(&v->slots, v->lexicon, text, length, error));
    v->visible = v->slots.slot_count;
    if (v->options.smoothed) SF_TRY(prepare_votes(v, error));
    memory_clear(&v->memory, v->slots.slot_count);
    if (list_items(v)) status = sf_fail_memory(error);
done:
    return status;
}

int sf_victim_render(sf_buffer *out, const sf_victim *v, const uint32_t *choices)
{
    const safer_lexicon *l = v->lexicon;
    size_t at = 0;
    for (size_t s = 0; s < v->slots.slot_count; s++) {
        const sf_text_word *w = &v->slots.words[v->slots.slots[s]];
        if (choices[s] == 0) continue;
        if (sf_buffer_add(out, v->slots.text + at, w->begin - at)) return -1;
        at = w->end;
        if (choices[s] == SF_REMOVED) continue;
        const uint32_t word = v->items[v->first[s] + choices[s]].word, begin = l->words.offsets[word];
        if (sf_word_render(out, l->words.pool + begin, l->words.offsets[word + 1] - begin - 1, w->pattern)) return -1;
    }
    return sf_buffer_add(out, v->slots.text + at, v->slots.length - at);
}

/* ------------------------------------------------------------------ asking */

/* What two texts must share to have the same answer. */
static void write_key(uint32_t *key, const sf_victim *v, const uint32_t *choices)
{
    for (size_t s = 0; s < v->slots.slot_count; s++)
        key[s] = choices[s] == SF_REMOVED || !v->options.smoothed ? choices[s] : v->items[v->first[s] + choices[s]].row;
}

/* Asks about the texts that wait. */
static safer_status flush_texts(sf_victim *v, size_t *waiting, safer_error *error)
{
    const size_t classes = v->model->classes, count = *waiting;
    if (!count) return SAFER_OK;
    memset(v->scores, 0, count * classes * sizeof *v->scores);
    safer_status status = sf_model_classify(v->model, v->spans, count, v->labels, v->scores, v->scratch, error);
    if (status != SAFER_OK) return status;
    for (size_t i = 0; i < count; i++) {
        v->memory.labels[v->waiting[i]] = v->labels[i];
        float *scores = v->memory.scores + v->waiting[i] * classes;
        for (size_t c = 0; c < classes; c++) { /* logits that overflow leave no probability */
            const float score = v->scores[i * classes + c];
            scores[c] = isfinite(score) ? score : 0;
        }
    }
    *waiting = 0;
    return SAFER_OK;
}

/* The model's own answer is wanted: the text waits for a batch to be full. */
static safer_status ask_model(sf_victim *v, uint32_t number, const uint32_t *choices, size_t *waiting,
                              safer_error *error)
{
    sf_buffer *text = &v->texts[*waiting];
    sf_buffer_clear(text);
    if (sf_victim_render(text, v, choices)) return sf_fail_memory(error);
    v->spans[*waiting] = (sf_span){text->bytes ? text->bytes : "", text->length};
    v->waiting[(*waiting)++] = number;
    v->memory.flags[number] = EXACT;
    return *waiting == v->options.batch ? flush_texts(v, waiting, error) : SAFER_OK;
}

/* Whether the search may ask for so much more. */
static int may_ask(sf_victim *v, uint64_t cost)
{
    if (v->options.max_queries && v->queries + cost > v->options.max_queries)
        v->exhausted = 1;
    else
        v->queries += cost;
    return !v->exhausted;
}

/* The number of the text in the memory; what is new is asked, or waits to be. *refused: the
 * queries do not suffice. */
static safer_status recall(uint32_t *number, int *refused, sf_victim *v, const uint32_t *choices, size_t *waiting,
                           safer_error *error)
{
    sf_memory *m = &v->memory;
    uint64_t cost = 1;
    if (memory_reserve(m, v->model->classes)) return sf_fail_memory(error);
    uint32_t *key = m->keys + m->count * m->slots;
    write_key(key, v, choices);
    const int known = v->options.smoothed || !sf_model_is_random(v->model);
    const uint32_t tag = known ? tag_of(m, key) : 0;
    if (known && (*number = number_of(m, key, tag)) != SF_NONE) return SAFER_OK;
    if (v->options.smoothed) {
        safer_status status = sf_victim_vote(NULL, NULL, NULL, &cost, v, choices, error);
        if (status != SAFER_OK) return status;
    }
    if (!may_ask(v, cost)) {
        *refused = 1;
        return SAFER_OK;
    }
    *number = (uint32_t)m->count;
    if (known && sf_hashtable_add(&m->table, tag, *number)) return sf_fail_memory(error);
    m->count++;
    if (!v->options.smoothed) return ask_model(v, *number, choices, waiting, error);
    int exact = 0;
    safer_status status = sf_victim_vote(m->scores + *number * v->model->classes, &m->labels[*number], &exact, &cost, v,
                                         choices, error);
    m->flags[*number] = exact ? EXACT : 0;
    return status;
}

sf_answer sf_victim_answer(int label, const float *scores, size_t classes, int target)
{
    sf_answer a = {.label = label, .exact = 1, .rival = -1};
    if (a.label >= 0) a.top = (double)scores[a.label];
    for (int c = 0; c < (int)classes; c++)
        if (c != target && (a.rival < 0 || scores[c] > scores[a.rival])) a.rival = c;
    if (a.label >= 0 && a.label != target) a.rival = a.label; /* ties: the one that was said to win */
    if (target >= 0) {
        a.score = (double)scores[target];
        a.margin = a.score - (double)scores[a.rival];
    }
    return a;
}

static sf_answer answer_of(const sf_victim *v, uint32_t number)
{
    const size_t classes = v->model->classes;
    sf_answer a = sf_victim_answer(v->memory.labels[number], v->memory.scores + number * classes, classes, v->target);
    a.exact = v->memory.flags[number] & EXACT;
    a.refuted = (v->memory.flags[number] & REFUTED) != 0;
    return a;
}

safer_status sf_victim_ask(sf_answer *answers, size_t *answered, sf_victim *v, const uint32_t *choices, size_t count,
                           safer_error *error)
{
    safer_status status = SAFER_OK;
    size_t waiting = 0, known = 0;
    int refused = 0;
    if (sf_grow(&v->numbers, &v->number_capacity, count + 1, sizeof *v->numbers)) return sf_fail_memory(error);
    for (; known < count; known++) {
        SF_TRY(recall(&v->numbers[known], &refused, v, choices + known * v->slots.slot_count, &waiting, error));
        if (refused) break;
    }
    SF_TRY(flush_texts(v, &waiting, error));
    for (size_t i = 0; i < known; i++) answers[i] = answer_of(v, v->numbers[i]);
    *answered = known;
done:
    return status;
}

void sf_victim_refute(sf_victim *v, size_t i) { v->memory.flags[v->numbers[i]] |= REFUTED; }

sf_answer sf_victim_start(const sf_victim *v) { return answer_of(v, 0); }

double sf_victim_start_score(const sf_victim *v, int label) { return (double)v->memory.scores[label]; }
