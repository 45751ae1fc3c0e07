/* SARIF 2.1.0: a result per requirement that is not met, and per text whose certificate was lost against the baseline.
 * https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html has the members. */
#include "report/document.h"
#include "report/facts.h"

#include <stdio.h>
#include <stdlib.h>

#define LOST "lost-certificate"

static void put_text(sf_document *d, const char *name, const char *text)
{
    sf_document_open(d, name, '{');
    sf_document_string(d, "text", text);
    sf_document_close(d, '}');
}

static void put_rules(sf_document *d)
{
    static const char *const rules[][2] = {
        {"accuracy", "Fewer texts are certified and answered than required."},
        {"recall", "Fewer texts of a class are certified and answered than required."},
        {"not-worse", "The run is worse than its baseline: a paired exact test says so."},
        {LOST, "A text was certified and answered in the baseline, and is not any more."},
    };
    sf_document_open(d, "rules", '[');
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        sf_document_open(d, NULL, '{');
        sf_document_string(d, "id", rules[i][0]);
        put_text(d, "shortDescription", rules[i][1]);
        sf_document_close(d, '}');
    }
    sf_document_close(d, ']');
}

static void put_tool(sf_document *d)
{
    sf_document_open(d, "tool", '{');
    sf_document_open(d, "driver", '{');
    sf_document_string(d, "name", "safer");
    sf_document_string(d, "semanticVersion", safer_version());
    put_rules(d);
    sf_document_close(d, '}');
    sf_document_close(d, '}');
}

/* Where a result is: a line of a file, and in it the text of an id (NULL: none). */
static void put_location(sf_document *d, const char *uri, size_t line, const char *id)
{
    sf_document_open(d, "locations", '[');
    sf_document_open(d, NULL, '{');
    sf_document_open(d, "physicalLocation", '{');
    sf_document_open(d, "artifactLocation", '{');
    sf_document_string(d, "uri", uri);
    sf_document_close(d, '}');
    sf_document_open(d, "region", '{');
    sf_document_count(d, "startLine", line);
    sf_document_close(d, '}');
    sf_document_close(d, '}');
    if (id) {
        sf_document_open(d, "logicalLocations", '[');
        sf_document_open(d, NULL, '{');
        sf_document_string(d, "name", id);
        sf_document_close(d, '}');
        sf_document_close(d, ']');
    }
    sf_document_close(d, '}');
    sf_document_close(d, ']');
}

static void put_gate(sf_document *d, const sf_facts *facts, const safer_gate *gate)
{
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "ruleId", safer_gate_kind_name(gate->kind));
    sf_document_string(d, "level", "error");
    put_text(d, "message", gate->message);
    put_location(d, facts->file.uri, 1, NULL);
    sf_document_close(d, '}');
}

static void put_loss(sf_document *d, const sf_facts *facts, const sf_loss *loss)
{
    char fingerprint[40];
    snprintf(fingerprint, sizeof fingerprint, "%.12s:%zu", facts->data.sha256, loss->row);
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "ruleId", LOST);
    sf_document_string(d, "level", facts->worse ? "warning" : "note");
    put_text(d, "message", loss->message);
    put_location(d, facts->data.uri, loss->row, loss->id);
    sf_document_open(d, "partialFingerprints", '{');
    sf_document_string(d, "text/v1", fingerprint);
    sf_document_close(d, '}');
    sf_document_close(d, '}');
}

void sf_put_sarif(sf_writer *out, const sf_facts *facts)
{
    sf_document d = {.out = out};
    sf_document_open(&d, NULL, '{');
    sf_document_string(&d, "$schema",
                       "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json");
    sf_document_string(&d, "version", "2.1.0");
    sf_document_open(&d, "runs", '[');
    sf_document_open(&d, NULL, '{');
    put_tool(&d);
    sf_document_open(&d, "invocations", '[');
    sf_document_open(&d, NULL, '{');
    sf_document_bool(&d, "executionSuccessful", 1);
    sf_document_string(&d, "endTimeUtc", facts->date);
    sf_document_close(&d, '}');
    sf_document_close(&d, ']');
    sf_document_open(&d, "results", '[');
    for (size_t i = 0; i < facts->gate_count; i++)
        if (!facts->gates[i].met) put_gate(&d, facts, &facts->gates[i]);
    for (size_t i = 0; i < facts->loss_count; i++) put_loss(&d, facts, &facts->losses[i]);
    sf_document_close(&d, ']');
    sf_document_open(&d, "properties", '{');
    for (size_t i = 0; i < facts->term_count; i++) sf_document_string(&d, facts->terms[i].name, facts->terms[i].value);
    sf_document_string(&d, "notChecked", facts->unchecked);
    sf_document_close(&d, '}');
    sf_document_close(&d, '}');
    sf_document_close(&d, ']');
    sf_document_close(&d, '}');
}
