/**
 * The models of model-suite.ts in torch, as Python: written the way its users write them, weights from the
 * exported file. `prepare` compiles one, compares it with itself in float64, whose results it writes to a
 * file, and captures it as a CUDA graph.
 */
export const peerModels = `
import numpy, onnx, onnx.numpy_helper, os, torch, torch.nn as nn, torch.nn.functional as F
import torch._inductor.config as config
config.max_autotune_gemm_backends = "ATEN,TRITON"
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.set_grad_enabled(False)
torch.backends.cudnn.benchmark = True

def weights_of(path):
    model = onnx.load(path)
    found = {}
    for t in model.graph.initializer:
        a = onnx.numpy_helper.to_array(t)
        isBrain = a.dtype.name == "bfloat16"
        made = torch.from_numpy((a.view(numpy.int16) if isBrain else a).copy())
        found[t.name] = made.view(torch.bfloat16) if isBrain else made
    return found

class Weights:
    def __init__(self, found, dtype): self.found, self.dtype = found, dtype
    def __call__(self, name):
        t = self.found[name]
        return nn.Parameter(t.to("cuda", self.dtype) if t.is_floating_point() else t.cuda(), False)
    def linear(self, path, bias=True):
        w = self(path + ".weight_t").t().contiguous()
        m = nn.Linear(w.shape[1], w.shape[0], bias, device="meta")
        m.weight = nn.Parameter(w, False)
        if bias: m.bias = self(path + ".bias")
        return m
    def norm(self, path, eps):
        m = nn.LayerNorm(self(path + ".weight").shape, eps, device="meta")
        m.weight, m.bias = self(path + ".weight"), self(path + ".bias")
        return m

class BertLayer(nn.Module):
    def __init__(self, w, p):
        super().__init__()
        s = p + ".attention.self."
        self.q, self.k, self.v = w.linear(s + "query"), w.linear(s + "key"), w.linear(s + "value")
        self.o, self.n1 = w.linear(p + ".attention.output.dense"), w.norm(p + ".attention.output.LayerNorm", 1e-12)
        self.up, self.down = w.linear(p + ".intermediate.dense"), w.linear(p + ".output.dense")
        self.n2 = w.norm(p + ".output.LayerNorm", 1e-12)
    def forward(self, x, mask):
        b, s, d = x.shape
        split = lambda t: t.view(b, s, 12, 64).transpose(1, 2)
        a = F.scaled_dot_product_attention(split(self.q(x)), split(self.k(x)), split(self.v(x)), mask)
        x = self.n1(self.o(a.transpose(1, 2).reshape(b, s, d)) + x)
        return self.n2(self.down(F.gelu(self.up(x))) + x)

class Bert(nn.Module):
    def __init__(self, w):
        super().__init__()
        e = "embeddings."
        self.words, self.types, self.places = (w(e + n + "_embeddings.weight") for n in ("word", "token_type", "position"))
        self.norm = w.norm(e + "LayerNorm", 1e-12)
        self.layers = nn.ModuleList([BertLayer(w, f"encoder.layer.{i}") for i in range(12)])
    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.words[input_ids] + self.types[token_type_ids] + self.places[: input_ids.shape[1]]
        x = self.norm(x)
        mask = (1 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers: x = layer(x, mask)
        return x

class VitLayer(nn.Module):
    def __init__(self, w, p):
        super().__init__()
        s = p + ".attention.attention."
        self.q, self.k, self.v = w.linear(s + "query"), w.linear(s + "key"), w.linear(s + "value")
        self.o, self.n1 = w.linear(p + ".attention.output.dense"), w.norm(p + ".layernorm_before", 1e-12)
        self.up, self.down = w.linear(p + ".intermediate.dense"), w.linear(p + ".output.dense")
        self.n2 = w.norm(p + ".layernorm_after", 1e-12)
    def forward(self, x):
        b, s, d = x.shape
        split = lambda t: t.view(b, s, 12, 64).transpose(1, 2)
        y = self.n1(x)
        a = F.scaled_dot_product_attention(split(self.q(y)), split(self.k(y)), split(self.v(y)))
        x = self.o(a.transpose(1, 2).reshape(b, s, d)) + x
        return self.down(F.gelu(self.up(self.n2(x)))) + x

class Vit(nn.Module):
    def __init__(self, w):
        super().__init__()
        e = "vit.embeddings."
        self.pw, self.pb = w(e + "patch_embeddings.projection.weight"), w(e + "patch_embeddings.projection.bias")
        self.first, self.places = w(e + "cls_token"), w(e + "position_embeddings")
        self.layers = nn.ModuleList([VitLayer(w, f"vit.encoder.layer.{i}") for i in range(12)])
        self.norm = w.norm("vit.layernorm", 1e-12)
        self.cw, self.cb = w("classifier.weight"), w("classifier.bias")
    def forward(self, pixel_values):
        x = F.conv2d(pixel_values.to(self.pw.dtype), self.pw, self.pb, stride=16).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
        for layer in self.layers: x = layer(x)
        return F.linear(self.norm(x)[:, 0], self.cw, self.cb)

class Llama(nn.Module):
    def __init__(self, w):
        super().__init__()
        p = "layers.0."
        lin = lambda n: w.linear(p + n, False)
        self.q, self.k, self.v, self.o = (lin(f"self_attn.{n}_proj") for n in "qkvo")
        self.gate, self.up, self.down = (lin(f"mlp.{n}_proj") for n in ("gate", "up", "down"))
        self.n1, self.n2 = w(p + "input_layernorm.weight"), w(p + "post_attention_layernorm.weight")
        self.register_buffer("rates", torch.tensor([500000.0 ** (-i / 32) for i in range(32)], device="cuda"))
    def norm(self, x, scale):
        wide = x if x.dtype == torch.float64 else x.float()
        return scale * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)
    def forward(self, hidden_states, position_ids):
        x = hidden_states.to(self.n1.dtype)
        b, s, _ = x.shape
        angles = position_ids[:, :, None].to(self.rates.dtype) * self.rates
        angles = torch.cat([angles, angles], -1)[:, None]
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        turn = lambda t: t * cos + torch.cat([-t[..., 32:], t[..., :32]], -1) * sin
        split = lambda t, n: t.view(b, s, n, 64).transpose(1, 2)
        y = self.norm(x, self.n1)
        q, k, v = turn(split(self.q(y), 32)), turn(split(self.k(y), 8)), split(self.v(y), 8)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, 2048))
        y = self.norm(x, self.n2)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))

class Conv(nn.Module):
    def __init__(self, w, path, stride=1):
        super().__init__()
        self.w = nn.Parameter(w(path + ".weight").to(memory_format=torch.channels_last), False)
        self.b, self.stride, self.pad = w(path + ".bias"), stride, self.w.shape[2] // 2
    def forward(self, x): return F.conv2d(x, self.w, self.b, self.stride, self.pad)

class Bottleneck(nn.Module):
    def __init__(self, w, p, stride, widens):
        super().__init__()
        self.c1, self.c2, self.c3 = Conv(w, p + ".conv1"), Conv(w, p + ".conv2", stride), Conv(w, p + ".conv3")
        self.side = Conv(w, p + ".downsample.0", stride) if widens else nn.Identity()
    def forward(self, x):
        return F.relu(self.c3(F.relu(self.c2(F.relu(self.c1(x))))) + self.side(x))

class Resnet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.stem = Conv(w, "conv1", 2)
        blocks = [Bottleneck(w, f"layer{l}.{i}", (2 if l > 1 else 1) if i == 0 else 1, i == 0)
                  for l, n in ((1, 3), (2, 4), (3, 6), (4, 3)) for i in range(n)]
        self.blocks = nn.Sequential(*blocks)
        self.fw, self.fb = w("fc.weight"), w("fc.bias")
    def forward(self, input):
        x = F.max_pool2d(F.relu(self.stem(input.to(self.fw.dtype))), 3, 2, 1)
        return F.linear(self.blocks(x).mean((2, 3)), self.fw, self.fb)

class Ends(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, feeds): return self.inner(**feeds).float()

kinds = {"bert": Bert, "vit": Vit, "llama": Llama, "resnet": Resnet}
types = {"float32": numpy.float32, "int64": numpy.int64}

def prepare(m):
    make, dtype = kinds[m["kind"]], torch.bfloat16
    found = weights_of(m["model"])
    feeds = {n: torch.from_numpy(numpy.fromfile(i["file"], types[i["type"]]).reshape(i["dims"])).cuda() for n, i in m["inputs"].items()}
    if m["kind"] == "resnet": feeds = {n: t.to(memory_format=torch.channels_last) for n, t in feeds.items()}
    wide = make(Weights(found, torch.float64)).eval()
    if m["kind"] == "llama": wide.rates = wide.rates.double()
    want = wide(**{n: t.double() if t.is_floating_point() else t for n, t in feeds.items()})
    want.float().cpu().numpy().tofile(m["expected"])
    del wide
    compiled = torch.compile(Ends(make(Weights(found, dtype))).eval(), mode=m["mode"], dynamic=m["dynamic"] or None)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3): got = compiled(feeds)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): kept = compiled(feeds)
    def run(): graph.replay()
    run.keep = (feeds, kept, compiled)
    run.found = {"error64": ((got.double() - want).norm() / want.norm()).item()}
    return run
`;
