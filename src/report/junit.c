/* JUnit XML: a test case per requirement, and per text whose certificate was lost against the baseline.
 *
 * Nobody owns this format; what is written here is valid for the schemas of Jenkins and, unless a case is skipped,
 * of Ant, and GitLab and GitHub's actions read it. That the records hold is a case of its own, so that there always is
 * one. A lost certificate is a failure where a requirement says that the run is worse than its baseline; else the case
 * is skipped, with the same words, so that the file and the exit status agree. */
#include "report/facts.h"

#include <string.h>

static void put_string(sf_writer *out, const char *text) { sf_put_html(out, text, strlen(text)); }

static void put_attribute(sf_writer *out, const char *name, const char *value)
{
    sf_putf(out, " %s=\"", name);
    put_string(out, value);
    sf_put(out, "\"");
}

static void put_case(sf_writer *out, const char *suite, const char *name)
{
    sf_put(out, "    <testcase");
    put_attribute(out, "classname", suite);
    put_attribute(out, "name", name);
    sf_put(out, " time=\"0\"");
}

static void put_failure(sf_writer *out, const char *type, const char *message)
{
    sf_put(out, ">\n      <failure");
    put_attribute(out, "type", type);
    put_attribute(out, "message", message);
    sf_put(out, ">");
    put_string(out, message);
    sf_put(out, "</failure>\n    </testcase>\n");
}

static void open_suite(sf_writer *out, const sf_facts *facts, int id, const char *name, size_t tests, size_t failures,
                       size_t skipped)
{
    sf_put(out, "  <testsuite");
    put_attribute(out, "name", name);
    sf_putf(out, " package=\"safer\" id=\"%d\" timestamp=\"%.19s\" hostname=\"localhost\"", id, facts->date);
    sf_putf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\"", tests, failures);
    if (skipped) sf_putf(out, " skipped=\"%zu\"", skipped);
    sf_put(out, " time=\"0\">\n    <properties>\n");
    for (size_t i = 0; i < facts->term_count; i++) {
        sf_put(out, "      <property");
        put_attribute(out, "name", facts->terms[i].name);
        put_attribute(out, "value", facts->terms[i].value);
        sf_put(out, "/>\n");
    }
    sf_put(out, "    </properties>\n");
}

static void close_suite(sf_writer *out, const char *says)
{
    sf_put(out, "    <system-out>");
    put_string(out, says);
    sf_put(out, "</system-out>\n    <system-err></system-err>\n  </testsuite>\n");
}

static void put_requirements(sf_writer *out, const sf_facts *facts)
{
    static const char suite[] = "requirements";
    size_t failures = 0;
    for (size_t i = 0; i < facts->gate_count; i++) failures += (size_t)!facts->gates[i].met;
    open_suite(out, facts, 0, suite, facts->gate_count + 1, failures, 0);
    put_case(out, suite, "records hold");
    sf_put(out, "/>\n");
    for (size_t i = 0; i < facts->gate_count; i++) {
        const safer_gate *gate = &facts->gates[i];
        put_case(out, suite, gate->name);
        if (gate->met)
            sf_put(out, "/>\n");
        else
            put_failure(out, safer_gate_kind_name(gate->kind), gate->message);
    }
    close_suite(out, facts->unchecked);
}

static void put_losses(sf_writer *out, const sf_facts *facts)
{
    static const char suite[] = "lost certificates";
    const size_t count = facts->loss_count;
    open_suite(out, facts, 1, suite, count, facts->worse ? count : 0, facts->worse ? 0 : count);
    for (size_t i = 0; i < count; i++) {
        put_case(out, suite, facts->losses[i].name);
        if (facts->worse) {
            put_failure(out, "lost-certificate", facts->losses[i].message);
        } else {
            sf_put(out, ">\n      <skipped>");
            put_string(out, facts->losses[i].message);
            sf_put(out, "</skipped>\n    </testcase>\n");
        }
    }
    close_suite(out, facts->compared);
}

void sf_put_junit(sf_writer *out, const sf_facts *facts)
{
    sf_put(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    put_requirements(out, facts);
    if (facts->baseline) put_losses(out, facts);
    sf_put(out, "</testsuites>\n");
}
