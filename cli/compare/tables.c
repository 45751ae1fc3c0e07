/* The tables of safer compare: figures of every cell and tests of every two, as text, Markdown, JSON and CSV.
 * What they mean stands in docs/compare.md. */
#define _GNU_SOURCE
#include "compare/compare.h"
#include "results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- pairs */

static const safer_run *run_of(const cmp_cell *cell, const char *attack)
{
    for (size_t i = 0; attack && i < cell->attack_count; i++)
        if (strcmp(cell->attacks[i], attack) == 0) return cell->attacked[i];
    return attack ? NULL : cell->certified;
}

/* Whether a certificate of one cell is about the same edits as that of another. */
static int is_about_same(const cmp_cell *a, const cmp_cell *b)
{
    const safer_summary *x = safer_run_certified(a->certified), *y = safer_run_certified(b->certified);
    return x->edits == y->edits && x->edit_kind == y->edit_kind;
}

/* The pairs of one data set, by certificates about the same edits as those of `like` or, where it is NULL, by one
 * attack. */
static safer_status add_pairs(cmp_pairs *out, const cmp_config *config, const char *data, const char *attack,
                              const cmp_cell *like, safer_error *error)
{
    const size_t most = config->cell_count, pairs = most * (most - 1) / 2;
    const cmp_cell **cells = calloc(most, sizeof *cells);
    const safer_run **runs = calloc(most, sizeof *runs);
    safer_comparison *results = calloc(pairs + 1, sizeof *results);
    cmp_pair *items = realloc(out->items, (out->count + pairs + 1) * sizeof *items);
    size_t count = 0;
    if (!cells || !runs || !results || !items) cli_no_memory();
    out->items = items;
    for (size_t i = 0; i < most; i++) {
        const cmp_cell *cell = &config->cells[i];
        const safer_run *run = strcmp(cell->data, data) == 0 ? run_of(cell, attack) : NULL;
        if (!run || (like && !is_about_same(cell, like))) continue;
        cells[count] = cell;
        runs[count++] = run;
    }
    const safer_status status = safer_compare(results, runs, count, error);
    const size_t made = status == SAFER_OK && count ? count * (count - 1) / 2 : 0;
    for (size_t i = 0; i < made; i++) {
        cmp_pair *pair = &out->items[out->count++];
        pair->first = cells[results[i].first];
        pair->second = cells[results[i].second];
        pair->attack = attack;
        pair->result = results[i];
    }
    free(cells);
    free(runs);
    free(results);
    return status;
}

/* The pairs of one data set by certificates: cells whose certificates are about other edits are not compared. */
static safer_status add_certified(cmp_pairs *out, const cmp_config *config, const char *data, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < config->cell_count && status == SAFER_OK; i++) {
        const cmp_cell *cell = &config->cells[i];
        int seen = !cell->certified || strcmp(cell->data, data) != 0;
        for (size_t k = 0; k < i && !seen; k++) {
            const cmp_cell *other = &config->cells[k];
            seen = other->certified && strcmp(other->data, data) == 0 && is_about_same(other, cell);
        }
        if (!seen) status = add_pairs(out, config, data, NULL, cell, error);
    }
    return status;
}

safer_status cmp_pairs_make(cmp_pairs *out, const cmp_config *config, safer_error *error)
{
    const char *data, *attack;
    json_t *value, *ignored, *attacks = json_object_get(config->root, "attacks");
    safer_status status = SAFER_OK;
    json_object_foreach(json_object_get(config->root, "data"), data, value)
    {
        if (status == SAFER_OK) status = add_certified(out, config, data, error);
        json_object_foreach(attacks, attack, ignored) if (status == SAFER_OK)
            status = add_pairs(out, config, data, attack, NULL, error);
    }
    return status;
}

/* ------------------------------------------------------------------- figures */

/* A share of texts that came out of a run. */
typedef struct figure {
    size_t part, whole; /* whole 0: not measured */
} figure;

typedef struct figures {
    figure clean, smoothed, answered, certified; /* answered: certified and answered */
    figure held[CMP_ATTACKS];                    /* as in the cell's attacks */
    size_t texts;
    double queries; /* a text, of the certificate; NaN: none */
    double seconds; /* of everything */
} figures;

static figures figures_of(const cmp_cell *cell)
{
    figures f = {.queries = (double)NAN, .seconds = cell->train_seconds + cell->certify_seconds};
    const safer_summary *s = cell->certified ? safer_run_certified(cell->certified) : NULL;
    if (s) {
        f.clean = (figure){s->base_correct, s->labelled};
        f.answered = (figure){s->certified_answered, s->labelled};
        f.certified = (figure){s->certified, s->labelled};
        f.texts = s->texts;
        if (s->queries) f.smoothed = (figure){s->smoothed_correct, s->labelled};
        f.queries = s->texts ? (double)s->queries / (double)s->texts : 0;
    }
    for (size_t i = 0; i < cell->attack_count; i++) {
        const safer_attack_summary *a = cell->attacked[i] ? safer_run_attacked(cell->attacked[i]) : NULL;
        f.seconds += cell->attack_seconds[i];
        if (!a) continue;
        f.held[i] = (figure){a->texts - a->skipped - a->succeeded, a->texts};
        if (!s && !f.clean.whole)
            f.clean = (figure){a->texts - a->skipped, a->texts}; /* nothing is smoothed: the model itself */
        if (!f.texts) f.texts = a->texts;
    }
    return f;
}

/* What a cell's certificates are about beside synonyms: the summary of its run; NULL: no edits, or no cell. */
static const safer_summary *edits_of(const cmp_cell *cell)
{
    const safer_summary *s = cell && cell->certified ? safer_run_certified(cell->certified) : NULL;
    return s && s->edits ? s : NULL;
}

/* "2", or "2 replace" where an edit is not of any kind. */
static void write_edits(char *out, const cmp_cell *cell)
{
    const safer_summary *s = edits_of(cell);
    if (!s)
        strcpy(out, "-");
    else if (s->edit_kind == SAFER_EDITS_ANY)
        snprintf(out, 200, "%zu", s->edits);
    else
        snprintf(out, 200, "%zu %s", s->edits, safer_edit_kind_name(s->edit_kind));
}

static figure held_of(const cmp_cell *cell, const figures *f, const char *attack)
{
    for (size_t i = 0; i < cell->attack_count; i++)
        if (strcmp(cell->attacks[i], attack) == 0) return f->held[i];
    return (figure){0, 0};
}

/* ------------------------------------------------- a grid of words, two forms */

typedef struct grid {
    size_t columns, rows;
    size_t left;        /* columns aligned to the left: the first */
    char (*cells)[200]; /* (rows, columns); the first row is the head */
} grid;

static char *put(grid *g, size_t row, size_t column) { return g->cells[row * g->columns + column]; }

static grid grid_new(size_t rows, size_t columns, size_t left)
{
    grid g = {.columns = columns, .rows = rows, .left = left, .cells = calloc(rows * columns, sizeof *g.cells)};
    if (!g.cells) cli_no_memory();
    return g;
}

/* Takes out the columns that say nothing, which no left one does. */
static void drop_empty(grid *g)
{
    size_t kept = 0, columns = g->columns, *from = calloc(columns, sizeof *from);
    if (!from) cli_no_memory();
    for (size_t c = 0; c < columns; c++) {
        int says = 0;
        for (size_t r = 1; r < g->rows; r++) says |= strcmp(put(g, r, c), "-") != 0;
        if (says) from[kept++] = c;
    }
    for (size_t r = 0; r < g->rows; r++)
        for (size_t c = 0; c < kept; c++)
            memmove(g->cells[r * kept + c], g->cells[r * columns + from[c]], sizeof *g->cells);
    g->columns = kept;
    free(from);
}

static void print_text(FILE *out, const grid *g)
{
    for (size_t r = 0; r < g->rows; r++) {
        fputs(r == 0 ? cli_bold() : "", out);
        for (size_t c = 0; c < g->columns; c++) {
            size_t width = 0;
            for (size_t k = 0; k < g->rows; k++) {
                size_t length = strlen(put((grid *)(uintptr_t)g, k, c));
                if (length > width) width = length;
            }
            fprintf(out, c < g->left ? "%s%-*s" : "%s%*s", c ? "  " : "", (int)width, put((grid *)(uintptr_t)g, r, c));
        }
        fprintf(out, "%s\n", r == 0 ? cli_plain() : "");
    }
}

static void print_markdown(FILE *out, const grid *g)
{
    for (size_t r = 0; r < g->rows; r++) {
        for (size_t c = 0; c < g->columns; c++) fprintf(out, "| %s ", put((grid *)(uintptr_t)g, r, c));
        fputs("|\n", out);
        for (size_t c = 0; r == 0 && c < g->columns; c++) fputs(c < g->left ? "|---" : "|---:", out);
        if (r == 0) fputs("|\n", out);
    }
}

static void write_percent(char *out, figure f)
{
    if (f.whole)
        snprintf(out, 200, "%s", cli_percent(f.part, f.whole));
    else
        strcpy(out, "-");
}

static void write_interval(char *out, figure f)
{
    snprintf(out, 200, "%s", f.whole ? cli_interval(f.part, f.whole) : "-");
}

static grid cells_grid(const cmp_config *config)
{
    static const char *const heads[] = {"data",  "model",    "defense",  "texts",
                                        "edits", "clean",    "smoothed", "certified and answered",
                                        "95%",   "certified"};
    enum { FIXED = sizeof heads / sizeof *heads };
    json_t *attacks = json_object_get(config->root, "attacks"), *ignored;
    const char *attack;
    grid g = grid_new(config->cell_count + 1, FIXED + json_object_size(attacks) + 2, 3);
    for (size_t c = 0; c < FIXED; c++) strcpy(put(&g, 0, c), heads[c]);
    for (size_t i = 0; i < config->cell_count; i++) {
        const cmp_cell *cell = &config->cells[i];
        const figures f = figures_of(cell);
        const size_t r = i + 1;
        size_t c = FIXED;
        snprintf(put(&g, r, 0), 200, "%s", cell->data);
        snprintf(put(&g, r, 1), 200, "%s", cell->model);
        snprintf(put(&g, r, 2), 200, "%s", cell->defense);
        snprintf(put(&g, r, 3), 200, "%s", f.texts ? cli_count(f.texts) : "-");
        write_edits(put(&g, r, 4), cell);
        write_percent(put(&g, r, 5), f.clean);
        write_percent(put(&g, r, 6), f.smoothed);
        write_percent(put(&g, r, 7), f.answered);
        write_interval(put(&g, r, 8), f.answered);
        write_percent(put(&g, r, 9), f.certified);
        json_object_foreach(attacks, attack, ignored)
        {
            snprintf(put(&g, 0, c), 200, "%s", attack);
            write_percent(put(&g, r, c++), held_of(cell, &f, attack));
        }
        strcpy(put(&g, 0, c), "queries");
        if (isnan(f.queries))
            strcpy(put(&g, r, c), "-");
        else
            snprintf(put(&g, r, c), 200, "%.1f", f.queries);
        strcpy(put(&g, 0, c + 1), "seconds");
        snprintf(put(&g, r, c + 1), 200, "%.1f", f.seconds);
    }
    drop_empty(&g);
    return g;
}

/* By how many points the first is better, cut. */
static void write_difference(char *out, const safer_comparison *r)
{
    const size_t texts = r->both + r->only_first + r->only_second + r->neither;
    const int worse = r->only_first < r->only_second;
    snprintf(out, 200, "%c%s", worse ? '-' : '+',
             cli_percent(worse ? r->only_second - r->only_first : r->only_first - r->only_second, texts));
}

static void write_measure(char *out, const cmp_pair *p)
{
    const safer_summary *s = edits_of(p->first);
    char edits[100];
    write_edits(edits, p->first);
    if (p->attack)
        snprintf(out, 200, "%s", p->attack);
    else
        snprintf(out, 200, "certified and answered%s%s%s", s ? ", " : "", s ? edits : "",
                 !s              ? ""
                 : s->edits == 1 ? " edit"
                                 : " edits");
}

static grid pairs_grid(const cmp_pairs *pairs)
{
    static const char *const heads[] = {"data",        "measure",    "first", "second", "first only",
                                        "second only", "difference", "p",     "p, Holm"};
    enum { COLUMNS = sizeof heads / sizeof *heads };
    grid g = grid_new(pairs->count + 1, COLUMNS, 4);
    for (size_t c = 0; c < COLUMNS; c++) strcpy(put(&g, 0, c), heads[c]);
    for (size_t i = 0; i < pairs->count; i++) {
        const cmp_pair *p = &pairs->items[i];
        snprintf(put(&g, i + 1, 0), 200, "%s", p->first->data);
        write_measure(put(&g, i + 1, 1), p);
        snprintf(put(&g, i + 1, 2), 200, "%s %s", p->first->model, p->first->defense);
        snprintf(put(&g, i + 1, 3), 200, "%s %s", p->second->model, p->second->defense);
        snprintf(put(&g, i + 1, 4), 200, "%s", cli_count(p->result.only_first));
        snprintf(put(&g, i + 1, 5), 200, "%s", cli_count(p->result.only_second));
        write_difference(put(&g, i + 1, 6), &p->result);
        snprintf(put(&g, i + 1, 7), 200, "%s", cli_p_value(p->result.p_value));
        snprintf(put(&g, i + 1, 8), 200, "%s", cli_p_value(p->result.adjusted));
    }
    return g;
}

static const char explanation[] =
    "clean: the model itself; smoothed: the vote over draws, or of groups; certified and answered: right, whatever\n"
    "the attacker does, and the vote says so, with Wilson's 95% interval; certified: answered or not, the paper's\n"
    "figure; a column for each attack: still right under it. All in per cent of the texts, none rounded up.\n"
    "queries: of a certificate.\n";
static const char edits_explanation[] =
    "edits: words, numbers and marks that the attacker may put in, take out or replace besides.\n";
static const char test_explanation[] =
    "first only, second only: texts that are certified and answered, or still right under the attack, for one of\n"
    "the two alone; difference: in points. p: McNemar's exact test on these, two-sided, without mid-p; then adjusted\n"
    "after Holm for all pairs of the same data and measure.\n";

static int any_edits(const cmp_config *config)
{
    int any = 0;
    for (size_t i = 0; i < config->cell_count; i++) any |= edits_of(&config->cells[i]) != NULL;
    return any;
}

static void print_tables(FILE *out, const cmp_config *config, const cmp_pairs *pairs,
                         void (*print)(FILE *, const grid *), const char *heading)
{
    grid g = cells_grid(config);
    if (config->title) fprintf(out, "%s%s\n\n", heading, config->title);
    print(out, &g);
    free(g.cells);
    for (size_t i = 0, any = 0; i < config->cell_count; i++) {
        const cmp_cell *cell = &config->cells[i];
        if (cell->error.status == SAFER_OK) continue;
        fprintf(out, "%sfailed: %s %s %s: %s\n", any++ ? "" : "\n", cell->data, cell->model, cell->defense,
                cli_message(&cell->error));
    }
    fprintf(out, "\n%s%s", explanation, any_edits(config) ? edits_explanation : "");
    if (!pairs->count) return;
    fputc('\n', out);
    g = pairs_grid(pairs);
    print(out, &g);
    free(g.cells);
    fprintf(out, "\n%s", test_explanation);
}

void cmp_print(const cmp_config *config, const cmp_pairs *pairs)
{
    print_tables(stdout, config, pairs, print_text, "");
}

/* What `print` writes to a stream, into a file. */
typedef void (*printer)(FILE *out, const cmp_config *config, const cmp_pairs *pairs);

/* What was printed. open_memstream does not say that memory was out. */
typedef struct printed {
    char *text;
    size_t length;
} printed;

static ssize_t keep_printed(void *cookie, const char *bytes, size_t length)
{
    printed *p = cookie;
    char *text = realloc(p->text, p->length + length + 1);
    if (!text) cli_no_memory();
    memcpy(text + p->length, bytes, length);
    *p = (printed){text, p->length + length};
    return (ssize_t)length;
}

static safer_status write_printed(const char *path, printer print, const cmp_config *config, const cmp_pairs *pairs,
                                  safer_error *error)
{
    printed p = {0};
    FILE *out = fopencookie(&p, "w", (cookie_io_functions_t){.write = keep_printed});
    if (!out) cli_no_memory();
    print(out, config, pairs);
    if (fclose(out) != 0) cli_no_memory();
    const safer_status status = cli_write_file(path, p.text ? p.text : "", p.length, error);
    free(p.text);
    return status;
}

static void print_as_markdown(FILE *out, const cmp_config *config, const cmp_pairs *pairs)
{
    print_tables(out, config, pairs, print_markdown, "# ");
}

safer_status cmp_write_markdown(const char *path, const cmp_config *config, const cmp_pairs *pairs, safer_error *error)
{
    return write_printed(path, print_as_markdown, config, pairs, error);
}

/* --------------------------------------------------------------------- JSON */

/* NAME_accuracy and NAME_interval; null when it was not measured. */
static void set_figure(json_t *object, const char *name, figure f)
{
    char key[40];
    snprintf(key, sizeof key, "%s_accuracy", name);
    cli_set(object, key, cli_figure_json(f.part, f.whole));
    snprintf(key, sizeof key, "%s_interval", name);
    cli_set(object, key, cli_interval_json(f.part, f.whole));
}

static json_t *attack_json(const cmp_cell *cell, size_t which, figure held, const char *folder)
{
    const safer_attack_summary *a = safer_run_attacked(cell->attacked[which]);
    char name[80];
    cmp_file_name(name, sizeof name, cell->attacks[which]);
    json_t *object = json_pack("{s:I, s:I, s:I, s:f, s:o}", "texts", (json_int_t)a->texts, "examples",
                               (json_int_t)a->texts, "queries", (json_int_t)a->queries, "seconds",
                               cell->attack_seconds[which], "records",
                               json_sprintf("%s/%s.%s.jsonl", folder, cell->name, name));
    set_figure(object, "adversarial", held);
    return object;
}

/* `edits`, `edit_kind` and, with `by_edits`, what is certified and answered against 1, 2 .. of them; null: no edits. */
static void set_edits(json_t *object, const cmp_cell *cell, int by_edits)
{
    const safer_summary *s = edits_of(cell);
    json_t *list = json_array();
    for (size_t i = 0; s && i < s->edits; i++)
        cli_append(list, cli_figure_json(s->certified_answered_edits[i], s->labelled));
    cli_set(object, "edits", s ? json_integer((json_int_t)s->edits) : json_null());
    cli_set(object, "edit_kind", s ? json_string(safer_edit_kind_name(s->edit_kind)) : json_null());
    if (by_edits) cli_set(object, "certified_answered_edits", s ? json_incref(list) : json_null());
    json_decref(list);
}

static json_t *cell_json(const cmp_cell *cell, const char *folder)
{
    const figures f = figures_of(cell);
    json_t *attacks = json_object(),
           *object = json_pack("{s:s, s:s, s:s}", "data", cell->data, "model", cell->model, "defense", cell->defense);
    cli_set(object, "texts", json_integer((json_int_t)f.texts));
    cli_set(object, "examples", json_integer((json_int_t)f.texts));
    set_figure(object, "clean", f.clean);
    set_figure(object, "smoothed", f.smoothed);
    cli_set(object, "certified_answered", cli_figure_json(f.answered.part, f.answered.whole));
    cli_set(object, "certified_answered_interval", cli_interval_json(f.answered.part, f.answered.whole));
    set_figure(object, "certified", f.certified);
    set_edits(object, cell, 1);
    for (size_t i = 0; i < cell->attack_count; i++)
        if (cell->attacked[i]) cli_set(attacks, cell->attacks[i], attack_json(cell, i, f.held[i], folder));
    cli_set(object, "attacks", attacks);
    cli_set(object, "queries_per_text", isnan(f.queries) ? json_null() : json_real(f.queries));
    cli_set(object, "train_seconds", json_real(cell->train_seconds));
    cli_set(object, "certify_seconds", json_real(cell->certify_seconds));
    cli_set(object, "records", cell->certified ? json_sprintf("%s/%s.jsonl", folder, cell->name) : json_null());
    cli_set(object, "error", cell->error.status == SAFER_OK ? json_null() : json_string(cli_message(&cell->error)));
    return object;
}

json_t *cmp_json(const cmp_config *config, const cmp_pairs *pairs, const char *folder)
{
    json_t *cells = json_array(), *list = json_array();
    for (size_t i = 0; i < config->cell_count; i++) cli_append(cells, cell_json(&config->cells[i], folder));
    for (size_t i = 0; i < pairs->count; i++) {
        const cmp_pair *p = &pairs->items[i];
        const safer_comparison *r = &p->result;
        json_t *pair = json_pack("{s:s, s:s?, s:[s, s], s:[s, s], s:I, s:I, s:I, s:I, s:f, s:f}", "data",
                                 p->first->data, "attack", p->attack, "first", p->first->model, p->first->defense,
                                 "second", p->second->model, p->second->defense, "both", (json_int_t)r->both,
                                 "only_first", (json_int_t)r->only_first, "only_second", (json_int_t)r->only_second,
                                 "neither", (json_int_t)r->neither, "p_value", r->p_value, "p_holm", r->adjusted);
        set_edits(pair, p->attack ? NULL : p->first, 0);
        cli_append(list, pair);
    }
    return json_pack("{s:s?, s:I, s:o, s:o}", "title", config->title, "seed", (json_int_t)config->seed, "cells", cells,
                     "pairs", list);
}

/* ---------------------------------------------------------------------- CSV */

/* A field that may hold anything; names need no quotes. */
static void put_field(FILE *out, const char *text)
{
    fputs(strchr("=+-@\t\r", *text) && *text ? ",\"'" : ",\"", out);
    for (; *text; text++) fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', out);
}

static void put_real(FILE *out, double x)
{
    fputc(',', out);
    cli_put_real(out, x);
}

static void put_figure(FILE *out, figure f)
{
    double low = 0, high = 0;
    if (f.whole) safer_interval(f.part, f.whole, &low, &high);
    if (!f.whole) {
        fputs(",,,,,", out);
        return;
    }
    fprintf(out, ",%zu,%zu", f.part, f.whole);
    put_real(out, (double)f.part / (double)f.whole);
    put_real(out, low);
    put_real(out, high);
}

static void put_edits(FILE *out, const cmp_cell *cell)
{
    const safer_summary *s = edits_of(cell);
    if (s)
        fprintf(out, ",%zu,%s", s->edits, safer_edit_kind_name(s->edit_kind));
    else
        fputs(",,", out);
}

static void print_cells(FILE *out, const cmp_config *config, const cmp_pairs *pairs)
{
    json_t *attacks = json_object_get(config->root, "attacks"), *ignored;
    const char *name;
    (void)pairs;
    fputs("data,model,defense", out);
    const char *const measures[] = {"clean", "smoothed", "certified_answered", "certified"};
    for (size_t i = 0; i < 4; i++)
        fprintf(out, ",%s_texts,%s_of,%s,%s_low,%s_high", measures[i], measures[i], measures[i], measures[i],
                measures[i]);
    json_object_foreach(attacks, name, ignored)
        fprintf(out, ",%s_texts,%s_of,%s,%s_low,%s_high", name, name, name, name, name);
    fputs(",queries_per_text,train_seconds,certify_seconds,edits,edit_kind,error\r\n", out);
    for (size_t i = 0; i < config->cell_count; i++) {
        const cmp_cell *cell = &config->cells[i];
        const figures f = figures_of(cell);
        fprintf(out, "%s,%s,%s", cell->data, cell->model, cell->defense);
        put_figure(out, f.clean);
        put_figure(out, f.smoothed);
        put_figure(out, f.answered);
        put_figure(out, f.certified);
        json_object_foreach(attacks, name, ignored) put_figure(out, held_of(cell, &f, name));
        if (isnan(f.queries))
            fputc(',', out);
        else
            put_real(out, f.queries);
        fprintf(out, ",%.3f,%.3f", cell->train_seconds, cell->certify_seconds);
        put_edits(out, cell);
        put_field(out, cell->error.status == SAFER_OK ? "" : cli_message(&cell->error));
        fputs("\r\n", out);
    }
}

static void print_pairs(FILE *out, const cmp_config *config, const cmp_pairs *pairs)
{
    (void)config;
    fputs("data,attack,first_model,first_defense,second_model,second_defense,both,only_first,only_second,neither,"
          "p,p_holm,edits,edit_kind\r\n",
          out);
    for (size_t i = 0; i < pairs->count; i++) {
        const cmp_pair *p = &pairs->items[i];
        const safer_comparison *r = &p->result;
        fprintf(out, "%s,%s,%s,%s,%s,%s,%zu,%zu,%zu,%zu", p->first->data, p->attack ? p->attack : "", p->first->model,
                p->first->defense, p->second->model, p->second->defense, r->both, r->only_first, r->only_second,
                r->neither);
        put_real(out, r->p_value);
        put_real(out, r->adjusted);
        put_edits(out, p->attack ? NULL : p->first);
        fputs("\r\n", out);
    }
}

safer_status cmp_write_csv(const char *folder, const cmp_config *config, const cmp_pairs *pairs, safer_error *error)
{
    char path[4096];
    safer_status status = cli_make_folder(folder, error);
    snprintf(path, sizeof path, "%s/cells.csv", folder);
    if (status == SAFER_OK) status = write_printed(path, print_cells, config, pairs, error);
    snprintf(path, sizeof path, "%s/pairs.csv", folder);
    if (status == SAFER_OK) status = write_printed(path, print_pairs, config, pairs, error);
    return status;
}
