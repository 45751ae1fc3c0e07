/* The results of a run, for people and for programs: what --json prints, and the tables on a terminal. What is
 * counted is explained in docs/certify.md, edits in docs/edits.md. */
#include "results.h"

#include <string.h>

/* ------------------------------------------------------------- for programs */

json_t *cli_figure_json(size_t part, size_t whole)
{
    return whole ? json_real((double)part / (double)whole) : json_null();
}

json_t *cli_interval_json(size_t part, size_t whole)
{
    double low, high;
    if (!whole) return json_null();
    safer_interval(part, whole, &low, &high);
    return json_pack("[f, f]", low, high);
}

static void radius_name(char out[24], size_t radius)
{
    if (radius == SAFER_ALL)
        strcpy(out, "all");
    else
        snprintf(out, 24, "%zu", radius);
}

static json_t *by_radius_json(const size_t parts[SAFER_RADII], size_t whole)
{
    json_t *at = json_object();
    for (size_t r = 0; r < SAFER_RADII; r++) {
        char name[24];
        radius_name(name, safer_reported_radius(r));
        cli_set(at, name, cli_figure_json(parts[r], whole));
    }
    return at;
}

#define N(x) (json_int_t)(x)

static json_t *by_edits_json(const size_t parts[SAFER_EDITS], size_t edits, size_t whole)
{
    json_t *list = json_object();
    for (size_t i = 0; i < edits; i++) {
        char name[24];
        radius_name(name, i + 1);
        cli_set(list, name, cli_figure_json(parts[i], whole));
    }
    return list;
}

static json_t *class_json(const safer_summary *s, size_t number)
{
    const safer_class_summary *c = &s->by_class[number];
    const safer_figure recall = safer_summary_recall(s, number), precision = safer_summary_precision(s, number);
    json_t *answers = c->answers ? json_object() : json_null();
    for (size_t k = 0; c->answers && k < s->classes; k++)
        cli_set(answers, s->by_class[k].label, json_integer(N(c->answers[k])));
    return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "label", c->label, "texts", N(c->texts),
                     "certified", N(c->certified), "certified_answered", N(c->certified_answered), "certified_recall",
                     cli_figure_json(recall.part, recall.whole), "certified_recall_interval",
                     cli_interval_json(recall.part, recall.whole), "certified_precision",
                     cli_figure_json(precision.part, precision.whole), "certified_precision_interval",
                     cli_interval_json(precision.part, precision.whole), "answers", answers, "abstained",
                     c->answers ? json_integer(N(c->answers[s->classes])) : json_null());
}

static json_t *caution_json(const safer_summary *s)
{
    char caution[300];
    return safer_summary_caution(s, caution, sizeof caution) ? json_string(caution) : json_null();
}

json_t *cli_headline_json(const safer_summary *s)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "caution", caution_json(s), "certified_answered",
                     cli_figure_json(s->certified_answered, s->labelled), "certified_accuracy",
                     cli_figure_json(s->certified, s->labelled), "stable", cli_figure_json(s->stable, s->texts));
}

json_t *cli_summary_json(const safer_summary *s, uint64_t seed)
{
    json_t *classes = json_array();
    for (size_t k = 0; k < s->classes; k++) cli_append(classes, class_json(s, k));
    json_t *result = json_pack("{s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "caution",
                               caution_json(s), "texts", N(s->texts), "examples", N(s->texts), "labelled",
                               N(s->labelled), "unlabelled", N(s->texts - s->labelled), "clean_accuracy",
                               cli_figure_json(s->base_correct, s->labelled), "smoothed_accuracy",
                               cli_figure_json(s->smoothed_correct, s->labelled), "certified_answered",
                               cli_figure_json(s->certified_answered, s->labelled), "certified_answered_interval",
                               cli_interval_json(s->certified_answered, s->labelled), "certified_answered_at",
                               by_radius_json(s->certified_answered_at, s->labelled), "certified_accuracy",
                               cli_figure_json(s->certified, s->labelled), "certified_interval",
                               cli_interval_json(s->certified, s->labelled), "certified_at",
                               by_radius_json(s->certified_at, s->labelled));
    cli_extend(result,
               json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:o, s:f, s:I, s:I, s:o}", "stable",
                         cli_figure_json(s->stable, s->texts), "stable_interval",
                         cli_interval_json(s->stable, s->texts), "stable_at", by_radius_json(s->stable_at, s->texts),
                         "unlabelled_certified", N(s->unlabelled_certified), "abstained", N(s->abstained), "exact",
                         N(s->exact), "without_slots", N(s->without_slots), "empty", N(s->empty), "remote", s->remote,
                         "queries", N(s->queries), "base_queries", N(s->base_queries), "queries_per_second",
                         s->seconds > 0 && !s->resumed ? json_real((double)s->queries / s->seconds) : json_null(),
                         "seconds", s->seconds, "seed", N(seed), "resumed", N(s->resumed), "classes", classes));
    if (s->folded)
        cli_extend(result, json_pack("{s:b, s:o}", "folded", 1, "clean_unfolded_accuracy",
                                     cli_figure_json(s->unfolded_correct, s->labelled)));
    if (s->edits)
        cli_extend(result, json_pack("{s:I, s:s, s:o, s:o, s:o}", "edits", N(s->edits), "edit_kind",
                                     safer_edit_kind_name(s->edit_kind), "certified_answered_edits",
                                     by_edits_json(s->certified_answered_edits, s->edits, s->labelled),
                                     "certified_edits", by_edits_json(s->certified_edits, s->edits, s->labelled),
                                     "stable_edits", by_edits_json(s->stable_edits, s->edits, s->texts)));
    return result;
}

#undef N

/* --------------------------------------------------------------- for people */

#define NAME "%-24s" /* CLI_RESULT_WIDTH */

void cli_caution_print(const safer_summary *s)
{
    char caution[300];
    if (safer_summary_caution(s, caution, sizeof caution))
        printf("%scaution: %s%s\n\n", cli_red(), caution, cli_plain());
}

const char *cli_headline(const safer_summary *s)
{
    static char text[80];
    const safer_figure f = safer_summary_headline(s);
    snprintf(text, sizeof text, "%s%% %s", cli_percent(f.part, f.whole), f.name);
    return text;
}

static void print_share(const char *name, size_t part, size_t whole, const char *meaning)
{
    if (whole) printf(NAME "%6s%%  %s\n", name, cli_percent(part, whole), meaning);
}

/* The model without smoothing; with a fold, on folded texts and on those that were given. */
static void print_clean(const safer_summary *s, const char *meaning)
{
    if (s->folded) {
        printf(NAME "every spelling that folds to the same text\n", "characters");
        print_share("clean, unfolded", s->unfolded_correct, s->labelled, "the model itself, texts as they were given");
        print_share("clean", s->base_correct, s->labelled, "the model itself, folded texts");
    } else {
        print_share("clean", s->base_correct, s->labelled, meaning);
    }
}

static void print_headline(const safer_summary *s, const char *meaning)
{
    const safer_figure f = safer_summary_headline(s);
    printf("%s" NAME "%6s%%%s  %s (95%%: %s)\n", cli_bold(), f.name, cli_percent(f.part, f.whole), cli_plain(), meaning,
           cli_interval(f.part, f.whole));
}

static int is_about_stability(const safer_summary *s) { return s->about_predictions || !s->labelled; }

static void print_texts(const safer_summary *s)
{
    const size_t unlabelled = s->texts - s->labelled;
    printf(NAME "%s", "texts", cli_count(s->texts));
    if (s->resumed) printf(" (%s from an earlier run)", cli_count(s->resumed));
    printf("\n");
    if (s->labelled && unlabelled)
        printf(NAME "%s of these, %s certified for their prediction, %s\n", "without a label", cli_count(unlabelled),
               cli_count(s->unlabelled_certified),
               is_about_stability(s) ? "among them" : "in none of the figures below");
}

static void print_radii(const safer_summary *s)
{
    const int stability = is_about_stability(s);
    printf("\n%s  words changed   %s%s\n", cli_bold(), stability ? "stable" : "certified and answered   certified",
           cli_plain());
    for (size_t r = 0; r < SAFER_RADII; r++) {
        char name[24];
        radius_name(name, safer_reported_radius(r));
        if (stability)
            printf("  %13s   %5s%%\n", name, cli_percent(s->stable_at[r], s->texts));
        else
            printf("  %13s   %21s%%   %8s%%\n", name, cli_percent(s->certified_answered_at[r], s->labelled),
                   cli_percent(s->certified_at[r], s->labelled));
    }
}

const char *cli_edits(char out[80], safer_edit_kind kind, size_t edits)
{
    static const char *const done[] = {[SAFER_EDITS_ANY] = "put in, taken out or replaced",
                                       [SAFER_EDITS_REPLACE] = "replaced",
                                       [SAFER_EDITS_INSERT] = "put in",
                                       [SAFER_EDITS_DELETE] = "taken out"};
    snprintf(out, 80, "%s word%s %s", cli_count(edits), edits == 1 ? "" : "s", done[kind]);
    return out;
}

/* Beside synonyms in as many words as were asked for. Marks and numbers count as words do. */
static void print_edits(const safer_summary *s)
{
    const int stability = is_about_stability(s);
    if (!s->edits) return;
    printf("\n%s  words edited    %s%s\n", cli_bold(), stability ? "stable" : "certified and answered   certified",
           cli_plain());
    for (size_t i = 0; i < s->edits; i++) {
        if (stability)
            printf("  %13zu   %5s%%\n", i + 1, cli_percent(s->stable_edits[i], s->texts));
        else
            printf("  %13zu   %21s%%   %8s%%\n", i + 1, cli_percent(s->certified_answered_edits[i], s->labelled),
                   cli_percent(s->certified_edits[i], s->labelled));
    }
    char edits[80];
    printf("  at most so many: %s%s; and synonyms besides\n", cli_edits(edits, s->edit_kind, 2) + 2,
           s->folded ? ", as the folded text has them" : "");
}

static void print_trivial(const safer_summary *s)
{
    if (s->without_slots && !s->edits)
        printf(NAME "%s in which no word can change\n", "trivial", cli_texts(s->without_slots));
}

/* ----------------------------------------------------------------- by class */

enum { MOST_ROWS = 20, MOST_COLUMNS = 8, LABEL_WIDTH = 14 };

/* A label in so many columns, without what would disturb a table. */
static const char *fit(char out[4 * LABEL_WIDTH + 1], const char *given, int left)
{
    size_t length = 0, characters = 0, begin = 0;
    char label[8 * LABEL_WIDTH];
    snprintf(label, sizeof label, "%s", given);
    cli_clean(label);
    for (; label[length]; length++) {
        characters += (label[length] & 0xc0) != 0x80;
        if (characters > LABEL_WIDTH) break;
    }
    characters = characters > LABEL_WIDTH ? LABEL_WIDTH : characters;
    if (length > 3 * LABEL_WIDTH) length = 3 * LABEL_WIDTH; /* bytes that are no UTF-8 */
    if (!left) begin = LABEL_WIDTH - characters;
    memset(out, ' ', begin);
    memcpy(out + begin, label, length);
    memset(out + begin + length, ' ', LABEL_WIDTH);
    out[begin + length + (left ? LABEL_WIDTH - characters : 0)] = '\0';
    return out;
}

static void print_figure(safer_figure f)
{
    char share[40] = "-";
    if (f.whole) snprintf(share, sizeof share, "%s%%", cli_percent(f.part, f.whole));
    printf("  %9s", share);
}

static void print_class(const safer_summary *s, size_t number, int with_answers)
{
    const safer_class_summary *c = &s->by_class[number];
    char cell[64];
    printf("  %s %9s", fit((char[4 *LABEL_WIDTH + 1]){0}, c->label, 1), cli_count(c->texts));
    print_figure(safer_summary_recall(s, number));
    print_figure(safer_summary_precision(s, number));
    for (size_t k = 0; with_answers && k <= s->classes; k++) {
        snprintf(cell, sizeof cell, "%s", cli_count(c->answers[k]));
        if (k == number)
            snprintf(cell, sizeof cell, "%s (%s)", cli_count(c->answers[k]), cli_count(c->certified_answered));
        printf(" %*s", LABEL_WIDTH, cell);
    }
    printf("\n");
}

static void print_classes(const safer_summary *s)
{
    const int with_answers = s->classes <= MOST_COLUMNS;
    if (!s->labelled) return;
    if (s->classes > MOST_ROWS) {
        printf("\n%zu classes: --json has their recall, precision and answers\n", s->classes);
        return;
    }
    printf("\n");
    if (with_answers) printf("%s%63s%s\n", cli_bold(), "answered as", cli_plain()); /* over the first of them */
    printf("%s  %s %9s  %9s  %9s", cli_bold(), fit((char[4 *LABEL_WIDTH + 1]){0}, "label", 1), "texts", "recall",
           "precision");
    for (size_t k = 0; with_answers && k < s->classes; k++)
        printf(" %s", fit((char[4 *LABEL_WIDTH + 1]){0}, s->by_class[k].label, 0));
    printf("%s%s\n", with_answers ? "      abstained" : "", cli_plain());
    for (size_t k = 0; k < s->classes; k++) print_class(s, k, with_answers);
    printf("  recall, precision: at least, whatever words are exchanged");
    if (with_answers) printf("; then the answers to the texts as they are (certified)");
    printf("\n");
}

/* ------------------------------------------------------------------ the run */

/* Bounds: no smoothing, no draws, and one radius, unless what words give adds up. */
static void print_bounds(const safer_summary *s, size_t radius)
{
    print_texts(s);
    print_clean(s, "the model itself");
    print_headline(s, s->additive && radius != SAFER_ALL ? "at the asked radius" : "whatever words are exchanged");
    if (s->additive) print_radii(s);
    print_classes(s);
    printf("\n");
    print_trivial(s);
    printf(NAME "%.2f s", "time", s->seconds);
    if (s->seconds > 0 && !s->resumed) printf(", %s texts/s", cli_count((uint64_t)((double)s->texts / s->seconds)));
    printf(", no draws\n");
}

static void print_votes(const safer_summary *s, const safer_certify_options *options)
{
    const int groups = options->method == SAFER_METHOD_GROUPS;
    print_texts(s);
    print_clean(s, "the base model itself");
    print_share("smoothed", s->smoothed_correct, s->labelled, "the smoothed classifier");
    print_headline(s, s->edits ? "at the asked radius and edits" : "at the asked radius");
    if (!is_about_stability(s))
        print_share("certified", s->certified, s->labelled, "answered or not: the paper's figure");
    print_radii(s);
    print_edits(s);
    print_classes(s);
    printf("\n" NAME "%s prediction%s without a clear vote\n", "abstained", cli_count(s->abstained),
           s->abstained == 1 ? "" : "s");
    if (s->exact)
        printf(NAME "%s whose %s were all asked: no sampling error%s\n", "exact", cli_texts(s->exact),
               groups ? "groups" : "draws", s->remote ? ", if the model is a function of the text" : "");
    print_trivial(s);
    printf(NAME "%s (%.1f per text) and %s of the base model\n", "queries", cli_count(s->queries),
           s->texts ? (double)s->queries / (double)s->texts : 0.0, cli_count(s->base_queries));
    printf(NAME "%.2f s", "time", s->seconds);
    if (s->seconds > 0 && !s->resumed) printf(", %s queries/s", cli_count((uint64_t)((double)s->queries / s->seconds)));
    printf(", seed %llu\n", (unsigned long long)options->seed);
}

void cli_summary_print(const safer_summary *s, const safer_certify_options *options)
{
    cli_caution_print(s);
    if (options->method == SAFER_METHOD_IBP)
        print_bounds(s, options->radius);
    else
        print_votes(s, options);
}
