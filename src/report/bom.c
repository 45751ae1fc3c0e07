/* A CycloneDX 1.6 bill of materials of a certified model (an ML-BOM), as JSON.
 *
 * The document is about the run; its parts are the model, the lexicon and the data. The model's card holds the figures,
 * with Wilson's 95% interval, and what is not proven. https://cyclonedx.org/docs/1.6/json/ has the members. */
#include "report/document.h"
#include "report/facts.h"

#include <stdio.h>
#include <string.h>

/* A UUID of version 8 (RFC 9562: the bits are the maker's own): the first 122 bits of the run's digest. The same run
 * has the same. */
static void put_serial_number(sf_document *d, const char *sha256)
{
    char text[64];
    static const char variants[] = "89ab";
    const char digit = sha256[16];
    const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
    snprintf(text, sizeof text, "urn:uuid:%.8s-%.4s-8%.3s-%c%.3s-%.12s", sha256, sha256 + 8, sha256 + 13,
             variants[value & 3], sha256 + 17, sha256 + 20);
    sf_document_string(d, "serialNumber", text);
}

static void put_property(sf_document *d, const char *name, const char *value)
{
    char full[64];
    snprintf(full, sizeof full, "safer:%s", name);
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "name", full);
    sf_document_string(d, "value", value);
    sf_document_close(d, '}');
}

static void put_hashes(sf_document *d, const char *sha256)
{
    if (!sha256) return;
    sf_document_open(d, "hashes", '[');
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "alg", "SHA-256");
    sf_document_string(d, "content", sha256);
    sf_document_close(d, '}');
    sf_document_close(d, ']');
}

static void put_metadata(sf_document *d, const sf_facts *facts)
{
    sf_document_open(d, "metadata", '{');
    sf_document_string(d, "timestamp", facts->date);
    sf_document_open(d, "tools", '{');
    sf_document_open(d, "components", '[');
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "type", "application");
    sf_document_string(d, "name", "safer");
    sf_document_string(d, "version", safer_version());
    sf_document_close(d, '}');
    sf_document_close(d, ']');
    sf_document_close(d, '}');
    sf_document_open(d, "component", '{');
    sf_document_string(d, "type", "data");
    sf_document_string(d, "bom-ref", "run");
    sf_document_string(d, "name", facts->file.name);
    sf_document_string(d, "description",
                       "Records of certificates, one per text, from which safer verify recomputes "
                       "every decision.");
    put_hashes(d, facts->file.sha256);
    sf_document_close(d, '}');
    sf_document_close(d, '}');
}

/* ---------------------------------------------------------------- the model */

static const char *family_of(const char *arch)
{
    static const char *const families[][2] = {{"ngram", "linear model"},
                                              {"bow", "bag of word vectors"},
                                              {"cnn", "convolutional neural network"},
                                              {"charcnn", "convolutional neural network"},
                                              {"bert", "transformer network"},
                                              {"context", "transformer network"},
                                              {"sum", "ensemble"}};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(arch, families[i][0]) == 0) return families[i][1];
    return NULL; /* remote: not known */
}

static void put_format(sf_document *d, const char *name, const char *format)
{
    sf_document_open(d, name, '[');
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "format", format);
    sf_document_close(d, '}');
    sf_document_close(d, ']');
}

static void put_parameters(sf_document *d, const sf_facts *facts)
{
    const char *family = family_of(facts->arch);
    sf_document_open(d, "modelParameters", '{');
    sf_document_string(d, "task", "text classification");
    if (family) sf_document_string(d, "architectureFamily", family);
    sf_document_string(d, "modelArchitecture", facts->arch);
    sf_document_open(d, "datasets", '[');
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "ref", "data");
    sf_document_close(d, '}');
    sf_document_close(d, ']');
    put_format(d, "inputs", "text, UTF-8");
    put_format(d, "outputs", "label");
    sf_document_close(d, '}');
}

static void put_share(sf_document *d, const char *name, uint32_t myriads)
{
    char text[16];
    snprintf(text, sizeof text, "%u.%04u", myriads / 10000, myriads % 10000);
    sf_document_string(d, name, text);
}

static void put_metric(sf_document *d, const sf_metric *m)
{
    double low, high;
    safer_interval(m->part, m->whole, &low, &high);
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "type", m->name);
    put_share(d, "value", (uint32_t)((uint64_t)m->part * 10000 / m->whole));
    if (m->slice) sf_document_string(d, "slice", m->slice);
    sf_document_open(d, "confidenceInterval", '{');
    put_share(d, "lowerBound", sf_myriads_down(low));
    put_share(d, "upperBound", sf_myriads_up(high));
    sf_document_close(d, '}');
    sf_document_close(d, '}');
}

static void put_card(sf_document *d, const sf_facts *facts)
{
    sf_document_open(d, "modelCard", '{');
    put_parameters(d, facts);
    sf_document_open(d, "quantitativeAnalysis", '{');
    sf_document_open(d, "performanceMetrics", '[');
    for (size_t i = 0; i < facts->metric_count; i++) put_metric(d, &facts->metrics[i]);
    sf_document_close(d, ']');
    sf_document_close(d, '}');
    sf_document_open(d, "considerations", '{');
    sf_document_open(d, "technicalLimitations", '[');
    for (size_t i = 0; i < facts->limit_count; i++) sf_document_string(d, NULL, facts->limits[i]);
    sf_document_string(d, NULL, facts->unchecked);
    sf_document_close(d, ']');
    sf_document_close(d, '}');
    sf_document_open(d, "properties", '[');
    for (size_t i = 0; i < facts->term_count; i++) put_property(d, facts->terms[i].name, facts->terms[i].value);
    put_property(d, "confidence", "0.95, Wilson's interval, of each figure by itself");
    for (size_t i = 0; i < facts->gate_count; i++)
        put_property(d, facts->gates[i].met ? "requirement:met" : "requirement:unmet", facts->gates[i].message);
    sf_document_close(d, ']');
    sf_document_close(d, '}');
}

static int same_letters(const char *a, const char *b) /* ASCII, in any case and any locale */
{
    for (; *a && *b; a++, b++)
        if ((*a >= 'A' && *a <= 'Z' ? *a + 32 : *a) != (*b >= 'A' && *b <= 'Z' ? *b + 32 : *b)) return 0;
    return *a == *b;
}

/* A licence by its SPDX name where it is a common one, else by the card's own words. */
static void put_license(sf_document *d, const char *license)
{
    static const char *const known[] = {"Apache-2.0",   "MIT",          "BSD-2-Clause",    "BSD-3-Clause",
                                        "ISC",          "MPL-2.0",      "CC0-1.0",         "CC-BY-4.0",
                                        "CC-BY-SA-4.0", "CC-BY-NC-4.0", "CC-BY-NC-SA-4.0", "Unlicense"};
    const char *id = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (same_letters(known[i], license)) id = known[i];
    sf_document_open(d, "licenses", '[');
    sf_document_open(d, NULL, '{');
    sf_document_open(d, "license", '{');
    sf_document_string(d, id ? "id" : "name", id ? id : license);
    sf_document_close(d, '}');
    sf_document_close(d, '}');
    sf_document_close(d, ']');
}

static void put_reference(sf_document *d, const char *type, const char *url, const char *sha256)
{
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "type", type);
    sf_document_string(d, "url", url);
    put_hashes(d, sha256);
    sf_document_close(d, '}');
}

static void put_references(sf_document *d, const sf_facts *facts)
{
    const sf_card *card = &facts->card;
    if (!facts->card_file.name) return;
    sf_document_open(d, "externalReferences", '[');
    put_reference(d, "model-card", facts->card_file.uri, facts->card_file.sha256);
    if (card->url) put_reference(d, "website", card->url, NULL);
    sf_document_close(d, ']');
}

static void put_model(sf_document *d, const sf_facts *facts)
{
    const sf_card *card = &facts->card;
    char version[16] = "unknown";
    if (facts->model.sha256) snprintf(version, sizeof version, "%.12s", facts->model.sha256);
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "type", "machine-learning-model");
    sf_document_string(d, "bom-ref", "model");
    sf_document_string(d, "name", card->name ? card->name : facts->model.name);
    sf_document_string(d, "version", card->version ? card->version : version);
    put_hashes(d, facts->model.sha256);
    if (card->license) put_license(d, card->license);
    put_references(d, facts);
    put_card(d, facts);
    sf_document_open(d, "properties", '[');
    put_property(d, "file", facts->model.name);
    put_property(d, "digest", facts->model.digest_of);
    if (facts->probe) put_property(d, "probe", facts->probe);
    sf_document_close(d, ']');
    if (json_array_size(card->tags)) {
        sf_document_open(d, "tags", '[');
        for (size_t i = 0; i < json_array_size(card->tags); i++)
            sf_document_string(d, NULL, json_string_value(json_array_get(card->tags, i)));
        sf_document_close(d, ']');
    }
    sf_document_close(d, '}');
}

/* ------------------------------------------------------------- the document */

/* The lexicon or the data. */
static void put_data(sf_document *d, const char *reference, const sf_artifact *artifact, const char *type,
                     const char *description)
{
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "type", "data");
    sf_document_string(d, "bom-ref", reference);
    sf_document_string(d, "name", artifact->name);
    put_hashes(d, artifact->sha256);
    sf_document_open(d, "data", '[');
    sf_document_open(d, NULL, '{');
    sf_document_string(d, "type", type);
    sf_document_string(d, "name", artifact->name);
    sf_document_string(d, "description", description);
    sf_document_close(d, '}');
    sf_document_close(d, ']');
    sf_document_open(d, "properties", '[');
    put_property(d, "digest", artifact->digest_of);
    sf_document_close(d, ']');
    sf_document_close(d, '}');
}

void sf_put_bom(sf_writer *out, const sf_facts *facts)
{
    sf_document d = {.out = out};
    sf_document_open(&d, NULL, '{');
    sf_document_string(&d, "$schema", "http://cyclonedx.org/schema/bom-1.6.schema.json");
    sf_document_string(&d, "bomFormat", "CycloneDX");
    sf_document_string(&d, "specVersion", "1.6");
    put_serial_number(&d, facts->file.sha256);
    sf_document_count(&d, "version", 1);
    put_metadata(&d, facts);
    sf_document_open(&d, "components", '[');
    put_model(&d, facts);
    put_data(&d, "lexicon", &facts->lexicon, "definition",
             "The synonyms that may stand for a word, and how one is drawn.");
    put_data(&d, "data", &facts->data, "dataset", "The texts that were certified.");
    sf_document_close(&d, ']');
    sf_document_open(&d, "dependencies", '[');
    sf_document_open(&d, NULL, '{');
    sf_document_string(&d, "ref", "run");
    sf_document_open(&d, "dependsOn", '[');
    sf_document_string(&d, NULL, "model");
    sf_document_string(&d, NULL, "lexicon");
    sf_document_string(&d, NULL, "data");
    sf_document_close(&d, ']');
    sf_document_close(&d, '}');
    sf_document_close(&d, ']');
    sf_document_close(&d, '}');
}
