#!/usr/bin/env python3
"""The server as its clients see it: test_cli_serve.py [TEST...] BUILD_DIR. Run by ctest.

Its answers are compared with what safer certify and safer predict say, and its limits are tried
one by one. test_cli_serve_rough.py is about clients that no good program would be.
"""
import concurrent.futures
import contextlib
import http.client
import json
import math
import os
import pathlib
import re
import signal
import socket
import sys
import time

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
import test_cli_certify  # noqa: E402
from test_cli import INPUT, SYSTEM, USAGE, run, write  # noqa: E402
from test_cli_certify import WITH_3, WITH_K, log_e, read_run  # noqa: E402
from serving import JSON, TEXT, TOKEN, SLOW, Serve, events_of, message, read_all, texts_of, make_files, wait_until  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent


# ------------------------------------------------------------------- answers

def bare(record):
    return {key: value for key, value in record.items() if key not in ("row", "id", "seconds", "check")}


class Answers(Serve):
    def compare(self, files, data, *options):
        """Every record of a run is what the server answers, one by one and many at once"""
        name = f"run-{files[1]}-{'-'.join(options)}.jsonl"
        self.ok(run("certify", *files, "--data", data, "--seed", 5, *options, "--quiet", "--json", "-o", name))
        records = [bare(record) for record in read_run(name)[1]]
        rows = texts_of(data)
        self.assertEqual(len(records), len(rows))
        with self.serving(*files, "--seed", 5, *options, "--max-texts", 1000, "--threads", 3) as server:
            labels = [label for label, _ in rows]
            status, many = server.post("/v1/certify", {"texts": [text for _, text in rows], "labels": labels})
            self.assertEqual(status, 200)
            self.assertEqual(many["certificates"], records)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                ask = lambda row: server.post("/v1/certify", {"text": row[1], "label": row[0]})  # noqa: E731
                self.assertEqual([answer[1]["certificates"][0] for answer in pool.map(ask, rows[:40])], records[:40])
        return records

    def test_equals_certify(self):
        """certificates are those of safer certify with the same seed: adaptive, exact and sampled"""
        self.assertTrue(any(not record["exact"] for record in self.compare(WITH_K, "demo/test.tsv")))
        exact = self.compare(("--model", "r.model", "--lexicon", "r.lex"), "demo/test.tsv")
        self.assertTrue(all(record["exact"] for record in exact))

    def test_equals_certify_otherwise(self):
        """the same for other methods, radii and three classes"""
        self.compare(WITH_K, "demo/test.tsv", "--method", "binomial", "--n", "300", "--delta", "0.05")
        self.compare(WITH_K, "demo/test.tsv", "--method", "hoeffding", "--n", "500", "--radius", "1")
        self.compare(WITH_3, "3.tsv", "--batch", "7", "--n", "400")
        edited = self.compare(WITH_3, "3.tsv", "--delete", "0.5", "--edits", "2", "--edit-kind", "delete", "--n", "300")
        self.assertTrue(any(record["edits"] for record in edited))

    def test_equals_bounds(self):
        """the same for interval bounds"""
        self.ok(run("train", "--arch", "bow", "--defense", "ibp-jia", "--data", "3.tsv", "--lexicon", "3.lex", "--dim",
                    5, "--hidden", 5,
                    "--epochs", 2, "-o", "bow.model", "--quiet", "--json"))
        records = self.compare(("--model", "bow.model", "--lexicon", "3.lex"), "3.tsv", "--method", "ibp")
        self.assertIn("margins", records[0])

    def test_terms(self):
        """radius, delta and n of a request: the certificates of safer certify with these, other requests as before"""
        rows = texts_of("demo/test.tsv", 40)
        body = {"texts": [text for _, text in rows], "labels": [label for label, _ in rows]}
        with self.serving(*WITH_K, "--seed", 5, "--n", "900", "--threads", 3) as server:
            usual = server.post("/v1/certify", body)[1]["certificates"]
            for k, terms in enumerate(({"radius": 1}, {"radius": "all", "delta": 0.0001}, {"n": 60}, {"n": 300, "delta": 0.001, "radius": 2})):
                options = [word for name, value in terms.items() for word in (f"--{name}", value)]
                n = terms.get("n", 900)
                self.ok(run("certify", *WITH_K, "--data", "demo/test.tsv", "--limit", 40, "--seed", 5, "--n", n, "--n0", n, *options, "-o", f"terms{k}.jsonl", "--json", "--quiet"))
                records = [bare(record) for record in read_run(f"terms{k}.jsonl")[1]]
                self.assertEqual(server.post("/v1/certify", {**body, **terms})[1]["certificates"], records, terms)
                self.assertNotEqual(records, usual, terms)
                self.assertEqual(server.post("/v1/certify", body)[1]["certificates"], usual, "the terms of a request are its own")
            for terms in ({"delta": 0.011}, {"delta": 0}, {"delta": True}, {"n": 901}, {"n": 0}, {"n": "60"}, {"radius": 0}, {"radius": -1}, {"radius": 1.5}, {"model": "second"}):
                status, fault = server.post("/v1/predict", {"text": TEXT, **terms})
                self.assertEqual((status, fault["error"]["code"]), (400, "bad_request"), terms)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:  # different terms at a time do not mix
                asked = [{"text": text, "n": 40 + 20 * (i % 5), "delta": 0.01 / (1 + i % 3)} for i, (_, text) in enumerate(rows)]
                alone = [server.post("/v1/predict", one)[1] for one in asked]
                self.assertEqual(list(pool.map(lambda one: server.post("/v1/predict", one)[1], asked)), alone)

    def test_terms_of_groups(self):
        """a server whose groups vote draws nothing: delta and n are refused, the radius is taken"""
        self.ok(run("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--kernel", "representative", "-o", "groups.lex"))
        with self.serving(*WITH_K[:2], "--lexicon", "groups.lex", "--groups", 5) as server:
            for terms in ({"n": 1}, {"n": 5000}, {"delta": 0.001}):
                status, fault = server.post("/v1/certify", {"text": TEXT, **terms})
                self.assertEqual(status, 400, terms)
                self.assertIn(f"\"{next(iter(terms))}\": this server's method, groups, draws nothing", fault["error"]["message"])
            self.assertEqual(server.post("/v1/certify", {"text": TEXT, "radius": 2})[0], 200)

    def test_second(self):
        """a second model: the answers of a server with that model alone"""
        texts = [text for _, text in texts_of("demo/test.tsv", 30)]
        lexicon = WITH_K[2:]
        with self.serving("--model", "r.model", *lexicon, "--seed", 3) as server:
            expected = server.post("/v1/predict", {"texts": texts})[1]
        with self.serving(*WITH_K, "--second", "r.model", "--seed", 3) as server:
            told = json.loads(server.get("/v1/model")[1])["second"]
            self.assertEqual((told["name"], told["sha256"]), ("r.model", test_cli.sha256_of("r.model")))
            first = server.post("/v1/predict", {"texts": texts})[1]
            self.assertEqual(server.post("/v1/predict", {"texts": texts, "model": "second"})[1], expected)
            self.assertEqual(server.post("/v1/predict", {"texts": texts, "model": "first"})[1], first)
            self.assertNotEqual(first, expected)
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "reloaded" in server.messages())
            self.assertEqual(server.post("/v1/predict", {"texts": texts, "model": "second"})[1], expected, "it stays")
        self.refused(run("serve", *WITH_K, "--second", "none.model"), SYSTEM, "none.model")

    def test_without_labels(self):
        """without labels the prediction is certified, as by certify --unlabelled"""
        name = "unlabelled.jsonl"
        self.ok(run("certify", *WITH_K, "--data", "demo/test.tsv", "--limit", 30, "--seed", 2, "--unlabelled", "-o",
                    name, "--json"))
        records = [{**bare(record), "label": None} for record in read_run(name)[1]]
        with self.serving(*WITH_K, "--seed", 2) as server:
            texts = [text for _, text in texts_of("demo/test.tsv", 30)]
            self.assertEqual(server.post("/v1/certify", {"texts": texts})[1]["certificates"], records)
            mixed = server.post("/v1/certify", {"texts": texts[:2], "labels": [None, "1"]})[1]["certificates"]
            self.assertEqual((mixed[0], mixed[1]["target"]), (records[0], "1"))

    def test_equals_predict(self):
        """answers are those of safer predict with the same seed"""
        texts = [text for _, text in texts_of("demo/test.tsv", 40)] + ["", TEXT, "good bad"]
        expected = json.loads(self.ok(run("predict", *WITH_K, "--seed", 9, "--json", "--n", 900, "--",
                                          *texts)))["answers"]
        with self.serving(*WITH_K, "--seed", 9, "--n", 900) as server:
            answers = server.post("/v1/predict", {"texts": texts})[1]["answers"]
            for got, want, text in zip(answers, expected, texts, strict=True):
                self.assertEqual(got, want)
                self.assertEqual(got["confidence"], got["shares"][got["leading"]])
                self.assertEqual(server.post("/v1/predict", {"text": text})[1], {"answers": [got]})
            self.assertIn(False, [answer["certified"] for answer in answers])
            self.assertIn(True, [answer["certified"] for answer in answers])

    def test_abstains(self):
        """without a clear vote there is no label, and nothing is certified"""
        text = "The boring good film is not bad but I loved the dull fine plot and hated the great acting."
        with self.serving(*WITH_K, "--seed", 1, "--alpha", "1e-300", "--n0", 20) as server:
            answer = server.post("/v1/predict", {"text": text})[1]["answers"][0]
            self.assertEqual((answer["label"], answer["abstained"], answer["certified"], answer["radius"]),
                             (None, True, False, 0))
            self.assertIn(answer["leading"], ("0", "1"))
            self.assertEqual(server.gauge("safer_abstained_total"), 1)

    def test_seed(self):
        """without --seed it is drawn afresh and told to nobody; asking again gives the same answer"""
        counts, body = [], {"texts": [text for _, text in texts_of("demo/test.tsv", 30)]}
        for _ in range(2):
            with self.serving(*WITH_K, "--method", "binomial", "--n", "1000") as server:
                self.assertIsNone(json.loads(server.get("/v1/model")[1])["seed"])
                first = server.post("/v1/certify", body)[1]["certificates"]
                self.assertEqual(first, server.post("/v1/certify", body)[1]["certificates"])
                self.assertNotIn("seed", server.messages())
                counts.append([certificate["counts"] for certificate in first])
        self.assertNotEqual(*counts)

    def test_stream(self):
        """a stream ends with the certificate; under adaptive every claim follows from its counts"""
        with self.serving(*WITH_K, "--seed", 1) as server:
            status, headers, body = server.request("POST", "/v1/certify/stream", json.dumps({"text": TEXT}))
            self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
            events = events_of(body)
            names = [name for name, _ in events]
            self.assertEqual(names, ["start", "prediction", *["progress"] * (len(names) - 3), "result"])
            self.assertGreater(len(names), 5)
            start, prediction, result = events[0][1], events[1][1], events[-1][1]
            certificate = server.post("/v1/certify", {"text": TEXT})[1]["certificates"][0]
            self.assertEqual(result, {"certificate": certificate,
                                      "answer": server.post("/v1/predict", {"text": TEXT})[1]["answers"][0]})
            self.assertEqual((start["q_at"], start["n"], start["delta"]), (certificate["q_at"], 5000, 0.01))
            self.assertEqual(prediction["vote"], certificate["vote"])
            self.assertEqual(certificate["queries"], certificate["vote"]["n"] + certificate["n"])
            self.assertEqual(sum(prediction["vote"]["counts"].values()), prediction["vote"]["n"])
            self.assertEqual((prediction["leading"], prediction["abstained"]), (certificate["prediction"], False))
            seen = 0
            for _, data in events[2:-1]:
                self.assertGreater(data["n"], seen)
                seen = data["n"]
                self.assertEqual((sum(data["counts"].values()), data["claim"], data["target"]), (seen, True, "1"))
                k = data["counts"]["1"]
                if data["bound"] > 0.5:
                    self.assertAlmostEqual(log_e(k, seen, data["bound"]), -math.log(0.01), delta=0.01)
                self.assertEqual(data["radius"], 1 if data["bound"] > 0.75 else 0)
            self.assertLess(seen, certificate["n"])
            labelled = events_of(server.request("POST", "/v1/certify/stream",
                                                json.dumps({"text": TEXT, "label": "0"}))[2])
            self.assertEqual((labelled[-1][1]["certificate"]["target"], labelled[-1][1]["answer"]), ("0", None))

    def test_stream_groups(self):
        """of a server with groups a stream has what each group reads and answers, words have their groups; batches change nothing"""
        text, found = "A good \U0001f600 film, 10/10: good film!", []
        for batch in (256, 2):
            with self.serving("--model", "r.model", "--lexicon", "r.lex", "--groups", 7, "--edits", 2, "--seed", 4, "--batch", batch) as server:
                events = events_of(server.request("POST", "/v1/certify/stream", json.dumps({"text": text}))[2])
                self.assertEqual({name for name, _ in events[1:-1]}, {"groups"} if batch > 7 else {"groups", "progress"})
                self.assertEqual(events[0][1]["q_edits"], events[-1][1]["certificate"]["q_edits"])
                votes = [vote for name, data in events if name == "groups" for vote in data["votes"]]
                found.append(votes)
                weights = events[-1][1]["certificate"]["weights"]
                self.assertEqual({label: str(sum(v["count"] for v in votes if v["label"] == label)) for label in weights}, weights)
                self.assertEqual(sum(vote["count"] for vote in votes), 7)
                self.assertEqual(len(votes), events[-1][1]["answer"]["queries"])
                sampled = [line.split("\t", 2)[1:] for line in self.ok(run("sample", "--lexicon", "r.lex", "--groups", 7, "--seed", 4, text)).splitlines()]
                self.assertEqual({str(v["group"]): v["text"] for v in votes if v["text"]}, {group: read for group, read in sampled if read})
                for vote in votes:
                    if vote["text"]:
                        answer = server.post("/v1/certify", {"text": vote["text"]})[1]["certificates"][0]
                        self.assertEqual(answer["base"], vote["label"])
                words = server.post("/v1/words", {"text": text})[1]
                units = text.encode("utf-16-le")
                pieces = [units[2 * t["utf16"][0]:2 * t["utf16"][1]].decode("utf-16-le") for t in words["tokens"]]
                self.assertEqual(pieces, ["A", "good", "\U0001f600", "film", ",", "10", "/", "10", ":", "good", "film", "!"])
                texts = {vote["group"]: vote["text"].split() for vote in votes}
                for piece, token in zip(pieces, words["tokens"]):
                    if piece not in ("good", "film"):
                        self.assertIn(piece, texts[token["group"]])
                self.assertEqual(server.post("/v1/predict", {"text": text, "n": 3})[1]["error"]["message"], "\"n\": this server's method, groups, draws nothing")
        self.assertEqual(*found)
        with self.serving(*WITH_K, "--delete", 0.6, "--edits", 2) as server:
            events = events_of(server.request("POST", "/v1/certify/stream", json.dumps({"text": text}))[2])
            self.assertEqual(events[0][1]["q_edits"], events[-1][1]["certificate"]["q_edits"])
            self.assertNotIn("tokens", server.post("/v1/words", {"text": text})[1])

    def test_stream_votes_on(self):
        """a vote that was given up goes on when there is a certificate: two predictions, the last one counts"""
        with self.serving(*WITH_K, "--seed", 1, "--alpha", "1e-300", "--n0", 1100) as server:
            events = events_of(server.request("POST", "/v1/certify/stream", json.dumps({"text": TEXT}))[2])
            first, second = (data for name, data in events if name == "prediction")
            self.assertEqual([name for name, _ in events[-2:]], ["prediction", "result"])
            self.assertTrue(100 <= first["vote"]["n"] < second["vote"]["n"] <= 1100)
            self.assertTrue(first["abstained"])
            answer, certificate = events[-1][1]["answer"], events[-1][1]["certificate"]
            self.assertNotEqual(certificate["radius"], "0")
            self.assertEqual((second["label"], second["abstained"]), (answer["label"], answer["abstained"]))
            self.assertEqual(second["vote"], certificate["vote"])

    def test_stream_claims_nothing(self):
        """methods that must not be looked at before their end claim nothing before it"""
        for options in (("--method", "binomial", "--n", 3000), ("--method", "hoeffding", "--n", 3000)):
            with self.serving(*WITH_K, "--seed", 1, *options) as server:
                events = events_of(server.request("POST", "/v1/certify/stream", json.dumps({"text": TEXT}))[2])
                middle = [data for name, data in events if name == "progress"]
                self.assertEqual(len(middle), 11)
                self.assertEqual({(data["claim"], data["bound"], data["radius"]) for data in middle},
                                 {(False, None, None)})
        with self.serving(*WITH_K, "--n", 20000) as server:
            events = events_of(server.request("POST", "/v1/certify/stream", json.dumps({"text": TEXT}))[2])
            self.assertTrue(events[-1][1]["certificate"]["exact"])
            self.assertEqual([name for name, _ in events[:1]], ["start"])
            self.assertNotIn("prediction", [name for name, _ in events])
            self.assertEqual({(data["claim"], "counts" in data) for name, data in events if name == "progress"},
                             {(False, False)})

    def test_words_folded(self):
        """with a fold words stand where they do in the text that was sent"""
        self.ok(run("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
                    "--kernel", "component", "--fold", "standard", "-o", "folded.lex", "--quiet"))
        text = "\U0001f600 f\u200bilm \ufb01ne; \u00bd g\u043e\u043ed \ufdfa"
        with self.serving(*WITH_K[:2], "--lexicon", "folded.lex") as server:
            found = server.post("/v1/words", {"text": text})[1]
            same = server.post("/v1/words", {"text": "good film"})[1]["fold"]
            many = server.post("/v1/words", {"text": "A " * 2500})[1]["fold"]
        words, fold = found["words"], found["fold"]
        units, raw = text.encode("utf-16-le"), text.encode()
        folded = json.loads(self.ok(run("fold", "--lexicon", "folded.lex", "--json", text)))
        self.assertEqual((fold["text"], fold["steps"], fold["unicode"]), (folded["texts"][0]["folded"], folded["steps"], folded["unicode"]))
        again, at = "", 0  # the text that was sent, with what stands in the places instead
        for place in fold["places"]:
            self.assertEqual(units[2 * place["utf16"][0]:2 * place["utf16"][1]].decode("utf-16-le"), raw[slice(*place["bytes"])].decode())
            again += raw[at:place["bytes"][0]].decode() + place["to"]
            at = place["bytes"][1]
        self.assertEqual(again + raw[at:].decode(), fold["text"])
        self.assertEqual([raw[slice(*place["bytes"])].decode() for place in fold["places"]],
                         ["f\u200b", "\ufb01", "\u00bd", "\u043e\u043e", "\ufdfa"])
        self.assertEqual(fold["place_count"], 5)
        self.assertEqual((same["text"], same["places"], same["place_count"]), ("good film", [], 0))
        self.assertEqual((len(many["places"]), many["place_count"]), (2000, 2500))
        sent = [raw[slice(*word["bytes"])].decode() for word in words]
        self.assertEqual([units[2 * a:2 * b].decode("utf-16-le") for a, b in (word["utf16"] for word in words)], sent)
        self.assertEqual(sent, ["f\u200bilm", "\ufb01ne", "g\u043e\u043ed", "", "", "", "\ufdfa"])
        self.assertEqual([word["key"] for word in words][:3], ["film", "fine", "good"])

    def test_words(self):
        """words stand where they are said to, with the lexicon's synonyms and overlaps"""
        text = "😀 The FINE film — déjà vu, Dull! Dull?"
        with self.serving(*WITH_K) as server:
            found = server.post("/v1/words", {"text": text})[1]
            certificate = server.post("/v1/certify", {"text": text})[1]["certificates"][0]
        self.assertIsNone(found["fold"])
        units, raw = text.encode("utf-16-le"), text.encode()
        for word in found["words"]:
            begin, end = word["utf16"]
            self.assertEqual(units[2 * begin:2 * end].decode("utf-16-le").lower(), word["key"])
            self.assertEqual(raw[slice(*word["bytes"])].decode().lower(), word["key"])
        self.assertEqual([word["key"] for word in found["words"]],
                         ["the", "fine", "film", "déjà", "vu", "dull", "dull"])
        self.assertEqual([word["pattern"] for word in found["words"]],
                         ["title", "upper", "lower", "lower", "lower", "title", "title"])
        slots = [word for word in found["words"] if word["slot"] is not None]
        self.assertEqual([word["slot"] for word in slots], list(range(len(slots))))
        self.assertEqual((found["slots"], found["q_at"]), (certificate["slots"], certificate["q_at"]))
        self.assertEqual(set(found["lexicon"]), {word["key"] for word in slots})
        shown = self.shown("k.lex", *found["lexicon"])
        for key, entry in found["lexicon"].items():
            self.assertEqual(entry["overlap"], shown[key]["overlap"])
            self.assertEqual({synonym["word"] for synonym in entry["synonyms"]}, self.synonyms("k.lex")[key])
            self.assertEqual(entry["synonym_count"], len(entry["synonyms"]))
            self.assertEqual(min(synonym["overlap"] for synonym in entry["synonyms"]), entry["overlap"])
            worst = next(synonym for synonym in entry["synonyms"] if synonym["word"] == entry["worst"])
            self.assertEqual(worst["overlap"], entry["overlap"])
            self.assertEqual({draw["word"]: draw["share"] for draw in entry["draws"]},
                             {word: float(share) for word, share in self.kernel("k.lex")[key].items()})


# -------------------------------------------------------------------- errors

class Errors(Serve):
    def test_bodies(self):
        """bodies that are not JSON, of the wrong shape, or of the wrong types"""
        many = b'{"text":' * 5000
        cases = [
            (b"", "bad_json"), (b"{", "bad_json"), (b"nonsense", "bad_json"), (b'{"text": "a"} x', "bad_json"),
            (b'{"text": "a",}', "bad_json"),
            (b'{"text": "\xff"}', "bad_json"), (b'{"text": "\xed\xa0\x80"}', "bad_json"),
            (b'{"text": "\\ud800"}', "bad_json"),
            (b'{"text": "a", "text": "b"}', "bad_json"), (b'{"text": 1e999}', "bad_json"), (many, "bad_json"),
            (b"[" * 100000, "bad_json"),
            (b"\x00", "bad_json"), (b'{"text": "a\x00b"}', "bad_json"), ('{"text": "a"}'.encode("utf-16"), "bad_json"),
            (b"[]", "bad_request"), (b'["a"]', "bad_request"), (b"{}", "bad_request"),
            (b'{"text": null}', "bad_request"),
            (b'{"text": 5}', "bad_request"), (b'{"text": ["a"]}', "bad_request"), (b'{"texts": "a"}', "bad_request"),
            (b'{"texts": []}', "bad_request"), (b'{"texts": [1]}', "bad_request"),
            (b'{"texts": ["a", null]}', "bad_request"),
            (b'{"text": "a", "texts": ["b"]}', "bad_request"), (b'{"text": "a", "m": 5}', "bad_request"),
            (b'{"Text": "a"}', "bad_request"),
            (b'{"text": "a", "\\u0000": 1}', "bad_json"),
        ]
        labels = [b'{"text": "a", "label": "2"}', b'{"text": "a", "label": 1}', b'{"text": "a", "labels": ["1"]}',
                  b'{"texts": ["a"], "label": "1"}',
                  b'{"texts": ["a"], "labels": []}', b'{"texts": ["a"], "labels": "1"}',
                  b'{"texts": ["a"], "labels": [1]}',
                  b'{"texts": ["a"], "labels": ["1", "1"]}', b'{"text": "a", "label": "1\\u0000"}']
        with self.serving(*WITH_K) as server:
            for path in ("/v1/predict", "/v1/certify", "/v1/certify/stream", "/v1/words"):
                for body, code in cases:
                    status, _, answer = server.request("POST", path, body)
                    self.error((status, json.loads(answer)), 400, code)
            for body in labels:
                for path in ("/v1/predict", "/v1/certify"):
                    status, _, answer = server.request("POST", path, body)
                    self.error((status, json.loads(answer)), 400, "bad_request")
            for path in ("/v1/certify/stream", "/v1/words"):
                self.error(server.post(path, {"texts": ["a"]}), 400, "bad_request")
            self.assertIn('"lable"', server.post("/v1/certify", {"text": "a", "lable": "1"})[1]["error"]["message"])
            self.assertEqual(server.gauge("safer_texts_total"), 0)

    def test_odd_texts(self):
        """texts that are odd but texts: empty, NUL, controls, astral, nothing but punctuation"""
        texts = ["", "\0", "good\0bad", "\x01\x1f\x7f", "😀" * 50, "?!", " ", "\ufeff", "ß ﬁ ς", "a" * 5000,
                 "good " * 2000]
        with self.serving(*WITH_K, "--n", 200) as server:
            status, answer = server.post("/v1/certify", {"texts": texts})
            self.assertEqual((status, len(answer["certificates"])), (200, len(texts)))
            for text in texts:
                self.assertEqual(server.post("/v1/words", {"text": text})[0], 200)

    def test_paths_and_methods(self):
        """wrong paths, methods and content types"""
        with self.serving(*WITH_K) as server:
            for path in ("/v1", "/v1/predict/", "/v2/predict", "//", "/../etc/passwd", "/explorer.html", "/%2e%2e",
                         "/" + "a" * 5000):
                status, _, body = server.request("GET", path)
                self.error((status, json.loads(body)), 404, "not_found")
            for method, path, allow in (("GET", "/v1/predict", "POST"), ("PUT", "/v1/certify", "POST"),
                                        ("DELETE", "/v1/words", "POST"),
                                        ("POST", "/healthz", "GET, HEAD"), ("POST", "/", "GET, HEAD"),
                                        ("PATCH", "/metrics", "GET, HEAD"),
                                        ("BREW", "/", "GET, HEAD"), ("OPTIONS", "/v1/predict", "POST")):
                status, headers, body = server.request(method, path, b"{}")
                self.assertEqual((status, headers["Allow"]), (405, allow))
                self.error((status, json.loads(body)), 405, "wrong_method")
            for kind in ("text/plain", "application/jsonp", "", "application/x-www-form-urlencoded"):
                status, _, body = server.request("POST", "/v1/predict", b'{"text": "a"}', {"Content-Type": kind})
                self.error((status, json.loads(body)), 415, "not_json")
            for kind in ("application/json; charset=utf-8", "Application/JSON"):
                self.assertEqual(server.request("POST", "/v1/predict", b'{"text": "a"}', {"Content-Type": kind})[0],
                                 200)
            status, headers, body = server.request("HEAD", "/healthz")
            self.assertEqual((status, body), (200, b""))

    def test_limits(self):
        """bodies, texts and numbers of texts above their limits, with and without a stated length"""
        with self.serving(*WITH_K, "--max-body", 5000, "--max-text", 1000, "--max-texts", 3, "--queue", 4) as server:
            self.error(server.post("/v1/predict", {"text": "a" * 1001}), 413, "too_large")
            self.error(server.post("/v1/predict", {"text": "é" * 501}), 413, "too_large")
            self.assertEqual(server.post("/v1/predict", {"text": "a" * 1000})[0], 200)
            self.error(server.post("/v1/predict", {"texts": ["a"] * 4}), 413, "too_large")
            self.assertEqual(server.post("/v1/predict", {"texts": ["a"] * 3})[0], 200)
            self.error(server.post("/v1/predict", {"text": "a" * 5000}), 413, "too_large")
            self.error(server.post("/v1/predict", {"text": "a" * 3000000}), 413, "too_large")
            def pieces():
                yield b'{"text": "'
                for _ in range(100):
                    yield b"a" * 100
                yield b'"}'
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
            connection.request("POST", "/v1/predict", pieces(), JSON, encode_chunked=True)
            answer = connection.getresponse()
            self.error((answer.status, json.loads(answer.read())), 413, "too_large")
            connection.close()
            with server.raw() as sock: # asks before it sends
                sock.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                             b"Content-Length: 99999999\r\n"
                             b"Expect: 100-continue\r\n\r\n")
                self.assertTrue(sock.recv(100).startswith(b"HTTP/1.1 413 "))
            with server.raw() as sock: # never ends: cut off
                sock.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                             b"Transfer-Encoding: chunked\r\n\r\n")
                with self.assertRaises(ConnectionError):
                    for _ in range(100000):
                        sock.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            limits = json.loads(server.get("/v1/model")[1])["limits"]
            self.assertEqual(limits, {"body": 5000, "text": 1000, "texts": 3, "queue": 4, "deadline": 30})
            self.assertEqual(server.get("/healthz")[0], 200)

    def test_no_http(self):
        """what is no HTTP is answered by the library that reads it, as docs/serve.md says; the server goes on"""
        with self.serving(*WITH_K) as server:
            for request in (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", b"GET /healthz HTTP/1.1\r\n\r\n",
                            b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                            b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40000 + b"\r\n\r\n"):
                with server.raw() as sock:
                    sock.sendall(request)
                    answer = http.client.HTTPResponse(sock)
                    answer.begin()
                    self.assertIn(answer.status, (400, 413, 414, 431, 505), request[:40])
                    self.assertNotIn("json", answer.headers["Content-Type"] or "")
            self.assertEqual(server.get("/healthz")[0], 200)

    def test_queue(self):
        """what does not fit into the queue is sent away with 503 and a time to come back"""
        options = ("--model", f"exec:{sys.executable} slow.py 0.2", "--labels", "neg,pos", "--lexicon", "k.lex",
                   "--workers", 1, "--n", 16,
                   "--n0", 16, "--queue", 2, "--max-texts", 2)
        with self.serving(*options) as server:
            with concurrent.futures.ThreadPoolExecutor(32) as pool:
                ask = lambda _: server.request("POST", "/v1/predict", json.dumps({"text": TEXT}))  # noqa: E731
                answers = list(pool.map(ask, range(32)))
            statuses = [status for status, _, _ in answers]
            self.assertEqual(set(statuses), {200, 503})
            for status, headers, body in answers:
                if status == 503:
                    self.error((status, json.loads(body)), 503, "busy")
                    self.assertGreaterEqual(int(headers["Retry-After"]), 1)
                    self.assertLess(int(headers["Retry-After"]), 60)
            self.assertEqual(server.post("/v1/predict", {"texts": [TEXT] * 2})[0], 200)

    def test_memory(self):
        """what all clients together may leave in memory is bounded; when they go, there is room again"""
        body = json.dumps({"text": "a" * 900}).encode()
        ask = lambda: server.request("POST", "/v1/predict", body)[0]  # noqa: E731
        def ask_until(wanted):
            limit = time.monotonic() + 30
            while (status := ask()) != wanted and time.monotonic() < limit:
                time.sleep(0.05)
            return status
        limits = ("--max-body", 10000, "--max-text", 10000)
        with self.serving(*WITH_K, *limits, "--n", 64) as server, contextlib.ExitStack() as stack:
            for _ in range(256):  # all but the last byte of the longest body
                sock = stack.enter_context(server.raw())
                sock.sendall(message("POST", "/v1/predict", b" " * 10000)[:-1])
            self.assertEqual(ask_until(503), 503)
            status, headers, answer = server.request("POST", "/v1/predict", body)
            self.error((status, json.loads(answer)), 503, "busy")
            self.assertEqual(headers["Retry-After"], "1")
            self.assertEqual(server.get("/v1/model")[0], 200)
            stack.close()
            self.assertEqual(ask_until(200), 200)
            self.assertEqual(server.post("/v1/words", {"text": "good " * 1900})[0], 200)

    def test_many_words(self):
        """the lists of an answer about words are bounded in all"""
        words = [test_cli_certify.word_of(i) for i in range(250)]
        write("star.table", words[0] + "\t" + " ".join(words[1:]) + "\n")
        self.ok(run("lexicon", "import", "--table", "star.table", "--protect", "none", "--kernel", "component", "-o", "star.lex"))
        with self.serving("--model", "k.model", "--lexicon", "star.lex") as server:
            entries = server.post("/v1/words", {"text": " ".join(words)})[1]["lexicon"]
        self.assertEqual(sum(len(entry["draws"]) + len(entry["synonyms"]) for entry in entries.values()), 20000)
        self.assertEqual({entry["draw_count"] for entry in entries.values()}, {250})
        self.assertEqual((len(entries), len(entries[words[0]]["draws"]), len(entries[words[0]]["synonyms"])),
                         (250, 100, 100))

    def test_deadline(self):
        """who waits longer than the deadline is told so, in time, and the work ends"""
        options = ("--model", f"exec:{sys.executable} slow.py 0.3", "--labels", "neg,pos", "--lexicon", "k.lex",
                   "--workers", 1, "--method",
                   "binomial", "--n", 6400, "--batch", 64, "--deadline", 1)
        with self.serving(*options) as server:
            start = time.monotonic()
            self.error(server.post("/v1/predict", {"texts": [TEXT, TEXT]}), 504, "deadline")
            self.assertLess(time.monotonic() - start, 2.5)
            events = events_of(server.request("POST", "/v1/certify/stream", json.dumps({"text": TEXT}))[2])
            self.assertEqual((events[-1][0], events[-1][1]["error"]["code"]), ("error", "deadline"))
            limit = time.monotonic() + 5
            while server.gauge("safer_busy_threads") and time.monotonic() < limit:
                time.sleep(0.1)
            self.assertEqual(server.gauge("safer_busy_threads"), 0)

    def test_model_fails(self):
        """a model that fails is a 500 that gives nothing away; the log says what happened"""
        write("fails.py", SLOW.replace('if "bad"', 'if "doom" not in text or sys.exit(3) else "x" if "bad"'))
        options = ("--model", f"exec:{sys.executable} fails.py 0", "--labels", "neg,pos", "--lexicon", "k.lex",
                   "--workers", 1, "--retries", 0)
        with self.serving(*options) as server:
            answer = server.post("/v1/predict", {"texts": ["good", "doom"]})
            self.error(answer, 500, "failed")
            self.assertNotIn("fails.py", json.dumps(answer))
            self.assertTrue(any("error" in line for line in server.lines(1)))
            events = events_of(server.request("POST", "/v1/certify/stream", json.dumps({"text": "doom"}))[2])
            self.assertEqual((events[-1][0], events[-1][1]["error"]["code"]), ("error", "failed"))


# --------------------------------------------------------------- who may ask

class Access(Serve):
    def test_token(self):
        """with a token, only who sends it may ask; it is nowhere in log, metrics or answers"""
        with self.serving(*WITH_K, "--auth-env", "SERVE_TOKEN", env={"SERVE_TOKEN": TOKEN}) as server:
            for wrong in (None, "", "Bearer", "Bearer ", "Bearer x", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x",
                          f"Bearer {TOKEN.upper()}",
                          f"Bearer  {TOKEN}x", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN * 2}"):
                headers = {**JSON, **({"Authorization": wrong} if wrong is not None else {})}
                for method, path in (("POST", "/v1/predict"), ("POST", "/v1/certify/stream"), ("GET", "/v1/model"),
                                     ("GET", "/metrics")):
                    status, answer_headers, body = server.request(method, path, b'{"text": "a"}', headers)
                    self.error((status, json.loads(body)), 401, "unauthorized")
                    self.assertEqual(answer_headers["WWW-Authenticate"], "Bearer")
            right = {**JSON, "Authorization": f"Bearer {TOKEN}"}
            self.assertEqual(server.request("POST", "/v1/predict", b'{"text": "a"}', right)[0], 200)
            self.assertTrue(json.loads(server.request("GET", "/v1/model", headers=right)[2])["token"])
            for path in ("/healthz", "/", "/explorer.js", "/openapi.json"):
                self.assertEqual(server.get(path)[0], 200)
            self.assertNotIn(TOKEN, server.request("GET", "/metrics", headers=right)[2].decode())
            self.assertNotIn(TOKEN, server.messages())
            self.assertNotIn(TOKEN, pathlib.Path(f"/proc/{server.process.pid}/cmdline").read_text())

    def test_token_file(self):
        """the token may stand in a file"""
        write("token", TOKEN + "\r\nmore\n")
        with self.serving(*WITH_K, "--auth-file", "token", "--host", "0.0.0.0") as server:
            self.assertEqual(server.request("GET", "/v1/model", headers={"Authorization": f"bearer {TOKEN}"})[0], 200)
            self.assertEqual(server.get("/v1/model")[0], 401)

    def test_refuses(self):
        """what it will not start with"""
        def serve(*arguments, **more):
            return run("serve", *WITH_K, "--port", 0, *arguments, **more)
        for host in ("0.0.0.0", "::", "192.0.2.1"):
            self.refused(serve("--host", host), USAGE, host, "token")
        self.refused(serve("--host", "example.org"), USAGE, "example.org")
        self.refused(serve("--host", "192.0.2.1", "--without-token"), SYSTEM, "192.0.2.1")
        write("short", "tiny\n")
        self.refused(serve("--auth-file", "short"), USAGE, "token", "16")
        write("spaces", "one two three four five\n")
        self.refused(serve("--auth-file", "spaces"), USAGE, "token")
        write("empty", "")
        self.refused(serve("--auth-file", "empty"), INPUT, "empty")
        self.refused(serve("--auth-file", "absent"), SYSTEM, "absent")
        self.refused(serve("--auth-env", "NO_SUCH_VARIABLE"), USAGE, "NO_SUCH_VARIABLE")
        self.refused(serve("--auth-env", "HOME", "--auth-file", "short"), USAGE, "--auth-env")
        self.refused(serve("--max-texts", 0), USAGE, "--max-texts")
        self.refused(serve("--max-text", 2000000), USAGE, "--max-text")
        self.refused(serve("--queue", 5), USAGE, "--max-texts")
        self.refused(serve("--deadline", 0), USAGE, "deadline")
        self.refused(serve("--patience", "-1"), USAGE, "patience")
        self.refused(serve("--connections", 0), USAGE, "connections")
        self.refused(run("serve", *WITH_K, "--port", 70000), USAGE, "70000")
        self.refused(run("serve", "--model", "k.model"), USAGE, "--lexicon")
        self.refused(run("serve", "--lexicon", "k.lex"), USAGE, "--model")
        self.refused(serve("--n", 0), USAGE, "--n 0")
        self.refused(run("serve", "--model", "exec:false", "--labels", "a,b", "--lexicon", "k.lex", "--port", 0,
                         "--retries", 0), SYSTEM, "exec")
        with self.serving(*WITH_K) as server:
            self.refused(run("serve", *WITH_K, "--port", server.port), SYSTEM, str(server.port))

    def test_host(self):
        """without a token, a loopback server answers only who calls it by address or localhost: no DNS rebinding"""
        foreign = ("example.org", "example.org:8080", "localhost.example.org", "127.0.0.1.example.org", "xlocalhost",
                   ".localhost.", "[::1", "[::1].example.org", "[example]",
                   "0x7f.1", "a" * 100, "localhost@example.org", "")
        with self.serving(*WITH_K) as server:
            ask = lambda host: server.request("GET", "/v1/model", headers={"Host": host})  # noqa: E731
            for host in ("localhost", "LocalHost:80", "a.localhost:1", "127.0.0.1", f"127.0.0.1:{server.port}",
                         "192.0.2.7:80", "[::1]", "[::1]:8080"):
                self.assertEqual(ask(host)[0], 200, host)
            for host in foreign:
                status, _, body = ask(host)
                self.error((status, json.loads(body)), 403, "wrong_host")
            self.error(server.post("/v1/predict", {"text": "a"}, headers={**JSON, "Host": "example.org"}), 403,
                       "wrong_host")
            with server.raw() as sock:
                sock.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                self.assertRegex(read_all(sock), rb"^HTTP/1.. 200 ")
        for options, headers in ((("--auth-env", "SERVE_TOKEN"), {"Authorization": f"Bearer {TOKEN}"}),
                                 (("--host", "0.0.0.0", "--without-token"), {})):
            with self.serving(*WITH_K, *options, env={"SERVE_TOKEN": TOKEN}) as server:
                self.assertEqual(server.request("GET", "/v1/model", headers={**headers, "Host": "example.org"})[0], 200)

    def test_elsewhere(self):
        """it may be told to listen for others without a token, and at IPv6's loopback"""
        with self.serving(*WITH_K, "--host", "0.0.0.0", "--without-token") as server:
            self.assertEqual(server.get("/healthz")[0], 200)
        try:
            socket.socket(socket.AF_INET6).bind(("::1", 0))
        except OSError:
            return
        with self.serving(*WITH_K, "--host", "::1") as server:
            self.assertEqual(server.url, f"http://[::1]:{server.port}")
            connection = http.client.HTTPConnection("::1", server.port, timeout=20)
            connection.request("GET", "/healthz")
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()


# ---------------------------------------------------------- what it publishes

class Published(Serve):
    def test_openapi(self):
        """openapi.json has the paths of docs/serve.md, and answers have the members it says"""
        page = (ROOT / "docs/serve.md").read_text()
        listed = set(re.findall(r"^\| `(GET|POST) ([^`]+)` \|", page, re.M))
        with self.serving(*WITH_K) as server:
            document = json.loads(server.get("/openapi.json")[1])
            schemas = document["components"]["schemas"]
            self.assertEqual({(method.upper(), path) for path, item in document["paths"].items() for method in item},
                             listed)
            self.assertEqual(document["info"]["version"], json.loads(server.get("/v1/model")[1])["version"])

            def check(value, schema):
                schema = schemas[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
                if isinstance(value, dict) and "properties" in schema:
                    self.assertLessEqual(set(value), set(schema["properties"]))
                    self.assertLessEqual(set(schema["required"]), set(value))
                    for key, inner in value.items():
                        check(inner, schema["properties"][key])
                elif isinstance(value, dict) and isinstance(schema.get("additionalProperties"), dict):
                    for inner in value.values():
                        check(inner, schema["additionalProperties"])
                elif isinstance(value, list):
                    self.assertEqual(schema["type"], "array")
                    for inner in value:
                        check(inner, schema["items"])
                elif "type" in schema:
                    kinds = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null",
                             dict: "object"}
                    kind, types = kinds[type(value)], schema["type"]
                    types = types if isinstance(types, list) else [types]
                    self.assertTrue(kind in types or (kind == "integer" and "number" in types), (value, schema))

            for path in ("/v1/predict", "/v1/certify"):
                for text in (TEXT, "good"):
                    check(server.post(path, {"text": text})[1], schemas[path[4:].capitalize() + "Answer"])
            check(server.post("/v1/words", {"text": TEXT})[1], schemas["WordsAnswer"])
            check(server.post("/v1/words", {})[1], schemas["Error"])
            check(json.loads(server.get("/v1/model")[1]), schemas["Model"])
            check(json.loads(server.get("/healthz")[1]), schemas["Health"])
            check(json.loads(server.get("/readyz")[1]), schemas["Ready"])
            answer = server.post("/v1/predict", {"text": TEXT})[1]["answers"][0]
        tables = [{name for row in table.splitlines() for name in re.findall("`([a-z_0-9]+)`", row.split("|")[1])}
                  for table in re.findall(r"^\| member[^|]*\| \|\n\|---\|---\|\n((?:\|.*\n)+)", page, re.M)]
        self.assertEqual(tables[0] - {"assumes", "tokens", "edits"}, set(answer))
        with self.serving(*WITH_K, "--delete", 0.6, "--edits", 2) as server:
            for path in ("/v1/predict", "/v1/certify"):
                check(server.post(path, {"text": TEXT})[1], schemas[path[4:].capitalize() + "Answer"])
            self.assertEqual(tables[0] - {"assumes"}, set(server.post("/v1/predict", {"text": TEXT})[1]["answers"][0]))
            check(model := json.loads(server.get("/v1/model")[1]), schemas["Model"])
            self.assertEqual((model["edits"], model["edit_kind"]), (2, "any"))
        with self.serving("--model", "r.model", "--lexicon", "r.lex", "--groups", 5) as server:
            check(words := server.post("/v1/words", {"text": TEXT})[1], schemas["WordsAnswer"])
            self.assertTrue(words["tokens"])
            check(server.post("/v1/certify", {"text": TEXT})[1], schemas["CertifyAnswer"])
            check(json.loads(server.get("/v1/model")[1]), schemas["Model"])
        with self.serving("--model", f"exec:{sys.executable} slow.py 0", "--labels", "neg,pos", "--lexicon", "k.lex") as server:
            answer = server.post("/v1/predict", {"text": "good"})[1]["answers"][0]
            check(answer, schemas["Answer"])
            check(server.post("/v1/certify", {"text": "good"})[1], schemas["CertifyAnswer"])
        self.assertEqual((answer["exact"], answer["assumes"], tables[0]), (True, ["the model is a function of the text"], set(answer) | {"tokens", "edits"}))
        for request, texts in (("Predict", {"text", "texts"}), ("Certify", {"text", "texts", "label", "labels"}), ("Stream", {"text", "label"})):
            self.assertEqual(tables[1] | texts, set(schemas[request + "Request"]["properties"]))
        words = schemas["WordsAnswer"]["properties"]
        self.assertEqual(tables[2:6], [set(words), set(schemas["Folded"]["properties"]), set(schemas["Word"]["properties"]),
                                       set(schemas["Entry"]["properties"])])
        self.assertEqual(tables[6], set(schemas["Model"]["properties"]))

    def test_page(self):
        """the explorer needs nothing from elsewhere, and its policy allows nothing else"""
        with self.serving(*WITH_K) as server:
            status, headers, body = server.request("GET", "/")
            self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            for name in re.findall(rb'(?:src|href)="([^":]*)"', body):
                status, asset = server.get("/" + name.decode())
                self.assertEqual(status, 200, name)
                self.assertNotRegex(asset, rb"https?://(?!www\.w3\.org/)") # those are names of formats
            self.assertNotRegex(body, rb"https?://|<style|<script>|style=")

    def test_metrics(self):
        """metrics are in Prometheus' format and count what happened"""
        with self.serving(*WITH_K, "--seed", 1) as server:
            certificates = server.post("/v1/certify", {"texts": [TEXT, "good film", "bad"]})[1]["certificates"]
            server.post("/v1/certify", {})
            server.get("/nowhere/at/all")
            status, headers, body = server.request("GET", "/metrics")
            self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
            values = {}
            for line in body.decode().splitlines():
                self.assertRegex(line, r'^# (HELP|TYPE) [a-z_]+ .+$'
                                       r'|^[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+$')
                if not line.startswith("#"):
                    values[line.rsplit(" ", 1)[0]] = float(line.rsplit(" ", 1)[1])
            self.assertEqual(values["safer_texts_total"], 3)
            self.assertEqual(values["safer_queries_total"], sum(c["queries"] for c in certificates))
            self.assertEqual(values["safer_certified_total"], sum(c["certified"] for c in certificates))
            self.assertEqual(values["safer_exact_total"], sum(c["exact"] for c in certificates))
            self.assertEqual(values['safer_requests_total{path="/v1/certify",status="200"}'], 1)
            self.assertEqual(values['safer_requests_total{path="/v1/certify",status="400"}'], 1)
            self.assertEqual(values['safer_requests_total{path="other",status="404"}'], 1)
            self.assertEqual(values['safer_request_seconds_bucket{le="+Inf"}'], values["safer_request_seconds_count"])
            self.assertGreater(values["process_resident_memory_bytes"], 1e6)

    def test_log(self):
        """a line of JSON per request, without texts unless they are asked for"""
        for options, expected in (((), None), (("--log-texts",), ["secret words", "\0"])):
            with self.serving(*WITH_K, *options) as server:
                server.post("/v1/predict", {"texts": ["secret words", "\0"]})
                server.get("/secret?secret=secret")
                server.request("SECRETS", "/")
                with server.raw() as sock:
                    sock.sendall(b"\xff\xfe / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    read_all(sock)
                lines = server.lines(4)
                self.assertEqual([(line["method"], line["path"], line["status"]) for line in lines],
                                 [("POST", "/v1/predict", 200), ("GET", "other", 404), ("other", "/", 405),
                                  ("other", "/", 405)])
                self.assertEqual((lines[0]["texts"], lines[0]["client"]), (2, "127.0.0.1"))
                self.assertEqual(lines[0].get("content"), expected)
                if not expected:
                    self.assertNotIn("secret", server.messages().lower())
                self.assertRegex(lines[0]["time"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
                self.assertEqual(lines[0]["sent"] > 100, True)
        for options in (("--quiet",), ("--quiet", "--access-log", "off")):
            with self.serving(*WITH_K, *options) as server:
                server.get("/healthz")
                self.assertEqual(server.messages(), "")

    def test_log_file(self):
        """the log as a file: appended to, opened again on SIGHUP, nothing of it on standard error; one that cannot be opened is refused"""
        write("access.log", "before\n")
        path = test_cli.temporary / "access.log"
        with self.serving(*WITH_K, "--access-log", "access.log") as server:
            status, headers, stream = server.request("POST", "/v1/certify/stream", json.dumps({"text": TEXT}))
            self.assertTrue(wait_until(lambda: path.read_text().count("\n") == 2))
            first = json.loads(path.read_text().splitlines()[1])
            self.assertEqual((first["path"], first["sent"]), ("/v1/certify/stream", len(stream)))
            os.rename(path, test_cli.temporary / "access.old")
            server.get("/readyz")
            self.assertTrue(wait_until(lambda: (test_cli.temporary / "access.old").read_text().count("\n") == 3))
            server.process.send_signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: "safer: reloaded" in server.messages()))
            server.get("/healthz")
            self.assertTrue(wait_until(lambda: path.read_text().count("\n") == 1))
            self.assertEqual(json.loads(path.read_text())["path"], "/healthz")
            self.assertNotIn("{", server.messages())
            self.assertEqual("running as root" in server.messages(), os.geteuid() == 0)
        self.refused(run("serve", *WITH_K, "--access-log", "no/such/folder"), SYSTEM, "no/such/folder")

    def test_ready(self):
        """alive and ready are two things: full, or stopping, it is alive but not ready"""
        slow = ("--model", f"exec:{sys.executable} slow.py 1", "--labels", "neg,pos", "--lexicon", "k.lex", "--workers", 1, "--queue", 2,
                "--max-texts", 2, "--n", 16, "--n0", 16)
        with self.serving(*slow) as server, contextlib.ExitStack() as stack:
            self.assertEqual(server.get("/readyz"), (200, b'{"status":"ready"}'))

            def is_full():
                """Looked at after one more request, so that it is, however late the look."""
                stack.enter_context(server.raw()).sendall(message("POST", "/v1/predict", json.dumps({"text": TEXT}).encode()))
                return server.get("/readyz") == (503, b'{"status":"full"}')
            self.assertTrue(wait_until(is_full))
            self.assertEqual(server.get("/healthz"), (200, b'{"status":"ok"}'))
            kept = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=30) for _ in range(2)]
            for connection in kept:
                connection.request("GET", "/readyz")
                connection.getresponse().read()
            server.process.send_signal(signal.SIGTERM)
            self.assertTrue(wait_until(lambda: "stopping" in server.messages()))
            seen = []
            for connection, path in zip(kept, ("/readyz", "/healthz")):
                connection.request("GET", path)
                response = connection.getresponse()
                seen.append((response.status, response.read()))
                connection.close()
            self.assertEqual(seen, [(503, b'{"status":"stopping"}'), (200, b'{"status":"ok"}')])
            server.process.wait(60)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
