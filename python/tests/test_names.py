"""Every public name of the C++ headers is in Python, or in the list below with what takes its place."""

import pathlib
import re

import pytest

import onesum

HEADERS = pathlib.Path(__file__).parents[2] / "include" / "onesum"

INSTEAD = {
    "Float16": "numpy.float16",
    "BFloat16": "ml_dtypes.bfloat16",
    "InterruptCheck": "Ctrl-C",
    "Cluster.state": "internal",
    "Device.hash": "hash()",
    "Error.code": "an attribute of the classes of onesum.errors",
    "Plan.value": "for the plan tools of C++",
    "Tensor.data": "Tensor.numpy",
    "Tensor.from": "Tensor.from_",
    "Tensor.state": "internal",
    "Tensor.to_dlpack": "Tensor.__dlpack__",
}


def declarations(text):
    """(kind, name, body) of the classes and enumerations of a header, without comments and nested braces."""
    text = re.sub(r"//[^\n]*", "", text)
    for head in re.finditer(r"^(class|struct|enum class) (?:ONESUM_API )?(\w+)[^;{()]*\{", text, re.M):
        depth, body = 1, ""
        for character in text[head.end() :]:
            depth += {"{": 1, "}": -1}.get(character, 0)
            if depth == 0:
                break
            body += character if depth == 1 else ";" if character == "{" else ""
        yield head[1], head[2], body.replace("}", ";")


def members(kind, name, body):
    """What of a class can be named from outside: its functions and fields."""
    if kind == "class":
        body = body.partition("public:")[2]
    body = re.split(r"private:|protected:", body)[0]
    for one in body.split(";"):
        one = re.sub(r"^template <[^>]*>\s*", "", " ".join(one.split()))
        if re.match(r"(friend|using|struct|class|[,)]|$)", one) or "operator" in one or "~" in one:
            continue
        found = re.search(r"(\w+)\(", one) or re.search(r"(\w+)(?: =.*)?$", one)
        if found and found[1] != name:
            yield found[1]


def python_name(enumerator):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", enumerator[1:]).upper()


def public_names():
    for header in sorted(HEADERS.glob("*.h")):
        text = header.read_text()
        yield from re.findall(r"^ONESUM_API [^\n(]*?(\w+)\(", text, re.M)
        for kind, name, body in declarations(text):
            yield name
            if kind == "enum class":
                yield from (f"{name}.{python_name(one)}" for one in re.findall(r"\bk\w+", body))
            else:
                yield from (f"{name}.{one}" for one in members(kind, name, body))


def has(dotted):
    thing = onesum
    for part in dotted.split("."):
        if not hasattr(thing, part):
            return False
        thing = getattr(thing, part)
    return True


@pytest.fixture(scope="module")
def names():
    assert HEADERS.is_dir(), "this test belongs to a checkout"
    return set(public_names())


def test_headers_are_understood(names):
    """Some of every sort, so that a change of style does not make the next test blind."""
    some = "Collective Collective.all_to_all Collective.receiver ReduceOp.BIT_XOR DType.BFLOAT16 parse_dtype"
    some += " Cluster.group PointToPoint.start_recv MirroredStrategy.run Tensor.data CallReport.waited_for"
    assert set(some.split()) <= names
    assert len(names) > 200
    assert not {"Cluster.state_", "PointToPoint.Impl", "Work.State"} & names


def test_every_name_is_there(names):
    missing = sorted(name for name in names if name.split(".")[0] not in INSTEAD and not has(name))
    assert set(missing) <= set(INSTEAD), "bind it, or say in INSTEAD what takes its place"


def test_the_list_is_no_longer_than_it_must_be(names):
    assert set(INSTEAD) <= names
    assert not [name for name in INSTEAD if has(name)]
