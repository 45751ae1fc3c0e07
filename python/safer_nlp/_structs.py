"""The structures of safer.h, field by field. tests/test_python.py compares every size and
offset with what a C compiler says."""
from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_size_t, c_uint, c_uint16, c_uint32, c_uint64, c_void_p

NO_WORD = 2**32 - 1
DEFAULT = -1
RADII = 6
PHRASES = 12
EDITS = 64
SUM_MEMBERS = 64
ALL = c_size_t(-1).value

PROGRESS = CFUNCTYPE(c_int, c_void_p, c_char_p, c_uint64, c_uint64)
# Texts and labels arrive as addresses: strings are taken by their lengths, labels go back as a block.
CLASSIFY = CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p), POINTER(c_size_t), c_size_t, c_void_p)
DRAW = CFUNCTYPE(c_int, c_void_p, c_uint64, c_void_p, c_size_t)
WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
RECORD = CFUNCTYPE(None, c_void_p, c_char_p)


class Error(Structure):
    _fields_ = [("status", c_int), ("message", c_char * 1000)]


class Progress(Structure):
    _fields_ = [("report", PROGRESS), ("context", c_void_p)]


class Device(Structure):
    _fields_ = [("name", c_char * 32), ("hardware", c_char * 256), ("instructions", c_char * 32), ("driver", c_char * 64),
                ("arithmetic", c_char * 352), ("threads", c_int), ("memory", c_uint64), ("free_memory", c_uint64), ("reason", c_char * 1000)]


class DataOptions(Structure):
    _fields_ = [("size", c_size_t), ("format", c_int), ("sample", c_char_p), ("limit", c_size_t), ("seed", c_uint64),
                ("repair", c_int), ("strip_breaks", c_int), ("labels_of", c_void_p), ("on_disk", c_int),
                ("text_column", c_char_p), ("label_column", c_char_p), ("id_column", c_char_p), ("title_column", c_char_p),
                ("labels", c_char_p)]


class Row(Structure):
    _fields_ = [("id", c_char_p), ("text", c_void_p), ("text_length", c_size_t), ("label", c_int)]


class LexiconOptions(Structure):
    _fields_ = [("size", c_size_t), ("vectors", c_char_p), ("table", c_char_p), ("wordnet", c_char_p), ("vocab", c_char_p),
                ("vocab_from", POINTER(c_char_p)), ("vocab_from_count", c_size_t), ("min_count", c_uint64), ("repair", c_int),
                ("synonyms", POINTER(c_char_p)), ("synonyms_count", c_size_t),
                ("antonyms", POINTER(c_char_p)), ("antonyms_count", c_size_t),
                ("counterfit", c_int), ("all_but_the_top", c_int), ("threshold", c_double), ("metric", c_int),
                ("simlex", c_char_p), ("directed", c_int), ("exclude", c_char_p), ("protect", c_char_p),
                ("kernel", c_char_p), ("threads", c_int), ("progress", Progress), ("fold", c_char_p),
                ("dropped", c_char_p), ("function_words", c_int), ("keep_antonyms", c_int), ("max_component", c_size_t),
                ("vocab_data", c_void_p), ("max_frequency", c_double), ("same_pos", c_char_p), ("nearest", c_size_t)]


class Doubtful(Structure):
    _fields_ = [("word", c_uint32), ("synonym", c_uint32), ("doubts", c_uint), ("similarity", c_double)]


class AuditOptions(Structure):
    _fields_ = [("size", c_size_t), ("wordnet", c_char_p), ("antonyms", POINTER(c_char_p)), ("antonyms_count", c_size_t), ("distant", c_double)]


class LexiconStage(Structure):
    _fields_ = [("name", c_char_p), ("seconds", c_double)]


class LexiconRung(Structure):
    _fields_ = [("k", c_uint32), ("share", c_double)]


class LexiconReport(Structure):
    _fields_ = [*((name, c_size_t) for name in (
                    "vector_rows", "vector_dim", "vector_duplicates", "vector_unusable", "vector_zeros", "listed", "texts",
                    "tokens", "words", "table_phrases", "attract", "repel", "preserved", "pairs", "symmetrised",
                    "refused_words", "refused_pairs", "excluded_pairs", "protected_words", "unknown_edits", "simlex_pairs")),
                ("simlex_before", c_double), ("simlex_fitted", c_double), ("simlex_after", c_double),
                ("stages", LexiconStage * 12), ("stage_count", c_size_t),
                ("ladder", LexiconRung * 24), ("ladder_count", c_size_t), ("suggested_k", c_uint32),
                *((name, c_size_t) for name in ("merged_spellings", "lost_words", "protected_pairs", "antonyms", "parted_antonyms",
                                                "cut_for_antonyms", "cut_for_size", "frequent_words", "filtered_for_frequency",
                                                "filtered_for_speech", "filtered_for_rank"))]


class Trial(Structure):
    _fields_ = [("name", c_char * 16), *((name, c_size_t) for name in ("texts", "smoothed_correct", "certified_answered", "won", "lost")),
                ("p_value", c_double), ("queries", c_uint64), ("seconds", c_double)]


class Choice(Structure):
    _fields_ = [("untried", c_char_p), *((name, c_size_t) for name in ("labelled", "texts", "held_out", "trial_count", "best")),
                ("trials", Trial * 4)]


class ChooseOptions(Structure):
    _fields_ = [("size", c_size_t), ("most_texts", c_size_t), ("seed", c_uint64), ("threads", c_int), ("progress", Progress)]


class LexiconInfo(Structure):
    _fields_ = [("words", c_size_t), ("pairs", c_size_t), ("words_with_synonyms", c_size_t), ("mean_synonyms", c_double),
                ("components", c_size_t), ("largest_components", c_size_t * 10), ("kernel_rows", c_size_t),
                ("kernel_entries", c_size_t), ("largest_support", c_size_t), ("kernel", c_char_p), ("provenance", c_char_p),
                ("bytes", c_size_t), ("directed", c_int)]


class Word(Structure):
    _fields_ = [("word", c_char_p), ("count", c_uint64), ("component", c_uint32), ("synonym_count", c_size_t),
                ("synonyms", POINTER(c_uint32)), ("similarity", POINTER(c_float)), ("support_count", c_size_t),
                ("support", POINTER(c_uint32)), ("weights", POINTER(c_uint32)), ("total", c_uint32),
                ("overlap", c_double), ("worst", c_uint32)]


class RemoteOptions(Structure):
    _fields_ = [("size", c_size_t), ("labels", POINTER(c_char_p)), ("label_count", c_size_t), ("batch", c_size_t), ("timeout", c_double),
                ("retries", c_int), ("cache", c_int), ("random", c_int), ("workers", c_int), ("concurrency", c_int),
                ("profile", c_int), ("request", c_char_p), ("answer", c_char_p), ("name", c_char_p), ("token", c_char_p),
                ("model_name", c_char_p), ("function", c_int), ("insecure_token", c_int)]


class Traffic(Structure):
    _fields_ = [(name, c_uint64) for name in ("asked", "cached", "again", "changed", "none", "requests", "retries", "restarts")]


class Deletion(Structure):
    _fields_ = [("chance", c_double), ("keep", c_size_t), ("groups", c_size_t)]


class CertifyOptions(Structure):
    _fields_ = [("size", c_size_t), ("method", c_int), ("n", c_uint64), ("n0", c_uint64), ("delta", c_double), ("alpha", c_double),
                ("family_wise", c_int), ("radius", c_size_t), ("unlabelled", c_int), ("seed", c_uint64), ("threads", c_int),
                ("batch", c_size_t), ("progress", Progress), ("shard", c_size_t), ("shards", c_size_t), ("crew", c_void_p),
                ("deletion", Deletion), ("edits", c_size_t), ("edit_kind", c_int)]


class Certificate(Structure):
    _fields_ = [("id", c_char_p), ("label", c_int), ("base", c_int), ("prediction", c_int), ("abstained", c_int),
                ("target", c_int), ("words", c_size_t), ("slots", c_size_t), ("visible", c_size_t), ("exact", c_int),
                ("n", c_uint64), ("votes", POINTER(c_uint64)), ("shares", POINTER(c_double)), ("bound", c_double), ("margins", POINTER(c_double)),
                ("q", c_double * RADII), ("certified_at", c_int * RADII), ("certified", c_int), ("radius", c_size_t),
                ("queries", c_uint64), ("seconds", c_double), ("vote_n", c_uint64), ("vote_votes", POINTER(c_uint64)),
                ("deletion", c_double), ("tokens", c_size_t), ("edits", c_size_t), ("q_edits", c_double * (EDITS + 1)),
                ("folded", c_int), ("unfolded", c_int), ("groups", c_size_t), ("additive", c_int),
                ("margin_at", c_double * RADII)]


class Figure(Structure):
    _fields_ = [("name", c_char_p), ("part", c_size_t), ("whole", c_size_t)]


class ClassSummary(Structure):
    _fields_ = [("label", c_char_p), ("texts", c_size_t), ("certified", c_size_t), ("certified_answered", c_size_t),
                ("answers", POINTER(c_size_t))]


class Summary(Structure):
    _fields_ = [("texts", c_size_t), ("labelled", c_size_t), ("base_correct", c_size_t), ("smoothed_correct", c_size_t),
                ("certified", c_size_t), ("certified_at", c_size_t * RADII), ("abstained", c_size_t), ("exact", c_size_t),
                ("without_slots", c_size_t), ("queries", c_uint64), ("base_queries", c_uint64), ("seconds", c_double),
                ("resumed", c_size_t), ("certified_answered", c_size_t), ("certified_answered_at", c_size_t * RADII),
                ("unlabelled_certified", c_size_t), ("stable", c_size_t), ("stable_at", c_size_t * RADII), ("certificates", c_size_t),
                ("empty", c_size_t), ("about_predictions", c_int), ("remote", c_int), ("classes", c_size_t),
                ("by_class", POINTER(ClassSummary)), ("edits", c_size_t), ("edit_kind", c_int),
                *((name, c_size_t * EDITS) for name in ("certified_edits", "certified_answered_edits", "stable_edits")),
                ("folded", c_int), ("unfolded_correct", c_size_t), ("words", c_size_t), ("slots", c_size_t), ("additive", c_int)]


class Verification(Structure):
    _fields_ = [("summary", Summary), ("format", c_int), ("method", c_int), ("radius", c_size_t), ("delta", c_double), ("alpha", c_double),
                ("family_wise", c_int), ("checked", c_char_p * PHRASES), ("not_checked", c_char_p * PHRASES),
                ("shard", c_size_t), ("shards", c_size_t), ("deletion", Deletion), ("edits", c_size_t), ("edit_kind", c_int)]


class SurveyProduct(Structure):
    _fields_ = [("radius", c_size_t), ("quantiles", c_double * 7), ("above_half", c_double)]


class Survey(Structure):
    _fields_ = [("texts", c_size_t), ("tokens", c_size_t), ("known_tokens", c_size_t), ("tokens_with_synonyms", c_size_t),
                ("products", SurveyProduct * 4), ("without_synonyms", c_size_t)]


class TrainCourse(Structure):
    _fields_ = [("dropout", c_double), ("rate", c_double), ("decay", c_double), ("clip", c_double), ("warmup", c_double), ("batch", c_int),
                ("epochs", c_int), ("patience", c_int), ("pool", c_int), ("precision", c_int)]


class TrainNgram(Structure):
    _fields_ = [("order", c_int), ("bits", c_int)]


class TrainCnn(Structure):
    _fields_ = [("vectors", c_char_p), ("dim", c_int), ("widths", c_char_p), ("filters", c_int), ("hidden", c_int), ("max_words", c_int),
                ("min_count", c_int), ("freeze", c_int)]


class TrainDefense(Structure):
    _fields_ = [("kind", c_int), ("kappa", c_double), ("ramp", c_int), ("train_vectors", c_int), ("triplet", c_double), ("margin", c_double)]


class TrainCharcnn(Structure):
    _fields_ = [("characters", c_int), ("size", c_int)]


class TrainBert(Structure):
    _fields_ = [("encoder", c_char_p), ("layers", c_int), ("tokens", c_int), ("truncation_side", c_int)]


class TrainContext(Structure):
    _fields_ = [("size", c_int)]


class TrainOptions(Structure):
    _fields_ = [("size", c_size_t), ("arch", c_int), ("train", c_void_p), ("dev", c_void_p), ("lexicon", c_void_p), ("seed", c_uint64),
                ("threads", c_int), ("resume", c_int), ("progress", Progress), ("course", TrainCourse), ("ngram", TrainNgram),
                ("cnn", TrainCnn), ("defense", TrainDefense), ("charcnn", TrainCharcnn), ("bert", TrainBert), ("device", c_char_p),
                ("deletion", Deletion), ("arch_choice", c_char_p), ("seeds", c_int), ("context", TrainContext)]


class TrainReport(Structure):
    _fields_ = [("texts", c_size_t), ("tokens", c_size_t), ("parameters", c_size_t), ("epochs", c_int), ("best_epoch", c_int),
                ("loss", c_double), ("dev_accuracy", c_double), ("seconds", c_double), ("tokens_per_second", c_double)]


class SumOptions(Structure):
    _fields_ = [("size", c_size_t), ("bounds", c_int), ("seed", c_uint64), ("threads", c_int), ("progress", Progress)]


class SumResult(Structure):
    _fields_ = [("members", c_size_t), ("texts", c_size_t), ("weights", c_double * SUM_MEMBERS), ("before", c_double), ("after", c_double)]


class LabelOptions(Structure):
    _fields_ = [("size", c_size_t), ("keep", c_double), ("batch", c_size_t), ("threads", c_int), ("progress", Progress)]


class LabelSummary(Structure):
    _fields_ = [*((name, c_size_t) for name in ("texts", "none", "kept", "known", "agreed", "kept_known", "kept_agreed")),
                ("by_difference", c_int), ("least_lead", c_double), ("seconds", c_double)]


class AttackOptions(Structure):
    _fields_ = [("size", c_size_t), ("method", c_int), ("smoothed", c_int), ("n", c_uint64), ("radius", c_size_t), ("max_queries", c_uint64),
                ("population", c_int), ("iterations", c_int), ("tries", c_int), ("alpha", c_double), ("seed", c_uint64), ("threads", c_int),
                ("batch", c_size_t), ("each", RECORD), ("each_context", c_void_p), ("progress", Progress), ("shard", c_size_t),
                ("shards", c_size_t), ("crew", c_void_p), ("deletion", Deletion), ("words", c_uint64), ("same_pos", c_char_p),
                ("vectors", c_char_p), ("min_cosine", c_double), ("min_similarity", c_double)]


class AttackSummary(Structure):
    _fields_ = [("texts", c_size_t), ("skipped", c_size_t), ("succeeded", c_size_t), ("without_choices", c_size_t), ("limited", c_size_t),
                ("changed", c_uint64), ("changed_share", c_double), ("queries", c_uint64), ("checks", c_uint64), ("seconds", c_double),
                ("resumed", c_size_t), ("words", c_size_t)]


class AgainstSummary(Structure):
    _fields_ = [*((name, c_size_t) for name in ("texts", "certified", "exact", "untouched", "limited", "violations", "violations_exact",
                                                "sampled")),
                ("delta", c_double), ("p_value", c_double), ("alarm", c_int), ("flips", c_size_t), ("queries", c_uint64),
                ("checks", c_uint64), ("seconds", c_double), ("resumed", c_size_t), ("shard", c_size_t), ("shards", c_size_t),
                ("deletion", Deletion), ("certified_edits", c_size_t), ("words", c_size_t)]


class Comparison(Structure):
    _fields_ = [*((name, c_size_t) for name in ("first", "second", "both", "only_first", "only_second", "neither")),
                ("p_value", c_double), ("adjusted", c_double)]


class ReportOptions(Structure):
    _fields_ = [("size", c_size_t), ("data", c_void_p), ("lexicons", POINTER(c_void_p)), ("lexicon_count", c_size_t),
                ("attacks", POINTER(c_char_p)), ("attack_count", c_size_t), ("texts", c_size_t), ("svg", c_char_p), ("csv", c_char_p),
                ("progress", Progress), ("title", c_char_p), ("notes", c_char_p)]


class ServeOptions(Structure):
    _fields_ = [("size", c_size_t), ("fixed_seed", c_int), ("host", c_char_p), ("port", c_uint16), ("token", c_char_p),
                ("without_token", c_int), ("max_body", c_size_t), ("max_text", c_size_t), ("max_texts", c_size_t), ("queue", c_size_t),
                ("connections", c_size_t), ("deadline", c_double), ("patience", c_double), ("log_texts", c_int), ("log", RECORD),
                ("log_context", c_void_p), ("client_connections", c_size_t), ("client_rate", c_double), ("second", c_void_p)]


class Gate(Structure):
    _fields_ = [("kind", c_int), ("met", c_int), ("name", c_char * 200), ("message", c_char * 600), ("part", c_size_t), ("whole", c_size_t),
                ("value", c_double), ("threshold", c_double)]


class Recall(Structure):
    _fields_ = [("label", c_char_p), ("least", c_double)]


class EvidenceOptions(Structure):
    _fields_ = [("size", c_size_t), ("model", c_void_p), ("lexicon", c_void_p), ("data", c_void_p), ("require", c_double),
                ("recalls", POINTER(Recall)), ("recall_count", c_size_t), ("baseline", c_char_p), ("not_worse_than", c_char_p),
                ("model_card", c_char_p), ("threads", c_int), ("progress", Progress)]


# The name that each has in safer.h.
IN_C = {Error: "safer_error", Progress: "safer_progress", Device: "safer_device", DataOptions: "safer_data_options", Row: "safer_row",
        LexiconOptions: "safer_lexicon_options", LexiconReport: "safer_lexicon_report", LexiconInfo: "safer_lexicon_info",
        Word: "safer_word", Doubtful: "safer_doubtful", AuditOptions: "safer_audit_options", RemoteOptions: "safer_remote_options", Traffic: "safer_traffic",
        CertifyOptions: "safer_certify_options", Certificate: "safer_certificate", Figure: "safer_figure",
        ClassSummary: "safer_class_summary", Summary: "safer_summary", Verification: "safer_verification", Gate: "safer_gate",
        Recall: "safer_recall", EvidenceOptions: "safer_evidence_options", Survey: "safer_survey", TrainOptions: "safer_train_options",
        TrainReport: "safer_train_report", SumOptions: "safer_sum_options", SumResult: "safer_sum_result",
        LabelOptions: "safer_label_options", LabelSummary: "safer_label_summary",
        AttackOptions: "safer_attack_options", AttackSummary: "safer_attack_summary",
        AgainstSummary: "safer_against_summary", Comparison: "safer_comparison", ReportOptions: "safer_report_options",
        ServeOptions: "safer_serve_options", Trial: "safer_trial", Choice: "safer_choice",
        ChooseOptions: "safer_choose_options"}
