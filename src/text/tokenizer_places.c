/* Where a text may be cut, so that the pieces of its parts are those of the whole, whatever else it holds.
 *
 * A place lies between two ASCII characters a and b, of which a is no white space. Every step of a tokenizer is asked,
 * in turn, what it can make of the two and whether it can see across the place; what is not certain is no cut.
 *
 * Added tokens. None may lie across the place, end at a or begin at b: so no white space that one takes along and no
 * neighbour that one asks for lies on the other side. Tokens that begin with b (ModernBERT's are runs of spaces) are
 * followed one character further, c, which may be known.
 *
 * Normalizers. The last character of what becomes of the left side, and the first of what becomes of the right one, are
 * each one of a few (an `edge`), never nothing. ASCII is in every normal form, and joins nothing that stands before it.
 * Of sentencepiece's table a cluster ends before b, since b is ASCII; that a stands at the end of one that begins with
 * a character of Unicode's class Prepend must not matter. A regular expression must not have a and b in a row
 * (sf_regex_crosses): then its matches, which go from left to right, are those of both sides.
 *
 * Pre-tokenizers. The same, until one of them certainly cuts at the place; what follows then works on both sides
 * apart. That cut must be there whatever stands around: a match that certainly begins at b, a character that is taken
 * by itself. A prefix that would have been put in front of the whole ("_" or a space) belongs to the left side alone if
 * it comes before that cut: the right side is encoded without it (`skips`), as it is without what Prepend and Strip do
 * at the beginning of a text.
 *
 * Models then get words that lie on one side each. BPE without a pre-tokenizer has cuts of its own (sf_bpe_apart);
 * Unigram over a whole text has none: its sums round differently. */
#include "text/tokenizer_places.h"

#include "base/memory.h"
#include "text/classes.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"
#include "text/wordpiece_parts.h"

#include <string.h>

enum { ASCII = 128, EDGE = 4, UNKNOWN = 128 };

struct sf_places {
    unsigned char cut[ASCII][ASCII];       /* between these two, but for added tokens that begin at the second */
    unsigned char opens[ASCII][ASCII + 1]; /* an added token may begin with these two; UNKNOWN: any */
    size_t skips;
    /* By the letters of words, as sf_letters has them. */
    sf_letters behind[ASCII]; /* behind these a cut before this character is one */
    sf_letters before[ASCII]; /* before these a cut before this character is one */
};

/* The characters that can be at the edge of one side. */
typedef struct edge {
    uint32_t codes[EDGE];
    size_t count;
    int wide; /* it may be more than this one character that became of one */
} edge;

static int add(edge *e, uint32_t code)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->codes[i] == code) return 1;
    if (e->count == EDGE) return 0;
    e->codes[e->count++] = code;
    return 1;
}

static uint32_t first_of(const char *text, size_t length)
{
    uint32_t code = 0;
    sf_utf8_decode(text, text + length, &code);
    return code;
}

static uint32_t last_of(const char *text, size_t length)
{
    size_t at = length - 1;
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80) at--;
    return first_of(text + at, length - at);
}

static int is_ascii(const edge *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->codes[i] >= ASCII) return 0;
    return 1;
}

static int has_space(const edge *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (sf_bert_is_space(e->codes[i])) return 1;
    return 0;
}

static int is_crossed(const sf_regex *regex, const edge *a, const edge *b)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++)
            if (sf_regex_crosses(regex, a->codes[i], b->codes[k])) return 1;
    return 0;
}

/* ------------------------------------------------------------- normalizers */

/* What a step that looks at single characters makes of one; 0: it may vanish. */
static int change(uint32_t *code, const sf_normal *n, int last, edge *e)
{
    uint32_t letters[SF_BERT_LOWERED];
    char bytes[4], spelled[2];
    size_t length;
    switch (n->kind) {
    case SF_NORMAL_LOWER:
        length = sf_bert_lower(letters, *code);
        if (length > 1) e->wide = 1;
        *code = letters[last ? length - 1 : 0];
        return length > 0;
    case SF_NORMAL_MARKS: return !(sf_class(*code) & SF_CLASS_MARK);
    case SF_NORMAL_NONSPACING: return !sf_bert_is_mark(*code);
    case SF_NORMAL_CLEAN:
        if (*code == 0 || sf_bert_is_control(*code)) return 0; /* some of these are white space besides */
        if (sf_bert_is_space(*code)) *code = ' ';
        return 1;
    case SF_NORMAL_IDEOGRAPHS: return !sf_bert_is_ideograph(*code);
    case SF_NORMAL_BYTES:
        length = sf_utf8_encode(*code, bytes);
        if (length > 1) e->wide = 1;
        length = sf_byte_spelled((unsigned char)bytes[last ? length - 1 : 0], spelled);
        *code = first_of(spelled, length);
        return 1;
    default: return 0;
    }
}

/* White space and the like of Nmt: all that is not plain is not certain. */
static int is_plain(const edge *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->codes[i] < 0x20 || e->codes[i] >= 0x7f) return 0;
    return 1;
}

static int replace(edge *e, const sf_normal *n, int last)
{
    edge out = {.wide = e->wide};
    for (size_t i = 0; i < e->count; i++) {
        const uint32_t code = e->codes[i];
        const int always = !last && sf_regex_starts(n->regex, code) == SF_REGEX_ALWAYS;
        if (!always && !add(&out, code)) return 0;
        if (!sf_regex_holds(n->regex, code)) continue;
        if (n->length == 0) return 0;
        out.wide = 1;
        if (!add(&out, last ? last_of(n->content, n->length) : first_of(n->content, n->length))) return 0;
    }
    *e = out;
    return 1;
}

static int map(edge *e, const sf_charsmap *charsmap, int last)
{
    edge out = {.wide = e->wide};
    if (!is_ascii(e)) return 0;
    for (size_t i = 0; i < e->count; i++) {
        const unsigned char c = (unsigned char)e->codes[i];
        const char *becomes;
        sf_charsmap_ascii(&becomes, charsmap, c);
        if ((last && sf_class(c) & (SF_CLASS_PICTURE | SF_CLASS_EXTEND | SF_CLASS_SPACING)) ||
            (!last && !becomes && sf_charsmap_continues(charsmap, c)))
            return 0;
        if (becomes && !*becomes) return 0;
        if (becomes && (becomes[1] || !last)) out.wide = 1;
        const size_t length = becomes ? strlen(becomes) : 0;
        if (!add(&out, !becomes ? c : last ? last_of(becomes, length) : first_of(becomes, length))) return 0;
    }
    *e = out;
    return 1;
}

/* One step on one side: 0 when it is not certain what is at its edge. */
static int normalize_edge(edge *e, const sf_normal *n, int last)
{
    switch (n->kind) {
    case SF_NORMAL_FORM: return is_ascii(e);
    case SF_NORMAL_NMT: return is_plain(e);
    case SF_NORMAL_STRIP: return !last || !has_space(e);
    case SF_NORMAL_PREPEND: return 1;
    case SF_NORMAL_REPLACE: return replace(e, n, last);
    case SF_NORMAL_CHARSMAP: return map(e, n->map, last);
    default:
        for (size_t i = 0; i < e->count; i++)
            if (!change(&e->codes[i], n, last, e)) return 0;
        return 1;
    }
}

/* All steps on both sides. */
static int normalize(const sf_tokenizer *t, edge *a, edge *b)
{
    for (size_t i = 0; i < t->normal_count; i++) {
        const sf_normal *n = &t->normals[i];
        if (n->kind == SF_NORMAL_REPLACE && is_crossed(n->regex, a, b)) return 0;
        if (!normalize_edge(a, n, 1) || !normalize_edge(b, n, 0)) return 0;
    }
    return 1;
}

/* ---------------------------------------------------------- pre-tokenizers */

typedef enum verdict { UNSURE, INSIDE, CUT } verdict;

/* Whether single characters match, the same for all of an edge: 0, 1, or -1. */
static int matches(const sf_cut *cut, const edge *e)
{
    int all = -1;
    for (size_t i = 0; i < e->count; i++) {
        const int match = sf_cut_matches(cut, e->codes[i]);
        if (i && match != all) return -1;
        all = match;
    }
    return all;
}

static verdict cut_characters(const sf_cut *cut, const edge *a, const edge *b)
{
    const int left = matches(cut, a), right = matches(cut, b);
    if (left < 0 || right < 0) return UNSURE;
    if (!left && !right) return INSIDE;
    const int previous = left != cut->invert, match = right != cut->invert;
    switch (cut->behavior) {
    case SF_CONTIGUOUS: return previous == match ? INSIDE : CUT;
    case SF_WITH_PREVIOUS: return match && !previous ? INSIDE : CUT;
    case SF_WITH_NEXT: return previous && !match ? INSIDE : CUT;
    default: return CUT;
    }
}

static int word_kind(uint32_t code)
{
    const uint32_t class = sf_class(code);
    return class & SF_CLASS_RUST_WORD ? 1 : class & SF_CLASS_SPACE ? 0 : 2;
}

static verdict cut_words(const edge *a, const edge *b)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++)
            if (word_kind(a->codes[i]) == word_kind(b->codes[k])) return a->count * b->count == 1 ? INSIDE : UNSURE;
    return CUT;
}

static verdict cut_regex(const sf_cut *cut, const edge *a, const edge *b)
{
    if (is_crossed(cut->regex, a, b)) return UNSURE;
    int always = 1, never = 1;
    for (size_t k = 0; k < b->count; k++) {
        const sf_regex_start start = sf_regex_starts(cut->regex, b->codes[k]);
        always &= start == SF_REGEX_ALWAYS;
        never &= start == SF_REGEX_NEVER;
    }
    /* What does not match is taken away: what is left of it on both sides does not matter. */
    if (never && cut->behavior == SF_REMOVED && cut->invert) return CUT;
    if (!always) return UNSURE;
    switch (cut->behavior) {
    case SF_REMOVED:
    case SF_ISOLATED: return CUT;
    case SF_WITH_NEXT: return cut->invert ? UNSURE : CUT;
    case SF_WITH_PREVIOUS: return cut->invert ? CUT : UNSURE;
    default: return UNSURE;
    }
}

static void change_spaces(edge *e, const char *sign)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->codes[i] == ' ') e->codes[i] = first_of(sign, strlen(sign));
}

/* Whether BPE, which got a whole text, encodes both sides apart. */
static int is_apart(const sf_tokenizer *t, const edge *a, const edge *b)
{
    if (t->kind != SF_MODEL_BPE || !t->bpe.signs || t->bpe.byte_level) return 0;
    for (size_t k = 0; k < b->count; k++)
        if (b->codes[k] != 0x2581) return 0;
    for (size_t i = 0; i < a->count; i++) {
        char bytes[4];
        const size_t length = sf_utf8_encode(a->codes[i], bytes);
        if (t->bpe.crosses[(unsigned char)bytes[length - 1]]) return 0;
    }
    return 1;
}

/* Whether a prefix for the beginning of a text alone is still to come: what stems from its first character, when
 * characters are put together, is not worth finding out. */
static int has_first(const sf_tokenizer *t, size_t step)
{
    for (; step < t->cut_count; step++)
        if (t->cuts[step].kind == SF_CUT_PREFIX && t->cuts[step].first) return 1;
    return 0;
}

/* Whether the steps cut between the two for certain; *skips: how many prefixes are put in front of the whole before. */
static int is_cut(const sf_tokenizer *t, edge a, edge b, size_t *skips)
{
    *skips = 0;
    for (size_t i = 0; i < t->cut_count; i++) {
        const sf_cut *cut = &t->cuts[i];
        verdict v = INSIDE;
        switch (cut->kind) {
        case SF_CUT_BYTES: break;
        case SF_CUT_PREFIX: ++*skips; break;
        case SF_CUT_METASPACE:
            change_spaces(&a, cut->sign);
            change_spaces(&b, cut->sign);
            break;
        case SF_CUT_REGEX: v = cut_regex(cut, &a, &b); break;
        case SF_CUT_WORDS: v = cut_words(&a, &b); break;
        default: v = cut_characters(cut, &a, &b); break;
        }
        if (v != INSIDE) return v == CUT && !has_first(t, i + 1);
    }
    return is_apart(t, &a, &b);
}

/* ------------------------------------------------------------ added tokens */

/* What the tokens of a set are made of. */
typedef struct made {
    unsigned char ends[256];       /* one ends with this byte */
    unsigned char joins[256][256]; /* one has these two in a row */
} made;

static void learn(made *out, const sf_added_set *set)
{
    const sf_trie *trie = &set->trie;
    for (size_t i = 1; set->any && i < trie->count; i++) {
        const sf_trie_node *n = &trie->nodes[i];
        if (n->value != SF_NONE) out->ends[trie->bytes[i]] = 1;
        for (uint32_t k = 0; k < n->count; k++) out->joins[trie->bytes[i]][trie->bytes[n->first + k]] = 1;
    }
}

/* Whether no token lies across, or ends at the left edge. */
static int is_free(const made *m, const edge *a, const edge *b)
{
    for (size_t i = 0; i < a->count; i++) {
        char left[4], right[4];
        const size_t length = sf_utf8_encode(a->codes[i], left);
        const unsigned char last = (unsigned char)left[length - 1];
        if (m->ends[last]) return 0;
        for (size_t k = 0; k < b->count; k++) {
            sf_utf8_encode(b->codes[k], right);
            if (m->joins[last][(unsigned char)right[0]]) return 0;
        }
    }
    return 1;
}

typedef enum opening { CLOSED, OPEN, FURTHER } opening;

/* Whether a token can begin with this character: certainly not; it can; or what follows decides, from *node on. */
static opening open_with(uint32_t *node, const sf_added_set *set, uint32_t code)
{
    char bytes[4];
    const size_t length = sf_utf8_encode(code, bytes);
    *node = 0;
    if (!set->any) return CLOSED;
    for (size_t i = 0; i < length; i++) {
        *node = sf_trie_step(&set->trie, *node, (unsigned char)bytes[i]);
        if (*node == SF_NONE) return CLOSED;
        if (set->trie.nodes[*node].value != SF_NONE) return OPEN;
    }
    return FURTHER;
}

/* Whether a token of a set can begin with b and c, the edge that follows it, or NULL. */
static int is_opened(const sf_added_set *set, const edge *b, const edge *c)
{
    for (size_t i = 0; i < b->count; i++) {
        uint32_t node;
        const opening o = open_with(&node, set, b->codes[i]);
        if (o == CLOSED) continue;
        if (o == OPEN || !c || b->wide) return 1;
        for (size_t k = 0; k < c->count; k++) {
            char bytes[4];
            sf_utf8_encode(c->codes[k], bytes);
            if (sf_trie_step(&set->trie, node, (unsigned char)bytes[0]) != SF_NONE) return 1;
        }
    }
    return 0;
}

static int opens(const sf_tokenizer *t, uint32_t b, uint32_t c)
{
    const edge raw = {{b}, 1, 0}, next = {{c}, 1, 0};
    if (is_opened(&t->raw, &raw, c < ASCII ? &next : NULL)) return 1;
    if (!t->normal.any) return 0;
    edge first = raw, last = raw, behind = next;
    for (size_t i = 0; i < t->normal_count; i++)
        if (!normalize_edge(&first, &t->normals[i], 0)) return 1;
    const int known = c < ASCII && normalize(t, &last, &behind);
    return is_opened(&t->normal, &first, known ? &behind : NULL);
}

/* --------------------------------------------------------------- the tables */

/* Whether a text may be cut between the two, if no added token begins at the second. */
static int look(const sf_tokenizer *t, const made *raw, const made *normal, uint32_t x, uint32_t y, size_t *skips)
{
    edge a = {{x}, 1, 0}, b = {{y}, 1, 0};
    if (!is_free(raw, &a, &b) || !normalize(t, &a, &b)) return 0;
    if (t->normal.any && (has_space(&a) || !is_free(normal, &a, &b))) return 0;
    return is_cut(t, a, b, skips);
}

static void fill(sf_places *p, const sf_tokenizer *t, const made *raw, const made *normal)
{
    size_t skips;
    /* Spaces behind letters are the cuts that count: all must agree with them. */
    p->skips = look(t, raw, normal, 'a', ' ', &skips) ? skips : SIZE_MAX;
    for (uint32_t y = '\t'; y < 0x7f; y++) {
        for (uint32_t x = 0x21; x < 0x7f; x++) {
            if (!look(t, raw, normal, x, y, &skips)) continue;
            if (p->skips == SIZE_MAX) p->skips = skips;
            p->cut[x][y] = skips == p->skips;
        }
        for (uint32_t c = 0; c <= UNKNOWN; c++) p->opens[y][c] = (unsigned char)opens(t, y, c);
        for (int bit = 0; bit < SF_LETTER_OTHER; bit++) {
            const unsigned char letter = (unsigned char)(bit < 26 ? 'a' + bit : 'A' + bit - 26);
            if (p->cut[letter][y]) p->behind[y] |= (sf_letters)1 << bit;
            if (!p->opens[y][letter]) p->before[y] |= (sf_letters)1 << bit;
        }
        if (!p->opens[y][UNKNOWN]) p->before[y] |= (sf_letters)1 << SF_LETTER_OTHER;
    }
}

sf_places *sf_places_new(const sf_tokenizer *t)
{
    sf_places *p = sf_calloc(1, sizeof *p);
    made *made_of = sf_calloc(2, sizeof *made_of);
    if (!p || !made_of) {
        free(p);
        free(made_of);
        return NULL;
    }
    int sure = 1;
    for (size_t i = 0; i < t->normal_count; i++)
        if (t->normals[i].kind == SF_NORMAL_CHARSMAP && sf_charsmap_prepends(t->normals[i].map)) sure = 0;
    learn(&made_of[0], &t->raw);
    learn(&made_of[1], &t->normal);
    if (sure) fill(p, t, &made_of[0], &made_of[1]);
    free(made_of);
    return p;
}

void sf_places_free(sf_places *places) { free(places); }

size_t sf_places_skips(const sf_places *places) { return places->skips == SIZE_MAX ? 0 : places->skips; }

int sf_places_cut(const sf_places *p, const char *text, size_t length, size_t at, sf_letters before, sf_letters after)
{
    const unsigned char b = (unsigned char)text[at];
    if (b >= ASCII) return 0;
    if (at > 0) {
        const unsigned char a = (unsigned char)text[at - 1];
        if (a >= ASCII || !p->cut[a][b]) return 0;
    } else if (before & ~p->behind[b])
        return 0;
    if (at + 1 == length) return after ? !(after & ~p->before[b]) : !p->opens[b][UNKNOWN];
    const unsigned char c = (unsigned char)text[at + 1];
    return !p->opens[b][c < ASCII ? c : UNKNOWN];
}

sf_edges sf_places_edges(const sf_places *p, const char *token, size_t length)
{
    const unsigned char a = (unsigned char)token[length - 1], c = (unsigned char)token[0];
    return (sf_edges){.begins = !p->opens[' '][c < ASCII ? c : UNKNOWN], .ends = a < ASCII && p->cut[a][' ']};
}

sf_edges sf_places_word_edges(const sf_places *p, sf_letters begins, sf_letters ends)
{
    return (sf_edges){.begins = !(begins & ~p->before[' ']), .ends = !(ends & ~p->behind[' '])};
}
