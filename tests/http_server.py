"""A service with one endpoint a profile, for tests: the same text always gets the same answer.

    python3 http_server.py [--labels neg,pos] [--token TOKEN] [--certificate FILE]

prints the port it listens on (of 127.0.0.1) and serves until its input ends. The score of class k
is 1 + the number of letters "aeiou"[k] in the text, divided by their sum; the greatest wins, of
equals the first.

    POST /json                  {"texts": [...]}            -> {"labels": [...]}
    POST /scores                {"texts": [...]}            -> {"scores": [[...], ...]}
    POST /one                   {"text": "..."}             -> {"result": {"label": "..."}}
    POST /pipeline              {"inputs": [...]}           -> [[{"label": ..., "score": ...}, ...], ...]
    POST /v2/models/m/infer     Open Inference Protocol v2  (/v2/models/scores/infer answers with FP32)
    POST /predict               text-embeddings-inference
    POST /v1/chat/completions   OpenAI; the text is what follows "Text:\\n" in the last message
    GET  /stats                 requests, faults, connections, most requests at once; POST /clear: zeros

Faults are asked for in the query: ?fault=NAME[,NAME...] picks one of them for a share (share=0.2;
1 when not given) of the requests, with only=WORD of those that contain the word. See FAULTS;
delay=SECONDS is for slow ones, after=SECONDS is the Retry-After of 429.
"""
import argparse
import http.server
import json
import random
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse

FAULTS = ["503", "500", "429", "404", "slow", "reset", "empty", "malformed", "half", "chunk", "header", "nan", "count", "unknown",
          "307", "huge", "shape", "html", "echo"]


class Model:
    def __init__(self, labels):
        self.labels = labels

    def scores(self, text):
        counts = [1 + text.count("aeiou"[k % 5]) for k in range(len(self.labels))]
        return [count / sum(counts) for count in counts]

    def label(self, text):
        scores = self.scores(text)
        return self.labels[scores.index(max(scores))]

    def ranked(self, text):
        pairs = [{"label": label, "score": score} for label, score in zip(self.labels, self.scores(text))]
        return sorted(pairs, key=lambda pair: -pair["score"])


class Service(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, labels, token=None, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.model, self.token = Model(labels), token
        self.lock, self.random = threading.Lock(), random.Random(1)
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate)
        self.clear()

    def clear(self):
        self.stats = dict(requests=0, faults=0, connections=0, now=0, at_once=0, texts=0)

    def count(self, **changes):
        with self.lock:
            for name, change in changes.items():
                self.stats[name] += change
            self.stats["at_once"] = max(self.stats["at_once"], self.stats["now"])

    def finish_request(self, request, address):
        if self.tls:  # in the connection's own thread: a client that refuses the certificate stops no other
            request = self.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, address)

    def handle_error(self, request, address):
        pass  # connections that break are what this is for


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # header and body in one packet

    def setup(self):
        super().setup()
        self.server.count(connections=1)

    def log_message(self, *arguments):
        pass

    # ---------------------------------------------------------------- sending

    def send(self, code, body, headers=()):
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def cut(self, head, body=b""):
        self.wfile.write(head + body)
        self.wfile.flush()
        self.close_connection = True

    def do_GET(self):
        with self.server.lock:
            self.send(200, json.dumps(self.server.stats))

    # ----------------------------------------------------------------- faults

    def fault(self, query, body):
        names = query.get("fault", [""])[0].split(",")
        share = float(query.get("share", ["1"])[0])
        with self.server.lock:
            if names == [""] or query.get("only", [""])[0].encode() not in body or self.server.random.random() >= share:
                return ""
            self.server.stats["faults"] += 1
            return self.server.random.choice(names)

    def inject(self, name, query, answer):
        """What is sent instead of the answer; False when the answer goes after all."""
        half = answer[:len(answer) // 2]
        if name == "slow":
            time.sleep(float(query.get("delay", ["0.1"])[0]))
            return False
        if name in ("500", "503", "404"):
            self.send(int(name), '{"error": "fault %s"}' % name)
        elif name == "429":
            self.send(429, '{"error": "too many"}', [("Retry-After", query.get("after", ["1"])[0])])
        elif name == "307":
            self.send(307, "", [("Location", "http://user:hush@example.org/elsewhere?key=hushhush")])
        elif name == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        elif name == "empty":
            self.close_connection = True
        elif name == "half":
            self.cut(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer), half)
        elif name == "chunk":
            self.cut(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(answer), half)
        elif name == "header":
            self.cut(b"HTTP/1.1 200 OK\r\nContent-Ty")
        elif name == "malformed":
            self.send(200, half)
        elif name == "html":
            self.send(200, "<html>\n  <body>Bad gateway \u2603 \x01</body>\n</html>" * 20)
        elif name == "huge":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            for _ in range(80):
                self.wfile.write(b" " * (1 << 20))
            self.close_connection = True
        elif name == "nan":
            self.send(200, '{"scores": [[NaN, 0.5]]}')
        elif name == "count":
            self.send(200, '{"labels": []}')
        elif name == "unknown":
            self.send(200, '{"labels": ["maybe"]}')
        elif name == "shape":
            self.send(200, '{"labels": {"no": "list"}}')
        elif name == "echo":
            self.send(401, json.dumps({"error": "bad", "sent": self.headers.get("Authorization", ""), "path": self.path}))
        else:
            self.send(400, "no such fault: " + name)
        return True

    # ---------------------------------------------------------------- answers

    def chat(self, request):
        if request["temperature"] != 0 or not request["model"]:
            return 400, {"error": {"message": "temperature or model"}}
        text = request["messages"][-1]["content"].split("Text:\n", 1)[1]
        if "FILTER" in text:
            return 400, {"error": {"code": "content_filter", "message": "filtered"}}
        reply = "Label: **%s**." % self.server.model.label(text).upper()
        if "REFUSE" in text:
            reply = "I cannot help with that."
        message = {"role": "assistant", "content": None if "NULL" in text else reply}
        return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    def infer(self, request, name):
        tensor, model = request["inputs"][0], self.server.model
        texts = tensor["data"]
        assert tensor["datatype"] == "BYTES" and tensor["shape"] == [len(texts)] and tensor["name"]
        if name == "scores":
            data = [score for text in texts for score in model.scores(text)]
            output = {"name": "probabilities", "shape": [len(texts), len(model.labels)], "datatype": "FP32", "data": data}
        else:
            output = {"name": "out", "shape": [len(texts), 1], "datatype": "BYTES", "data": [model.label(text) for text in texts]}
        return {"model_name": name, "outputs": [output]}, len(texts)

    def answer(self, path, request):
        """Status, answer, number of texts."""
        model = self.server.model
        if path == "/v1/chat/completions":
            return (*self.chat(request), 1)
        if path.startswith("/v2/models/"):
            return (200, *self.infer(request, path.split("/")[3]))
        if path == "/one":
            return 200, {"result": {"label": model.label(request["text"])}}, 1
        if path == "/predict":
            texts = [sequence[0] for sequence in request["inputs"] if len(sequence) == 1]
            if len(texts) != len(request["inputs"]) or len(texts) > 32 or not request["truncate"]:
                return 413, {"error": "Batch size error", "error_type": "validation"}, 0
            return 200, [model.ranked(text) for text in texts], len(texts)
        if path == "/pipeline":
            return 200, [model.ranked(text) for text in request["inputs"]], len(request["inputs"])
        if path == "/json":
            return 200, {"labels": [model.label(text) for text in request["texts"]]}, len(request["texts"])
        if path == "/scores":
            return 200, {"scores": [model.scores(text) for text in request["texts"]]}, len(request["texts"])
        return 404, {"error": "no such path"}, 0

    def serve(self, body):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        self.server.count(requests=1)
        if self.server.token and self.headers.get("Authorization") != "Bearer " + self.server.token:
            return self.send(401, json.dumps({"error": "bad token: " + self.headers.get("Authorization", "none")}))
        code, answer, texts = self.answer(url.path, json.loads(body))
        answer = json.dumps(answer).encode()
        name = self.fault(query, body)
        if name and self.inject(name, query, answer):
            return None
        self.server.count(texts=texts)
        return self.send(code, answer)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/clear":
            with self.server.lock:
                self.server.clear()
            self.send(200, "{}")
            return
        self.server.count(now=1)
        try:
            self.serve(body)
        finally:
            self.server.count(now=-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--labels", default="neg,pos")
    parser.add_argument("--token")
    parser.add_argument("--certificate")
    arguments = parser.parse_args()
    service = Service(arguments.labels.split(","), arguments.token, arguments.certificate)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    print(service.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
