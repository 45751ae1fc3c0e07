/* The probe set: fixed texts that a remote model is asked about before a run, so that the run can say which
 * model it was. Not what it is, which nobody here can see, but what it answers.
 *
 * The digest of its answers is the SHA-256 over, for every text in order, the name of the label that it got
 * as a netstring: the decimal length in bytes, ':', the name, ','. "No label" is the empty netstring "0:,".
 * docs/models.md lists the texts and shows how to compute it. Two models with the same digest may differ
 * elsewhere; two digests that differ are two models. */
#ifndef SF_REMOTE_PROBE_H
#define SF_REMOTE_PROBE_H

#include "base/sha256.h"
#include "remote/remote.h"

enum { SF_PROBE_TEXTS = 32 };

/* The texts, in order: UTF-8, none empty (some services refuse that), none longer than a short review. */
extern const char *const sf_probe_texts[SF_PROBE_TEXTS];

/* Of the answers to them, classes or SF_NO_LABEL. */
safer_status sf_probe_digest(sf_digest *out, const sf_labels *labels, const int answers[SF_PROBE_TEXTS],
                             safer_error *error);

#endif
