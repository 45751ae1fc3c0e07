/* The options of attacks. */
#include "attack_options.h"

const char *cli_attack_methods(size_t number) { return safer_attack_method_name((safer_attack_method)number); }

void cli_attack_method_option(cli_options *options, const char **method)
{
    cli_add_choice(options, "method", method, cli_attack_methods, "NAME", "{choices} (default {default})");
}

void cli_search_options(cli_options *options, safer_attack_options *o)
{
    cli_add_uint(options, "max-queries", &o->max_queries, "N",
                 "texts a search may ask the model about; smoothed: n or more (default: any number)");
    cli_add_int(options, "population", &o->population, "N", "genetic: members (default {default})");
    cli_add_int(options, "iterations", &o->iterations, "N", "genetic: generations (default {default})");
    cli_add_int(options, "tries", &o->tries, "N", "random: new texts (default {default})");
    cli_add_uint(options, "words", &o->words, "N",
                 "insert, outoflist: words of the lexicon that are tried, the most frequent (default {default})");
}

void cli_likeness_options(cli_options *options, safer_attack_options *o)
{
    cli_add_path(options, "same-pos", &o->same_pos, "FOLDER",
                 "replace words only by the same part of speech, by WordNet's index files (/usr/share/wordnet)");
    cli_add_path(options, "vectors", &o->vectors, "FILE",
                 "word vectors for the next two: GloVe text or word2vec binary");
    cli_add_real(options, "min-cosine", &o->min_cosine, "X",
                 "replace words only by those whose vector has at least this cosine, above 0 (default: any)");
    cli_add_real(
        options, "min-similarity", &o->min_similarity, "X",
        "the least cosine of the mean vectors of 15 words around a replacement, before and after (default: any)");
}

void cli_vote_options(cli_options *options, safer_attack_options *o)
{
    cli_add_uint(options, "n", &o->n, "N", "smoothed: draws that vote on a new text (default {default})");
    cli_add_real(options, "alpha", &o->alpha, "A",
                 "smoothed: level at which fresh draws must bear a success out (default {default})");
}
