/* The attack on what a record of a run claims.
 *
 * Three sets are searched: synonyms in as many words as the record's radius says; spellings that the lexicon's fold
 * covers, of any number of words; and, where draws delete, the record's edits, with synonyms in as many words as
 * the run asked for and such spellings. Each method's best text, whatever the votes of the search were, is tested with
 * fresh draws. A text with edits counts only if it lies in the certified set (attack/reach.h), which does not
 * depend on how it was found. The level of a violation is shared by all tests of a certificate: every search has a
 * part of it, which its tests share in turn. */
#include "attack/claim.h"

#include "attack/records.h"
#include "base/json.h"
#include "base/memory.h"

#include <string.h>

enum { LOOKS = 5 }; /* at n, 4n, ... 256n draws */

/* Searches of one certificate: by synonyms, 3 by spelling; 3 by edits, each followed by synonyms and 3 spellings. */
enum { SEARCHES = 1 + 3 + 3 * (1 + 1 + 3) };
static const double LEVEL = SAFER_VIOLATION_LEVEL / SEARCHES;

/* What all searches of a certificate came to. */
typedef struct total {
    safer_attacker *attacker;
    const sf_claim *claim;
    json_t *margins, **record;
    size_t flips, limited, choices;
    uint64_t queries, checks;
    int broken;
} total;

static void add_margin(total *t, safer_attack_method method, int known, double margin)
{
    sf_json_put(&t->margins, safer_attack_method_name(method), known ? json_real(margin) : json_null());
}

/* The attacker has the new text and its changes. */
static void add_violation(total *t, safer_attack_method method, const sf_finding *f, size_t changed, json_t *changes)
{
    const sf_buffer *text = &t->attacker->text;
    t->broken = 1;
    sf_json_put(t->record, "violation",
                json_pack("{s:s, s:b, s:I, s:f, s:I, s:o, s:o}", "method", safer_attack_method_name(method), "proved",
                          f->exact, "draws", (json_int_t)f->draws, "p_value", f->p_value, "changed",
                          (json_int_t)changed, "changes", changes, "text",
                          json_stringn(text->bytes ? text->bytes : "", text->length)));
}

static safer_status write_violation(total *t, safer_attack_method method, const sf_finding *f,
                                    safer_status (*write)(safer_attacker *, size_t *, safer_error *),
                                    safer_error *error)
{
    size_t changed = 0;
    safer_status status = write(t->attacker, &changed, error);
    if (status == SAFER_OK) add_violation(t, method, f, changed, sf_changes_json(t->attacker->changes, changed));
    return status;
}

/* ------------------------------------------------------------------- synonyms */

/* One method's search, and the test of the best that it found. */
static safer_status try_method(safer_attacker *a, safer_attack_method method, safer_error *error)
{
    sf_search *s = &a->search;
    const uint64_t most = a->options.max_queries;
    sf_search_again(s);
    a->victim->options.max_queries = most ? a->victim->queries + most : 0; /* each has its own */
    safer_status status = sf_attack_functions[method](s, error);
    if (status != SAFER_OK || s->won || !s->has_best || !s->cross_check) return status;
    status = sf_search_test(s, s->best, s->best_answer.rival, error);
    s->won = status == SAFER_OK && s->finding.beaten;
    return status;
}

static safer_status begin_search(total *t, const char *text, size_t length, size_t radius, safer_error *error)
{
    safer_attacker *a = t->attacker;
    sf_search *s = &a->search;
    a->options.radius = radius;
    a->victim->options.max_queries = 0;
    s->claimed = 1;
    s->cross_check = a->options.smoothed;
    s->level = LEVEL;
    s->looks = LOOKS;
    safer_status status = sf_victim_read(a->victim, text, length, error);
    return status == SAFER_OK ? sf_search_begin(s, a->victim, &a->options, t->claim->target, error) : status;
}

static void end_search(total *t)
{
    t->flips += t->attacker->search.flips;
    t->queries += t->attacker->victim->queries;
    t->checks += t->attacker->victim->checks;
}

static safer_status try_synonyms(total *t, const char *text, size_t length, safer_error *error)
{
    sf_search *s = &t->attacker->search;
    safer_status status;
    SF_TRY(begin_search(t, text, length, t->claim->radius, error));
    t->choices = s->open_count;
    for (int m = 0; m < SAFER_ATTACK_HOMOGLYPH && s->open_count && !s->won; m++) {
        SF_TRY(try_method(t->attacker, (safer_attack_method)m, error));
        t->limited += (size_t)s->stopped;
        add_margin(t, (safer_attack_method)m, s->has_best, s->best_answer.margin);
        if (s->won) SF_TRY(write_violation(t, (safer_attack_method)m, &s->finding, sf_attacker_write, error));
    }
    end_search(t);
done:
    return status;
}

/* ------------------------------------------------------------------ spellings */

/* Spellings that the lexicon's fold covers, of any number of words: what is certified of a text is so of them. */
static safer_status try_spelling(total *t, safer_attack_method method, const char *text, size_t length,
                                 safer_error *error)
{
    safer_attacker *a = t->attacker;
    sf_spelling *s = &a->spelling;
    s->victim = a->victim;
    s->method = method;
    s->radius = SAFER_ALL;
    s->max_queries = a->options.max_queries;
    s->seed = a->options.seed;
    s->level = LEVEL;
    s->looks = LOOKS;
    s->within = 1;
    safer_status status = sf_spelling_attack(s, text, length, t->claim->target, error);
    t->queries += s->queries;
    t->checks += s->checks;
    t->limited += (size_t)s->stopped;
    t->flips += s->flips;
    return status;
}

static safer_status try_spellings(total *t, const char *text, size_t length, safer_error *error)
{
    const sf_spelling *s = &t->attacker->spelling;
    safer_status status = SAFER_OK;
    if (!sf_lexicon_fold(t->attacker->victim->lexicon)) return SAFER_OK;
    for (int m = SAFER_ATTACK_HOMOGLYPH; m <= SAFER_ATTACK_TYPO && !t->broken; m++) {
        SF_TRY(try_spelling(t, (safer_attack_method)m, text, length, error));
        add_margin(t, (safer_attack_method)m, s->has_best, s->best_answer.margin);
        if (s->won) SF_TRY(write_violation(t, s->method, &s->finding, sf_attacker_write_spelling, error));
    }
done:
    return status;
}

/* ---------------------------------------------------------------------- edits */

/* What a method may do where edits of a kind are certified: 0, nothing. Where all are, outoflist mixes them. */
static unsigned operations_of(safer_attack_method method, safer_edit_kind kind)
{
    const unsigned own = sf_rewrite_operations(method);
    switch (kind) {
    case SAFER_EDITS_REPLACE: return own & SF_REPLACE;
    case SAFER_EDITS_INSERT: return own & SF_PUT_IN;
    case SAFER_EDITS_DELETE: return own & SF_TAKE_OUT;
    default: return own == SF_REPLACE ? SF_REPLACE | SF_PUT_IN | SF_TAKE_OUT : own;
    }
}

/* A text that several methods made, which breaks the certificate if it lies in the certified set. It has no list of
 * changes. */
static safer_status judge_union(total *t, safer_attack_method method, const sf_finding *f, const sf_buffer *text,
                                safer_error *error)
{
    safer_attacker *a = t->attacker;
    int covered = 0;
    safer_status status = sf_reach_covers(&covered, &a->reach, text->bytes ? text->bytes : "", text->length, error);
    if (status != SAFER_OK || !covered) return status;
    if (text != &a->text) {
        sf_buffer_clear(&a->text);
        if (sf_buffer_add(&a->text, text->bytes, text->length)) return sf_fail_memory(error);
    }
    add_violation(t, method, f, t->claim->edits, json_array());
    return SAFER_OK;
}

/* Synonyms in an edited text, then other spellings of what that led to. */
static safer_status try_union(total *t, safer_attack_method method, safer_error *error)
{
    safer_attacker *a = t->attacker;
    sf_search *s = &a->search;
    safer_status status = SAFER_OK;
    sf_buffer text = {0};
    if (sf_buffer_add(&text, a->rewrite.text.bytes, a->rewrite.text.length)) return sf_fail_memory(error);
    const char *edited = text.bytes ? text.bytes : "";
    if (t->claim->edit_radius) {
        SF_TRY(begin_search(t, edited, text.length, t->claim->edit_radius, error));
        if (s->open_count) SF_TRY(try_method(a, SAFER_ATTACK_TEXTFOOLER, error));
        t->limited += (size_t)s->stopped;
        end_search(t);
        if (s->has_best) {
            sf_buffer_clear(&a->text);
            if (sf_victim_render(&a->text, a->victim, s->best)) status = sf_fail_memory(error);
            if (status == SAFER_OK && s->won) SF_TRY(judge_union(t, method, &s->finding, &a->text, error));
            sf_buffer_clear(&text);
            if (sf_buffer_add(&text, a->text.bytes, a->text.length)) status = sf_fail_memory(error);
        }
    }
    edited = text.bytes ? text.bytes : "";
    for (int m = SAFER_ATTACK_HOMOGLYPH;
         m <= SAFER_ATTACK_TYPO && status == SAFER_OK && !t->broken && sf_lexicon_fold(a->victim->lexicon); m++) {
        SF_TRY(try_spelling(t, (safer_attack_method)m, edited, text.length, error));
        if (a->spelling.won) SF_TRY(judge_union(t, method, &a->spelling.finding, &a->spelling.text, error));
    }
done:
    sf_buffer_free(&text);
    return status;
}

static safer_status try_edits(total *t, const char *text, size_t length, safer_error *error)
{
    safer_attacker *a = t->attacker;
    sf_rewrite *r = &a->rewrite;
    safer_status status;
    a->reach.kind = t->claim->kind;
    a->reach.edits = r->radius = t->claim->edits;
    a->reach.radius = t->claim->edit_radius;
    SF_TRY(sf_reach_begin(&a->reach, a->victim->lexicon, text, length, error));
    r->victim = a->victim;
    r->max_queries = a->options.max_queries;
    r->level = LEVEL;
    r->looks = LOOKS;
    r->reach = &a->reach;
    for (int m = SAFER_ATTACK_INSERT; m < SAFER_ATTACKS && !t->broken; m++) {
        r->operations = operations_of((safer_attack_method)m, t->claim->kind);
        if (!r->operations) continue;
        a->victim->options.max_queries = a->options.max_queries;
        SF_TRY(sf_rewrite_attack(r, text, length, t->claim->target, error));
        SF_TRY(sf_rewrite_test(r, error));
        t->queries += r->queries;
        t->checks += r->checks;
        t->flips += r->flips;
        t->limited += (size_t)r->stopped;
        t->choices += r->slots.token_count;
        add_margin(t, (safer_attack_method)m, r->has_best, r->best_answer.margin);
        if (r->won)
            SF_TRY(write_violation(t, (safer_attack_method)m, &r->finding, sf_attacker_write_edits, error));
        else if (r->has_best)
            SF_TRY(try_union(t, (safer_attack_method)m, error));
    }
done:
    return status;
}

safer_status sf_claim_attack(safer_attacker *a, const sf_claim *claim, const char *text, size_t length, json_t **record,
                             safer_error *error)
{
    safer_status status = SAFER_OK;
    total t = {.attacker = a, .claim = claim, .margins = json_object(), .record = record};
    if (claim->radius) SF_TRY(try_synonyms(&t, text, length, error));
    if (!t.broken) SF_TRY(try_spellings(&t, text, length, error));
    if (!t.broken && claim->edits) SF_TRY(try_edits(&t, text, length, error));
    sf_json_put(record, "margins", t.margins);
    t.margins = NULL;
    sf_json_put(record, "choices", json_integer((json_int_t)t.choices));
    sf_json_put(record, "flips", json_integer((json_int_t)t.flips));
    sf_json_put(record, "limited", json_integer((json_int_t)t.limited));
    sf_json_put(record, "queries", json_integer((json_int_t)t.queries));
    sf_json_put(record, "checks", json_integer((json_int_t)t.checks));
    if (!*record) status = sf_fail_memory(error);
done:
    json_decref(t.margins);
    return status;
}
