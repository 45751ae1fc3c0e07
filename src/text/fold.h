/* A fold: the function Phi that brings a text to its canonical spelling.
 *
 * The smoothed classifier reads Phi(X) only, so every X' with Phi(X') = Phi(X) gets the same answer: exactly, however
 * many characters differ. A fold is a table (a section of the .lex file) and the steps below; nothing that is installed
 * takes part when it is applied. text/fold_build.c makes tables; docs/fold.md has the theory, docs/check.md the format.
 *
 * Phi is C . R . S . L . O . M . H, on the code points of a text:
 *
 *   H  every code point becomes its image, none, one or several (decomposed, lower case, look-alikes plain); bytes that
 *      are not UTF-8 become U+FFFD. Hangul syllables become their letters.
 *   M  diacritics go, but for those on letters that keep them (of scripts other than Latin).
 *   O  runs of marks are sorted by their combining class.
 *   L  leetspeak: 0 1 3 4 5 7 @ $ become o i e a s t a s in a run of these, letters and ' with two letters or more.
 *   S  spaced-out words: three or more plain letters that stand alone, one of " .-_*" between neighbours, are joined.
 *   R  three or more of a plain letter become two.
 *   C  from left to right, two neighbours that have a composite become it.
 *
 * Phi is idempotent. All images, and all that L makes, are fixed by H, and H takes a composite apart into what it was
 * made of, so H . C is the identity on everything that C is given. M and O are the identity on what L, S and R leave of
 * an ordered text: L exchanges characters neither of which is a mark or keeps marks, S and R take out plain letters'
 * neighbours that are no marks. L, S, R once more find nothing to do: a run with two letters has no leet left and keeps
 * two letters; a joined word stands alone no more, and what surrounds it is as it was. So Phi . Phi = Phi.
 * sf_fold_open checks everything that this rests on, so a fold that opens is idempotent, whoever made its table.
 *
 * Every step takes time in proportion to the text. */
#ifndef SF_TEXT_FOLD_H
#define SF_TEXT_FOLD_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* The steps that a fold can have, in the order of the specification. */
enum {
    SF_FOLD_NFKC = 1,
    SF_FOLD_CASE = 2,
    SF_FOLD_IGNORABLE = 4,
    SF_FOLD_MARKS = 8,
    SF_FOLD_LOOKALIKES = 16,
    SF_FOLD_LEET = 32,
    SF_FOLD_SPACED = 64,
    SF_FOLD_REPEATS = 128,
    SF_FOLD_STANDARD = 31,
    SF_FOLD_ALL = 255
};

/* What a table says of code points, by ranges; the low 8 bits are the combining class. */
enum {
    SF_FOLD_CLASS = 0xff,
    SF_FOLD_DROPPED = 0x100,   /* its image is empty */
    SF_FOLD_DIACRITIC = 0x200, /* M takes it away */
    SF_FOLD_LETTER = 0x400,    /* a letter that is not ASCII */
    SF_FOLD_KEEPS = 0x800      /* keeps its diacritics */
};

/* The numbers a table begins with. Behind them, all u32: codes, ascending (maps); where their images begin (maps+1);
 * the images; ranges (first, last, what is said of them), ascending; composites (first, second, composite),
 * ascending. */
typedef struct sf_fold_head {
    uint32_t steps;
    uint32_t unicode, lookalikes; /* versions of Unicode, major << 16 | minor << 8 | update; 0: not used */
    uint32_t maps, images, ranges, pairs;
} sf_fold_head;

/* A table, looked at; it points into it. */
typedef struct sf_fold {
    sf_fold_head head;
    const uint32_t *codes, *offsets, *images;
    const uint32_t *ranges, *pairs; /* three numbers each */
    unsigned char ascii[128];       /* the image of an ASCII character that is one; 0xff: none at all */
    int direct;                     /* a text of ASCII only is mapped byte by byte, and nothing else happens to it */
} sf_fold;

/* Points a fold into a table at an address that is a multiple of 4, which must outlive it. NULL, or what is wrong. */
const char *sf_fold_open(sf_fold *out, const void *table, size_t length);

/* What the interface calls a fold. */
struct safer_fold {
    sf_fold fold;
    sf_buffer table; /* where it owns one */
    char unicode[16];
    char steps[80];
};

/* The same for a fold, with what is said about it. */
const char *sf_fold_describe(safer_fold *out, const void *table, size_t length);

/* Working memory of one thread, reused from text to text. Zero-initialise. */
typedef struct sf_folder {
    uint32_t *codes;
    uint32_t *origins; /* where in the text each code came from, bytes */
    size_t count, capacity, origin_capacity;
    uint32_t *marks; /* of a long run */
    size_t mark_capacity;
    sf_buffer text; /* the result: UTF-8, whatever was given */
    uint32_t *ends; /* where each code ends in the result, bytes */
    size_t end_capacity, given;
    int direct; /* byte i of the result is byte i of what was given; the arrays are not filled */
} sf_folder;

void sf_folder_free(sf_folder *folder);

/* folder->text = Phi(text). 0, or -1 when memory is out. */
int sf_folder_apply(sf_folder *folder, const sf_fold *fold, const char *text, size_t length);

/* Where, in the text that was folded last, what stands at `byte` of the result came from; behind the end of the result,
 * the end of the text. For people to look at. */
size_t sf_folder_origin(const sf_folder *folder, size_t byte);

/* Whether Phi leaves the text as it is. -1 when memory is out. */
int sf_folder_keeps(sf_folder *folder, const sf_fold *fold, const char *text, size_t length);

/* The names of the steps, separated by commas: "nfkc,case". "standard": the first five. "none": nothing. */
safer_status sf_fold_spec_parse(uint32_t *steps, const char *spec, safer_error *error);

/* The other way; out has room for SF_FOLD_SPEC bytes. */
enum { SF_FOLD_SPEC = 80 };
void sf_fold_spec_write(char out[SF_FOLD_SPEC], uint32_t steps);

/* The k-th of the characters that `lookalikes` brings to a plain letter, or 0: there are no more. */
uint32_t sf_fold_lookalike(unsigned char plain, size_t k);

/* Appends the table of a fold with these steps, at least one. */
safer_status sf_fold_build(sf_buffer *table, uint32_t steps, safer_error *error);

#endif
