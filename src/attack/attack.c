/* Attacks on one text: skip it or search it, and report what was found.
 *
 * What a method finds counts only if it is really fooled: the model itself answers otherwise or, where votes are
 * sampled, fresh draws bear it out at the level of the options. docs/attack.md has the methods. */
#include "attack/attack.h"

#include "attack/records.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/progress.h"
#include "draw/groups.h"
#include "stats/special.h"

#include <string.h>

enum { LOOKS = 3 }; /* of the test of a success, at n, 4n and 16n draws */

void safer_attack_options_init(safer_attack_options *options, size_t size)
{
    static const safer_attack_options defaults = {.method = SAFER_ATTACK_TEXTFOOLER,
                                                  .n = 200,
                                                  .radius = SAFER_ALL,
                                                  .population = 60,
                                                  .iterations = 40,
                                                  .tries = 100,
                                                  .alpha = 0.001,
                                                  .seed = 1,
                                                  .batch = 256,
                                                  .words = 2000};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

safer_status sf_attack_check(const safer_attack_options *o, safer_error *error)
{
    enum { MOST = 1 << 20 };
    if ((unsigned)o->method >= SAFER_ATTACKS) return sf_fail(error, SAFER_INVALID, "`method`: unknown");
    if (o->n < 1 || o->n > SF_SAMPLES_MAX / 1024)
        return sf_fail(error, SAFER_INVALID, "`n`: %llu (1 to 976562)", (unsigned long long)o->n);
    const uint64_t vote = o->deletion.groups ? o->deletion.groups : o->n;
    if (o->smoothed && o->max_queries && o->max_queries < vote) /* then not even the text itself could be asked about */
        return sf_fail(error, SAFER_INVALID, "`max_queries`: %llu, but one vote may take %s = %llu",
                       (unsigned long long)o->max_queries, o->deletion.groups ? "`groups`" : "`n`",
                       (unsigned long long)vote);
    if (o->radius < 1) return sf_fail(error, SAFER_INVALID, "`radius`: at least 1, or all");
    if (o->population < 2 || o->population > MOST)
        return sf_fail(error, SAFER_INVALID, "`population`: %d (2 to 1048576)", o->population);
    if (o->iterations < 0 || o->iterations > MOST)
        return sf_fail(error, SAFER_INVALID, "`iterations`: %d (0 to 1048576)", o->iterations);
    if (o->tries < 1 || o->tries > MOST) return sf_fail(error, SAFER_INVALID, "`tries`: %d (1 to 1048576)", o->tries);
    if (!(o->alpha > 0 && o->alpha < 1))
        return sf_fail(error, SAFER_INVALID, "`alpha`: %g (above 0, below 1)", o->alpha);
    if (o->threads < 0) return sf_fail(error, SAFER_INVALID, "`threads`: %d", o->threads);
    if (o->batch < 1 || o->batch > MOST) return sf_fail(error, SAFER_INVALID, "`batch`: %zu (1 to 1048576)", o->batch);
    const safer_status status = sf_deletion_check(o->deletion, error);
    if (status != SAFER_OK) return status;
    if (sf_deletes(o->deletion) && !o->smoothed)
        return sf_fail(error, SAFER_INVALID, "`deletion`: only draws of the smoothed classifier delete");
    if (o->words < 1) return sf_fail(error, SAFER_INVALID, "`words`: at least 1");
    if (sf_likeness_check(o, error) != SAFER_OK) return SAFER_INVALID;
    return sf_shard_check((sf_shard){o->shard, o->shards}, error);
}

/* --------------------------------------------------------------- one thread */

void safer_attacker_free(safer_attacker *a)
{
    if (!a) return;
    sf_victim_free(a->victim);
    sf_search_free(&a->search);
    sf_spelling_free(&a->spelling);
    sf_rewrite_free(&a->rewrite);
    sf_wordlist_free(&a->own);
    sf_likeness_free(&a->likeness);
    sf_reach_free(&a->reach);
    sf_buffer_free(&a->text);
    sf_buffer_free(&a->words);
    free(a->changes);
    free(a);
}

safer_status sf_attacker_new(safer_attacker **out, const safer_model *model, const safer_lexicon *lexicon,
                             const safer_attack_options *options, const sf_likeness *likeness, int ties_lose,
                             safer_error *error)
{
    safer_attacker *a = sf_calloc(1, sizeof *a);
    if (!a) return sf_fail_memory(error);
    if (options->deletion.groups) {
        const safer_status wrong = sf_groups_check(lexicon, error);
        if (wrong != SAFER_OK) {
            free(a);
            return wrong;
        }
    }
    a->options = *options;
    safer_status status = SAFER_OK;
    if (!likeness && sf_likeness_asked(options)) {
        SF_TRY(sf_likeness_make(&a->likeness, lexicon, options, error));
        likeness = &a->likeness;
    }
    const sf_victim_options victim = {.smoothed = options->smoothed,
                                      .n = options->deletion.groups ? options->deletion.groups : options->n,
                                      .deletion = sf_deletion_round(options->deletion),
                                      .key = options->seed,
                                      .max_queries = options->max_queries,
                                      .seed = options->seed,
                                      .batch = options->batch,
                                      .ties_lose = ties_lose,
                                      .likeness = likeness};
    SF_TRY(sf_victim_new(&a->victim, model, lexicon, &victim, error));
    *out = a;
    a = NULL;
done:
    safer_attacker_free(a);
    return status;
}

/* A word of the text as it stands, and what takes its place, in the buffer of words. The
 * pointers are offsets until the buffer has stopped growing. */
static int write_change(safer_attacker *a, safer_change *change, size_t slot)
{
    const sf_victim *v = a->victim;
    const safer_lexicon *l = v->lexicon;
    const sf_text_word *w = &v->slots.words[v->slots.slots[slot]];
    const uint32_t word = v->items[v->first[slot] + a->search.best[slot]].word, begin = l->words.offsets[word];
    const size_t from = sf_slots_origin(&v->slots, w->begin), end = sf_slots_origin(&v->slots, w->end);
    change->word = v->slots.slots[slot];
    change->begin = from;
    change->from = (const char *)(uintptr_t)a->words.length;
    if (sf_buffer_add(&a->words, v->slots.given.bytes + from, end - from) || sf_buffer_add_byte(&a->words, '\0'))
        return -1;
    change->to = (const char *)(uintptr_t)a->words.length;
    return sf_word_render(&a->words, l->words.pool + begin, l->words.offsets[word + 1] - begin - 1, w->pattern) ||
           sf_buffer_add_byte(&a->words, '\0');
}

/* The buffer of words has stopped growing. */
static void point_changes(safer_attacker *a, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        a->changes[i].from = a->words.bytes + (uintptr_t)a->changes[i].from;
        a->changes[i].to = a->words.bytes + (uintptr_t)a->changes[i].to;
    }
}

safer_status sf_attacker_write(safer_attacker *a, size_t *changed, safer_error *error)
{
    size_t count = 0;
    sf_buffer_clear(&a->text);
    sf_buffer_clear(&a->words);
    if (sf_victim_render(&a->text, a->victim, a->search.best)) return sf_fail_memory(error);
    for (size_t s = 0; s < a->search.slots; s++) {
        if (!a->search.best[s]) continue;
        if (sf_grow(&a->changes, &a->change_capacity, count + 1, sizeof *a->changes) ||
            write_change(a, &a->changes[count], s))
            return sf_fail_memory(error);
        count++;
    }
    point_changes(a, count);
    *changed = count;
    return SAFER_OK;
}

static int compare_places(const void *left, const void *right)
{
    const sf_spelled *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

safer_status sf_attacker_write_spelling(safer_attacker *a, size_t *changed, safer_error *error)
{
    sf_spelling *s = &a->spelling;
    sf_buffer_clear(&a->text);
    sf_buffer_clear(&a->words);
    qsort(s->places, s->changed, sizeof *s->places, compare_places);
    if (sf_buffer_add(&a->text, s->text.bytes, s->text.length) ||
        sf_grow(&a->changes, &a->change_capacity, s->changed, sizeof *a->changes))
        return sf_fail_memory(error);
    for (size_t i = 0; i < s->changed; i++) {
        const sf_spelled *place = &s->places[i];
        const size_t from = a->words.length;
        if (sf_buffer_add(&a->words, s->given.bytes + place->begin, place->end - place->begin) ||
            sf_buffer_add_byte(&a->words, '\0'))
            return sf_fail_memory(error);
        a->changes[i] = (safer_change){.word = place->word,
                                       .begin = place->begin,
                                       .from = (const char *)(uintptr_t)from,
                                       .to = (const char *)(uintptr_t)a->words.length};
        if (sf_spelling_write(&a->words, s, place) || sf_buffer_add_byte(&a->words, '\0')) return sf_fail_memory(error);
    }
    point_changes(a, s->changed);
    *changed = s->changed;
    return SAFER_OK;
}

/* A change at a place of the folded text, from its bytes to what follows in the buffer of words. */
static int begin_change(safer_attacker *a, safer_change *change, const sf_slots *slots, size_t begin, size_t end)
{
    const size_t from = sf_slots_origin(slots, begin), until = sf_slots_origin(slots, end);
    size_t word = 0;
    while (word < slots->word_count && slots->words[word].end <= begin) word++;
    *change = (safer_change){.word = word, .begin = from, .from = (const char *)(uintptr_t)a->words.length};
    if (sf_buffer_add(&a->words, slots->given.bytes + from, until - from) || sf_buffer_add_byte(&a->words, '\0'))
        return -1;
    change->to = (const char *)(uintptr_t)a->words.length;
    return 0;
}

safer_status sf_attacker_write_edits(safer_attacker *a, size_t *changed, safer_error *error)
{
    const sf_rewrite *r = &a->rewrite;
    sf_buffer_clear(&a->text);
    sf_buffer_clear(&a->words);
    if (sf_rewrite_write(&a->text, r, &r->best) ||
        sf_grow(&a->changes, &a->change_capacity, r->best.count + 1, sizeof *a->changes))
        return sf_fail_memory(error);
    for (size_t i = 0; i < r->best.count; i++) {
        const sf_edit *e = &r->best.list[i];
        const size_t begin = e->token < r->slots.token_count ? r->slots.tokens[e->token].begin : r->slots.length;
        const size_t end = e->operation == SF_PUT_IN ? begin : r->slots.tokens[e->token].end;
        if (begin_change(a, &a->changes[i], &r->slots, begin, end) ||
            (e->operation != SF_TAKE_OUT && sf_rewrite_word(&a->words, r, e)) || sf_buffer_add_byte(&a->words, '\0'))
            return sf_fail_memory(error);
    }
    point_changes(a, r->best.count);
    *changed = r->best.count;
    return SAFER_OK;
}

/* ----------------------------------------------------------------- one text */

static size_t words_with_synonyms(const sf_victim *v)
{
    size_t count = 0;
    for (size_t s = 0; s < v->slots.slot_count; s++) count += sf_victim_choices(v, s) > 1;
    return count;
}

/* Why there is nothing to search. */
static sf_reason reason_to_skip(const safer_attack_result *r, int stopped)
{
    if (stopped) return SF_NO_REASON;
    if (r->before < 0) return SF_NO_ANSWER;
    return r->label >= 0 && r->before != r->label ? SF_ALREADY_WRONG : SF_NO_REASON;
}

static sf_reason reason_to_fail(int stopped, size_t choices, size_t flips)
{
    if (stopped) return SF_QUERIES_USED_UP;
    if (!choices) return SF_NO_WORD_CHANGES;
    return flips ? SF_NOT_BORNE_OUT : SF_NOTHING_FOUND;
}

static safer_status search_text(safer_attack_result *r, safer_attacker *a, safer_error *error)
{
    sf_search *s = &a->search;
    safer_status status;
    s->claimed = s->cross_check = 0;
    s->level = a->options.alpha;
    s->looks = LOOKS;
    SF_TRY(sf_search_begin(s, a->victim, &a->options, r->label, error));
    r->before = r->after = s->stopped ? -1 : s->start.label;
    r->target = a->victim->target;
    r->choices = words_with_synonyms(a->victim);
    r->score_before = r->score_after = s->start.score;
    r->reason = sf_reason_text(reason_to_skip(r, s->stopped));
    if (r->reason) {
        r->outcome = SAFER_OUTCOME_SKIPPED;
        goto done;
    }
    if (!s->stopped && s->open_count) SF_TRY(sf_attack_functions[a->options.method](s, error));
    if (s->has_best && s->best_answer.score < r->score_after) r->score_after = s->best_answer.score;
    r->outcome = s->won ? SAFER_OUTCOME_SUCCEEDED : SAFER_OUTCOME_FAILED;
    r->reason = s->won ? NULL : sf_reason_text(reason_to_fail(s->stopped, s->open_count, s->flips));
done:
    return status;
}

/* The same by spelling words otherwise. */
static safer_status spell_text(safer_attack_result *r, safer_attacker *a, const char *text, size_t length,
                               safer_error *error)
{
    sf_spelling *s = &a->spelling;
    s->victim = a->victim;
    s->method = a->options.method;
    s->radius = a->options.radius;
    s->max_queries = a->options.max_queries;
    s->seed = a->options.seed;
    s->level = a->options.alpha;
    s->looks = LOOKS;
    s->within = 0;
    safer_status status = sf_spelling_attack(s, text, length, r->label, error);
    if (status != SAFER_OK) return status;
    r->before = r->after = s->stopped && s->start.label < 0 ? -1 : s->start.label;
    r->target = r->label >= 0 ? r->label : s->start.label;
    r->choices = s->place_count;
    r->score_before = r->score_after = s->start.score;
    r->queries = s->queries;
    r->checks = s->checks;
    r->reason = sf_reason_text(reason_to_skip(r, s->stopped));
    r->outcome = r->reason ? SAFER_OUTCOME_SKIPPED : s->won ? SAFER_OUTCOME_SUCCEEDED : SAFER_OUTCOME_FAILED;
    if (s->has_best && s->best_answer.score < r->score_after) r->score_after = s->best_answer.score;
    if (r->outcome == SAFER_OUTCOME_FAILED)
        r->reason = sf_reason_text(reason_to_fail(s->stopped, s->place_count, s->flips));
    if (r->outcome != SAFER_OUTCOME_SUCCEEDED) return SAFER_OK;
    r->after = s->best_answer.label;
    return sf_attacker_write_spelling(a, &r->changed, error);
}

/* The same by putting in, taking out or replacing. */
static safer_status rewrite_text(safer_attack_result *r, safer_attacker *a, const char *text, size_t length,
                                 safer_error *error)
{
    sf_rewrite *w = &a->rewrite;
    safer_status status = SAFER_OK;
    if (sf_needs_words(a->options.method) && !w->words) {
        SF_TRY(
            sf_wordlist_make(&a->own, a->victim->model, a->victim->lexicon, a->options.words, a->options.batch, error));
        w->words = &a->own;
    }
    w->victim = a->victim;
    w->operations = sf_rewrite_operations(a->options.method);
    w->radius = a->options.radius;
    w->max_queries = a->options.max_queries;
    w->level = a->options.alpha;
    w->looks = LOOKS;
    w->reach = NULL;
    SF_TRY(sf_rewrite_attack(w, text, length, r->label, error));
    r->before = r->after = w->start.label;
    r->target = r->label >= 0 ? r->label : w->start.label;
    r->choices = w->slots.token_count;
    r->score_before = r->score_after = w->start.score;
    r->queries = w->queries;
    r->checks = w->checks;
    r->reason = sf_reason_text(reason_to_skip(r, w->stopped));
    r->outcome = r->reason ? SAFER_OUTCOME_SKIPPED : w->won ? SAFER_OUTCOME_SUCCEEDED : SAFER_OUTCOME_FAILED;
    if (w->has_best && w->best_answer.score < r->score_after) r->score_after = w->best_answer.score;
    if (r->outcome == SAFER_OUTCOME_FAILED)
        r->reason = sf_reason_text(reason_to_fail(w->stopped, r->choices, w->flips));
    if (r->outcome != SAFER_OUTCOME_SUCCEEDED) return SAFER_OK;
    r->after = w->best_answer.label;
    SF_TRY(sf_attacker_write_edits(a, &r->changed, error));
done:
    return status;
}

safer_status safer_attack_text(safer_attack_result *out, safer_attacker **attacker, const safer_model *model,
                               const safer_lexicon *lexicon, const char *text, size_t length, int label,
                               const safer_attack_options *options, safer_error *error)
{
    safer_status status;
    const double start = sf_seconds();
    if (!*attacker) {
        safer_attack_options own = safer_attack_options_default();
        SF_TRY(SF_TAKE_OPTIONS(&own, options, safer_attack_options, error));
        SF_TRY(sf_attack_check(&own, error));
        SF_TRY(sf_attacker_new(attacker, model, lexicon, &own, NULL, 0, error));
    }
    safer_attacker *a = *attacker;
    if (a->victim->model != model || a->victim->lexicon != lexicon)
        return sf_fail(error, SAFER_INVALID, "attacker: it was made with another model or lexicon");
    if (label >= (int)model->classes) {
        status = sf_fail(error, SAFER_INVALID, "label: %d, but the model has %zu classes", label, model->classes);
        goto done;
    }
    const sf_span whole = {text, length};
    SF_TRY(sf_model_probe(model, &whole, 1, error));
    SF_TRY(sf_victim_read(a->victim, text, length, error));
    safer_attack_result r = {.label = label < 0 ? -1 : label, .words = a->victim->slots.word_count};
    if (sf_is_spelling(a->options.method)) {
        SF_TRY(spell_text(&r, a, text, length, error));
    } else if (sf_is_rewriting(a->options.method)) {
        SF_TRY(rewrite_text(&r, a, text, length, error));
    } else {
        SF_TRY(search_text(&r, a, error));
        if (r.outcome == SAFER_OUTCOME_SUCCEEDED) SF_TRY(sf_attacker_write(a, &r.changed, error));
        if (r.outcome == SAFER_OUTCOME_SUCCEEDED) r.after = a->search.best_answer.label;
        r.queries = a->victim->queries;
        r.checks = a->victim->checks;
    }
    if (r.outcome == SAFER_OUTCOME_SUCCEEDED) {
        r.changes = a->changes;
        r.text = a->text.bytes ? a->text.bytes : "";
        r.text_length = a->text.length;
    }
    r.seconds = sf_seconds() - start;
    *out = r;
done:
    return status;
}
