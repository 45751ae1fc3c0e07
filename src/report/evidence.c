/* safer_evidence: a run in, files for other programs out.
 *
 * The run is checked before anything is written, and again whether it stayed the same meanwhile: its digest stands in
 * the files. All files are composed before the first is written. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/sha256.h"
#include "report/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void safer_evidence_options_init(safer_evidence_options *options, size_t size)
{
    static const safer_evidence_options defaults = {.require = SAFER_DEFAULT};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

static int is_share(double x) { return x >= 0 && x <= 1; }

static safer_status check(const safer_evidence_options *o, safer_error *error)
{
    if (o->require != SAFER_DEFAULT && !is_share(o->require))
        return sf_fail(error, SAFER_INVALID, "`require`: a share from 0 to 1");
    for (size_t i = 0; i < o->recall_count; i++)
        if (!is_share(o->recalls[i].least))
            return sf_fail(error, SAFER_INVALID, "recall of %s: a share from 0 to 1", o->recalls[i].label);
    if (o->baseline && o->not_worse_than)
        return sf_fail(error, SAFER_INVALID, "`baseline` and `not_worse_than`: one of them");
    return SAFER_OK;
}

/* ------------------------------------------------------------------ reading */

/* What is read for the files: freed by free_sources. */
typedef struct sources {
    const safer_evidence_options *options;
    safer_run *run, *baseline;
    sf_digest run_digest, baseline_digest, card_digest;
    safer_gate *gates;
    sf_facts facts;
} sources;

static void free_sources(sources *s)
{
    sf_facts_free(&s->facts);
    free(s->gates);
    safer_run_free(s->baseline);
    safer_run_free(s->run);
}

static safer_status digest_file(sf_digest *out, const char *path, safer_error *error)
{
    sf_file file = {0};
    safer_status status = sf_file_load(&file, path, error);
    if (status == SAFER_OK) status = sf_sha256(out, file.bytes, file.length, error);
    sf_file_free(&file);
    return status;
}

/* Reads a run, with the digest of the very bytes that were read and checked. */
static safer_status read_run(safer_run **out, sf_digest *digest, const char *path, safer_error *error)
{
    safer_status status;
    sf_digest after;
    SF_TRY(digest_file(digest, path, error));
    SF_TRY(safer_run_read(out, path, error));
    SF_TRY(digest_file(&after, path, error));
    if (!safer_run_certified(*out))
        status = sf_fail(error, SAFER_INPUT, "%s: evidence is about certificates, and this is an attack", path);
    else if (strcmp(after.hex, digest->hex) != 0)
        status = sf_fail(error, SAFER_INPUT, "%s changed while it was read", path);
done:
    return status;
}

/* Checks the run as far as what is given allows, and notes how far that was. */
static safer_status verify(sources *s, const char *run, safer_error *error)
{
    const safer_evidence_options *o = s->options;
    safer_verification v = {0};
    safer_status status = safer_verify(&v, run, o->model, o->lexicon, o->data, o->threads, &o->progress, error);
    if (status != SAFER_OK) return status;
    memcpy(s->facts.checked, v.checked, sizeof v.checked);
    memcpy(s->facts.not_checked, v.not_checked, sizeof v.not_checked);
    safer_summary_free(&v.summary);
    return SAFER_OK;
}

static safer_status read_card(sources *s, const char *path, safer_error *error)
{
    sf_file file = {0};
    safer_status status;
    SF_TRY(sf_file_load(&file, path, error));
    SF_TRY(sf_sha256(&s->card_digest, file.bytes, file.length, error));
    SF_TRY(sf_card_parse(&s->facts.card, file.bytes, file.length, path, error));
    s->facts.card_file = (sf_artifact){.name = sf_base_name(path), .sha256 = s->card_digest.hex};
done:
    sf_file_free(&file);
    return status;
}

static safer_status check_gates(sources *s, safer_error *error)
{
    const safer_evidence_options *o = s->options;
    const safer_summary *summary = safer_run_certified(s->run);
    size_t count = 0;
    safer_status status = SAFER_OK;
    s->gates = sf_calloc(o->recall_count + 2, sizeof *s->gates);
    if (!s->gates) return sf_fail_memory(error);
    if (o->require != SAFER_DEFAULT) safer_gate_accuracy(&s->gates[count++], summary, o->require);
    for (size_t i = 0; i < o->recall_count; i++)
        SF_TRY(safer_gate_recall(&s->gates[count++], summary, o->recalls[i].label, o->recalls[i].least, error));
    if (o->not_worse_than) SF_TRY(safer_gate_not_worse(&s->gates[count++], s->run, s->baseline, error));
    s->facts.gates = s->gates;
    s->facts.gate_count = count;
done:
    return status;
}

static safer_status read_all(sources *s, const char *run, safer_error *error)
{
    const safer_evidence_options *o = s->options;
    const char *before = o->not_worse_than ? o->not_worse_than : o->baseline;
    safer_status status;
    SF_TRY(read_run(&s->run, &s->run_digest, run, error));
    if (before) {
        SF_TRY(read_run(&s->baseline, &s->baseline_digest, before, error));
        SF_TRY(sf_run_matches(s->run, s->baseline, error));
        s->facts.before = (sf_artifact){.name = sf_base_name(before), .sha256 = s->baseline_digest.hex};
    }
    if (o->model_card) SF_TRY(read_card(s, o->model_card, error));
    SF_TRY(check_gates(s, error));
    s->facts.run = s->run;
    s->facts.baseline = s->baseline;
    s->facts.file = (sf_artifact){.name = sf_base_name(run), .sha256 = s->run_digest.hex};
    SF_TRY(sf_facts_collect(&s->facts, error));
done:
    return status;
}

/* ------------------------------------------------------------------ writing */

static const struct {
    const char *name;
    void (*put)(sf_writer *out, const sf_facts *facts);
} forms[] = {{"bom.cdx.json", sf_put_bom},
             {"statement.intoto.json", sf_put_statement},
             {"results.sarif", sf_put_sarif},
             {"junit.xml", sf_put_junit},
             {"summary.md", sf_put_summary}};
enum { FORMS = sizeof forms / sizeof *forms };

const char *safer_evidence_file(size_t number) { return number < FORMS ? forms[number].name : NULL; }

static safer_status write_in(const sf_writer *out, const char *folder, const char *name, safer_error *error)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0) return sf_fail_memory(error);
    safer_status status = sf_file_write(path, out->out.bytes, out->out.length, error);
    free(path);
    return status;
}

static safer_status write_all(const sf_facts *facts, const char *folder, safer_error *error)
{
    sf_writer files[FORMS] = {0};
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < FORMS; i++) {
        forms[i].put(&files[i], facts);
        if (files[i].failed) status = sf_fail_memory(error);
    }
    if (status == SAFER_OK && mkdir(folder, 0777) != 0 && errno != EEXIST)
        status = sf_fail_errno(error, "make the folder", folder);
    for (size_t i = 0; i < FORMS; i++) {
        if (status == SAFER_OK) status = write_in(&files[i], folder, forms[i].name, error);
        sf_writer_free(&files[i]);
    }
    return status;
}

safer_status safer_evidence(safer_gate *gates, const char *folder, const char *run,
                            const safer_evidence_options *options, safer_error *error)
{
    safer_evidence_options own = safer_evidence_options_default();
    sources s = {.options = &own};
    safer_status status = SF_TAKE_OPTIONS(&own, options, safer_evidence_options, error);
    if (status != SAFER_OK) return status;
    SF_TRY(check(&own, error));
    SF_TRY(verify(&s, run, error));
    SF_TRY(read_all(&s, run, error));
    SF_TRY(write_all(&s.facts, folder, error));
    for (size_t i = 0; gates && i < s.facts.gate_count; i++) gates[i] = s.gates[i];
done:
    free_sources(&s);
    return status;
}
