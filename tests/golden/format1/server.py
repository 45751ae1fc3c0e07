"""A made-up model of three classes, by length, that does not answer where something is horrible."""
import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    labels = [None if "horrible" in text else ["low", "middle", "high"][(len(text) > 42) + (len(text) > 78)] for text in request["texts"]]
    print(json.dumps({"id": request["id"], "labels": labels}), flush=True)
