/* Certifies your own classifier: any function from texts to classes.
 *
 *     cc certify.c $(pkg-config --cflags --libs safer) -o certify
 *     ./certify words.lex "A wonderful film." "The plot was dull."
 *
 * words.lex comes from safer lexicon; each text is one argument. */
#include <safer.h>

#include <stdio.h>
#include <string.h>

/* The classifier: more praise than blame? Called with batches; text i has lengths[i] bytes. */
static int classify(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    static const char *const praise[] = {"good", "wonderful", "loved", "fine", "superb"};
    static const char *const blame[] = {"bad", "dull", "boring", "awful", "poor"};
    (void)context, (void)lengths;
    for (size_t i = 0; i < count; i++) {
        int sum = 0;
        for (size_t k = 0; k < 5; k++)
            sum += (strstr(texts[i], praise[k]) != NULL) - (strstr(texts[i], blame[k]) != NULL);
        labels[i] = sum > 0;
    }
    return 0; /* nonzero: stop */
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"negative", "positive"};
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    safer_model *model = NULL;
    safer_workspace *workspace = NULL;
    safer_remote_options how = safer_remote_options_default();
    safer_certify_options options = safer_certify_options_default();
    how.labels = names;
    how.label_count = 2;
    safer_status status = argc > 1 ? safer_lexicon_open(&lexicon, argv[1], &error) : SAFER_OK;
    if (status == SAFER_OK) status = safer_model_from_callback(&model, classify, NULL, &how, &error);
    for (int i = 2; i < argc && status == SAFER_OK; i++) {
        safer_certificate c;
        status = safer_certify_text(&c, &workspace, model, lexicon, argv[i], strlen(argv[i]), -1, &options, &error);
        if (status != SAFER_OK) break;
        printf("%s: ", c.abstained ? "abstained" : names[c.prediction]);
        if (c.certified)
            printf("no substitution of its %zu words with synonyms changes that", c.slots);
        else
            printf("certified against %zu changed words", c.radius);
        printf(" (%llu queries%s)\n", (unsigned long long)c.queries,
               c.exact ? ", exact if it is a function of the text" : "");
    }
    if (status != SAFER_OK) fprintf(stderr, "certify: %s\n", error.message);
    safer_workspace_free(workspace);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    return status == SAFER_OK ? 0 : 1;
}
