/* Tokenizers as HuggingFace keeps them: text to numbers of pieces.
 *
 * A tokenizer.json describes five steps, and each is a file of this room:
 *
 *   added tokens    "<s>", "[MASK]": found in the text as it stands, or in the normalized text   tokenizer_added.c
 *   normalizer      NFC, lower case, sentencepiece's table of characters ...                     tokenizer_normal.c
 *   pre-tokenizer   where the text is cut, and how bytes are spelled                             tokenizer_cut.c
 *   model           BPE, Unigram, WordPiece, WordLevel: pieces of it                 tokenizer_{bpe,unigram,words}.c
 *   post-processor  what stands before and after the pieces of a text                            tokenizer_json.c
 *
 * The ids are those of the `tokenizers` library, 0.23 (scripts/compare-huggingface). What it has and this does not is
 * refused by name when the file is read: nothing is ignored that could change an id. Decoders, padding and pairs of
 * texts are not for classifiers and are not looked at.
 *
 * A tokenizer does not change once it is there: any number of threads may use one, each with a scratch of its own.
 *
 * For who draws words into a text: the pieces of parts, put together, are not always the pieces of the whole. They
 * depend on the space before a word (byte-level BPE, Metaspace), on what is glued to it ("don't", "end."), on the
 * beginning of the text (prepend_scheme, add_prefix_space); normal forms join neighbours, added tokens may lie across,
 * and sums of Unigram's scores round differently. tokenizer_places.h finds places where none of that can happen,
 * whatever is drawn.
 * Encoding with a limit costs the steps before the model for all of the text, and the model up to the limit. */
#ifndef SF_TEXT_TOKENIZER_H
#define SF_TEXT_TOKENIZER_H

#include "base/buffer.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/table.h"
#include "text/ids.h"

typedef struct sf_tokenizer sf_tokenizer;

/* From a HuggingFace folder. Read is the first of these that is there:
 *
 *   tokenizer.json
 *   vocab.json and merges.txt      byte-level BPE as RoBERTa has it
 *   sentencepiece.bpe.model, spiece.model, spm.model, tokenizer.model     Unigram (BPE inside is refused)
 *   vocab.txt                      WordPiece as BERT has it
 *
 * with tokenizer_config.json and special_tokens_map.json where they are there; an added_tokens.json beside the older
 * files must not have tokens that these do not. What tokenizer_config.json says of do_lower_case, strip_accents,
 * tokenize_chinese_chars, add_prefix_space, model_max_length and pad_token counts, as in transformers. `type` is the
 * model_type of config.json ("roberta", "xlm-roberta", "deberta-v2", ...): the older files do not say themselves which
 * numbers and special tokens their model has. It may be NULL where there is a tokenizer.json. `read`, which may be
 * NULL, notes the files that were read. The caller frees *out, which is set on success only. */
safer_status sf_tokenizer_open(sf_tokenizer **out, const char *directory, const char *type, sf_digest_list *read,
                               safer_error *error);

/* From the contents of a tokenizer.json alone. `name` is for messages. */
safer_status sf_tokenizer_parse(sf_tokenizer **out, const char *json, size_t length, const char *name,
                                safer_error *error);

/* From the contents of a sentencepiece .model of this model_type. */
safer_status sf_tokenizer_parse_sentencepiece(sf_tokenizer **out, const char *bytes, size_t length, const char *type,
                                              const char *name, safer_error *error);

void sf_tokenizer_free(sf_tokenizer *tokenizer); /* NULL is fine */

/* Appends a tokenizer.json that sf_tokenizer_parse reads and that has the same ids for every text: what a model's own
 * file keeps. -1 without memory. */
int sf_tokenizer_text(sf_buffer *out, const sf_tokenizer *tokenizer);

size_t sf_tokenizer_size(const sf_tokenizer *tokenizer); /* largest number + 1 */

/* The number of a piece or added token by its name; SF_NONE when there is none. Any thread. */
uint32_t sf_tokenizer_find(const sf_tokenizer *tokenizer, const char *piece, size_t length);

/* How many pieces, those of the frame included, the files allow a text (truncation of tokenizer.json, model_max_length
 * of tokenizer_config.json, the smaller); SIZE_MAX when they say nothing. */
size_t sf_tokenizer_longest(const sf_tokenizer *tokenizer);

/* Whether longer texts lose their beginning, not their end (truncation_side of tokenizer_config.json, else the
 * direction of tokenizer.json's truncation). */
int sf_tokenizer_ending(const sf_tokenizer *tokenizer);

/* What the post-processor puts around the pieces of one text: [CLS] and [SEP], <s> and </s>, or nothing. Lives as
 * long as the tokenizer. */
typedef struct sf_tokenizer_frame {
    const uint32_t *before, *after; /* (before_count), (after_count) */
    size_t before_count, after_count;
} sf_tokenizer_frame;
sf_tokenizer_frame sf_tokenizer_get_frame(const sf_tokenizer *tokenizer);

/* The number that pads (pad_token, or padding of tokenizer.json), or SF_NONE. */
uint32_t sf_tokenizer_pad(const sf_tokenizer *tokenizer);

/* Working memory of one thread for one tokenizer: buffers, and the pieces of words that were met before (a table of
 * fixed size). NULL without memory. */
typedef struct sf_tokenizer_scratch sf_tokenizer_scratch;
sf_tokenizer_scratch *sf_tokenizer_scratch_new(const sf_tokenizer *tokenizer);
void sf_tokenizer_scratch_free(sf_tokenizer_scratch *scratch); /* NULL is fine */

/* A part of a text that may be cut there (tokenizer_places.h): it does not begin the text, so what stands in front of
 * texts is not put in front of it, and of prefixes the first `skips` are not. */
int sf_tokenizer_encode_part(sf_ids *out, const sf_tokenizer *tokenizer, const char *text, size_t length, size_t limit,
                             size_t skips, sf_tokenizer_scratch *scratch);

/* Appends the pieces of a text, the first `limit` of them, without the frame. Bytes that are not UTF-8 count as
 * U+FFFD each. -1 without memory. The scratch must be of this tokenizer. */
int sf_tokenizer_encode(sf_ids *out, const sf_tokenizer *tokenizer, const char *text, size_t length, size_t limit,
                        sf_tokenizer_scratch *scratch);

#endif
