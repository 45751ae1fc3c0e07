/* The .lex file.
 *
 * One little-endian image that is used where it is mapped: nothing is parsed or built
 * at load time.
 *
 *   1. 8 bytes "SAFERLEX", then the header below: version, a byte-order mark, counts.
 *   2. A table of sections, each an offset and a length in bytes. Sections begin at
 *      multiples of 64 and are padded with zeros.
 *   3. The sections, in the order of `enum section`.
 *   4. The last 8 bytes: XXH64 of everything before them.
 *
 * Loading checks the length, the checksum, and then every number that is used as an
 * index, so that even a file made to deceive cannot make a reader leave the image. It
 * does not recompute overlaps. */
#include "lexicon/lexicon.h"

#include "base/hash.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

enum { VERSION = 1, ALIGN = 64, ORDER = 0x01020304 };

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
    SECTIONS
};

typedef struct header {
    char magic[8];
    uint32_t version, order;
    uint64_t length; /* of the whole file */
    uint32_t words, rows, vector_count, vector_dim;
    uint32_t directed, sections;
    struct {
        uint64_t offset, length;
    } section[SECTIONS];
} header;

/* ------------------------------------------------------------- assembling */

/* The layout is planned first; then one image is filled. */
typedef struct piece {
    const void *bytes;
    size_t length;
} piece;

static size_t align_up(size_t n) { return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1); }

safer_status sf_lexicon_assemble(safer_lexicon **out, const sf_lexicon_parts *parts, safer_error *error)
{
    safer_status status = SAFER_OK;
    const sf_words *w = parts->words;
    const sf_graph *g = parts->graph;
    const sf_kernel *k = parts->kernel;
    size_t n = w->count, synonyms = (size_t)g->offsets[n], entries = (size_t)k->offsets[k->rows];
    uint64_t *zeros = NULL;
    uint32_t *vector_words = sf_alloc(n, sizeof *vector_words);
    float *vectors = NULL;
    sf_file image = {0};
    header head = {.magic = {'S', 'A', 'F', 'E', 'R', 'L', 'E', 'X'},
                   .version = VERSION,
                   .order = ORDER,
                   .words = w->count,
                   .rows = k->rows,
                   .directed = (uint32_t)parts->directed,
                   .sections = SECTIONS};
    if (!vector_words || (!parts->counts && !(zeros = sf_calloc(n, sizeof *zeros)))) goto no_memory;
    for (uint32_t x = 0; parts->rows && x < n; x++) /* only words with synonyms are ever ranked */
        if (parts->rows[x] && g->offsets[x + 1] > g->offsets[x]) vector_words[head.vector_count++] = x;
    if (head.vector_count) head.vector_dim = (uint32_t)parts->dim;
    vectors = sf_alloc((size_t)head.vector_count * head.vector_dim, sizeof *vectors);
    if (!vectors) goto no_memory;
    for (size_t i = 0; i < head.vector_count; i++)
        memcpy(vectors + i * parts->dim, parts->rows[vector_words[i]], parts->dim * sizeof *vectors);

    const piece pieces[SECTIONS] = {
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
        [VECTOR_WORDS] = {vector_words, head.vector_count * sizeof(uint32_t)},
        [VECTORS] = {vectors, (size_t)head.vector_count * head.vector_dim * sizeof(float)},
        [KERNEL_NAME] = {parts->kernel_name, strlen(parts->kernel_name) + 1},
        [PROVENANCE] = {parts->provenance, strlen(parts->provenance) + 1},
    };
    size_t at = align_up(sizeof head);
    for (int i = 0; i < SECTIONS; i++) {
        head.section[i].offset = at;
        head.section[i].length = pieces[i].length;
        at = align_up(at + pieces[i].length);
    }
    head.length = at + sizeof(uint64_t);
    char *bytes = sf_alloc_aligned(head.length, 1);
    if (!bytes) goto no_memory;
    memset(bytes, 0, head.length);
    memcpy(bytes, &head, sizeof head);
    for (int i = 0; i < SECTIONS; i++)
        if (pieces[i].length) memcpy(bytes + head.section[i].offset, pieces[i].bytes, pieces[i].length);
    uint64_t checksum = sf_hash(bytes, at, 0);
    memcpy(bytes + at, &checksum, sizeof checksum);
    image = (sf_file){.bytes = bytes, .length = head.length, .heap = bytes};
    SF_TRY(sf_lexicon_from_image(out, &image, "the new lexicon", error));
    goto done;
no_memory:
    status = sf_fail_memory(error);
done:
    free(zeros);
    free(vector_words);
    free(vectors);
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

static safer_status refuse(safer_error *error, const char *name, const char *reason)
{
    return sf_fail(error, SAFER_INPUT, "%s is not a usable lexicon: %s", name, reason);
}

safer_status sf_lexicon_from_image(safer_lexicon **out, sf_file *image, const char *name, safer_error *error)
{
    const char *base = image->bytes;
    header head;
    uint64_t checksum;
    if (image->length < sizeof head.magic || memcmp(base, "SAFERLEX", sizeof head.magic) != 0)
        return refuse(error, name, "it does not begin as a .lex file");
    if (image->length < sizeof head + sizeof checksum) return refuse(error, name, "truncated");
    memcpy(&head, base, sizeof head);
    if (head.order != ORDER) return refuse(error, name, "written on a machine of the other byte order");
    if (head.version != VERSION)
        return sf_fail(error, SAFER_INPUT, "%s is not a usable lexicon: version %u, this program reads %d", name,
                       (unsigned)head.version, VERSION);
    if (head.length != image->length)
        return sf_fail(error, SAFER_INPUT, "%s is not a usable lexicon: %zu bytes where %llu are expected (truncated?)",
                       name, image->length, (unsigned long long)head.length);
    memcpy(&checksum, base + image->length - sizeof checksum, sizeof checksum);
    if (sf_hash(base, image->length - sizeof checksum, 0) != checksum)
        return refuse(error, name, "the checksum does not match: the file is damaged");

    /* Sections lie inside the file, aligned, with the lengths that the counts imply. */
    size_t end = image->length - sizeof checksum;
    if (head.sections != SECTIONS || head.words > UINT32_MAX / 2) return refuse(error, name, "unknown layout");
    for (int i = 0; i < SECTIONS; i++)
        if (head.section[i].offset % ALIGN || head.section[i].offset > end ||
            head.section[i].length > end - head.section[i].offset)
            return refuse(error, name, "a section lies outside the file");
    size_t n = head.words;
#define LENGTH(s) ((size_t)head.section[s].length)
#define AT(s, type) ((const type *)(const void *)(base + head.section[s].offset))
    size_t slots = LENGTH(WORD_TABLE) / sizeof(uint32_t);
    if (n == 0 || LENGTH(WORD_OFFSETS) != (n + 1) * 4 || LENGTH(COUNTS) != n * 8 ||
        LENGTH(SYNONYM_OFFSETS) != (n + 1) * 8 || LENGTH(COMPONENT) != n * 4 || LENGTH(KERNEL_ROW) != n * 4 ||
        LENGTH(OVERLAP) != n * 8 || LENGTH(WORST) != n * 4 || LENGTH(KERNEL_OFFSETS) != ((size_t)head.rows + 1) * 8 ||
        LENGTH(KERNEL_TOTALS) != (size_t)head.rows * 4 || LENGTH(SYNONYMS) % 4 ||
        (LENGTH(SIMILARITY) && LENGTH(SIMILARITY) != LENGTH(SYNONYMS)) || LENGTH(KERNEL_IDS) % 4 ||
        LENGTH(KERNEL_WEIGHTS) != LENGTH(KERNEL_IDS) || LENGTH(WORD_TABLE) % 4 || slots <= n || (slots & (slots - 1)) ||
        LENGTH(VECTOR_WORDS) != (size_t)head.vector_count * 4 ||
        LENGTH(VECTORS) != (size_t)head.vector_count * head.vector_dim * 4 || LENGTH(KERNEL_NAME) == 0 ||
        LENGTH(PROVENANCE) == 0)
        return refuse(error, name, "a section has the wrong length");

    safer_lexicon *l = sf_calloc(1, sizeof *l);
    if (!l) return sf_fail_memory(error);
    l->words = (sf_words_view){AT(WORD_POOL, char), AT(WORD_OFFSETS, uint32_t), AT(WORD_TABLE, uint32_t), head.words,
                               (uint32_t)slots};
    l->counts = AT(COUNTS, uint64_t);
    l->synonym_offsets = AT(SYNONYM_OFFSETS, uint64_t);
    l->synonyms = AT(SYNONYMS, uint32_t);
    l->similarity = LENGTH(SIMILARITY) ? AT(SIMILARITY, float) : NULL;
    l->component = AT(COMPONENT, uint32_t);
    l->kernel = (sf_kernel_view){head.words,
                                 head.rows,
                                 AT(KERNEL_ROW, uint32_t),
                                 AT(KERNEL_OFFSETS, uint64_t),
                                 AT(KERNEL_IDS, uint32_t),
                                 AT(KERNEL_WEIGHTS, uint32_t),
                                 AT(KERNEL_TOTALS, uint32_t)};
    l->overlap = AT(OVERLAP, double);
    l->worst = AT(WORST, uint32_t);
    l->vector_words = AT(VECTOR_WORDS, uint32_t);
    l->vectors = AT(VECTORS, float);
    l->vector_count = head.vector_count;
    l->vector_dim = head.vector_dim;
    l->directed = head.directed != 0;
    l->kernel_name = AT(KERNEL_NAME, char);
    l->provenance = AT(PROVENANCE, char);

    const char *fault = NULL;
    if (!words_are_terminated(&l->words, LENGTH(WORD_POOL)))
        fault = "its words are not in order";
    else if (!all_below(l->words.table, slots, head.words, 1))
        fault = "its word table is wrong";
    else if (!offsets_rise(l->synonym_offsets, n, LENGTH(SYNONYMS) / 4) ||
             !all_below(l->synonyms, LENGTH(SYNONYMS) / 4, head.words, 0) ||
             !ranges_ascend(l->synonym_offsets, n, l->synonyms))
        fault = "its synonyms are not in order";
    else if (!all_below(l->component, n, head.words, 0))
        fault = "its components are wrong";
    else if (head.rows == 0 || !all_below(l->kernel.row_of, n, head.rows, 0) ||
             !offsets_rise(l->kernel.offsets, head.rows, LENGTH(KERNEL_IDS) / 4) ||
             !all_below(l->kernel.ids, LENGTH(KERNEL_IDS) / 4, head.words, 0) ||
             !ranges_ascend(l->kernel.offsets, head.rows, l->kernel.ids) || !kernel_is_right(&l->kernel))
        fault = "its kernel is wrong";
    else if (!overlaps_are_shares(l->overlap, n) || !all_below(l->worst, n, head.words, 1))
        fault = "its overlaps are wrong";
    else if (!all_below(l->vector_words, head.vector_count, head.words, 0))
        fault = "its vectors are wrong";
    else if (l->kernel_name[LENGTH(KERNEL_NAME) - 1] || l->provenance[LENGTH(PROVENANCE) - 1])
        fault = "its description is cut";
#undef LENGTH
#undef AT
    if (fault) {
        free(l);
        return refuse(error, name, fault);
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

safer_status safer_lexicon_open(safer_lexicon **out, const char *path, safer_error *error)
{
    sf_file image = {0};
    safer_status status = sf_file_map(&image, path, error);
    if (status == SAFER_OK) status = sf_lexicon_from_image(out, &image, path, error);
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
    free(lexicon);
}
