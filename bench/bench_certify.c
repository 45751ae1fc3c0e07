/* Speed of certification: draws, and whole runs on one and two threads.
 *
 * The model is a stand-in that costs about as much as a small one, so that what is
 * measured is the certifier itself: reading slots, drawing, rendering, voting, deciding. */
#define _GNU_SOURCE
#include "bench.h"

#include "base/hash.h"
#include "base/progress.h"
#include "certify/certificate.h"

/* Says 0 for nine draws of ten, by a hash of the rendered text. */
static safer_status classify(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *scratch, safer_error *error)
{
    (void)model, (void)scores, (void)scratch, (void)error;
    for (size_t i = 0; i < count; i++) labels[i] = sf_hash(texts[i].bytes, texts[i].length, 0) % 10 == 0;
    return SAFER_OK;
}

static const sf_model_class stand_in = {.arch = "stand-in", .classify = classify};

/* Groups of 50 synonyms and texts of 250 words, 43% of them with synonyms. */
static void make_files(const char *table_path, const char *data_path)
{
    FILE *table = fopen(table_path, "w"), *data = fopen(data_path, "w");
    check(table && data, "temporary files");
    uint64_t state = 1;
    for (int g = 0; g < 40; g++) {
        for (int w = 0; w < 50; w++)
            fprintf(table, w == 0 ? "w%c%caa\t" : " w%c%c%c%c", 'a' + g % 26, 'a' + g / 26, 'a' + w % 26, 'a' + w / 26);
        fprintf(table, "\n");
    }
    for (int t = 0; t < 400; t++) {
        fprintf(data, "%d\t%d\t", t, t % 2);
        for (int k = 0; k < 250; k++) {
            unsigned r = bench_bits(&state) >> 8;
            if (r % 100 < 43)
                fprintf(data, "w%c%c%c%c ", 'a' + (int)(r / 100 % 26), 'a' + (int)(r / 2600 % 2),
                        'a' + (int)(r / 5200 % 25), 'a');
            else
                fprintf(data, "plain%c ", 'a' + (int)(r / 100 % 26));
        }
        fprintf(data, "\n");
    }
    fclose(table);
    fclose(data);
}

int main(int argc, char **argv)
{
    int json = bench_option(argc, argv, "--json");
    const char *table = bench_path("t.tsv"), *data_path = bench_path("d.tsv");
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    safer_data *data = NULL;
    make_files(table, data_path);
    safer_lexicon_options options = safer_lexicon_options_default();
    options.table = table;
    options.kernel = "component";
    check(safer_lexicon_import(&lexicon, &options, NULL, &error) == SAFER_OK, error.message);
    check(safer_data_load(&data, data_path, NULL, &error) == SAFER_OK, error.message);

    /* Draws alone. */
    sf_slots slots = {0};
    sf_sampler sampler = {0};
    safer_row row = safer_data_row(data, 0);
    check(sf_slots_read(&slots, lexicon, row.text, row.text_length, &error) == SAFER_OK, error.message);
    check(sf_sampler_prepare(&sampler, &slots, lexicon, &error) == SAFER_OK, error.message);
    uint32_t *draws = malloc(256 * slots.slot_count * sizeof *draws);
    check(draws != NULL, "out of memory");
    sf_stream stream = sf_stream_of(1, slots.hash, SF_STAGE_CERTIFICATION);
    double best = 1e9;
    for (int round = 0; round < 20; round++) {
        double start = sf_seconds();
        for (int i = 0; i < 8; i++) sf_sampler_draw(draws, &sampler, stream, (uint64_t)i * 256, 256);
        double took = (sf_seconds() - start) / (8 * 256.0 * (double)slots.slot_count);
        if (took < best) best = took;
    }
    free(draws);
    sf_sampler_free(&sampler);

    /* Whole runs; the records are the same, so the work is. */
    char *names[2] = {(char[]){"0"}, (char[]){"1"}};
    safer_model model = {.class = &stand_in, .classes = 2, .labels = names};
    safer_certify_options certify = safer_certify_options_default();
    safer_summary one = {0}, two = {0};
    double seconds[2] = {1e9, 1e9};
    certify.method = SAFER_METHOD_HOEFFDING;
    certify.n = 2000;
    for (int round = 0; round < 3; round++)
        for (int threads = 1; threads <= 2; threads++) {
            certify.threads = threads;
            safer_summary *s = threads == 1 ? &one : &two;
            safer_summary_free(s);
            check(safer_certify(s, NULL, 0, &model, lexicon, data, &certify, &error) == SAFER_OK, error.message);
            if (s->seconds < seconds[threads - 1]) seconds[threads - 1] = s->seconds;
        }
    check(one.certified == two.certified && one.queries == two.queries, "threads change the result");
    double scaling = seconds[0] / seconds[1], rate = (double)two.queries / seconds[1];
    if (json) {
        json_t *root = json_pack("{s:f, s:f, s:f}", "draw_ns_per_slot", best * 1e9, "rendered_queries_per_second", rate,
                                 "scaling_2_threads", scaling);
        bench_print_json(root);
    } else {
        printf("draws         %.2f ns per slot (%zu slots)\n", best * 1e9, slots.slot_count);
        printf("rendered      %.0f texts/s of 250 words on two threads\n", rate);
        printf("scaling       %.2fx from one thread to two\n", scaling);
    }
    safer_summary_free(&one);
    safer_summary_free(&two);
    sf_slots_free(&slots);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    return 0;
}
