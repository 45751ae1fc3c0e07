/* The .lex file.
 *
 * One little-endian image that is used as it was read: nothing is parsed or built
 * at load time.
 *
 *   1. 8 bytes "SAFERLEX", then the header below: version, a byte-order mark, counts. Version 2 has a fold, and one
 *      section more; a lexicon without one is written as version 1.
 *   2. A table of sections, each an offset and a length in bytes. Sections begin at
 *      multiples of 64 and are padded with zeros.
 *   3. The sections, in the order of `enum section`.
 *   4. The last 8 bytes: XXH64 of everything before them.
 *
 * Loading checks, in this order, what every later step may rely on:
 *
 *   5. the header: the mark, the byte order, the version, the length, the checksum;
 *   6. the table of sections: each begins where the one before it ends, with zeros between, has
 *      the length that the counts imply, and the checksum follows the last;
 *   7. every number that is used as an index, so that even a file made to deceive cannot make
 *      a reader leave the image;
 *   8. what certificates rest on: words, synonyms, admission and overlaps (check.c). One that was
 *      made a moment ago, by this program, is right about these.
 *
 * docs/lexicon.md says what the sections mean. */
#include "lexicon/lexicon.h"

#include "base/hash.h"
#include "base/memory.h"
#include "lexicon/check.h"
#include "text/name.h"
#include "text/unicode.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { VERSION = 1, FOLDED_VERSION = 2, ALIGN = 64, ORDER = 0x01020304 };

enum section {
    WORD_POOL,       /* terminated strings */
    WORD_OFFSETS,    /* u32 [words+1] */
    WORD_TABLE,      /* u32 [power of two] */
    COUNTS,          /* u64 [words] */
    SYNONYM_OFFSETS, /* u64 [words+1] */
    SYNONYMS,        /* u32 [synonym_offsets[words]] */
    SIMILARITY,      /* f32 [the same], or empty */
    COMPONENT,       /* u32 [words] */
    KERNEL_ROW,      /* u32 [words] */
    KERNEL_OFFSETS,  /* u64 [rows+1] */
    KERNEL_IDS,      /* u32 [kernel_offsets[rows]] */
    KERNEL_WEIGHTS,  /* u32 [the same] */
    KERNEL_TOTALS,   /* u32 [rows] */
    OVERLAP,         /* f64 [words] */
    WORST,           /* u32 [words] */
    VECTOR_WORDS,    /* u32 [vector_count] */
    VECTORS,         /* f32 [vector_count * vector_dim] */
    KERNEL_NAME,     /* terminated string */
    PROVENANCE,      /* terminated string: JSON */
    SECTIONS,        /* of version 1; */
    FOLD = SECTIONS, /* in version 2 also: a table of text/fold.h */
    FOLDED_SECTIONS
};

typedef struct header {
    char magic[8];
    uint32_t version, order;
    uint64_t length; /* of the whole file */
    uint32_t words, rows, vector_count, vector_dim;
    uint32_t directed, sections;
    struct {
        uint64_t offset, length;
    } section[FOLDED_SECTIONS];
} header;

/* How much of the header is in the file. */
static size_t header_size(const header *head)
{
    return offsetof(header, section) + head->sections * sizeof head->section[0];
}

/* ------------------------------------------------------------- assembling */

/* The layout is planned first; then one image is filled. */
typedef struct piece {
    const void *bytes;
    size_t length;
} piece;

static size_t align_up(size_t n) { return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1); }

/* The vectors that are kept: only words with synonyms are ever ranked. */
typedef struct kept_vectors {
    uint32_t *words; /* (count) */
    float *values;   /* (count, dim) */
    uint32_t count, dim;
} kept_vectors;

/* -1 without memory; what was allocated is the caller's to free either way. */
static int keep_vectors(kept_vectors *out, const sf_lexicon_parts *parts)
{
    const uint64_t *offsets = parts->graph->offsets;
    uint32_t n = parts->words->count;
    out->words = sf_alloc(n, sizeof *out->words);
    if (!out->words) return -1;
    for (uint32_t x = 0; parts->rows && x < n; x++)
        if (parts->rows[x] && offsets[x + 1] > offsets[x]) out->words[out->count++] = x;
    if (out->count) out->dim = (uint32_t)parts->dim;
    out->values = sf_alloc((size_t)out->count * out->dim, sizeof *out->values);
    if (!out->values) return -1;
    for (size_t i = 0; i < out->count; i++)
        memcpy(out->values + i * parts->dim, parts->rows[out->words[i]], parts->dim * sizeof *out->values);
    return 0;
}

/* Completes the header, and puts it, the pieces and the checksum where they belong. -1 without memory. */
static int fill_image(sf_file *image, header *head, const piece *pieces)
{
    size_t at = align_up(header_size(head));
    for (uint32_t i = 0; i < head->sections; i++) {
        head->section[i].offset = at;
        head->section[i].length = pieces[i].length;
        at = align_up(at + pieces[i].length);
    }
    head->length = at + sizeof(uint64_t);
    char *bytes = sf_alloc_aligned(head->length, 1);
    if (!bytes) return -1;
    memset(bytes, 0, head->length);
    memcpy(bytes, head, header_size(head));
    for (uint32_t i = 0; i < head->sections; i++)
        if (pieces[i].length) memcpy(bytes + head->section[i].offset, pieces[i].bytes, pieces[i].length);
    uint64_t checksum = sf_hash(bytes, at, 0);
    memcpy(bytes + at, &checksum, sizeof checksum);
    *image = (sf_file){.bytes = bytes, .length = head->length, .heap = bytes};
    return 0;
}

safer_status sf_lexicon_assemble(safer_lexicon **out, const sf_lexicon_parts *parts, safer_error *error)
{
    safer_status status;
    const sf_words *w = parts->words;
    const sf_graph *g = parts->graph;
    const sf_kernel *k = parts->kernel;
    size_t n = w->count, synonyms = (size_t)g->offsets[n], entries = (size_t)k->offsets[k->rows];
    uint64_t *zeros = parts->counts ? NULL : sf_calloc(n, sizeof *zeros);
    kept_vectors kept = {0};
    sf_file image = {0};
    if ((!parts->counts && !zeros) || keep_vectors(&kept, parts)) goto no_memory;
    const int folds = parts->fold.length > 0;
    const piece pieces[FOLDED_SECTIONS] = {
        [WORD_POOL] = {w->pool, w->pool_length},
        [WORD_OFFSETS] = {w->offsets, (n + 1) * sizeof(uint32_t)},
        [WORD_TABLE] = {w->table, w->slots * sizeof(uint32_t)},
        [COUNTS] = {parts->counts ? parts->counts : zeros, n * sizeof(uint64_t)},
        [SYNONYM_OFFSETS] = {g->offsets, (n + 1) * sizeof(uint64_t)},
        [SYNONYMS] = {g->ids, synonyms * sizeof(uint32_t)},
        [SIMILARITY] = {g->similarity, g->similarity ? synonyms * sizeof(float) : 0},
        [COMPONENT] = {g->component, n * sizeof(uint32_t)},
        [KERNEL_ROW] = {k->row_of, n * sizeof(uint32_t)},
        [KERNEL_OFFSETS] = {k->offsets, ((size_t)k->rows + 1) * sizeof(uint64_t)},
        [KERNEL_IDS] = {k->ids, entries * sizeof(uint32_t)},
        [KERNEL_WEIGHTS] = {k->weights, entries * sizeof(uint32_t)},
        [KERNEL_TOTALS] = {k->totals, k->rows * sizeof(uint32_t)},
        [OVERLAP] = {parts->overlap, n * sizeof(double)},
        [WORST] = {parts->worst, n * sizeof(uint32_t)},
        [VECTOR_WORDS] = {kept.words, kept.count * sizeof(uint32_t)},
        [VECTORS] = {kept.values, (size_t)kept.count * kept.dim * sizeof(float)},
        [KERNEL_NAME] = {parts->kernel_name, strlen(parts->kernel_name) + 1},
        [PROVENANCE] = {parts->provenance, strlen(parts->provenance) + 1},
        [FOLD] = {parts->fold.bytes, parts->fold.length},
    };
    header head = {.magic = {'S', 'A', 'F', 'E', 'R', 'L', 'E', 'X'},
                   .version = folds ? FOLDED_VERSION : VERSION,
                   .order = ORDER,
                   .words = w->count,
                   .rows = k->rows,
                   .vector_count = kept.count,
                   .vector_dim = kept.dim,
                   .directed = (uint32_t)parts->directed,
                   .sections = folds ? FOLDED_SECTIONS : SECTIONS};
    if (fill_image(&image, &head, pieces)) goto no_memory;
    status = sf_lexicon_from_image(out, &image, "the new lexicon", error);
    goto done;
no_memory:
    status = sf_fail_memory(error);
done:
    free(zeros);
    free(kept.words);
    free(kept.values);
    sf_file_free(&image);
    return status;
}

/* --------------------------------------------------------------- checking */

/* Rising from 0 to `last`? */
static int offsets_rise(const uint64_t *offsets, size_t count, uint64_t last)
{
    int bad = offsets[0] != 0 || offsets[count] != last;
    for (size_t i = 0; i < count; i++) bad |= offsets[i + 1] < offsets[i];
    return !bad;
}

static int all_below(const uint32_t *ids, size_t count, uint32_t bound, int none_allowed)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < count; i++) bad |= (ids[i] >= bound) & ((ids[i] != SF_NONE) | !none_allowed);
    return !bad;
}

static int words_are_terminated(const sf_words_view *w, size_t pool_length)
{
    if (w->offsets[0] != 0 || w->offsets[w->count] != pool_length) return 0;
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->offsets[i + 1] <= w->offsets[i] || w->offsets[i + 1] > pool_length) return 0;
        if (w->pool[w->offsets[i + 1] - 1] != '\0') return 0;
    }
    return 1;
}

/* Lists that ascend within every range, so that merging them is right. */
static int ranges_ascend(const uint64_t *offsets, size_t count, const uint32_t *ids)
{
    int bad = 0;
    for (size_t r = 0; r < count; r++)
        for (uint64_t i = offsets[r] + 1; i < offsets[r + 1]; i++) bad |= ids[i] <= ids[i - 1];
    return !bad;
}

static int kernel_is_right(const sf_kernel_view *k)
{
    for (uint32_t r = 0; r < k->rows; r++) {
        uint64_t total = 0;
        uint32_t zero = 0;
        for (uint64_t i = k->offsets[r]; i < k->offsets[r + 1]; i++) {
            total += k->weights[i];
            zero |= k->weights[i] == 0;
        }
        if (zero || total != k->totals[r] || total == 0) return 0;
    }
    return 1;
}

static int overlaps_are_shares(const double *overlap, size_t count)
{
    int bad = 0;
    for (size_t i = 0; i < count; i++) bad |= !(overlap[i] >= 0.0 && overlap[i] <= 1.0);
    return !bad;
}

/* One string that fills its section: nothing is hidden behind its end. */
/* Of UTF-8, ending with a NUL at its end and none before. */
static int is_string(const char *text, size_t length)
{
    return memchr(text, '\0', length) == text + length - 1 && sf_utf8_valid(text, length - 1) == length - 1;
}

static safer_status refuse(safer_error *error, const char *name, const char *reason)
{
    return sf_fail(error, SAFER_INPUT, "%s is not a usable lexicon: %s", name, reason);
}

/* ---------------------------------------------------------------- loading */

/* Step 5. */
static safer_status read_header(header *head, const sf_file *image, const char *name, safer_error *error)
{
    const char *base = image->bytes;
    uint64_t checksum;
    if (image->length < sizeof head->magic || memcmp(base, "SAFERLEX", sizeof head->magic) != 0)
        return refuse(error, name, "it does not begin as a .lex file");
    const size_t least = offsetof(header, section) + SECTIONS * sizeof head->section[0]; /* of the first version */
    if (image->length < least + sizeof checksum) return refuse(error, name, "truncated");
    memset(head, 0, sizeof *head);
    memcpy(head, base, least);
    if (head->order != ORDER) return refuse(error, name, "written on a machine of the other byte order");
    if (head->version != VERSION && head->version != FOLDED_VERSION)
        return sf_fail(error, SAFER_INPUT, "%s is not a usable lexicon: version %u, this program reads %d and %d", name,
                       (unsigned)head->version, VERSION, FOLDED_VERSION);
    if (head->version == FOLDED_VERSION) {
        if (image->length < sizeof *head + sizeof checksum) return refuse(error, name, "truncated");
        memcpy(head, base, sizeof *head);
    }
    if (head->length != image->length)
        return sf_fail(error, SAFER_INPUT, "%s is not a usable lexicon: %zu bytes where %llu are expected (truncated?)",
                       name, image->length, (unsigned long long)head->length);
    memcpy(&checksum, base + image->length - sizeof checksum, sizeof checksum);
    if (sf_hash(base, image->length - sizeof checksum, 0) != checksum)
        return refuse(error, name, "the checksum does not match: the file is damaged");
    return SAFER_OK;
}

static size_t length_of(const header *head, enum section s) { return (size_t)head->section[s].length; }

/* Step 6. What is wrong with the table of sections, or NULL. */
static const char *find_misplaced(const header *head)
{
    const size_t end = (size_t)head->length - sizeof(uint64_t), n = head->words, rows = head->rows,
                 synonyms = length_of(head, SYNONYMS) / 4, entries = length_of(head, KERNEL_IDS) / 4,
                 slots = length_of(head, WORD_TABLE) / 4, vectors = head->vector_count;
    const struct {
        enum section section;
        size_t item, count; /* bytes of a number, numbers */
    } arrays[] = {
        {WORD_OFFSETS, 4, n + 1},
        {WORD_TABLE, 4, slots},
        {COUNTS, 8, n},
        {SYNONYM_OFFSETS, 8, n + 1},
        {SYNONYMS, 4, synonyms},
        {COMPONENT, 4, n},
        {KERNEL_ROW, 4, n},
        {KERNEL_IDS, 4, entries},
        {KERNEL_WEIGHTS, 4, entries},
        {KERNEL_OFFSETS, 8, rows + 1},
        {KERNEL_TOTALS, 4, rows},
        {OVERLAP, 8, n},
        {VECTOR_WORDS, 4, vectors},
        {WORST, 4, n},
        {VECTORS, 4, vectors * head->vector_dim},
    };
    const uint32_t sections = head->version == FOLDED_VERSION ? FOLDED_SECTIONS : SECTIONS;
    if (head->sections != sections || head->words > UINT32_MAX / 2 || head->directed > 1) return "unknown layout";
    size_t at = align_up(header_size(head));
    for (uint32_t i = 0; i < sections; i++) {
        if (head->section[i].offset != at || at > end || head->section[i].length > end - at)
            return "a section is not where it belongs";
        at = align_up(at + length_of(head, (enum section)i));
    }
    if (at != end) return "there are bytes behind its last section";
    int good = n > 0 && slots > n && slots <= UINT32_MAX && (slots & (slots - 1)) == 0;
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        size_t length = length_of(head, arrays[i].section);
        good &= length % arrays[i].item == 0 && length / arrays[i].item == arrays[i].count;
    }
    good &= length_of(head, SIMILARITY) == 0 || length_of(head, SIMILARITY) == length_of(head, SYNONYMS);
    good &= length_of(head, KERNEL_NAME) > 0 && length_of(head, PROVENANCE) > 0;
    return good ? NULL : "a section has the wrong length";
}

/* Whether only zeros stand between the sections. */
static int gaps_are_zero(const header *head, const char *base)
{
    char any = 0;
    for (size_t at = header_size(head); at < align_up(header_size(head)); at++) any |= base[at];
    for (uint32_t i = 0; i < head->sections; i++) {
        const size_t end = (size_t)head->section[i].offset + length_of(head, (enum section)i);
        for (size_t at = end; at < align_up(end); at++) any |= base[at];
    }
    return !any;
}

/* Points a lexicon into the image. */
static void point_into(safer_lexicon *l, const char *base, const header *head)
{
#define AT(s) ((const void *)(base + head->section[s].offset))
    l->words = (sf_words_view){AT(WORD_POOL), AT(WORD_OFFSETS), AT(WORD_TABLE), head->words,
                               (uint32_t)(length_of(head, WORD_TABLE) / 4)};
    l->counts = AT(COUNTS);
    l->synonym_offsets = AT(SYNONYM_OFFSETS);
    l->synonyms = AT(SYNONYMS);
    l->similarity = length_of(head, SIMILARITY) ? AT(SIMILARITY) : NULL;
    l->component = AT(COMPONENT);
    l->kernel = (sf_kernel_view){head->words,    head->rows,         AT(KERNEL_ROW),   AT(KERNEL_OFFSETS),
                                 AT(KERNEL_IDS), AT(KERNEL_WEIGHTS), AT(KERNEL_TOTALS)};
    l->overlap = AT(OVERLAP);
    l->worst = AT(WORST);
    l->vector_words = AT(VECTOR_WORDS);
    l->vectors = AT(VECTORS);
    l->vector_count = head->vector_count;
    l->vector_dim = head->vector_dim;
    l->directed = head->directed != 0;
    l->kernel_name = AT(KERNEL_NAME);
    l->provenance = AT(PROVENANCE);
    l->folds = head->version == FOLDED_VERSION;
    if (l->folds) l->fold_table = (sf_span){AT(FOLD), length_of(head, FOLD)};
#undef AT
}

/* Step 7. What is wrong inside the sections, or NULL. */
static const char *find_fault(safer_lexicon *l, const header *head)
{
    const sf_kernel_view *k = &l->kernel;
    const size_t synonyms = length_of(head, SYNONYMS) / 4, entries = length_of(head, KERNEL_IDS) / 4;
    const uint32_t n = head->words;
    if (!words_are_terminated(&l->words, length_of(head, WORD_POOL))) return "its words are not in order";
    if (!all_below(l->words.table, l->words.slots, n, 1)) return "its word table is wrong";
    if (!offsets_rise(l->synonym_offsets, n, synonyms) || !all_below(l->synonyms, synonyms, n, 0) ||
        !ranges_ascend(l->synonym_offsets, n, l->synonyms))
        return "its synonyms are not in order";
    if (!all_below(l->component, n, n, 0)) return "its components are wrong";
    if (k->rows == 0 || !all_below(k->row_of, n, k->rows, 0) || !offsets_rise(k->offsets, k->rows, entries) ||
        !all_below(k->ids, entries, n, 0) || !ranges_ascend(k->offsets, k->rows, k->ids) || !kernel_is_right(k))
        return "its kernel is wrong";
    if (!overlaps_are_shares(l->overlap, n) || !all_below(l->worst, n, n, 1)) return "its overlaps are wrong";
    if (!all_below(l->vector_words, l->vector_count, n, 0)) return "its vectors are wrong";
    if (!is_string(l->kernel_name, length_of(head, KERNEL_NAME)) ||
        !is_string(l->provenance, length_of(head, PROVENANCE)))
        return "its description is cut, goes on behind its end, or is no UTF-8";
    return l->folds ? sf_fold_describe(&l->phi, l->fold_table.bytes, l->fold_table.length) : NULL;
}

/* Rows may hold thousands of words, and are drawn from in every text. */
static int find_equal_weights(safer_lexicon *l)
{
    const sf_kernel_view *k = &l->kernel;
    l->equal = sf_alloc((size_t)k->rows + 1, sizeof *l->equal);
    if (!l->equal) return -1;
    for (uint32_t row = 0; row < k->rows; row++) {
        l->equal[row] = k->weights[k->offsets[row]];
        for (uint64_t i = k->offsets[row] + 1; i < k->offsets[row + 1]; i++)
            if (k->weights[i] != k->weights[i - 1]) l->equal[row] = 0;
    }
    return 0;
}

safer_status sf_lexicon_from_image(safer_lexicon **out, sf_file *image, const char *name, safer_error *error)
{
    header head;
    safer_status status = read_header(&head, image, name, error);
    if (status != SAFER_OK) return status;
    const char *fault = find_misplaced(&head);
    if (!fault && !gaps_are_zero(&head, image->bytes)) fault = "there are bytes between its sections";
    if (fault) return refuse(error, name, fault);
    safer_lexicon *l = sf_calloc(1, sizeof *l);
    if (!l) return sf_fail_memory(error);
    point_into(l, image->bytes, &head);
    fault = find_fault(l, &head);
    status = fault ? refuse(error, name, fault) : sf_sha256(&l->sha256, image->bytes, image->length, error);
    if (status == SAFER_OK && l->folds)
        status = sf_sha256(&l->fold_sha256, l->fold_table.bytes, l->fold_table.length, error);
    if (status == SAFER_OK && find_equal_weights(l)) status = sf_fail_memory(error);
    if (status != SAFER_OK) {
        free(l);
        return status;
    }
    l->image = *image;
    *image = (sf_file){0};
    *out = l;
    return SAFER_OK;
}

uint64_t sf_lexicon_hash(const safer_lexicon *lexicon)
{
    uint64_t hash;
    memcpy(&hash, lexicon->image.bytes + lexicon->image.length - sizeof hash, sizeof hash);
    return hash;
}

const char *safer_lexicon_sha256(const safer_lexicon *lexicon) { return lexicon->sha256.hex; }
const char *safer_lexicon_name(const safer_lexicon *lexicon) { return lexicon->name ? lexicon->name : "memory"; }

safer_status sf_lexicon_parse(safer_lexicon **out, sf_file *image, const char *name, safer_error *error)
{
    safer_lexicon *lexicon = NULL;
    const char *fault = NULL;
    safer_status status;
    SF_TRY(sf_lexicon_from_image(&lexicon, image, name, error));
    SF_TRY(sf_lexicon_check(&fault, lexicon, error));
    if (fault) {
        status = refuse(error, name, fault);
        goto done;
    }
    *out = lexicon;
    lexicon = NULL;
done:
    safer_lexicon_free(lexicon);
    return status;
}

safer_status safer_lexicon_open(safer_lexicon **out, const char *path, safer_error *error)
{
    sf_file image = {0};
    safer_lexicon *lexicon = NULL;
    safer_status status;
    SF_TRY(sf_file_load(&image, path, error));
    SF_TRY(sf_lexicon_parse(&lexicon, &image, path, error));
    if (!(lexicon->name = sf_path_name(path))) {
        status = sf_fail_memory(error);
        goto done;
    }
    *out = lexicon;
    lexicon = NULL;
done:
    safer_lexicon_free(lexicon);
    sf_file_free(&image);
    return status;
}

safer_status safer_lexicon_save(const safer_lexicon *lexicon, const char *path, safer_error *error)
{
    return sf_file_write(path, lexicon->image.bytes, lexicon->image.length, error);
}

void safer_lexicon_free(safer_lexicon *lexicon)
{
    if (!lexicon) return;
    sf_file_free(&lexicon->image);
    free(lexicon->name);
    free(lexicon->equal);
    free(lexicon);
}
