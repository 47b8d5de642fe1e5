"""LIBSVM's model files, as LIBSVM means them.

A header of lines ``keyword value ...`` is followed by the line ``SV`` and one line for each support
vector, its coefficients and its features. For the pair of classes i < j, counted in the order of
the line ``label``, LIBSVM decides by

    f(x) = Σ_s c_s k(x, x_s) − ρ_ij  > 0  for class i,

the sum over the support vectors of both classes. A support vector of class i has its coefficients
against the other classes in their order. Regression and one-class machines have one ρ and one
coefficient for each support vector. Of a precomputed kernel a support vector is its serial number,
``0:i``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from jsvm.io.data import Matrix, to_csr
from jsvm.io.rows import (
    LARGEST_INDEX,
    Layout,
    Rows,
    finite_number,
    number_text,
    pairs_text,
    read_rows,
    shown,
    split_serials,
)

CLASSIFIERS = ("c_svc", "nu_svc")
SVM_TYPES = (*CLASSIFIERS, "one_class", "epsilon_svr", "nu_svr")  # in the order of their numbers
KERNEL_PARAMETERS = {
    "linear": (),
    "polynomial": ("degree", "gamma", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
    "precomputed": (),
}
KEYWORDS = {
    name.encode(): name
    for name in (
        *("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho"),
        *("label", "probA", "probB", "prob_density_marks", "nr_sv", "SV"),
    )
}


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds.

    Parameters
    ----------
    svm_type, kernel_type : str
        LIBSVM's names.
    parameters : dict
        Of the kernel: degree, gamma, coef0 as far as it has them.
    rho : array of shape (pairs,)
        One for each pair of classes; one if there are no classes.
    coefficients : array of shape (classes − 1, n)
        One row if there are no classes.
    vectors : csr_matrix of shape (n, features)
        Empty rows if the kernel is precomputed; features are then the training examples.
    serials : array of shape (n,) or None
        Numbers of the support vectors, from 1, if the kernel is precomputed.
    labels, counts : array of shape (classes,) or None
        Classes, and how many support vectors each has, in the order of the support vectors.
    slopes, offsets : array of shape (pairs,) or None
        A and B of P(class i) = 1 / (1 + exp(A f + B)), the lines ``probA`` and ``probB``. Of
        regression the slope is the scale of the noise, and there is no offset.
    density_marks : array or None
        Decision values that bound ten equal shares of the examples of a one-class machine.
    """

    svm_type: str
    kernel_type: str
    parameters: dict[str, float]
    rho: np.ndarray
    coefficients: np.ndarray
    vectors: Matrix
    serials: np.ndarray | None = None
    labels: np.ndarray | None = None
    counts: np.ndarray | None = None
    slopes: np.ndarray | None = None
    offsets: np.ndarray | None = None
    density_marks: np.ndarray | None = None


def write_model(model: Model, path: str | Path) -> None:
    """Write a model file; every number reads back as the same number."""
    header: dict[str, Any] = {"svm_type": [model.svm_type], "kernel_type": [model.kernel_type]}
    header |= {name: [number_text(value)] for name, value in model.parameters.items()}
    header["nr_class"] = [2 if model.labels is None else len(model.labels)]
    header["total_sv"] = [model.coefficients.shape[1]]
    for keyword, numbers in (
        ("rho", model.rho),
        ("label", model.labels),
        ("probA", model.slopes),
        ("probB", model.offsets),
        ("prob_density_marks", model.density_marks),
        ("nr_sv", model.counts),
    ):
        if numbers is not None:
            header[keyword] = [number_text(float(number)) for number in numbers]
    with Path(path).open("w", encoding="ascii", newline="\n") as file:
        for keyword, words in header.items():
            file.write(" ".join(map(str, [keyword, *words])) + "\n")
        file.write("SV\n")
        file.writelines(_vector_lines(model))


def _vector_lines(model: Model) -> Iterator[str]:
    """Yield a line for each support vector; a last zero in the first one tells the features."""
    X, features = model.vectors, model.vectors.shape[1]
    for s, coefficients in enumerate(model.coefficients.T.tolist()):
        some = slice(X.indptr[s], X.indptr[s + 1])
        indices, values = (X.indices[some] + 1).tolist(), X.data[some].tolist()
        if model.serials is not None:
            indices, values = [0, *indices], [float(model.serials[s]), *values]
        if s == 0 and features and (not indices or indices[-1] < features):
            indices, values = [*indices, features], [*values, 0.0]
        yield " ".join(map(number_text, coefficients)) + pairs_text(indices, values) + "\n"


def read_model(path: str | Path) -> Model:
    """Read a model file; raise ValueError with the line that is wrong."""
    with Path(path).open("rb") as file:
        header = _Header(str(path), file)
        svm_type = header.one_of("svm_type", SVM_TYPES)
        kernel_type = header.one_of("kernel_type", tuple(KERNEL_PARAMETERS))
        parameters = {name: header.number(name) for name in KERNEL_PARAMETERS[kernel_type]}
        labels, counts, classes = None, None, 2
        if svm_type in CLASSIFIERS:
            labels, counts = _read_classes(header)
            classes = len(labels)
        pairs = classes * (classes - 1) // 2
        rho = np.array(header.numbers("rho", pairs))
        slopes, offsets = (header.optional(name, pairs) for name in ("probA", "probB"))
        serial = kernel_type == "precomputed"
        layout = Layout(str(path), classes - 1, "coefficients", serial=serial, closed=True)
        rows = read_rows(file, header.lines + 1, layout)
    _check_total(header, counts, len(rows.lengths))
    serials = None
    if serial:
        serials, rows = split_serials(rows)
    return Model(
        svm_type=svm_type,
        kernel_type=kernel_type,
        parameters=parameters,
        rho=rho,
        coefficients=np.ascontiguousarray(rows.numbers.T),
        vectors=_vectors(rows, serials, str(path)),
        serials=serials,
        labels=labels,
        counts=None if counts is None else np.array(counts, np.int64),
        slopes=slopes,
        offsets=offsets,
        density_marks=header.optional("prob_density_marks"),
    )


def _read_classes(header: "_Header") -> tuple[np.ndarray, list[int]]:
    """Return labels and numbers of support vectors; these may be any numbers as yet."""
    (classes,) = header.whole("nr_class", 1)
    if classes < 2:
        header.refuse("nr_class", f"{classes} class(es), but a classifier has at least two")
    labels = header.whole("label", classes)
    if max(map(abs, labels)) > LARGEST_INDEX:
        header.refuse("label", f"a label is larger than {LARGEST_INDEX}")
    if len(set(labels)) < classes:
        header.refuse("label", "a label occurs twice")
    return np.array(labels, np.int64), header.whole("nr_sv", classes)


def _check_total(header: "_Header", counts: list[int] | None, found: int) -> None:
    (total,) = header.whole("total_sv", 1)
    if total != found:
        header.refuse(
            "total_sv",
            f"it says {total}, but {found} support vectors follow; the file is cut off or was "
            "changed",
        )
    if counts is not None and (min(counts) < 0 or sum(counts) != total):
        header.refuse("nr_sv", f"the numbers do not add up to {total}, which total_sv says")


def _vectors(rows: Rows, serials: np.ndarray | None, name: str) -> Matrix:
    vectors = to_csr(rows)
    if serials is not None:
        if not ((serials == np.rint(serials)) & (serials >= 1) & (serials <= LARGEST_INDEX)).all():
            raise ValueError(f"{name}: a serial number (0:i) is not a whole number >= 1")
        features = max(vectors.shape[1], int(serials.max(initial=0)))
        vectors.resize(vectors.shape[0], features)
    vectors.eliminate_zeros()
    return vectors


class _Header:
    """The lines before ``SV``, each keyword at most once."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name, self.lines = name, 0
        self._words: dict[str, list[bytes]] = {}
        self._places: dict[str, int] = {}
        for self.lines, text in enumerate(file, 1):
            words = text.split()
            word = words[0] if words else b""
            keyword = KEYWORDS.get(word)
            if keyword is None:
                raise ValueError(
                    f"{name}, line {self.lines}: {shown(word)} is no keyword of a LIBSVM model file"
                )
            if keyword in self._places:
                raise ValueError(f"{name}, line {self.lines}: a second line {keyword!r}")
            self._words[keyword], self._places[keyword] = words[1:], self.lines
            if keyword == "SV":
                return
        raise ValueError(f"{name}, line {self.lines}: the file ends before its line 'SV'")

    def refuse(self, keyword: str, problem: str) -> NoReturn:
        raise ValueError(f"{self.name}, line {self._places[keyword]}: {keyword}: {problem}")

    def one_of(self, keyword: str, allowed: tuple[str, ...]) -> str:
        (word,) = self._found(keyword, 1)
        for name in allowed:
            if word == name.encode():
                return name
        self.refuse(keyword, f"{shown(word)} is none of {', '.join(allowed)}")

    def numbers(self, keyword: str, count: int | None) -> list[float]:
        words = self._found(keyword, count)
        try:
            return [finite_number(word, "what follows") for word in words]
        except ValueError as error:
            self.refuse(keyword, str(error))

    def number(self, keyword: str) -> float:
        if keyword == "degree":
            return float(self.whole(keyword, 1)[0])
        return self.numbers(keyword, 1)[0]

    def whole(self, keyword: str, count: int) -> list[int]:
        numbers = self.numbers(keyword, count)
        if any(number != int(number) for number in numbers):
            self.refuse(keyword, "what follows are not whole numbers")
        return [int(number) for number in numbers]

    def optional(self, keyword: str, count: int | None = None) -> np.ndarray | None:
        return np.array(self.numbers(keyword, count)) if keyword in self._words else None

    def _found(self, keyword: str, count: int | None) -> list[bytes]:
        # `count` may be any number that the file says: nothing is made of it but a comparison.
        if keyword not in self._words:
            raise ValueError(f"{self.name}: there is no line {keyword!r}")
        words = self._words[keyword]
        if count is not None and len(words) != count:
            self.refuse(keyword, f"{len(words)} value(s) instead of {count}")
        return words
