/* The results of a run, for people and for programs. */
#include "results.h"

const char *cli_interval(size_t part, size_t whole)
{
    static char text[48];
    double low = 0, high = 1;
    if (whole) safer_interval(part, whole, &low, &high);
    snprintf(text, sizeof text, "95%%: %.2f to %.2f", 100 * low, 100 * high);
    return text;
}

static double share(size_t part, size_t whole) { return whole ? (double)part / (double)whole : 0.0; }

json_t *cli_summary_json(const safer_summary *s, uint64_t seed)
{
    json_t *at = json_object();
    for (size_t r = 0; r < SAFER_RADII; r++) {
        char name[24] = "all";
        size_t radius = safer_reported_radius(r);
        if (radius != SAFER_ALL) snprintf(name, sizeof name, "%zu", radius);
        json_object_set_new(at, name, json_real(share(s->certified_at[r], s->texts)));
    }
    double low = 0, high = 1;
    if (s->texts) safer_interval(s->certified, s->texts, &low, &high);
#define N(x) (json_int_t)(x)
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:[f, f], s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:I, s:I}",
                     "examples", N(s->texts), "labelled", N(s->labelled), "clean_accuracy",
                     share(s->base_correct, s->labelled), "smoothed_accuracy", share(s->smoothed_correct, s->labelled),
                     "certified_accuracy", share(s->certified, s->texts), "certified_interval", low, high,
                     "certified_at", at, "abstained", N(s->abstained), "exact", N(s->exact), "without_slots",
                     N(s->without_slots), "queries", N(s->queries), "base_queries", N(s->base_queries),
                     "queries_per_second",
                     s->seconds > 0 && !s->resumed ? json_real((double)s->queries / s->seconds) : json_null(),
                     "seconds", s->seconds, "seed", N(seed), "resumed", N(s->resumed));
#undef N
}

/* Bounds: no smoothing, no draws, and one radius. */
static void print_bounds(const safer_summary *s)
{
    printf("texts        %s", cli_count(s->texts));
    if (s->resumed) printf(" (%s from an earlier run)", cli_count(s->resumed));
    if (s->labelled) printf("\nclean        %6.2f%%  the model itself", 100 * share(s->base_correct, s->labelled));
    printf("\n%scertified    %6s%%%s  whatever words are exchanged (%s)\n\n", cli_bold(),
           cli_percent(s->certified, s->texts), cli_plain(), cli_interval(s->certified, s->texts));
    if (s->without_slots) printf("trivial      %s texts in which no word can change\n", cli_count(s->without_slots));
    printf("time         %.2f s", s->seconds);
    if (s->seconds > 0 && !s->resumed) printf(", %s texts/s", cli_count((uint64_t)((double)s->texts / s->seconds)));
    printf(", no draws\n");
}

void cli_summary_print(const safer_summary *s, const safer_certify_options *options)
{
    if (options->method == SAFER_METHOD_IBP) {
        print_bounds(s);
        return;
    }
    printf("texts        %s", cli_count(s->texts));
    if (s->resumed) printf(" (%s from an earlier run)", cli_count(s->resumed));
    if (s->labelled)
        printf("\nclean        %6.2f%%  the base model itself\nsmoothed     %6.2f%%  the smoothed classifier",
               100 * share(s->base_correct, s->labelled), 100 * share(s->smoothed_correct, s->labelled));
    printf("\n%scertified    %6s%%%s  at the asked radius (%s)\n\n%s  words changed   certified%s\n", cli_bold(),
           cli_percent(s->certified, s->texts), cli_plain(), cli_interval(s->certified, s->texts), cli_bold(),
           cli_plain());
    for (size_t r = 0; r < SAFER_RADII; r++) {
        size_t radius = safer_reported_radius(r);
        char name[24] = "all";
        if (radius != SAFER_ALL) snprintf(name, sizeof name, "%zu", radius);
        printf("  %13s   %8s%%\n", name, cli_percent(s->certified_at[r], s->texts));
    }
    printf("\nabstained    %s prediction%s without a clear vote\n", cli_count(s->abstained),
           s->abstained == 1 ? "" : "s");
    if (s->exact) printf("exact        %s certificates without sampling error\n", cli_count(s->exact));
    if (s->without_slots) printf("trivial      %s texts in which no word can change\n", cli_count(s->without_slots));
    printf("queries      %s (%.1f per text) and %s of the base model\n", cli_count(s->queries),
           s->texts ? (double)s->queries / (double)s->texts : 0.0, cli_count(s->base_queries));
    printf("time         %.2f s", s->seconds);
    if (s->seconds > 0 && !s->resumed) printf(", %s queries/s", cli_count((uint64_t)((double)s->queries / s->seconds)));
    printf(", seed %llu\n", (unsigned long long)options->seed);
}
