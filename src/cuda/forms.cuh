/* What follows from an encoder's form (nn/encoder.h), for answers and for training. */
#ifndef SF_CUDA_FORMS_CUH
#define SF_CUDA_FORMS_CUH

#include "cuda/attention.cuh"
#include "cuda/heads.cuh"

#include <math.h>
#include <stdlib.h>

namespace sf
{

/* Of the embeddings. */
inline size_t width_of(const sf_encoder *e) { return e->form.width ? e->form.width : e->hidden; }

/* What the first product of the inner part has. */
inline size_t inner_outputs(const sf_encoder *e) { return e->form.gated ? 2 * e->inner : e->inner; }

/* Whether its activation has a kernel of its own, for products have no such one. */
inline int activates_apart(const sf_encoder *e) { return e->form.gated || e->activation == SF_ENCODER_SILU; }

/* Rows of a table of vectors that texts of up to e->tokens pieces use, from `first` on; none where there is no such
 * table. Of the encoder that was given, for it reads its buckets. */
struct places {
    size_t first, count;
};
inline places places_of(const sf_encoder *e)
{
    if (e->form.relative != SF_RELATIVE_PARTS) return {0, 0};
    int32_t low = e->buckets[0], high = low;
    for (size_t i = 0; i < 2 * e->tokens - 1; i++) {
        low = e->buckets[i] < low ? e->buckets[i] : low;
        high = e->buckets[i] > high ? e->buckets[i] : high;
    }
    return {(size_t)low, (size_t)(high - low) + 1};
}

/* As many columns of scores, a multiple of 8. */
inline size_t place_columns(const sf_encoder *e) { return (places_of(e).count + 7) / 8 * 8; }

/* The columns that texts of up to some length use, in steps that products like: `low` is the first. */
struct column_range {
    int low, count;
};
enum { COLUMN_STEP = 64 };

/* Of every length from 0 to e->tokens, of the encoder that was given. To be freed; or NULL. */
inline column_range *column_ranges(const sf_encoder *e)
{
    const int first = (int)places_of(e).first, most = (int)place_columns(e), middle = (int)e->tokens - 1;
    column_range *out = (column_range *)malloc((e->tokens + 1) * sizeof *out);
    int low = most, high = 0;
    if (!out) return NULL;
    out[0] = {0, most};
    for (int far = 0; far <= middle; far++) {
        for (int at : {e->buckets[middle - far] - first, e->buckets[middle + far] - first}) {
            low = at < low ? at : low;
            high = at > high ? at : high;
        }
        const int wide = (high - low) / COLUMN_STEP * COLUMN_STEP + COLUMN_STEP, count = wide < most ? wide : most;
        out[far + 1] = {low + count > most ? most - count : low, count};
    }
    return out;
}

/* Rows whose scores by places are there at once: those of whole texts. */
inline size_t place_rows(const sf_encoder *e, size_t rows)
{
    const size_t most = e->tokens > HEADS_ROWS ? e->tokens : (size_t)HEADS_ROWS;
    return rows < most ? rows : most;
}

/* Of scores, times `by`. */
inline float scale_of(const sf_encoder *e, float by)
{
    const size_t parts = 1 + (size_t)(e->form.place_keys != 0) + (size_t)(e->form.place_queries != 0);
    return by / sqrtf((float)(e->hidden / e->heads * parts));
}

inline attend_kind kind_of(const sf_encoder *e, size_t layer)
{
    if (e->form.relative == SF_RELATIVE_BIAS) return ATTEND_BIASED;
    if (e->form.relative == SF_RELATIVE_PARTS) return ATTEND_PARTS;
    return e->form.local[layer] ? ATTEND_LOCAL : ATTEND_ALL;
}

/* Without an activation when it has a kernel of its own. */
inline cublasLtEpilogue_t epilogue_of(const sf_encoder *e, int bias)
{
    if (activates_apart(e)) return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    if (e->activation == SF_ENCODER_RELU) return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
}

/* The position of every piece of a text, by the rules of its encoder. */
inline void place_text(uint16_t *places, const uint32_t *ids, size_t count, const sf_encoder *e)
{
    size_t next = e->form.padded ? e->form.pad + 1 : 0;
    for (size_t i = 0; i < count; i++)
        places[i] = (uint16_t)(e->form.padded && ids[i] == e->form.pad ? e->form.pad : next++);
}

/* Texts whose scores by places are computed together: rows and blocks of attention. */
struct chunk {
    size_t row, rows, block, blocks, longest;
};

/* How many there are at most. */
inline size_t most_chunks(const sf_encoder *e, size_t rows) { return 2 * rows / place_rows(e, rows) + 2; }

/* Cuts blocks (count), of texts one after the other, into chunks; returns how many. */
inline size_t cut_chunks(chunk *out, const sf_attend_block *blocks, size_t count, size_t most)
{
    size_t made = 0;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && blocks[end].row == blocks[i].row;) end++;
        const size_t length = blocks[i].length;
        if (!made || out[made - 1].rows + length > most) out[made++] = {blocks[i].row, 0, i, 0, 0};
        out[made - 1].rows += length;
        if (length > out[made - 1].longest) out[made - 1].longest = length;
        out[made - 1].blocks += end - i;
    }
    return made;
}

/* What attention is told of a chunk, but for its scores by places: `all` with the columns of its longest text. */
inline void relate_chunk(relation *out, const relation *all, const column_range *columns, const chunk *c)
{
    *out = *all;
    out->first = (uint32_t)c->row;
    out->low = columns[c->longest].low;
    out->columns = columns[c->longest].count;
}

/* What no kernel here can do, or NULL. */
inline const char *form_fault(const sf_encoder *e)
{
    const size_t D = e->hidden / e->heads;
    if (e->hidden % 8 || e->inner % 8 || D % 8 || width_of(e) % 8) return "of sizes that 8 divides";
    if (e->hidden > 2048 || width_of(e) > 2048) return "of up to 2048 numbers a piece";
    return NULL;
}

} // namespace sf
#endif
