/* Tokenizers: a text to its pieces, through all steps. tokenizer.h says which they are.
 *
 * Pieces of short words are remembered, in a table where a new word takes the place of an old one: most words of a text
 * were met before. The table is small at first and then of fixed size, so that who encodes little pays little. */
#include "text/tokenizer.h"

#include "base/hash.h"
#include "base/memory.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

#include <math.h>
#include <string.h>

enum { KNOWN_FIRST = 1 << 9, KNOWN_MOST = 1 << 15, KNOWN_BYTES = 30, KNOWN_IDS = 8 };

/* A word whose pieces are known; 64 bytes. */
typedef struct known {
    unsigned char length;    /* 0: none */
    unsigned char count : 7; /* of its pieces */
    unsigned char sure : 1;  /* Unigram: after any sum */
    char bytes[KNOWN_BYTES];
    uint32_t ids[KNOWN_IDS];
} known;

struct sf_tokenizer_scratch {
    sf_buffer repaired;
    sf_buffer normal[2]; /* texts on their way through the normalizers */
    sf_ids points;
    sf_cuttings cuttings;
    sf_cut_scratch cut;
    sf_model_scratch model;
    known *known; /* (known_size), a power of two */
    size_t known_size, known_news;
};

sf_tokenizer_scratch *sf_tokenizer_scratch_new(const sf_tokenizer *tokenizer)
{
    sf_tokenizer_scratch *s = sf_calloc(1, sizeof *s);
    (void)tokenizer;
    if (!s || (s->known = sf_calloc(KNOWN_FIRST, sizeof *s->known))) {
        if (s) s->known_size = KNOWN_FIRST;
        return s;
    }
    free(s);
    return NULL;
}

void sf_tokenizer_scratch_free(sf_tokenizer_scratch *scratch)
{
    if (!scratch) return;
    sf_buffer_free(&scratch->repaired);
    for (int i = 0; i < 2; i++) {
        sf_buffer_free(&scratch->normal[i]);
        sf_buffer_free(&scratch->cut.buffers[i]);
    }
    sf_ids_free(&scratch->points);
    free(scratch->cuttings.stretches.list);
    free(scratch->cut.marks.list);
    free(scratch->cut.other.list);
    free(scratch->model.symbols);
    free(scratch->model.heap);
    free(scratch->model.best);
    sf_buffer_free(&scratch->model.spelled);
    free(scratch->known);
    free(scratch);
}

sf_buffer *sf_tokenizer_other(sf_buffer buffers[2], const char *bytes)
{
    const sf_buffer *b = &buffers[0];
    return &buffers[b->bytes && bytes >= b->bytes && bytes <= b->bytes + b->length];
}

/* What is being encoded, and where to. */
typedef struct job {
    const sf_tokenizer *tokenizer;
    sf_ids *out;
    size_t end;   /* out is full at this count */
    size_t skips; /* inside a text: prefixes that its first stretch does not get */
    sf_tokenizer_scratch *scratch;
} job;

static int is_full(const job *j) { return j->out->count >= j->end; }

/* ------------------------------------------------------------------ words */

/* *sum and *sure are Unigram's. */
static int encode_word(job *j, const char *word, size_t length, double *sum, int *sure)
{
    const sf_tokenizer *t = j->tokenizer;
    uint32_t id;
    switch (t->kind) {
    case SF_MODEL_BPE: return sf_bpe_encode(j->out, &t->bpe, &t->vocabulary, word, length, &j->scratch->model);
    case SF_MODEL_UNIGRAM: return sf_unigram_encode(j->out, &t->unigram, word, length, sum, sure, &j->scratch->model);
    case SF_MODEL_WORDPIECE: return sf_wordpieces_encode(j->out, &t->wordpieces, word, length);
    case SF_MODEL_WORDLEVEL:
        id = sf_vocabulary_find(&t->vocabulary, word, length);
        return sf_ids_push(j->out, id == SF_NONE ? t->wordlevel_unk : id);
    }
    return -1;
}

/* The table gets its full size once that many words were new; without memory it stays as it is. */
static void grow_known(sf_tokenizer_scratch *s)
{
    known *larger = sf_calloc(KNOWN_MOST, sizeof *larger);
    s->known_news = 0;
    if (!larger) return;
    free(s->known);
    s->known = larger;
    s->known_size = KNOWN_MOST;
}

/* A word behind others whose sum this is; `only`: there are none, nor will there be. */
static int encode_known(job *j, const char *word, size_t length, int only, double *sum)
{
    sf_tokenizer_scratch *s = j->scratch;
    int sure = only || j->tokenizer->kind != SF_MODEL_UNIGRAM;
    if (length > KNOWN_BYTES) return encode_word(j, word, length, sum, &sure);
    if (s->known_news > 2 * KNOWN_FIRST && s->known_size < KNOWN_MOST) grow_known(s);
    known *k = &s->known[sf_hash(word, length, 0) & (s->known_size - 1)];
    sf_ids *out = j->out;
    if (k->length == length && (sure || (k->sure && fabs(*sum) < SF_UNIGRAM_SUM / 2)) &&
        memcmp(k->bytes, word, length) == 0) {
        if (sf_grow(&out->ids, &out->capacity, out->count + KNOWN_IDS, sizeof *out->ids)) return -1;
        for (size_t i = 0; i < k->count; i++) out->ids[out->count + i] = k->ids[i];
        for (size_t i = 0; !sure && i < k->count; i++) *sum = j->tokenizer->unigram.scores[k->ids[i]] + *sum;
        out->count += k->count;
        return 0;
    }
    const size_t before = out->count;
    const int fresh = *sum == 0;
    if (encode_word(j, word, length, sum, &sure)) return -1;
    if (out->count - before > KNOWN_IDS || !(sure || fresh)) return 0;
    s->known_news++;
    k->length = (unsigned char)length;
    k->count = (out->count - before) & 0x7f;
    k->sure = sure != 0;
    memcpy(k->bytes, word, length);
    if (k->count) memcpy(k->ids, out->ids + before, k->count * sizeof *k->ids);
    return 0;
}

/* --------------------------------------------------------------- the steps */

/* Cuts normalized text and encodes what is left of it. */
static int encode_cut(job *j, sf_passage passage, int inside)
{
    sf_cuttings *c = &j->scratch->cuttings;
    const sf_tokenizer *t = j->tokenizer;
    if (passage.length == 0) return 0;
    if (sf_grow(&c->stretches.list, &c->stretches.capacity, 1, sizeof *c->stretches.list)) return -1;
    c->passage = passage;
    c->skips = inside ? j->skips : 0;
    c->stretches.list[0] = (sf_stretch){0, passage.length, passage.head};
    c->stretches.count = 1;
    for (size_t i = 0; i < t->cut_count; i++)
        if (sf_cut_apply(&t->cuts[i], c, &j->scratch->cut)) return -1;
    for (size_t i = 0; i < c->stretches.count && !is_full(j); i++) {
        const sf_stretch s = c->stretches.list[i];
        const char *begin = c->passage.bytes + s.begin, *end = c->passage.bytes + s.end;
        double sum = 0;
        for (size_t length; begin < end && !is_full(j); begin += length) {
            const size_t rest = (size_t)(end - begin), whole = s.end - s.begin;
            length = t->kind == SF_MODEL_BPE       ? sf_bpe_apart(&t->bpe, begin, rest)
                     : t->kind == SF_MODEL_UNIGRAM ? sf_unigram_apart(&t->unigram, begin, rest)
                                                   : rest;
            if (encode_known(j, begin, length, length == whole, &sum)) return -1;
        }
    }
    if (j->out->count > j->end) j->out->count = j->end;
    return 0;
}

/* A part of a passage. */
static sf_passage part_of(sf_passage p, size_t from, size_t to)
{
    return (sf_passage){p.bytes + from, to - from, p.head > from ? p.head - from : 0};
}

/* What Strip and Prepend do at the beginning of a text they do not do inside of it. */
static int normalize(job *j, sf_passage *p, int inside)
{
    const sf_tokenizer *t = j->tokenizer;
    sf_tokenizer_scratch *s = j->scratch;
    for (size_t i = 0; i < t->normal_count; i++) {
        sf_normal n = t->normals[i];
        if (inside && n.kind == SF_NORMAL_PREPEND) continue;
        if (inside && n.kind == SF_NORMAL_STRIP) n.left = 0;
        if (sf_normal_apply(&n, p, sf_tokenizer_other(s->normal, p->bytes), &s->points)) return -1;
    }
    return 0;
}

/* Normalizes a part of the text, and finds the added tokens that belong there. */
static int encode_part(job *j, sf_passage p, int inside)
{
    const sf_tokenizer *t = j->tokenizer;
    if (normalize(j, &p, inside)) return -1;
    size_t from = 0, at = 0;
    sf_added_match m;
    while (!is_full(j) && sf_added_find(&m, &t->normal, t->added, p.bytes, p.length, from, &at)) {
        if (from < m.begin && encode_cut(j, part_of(p, from, m.begin), inside && from == 0)) return -1;
        if (!is_full(j) && sf_ids_push(j->out, m.id)) return -1;
        from = m.end;
    }
    return is_full(j) ? 0 : encode_cut(j, part_of(p, from, p.length), inside && from == 0);
}

/* From the beginning of a text, or inside of it. */
static int encode(job *j, const char *text, size_t length, int inside)
{
    const sf_tokenizer *t = j->tokenizer;
    sf_buffer *repaired = &j->scratch->repaired;
    if (length == 0) return 0;
    if (sf_utf8_valid(text, length) != length) {
        sf_buffer_clear(repaired);
        if (sf_utf8_repair(repaired, text, length)) return -1;
        text = repaired->bytes;
        length = repaired->length;
    }
    size_t from = 0, at = 0;
    uint32_t code;
    sf_added_match m;
    const sf_passage whole = {text, length, inside ? 0 : sf_utf8_decode(text, text + length, &code)};
    while (!is_full(j) && sf_added_find(&m, &t->raw, t->added, text, length, from, &at)) {
        if (from < m.begin && encode_part(j, part_of(whole, from, m.begin), inside && from == 0)) return -1;
        if (!is_full(j) && sf_ids_push(j->out, m.id)) return -1;
        from = m.end;
    }
    return from < length && !is_full(j) ? encode_part(j, part_of(whole, from, length), inside && from == 0) : 0;
}

static job start_job(sf_ids *out, const sf_tokenizer *tokenizer, size_t limit, size_t skips,
                     sf_tokenizer_scratch *scratch)
{
    return (job){tokenizer, out, limit < SIZE_MAX - out->count ? out->count + limit : SIZE_MAX, skips, scratch};
}

int sf_tokenizer_encode(sf_ids *out, const sf_tokenizer *tokenizer, const char *text, size_t length, size_t limit,
                        sf_tokenizer_scratch *scratch)
{
    job j = start_job(out, tokenizer, limit, 0, scratch);
    return encode(&j, text, length, 0);
}

int sf_tokenizer_encode_part(sf_ids *out, const sf_tokenizer *tokenizer, const char *text, size_t length, size_t limit,
                             size_t skips, sf_tokenizer_scratch *scratch)
{
    job j = start_job(out, tokenizer, limit, skips, scratch);
    return encode(&j, text, length, 1);
}

/* ------------------------------------------------------------------- facts */

size_t sf_tokenizer_size(const sf_tokenizer *tokenizer) { return tokenizer->size; }

uint32_t sf_tokenizer_find(const sf_tokenizer *tokenizer, const char *piece, size_t length)
{
    const uint32_t id = sf_vocabulary_find(&tokenizer->added_names, piece, length);
    return id == SF_NONE ? sf_vocabulary_find(&tokenizer->vocabulary, piece, length) : id;
}

size_t sf_tokenizer_longest(const sf_tokenizer *tokenizer) { return tokenizer->longest; }

int sf_tokenizer_ending(const sf_tokenizer *tokenizer) { return tokenizer->ending; }

uint32_t sf_tokenizer_pad(const sf_tokenizer *tokenizer) { return tokenizer->pad; }

sf_tokenizer_frame sf_tokenizer_get_frame(const sf_tokenizer *tokenizer)
{
    const sf_ids *f = &tokenizer->frame;
    const size_t before = tokenizer->before;
    return (sf_tokenizer_frame){f->ids, f->count > before ? f->ids + before : NULL, before, f->count - before};
}

int sf_tokenizer_text(sf_buffer *out, const sf_tokenizer *tokenizer)
{
    return sf_buffer_add(out, tokenizer->text.bytes, tokenizer->text.length);
}

void sf_tokenizer_free(sf_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    for (size_t i = 0; i < tokenizer->normal_count; i++) sf_normal_free(&tokenizer->normals[i]);
    for (size_t i = 0; i < tokenizer->cut_count; i++) sf_cut_free(&tokenizer->cuts[i]);
    free(tokenizer->normals);
    free(tokenizer->cuts);
    free(tokenizer->added);
    sf_trie_free(&tokenizer->raw.trie);
    sf_trie_free(&tokenizer->normal.trie);
    sf_vocabulary_free(&tokenizer->vocabulary);
    sf_vocabulary_free(&tokenizer->added_names);
    sf_bpe_free(&tokenizer->bpe);
    sf_unigram_free(&tokenizer->unigram);
    sf_wordpieces_free(&tokenizer->wordpieces);
    sf_ids_free(&tokenizer->frame);
    sf_buffer_free(&tokenizer->text);
    free(tokenizer);
}
