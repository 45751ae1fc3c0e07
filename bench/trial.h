/* The trial: what certificates claim, compared with the truth.
 *
 * `trial instances` makes up small lexicons, texts and classifiers, certifies them through include/safer.h, and
 * computes what is true by trying every text that an attacker can make and every draw of it, in whole numbers. `trial
 * models` does the same with models that safer trains, and for bounds of the model itself. `trial edits` does it for
 * words that are put in, taken out or replaced, where draws delete (trial_edits.c). `trial rates` measures
 * how often texts on the border between the certifiable and the attackable receive a certificate. docs/RESULTS.md has
 * the figures.
 *
 * Nothing of the library is used but its public interface: the program is linked with the shared library, which
 * shows no other symbol. How words are written, what a kernel's overlap is, what q is and who wins is written here a
 * second time, as simply as possible.
 *
 * trial_numbers.c   random numbers, fractions, tails of the binomial distribution
 * trial_lexicons.c  made-up lexicons; trial_lexfile.c: lexicons with any kernel, written as docs/lexicon.md says
 * trial_texts.c     made-up texts, their slots, and how a text with other words is written
 * trial_answers.c   made-up classifiers: tables of texts and their classes
 * trial_truth.c     every attack and every draw; what certificates may say then
 * trial_tally.c     rates of errors that may happen, and whether they are too high
 * trial_breaks.c    faults on request, to see that the trial finds them */
#ifndef BENCH_TRIAL_H
#define BENCH_TRIAL_H

#include "safer.h"

#include <stdint.h>
#include <stdio.h>

enum {
    WORDS = 6,      /* of a text, at most */
    CLASSES = 5,    /* at most */
    OPTIONS = 9,    /* what may stand in a slot: the word and its synonyms, at most */
    DRAWN = 18,     /* what may be drawn for any of them, at most */
    TABLE = 4096,   /* draws of a text and of all attacks on it together, and attacks, at most */
    SPELLINGS = 26, /* words that are made use of */
    GROUP = 200     /* instances of one lexicon */
};

/* Ends the program with a message: the trial itself could not go on. */
_Noreturn void trial_stop(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Stops unless the library did what was asked. */
void trial_expect(safer_status status, const safer_error *error, const char *doing);

/* A path in a temporary folder that ends with the program. The string is static per call slot (4). */
const char *trial_path(const char *name);

double trial_seconds(void);

/* Says on stderr how far a part is, at most every few seconds; on a terminal in one line. */
void trial_progress(const char *part, uint64_t done, uint64_t total, double start);

/* ------------------------------------------------------------------ numbers */

__extension__ typedef unsigned __int128 wide;

typedef struct fraction {
    wide up, down; /* down >= 1, below 2^126 */
} fraction;

/* Exact: the sign of a - b. */
int fraction_compare(fraction a, fraction b);
int fraction_against(fraction a, double b); /* b: 0 or more, finite */
long double fraction_value(fraction a);     /* approximately */

/* Random numbers for one purpose: a stream per seed, purpose and number. */
typedef struct trial_random {
    uint64_t state;
} trial_random;
trial_random random_of(uint64_t seed, uint64_t purpose, uint64_t number);
uint64_t random_bits(trial_random *r);
uint32_t random_below(trial_random *r, uint32_t bound);  /* bound >= 1 */
int random_chance(trial_random *r, uint32_t of_hundred); /* true in so many of 100 cases */
double random_unit(trial_random *r);                     /* in [0, 1) */

/* P[Bin(n, p) >= k], approximately; and the upper Clopper-Pearson limit of k in n at this level. */
double binomial_tail(uint64_t k, uint64_t n, double p);
double binomial_upper(uint64_t k, uint64_t n, double level);

/* ----------------------------------------------------------------- lexicons */

/* How the words of the trial are written; `written[pattern]`. */
enum { LOWER, TITLE, UPPER, PATTERNS };
typedef struct spelling {
    const char *written[PATTERNS];
    int caseless;
} spelling;
extern const spelling spellings[SPELLINGS];

typedef struct trial_lexicon {
    safer_lexicon *lexicon;
    uint32_t count;             /* words in it */
    uint8_t spelled[SPELLINGS]; /* of each word its number in `spellings` */
    uint32_t number[SPELLINGS]; /* of each spelling its word in the lexicon, or SAFER_NO_WORD */
    char how[160];              /* what it is, for people */
    const char *kind;           /* of its kernel: "topk", "component", "representative", "any" */
} trial_lexicon;

/* Lexicon number `number` of this seed. */
void trial_lexicon_make(trial_lexicon *out, uint64_t seed, uint64_t number);
void trial_lexicon_take(trial_lexicon *out, safer_lexicon *lexicon); /* owns it from now on */
void trial_lexicon_clear(trial_lexicon *l);
void trial_lexicon_print(FILE *out, const trial_lexicon *l);

/* A lexicon from a table of synonyms, as `safer lexicon import` reads it. */
safer_lexicon *trial_import(const char *table, const char *vectors, const char *exclude, const char *protect,
                            int directed, const char *kernel);

/* A row of a kernel: `count` words, ascending, and their weights. */
typedef struct kernel_row {
    uint32_t count, total;
    uint32_t words[DRAWN], weights[DRAWN];
} kernel_row;

/* The same lexicon with other rows, one for each word (a .lex file made by hand, then opened). */
safer_lexicon *trial_lexicon_with_rows(const safer_lexicon *lexicon, const kernel_row *rows);

/* Mass that two rows share. */
fraction kernel_overlap(const kernel_row *a, const kernel_row *b);

/* -------------------------------------------------------------------- texts */

/* A place whose word may change, or is drawn. */
typedef struct trial_slot {
    size_t word;                     /* which of the text's words */
    size_t options, drawn;           /* how many */
    uint32_t option[OPTIONS];        /* [0]: the word that stands there; then its synonyms */
    uint32_t total[OPTIONS];         /* of the option's kernel */
    uint32_t draw[DRAWN];            /* all words that some option draws, ascending */
    uint32_t weight[OPTIONS][DRAWN]; /* of the draws; 0: never */
    size_t support;                  /* draws of option 0 with a weight */
    fraction overlap;
} trial_slot;

typedef struct trial_text {
    const trial_lexicon *lexicon;
    size_t words, slots;
    const char *gap[WORDS + 1]; /* before, between and behind the words */
    char written[WORDS][40];
    int pattern[WORDS];
    trial_slot slot[WORDS];
    size_t options, draws; /* products over the slots: texts an attacker can make; draws of any of them */
    size_t largest;        /* the product of the greater of both */
    char bytes[600];
    size_t length;
} trial_text;

/* A text of `words` words of which at most `draws` draws exist, over all attacks. */
void trial_text_make(trial_text *out, const trial_lexicon *lexicon, size_t words, size_t draws, trial_random *r);

/* Puts something else in front of the first word. */
void trial_text_begin(trial_text *text, const char *gap);

/* The text with number[i] in slot i: draws (which = 0: number of a draw) or attacks (number of an option; a word that
 * did not change stays as it was written). Returns its length. */
enum { AS_DRAW, AS_ATTACK };
size_t trial_text_write(char out[600], const trial_text *text, const size_t *number, int which);

/* Counts up: number[0] runs first. Returns 0 after the last. */
int next_draw(const trial_text *text, size_t *number);
int next_attack(const trial_text *text, size_t *number);

/* ------------------------------------------------------------------ answers */

/* A classifier: a table of texts; every other text gets a class by its bytes. */
typedef struct trial_answers {
    size_t classes;
    uint64_t salt;
    uint64_t *keys; /* hash of a text; 0: free */
    int8_t *values;
    size_t capacity, count;
    int lie; /* one in so many answers is another class, to see that it is found; 0: none */
} trial_answers;

void trial_answers_begin(trial_answers *a, size_t classes, uint64_t salt); /* forgets everything */
int trial_answer(const trial_answers *a, const char *text, size_t length);
int trial_answers_callback(void *answers, const char *const *texts, const size_t *lengths, size_t count, int *labels);
void trial_answers_free(trial_answers *a);

/* What the model answers to every draw: table[draw], the first slot running first. */
typedef struct trial_table {
    int8_t answer[TABLE];
    const char *how; /* what kind of classifier it is */
    int favoured;    /* the class that it was made for */
} trial_table;

/* Makes up a classifier for a text and enters it into `a`; where a text is there already, its answer stays. */
void trial_table_make(trial_table *out, trial_answers *a, const trial_text *text, trial_random *r);

/* -------------------------------------------------------------------- truth */

typedef struct trial_truth {
    size_t classes, words, slots, visible;
    int base;                  /* the model's answer to the text as it is */
    uint64_t weight[CLASSES];  /* of the draws of the text, per class */
    uint64_t total, draws;     /* of all, and how many there are (of the slots that are visible) */
    size_t below;              /* visible slots with an overlap below 1 */
    fraction kept[WORDS + 1];  /* the product of the so many smallest overlaps */
    fraction moved[WORDS + 1]; /* the largest |g(X',c) - g(X,c)| with at most so many words changed */
    size_t falls[CLASSES];     /* changes that are enough for the class not to win; SIZE_MAX: none are */
    size_t falls_at[CLASSES];  /* the attack: its number */
    uint64_t *shares;          /* [attack][class], weights; owned, reused */
    uint64_t *totals;          /* [attack] */
} trial_truth;

/* Tries everything. `visible`: the slots, from the first on, that the model can see. */
void trial_truth_find(trial_truth *out, const trial_text *text, const trial_table *table, size_t classes, int base,
                      size_t visible);
void trial_truth_free(trial_truth *t);

/* The attack as numbers of options. */
void attack_numbers(size_t number[WORDS], const trial_text *text, size_t attack);

/* Whether the class has more weight than every other at an attack. */
int trial_wins(const trial_truth *t, size_t attack, int class);

/* Whether what a certificate says is true, all but what a sampled one may get wrong. Returns NULL or what is wrong. */
const char *trial_claim_check(const safer_certificate *c, const trial_truth *t, const safer_certify_options *o);

/* The number of changes that a radius allows, at most the number of slots. */
size_t changes_of(const trial_truth *t, size_t radius);

/* -------------------------------------------------------------------- rates */

/* Errors that may happen, but not more often than in a share of `level`. */
typedef struct trial_rate {
    char what[120];
    double level;
    uint64_t cases, errors;
} trial_rate;

/* The chance of so many errors, if the level holds; and whether that is below 1e-6. */
double trial_rate_chance(const trial_rate *rate);
int trial_rate_is_wrong(const trial_rate *rate);

/* Counts for every kind of error of sampled certificates, by method and level. */
typedef struct trial_tally {
    trial_rate rates[40];
    size_t count;
} trial_tally;
void trial_tally_add(trial_tally *tally, const char *what, double level, int error);
void trial_tally_claim(trial_tally *tally, const safer_certificate *c, const trial_truth *t,
                       const safer_certify_options *o);
size_t trial_tally_print(trial_tally *tally); /* in order; returns how many are wrong */

/* ------------------------------------------------------------------- faults */

/* Faults that the trial puts into what the library gives, never into the library. */
#define TRIAL_BREAKS(X) \
    X(NONE, "none") \
    X(RADIUS, "radius")   /* one word more than certified */ \
    X(OVERLAP, "overlap") /* exact: decided with overlaps that are 1% too high */ \
    X(TIE, "tie")         /* exact: equality is enough */ \
    X(CLASS, "class")     /* the certificate of another class */ \
    X(Q, "q")             /* 1e-12 too small */ \
    X(BOUND, "bound")     /* exact: 1e-12 too high */ \
    X(ANSWER, "answer")   /* one answer in 200 is not the model's */ \
    X(DRAW, "draw")       /* the draws of another word */ \
    X(PLAIN, "plain")     /* sampled: shares are believed as they are */ \
    X(VOTE, "vote")       /* sampled: nothing is abstained from */ \
    X(RECORD, "record")   /* a digit of a run's file */ \
    X(MARGIN, "margin")   /* bounds: margins are a little higher */ \
    X(DELTA, "delta")     /* rates: four times the level is asked for */ \
    X(EDITS, "edits")     /* edits: one more than certified */
typedef enum trial_break {
#define X(name, text) BREAK_##name,
    TRIAL_BREAKS(X)
#undef X
        BREAKS
} trial_break;
extern const char *const trial_break_names[BREAKS];
void trial_break_claim(safer_certificate *c, trial_break fault, const trial_truth *t, const safer_certify_options *o);

/* -------------------------------------------------------------------- parts */

typedef struct trial_options {
    uint64_t seed, instances, first;
    uint64_t texts; /* of a cell, for rates */
    trial_break fault;
} trial_options;

/* Each returns the number of wrong ones. */
size_t trial_instances(const trial_options *options);
size_t trial_models(const trial_options *options);
size_t trial_edits(const trial_options *options);
size_t trial_rates(const trial_options *options);

/* A data set certified into a file, its records read, compared with the truth, and verified. Part of `instances`.
 * Returns the number of records; adds the wrong ones. */
size_t trial_run(const trial_lexicon *lexicon, uint64_t number, const trial_options *options, trial_tally *tally,
                 size_t *wrong);

/* Options of a certificate, made up. `exact`: all draws of any text of the trial are enumerated. */
safer_certify_options trial_certify_options(int exact, trial_random *r);

/* The made-up classifier as a model of the library. */
safer_model *trial_model(trial_answers *answers);

#endif
