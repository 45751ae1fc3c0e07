/* A helper of safer compare --mpi: does its share of the certificates and attacks of which rank 0 tells.
 *
 * It reads the configuration, as rank 0 does, and no data. Rank 0 tells of each certificate and attack before it begins
 * (study.c): the names of data, model and defence, and the files of lexicon and model, which rank 0 made; the helper
 * opens these, so they must be where it looks too. Whether they, and all options, are those of rank 0, is compared when
 * the run begins. */
#include "compare/compare.h"

#include <string.h>

typedef struct helper {
    cmp_config *config;
    safer_crew *crew;
    const cmp_cell *cell; /* whose model and lexicon are open; NULL: none */
    cmp_setup setup;
    safer_model *model;
    safer_lexicon *lexicon;
} helper;

static void drop_cell(helper *h)
{
    safer_model_free(h->model);
    safer_lexicon_free(h->lexicon);
    h->model = NULL;
    h->lexicon = NULL;
    h->cell = NULL;
}

static const char *text_of(const json_t *step, const char *name)
{
    const char *text = json_string_value(json_object_get(step, name));
    return text ? text : "";
}

static const cmp_cell *find_cell(const cmp_config *config, const json_t *step)
{
    for (size_t i = 0; i < config->cell_count; i++) {
        const cmp_cell *cell = &config->cells[i];
        if (strcmp(cell->data, text_of(step, "data")) == 0 && strcmp(cell->model, text_of(step, "model")) == 0 &&
            strcmp(cell->defense, text_of(step, "defense")) == 0)
            return cell;
    }
    return NULL;
}

/* What rank 0 made is not found where the folder is not a common one. */
static void say_common(safer_error *error)
{
    const size_t length = strlen(error->message);
    snprintf(error->message + length, sizeof error->message - length,
             "; with --mpi all ranks must see the folder, and the files that the configuration names");
}

/* Opens the model and the lexicon of a step, unless it is of the same cell as the last. */
static safer_status take_cell(helper *h, const json_t *step, safer_error *error)
{
    const cmp_cell *cell = find_cell(h->config, step);
    const char *file = text_of(step, "file");
    if (!cell)
        return cli_error(error, SAFER_INPUT, "its configuration has no %.60s %.60s %.60s, which that of rank 0 has",
                         text_of(step, "data"), text_of(step, "model"), text_of(step, "defense"));
    if (cell == h->cell) return SAFER_OK;
    drop_cell(h);
    safer_status status = cmp_setup_read(&h->setup, h->config, cell, NULL, error);
    if (status != SAFER_OK) return status;
    cli_model_flags *m = &h->setup.model;
    if (*file) {
        m->path = file;
        m->arithmetic = h->setup.training.precision;
        m->device = h->setup.training.options.device;
    }
    status = safer_lexicon_open(&h->lexicon, text_of(step, "lexicon"), error);
    if (status == SAFER_OK) status = cli_model_try(&h->model, m, NULL, error);
    if (status == SAFER_OK)
        h->cell = cell;
    else
        say_common(error);
    return status;
}

static safer_status do_attack(helper *h, const char *name, safer_error *error)
{
    cmp_attack attack;
    safer_attack_summary nothing;
    safer_status status = cmp_attack_read(&attack, h->config, h->cell->data, name, error);
    if (status != SAFER_OK) return status;
    attack.options.smoothed = h->setup.kernel != NULL;
    attack.options.deletion = h->setup.certify.deletion;
    attack.options.crew = h->crew;
    return safer_attack(&nothing, NULL, 0, h->model, h->lexicon, NULL, &attack.options, error);
}

static safer_status do_step(helper *h, const json_t *step, safer_error *error)
{
    const char *attack = text_of(step, "attack");
    safer_status status = take_cell(h, step, error);
    if (status != SAFER_OK) return status;
    if (*attack) return do_attack(h, attack, error);
    h->setup.certify.crew = h->crew;
    return safer_certify(NULL, NULL, 0, h->model, h->lexicon, NULL, &h->setup.certify, error);
}

int cmp_help(cmp_config *config, safer_crew *crew)
{
    helper h = {.config = config, .crew = crew};
    safer_error error = {0};
    safer_status status;
    json_t *step = NULL;
    char *text = malloc(CMP_STEP_SIZE);
    if (!text) cli_no_memory();
    while ((status = safer_crew_hear(crew, text, CMP_STEP_SIZE, cli_progress(), &error)) == SAFER_OK) {
        json_decref(step);
        step = cli_json_read(text);
        if (!json_object_size(step)) break; /* all is done */
        status = do_step(&h, step, &error);
        /* Rank 0 may have given up this one alone, and then tells of another. */
        if (status != SAFER_OK && (status != SAFER_CANCELLED || cli_interrupted())) break;
    }
    json_decref(step); /* in which the names of files are */
    drop_cell(&h);
    free(text);
    return status == SAFER_OK ? CLI_DONE : cli_fail(&error);
}
