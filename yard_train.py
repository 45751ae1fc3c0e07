import torch, time
from transformers import BertConfig, BertForSequenceClassification
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
for hidden in (384, 768):
    c = BertConfig(hidden_size=hidden, num_hidden_layers=12, num_attention_heads=12, intermediate_size=4*hidden, attn_implementation="sdpa", hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    m = BertForSequenceClassification(c).cuda().train()
    o = torch.optim.AdamW(m.parameters(), lr=1e-5, fused=True)
    ids = torch.randint(0, 30000, (128, 256), device="cuda"); y = torch.randint(0, 2, (128,), device="cuda")
    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = m(ids, labels=y).loss
        loss.backward(); torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0); o.step(); o.zero_grad()
    for name in ("eager", "compiled"):
        if name == "compiled":
            m.forward = torch.compile(m.forward)
        try:
            for _ in range(4): step()
            torch.cuda.synchronize(); t = time.time()
            for _ in range(10): step()
            torch.cuda.synchronize(); print(f"pytorch {name} training {hidden}: {1280/(time.time()-t):.0f} texts/s", flush=True)
        except Exception as e:
            print(name, "failed", str(e)[:200], flush=True)
