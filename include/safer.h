/* safer: certified robustness of text classifiers to word substitution.
 *
 * This is the whole public interface of libsafer, in parts that stand below in the order in which
 * data flows; programs include this file. The shortest way through it:
 *
 *     safer_lexicon_open, safer_data_load, safer_model_open    what there is
 *     safer_certify                                            a whole data set
 *     safer_certify_text                                       one text
 *
 * examples/certify.c shows it with a classifier of its own. Rules that hold throughout:
 *
 *   - A fallible function returns a safer_status; results come back through
 *     pointers, which are written only on SAFER_OK (but for reports on how a lexicon was
 *     made, and workspaces, which may be kept after a failure). The last parameter is an
 *     optional safer_error (may be NULL) that explains a failure in one line.
 *   - An object that comes back through its first parameter belongs to the caller and ends
 *     with its _free function (a server: _stop), which accepts NULL.
 *   - NULL for a struct of options means the defaults.
 *   - Strings are UTF-8. Pointers into an object live as long as the object.
 *   - Objects are immutable once made: any number of threads may read one.
 *   - The library never prints, never exits, and never repairs a parameter.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_H
#define SAFER_H

#include "safer/base.h"    /* what every part of the interface uses: the version, errors, options, progress */
#include "safer/data.h"    /* sets of labelled texts */
#include "safer/lexicon.h" /* synonyms, and the distributions that substitutes are drawn from */
#include "safer/model.h"   /* classifiers: opened, made of a function, asked */
#include "safer/train.h"   /* training of models */
#include "safer/crew.h"    /* processes, also on many machines, that share a run */
#include "safer/certify.h" /* certificates of texts and of data sets, and their checks */
#include "safer/attack.h"  /* attacks on classifiers and on certificates */
#include "safer/report.h"  /* what is made of runs: comparisons, gates, pages, evidence */
#include "safer/serve.h"   /* an HTTP server */

#endif
