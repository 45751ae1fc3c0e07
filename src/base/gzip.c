/* gzip, read and written. */
#include "base/gzip.h"

#include "base/file.h"

#include <string.h>
#include <zlib.h>

int sf_is_gzip(const char *bytes, size_t length) { return length >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0; }

/* One member; *length is what it took. Ends when there are more than `most` bytes. */
static safer_status inflate_member(sf_buffer *out, const char *bytes, size_t *length, size_t most, const char *name,
                                   safer_error *error)
{
    z_stream stream = {0};
    size_t fed = 0;
    safer_status status = SAFER_OK;
    int code = inflateInit2(&stream, 15 + 16); /* the largest window, a gzip frame */
    if (code != Z_OK) return sf_fail_memory(error);
    while (code != Z_STREAM_END) {
        if (stream.avail_in == 0) {
            size_t more = *length - fed < 1u << 30 ? *length - fed : 1u << 30;
            stream.next_in = (Bytef *)(uintptr_t)(bytes + fed);
            stream.avail_in = (uInt)more;
            fed += more;
        }
        if (sf_buffer_reserve(out, 1 << 18)) {
            status = sf_fail_memory(error);
            break;
        }
        size_t room = out->capacity - out->length - 1;
        stream.next_out = (Bytef *)(out->bytes + out->length);
        stream.avail_out = room < 1u << 30 ? (uInt)room : 1u << 30;
        uInt before = stream.avail_out;
        code = inflate(&stream, Z_NO_FLUSH);
        out->length += before - stream.avail_out;
        if (code == Z_MEM_ERROR)
            status = sf_fail_memory(error);
        else if (code == Z_BUF_ERROR ||
                 (code == Z_OK && stream.avail_in == 0 && fed == *length && stream.avail_out == before))
            status = sf_fail(error, SAFER_INPUT, "cannot unpack %s: truncated gzip data", name);
        else if (code != Z_OK && code != Z_STREAM_END)
            status = sf_fail(error, SAFER_INPUT, "cannot unpack %s: damaged gzip data (%s)", name,
                             stream.msg ? stream.msg : "no reason given");
        else if (out->length > most)
            status = sf_fail_unpacked(error, name, most);
        if (status != SAFER_OK) break;
    }
    *length = fed - stream.avail_in;
    inflateEnd(&stream);
    return status;
}

safer_status sf_gunzip(sf_buffer *out, const char *bytes, size_t length, const char *name, safer_error *error)
{
    const size_t most = sf_unpacked_most(length);
    while (length) {
        size_t taken = length;
        if (!sf_is_gzip(bytes, length)) {
            for (size_t i = 0; i < length; i++)
                if (bytes[i])
                    return sf_fail(error, SAFER_INPUT, "cannot unpack %s: something follows the gzip data", name);
            break; /* padding, as on tapes */
        }
        safer_status status = inflate_member(out, bytes, &taken, most, name, error);
        if (status != SAFER_OK) return status;
        bytes += taken;
        length -= taken;
    }
    return sf_buffer_add(out, "", 0) ? sf_fail_memory(error) : SAFER_OK; /* terminated even when empty */
}

int sf_gzip(sf_buffer *out, const char *bytes, size_t length)
{
    z_stream stream = {0};
    int code = Z_MEM_ERROR;
    if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return -1;
    do {
        if (stream.avail_in == 0 && length) {
            stream.next_in = (Bytef *)(uintptr_t)bytes;
            stream.avail_in = length < 1u << 30 ? (uInt)length : 1u << 30;
            bytes += stream.avail_in;
            length -= stream.avail_in;
        }
        if (sf_buffer_reserve(out, 1 << 15)) break;
        size_t room = out->capacity - out->length - 1;
        stream.next_out = (Bytef *)(out->bytes + out->length);
        stream.avail_out = room < 1u << 30 ? (uInt)room : 1u << 30;
        uInt before = stream.avail_out;
        code = deflate(&stream, length ? Z_NO_FLUSH : Z_FINISH);
        out->length += before - stream.avail_out;
    } while (code == Z_OK || code == Z_BUF_ERROR);
    deflateEnd(&stream);
    return sf_buffer_add(out, "", 0) || code != Z_STREAM_END ? -1 : 0;
}
