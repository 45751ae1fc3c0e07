#!/usr/bin/env python3
"""PyTorch on the shapes that test_encoder, test_training and test_convnet measure with --speed: yardstick.py LENGTHS.

The same encoders from transformers, with random weights, in bf16 (training: f32 parameters under autocast), SDPA for
attention, AdamW in one kernel, gradients clipped. Texts of real lengths are sorted by length and padded in batches. What is
measured is the best of a few rounds, after two to warm up.
"""
import sys
import time

import torch
from transformers import BertConfig, BertForSequenceClassification

SHAPES = {"gte-small's shape": (384, 1536, 1024), "BERT-base's shape": (768, 3072, 256)}
PIECES, TRAINED = 256, 128
lengths = [int(line) for line in open(sys.argv[1])]


def encoder(hidden, inner):
    torch.manual_seed(1)
    return BertForSequenceClassification(BertConfig(
        hidden_size=hidden, intermediate_size=inner, num_hidden_layers=12, num_attention_heads=12,
        attn_implementation="sdpa", hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.0)).cuda()


def best_of(rounds, work):
    best = float("inf")
    for i in range(rounds + 2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        if i > 1:
            best = min(best, time.perf_counter() - start)
    return best


def texts(count, pieces):
    return torch.randint(0, 30000, (count, pieces), device="cuda")


def forward(name, hidden, inner, batch):
    model = encoder(hidden, inner).bfloat16().eval()
    with torch.inference_mode():
        ids = texts(batch, PIECES)
        seconds = best_of(8, lambda: model(ids))
        print(f"PyTorch, {name}, {PIECES} pieces: {batch / seconds:.0f} texts/s", flush=True)
        several, count = sorted(lengths * 8), len(lengths) * 8
        batches, first = [], 0
        while first < count:  # about as many pieces in each
            last = first + 1
            while last < count and (last + 1 - first) * several[last] <= batch * PIECES:
                last += 1
            part = torch.tensor(several[first:last], device="cuda")
            most = several[last - 1]
            mask = torch.arange(most, device="cuda")[None, :] < part[:, None]
            batches.append((texts(last - first, most), None if several[first] == most else mask.long()))
            first = last
        seconds = best_of(3, lambda: [model(ids, attention_mask=mask) for ids, mask in batches])
        print(f"PyTorch, {name}, lengths of IMDB, sorted: {count / seconds:.0f} texts/s", flush=True)


def training(name, hidden, inner, compiled):
    model = encoder(hidden, inner).train()
    called = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    ids, labels = texts(TRAINED, PIECES), torch.randint(0, 2, (TRAINED,), device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = called(ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    seconds = best_of(10, step)
    how = "compiled" if compiled else "as it is"
    print(f"PyTorch, {name}, training {TRAINED} texts of {PIECES}, {how}: {TRAINED / seconds:.0f} texts/s", flush=True)


class CharCNN(torch.nn.Module):
    """Zhang, Zhao and LeCun (2015), with the first convolution over characters in one of 70 places."""

    def __init__(self, features, hidden):
        super().__init__()
        widths = [7, 7, 3, 3, 3, 3]
        self.convolutions = torch.nn.ModuleList(torch.nn.Conv1d(features if k else 70, features, width) for k, width in enumerate(widths))
        self.dense = torch.nn.Sequential(torch.nn.Linear(34 * features, hidden), torch.nn.ReLU(), torch.nn.Dropout(0.5),
                                         torch.nn.Linear(hidden, hidden), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(hidden, 2))

    def forward(self, codes):
        x = torch.nn.functional.one_hot(codes, 70).transpose(1, 2).to(self.convolutions[0].weight.dtype)
        for k, convolution in enumerate(self.convolutions):
            x = torch.relu(convolution(x))
            if k in (0, 1, 5):
                x = torch.nn.functional.max_pool1d(x, 3)
        return self.dense(x.flatten(1))


def charcnn(name, features, hidden):
    torch.backends.cudnn.benchmark = True
    model = CharCNN(features, hidden).cuda().bfloat16().eval()
    with torch.inference_mode():
        codes = torch.randint(0, 70, (1024, 1014), device="cuda")
        for called, how in ((model, "as it is"), (torch.compile(model), "compiled")):
            seconds = best_of(8, lambda: called(codes))
            print(f"PyTorch, charcnn {name}, forward, {how}: {1024 / seconds:.0f} texts/s", flush=True)
    for compiled in (False, True):
        model = CharCNN(features, hidden).cuda().train()
        called = torch.compile(model) if compiled else model
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
        codes, labels = torch.randint(0, 70, (TRAINED, 1014), device="cuda"), torch.randint(0, 2, (TRAINED,), device="cuda")

        def step():
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(called(codes), labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        how = "compiled" if compiled else "as it is"
        print(f"PyTorch, charcnn {name}, training {TRAINED} texts, {how}: {TRAINED / best_of(10, step):.0f} texts/s", flush=True)


print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
for name, (hidden, inner, batch) in SHAPES.items():
    forward(name, hidden, inner, batch)
for name, (hidden, inner, _) in SHAPES.items():
    for compiled in (False, True):
        training(name, hidden, inner, compiled)
for name, sizes in {"small": (256, 1024), "large": (1024, 2048)}.items():
    charcnn(name, *sizes)
