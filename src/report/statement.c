/* An in-toto Statement v1 about a run, to be signed by the user's own tool.
 *
 * Its subjects are the run, the lexicon, the model and the data, by their digests. The predicate is in-toto's "test
 * result" v0.1, which policies know: that the records hold is a test, and so is every requirement. Members that begin
 * with "safer" extend it, as in-toto allows; docs/evidence.md lists them. */
#include "report/document.h"
#include "report/facts.h"

#include <stdio.h>

#define RECORDS_HOLD "records hold: every decision follows from its record"

static void put_artifact(sf_document *d, const sf_artifact *artifact)
{
    if (!artifact->sha256) return; /* a remote model is no artifact */
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "name", artifact->name);
    sf_document_open(d, "digest", '{');
    sf_document_string(d, "sha256", artifact->sha256);
    sf_document_close(d, '}');
    sf_document_open(d, "annotations", '{');
    sf_document_string(d, "role", artifact->role);
    sf_document_string(d, "digestOf", artifact->digest_of);
    sf_document_close(d, '}');
    sf_document_close(d, '}');
}

static void put_tests(sf_document *d, const sf_facts *facts, const char *name, int met)
{
    sf_document_open(d, name, '[');
    if (met) sf_document_string(d, NULL, RECORDS_HOLD);
    for (size_t i = 0; i < facts->gate_count; i++)
        if (facts->gates[i].met == met) sf_document_string(d, NULL, facts->gates[i].name);
    sf_document_close(d, ']');
}

/* What was required: a share of texts, or the p-value of a comparison. */
static void put_claim(sf_document *d, const safer_gate *gate)
{
    const int is_test = gate->kind == SAFER_GATE_NOT_WORSE;
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "kind", safer_gate_kind_name(gate->kind));
    sf_document_string(d, "metric", gate->name);
    sf_document_string(d, "comparator", is_test ? ">" : ">=");
    sf_document_real(d, "threshold", gate->threshold);
    sf_document_real(d, "value", gate->value);
    sf_document_bool(d, "passed", gate->met);
    sf_document_count(d, is_test ? "lost" : "texts", gate->part);
    sf_document_count(d, "sampleSize", gate->whole);
    sf_document_string(d, "message", gate->message);
    sf_document_close(d, '}');
}

static void put_metric(sf_document *d, const sf_metric *metric)
{
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "metric", metric->name);
    if (metric->slice) sf_document_string(d, "slice", metric->slice);
    sf_document_count(d, "texts", metric->part);
    sf_document_count(d, "sampleSize", metric->whole);
    sf_document_close(d, '}');
}

static void put_phrases(sf_document *d, const char *name, const char *const *phrases)
{
    sf_document_open(d, name, '[');
    while (*phrases) sf_document_string(d, NULL, *phrases++);
    sf_document_close(d, ']');
}

static void put_extensions(sf_document *d, const sf_facts *facts)
{
    sf_document_open(d, "saferClaims", '[');
    for (size_t i = 0; i < facts->gate_count; i++) put_claim(d, &facts->gates[i]);
    sf_document_close(d, ']');
    sf_document_open(d, "saferFigures", '[');
    for (size_t i = 0; i < facts->metric_count; i++) put_metric(d, &facts->metrics[i]);
    sf_document_close(d, ']');
    sf_document_open(d, "saferAssessment", '{');
    for (size_t i = 0; i < facts->term_count; i++) sf_document_string(d, facts->terms[i].name, facts->terms[i].value);
    sf_document_close(d, '}');
    sf_document_open(d, "saferNotProven", '[');
    for (size_t i = 0; i < facts->limit_count; i++) sf_document_string(d, NULL, facts->limits[i]);
    sf_document_close(d, ']');
    put_phrases(d, "saferChecked", facts->checked);
    put_phrases(d, "saferNotChecked", facts->not_checked);
    if (facts->probe) sf_document_string(d, "saferProbe", facts->probe);
    sf_document_string(d, "saferDate", facts->date);
    sf_document_string(d, "saferVersion", safer_version());
}

static void put_predicate(sf_document *d, const sf_facts *facts)
{
    int met = 1;
    for (size_t i = 0; i < facts->gate_count; i++) met &= facts->gates[i].met;
    sf_document_open(d, "predicate", '{');
    sf_document_string(d, "result", met ? "PASSED" : "FAILED");
    sf_document_open(d, "configuration", '[');
    put_artifact(d, &facts->file);
    if (facts->before.name) put_artifact(d, &facts->before);
    sf_document_close(d, ']');
    put_tests(d, facts, "passedTests", 1);
    put_tests(d, facts, "failedTests", 0);
    put_extensions(d, facts);
    sf_document_close(d, '}');
}

void sf_put_statement(sf_writer *out, const sf_facts *facts)
{
    sf_document d = {.out = out};
    sf_document_open(&d, NULL, '{');
    sf_document_string(&d, "_type", "https://in-toto.io/Statement/v1");
    sf_document_open(&d, "subject", '[');
    put_artifact(&d, &facts->file);
    put_artifact(&d, &facts->lexicon);
    put_artifact(&d, &facts->model);
    put_artifact(&d, &facts->data);
    sf_document_close(&d, ']');
    sf_document_string(&d, "predicateType", "https://in-toto.io/attestation/test-result/v0.1");
    put_predicate(&d, facts);
    sf_document_close(&d, '}');
}
