"""Models of PyTorch and pipelines of transformers, taken as they are and asked in full batches. Neither package is imported
unless a model of it is given."""
from __future__ import annotations

import importlib
from typing import Any, Dict, List, Optional

from ._errors import InvalidError

_UNLIMITED = 1_000_000  # tokenizers that do not know their limit say 1e30
_USUAL = 512


def _limit(tokenizer: Any) -> int:
    known = getattr(tokenizer, "model_max_length", None)
    return int(known) if isinstance(known, (int, float)) and 0 < known < _UNLIMITED else _USUAL


def _class_names(model: Any) -> Optional[List[str]]:
    """The names in a model's configuration, in the order of its scores; None where there are none: LABEL_k is no name."""
    names: Dict[Any, Any] = getattr(getattr(model, "config", None), "id2label", None) or {}
    numbered = {int(number): str(name) for number, name in names.items()}
    if len(numbered) < 2 or set(numbered) != set(range(len(numbered))) or all(name.startswith("LABEL_") for name in numbered.values()):
        return None
    return [numbered[k] for k in range(len(numbered))]


class TorchModel:
    """A module with the tokenizer that makes its inputs. The module is asked in evaluation mode, on the device where it is,
    without gradients, and left in the mode that it had."""

    def __init__(self, module: Any, tokenizer: Any) -> None:
        if not callable(module) or not callable(tokenizer):
            raise InvalidError("predict: of a pair the first is a module, the second its tokenizer")
        self.module, self.tokenizer = module, tokenizer
        self.class_names = _class_names(module)

    def __call__(self, texts: List[str]) -> Any:
        torch = importlib.import_module("torch")
        training = bool(getattr(self.module, "training", False))
        if training:
            self.module.eval()  # else dropout would answer at random
        try:
            with torch.inference_mode():
                inputs = self._encode(texts)
                return self.module(**inputs) if hasattr(inputs, "keys") else self.module(inputs)
        finally:
            if training:
                self.module.train()

    def _encode(self, texts: List[str]) -> Any:
        if hasattr(self.tokenizer, "model_max_length"):  # of transformers
            inputs = self.tokenizer(texts, padding=True, truncation=True, max_length=_limit(self.tokenizer), return_tensors="pt")
        else:
            inputs = self.tokenizer(texts)
        parameter = next(iter(self.module.parameters()), None) if hasattr(self.module, "parameters") else None
        if parameter is None:
            return inputs
        if hasattr(inputs, "keys"):
            return {name: inputs[name].to(parameter.device) for name in inputs.keys()}
        return inputs.to(parameter.device)


class PipelineModel:
    """A pipeline of transformers for classification of texts: one call for all texts that are asked at once."""

    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline
        self.class_names = _class_names(pipeline.model)

    def __call__(self, texts: List[str]) -> Any:
        return self.pipeline(texts, batch_size=len(texts), truncation=True, max_length=_limit(self.pipeline.tokenizer))


def adopt(predict: Any) -> Any:
    """`predict`, or what asks it in its own way: pairs of module and tokenizer, and pipelines."""
    if isinstance(predict, tuple):
        if len(predict) != 2:
            raise InvalidError(f"predict: a tuple of {len(predict)}; a module and its tokenizer are two")
        return TorchModel(*predict)
    if getattr(predict, "task", None) in ("text-classification", "sentiment-analysis") and hasattr(predict, "tokenizer") \
            and hasattr(predict, "model") and callable(predict):
        return PipelineModel(predict)
    return predict
