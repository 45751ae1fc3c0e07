/* Reads sentencepiece's files: fields of messages, one after the other, each with its number and kind. */
#include "text/sentencepiece.h"

#include "base/memory.h"
#include "text/unicode.h"

#include <math.h>
#include <string.h>

/* One field; what it holds depends on its kind. */
typedef struct field {
    uint64_t number, kind; /* 0 a number, 1 eight bytes, 2 bytes, 5 four bytes */
    uint64_t value;        /* kinds 0 and 5 */
    sf_span bytes;         /* kind 2 */
} field;

static int read_varint(sf_span *rest, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; rest->length > 0 && shift < 64; shift += 7) {
        const unsigned char byte = (unsigned char)*rest->bytes;
        rest->bytes++;
        rest->length--;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return 1;
    }
    return 0;
}

/* The next field of a message. 1; 0 at its end; -1 when it is damaged. */
static int read_field(sf_span *rest, field *out)
{
    uint64_t key, length = 0;
    if (rest->length == 0) return 0;
    *out = (field){0};
    if (!read_varint(rest, &key)) return -1;
    out->number = key >> 3;
    out->kind = key & 7;
    switch (out->kind) {
    case 0: return read_varint(rest, &out->value) ? 1 : -1;
    case 1: length = 8; break;
    case 2:
        if (!read_varint(rest, &length)) return -1;
        break;
    case 5: length = 4; break;
    default: return -1;
    }
    if (out->number == 0 || length > rest->length) return -1;
    out->bytes = (sf_span){rest->bytes, (size_t)length};
    for (size_t i = 4; out->kind == 5 && i-- > 0;) out->value = out->value << 8 | (unsigned char)rest->bytes[i];
    rest->bytes += length;
    rest->length -= (size_t)length;
    return 1;
}

static safer_status fail_damaged(const char *name, const char *what, size_t number, safer_error *error)
{
    return sf_fail(error, SAFER_INPUT, "%s: %s %zu of the sentencepiece model is damaged", name, what, number);
}

static safer_status read_piece(sf_sentencepiece *out, sf_span message, const char *name, safer_error *error)
{
    const size_t number = out->count;
    sf_sentencepiece_piece piece = {.type = 1};
    field f;
    int more;
    while ((more = read_field(&message, &f)) == 1) {
        if (f.number == 1 && f.kind == 2) piece.text = f.bytes;
        if (f.number == 2 && f.kind == 5) {
            const uint32_t bits = (uint32_t)f.value;
            memcpy(&piece.score, &bits, sizeof piece.score);
        }
        if (f.number == 3 && f.kind == 0) piece.type = f.value < 7 ? (int)f.value : 0;
    }
    if (more < 0 || piece.text.length == 0 || piece.type == 0 || !isfinite(piece.score) ||
        sf_utf8_valid(piece.text.bytes, piece.text.length) != piece.text.length)
        return fail_damaged(name, "piece", number, error);
    if (sf_grow(&out->pieces, &out->capacity, number + 1, sizeof *out->pieces)) return sf_fail_memory(error);
    out->pieces[out->count++] = piece;
    return SAFER_OK;
}

/* The specifications: of the trainer (field 2 of the model) and of the normalizer (3). */
static int read_spec(sf_sentencepiece *out, uint64_t which, sf_span message)
{
    field f;
    int more;
    while ((more = read_field(&message, &f)) == 1) {
        if (which == 2 && f.number == 3 && f.kind == 0) out->model_type = f.value;
        if (which == 2 && f.number == 40 && f.kind == 0) out->unk_id = f.value;
        if (which == 3 && f.number == 2 && f.kind == 2) out->charsmap = f.bytes;
    }
    return more;
}

safer_status sf_sentencepiece_read(sf_sentencepiece *out, const char *bytes, size_t length, const char *name,
                                   safer_error *error)
{
    sf_span rest = {bytes, length};
    field f;
    int more;
    *out = (sf_sentencepiece){.model_type = 1};
    for (size_t number = 0; (more = read_field(&rest, &f)) == 1; number++) {
        if (f.kind != 2) continue;
        if (f.number == 1) {
            safer_status status = read_piece(out, f.bytes, name, error);
            if (status != SAFER_OK) return status;
        } else if ((f.number == 2 || f.number == 3) && read_spec(out, f.number, f.bytes) < 0) {
            return fail_damaged(name, "field", number, error);
        }
    }
    if (more < 0) return fail_damaged(name, "the field behind piece", out->count, error);
    if (out->count == 0) return sf_fail(error, SAFER_INPUT, "%s is not a sentencepiece model: it has no pieces", name);
    if (out->unk_id >= out->count)
        return sf_fail(error, SAFER_INPUT, "%s: unk_id of the sentencepiece model is beyond its pieces", name);
    return SAFER_OK;
}

void sf_sentencepiece_free(sf_sentencepiece *model)
{
    free(model->pieces);
    *model = (sf_sentencepiece){0};
}
