/* BERT's tokenizer: from a text to its pieces.
 *
 * Most text is ASCII, where a pre-token is a run of letters and digits: it is lower-cased
 * and covered as it is read. Wherever something else turns up, the stretch up to the next
 * certain cut is normalized into a buffer first, and that is cut and covered. docs/design.md, "From
 * a text to BERT's answer", has the rest of the way. */
#include "text/wordpiece.h"

#include "base/memory.h"
#include "text/forms.h"
#include "text/unicode.h"
#include "text/wordpiece_parts.h"

#include <string.h>

enum { WORD = 128 }; /* bytes of a word that is read in place; longer ones take the long way */

void sf_wordpiece_scratch_free(sf_wordpiece_scratch *scratch)
{
    sf_buffer_free(&scratch->clean);
    sf_ids_free(&scratch->points);
}

/* What is being encoded, and where to. */
typedef struct job {
    const sf_wordpiece *wordpiece;
    sf_ids *out;
    size_t end; /* out is full at this count */
    sf_wordpiece_scratch *scratch;
} job;

static int is_full(const job *j) { return j->out->count >= j->end; }

/* The character at p; U+FFFD where the bytes are not UTF-8. */
static inline size_t decode(const char *p, const char *end, uint32_t *code)
{
    size_t step = sf_utf8_decode(p, end, code);
    if (step) return step;
    *code = 0xfffd;
    return 1;
}

/* ----------------------------------------------------------------- pieces */

static size_t count_characters(const char *bytes, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += ((unsigned char)bytes[i] & 0xc0) != 0x80;
    return count;
}

/* Covers a pre-token from the left by the longest pieces, or by [UNK]. */
static int cover(job *j, const char *bytes, size_t length)
{
    const sf_wordpiece *w = j->wordpiece;
    const sf_tree *tree = &w->tree;
    sf_ids *out = j->out;
    const size_t before = out->count;
    if (length > w->options.longest && count_characters(bytes, length) > w->options.longest)
        return sf_ids_push(out, w->specials.unk);
    for (size_t at = 0; at < length;) {
        uint32_t node = at ? SF_ROOT_CONTINUE : SF_ROOT_START, best = SF_NONE;
        size_t best_end = at;
        for (size_t i = at; i < length && (node = sf_tree_step(tree, node, (unsigned char)bytes[i])) != SF_NONE; i++)
            if (tree->values[node] != SF_NONE) {
                best = tree->values[node];
                best_end = i + 1;
            }
        if (best == SF_NONE) {
            out->count = before;
            return sf_ids_push(out, w->specials.unk);
        }
        if (sf_ids_push(out, best)) return -1;
        at = best_end;
    }
    if (out->count > j->end) out->count = j->end;
    return 0;
}

/* Cuts normalized text at white space and around punctuation, and covers what is between. */
static int cover_all(job *j, const char *bytes, size_t length)
{
    if (length == 0) return 0; /* all of it was removed */
    const char *p = bytes, *end = bytes + length, *begin = bytes;
    while (p < end && !is_full(j)) {
        uint32_t code;
        size_t step = decode(p, end, &code);
        int space = sf_bert_is_space(code), alone = !space && sf_bert_is_punctuation(code);
        if (space || alone) {
            if (begin < p && cover(j, begin, (size_t)(p - begin))) return -1;
            if (alone && !is_full(j) && cover(j, p, step)) return -1;
            begin = p + step;
        }
        p += step;
    }
    return begin < p && !is_full(j) ? cover(j, begin, (size_t)(p - begin)) : 0;
}

/* ---------------------------------------------------------- normalization */

/* Adds a character, decomposed when accents are to go. */
static int add_point(sf_ids *points, int accents, uint32_t code)
{
    uint32_t parts[SF_BERT_DECOMPOSED];
    if (!accents) return sf_ids_push(points, code);
    size_t count = sf_bert_decompose(parts, code);
    for (size_t i = 0; i < count; i++)
        if (sf_ids_push(points, parts[i])) return -1;
    return 0;
}

/* Appends the points, in order, without marks and lower-cased as the options say. */
static int finish_points(sf_buffer *out, sf_ids *points, const sf_wordpiece_options *options)
{
    if (options->accents && sf_form_order(points)) return -1;
    for (size_t i = 0; i < points->count; i++) {
        uint32_t letters[SF_BERT_LOWERED] = {points->ids[i]};
        if (options->accents && sf_bert_is_mark(letters[0])) continue;
        size_t count = options->lower ? sf_bert_lower(letters, letters[0]) : 1;
        for (size_t k = 0; k < count; k++) {
            char bytes[4];
            if (sf_buffer_add(out, bytes, sf_utf8_encode(letters[k], bytes))) return -1;
        }
    }
    return 0;
}

/* Appends the normalized form of what lies at *p: one character that cuts, or everything
 * up to the next such character. Nothing that follows a cut can change what is before it. */
static int normalize_stretch(sf_buffer *out, const sf_wordpiece *w, const char **p, const char *end, sf_ids *points)
{
    const sf_wordpiece_options *options = &w->options;
    const char *begin = *p;
    int ideograph = 0;
    points->count = 0;
    while (*p < end) {
        uint32_t code;
        size_t step = decode(*p, end, &code);
        int removed = options->clean && sf_bert_is_control(code);
        int cuts = !removed && sf_wordpiece_cuts(w, code);
        if (cuts && *p > begin) break;
        *p += step;
        if (removed) continue;
        ideograph = cuts && options->ideographs && sf_bert_is_ideograph(code);
        if (options->clean && sf_bert_is_space(code)) code = ' ';
        if (add_point(points, options->accents, code)) return -1;
        if (cuts) break;
    }
    if (ideograph && sf_buffer_add_byte(out, ' ')) return -1;
    if (finish_points(out, points, options)) return -1;
    return ideograph ? sf_buffer_add_byte(out, ' ') : 0;
}

int sf_wordpiece_normalize(sf_buffer *out, const sf_wordpiece *wordpiece, const char *text, size_t length,
                           sf_wordpiece_scratch *scratch)
{
    if (length == 0) return 0;
    const char *p = text, *end = text + length;
    while (p < end)
        if (normalize_stretch(out, wordpiece, &p, end, &scratch->points)) return -1;
    return 0;
}

int sf_wordpiece_cuts(const sf_wordpiece *wordpiece, uint32_t character)
{
    const sf_wordpiece_options *options = &wordpiece->options;
    if (options->clean && sf_bert_is_control(character)) return 0;
    return sf_bert_is_space(character) || sf_bert_is_punctuation(character) ||
           (options->ideographs && sf_bert_is_ideograph(character));
}

/* ------------------------------------------------------------ plain text */

/* Covers a word of so many bytes, n < WORD, that lies padded with zeros. */
static inline int cover_word(job *j, const char word[WORD], size_t n)
{
    const sf_wordpiece *w = j->wordpiece;
    if (n <= SF_SHORT && n <= w->options.longest) {
        uint64_t key[2];
        char padded[SF_SHORT + 1];
        memcpy(padded, word, SF_SHORT);
        padded[SF_SHORT] = (char)n;
        memcpy(key, padded, sizeof key);
        uint32_t id = sf_shorts_find(&w->shorts, key);
        if (id != SF_NONE) return sf_ids_push(j->out, id);
    }
    return cover(j, word, n);
}

/* Encodes text without added tokens. */
static int encode_plain(job *j, const char *text, size_t length)
{
    const sf_wordpiece *w = j->wordpiece;
    const char *p = text, *end = text + length;
    while (p < end && !is_full(j)) {
        char word[WORD];
        size_t n = 0;
        sf_byte_class class = (sf_byte_class)w->classes[(unsigned char)*p];
        if (class == SF_BYTE_SPACE) {
            p++;
            continue;
        }
        memset(word, 0, SF_SHORT + 1);
        if (class == SF_BYTE_ALONE) {
            word[0] = *p++;
            if (cover_word(j, word, 1)) return -1;
            continue;
        }
        const char *q = p;
        while (q < end && n < WORD && (class = (sf_byte_class)w->classes[(unsigned char)*q]) == SF_BYTE_WORD)
            word[n++] = (char)w->lowered[(unsigned char)*q++];
        if (n && n < WORD && (q == end || class == SF_BYTE_SPACE || class == SF_BYTE_ALONE)) {
            if (cover_word(j, word, n)) return -1;
            p = q;
            continue;
        }
        sf_buffer *clean = &j->scratch->clean;
        sf_buffer_clear(clean);
        if (normalize_stretch(clean, w, &p, end, &j->scratch->points) || cover_all(j, clean->bytes, clean->length))
            return -1;
    }
    return 0;
}

/* ----------------------------------------------------------- added tokens */

typedef struct match {
    size_t begin, end;
    const sf_added *token;
} match;

/* The first added token at or after `at`, the longest of those that begin there. */
static int find_added(match *out, const sf_wordpiece *w, sf_root root, const char *text, size_t at, size_t length)
{
    const int *starts = w->starts[root - SF_ROOT_RAW];
    for (; at < length; at++) {
        if (!starts[(unsigned char)text[at]]) continue;
        uint32_t node = root, best = SF_NONE;
        for (size_t i = at; i < length && (node = sf_tree_step(&w->tree, node, (unsigned char)text[i])) != SF_NONE; i++)
            if (w->tree.values[node] != SF_NONE) {
                best = w->tree.values[node];
                out->end = i + 1;
            }
        if (best == SF_NONE) continue;
        out->begin = at;
        out->token = &w->added[best];
        return 1;
    }
    return 0;
}

/* The character before `at`, or 0 at the beginning. Bytes that are not UTF-8 are U+FFFD. */
static uint32_t character_before(const char *text, size_t at, size_t *begin)
{
    uint32_t code;
    size_t p = at;
    while (p > 0 && at - p < 4 && ((unsigned char)text[--p] & 0xc0) == 0x80) {}
    *begin = p;
    if (p < at && sf_utf8_decode(text + p, text + at, &code) == at - p) return code;
    *begin = at - (at > 0);
    return at ? 0xfffd : 0;
}

/* Whether the match counts where it stands; grows it over the white space it swallows. */
static int accept(match *m, const char *text, size_t length, size_t from)
{
    uint32_t code;
    size_t begin;
    if (m->token->single) {
        if (m->begin && sf_bert_is_word(character_before(text, m->begin, &begin))) return 0;
        if (m->end < length && (decode(text + m->end, text + length, &code), sf_bert_is_word(code))) return 0;
    }
    if (m->token->left)
        while (m->begin > from && sf_bert_is_space(character_before(text, m->begin, &begin))) m->begin = begin;
    if (m->token->right)
        while (m->end < length) {
            size_t step = decode(text + m->end, text + length, &code);
            if (!sf_bert_is_space(code)) break;
            m->end += step;
        }
    return 1;
}

/* Finds added tokens and hands what lies between them to `encode`. */
static int split(job *j, sf_root root, const char *text, size_t length,
                 int (*encode)(job *j, const char *text, size_t length))
{
    size_t from = 0, at = 0;
    match m;
    while (!is_full(j) && find_added(&m, j->wordpiece, root, text, at, length)) {
        at = m.end;
        if (!accept(&m, text, length, from)) continue;
        if (from < m.begin && encode(j, text + from, m.begin - from)) return -1;
        if (!is_full(j) && sf_ids_push(j->out, m.token->id)) return -1;
        from = m.end;
    }
    return from < length && !is_full(j) ? encode(j, text + from, length - from) : 0;
}

/* The same when some added tokens are to be found in the normalized text. */
static int encode_normal(job *j, const char *text, size_t length)
{
    sf_buffer *clean = &j->scratch->clean;
    sf_buffer_clear(clean);
    if (sf_wordpiece_normalize(clean, j->wordpiece, text, length, j->scratch)) return -1;
    return split(j, SF_ROOT_NORMAL, clean->bytes, clean->length, cover_all);
}

int sf_wordpiece_encode(sf_ids *out, const sf_wordpiece *wordpiece, const char *text, size_t length, size_t limit,
                        sf_wordpiece_scratch *scratch)
{
    job j = {wordpiece, out, limit < SIZE_MAX - out->count ? out->count + limit : SIZE_MAX, scratch};
    return split(&j, SF_ROOT_RAW, text, length, wordpiece->has_normal ? encode_normal : encode_plain);
}
