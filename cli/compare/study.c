/* Doing what a configuration asks for: lexicons, models, certificates and attacks, cell by cell, each file once.
 *
 * Whether a file is there already, made with the same, is for the folder to say (folder.c). Cells of one data
 * set follow each other in a configuration, so that its texts are loaded once. What users need to know of it
 * stands in docs/compare.md. */
#define _GNU_SOURCE
#include "compare/compare.h"

#include <string.h>
#include <unistd.h>

typedef struct study {
    cmp_config *config;
    cmp_folder *folder;
    safer_crew *crew; /* NULL: this process is alone */

    /* The data set at hand. */
    const char *data;    /* its name; NULL: none yet */
    safer_status status; /* of loading it, */
    safer_error error;   /* which all its cells share */
    safer_data *train, *dev, *test;
    safer_lexicon *lexicon;
    char lexicon_path[4096];

    const char *place; /* "[2/8] imdb cnn ours" */
} study;

/* A file is finished, or interrupted: what was done is noted either way. */
static safer_status finish(study *s, const char *file, double start, safer_status status, safer_error *error)
{
    safer_error noting = {0};
    safer_status noted = cmp_folder_end(s->folder, file, cli_now() - start, status == SAFER_OK, &noting);
    if (status == SAFER_OK && noted != SAFER_OK) *error = noting;
    return status == SAFER_OK ? noted : status;
}

/* ------------------------------------------------------------- the data set */

static void drop_data(study *s)
{
    safer_data_free(s->train);
    safer_data_free(s->dev);
    safer_data_free(s->test);
    safer_lexicon_free(s->lexicon);
    s->train = s->dev = s->test = NULL;
    s->lexicon = NULL;
}

static safer_status load_texts(safer_data **out, cli_data *d, const study *s, const safer_data *labels_of,
                               safer_error *error)
{
    d->options.labels_of = labels_of;
    return cli_data_try(out, d, s->config->seed, error);
}

static safer_status check_labels(const safer_data *data, const char *path, safer_error *error)
{
    if (!safer_data_size(data)) return cli_error(error, SAFER_INPUT, "%.800s has no texts", path);
    for (size_t i = 0; i < safer_data_size(data); i++)
        if (safer_data_row(data, i).label < 0)
            return cli_error(error, SAFER_INPUT, "%.800s, text %zu has no label; accuracies need one", path, i + 1);
    return SAFER_OK;
}

/* Keeps a lexicon that was made, and goes on with the file: records name it as they do when the study is continued. */
static safer_status keep_lexicon(safer_lexicon **lexicon, const char *path, safer_error *error)
{
    safer_status status = safer_lexicon_save(*lexicon, path, error);
    if (status != SAFER_OK) return status;
    safer_lexicon_free(*lexicon);
    *lexicon = NULL;
    return safer_lexicon_open(lexicon, path, error);
}

/* The lexicon of a data set: a ready one, or one that is made once and kept. */
static safer_status open_lexicon(study *s, cmp_corpus *corpus, json_t *given, safer_error *error)
{
    char name[80], file[96], path[4096];
    int done;
    snprintf(s->lexicon_path, sizeof s->lexicon_path, "%s", corpus->lexicon ? corpus->lexicon : "");
    if (corpus->lexicon) return safer_lexicon_open(&s->lexicon, corpus->lexicon, error);
    cmp_file_name(name, sizeof name, s->data);
    snprintf(file, sizeof file, "%s.lex", name);
    cmp_folder_file(path, sizeof path, s->folder, file);
    snprintf(s->lexicon_path, sizeof s->lexicon_path, "%s", path);
    safer_status status = cmp_folder_begin(s->folder, file, given, &done, error);
    if (status != SAFER_OK) return status;
    if (done) return safer_lexicon_open(&s->lexicon, path, error);
    cli_say("%s: making the lexicon", s->place);
    const double start = cli_now();
    status = corpus->imports ? safer_lexicon_import(&s->lexicon, &corpus->build.options, NULL, error)
                             : safer_lexicon_build(&s->lexicon, &corpus->build.options, NULL, error);
    if (status == SAFER_OK) status = keep_lexicon(&s->lexicon, path, error);
    return finish(s, file, start, status, error);
}

/* Makes a data set the one at hand. A failure is remembered for its other cells. */
static safer_status take_data(study *s, const char *data, safer_error *error)
{
    cmp_corpus corpus = {0};
    json_t *given = NULL;
    if (s->data && strcmp(s->data, data) == 0) {
        *error = s->error;
        return s->status;
    }
    drop_data(s);
    s->data = data;
    safer_status status = cmp_corpus_read(&corpus, s->config, data, &given, error);
    if (status == SAFER_OK && corpus.train.path) status = load_texts(&s->train, &corpus.train, s, NULL, error);
    if (status == SAFER_OK && corpus.dev.path) status = load_texts(&s->dev, &corpus.dev, s, s->train, error);
    if (status == SAFER_OK) status = load_texts(&s->test, &corpus.test, s, NULL, error);
    if (status == SAFER_OK) status = check_labels(s->test, corpus.test.path, error);
    if (status == SAFER_OK) status = open_lexicon(s, &corpus, given, error);
    json_decref(given);
    cmp_corpus_free(&corpus);
    s->status = status;
    s->error = *error;
    return status;
}

/* ----------------------------------------------------------------- a cell */

typedef struct work {
    study *study;
    cmp_cell *cell;
    cmp_setup setup;
    safer_lexicon *smoothing; /* with the cell's kernel; NULL: it has none */
    json_t *model_with;       /* all that the model depends on */
    safer_model *model;       /* NULL until it is needed */
    char model_path[4096], kernel_path[4096];
} work;

static const safer_lexicon *lexicon_of(const work *w) { return w->smoothing ? w->smoothing : w->study->lexicon; }

static json_t *lexicon_digest(const safer_lexicon *lexicon) { return json_string(safer_lexicon_sha256(lexicon)); }

/* The lexicon with the cell's kernel, kept beside the records that speak of it. */
static safer_status take_kernel(work *w, safer_error *error)
{
    study *s = w->study;
    char data[80], kernel[80], file[200], *path = w->kernel_path;
    int done;
    if (!w->setup.kernel) return SAFER_OK;
    cmp_file_name(data, sizeof data, w->cell->data);
    cmp_file_name(kernel, sizeof kernel, w->setup.kernel);
    snprintf(file, sizeof file, "%s.%s.lex", data, kernel);
    cmp_folder_file(path, sizeof w->kernel_path, s->folder, file);
    json_t *with = json_pack("{s:o, s:s}", "lexicon", lexicon_digest(s->lexicon), "kernel", w->setup.kernel);
    safer_status status = cmp_folder_begin(s->folder, file, with, &done, error);
    json_decref(with);
    if (status != SAFER_OK) return status;
    if (done) return safer_lexicon_open(&w->smoothing, path, error);
    const double start = cli_now();
    status = safer_lexicon_with_kernel(&w->smoothing, s->lexicon, w->setup.kernel, cli_settings()->threads, error);
    if (status == SAFER_OK) status = keep_lexicon(&w->smoothing, path, error);
    return finish(s, file, start, status, error);
}

/* Makes the file of the model. One that is there is whole: the run ended before it could be noted, and perhaps before
 * its checkpoint was removed. */
static safer_status make_model(const work *w, const char *file, safer_error *error)
{
    if (access(w->model_path, F_OK) == 0) {
        cmp_folder_drop_checkpoint(w->study->folder, file);
        return SAFER_OK;
    }
    cli_say("%s: training", w->study->place);
    return safer_train(w->model_path, &w->setup.training.options, NULL, error);
}

/* Trains the model, unless this or an earlier run has one that was trained in the same way. */
static safer_status train(work *w, safer_error *error)
{
    study *s = w->study;
    safer_train_options *o = &w->setup.training.options;
    char file[300];
    int done;
    o->train = s->train;
    o->dev = s->dev;
    const int looks = o->defense.kind || o->arch == SAFER_ARCH_CONTEXT; /* at synonyms, without a draw */
    o->lexicon = w->smoothing ? w->smoothing : looks ? s->lexicon : NULL;
    w->model_with = json_pack("{s:o, s:o, s:o, s:o, s:I}", "options", w->model_with, "train",
                              json_string(safer_data_sha256(s->train)), "dev",
                              s->dev ? json_string(safer_data_sha256(s->dev)) : json_null(), "lexicon",
                              o->lexicon ? lexicon_digest(o->lexicon) : json_null(), "seed", (json_int_t)o->seed);
    snprintf(file, sizeof file, "%s.safetensors", w->cell->name);
    const char *same = cmp_folder_find(s->folder, w->model_with);
    if (same) {
        cmp_folder_file(w->model_path, sizeof w->model_path, s->folder, same);
        w->cell->train_seconds = cmp_folder_seconds(s->folder, same);
        return SAFER_OK;
    }
    cmp_folder_file(w->model_path, sizeof w->model_path, s->folder, file);
    safer_status status = cmp_folder_begin(s->folder, file, w->model_with, &done, error);
    if (status != SAFER_OK) return status;
    const double start = cli_now();
    status = finish(s, file, start, make_model(w, file, error), error);
    w->cell->train_seconds = cmp_folder_seconds(s->folder, file);
    return status;
}

static safer_status open_model(work *w, safer_error *error)
{
    cli_model_flags *m = &w->setup.model;
    if (w->model) return SAFER_OK;
    if (!w->setup.is_ready) {
        m->path = w->model_path;
        m->arithmetic = w->setup.training.precision;
        m->device = w->setup.training.options.device;
    }
    return cli_model_try(&w->model, m, w->study->test, error);
}

/* Tells the helpers of a crew what comes next: helper.c reads it. */
static safer_status announce(const work *w, const char *attack, safer_error *error)
{
    if (!w->study->crew) return SAFER_OK;
    json_t *step = json_pack("{s:s, s:s, s:s, s:s, s:s}", "data", w->cell->data, "model", w->cell->model, "defense",
                             w->cell->defense, "file", w->setup.is_ready ? "" : w->model_path, "lexicon",
                             w->smoothing ? w->kernel_path : w->study->lexicon_path);
    if (attack) cli_set(step, "attack", json_string(attack));
    char *text = cli_json_text(step, JSON_COMPACT);
    json_decref(step);
    const safer_status status = safer_crew_tell(w->study->crew, text, error);
    free(text);
    return status;
}

static json_t *radius_json(size_t radius)
{
    return radius == SAFER_ALL ? json_string("all") : json_integer((json_int_t)radius);
}

/* Into the object: what draws delete, or how many groups vote; nothing where neither is asked for. */
static void set_deletion(json_t *with, safer_deletion d)
{
    if (d.groups)
        cli_set(with, "groups", json_integer((json_int_t)d.groups));
    else if (cli_deletes(d))
        cli_set(with, "delete", cli_deletion_json(d));
}

/* All that the records of a certificate depend on. */
static json_t *certify_with(const work *w, const safer_certify_options *o)
{
    const safer_data *texts = w->study->test;
    json_t *with = json_pack("{s:O, s:o, s:o, s:o, s:s}", "model", w->model_with, "lexicon",
                             lexicon_digest(lexicon_of(w)), "data", json_string(safer_data_sha256(texts)), "radius",
                             radius_json(o->radius), "method", safer_method_name(o->method));
    if (o->method != SAFER_METHOD_IBP) cli_set(with, "seed", json_integer((json_int_t)o->seed));
    if (o->method != SAFER_METHOD_IBP && o->method != SAFER_METHOD_GROUPS)
        cli_extend(with, json_pack("{s:I, s:I, s:f, s:f}", "n", (json_int_t)o->n, "n0",
                                   (json_int_t)(o->n0 ? o->n0 : o->n), "delta", o->delta, "alpha", o->alpha));
    if (cli_deletes(o->deletion))
        cli_extend(with, json_pack("{s:I, s:s}", "edits", (json_int_t)o->edits, "edit-kind",
                                   safer_edit_kind_name(o->edit_kind)));
    set_deletion(with, o->deletion);
    return with;
}

static safer_status certify(work *w, safer_error *error)
{
    study *s = w->study;
    const safer_certify_options *o = &w->setup.certify;
    char file[300], path[4096];
    int done;
    snprintf(file, sizeof file, "%s.jsonl", w->cell->name);
    cmp_folder_file(path, sizeof path, s->folder, file);
    json_t *with = certify_with(w, o);
    safer_status status = cmp_folder_begin(s->folder, file, with, &done, error);
    json_decref(with);
    if (status == SAFER_OK && !done) status = announce(w, NULL, error);
    if (status == SAFER_OK && !done) status = open_model(w, error);
    if (status == SAFER_OK && !done) {
        cli_say("%s: certifying", s->place);
        const double start = cli_now();
        status = finish(s, file, start, safer_certify(NULL, path, 1, w->model, lexicon_of(w), s->test, o, error),
                        error);
    }
    if (status == SAFER_OK) status = safer_run_read(&w->cell->certified, path, error);
    w->cell->certify_seconds = cmp_folder_seconds(s->folder, file);
    return status;
}

/* All that an attack's records depend on. */
static json_t *attack_with(const work *w, const safer_attack_options *o, const safer_data *texts)
{
    json_t *with = json_pack("{s:O, s:o, s:o, s:o, s:s, s:b, s:I, s:f, s:I, s:i, s:i, s:i, s:I}", "model",
                             w->model_with, "lexicon", lexicon_digest(lexicon_of(w)), "data",
                             json_string(safer_data_sha256(texts)), "radius", radius_json(o->radius), "method",
                             safer_attack_method_name(o->method), "smoothed", o->smoothed, "n", (json_int_t)o->n,
                             "alpha", o->alpha, "max-queries", (json_int_t)o->max_queries, "population", o->population,
                             "iterations", o->iterations, "tries", o->tries, "seed", (json_int_t)o->seed);
    if (o->method == SAFER_ATTACK_INSERT || o->method == SAFER_ATTACK_OUTOFLIST)
        cli_set(with, "words", json_integer((json_int_t)o->words));
    set_deletion(with, o->deletion);
    return with;
}

/* Attacks what would be deployed: the smoothed classifier where there is a kernel. */
static safer_status attack(work *w, size_t which, safer_error *error)
{
    study *s = w->study;
    cmp_attack a;
    safer_data *own = NULL;
    safer_attack_summary summary;
    char name[80], file[400], path[4096];
    int done = 0;
    cmp_file_name(name, sizeof name, w->cell->attacks[which]);
    snprintf(file, sizeof file, "%s.%s.jsonl", w->cell->name, name);
    cmp_folder_file(path, sizeof path, s->folder, file);
    safer_status status = cmp_attack_read(&a, s->config, w->cell->data, w->cell->attacks[which], error);
    if (status == SAFER_OK && a.has_own_texts) status = load_texts(&own, &a.data, s, NULL, error);
    if (status == SAFER_OK && own) status = check_labels(own, a.data.path, error);
    const safer_data *texts = own ? own : s->test;
    if (status == SAFER_OK) {
        a.options.smoothed = w->smoothing != NULL;
        a.options.deletion = w->setup.certify.deletion;
        a.options.crew = s->crew;
        json_t *with = attack_with(w, &a.options, texts);
        status = cmp_folder_begin(s->folder, file, with, &done, error);
        json_decref(with);
    }
    if (status == SAFER_OK && !done) status = announce(w, w->cell->attacks[which], error);
    if (status == SAFER_OK && !done) status = open_model(w, error);
    if (status == SAFER_OK && !done) {
        cli_say("%s: attacking by %s", s->place, w->cell->attacks[which]);
        const double start = cli_now();
        status = finish(s, file, start,
                        safer_attack(&summary, path, 1, w->model, lexicon_of(w), texts, &a.options, error), error);
    }
    if (status == SAFER_OK) status = safer_run_read(&w->cell->attacked[which], path, error);
    w->cell->attack_seconds[which] = cmp_folder_seconds(s->folder, file);
    safer_data_free(own);
    return status;
}

static safer_status run_cell(study *s, cmp_cell *cell, safer_error *error)
{
    work w = {.study = s, .cell = cell};
    safer_status status = take_data(s, cell->data, error);
    if (status == SAFER_OK) status = cmp_setup_read(&w.setup, s->config, cell, &w.model_with, error);
    w.setup.certify.crew = s->crew;
    if (status == SAFER_OK && s->crew && w.setup.is_ready && cli_is_remote(w.setup.model.path) && !w.setup.model.labels)
        status = cli_error(error, SAFER_INVALID,
                           "models.%.60s: \"labels\" are needed with --mpi: only rank 0 reads data", cell->model);
    if (status == SAFER_OK && w.setup.is_ready && w.setup.training.defense)
        status = cli_error(error, SAFER_INVALID,
                           "a ready model cannot be trained by %.60s; use \"method\": \"ibp\" alone",
                           w.setup.training.defense);
    if (status == SAFER_OK) status = take_kernel(&w, error);
    if (status == SAFER_OK && !w.setup.is_ready) status = train(&w, error);
    if (status == SAFER_OK && w.setup.certifies) status = certify(&w, error);
    for (size_t i = 0; i < cell->attack_count && status == SAFER_OK; i++) status = attack(&w, i, error);
    safer_model_free(w.model);
    safer_lexicon_free(w.smoothing);
    json_decref(w.model_with);
    return status;
}

/* -------------------------------------------------------------------- cells */

/* After a cell has failed. A crew of which a rank is lost, or cannot go on, does nothing more; where this process was
 * told to stop, that may be why. */
static safer_status look_at_crew(const study *s, safer_status status, safer_error *error)
{
    if (!s->crew) return SAFER_OK;
    return safer_crew_check(s->crew, status == SAFER_CANCELLED, error);
}

int cmp_study_run(cmp_config *config, cmp_folder *folder, int all, safer_crew *crew)
{
    study s = {.config = config, .folder = folder, .crew = crew};
    cli_interrupt_again("the same command resumes from here");
    safer_error ended = {0};
    int code = CLI_DONE;
    for (size_t i = 0; i < config->cell_count; i++) {
        cmp_cell *cell = &config->cells[i];
        char place[300];
        snprintf(place, sizeof place, "[%zu/%zu] %s %s %s", i + 1, config->cell_count, cell->data, cell->model,
                 cell->defense);
        s.place = place;
        safer_status status = run_cell(&s, cell, &cell->error);
        cell->error.status = status;
        if (status == SAFER_OK) continue;
        const safer_status left = look_at_crew(&s, status, &ended);
        if (left != SAFER_OK) {
            cell->error = ended;
            status = cell->error.status = left;
        }
        if (!cli_crew_told(&cell->error)) cli_complain("%s: %s", place, cli_message(&cell->error));
        if (code == CLI_DONE || status == SAFER_CANCELLED) code = cli_code(status);
        if (all || left != SAFER_OK || status == SAFER_CANCELLED) break;
    }
    if (crew && safer_crew_check(crew, 0, NULL) == SAFER_OK && code != CLI_INTERRUPTED)
        (void)safer_crew_tell(crew, "{}", NULL);
    drop_data(&s);
    return code;
}
