import torch, time
from transformers import BertConfig, BertModel
torch.manual_seed(0)
for hidden, batch in ((384, 1024), (768, 256)):
    c = BertConfig(hidden_size=hidden, num_hidden_layers=12, num_attention_heads=12, intermediate_size=4*hidden, attn_implementation="sdpa")
    m = BertModel(c).cuda().bfloat16().eval()
    ids = torch.randint(0, 30000, (batch, 256), device="cuda")
    with torch.no_grad():
        best = 1e9
        for _ in range(6):
            torch.cuda.synchronize(); t = time.time(); m(ids); torch.cuda.synchronize(); best = min(best, time.time() - t)
    print(f"pytorch {hidden}: {batch/best:.0f} texts/s", flush=True)
