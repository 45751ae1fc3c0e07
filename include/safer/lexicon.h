/* Synonyms, and the distributions that substitutes are drawn from. Part of safer.h, which says what holds throughout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_LEXICON_H
#define SAFER_LEXICON_H

#include "safer/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an attacker may do and how the smoothing answers: for every word x its synonyms
 * S_x, the distribution pi_x its substitutes are drawn from, and the overlap s_x. */
typedef struct safer_lexicon safer_lexicon;

#define SAFER_NO_WORD UINT32_MAX
#define SAFER_ALL SIZE_MAX /* a radius: every word of the text may change */

typedef enum safer_metric {
    SAFER_METRIC_COSINE, /* vectors of length 1 */
    SAFER_METRIC_DOT     /* after all-but-the-top the lengths are left as they are */
} safer_metric;
SAFER_NAMED(safer_metric); /* "cosine", "dot" */

/* How to make a lexicon. Paths may name compressed files or ARCHIVE:MEMBER. */
typedef struct safer_lexicon_options {
    size_t size;
    const char *vectors; /* build: word vectors, GloVe text or word2vec binary. import: optional, ranks topk */
    const char *table;   /* import: {"word": ["synonym", ...]} (JSON) or word<TAB>synonyms (text) */
    const char *wordnet; /* a folder with WordNet's data.noun, data.verb, data.adj, data.adv. import: its synonyms.
                            build: its synonyms and antonyms are constraints, beside those of the files below */

    const char *vocab;             /* a list, one word per line: only these words count. May be NULL */
    const char *const *vocab_from; /* data sets; only words seen in them are kept */
    size_t vocab_from_count;
    uint64_t min_count; /* seen at least so often (with vocab_from); 2 */
    int repair;         /* invalid UTF-8 in that data becomes U+FFFD instead of an error */

    const char *const *synonyms; /* counter-fitting constraints, two words per line */
    size_t synonyms_count;
    const char *const *antonyms;
    size_t antonyms_count;
    int counterfit;      /* steps; 20. Without constraints nothing is fitted */
    int all_but_the_top; /* directions to remove; 8 */
    double threshold;    /* synonyms are the pairs at least this similar; 0.8 */
    safer_metric metric;
    const char *simlex; /* SimLex-999, to report the rank correlation with human judgement. May be NULL */

    int directed;        /* import: keep one-way synonyms one-way */
    const char *exclude; /* file: per line a word (loses all its pairs) or a pair (not synonyms). May be NULL */
    const char *protect; /* file: words that are never substituted, beside function_words. May be NULL */

    const char *kernel; /* "topk:K", "component", "representative"; "auto" (the default): representative, until
                           safer_lexicon_choose has found a better one on labelled texts */
    int threads;        /* 0: all cores */
    safer_progress progress;

    /* The characters that make no difference (docs/fold.md), stored in the lexicon: whoever reads a text with it reads
     * the folded text. Steps separated by commas: "nfkc", "case", "ignorable", "marks", "lookalikes" ("standard": these
     * five), "leet", "spaced", "repeats". NULL and "none": texts are read as they are. */
    const char *fold;

    /* A file to write: every word that was read and is not in the lexicon, or has no synonyms there because it cannot
     * be written in every case, and why: word<TAB>reason (docs/lexicon.md has the reasons). May be NULL. */
    const char *dropped;

    int function_words; /* protect English function words (articles, pronouns, prepositions, negations, ...) too; 1 */
    /* Words that a chain of synonyms leads to share a component, and components are what kernels draw from. Pairs are
     * joined from the most similar on; one that would bring antonyms together, or make a component of more words than
     * max_component, is cut, and every cut is listed in the lexicon (SAFER_EXPORT_CUTS). */
    int keep_antonyms;    /* antonyms move vectors, and may share a component all the same; 0 */
    size_t max_component; /* 0: any size; otherwise at least 2 */

    const safer_data_options *vocab_data; /* the columns of vocab_from's data; of its members these alone count. May be
                                             NULL */

    /* Pairs that are left out, and listed in the lexicon with the cuts (SAFER_EXPORT_CUTS). Of a pair that counts both
     * ways the rules ask about both words; with `directed`, about the word that is replaced. */
    double max_frequency; /* those of words that are more than this share of all words of vocab_from; 0: any share */
    const char
        *same_pos;  /* a folder with WordNet's index files: those that can be no common part of speech; NULL: any */
    size_t nearest; /* those whose words are not among so many nearest of each other; 0: any number */
} safer_lexicon_options;

/* What happened while a lexicon was made. Counts of what was set aside are decisions
 * that a user should see. */
typedef struct safer_lexicon_report {
    size_t vector_rows, vector_dim;                          /* in the vector file */
    size_t vector_duplicates, vector_unusable, vector_zeros; /* rows set aside */
    size_t listed;                                           /* words with a vector (and in the vocabulary list) */
    size_t texts, tokens;                                    /* in the data the vocabulary comes from */
    size_t words;                                            /* in the lexicon */
    size_t table_phrases;                                    /* import: entries that are not one word */
    size_t attract, repel, preserved;                        /* counter-fitting: pairs used */
    size_t pairs;         /* synonym pairs in the lexicon (one-way pairs count once) */
    size_t symmetrised;   /* import: pairs that were listed one way only */
    size_t refused_words; /* words that cannot be written in every case pattern and read back */
    size_t refused_pairs, excluded_pairs, protected_words;
    size_t unknown_edits; /* lines of exclude and protect with a word that the lexicon does not have */
    size_t simlex_pairs;  /* of SimLex-999 with both words known; 0: not asked for */
    double simlex_before, simlex_fitted, simlex_after; /* Spearman: as read; counter-fitted; all done */
    struct {
        const char *name;
        double seconds;
    } stages[12];
    size_t stage_count;
    /* For a ladder of K: the share of texts of vocab_from for which topk:K leaves the
     * product of all overlaps above one half. Empty without vocab_from. */
    struct {
        uint32_t k;
        double share;
    } ladder[24];
    size_t ladder_count;
    uint32_t suggested_k;    /* the smallest of the ladder that reaches 95%; 0: none does */
    size_t merged_spellings; /* words of other spellings that the fold made one with a word of the lexicon */
    size_t lost_words;       /* words that it leaves nothing of, or several words */
    size_t protected_pairs;  /* pairs that are none because a word of them is protected */
    size_t antonyms;         /* pairs of antonyms with both words in the lexicon; 0 with keep_antonyms */
    size_t parted_antonyms;  /* of these, how many would have shared a component */
    size_t cut_for_antonyms, cut_for_size; /* pairs that are no synonyms any more, each counted once */
    size_t frequent_words;                 /* words that lose all pairs by max_frequency */
    size_t filtered_for_frequency, filtered_for_speech, filtered_for_rank; /* pairs left out, by the first reason */
} safer_lexicon_report;

SAFER_OPTIONS(safer_lexicon_options);

/* From word vectors: counter-fitting, all-but-the-top, all pairs at the threshold.
 * `report` may be NULL. */
SAFER_API safer_status safer_lexicon_build(safer_lexicon **out, const safer_lexicon_options *options,
                                           safer_lexicon_report *report, safer_error *error);

/* From a table or WordNet; vectors, when given, only rank the neighbours for topk. */
SAFER_API safer_status safer_lexicon_import(safer_lexicon **out, const safer_lexicon_options *options,
                                            safer_lexicon_report *report, safer_error *error);

/* The same words and synonyms with another kernel. */
SAFER_API safer_status safer_lexicon_with_kernel(safer_lexicon **out, const safer_lexicon *lexicon, const char *kernel,
                                                 int threads, safer_error *error);

/* Maps a .lex file; one that is damaged, truncated or of another version is refused. So is one that
 * does not mean what it says: overlaps, the words it finds, what it exchanges and the kind of its kernel are looked at
 * again. */
SAFER_API safer_status safer_lexicon_open(safer_lexicon **out, const char *path, safer_error *error);

/* Writes it whole or not at all. The same lexicon gives the same bytes. */
SAFER_API safer_status safer_lexicon_save(const safer_lexicon *lexicon, const char *path, safer_error *error);

SAFER_API void safer_lexicon_free(safer_lexicon *lexicon);

typedef struct safer_lexicon_info {
    size_t words, pairs;
    size_t words_with_synonyms;
    double mean_synonyms;          /* of those, without the word itself */
    size_t components;             /* with at least two words */
    size_t largest_components[10]; /* their sizes, falling, 0 at the end */
    size_t kernel_rows, kernel_entries, largest_support;
    const char *kernel;     /* as it was asked for */
    const char *provenance; /* JSON: how it was made, from which files */
    size_t bytes;
    int directed; /* some synonyms may count one way only */
} safer_lexicon_info;

SAFER_API safer_lexicon_info safer_lexicon_describe(const safer_lexicon *lexicon);

/* What records call the lexicon: the last part of its path, "memory" where it was just made; and the SHA-256 of its
 * file, what sha256sum prints. Both live as long as the lexicon. */
SAFER_API const char *safer_lexicon_name(const safer_lexicon *lexicon);
SAFER_API const char *safer_lexicon_sha256(const safer_lexicon *lexicon);

/* The number of a word (any case and, with a fold, any spelling), or SAFER_NO_WORD: also when memory is out, and errno
 * is ENOMEM then. */
SAFER_API uint32_t safer_lexicon_find(const safer_lexicon *lexicon, const char *word, size_t length);

/* One word of the lexicon. Numbers run from 0; arrays belong to the lexicon. */
typedef struct safer_word {
    const char *word;
    uint64_t count; /* occurrences in the data it was built from */
    uint32_t component;
    size_t synonym_count;
    const uint32_t *synonyms; /* S_x without x, ascending */
    const float *similarity;  /* of each, or NULL when none is known */
    size_t support_count;
    const uint32_t *support; /* what pi_x draws, ascending */
    const uint32_t *weights; /* pi_x(support[i]) = weights[i] / total */
    uint32_t total;
    double overlap; /* s_x, rounded down */
    uint32_t worst; /* the synonym that attains it, or SAFER_NO_WORD */
} safer_word;

SAFER_API safer_word safer_lexicon_word(const safer_lexicon *lexicon, uint32_t word);

/* s(x, other), rounded down. */
SAFER_API double safer_lexicon_overlap(const safer_lexicon *lexicon, uint32_t word, uint32_t other);

/* What the lexicon means for a data set. For each of `radii` (SAFER_ALL: all) the
 * distribution over texts of the product of the smallest overlaps. */
#define SAFER_SURVEY_RADII 4
typedef struct safer_survey {
    size_t texts, tokens; /* words in them */
    size_t known_tokens;  /* in the lexicon */
    size_t tokens_with_synonyms;
    struct {
        size_t radius;       /* 5, 10, 20, SAFER_ALL */
        double quantiles[7]; /* minimum, 5, 25, 50, 75, 95 %, maximum */
        double above_half;   /* share of texts with a product above 1/2 */
    } products[SAFER_SURVEY_RADII];
    size_t without_synonyms; /* texts in which no word has one: their certificates would be empty */
} safer_survey;

SAFER_API safer_status safer_lexicon_survey(safer_survey *out, const safer_lexicon *lexicon, const safer_data *data,
                                            int threads, const safer_progress *progress, safer_error *error);

/* Whether certificates of these texts would say little: in most no word has a synonym; or, of 100 words at least, fewer
 * than a tenth have one; or the lexicon has less than three quarters of the share of their words that it had of those
 * it was made from (10,000 at least), as when it is of another language. Then `text` gets a sentence that says so, cut
 * to `size` bytes; else "". Returns 0, 1 where the results of a run would say so too, 2 for the last. */
SAFER_API int safer_survey_caution(const safer_survey *survey, const safer_lexicon *lexicon, char *text, size_t size);

typedef enum safer_export {
    SAFER_EXPORT_SYNONYMS, /* word<TAB>w1 w2 ... */
    SAFER_EXPORT_KERNEL,   /* word<TAB>total<TAB>z1:weight z2:weight ... */
    SAFER_EXPORT_OVERLAP,  /* word<TAB>s */
    SAFER_EXPORT_CUTS      /* word<TAB>word<TAB>"antonyms" or "size"<TAB>similarity, where one is known; before these
                              what filters left out: "frequency", "part of speech" or "rank" */
} safer_export;
SAFER_NAMED(safer_export); /* "synonyms", "kernel", "overlap", "cuts" */

/* Writes a table of all words, one line for each, or one JSON object (of cuts: one line for each, or a list, the most
 * similar first), through a callback that
 * returns nonzero to stop (SAFER_SYSTEM is returned then). Overlaps are printed cut,
 * never above the stored value. */
typedef int (*safer_write)(void *context, const char *bytes, size_t length);
SAFER_API safer_status safer_lexicon_export(const safer_lexicon *lexicon, safer_export what, int json,
                                            safer_write write, void *context, safer_error *error);

/* Why a pair of synonyms is doubtful, the worst first. */
typedef enum safer_doubt {
    SAFER_DOUBT_FUNCTION_WORD, /* one of them is an English function word */
    SAFER_DOUBT_ANTONYMS,      /* they are antonyms */
    SAFER_DOUBT_SPEECH,        /* WordNet has both, and no part of speech is common to them */
    SAFER_DOUBT_DISTANT        /* they are less similar than asked for */
} safer_doubt;
SAFER_NAMED(safer_doubt); /* "function word", "antonyms", "part of speech", "distant" */

/* A doubtful pair, by the numbers of its words, the smaller first unless it counts one way only. */
typedef struct safer_doubtful {
    uint32_t word, synonym;
    unsigned doubts;   /* 1 << SAFER_DOUBT_..., all that apply */
    double similarity; /* as the lexicon has it, or the cosine of its vectors; NAN: not known */
} safer_doubtful;

typedef struct safer_audit_options {
    size_t size;
    const char *wordnet;         /* a folder with WordNet, for antonyms and parts of speech. May be NULL */
    const char *const *antonyms; /* files, two words per line */
    size_t antonyms_count;
    double distant; /* pairs below this similarity are distant; 0.82 */
} safer_audit_options;

SAFER_OPTIONS(safer_audit_options);

/* The pairs of a lexicon that a person should look at, those with the worst doubt first, then the least similar.
 * *out ends with free(). */
SAFER_API safer_status safer_lexicon_audit(safer_doubtful **out, size_t *count, const safer_lexicon *lexicon,
                                           const safer_audit_options *options, safer_error *error);

/* A fold: the function Phi that brings a text to its canonical spelling (docs/fold.md). All texts with the same Phi are
 * one text to whoever reads them with a lexicon that has it. Immutable. */
typedef struct safer_fold safer_fold;

/* The fold of a lexicon, which lives as long as that, or NULL: it reads texts as they are. */
SAFER_API const safer_fold *safer_lexicon_fold(const safer_lexicon *lexicon);

/* One that is made for its steps, as safer_lexicon_options has them: to see what it does. At least one step. */
SAFER_API safer_status safer_fold_new(safer_fold **out, const char *steps, safer_error *error);
SAFER_API void safer_fold_free(safer_fold *fold);

/* Its steps, separated by commas; the version of Unicode that it has its characters from. */
SAFER_API const char *safer_fold_steps(const safer_fold *fold);
SAFER_API const char *safer_fold_unicode(const safer_fold *fold);

/* Hands Phi(text) to `write`, whole. Bytes that are not UTF-8 become U+FFFD. SAFER_CALLBACK when it returns nonzero. */
SAFER_API safer_status safer_fold_apply(const safer_fold *fold, const char *text, size_t length, safer_write write,
                                        void *context, safer_error *error);

#ifdef __cplusplus
}
#endif
#endif
