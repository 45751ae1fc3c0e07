/* Prints the sizes of the structs and the values of the enums that safer.h shows: what a compiled
 * caller relies on. tests/test_abi.py compares this with tests/abi.txt. */
#include "safer.h"

#include <stdio.h>

#define SIZE(type) printf("size %s %zu\n", #type, sizeof(type))
#define VALUES(type) \
    for (int i = 0; type##_name((type)i); i++) printf("value %s %d %s\n", #type, i, type##_name((type)i))

int main(void)
{
    if (SAFER_VERSION_MAJOR)
        printf("soname %d\n", SAFER_VERSION_MAJOR);
    else
        printf("soname 0.%d\n", SAFER_VERSION_MINOR);
    SIZE(safer_error);
    SIZE(safer_progress);
    SIZE(safer_deletion);
    SIZE(safer_data_options);
    SIZE(safer_row);
    SIZE(safer_lexicon_options);
    SIZE(safer_lexicon_report);
    SIZE(safer_lexicon_info);
    SIZE(safer_word);
    SIZE(safer_survey);
    SIZE(safer_doubtful);
    SIZE(safer_audit_options);
    SIZE(safer_device);
    SIZE(safer_remote_options);
    SIZE(safer_traffic);
    SIZE(safer_train_options);
    SIZE(safer_train_report);
    SIZE(safer_sum_options);
    SIZE(safer_sum_result);
    SIZE(safer_label_options);
    SIZE(safer_label_summary);
    SIZE(safer_certify_options);
    SIZE(safer_certificate);
    SIZE(safer_figure);
    SIZE(safer_class_summary);
    SIZE(safer_summary);
    SIZE(safer_trial);
    SIZE(safer_choice);
    SIZE(safer_choose_options);
    SIZE(safer_verification);
    SIZE(safer_attack_options);
    SIZE(safer_change);
    SIZE(safer_attack_result);
    SIZE(safer_attack_summary);
    SIZE(safer_against_summary);
    SIZE(safer_comparison);
    SIZE(safer_gate);
    SIZE(safer_report_options);
    SIZE(safer_recall);
    SIZE(safer_evidence_options);
    SIZE(safer_serve_options);
    VALUES(safer_status);
    VALUES(safer_format);
    VALUES(safer_metric);
    VALUES(safer_export);
    VALUES(safer_doubt);
    VALUES(safer_precision);
    VALUES(safer_profile);
    VALUES(safer_arch);
    VALUES(safer_pool);
    VALUES(safer_defense);
    VALUES(safer_truncation_side);
    VALUES(safer_charcnn_size);
    VALUES(safer_method);
    VALUES(safer_edit_kind);
    VALUES(safer_stage);
    VALUES(safer_attack_method);
    VALUES(safer_outcome);
    VALUES(safer_gate_kind);
    return 0;
}
