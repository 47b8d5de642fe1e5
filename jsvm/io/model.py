"""LIBSVM's model files, as LIBSVM means them.

A header of lines ``keyword value ...`` is followed by the line ``SV`` and one line for each support
vector, its coefficients and its features. For the pair of classes i < j, counted in the order of
the line ``label``, LIBSVM decides by

    f(x) = Σ_s c_s k(x, x_s) − ρ_ij  > 0  for class i,

the sum over the support vectors of both classes. A support vector of class i has its coefficients
against the other classes in their order. Regression and one-class machines have one ρ and one
coefficient for each support vector. With a precomputed kernel a support vector is its serial
number, ``0:i``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np

from jsvm.io import lines
from jsvm.io.data import Matrix, row_pairs, to_csr
from jsvm.io.lines import LARGEST_INDEX, finite_number, number_text, shown

CLASSIFIERS = ("c_svc", "nu_svc")
SVM_TYPES = (*CLASSIFIERS, "one_class", "epsilon_svr", "nu_svr")  # in the order of their numbers
KERNEL_PARAMETERS = {
    "linear": (),
    "polynomial": ("degree", "gamma", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
    "precomputed": (),
}
KEYWORDS = (
    *("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho"),
    *("label", "probA", "probB", "prob_density_marks", "nr_sv", "SV"),
)


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds, in LIBSVM's terms.

    The probability of class i is P = 1 / (1 + exp(A f + B)), with A and B the lines ``probA`` and
    ``probB``. In regression A is the scale of the noise, and there is no B.
    """

    svm_type: str
    kernel_type: str
    parameters: dict[str, float]  # of the kernel: degree, gamma, coef0 as far as it has them
    rho: np.ndarray  # (pairs of classes,), or one number if there are no classes
    coefficients: np.ndarray  # (classes − 1, n), or one row if there are no classes
    vectors: Matrix  # csr_matrix (n, features); precomputed: empty rows, one column per example
    serials: np.ndarray | None = None  # precomputed: numbers of the support vectors, from 1
    labels: np.ndarray | None = None  # of the classes, in the order of the support vectors
    counts: np.ndarray | None = None  # of the support vectors of each class
    slopes: np.ndarray | None = None  # A for every pair of classes
    offsets: np.ndarray | None = None  # B for every pair of classes
    density_marks: np.ndarray | None = None  # one-class: ten equal shares of decision values

    @property
    def has_probabilities(self) -> bool:
        """Whether the file tells probabilities of classes."""
        return not any(numbers is None for numbers in (self.labels, self.slopes, self.offsets))


def write_model(model: Model, path: str | Path) -> None:
    """Write a model file; every number reads back as the same number."""
    header = {"svm_type": model.svm_type, "kernel_type": model.kernel_type}
    header |= {name: number_text(value) for name, value in model.parameters.items()}
    header["nr_class"] = str(2 if model.labels is None else len(model.labels))
    header["total_sv"] = str(model.coefficients.shape[1])
    arrays = {"rho": model.rho, "label": model.labels, "probA": model.slopes}
    arrays |= {"probB": model.offsets, "prob_density_marks": model.density_marks}
    for keyword, numbers in (arrays | {"nr_sv": model.counts}).items():
        if numbers is not None:
            header[keyword] = " ".join(number_text(float(number)) for number in numbers)
    with Path(path).open("w", encoding="ascii", newline="\n") as file:
        file.writelines(f"{keyword} {values}\n" for keyword, values in header.items())
        file.write("SV\n")
        file.writelines(_vector_lines(model))


def _vector_lines(model: Model) -> Iterator[str]:
    """Yield a line for each support vector; a last zero in the first one tells the features."""
    features = model.vectors.shape[1]
    for s, coefficients in enumerate(model.coefficients.T.tolist()):
        indices, values = row_pairs(model.vectors, s)
        if model.serials is not None:
            indices, values = [0, *indices], [float(model.serials[s]), *values]
        if s == 0 and features and (not indices or indices[-1] < features):
            indices, values = [*indices, features], [*values, 0.0]
        yield " ".join(map(number_text, coefficients)) + lines.pairs_text(indices, values) + "\n"


def read_model(path: str | Path) -> Model:
    """Read a model file; raise ValueError with the line that is wrong."""
    with Path(path).open("rb") as file:
        header = _Header(str(path), file)
        svm_type = header.one_of("svm_type", SVM_TYPES)
        kernel_type = header.one_of("kernel_type", tuple(KERNEL_PARAMETERS))
        parameters = {name: header.number(name) for name in KERNEL_PARAMETERS[kernel_type]}
        labels, counts = _read_classes(header) if svm_type in CLASSIFIERS else (None, None)
        classes = 2 if labels is None else len(labels)
        pairs = classes * (classes - 1) // 2
        rho = np.array(header.numbers("rho", pairs))
        slopes, offsets = (header.optional(name, pairs) for name in ("probA", "probB"))
        serial = kernel_type == "precomputed"
        form = lines.LineFormat(str(path), classes - 1, "coefficients", serial=serial, closed=True)
        rows = lines.read_lines(file, header.lines + 1, form)
    _check_total(header, counts, len(rows.lengths))
    _check_size(path, parameters, rows.numbers, rho)
    serials, rows = lines.split_serials(rows) if serial else (None, rows)
    return Model(
        svm_type=svm_type,
        kernel_type=kernel_type,
        parameters=parameters,
        rho=rho,
        coefficients=np.ascontiguousarray(rows.numbers.T),
        vectors=_vectors(rows, serials, path),
        serials=serials,
        labels=labels,
        counts=None if counts is None else np.array(counts, np.int64),
        slopes=slopes,
        offsets=offsets,
        density_marks=header.optional("prob_density_marks"),
    )


def _read_classes(header: "_Header") -> tuple[np.ndarray, list[int]]:
    """Return labels and numbers of support vectors, which are not checked yet."""
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
        problem = f"it says {total}, but {found} support vectors follow"
        header.refuse("total_sv", f"{problem}; the file is cut off or was changed")
    if counts is not None and (min(counts) < 0 or sum(counts) != total):
        header.refuse("nr_sv", f"the numbers do not add up to {total}, which total_sv says")


def _check_size(
    path: str | Path, parameters: dict[str, float], coefficients: np.ndarray, rho: np.ndarray
) -> None:
    """Refuse an overflow of the decision function at x = 0, where |k| <= max(1, coef0^degree)."""
    with np.errstate(over="ignore"):
        power = np.power(abs(parameters.get("coef0", 0.0)), parameters.get("degree", 0.0))
        size = max(1.0, power) * np.abs(coefficients).sum() + np.abs(rho).max()
    if not np.isfinite(size):
        raise ValueError(
            f"{path}: coefficients, rho or coef0 are so large that the decision function is "
            "infinite; the file was changed, or scale the features and train anew"
        )


def _vectors(rows: lines.ParsedLines, serials: np.ndarray | None, path: str | Path) -> Matrix:
    vectors = to_csr(rows)
    if serials is not None:
        if not ((serials == np.rint(serials)) & (serials >= 1) & (serials <= LARGEST_INDEX)).all():
            raise ValueError(f"{path}: a serial number (0:i) is not a whole number >= 1")
        examples = max(vectors.shape[1], int(serials.max(initial=0)))
        vectors.resize(vectors.shape[0], examples)
    vectors.eliminate_zeros()
    return vectors


class _Header:
    """The lines before ``SV``, each keyword at most once."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name, self.lines = name, 0
        self._found: dict[str, tuple[int, list[bytes]]] = {}  # keyword -> its line, its values
        for self.lines, text in enumerate(file, 1):
            word, *values = text.split() or [b""]
            keyword = word.decode("ascii", "replace")
            place = f"{name}, line {self.lines}"
            if keyword not in KEYWORDS:
                raise ValueError(f"{place}: {shown(word)} is no keyword of a LIBSVM model file")
            if keyword in self._found:
                raise ValueError(f"{place}: a second line {keyword!r}")
            self._found[keyword] = self.lines, values
            if keyword == "SV":
                return
        raise ValueError(f"{name}, line {self.lines}: the file ends before its line 'SV'")

    def refuse(self, keyword: str, problem: str) -> NoReturn:
        raise ValueError(f"{self.name}, line {self._found[keyword][0]}: {keyword}: {problem}")

    def one_of(self, keyword: str, allowed: tuple[str, ...]) -> str:
        (word,) = self._values(keyword, 1)
        text = word.decode("ascii", "replace")
        if text not in allowed:
            self.refuse(keyword, f"{shown(word)} is none of {', '.join(allowed)}")
        return text

    def numbers(self, keyword: str, count: int | None) -> list[float]:
        words = self._values(keyword, count)
        try:
            return [finite_number(word, "what follows") for word in words]
        except ValueError as error:
            self.refuse(keyword, str(error))

    def number(self, keyword: str) -> float:
        (number,) = self.whole(keyword, 1) if keyword == "degree" else self.numbers(keyword, 1)
        if keyword != "coef0" and number < 0:
            self.refuse(keyword, f"{number:g} is negative")
        return float(number)

    def whole(self, keyword: str, count: int) -> list[int]:
        numbers = self.numbers(keyword, count)
        if any(number != int(number) for number in numbers):
            self.refuse(keyword, "what follows are not whole numbers")
        return [int(number) for number in numbers]

    def optional(self, keyword: str, count: int | None = None) -> np.ndarray | None:
        return np.array(self.numbers(keyword, count)) if keyword in self._found else None

    def _values(self, keyword: str, count: int | None) -> list[bytes]:
        # `count` is from the file and may be huge: it is compared, and nothing of that size is made
        if keyword not in self._found:
            raise ValueError(f"{self.name}: there is no line {keyword!r}")
        words = self._found[keyword][1]
        if count is not None and len(words) != count:
            self.refuse(keyword, f"{len(words)} value(s) instead of {count}")
        return words
