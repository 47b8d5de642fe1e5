"""LIBSVM's files: exact round trips, LIBSVM's own reading of them, and files that are wrong."""

import contextlib
import copy
import re
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from problems_for_tests import rbf
from scipy import sparse

from jsvm import kernels
from jsvm.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM, SmallestBall
from jsvm.io import load_data, load_model, save_data, save_model
from jsvm.io.lines import LineFormat, _parse_block, _parse_words

N, FEATURES = 40, 3
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "polynomial": {"kernel": "poly", "degree": 2, "gamma": 0.3, "coef0": 1.0},
    "rbf": {"kernel": "rbf", "gamma": 0.7},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.05, "coef0": -0.1},
    "precomputed": {"kernel": "precomputed"},
}
# name -> class, its parameters, names of the classes, LIBSVM's option
MACHINES: dict[str, tuple[Any, dict[str, Any], Any, str]] = {
    "c_svc": (SVC, {"C": 2.0}, [-1, 1], "-s 0 -c 2"),
    "c_svc of three": (SVC, {"C": 2.0}, [7, -3, 5], "-s 0 -c 2"),
    "nu_svc": (NuSVC, {"nu": 0.5}, [4, 2], "-s 1 -n 0.5"),
    "nu_svc of four": (NuSVC, {"nu": 0.5}, [9, 1, 4, -8], "-s 1 -n 0.5"),
    "one_class": (OneClassSVM, {"nu": 0.4}, None, "-s 2 -n 0.4"),
    "epsilon_svr": (SVR, {"C": 2.0}, None, "-s 3 -c 2"),
    "nu_svr": (NuSVR, {"C": 2.0, "nu": 0.4}, None, "-s 4 -c 2 -n 0.4"),
}


def problem(machine: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw points and targets; classes appear in the order in which they are named."""
    rng = np.random.default_rng(seed)
    X, names = rng.normal(size=(N, FEATURES)), MACHINES[machine][2]
    if names is None:
        return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=N)
    codes = np.arange(N) % len(names)
    return X + 2.0 * np.eye(len(names), FEATURES)[codes], np.array(names)[codes]


def unseen() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(16, FEATURES))


def points(X: np.ndarray, kernel: str, Z: np.ndarray | None = None) -> np.ndarray:
    return rbf(X, Z) if kernel == "precomputed" else X


@cache
def fitted(machine: str) -> Any:
    cls, parameters, _, _ = MACHINES[machine]
    return cls(gamma=0.7, **parameters).fit(*problem(machine))


def changed(estimator: Any, **attributes: Any) -> Any:
    estimator = copy.deepcopy(estimator)
    vars(estimator).update(attributes)
    return estimator


def with_kernel(machine: str, kernel: str) -> Any:
    """Return a machine with another kernel and the coefficients of the RBF kernel: they will do."""
    estimator = changed(fitted(machine), **KERNELS[kernel])
    if kernel == "precomputed":
        estimator.kernel_, estimator.n_features_in_ = kernel, N
        estimator.support_vectors_ = np.zeros((0, N))
    else:
        parameters = {k: v for k, v in KERNELS[kernel].items() if k != "kernel"}
        name = KERNELS[kernel]["kernel"]
        estimator.kernel_ = kernels.resolve(name, np.ones((1, FEATURES)), **parameters)
    return estimator


def decisions(estimator: Any, X: Any) -> np.ndarray:
    """Return decision values, one column a pair of classes, the first class of a pair positive."""
    if hasattr(estimator, "classes_"):
        estimator.set_params(decision_function_shape="ovo")
        values = estimator.decision_function(X).reshape(X.shape[0], -1)
        return -values if len(estimator.classes_) == 2 else values
    decide = getattr(estimator, "decision_function", estimator.predict)
    return decide(X).reshape(X.shape[0], -1)


@pytest.fixture(scope="module")
def libsvm() -> Any:
    return pytest.importorskip("libsvm.svmutil")


def libsvm_decisions(libsvm: Any, model: Any, X: np.ndarray, kernel: str) -> Any:
    """Return LIBSVM's decision values, pairs of classes in ascending order, and its predictions.

    Its own svm_predict has room for one pair only of a nu_svc, and writes behind it.
    """
    classes = model.get_nr_class()
    of_classes = model.get_svm_type() in (0, 1)
    buffer = (libsvm.c_double * (classes * (classes - 1) // 2))()
    rows, predicted = [], []
    for row in libsvm_points(X, kernel):
        nodes, _ = libsvm.gen_svm_nodearray(row, isKernel=kernel == "precomputed")
        predicted.append(libsvm.libsvm.svm_predict_values(model, nodes, buffer))
        rows.append(list(buffer))
    values = np.array(rows)
    if not of_classes:
        return values, np.array(predicted)
    labels = model.get_labels()
    columns = {pair: values[:, p] for p, pair in enumerate(combinations(labels, 2))}
    columns |= {(b, a): -column for (a, b), column in columns.items()}
    in_order = [columns[pair] for pair in combinations(sorted(labels), 2)]
    return np.stack(in_order, axis=1), np.array(predicted)


def libsvm_points(X: np.ndarray, kernel: str) -> list[list[float]]:
    if kernel == "precomputed":
        return [[i + 1, *row] for i, row in enumerate(X.tolist())]
    return X.tolist()


def libsvm_options(kernel: str) -> str:
    options = {"degree": "-d", "gamma": "-g", "coef0": "-r"}
    number = list(KERNELS).index(kernel)
    given = [f"{options[k]} {v}" for k, v in KERNELS[kernel].items() if k in options]
    return " ".join([f"-q -t {number}", *given])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("machine", MACHINES)
def test_what_jsvm_writes_libsvm_and_jsvm_read_alike(machine, kernel, tmp_path, request):
    written = with_kernel(machine, kernel)
    test = points(unseen(), kernel, problem(machine)[0])
    path = tmp_path / "a.model"
    save_model(written, path)
    loaded = load_model(path)
    assert type(loaded) is type(written)
    assert loaded.n_features_in_ == written.n_features_in_
    np.testing.assert_array_equal(loaded.n_support_, written.n_support_)
    np.testing.assert_array_equal(loaded.dual_coef_, written.dual_coef_)
    np.testing.assert_array_equal(loaded.intercept_, written.intercept_)
    np.testing.assert_array_equal(loaded.predict(test), written.predict(test))
    expected = decisions(written, test)
    np.testing.assert_array_equal(decisions(loaded, test), expected)
    save_model(loaded, tmp_path / "b.model")
    assert path.read_text() == (tmp_path / "b.model").read_text()

    libsvm = request.getfixturevalue("libsvm")
    theirs = libsvm.svm_load_model(str(path))
    values, _ = libsvm_decisions(libsvm, theirs, test, kernel)
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("machine", MACHINES)
def test_what_libsvm_writes_jsvm_reads(machine, kernel, tmp_path, libsvm):
    X, y = problem(machine)
    train, test = libsvm_points(points(X, kernel), kernel), points(unseen(), kernel, X)
    options = f"{MACHINES[machine][3]} {libsvm_options(kernel)}"
    theirs = libsvm.svm_train(y.tolist(), train, options)
    path = tmp_path / "theirs.model"
    libsvm.svm_save_model(str(path), theirs)
    theirs = libsvm.svm_load_model(str(path))  # it writes eight digits of the features
    ours = load_model(path, n_features=test.shape[1])
    expected, predicted = libsvm_decisions(libsvm, theirs, test, kernel)
    np.testing.assert_allclose(decisions(ours, test), expected, rtol=1e-9, atol=1e-9)
    if MACHINES[machine][2] is not None:
        assert theirs.get_labels() != sorted(theirs.get_labels())  # else nothing is tested
        np.testing.assert_array_equal(ours.classes_, np.unique(y))
        sure = np.abs(expected).min(axis=1) > 1e-6
        if len(ours.classes_) == 2:  # else ties of votes go to the class that comes first
            np.testing.assert_array_equal(ours.predict(test)[sure], predicted[sure])


@pytest.mark.parametrize("machine", ["c_svc", "c_svc of three", "nu_svc"])
def test_probabilities_go_both_ways(machine, tmp_path, libsvm):
    X, y = problem(machine)
    names = MACHINES[machine][2]
    # LIBSVM couples three classes by an iteration that stops at 0.005 over their number.
    precision = 1e-9 if len(names) == 2 else 5e-3

    def check(ours, theirs):
        _, _, chances = libsvm.svm_predict([], X.tolist(), theirs, "-b 1 -q")
        order = np.argsort(theirs.get_labels())
        expected = np.array(chances)[:, order]
        np.testing.assert_allclose(ours.predict_proba(X), expected, atol=max(precision, 1.1e-7))

    pairs = len(names) * (len(names) - 1) // 2
    slopes, offsets = -1.0 - np.arange(pairs) / 3, np.arange(1.0, pairs + 1.0) / 7
    ours = changed(fitted(machine), calibration="platt", probA_=slopes, probB_=offsets)
    save_model(ours, tmp_path / "ours.model")
    loaded = load_model(tmp_path / "ours.model")
    np.testing.assert_array_equal(loaded.predict_proba(X), ours.predict_proba(X))
    check(ours, libsvm.svm_load_model(str(tmp_path / "ours.model")))

    theirs = libsvm.svm_train(y.tolist(), X.tolist(), f"{MACHINES[machine][3]} -b 1 -q")
    libsvm.svm_save_model(str(tmp_path / "theirs.model"), theirs)
    theirs = libsvm.svm_load_model(str(tmp_path / "theirs.model"))
    check(load_model(tmp_path / "theirs.model"), theirs)


def test_probabilities_of_machines_without_classes_do_no_harm(tmp_path, libsvm):
    for machine in ("one_class", "epsilon_svr", "nu_svr"):
        X, y = problem(machine)
        theirs = libsvm.svm_train(y.tolist(), X.tolist(), f"{MACHINES[machine][3]} -b 1 -q")
        path = tmp_path / f"{machine}.model"
        libsvm.svm_save_model(str(path), theirs)
        theirs = libsvm.svm_load_model(str(path))
        expected, _ = libsvm_decisions(libsvm, theirs, X, "rbf")
        np.testing.assert_allclose(decisions(load_model(path), X), expected, atol=1e-9)


def test_a_model_file_of_libsvm_by_hand(tmp_path):
    """Three classes in the order 5, −1, 2 with a linear kernel: every number can be followed."""
    path = tmp_path / "hand.model"
    path.write_text(
        "svm_type c_svc\nkernel_type linear\nnr_class 3\ntotal_sv 3\nrho 0.5 -1 2\n"
        "label 5 -1 2\nnr_sv 1 1 1\nSV\n1 2 1:1 \n-1 3 2:1 \n-2 -3 1:1 2:1 \n"
    )
    machine = load_model(path)
    np.testing.assert_array_equal(machine.classes_, [-1, 2, 5])
    # LIBSVM's own: 5 against −1, 5 against 2, −1 against 2, at x = (1, 10)
    f_5_m1, f_5_2, f_m1_2 = 1 * 1 - 1 * 10 - 0.5, 2 * 1 - 2 * 11 + 1, 3 * 10 - 3 * 11 - 2
    values = decisions(machine, np.array([[1.0, 10.0]]))
    np.testing.assert_allclose(values, [[f_m1_2, -f_5_m1, -f_5_2]])


def test_a_zero_tells_the_number_of_features(tmp_path):
    X, y = problem("c_svc")
    X = np.hstack([X, np.zeros((N, 2))])
    path = tmp_path / "a.model"
    written = SVC("linear").fit(X, y)
    save_model(written, path)
    assert load_model(path).n_features_in_ == FEATURES + 2
    wider = load_model(path, n_features=9)
    X = np.hstack([X, np.zeros((N, 4))])
    np.testing.assert_allclose(wider.decision_function(X), written.decision_function(X[:, :5]))
    with pytest.raises(ValueError, match="n_features=4, but the support vectors have 5"):
        load_model(path, n_features=4)


def test_sparse_support_vectors(tmp_path, monkeypatch):
    X, y = problem("c_svc")
    X = np.where(np.abs(X) > 1.5, X, 0.0)
    written = SVC(gamma=0.5).fit(sparse.csr_matrix(X), y)
    path = tmp_path / "a.model"
    save_model(written, path)
    loaded = load_model(path)
    expected = written.decision_function(sparse.csr_matrix(X))
    np.testing.assert_allclose(loaded.decision_function(X), expected, rtol=0, atol=1e-12)
    monkeypatch.setattr("jsvm.io.data.SMALL_BYTES", 0)
    loaded = load_model(path, n_features=40)
    assert sparse.issparse(loaded.support_vectors_)
    wide = sparse.csr_matrix(np.pad(X, ((0, 0), (0, 40 - FEATURES))))
    np.testing.assert_allclose(loaded.decision_function(wide), expected, rtol=0, atol=1e-12)


def test_a_machine_without_support_vectors(tmp_path):
    X, y = problem("epsilon_svr")
    written = SVR(epsilon=100.0).fit(X, y)
    path = tmp_path / "a.model"
    save_model(written, path)
    loaded = load_model(path, n_features=FEATURES)
    np.testing.assert_array_equal(loaded.predict(X), written.predict(X))


def test_the_two_norm_machine_is_written_as_c_svc(tmp_path):
    X, y = problem("c_svc")
    written = SVC(loss="squared_hinge").fit(X, y.astype(float))
    save_model(written, tmp_path / "a.model")
    loaded = load_model(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.decision_function(X), written.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), written.predict(X))


def test_what_libsvm_has_no_word_for_is_refused(tmp_path):
    two, three = fitted("c_svc"), fitted("c_svc of three")
    refused = [
        (changed(two, kernel_=kernels.Laplacian(0.5)), "no kernel like Laplacian"),
        (changed(two, kernel_=2.0 * kernels.RBF(0.5)), "no kernel like Scaled"),
        (changed(three, multiclass="ovr"), "multiclass='ovr'"),
        (changed(two, calibration="sigmoid"), "calibration='sigmoid'"),
        (changed(two, classes_=np.array(["no", "yes"])), "not whole numbers.*np.unique"),
        (changed(two, classes_=np.array([0.5, 1.0])), "not whole numbers"),
        (changed(two, classes_=np.array([0.0, 1e10])), "not whole numbers"),
        (SmallestBall(), "cannot hold SmallestBall"),
        (SVC(), "not fitted; call fit"),
        (object(), "cannot hold object"),
    ]
    for estimator, message in refused:
        with pytest.raises(ValueError, match=message):
            save_model(estimator, tmp_path / "a.model")
    assert not (tmp_path / "a.model").exists()


numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(
    X=arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 5)),
        elements=st.one_of(st.just(0.0), numbers),
    ),
    data=st.data(),
)
def test_data_read_back_as_they_were(X, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "data.txt"
    y = data.draw(arrays.arrays(np.float64, len(X), elements=numbers))
    for given_X in (X, sparse.csc_matrix(X)):
        save_data(path, given_X, y)
        read_X, read_y = load_data(path, n_features=X.shape[1])
        np.testing.assert_array_equal(read_X.toarray(), X)
        np.testing.assert_array_equal(read_y, y)
    save_data(path, X, y, precomputed=True)
    read_X, read_y = load_data(path, precomputed=True, dense=True)
    np.testing.assert_array_equal(read_X, X)
    np.testing.assert_array_equal(read_y, y)


WORDS = (
    *("1", "-1", "+2.5", ".5e1", "1:2", "2:-3.5", "3:1e5", "7:0", "0:1", "04:1"),
    *("1:", ":2", "1:2:3", "a", "1:b", "2:nan", "1.5:2", "-1:2", "1e3:2", "1_0", "2:1e999", "e"),
    *("9999999999:1", "# 1:2", "\x0c", "\x00", "\r"),
)


@settings(max_examples=400)
@given(
    lines=st.lists(st.lists(st.sampled_from(WORDS), max_size=4), min_size=1, max_size=3),
    gap=st.sampled_from([" ", "\t", "  \t "]),
    plain=st.integers(1, 2),
    serial=st.booleans(),
)
def test_fast_reading_equals_reading_word_by_word(lines, gap, plain, serial):
    block = [(gap.join(words) + "\n").encode() for words in lines]
    form = LineFormat("file", plain, "numbers", serial=serial)
    fast = _parse_block(b"".join(block), form)
    if fast is not None:
        for mine, other in zip(fast, _parse_words(block, 1, form), strict=True):
            np.testing.assert_array_equal(mine, other)
            assert mine.shape == other.shape
            assert mine.dtype == other.dtype


def test_data_files_as_people_write_them(tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(b"# a title\n\n+1  1:.5\t3:-2e0 \r\n -1\n2 2:1 # the end 7:7\n\n0.5 1:1")
    X, y = load_data(path, dense=True)
    np.testing.assert_array_equal(X, [[0.5, 0, -2], [0, 0, 0], [0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(y, [1, -1, 2, 0.5])
    X, _ = load_data(path, n_features=5, dtype=np.float32)
    assert X.shape == (4, 5)
    assert X.dtype == np.float32
    with pytest.raises(ValueError, match="line 3: index 3 is larger than 2"):
        load_data(path, n_features=2)
    with pytest.raises(FileNotFoundError):
        load_data(tmp_path / "nothing.txt")


def test_many_blocks_are_one_file(tmp_path, monkeypatch):
    X, y = problem("c_svc of three")
    path = tmp_path / "data.txt"
    save_data(path, X, y)
    whole, labels = load_data(path, dense=True)
    monkeypatch.setattr("jsvm.io.lines.BLOCK_BYTES", 100)
    X_again, y_again = load_data(path, dense=True)
    np.testing.assert_array_equal(X_again, whole)
    np.testing.assert_array_equal(y_again, labels)
    path.write_text(path.read_text() + "7 1:x\n")
    with pytest.raises(ValueError, match=f"line {N + 1}: value of index 1 'x'"):
        load_data(path)


# what the file holds, the line to be named, a part of the message
WRONG_DATA = {
    "text": ("1 1:2\nhello world\n", 2, "label 'hello' is not a finite number"),
    "binary": (b"\x89PNG\r\n\x1a\n\x00\x00", 1, "label .* is not a finite number"),
    "zero bytes": (b"1 1:2\n" + bytes(50), 2, "not a finite number"),
    "no label": ("1:2 2:3\n", 1, "begins with the label"),
    "index 0": ("1 1:2\n1 0:1 1:2\n", 2, "indices start at 1"),
    "negative index": ("1 -1:2\n", 1, "index '-1' is not a whole number"),
    "index that is no whole number": ("1 1.5:2\n", 1, "index '1.5'"),
    "index in words": ("1 qid:2\n", 1, "index 'qid'"),
    "descending": ("1 1:2\n\n1 3:1 2:1\n", 3, "index 2 after index 3"),
    "twice": ("1 2:1 2:1\n", 1, "index 2 after index 2"),
    "index too large": ("1 2147483648:1\n", 1, "larger than 2147483647"),
    "index far too large": ("1 " + "9" * 5000 + ":1\n", 1, "is not a whole number"),
    "no colon": ("1 1:2 7 8:1\n", 1, "'7' is no index:value pair"),
    "no value": ("1 1:\n", 1, "value of index 1 ''"),
    "two colons": ("1 1:2:3\n", 1, "value of index 1 '2:3'"),
    "a long value": ("1 1:" + "7" * 300_000 + "x\n", 1, "'7+' is not a finite number"),
    "NaN": ("1 1:1\n1 1:nan\n", 2, "value of index 1 'nan' is not a finite number"),
    "infinity": ("1 1:inf\n", 1, "'inf' is not a finite number"),
    "overflow": ("1 1:1e999\n", 1, "'1e999' is too large"),
    "underscores": ("1 1:1_000\n", 1, "'1_000'"),
    "NaN as label": ("nan 1:1\n", 1, "label 'nan'"),
    "blank behind a colon": ("1 1: 2\n", 1, "value of index 1 ''"),
    "digits of another script": ("1 ١:2\n", 1, "index .* is not a whole number"),
}


@pytest.mark.parametrize("name", WRONG_DATA)
def test_wrong_data_name_the_line(name, tmp_path):
    content, line, message = WRONG_DATA[name]
    path = tmp_path / "data.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=rf"(?s)data\.txt, line {line}: .*{message}"):
        load_data(path)


def test_empty_files_hold_no_examples(tmp_path):
    for content in ("", "\n\n", "# nothing\n"):
        (tmp_path / "data.txt").write_text(content)
        with pytest.raises(ValueError, match="holds no examples"):
            load_data(tmp_path / "data.txt")


def test_a_giant_index_costs_nothing_but_dense_is_refused(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 1:1 2000000000:1\n-1\n")
    X, _ = load_data(path)
    assert X.shape == (2, 2_000_000_000)
    assert X.nnz == 2
    with pytest.raises(ValueError, match=r"take 29\.8 GiB.*dense=False"):
        load_data(path, dense=True)
    path.write_text("1 0:1 2000000000:1\n-1 0:2\n")
    assert load_data(path, precomputed=True)[0].shape == (2, 2_000_000_000)
    path.write_text(
        "svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\nSV\n"
        "1 1:1 2000000000:1\n"
    )
    machine = load_model(path)
    assert sparse.issparse(machine.support_vectors_)
    assert machine.n_features_in_ == 2_000_000_000
    point = sparse.csr_matrix(([3.0], ([0], [1_999_999_999])), shape=(1, 2_000_000_000))
    assert machine.predict(point) == 3.0


def test_a_number_too_large_for_float32_is_refused(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 1:1e300\n")
    assert load_data(path)[0][0, 0] == 1e300
    with pytest.raises(ValueError, match=r"data\.txt: .* too large for dtype=float32"):
        load_data(path, dtype=np.float32)


def test_kernel_matrices(tmp_path):
    path = tmp_path / "kernel.txt"
    path.write_text("1 0:1 1:4 2:6\n-1 0:2 1:6 2:9\n")
    K, y = load_data(path, precomputed=True, dense=True)
    np.testing.assert_array_equal(K, [[4, 6], [6, 9]])
    np.testing.assert_array_equal(y, [1, -1])
    with pytest.raises(ValueError, match=r"line 1: index 0.*precomputed"):
        load_data(path)
    path.write_text("-1 0:2 1:6 2:9\n1 0:1 1:4 2:6\n")
    with pytest.raises(ValueError, match=r"row 1 has the serial number 2.*sort the lines"):
        load_data(path, precomputed=True)
    path.write_text("1 0:1 1:4 2:6\n-1 1:6 2:9\n")
    with pytest.raises(ValueError, match="line 2: a row of a kernel matrix begins with 0:i"):
        load_data(path, precomputed=True)
    path.write_text("1 0:1 1:4\n-1\n")
    with pytest.raises(ValueError, match="line 2: a row of a kernel matrix begins with 0:i"):
        load_data(path, precomputed=True)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.array([[np.nan]]), [1.0], "X holds NaN"),
        (sparse.csr_matrix([[np.inf]]), [1.0], "X holds NaN or infinity"),
        (np.ones((2, 1)), [1.0], "X has 2 rows, y has 1 labels"),
        (np.ones(2), [1.0, 2.0], "X must have 2 dimension"),
        (np.ones((2, 1)), ["a", "b"], "y must hold numbers.*np.unique"),
        (np.ones((1, 1)), [np.nan], "y holds NaN"),
    ],
)
def test_data_that_cannot_be_written(X, y, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        save_data(tmp_path / "data.txt", X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": 0}, "n_features=0"),
        ({"n_features": 2**40}, "n_features="),
        ({"dtype": np.int32}, "dtype=int32"),
    ],
)
def test_arguments_of_load_data(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load_data(tmp_path / "data.txt", **arguments)


MODEL = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho 0.25
label 1 -1
nr_sv 1 1
SV
1 1:0.5 2:1
-1 1:1
"""

# line to be replaced -> by what, the line to be named (None: the file), a part of the message
WRONG_MODELS = {
    "nothing": (MODEL, "", 0, "ends before its line 'SV'"),
    "binary": (MODEL, b"\x00\xff\x93NUMPY\n", 1, "is no keyword"),
    "a data file": (MODEL, "1 1:2 2:3\n", 1, "'1' is no keyword"),
    "type": ("c_svc", "c_svm", 1, "svm_type: 'c_svm' is none of c_svc"),
    "kernel": ("rbf", "laplacian", 2, "kernel_type: 'laplacian' is none of linear"),
    "parameter": ("gamma 0.5", "gamma many", 3, "gamma: .*'many' is not a finite number"),
    "no parameter": ("gamma 0.5\n", "", None, "there is no line 'gamma'"),
    "two values": ("gamma 0.5", "gamma 0.5 1", 3, "gamma: 2 value"),
    "twice": ("nr_class 2", "gamma 0.5", 4, "a second line 'gamma'"),
    "NaN": ("rho 0.25", "rho nan", 6, "rho: .*'nan' is not a finite number"),
    "no rho": ("rho 0.25", "rho", 6, "rho: 0 value.* instead of 1"),
    "giant nr_class": ("nr_class 2", "nr_class 1000000000", 7, "2 value.* instead of 1000000000"),
    "infinite nr_class": ("nr_class 2", "nr_class 1e300", 7, "label: 2 value"),
    "one class": ("nr_class 2", "nr_class 1", 4, "at least two"),
    "fractional nr_class": ("nr_class 2", "nr_class 2.5", 4, "not whole numbers"),
    "giant total_sv": (
        "total_sv 2",
        "total_sv 1000000000000000",
        5,
        "says 1000000000000000, but 2",
    ),
    "more support vectors": ("total_sv 2", "total_sv 1", 5, "says 1, but 2 support vectors"),
    "label": ("label 1 -1", "label one two", 7, "label: .*'one'"),
    "label of no int": ("label 1 -1", "label 1 1e10", 7, "larger than"),
    "label twice": ("label 1 -1", "label 1 1", 7, "occurs twice"),
    "nr_sv": ("nr_sv 1 1", "nr_sv 1 2", 8, "do not add up to 2"),
    "negative nr_sv": ("nr_sv 1 1", "nr_sv 3 -1", 8, "do not add up to 2"),
    "no support vectors": ("SV\n1 1:0.5 2:1\n-1 1:1\n", "SV\n", 5, "says 2, but 0"),
    "cut off in the header": (
        "nr_sv 1 1\nSV\n1 1:0.5 2:1\n-1 1:1\n",
        "",
        7,
        "before its line 'SV'",
    ),
    "cut off": ("-1 1:1\n", "", 5, "says 2, but 1 support vectors"),
    "cut off in a line": ("-1 1:1\n", "-1 1:", 11, "value of index 1 ''"),
    "too many coefficients": ("-1 1:1", "-1 2 1:1", 11, "'2' is no index:value pair"),
    "no coefficient": ("-1 1:1", "1:1", 11, "begins with the coefficients"),
    "coefficient": ("-1 1:1", "nan 1:1", 11, "coefficients 'nan' is not a finite number"),
    "index 0": ("-1 1:1", "-1 0:1", 11, "indices start at 1"),
    "descending": ("1 1:0.5 2:1", "1 2:0.5 1:1", 10, "index 1 after index 2"),
    "negative gamma": ("gamma 0.5", "gamma -0.5", 3, "gamma: -0.5 is negative"),
    "overflow": ("1 1:0.5 2:1\n-1 1:1", "1e308 1:1\n-1e308 1:1", None, "is infinite"),
    "overflow of coef0": (
        "rbf\ngamma 0.5",
        "polynomial\ndegree 2\ngamma 1\ncoef0 1e200",
        None,
        "coef0 are so large",
    ),
    "negative degree": (
        "rbf\ngamma 0.5",
        "polynomial\ndegree -2\ngamma 1\ncoef0 1",
        3,
        "degree: -2 is negative",
    ),
    "serial numbers": ("rbf\ngamma 0.5", "precomputed", 9, "begins with 0:i"),
}


@pytest.mark.parametrize("name", WRONG_MODELS)
def test_wrong_models_name_the_line(name, tmp_path):
    old, new, line, message = WRONG_MODELS[name]
    assert old in MODEL
    path = tmp_path / "wrong.model"
    path.write_bytes(new if isinstance(new, bytes) else MODEL.replace(old, new).encode())
    where = "" if line is None else f", line {line}"
    with pytest.raises(ValueError, match=rf"(?s)wrong\.model{where}: .*{message}"):
        load_model(path)


def test_every_cut_of_a_model_file_is_noticed(tmp_path):
    path = tmp_path / "cut.model"
    for length in range(len(MODEL)):
        path.write_text(MODEL[:length])
        with pytest.raises(ValueError, match=re.escape(str(path))):
            load_model(path)
    path.write_text(MODEL)
    assert load_model(path).n_support_.sum() == 2


@settings(max_examples=200)
@given(data=st.data())
def test_no_change_of_a_model_file_raises_anything_but_value_errors(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "changed.model"
    text = bytearray(MODEL.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + 1] = data.draw(
            st.sampled_from([b"", b"9", b"-", b"\n", b" ", b"\xff"])
        )
    path.write_bytes(bytes(text))
    with contextlib.suppress(ValueError):
        load_model(path)
