#!/usr/bin/env python3
"""Every parser of foreign bytes has a fuzz target: test_fuzz_list.py BUILD_DIR. Run by ctest.

Foreign bytes come in through few functions: those that read or map a file, read a pipe or a line, and those that take
JSON apart. Every function that calls one of them stands in READERS, with the targets that reach what it reads, or with
the reason why there is none. A new one fails this test until it is there.
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOORS = ("json_loads", "json_loadb", "json_loadf", "json_load_file", "json_load_callback", "sf_json_parse",
         "cli_json_load", "cli_json_read", "sf_file_read",
         "sf_file_load", "sf_unpack", "sf_unpack_each", "sf_safetensors_open", "sf_sealed_read", "sf_sealed_walk",
         "sf_sealed_config", "sf_source_open", "read", "pread", "fread", "fgets", "getline", "getdelim", "fscanf", "sscanf", "recv",
         "recvfrom", "archive_read_data", "inflate", "curl_easy_perform", "curl_multi_perform", "MHD_start_daemon")

# Targets, without fuzz_; or, behind a dash, why there is none.
READERS = {
    "cli/attack.c:keep_record": "-records that this process has just made",
    "cli/compare/config.c:cmp_config_read": "compare",
    "cli/compare/config.c:model_digest": "sum",
    "cli/compare/folder.c:cmp_folder_open": "compare",
    "cli/compare/helper.c:cmp_help": "-what rank 0 says, the same program in the same run",
    "cli/json.c:cli_json_load": "compare sum",
    "cli/json.c:cli_json_read": "model lexfile",
    "cli/lexicon_audit.c:ask": "-an answer that a person types, of which the first letter counts",
    "cli/lexicon_audit.c:read_whole": "-lines that are compared with those of the lexicon's pairs, and never taken apart",
    "cli/lexicon_diff.c:run_diff": "lexfile",
    "cli/lexicon_inspect.c:stats_json": "lexfile",
    "cli/model.c:model_json": "model",
    "cli/model.c:print_training": "model",
    "cli/model_options.c:cli_note_training": "model",
    "cli/pages/pages.c:print_manual": "-docs/safer.1.in, when the program is built",
    "cli/predict.c:give_answer": "-an answer that this process has just made",
    "cli/texts.c:cli_next_text": "words fold",
    "cli/serve.c:read_token": "-one line, which is compared and never taken apart",
    "src/base/digest.c:add_pieces": "-bytes are hashed and never taken apart",
    "src/base/file.c:read_regular": "-bytes are copied and never taken apart",
    "src/base/file.c:read_to_end": "-bytes are copied and never taken apart",
    "src/base/file.c:sf_file_read": "unpack",
    "src/base/source.c:read_block": "-bytes are copied and never taken apart",
    "src/base/gzip.c:inflate_member": "unpack",
    "src/base/unpack.c:read_member": "unpack",
    "src/base/unpack.c:sf_archive_walk": "data_folder",
    "src/certify/read.c:sf_run_load": "records report",
    "src/certify/read.c:sf_run_record": "records",
    "src/certify/read.c:sf_run_walk": "report records",
    "src/certify/read.c:walk": "records",
    "src/certify/verify_crew.c:compare_record": "-a record that this process has just made, as a file would have it",
    "src/data/load.c:read_file": "data_csv data_tsv data_jsonl data_fasttext",
    "src/data/load.c:read_rows": "data_csv data_tsv data_jsonl data_fasttext",
    "src/data/read_folder.c:sf_read_folder": "data_folder",
    "src/data/read_jsonl.c:sf_read_jsonl": "data_jsonl",
    "src/attack/likeness.c:read_vectors": "vectors",
    "src/lexicon/caution.c:made_from": "lexfile",
    "src/lexicon/counterfit.c:sf_constraints_read": "constraints",
    "src/lexicon/draft.c:sf_lexicon_rework": "lexfile",
    "src/lexicon/query.c:export_cuts": "lexfile",
    "src/lexicon/inputs.c:load_files": "vectors table wordnet",
    "src/lexicon/lexfile.c:safer_lexicon_open": "lexfile",
    "src/lexicon/parts.c:read_file": "parts",
    "src/lexicon/simlex.c:sf_simlex_read": "lists",
    "src/lexicon/table.c:parse_json": "table",
    "src/lexicon/table.c:sf_edits_read": "lists",
    "src/lexicon/table.c:sf_table_read": "table",
    "src/lexicon/table.c:sf_word_list_read": "lists",
    "src/lexicon/table.c:sf_wordnet_read": "wordnet",
    "src/model/devices.c:name_processor": "-what the system says of the processor, copied and never taken apart",
    "src/model/average.c:keep_common": "model",
    "src/model/bert_directory.c:load": "encoder safetensors onnx torchfile",
    "src/model/bert_file.c:sf_bert_checkpoint_open": "model",
    "src/model/model.c:open_model": "model charcnn",
    "src/model/model.c:safer_model_trained_on": "model",
    "src/model/model.c:sf_model_json": "encoder",
    "src/model/model.c:sf_model_read_common": "model",
    "src/model/sum.c:read_json": "sum",
    "src/model/sum.c:sf_sum_is": "sum model",
    "src/nn/safetensors.c:parse_header": "safetensors",
    "src/nn/safetensors.c:sf_safetensors_open": "model safetensors",
    "src/remote/exec.c:read_output": "exec_answer",
    "src/remote/exec.c:rest": "-a counter of the system's, to wake a thread",
    "src/remote/exec.c:take_line": "exec_answer",
    "src/remote/exec_child.c:discard_output": "-bytes are thrown away",
    "src/remote/exec_child.c:sf_child_listen": "-bytes are shown and never taken apart",
    "src/remote/http.c:carry": "http_answer",
    "src/remote/http_answer.c:is_json_but_for_nan": "http_answer",
    "src/remote/http_answer.c:sf_http_answer": "http_answer",
    "src/remote/http_answer.c:sf_http_declined": "http_answer",
    "src/remote/http_profile.c:try_out": "profile",
    "src/report/attacks.c:sf_report_attack_read": "report attacks",
    "src/report/card.c:read_json": "card",
    "src/report/compare.c:safer_run_read": "attacks records",
    "src/report/evidence.c:digest_file": "report",
    "src/report/evidence.c:read_card": "card",
    "src/report/report.c:read_notes": "-text that is escaped (writer.h) and never taken apart",
    "src/run/merge.c:read_piece": "merge",
    "src/run/crew_follow.c:join": "-what rank 0 says, the same program in the same run",
    "src/run/rows.c:take_record": "-records of other ranks, the same program in the same run; their seals are checked",
    "src/run/sealed.c:sf_sealed_next": "records attacks resume merge",
    "src/run/sealed.c:resume_file": "resume",
    "src/run/sealed.c:sf_sealed_config": "resume",
    "src/run/sealed.c:sf_sealed_read": "records attacks",
    "src/run/guard.c:is_of": "resume",
    "src/run/guard.c:sf_guard_begin": "resume",
    "src/serve/job.c:sf_job_read": "server",
    "src/serve/metrics.c:resident": "-numbers of the system's, in /proc",
    "src/serve/server.c:start_daemon": "server",
    "src/text/fold_build.c:version_of": "-the version that utf8proc says it has",
    "src/text/tokenizer_json.c:sf_tokenizer_parse": "tokenizer",
    "src/text/tokenizer_open.c:sf_tokenizer_load": "tokenizer sentencepiece encoder wordpiece",
    "src/text/tokenizer_open.c:load_json": "tokenizer",
    "src/text/tokenizer_open.c:describe_words": "-a description of its own; vocab.txt is cut into lines alone",
    "src/text/tokenizer_spm.c:sf_tokenizer_describe_sentencepiece": "sentencepiece",
    "src/text/wordpiece_open.c:parse_json": "encoder wordpiece",
    "src/train/course.c:read_checkpoint": "checkpoint",
    "src/train/sum_fit.c:write_sum": "sum",
    "src/train/texts.c:sf_textset_vectors": "vectors",
    "src/train/train.c:check_provenance": "-an object that the caller made; it is kept, and not taken apart",
}
OTHERS = {"json", "numbers", "pickle"}  # targets of what takes apart bytes that others have read


def functions(path):
    """(name, body) of the functions of a file laid out by clang-format."""
    name, lines = None, []
    for line in re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), path.read_text(), flags=re.S).splitlines():
        begin = re.match(r"[A-Za-z_].*?\b(\w+)\(", line)
        if begin and not line.endswith(";") and not line.startswith("#"):
            name, lines = begin.group(1), []
        lines.append(line)
        if line == "}" and name:
            yield name, "\n".join(lines[1:])
            name = None
        elif begin and line.endswith("}") and name:
            yield name, line[begin.end():]
            name = None


def doors():
    """{file:function} of all that read."""
    pattern = re.compile(r"(?<![\w.>])(%s)\(" % "|".join(DOORS))
    found = set()
    for folder in ("src", "cli"):
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            for name, body in functions(path):
                if pattern.search(body):
                    found.add(f"{path.relative_to(ROOT)}:{name}")
    return found


class FuzzList(unittest.TestCase):
    targets = {path.stem.removeprefix("fuzz_") for path in (ROOT / "tests/fuzz").glob("fuzz_*.c")}

    def test_every_reader(self):
        found = doors()
        self.assertGreater(len(found), 50)
        self.assertEqual(sorted(found - set(READERS)), [], "these read foreign bytes: name their fuzz targets in READERS")
        self.assertEqual(sorted(set(READERS) - found), [], "these read nothing any more: remove them from READERS")

    def test_targets(self):
        named = {name for value in READERS.values() if value[0] != "-" for name in value.split()} | OTHERS
        self.assertEqual(sorted(named - self.targets), [], "there is no such target")
        self.assertEqual(sorted(self.targets - named), [], "READERS does not name these targets")

    def test_corpora(self):
        for name in sorted(self.targets):
            files = [path for path in (ROOT / "tests/fuzz/corpus" / name).glob("*") if path.is_file()]
            self.assertGreaterEqual(len(files), 3, f"tests/fuzz/corpus/{name}: a few good files and bad ones")
            self.assertLess(sum(path.stat().st_size for path in files), 300_000, name)
        for path in (ROOT / "tests/fuzz/corpus").iterdir():
            self.assertIn(path.name, self.targets, "a corpus without a target")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
