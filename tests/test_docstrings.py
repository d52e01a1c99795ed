"""Docstrings of all public objects: numpydoc's validation, and defaults as in the signatures."""

import ast
import inspect

import pytest

from docs._generate.public import classes_and_functions, members

# A test dependency that an environment with the oldest versions does not have.
docscrape = pytest.importorskip("numpydoc.docscrape")
validation = pytest.importorskip("numpydoc.validate")

# Parameters, returned values and summaries; the order of the sections; a docstring at all.
CODES = {code for code in validation.ERROR_MSGS if code[:2] in ("PR", "RT", "SS")}
CODES |= {"GL07", "GL08"}
CONTRASTIVE = "sklearn_pulse.base._contrastive.ContrastiveTransformer"
# Findings that stay, with the reason.
EXCEPTIONS = {
    (CONTRASTIVE, "PR02"): "a base without parameters describes a parameter of its subclasses",
    ("sklearn_pulse._tags.WindowTags", "PR01"): "scikit-learn documents the tags it defines",
}


def documented():
    """Public classes with their methods and properties, and public functions, by full name."""
    found = classes_and_functions()
    for value in list(found.values()):
        if inspect.isclass(value):
            found |= members(value)
    return found


OBJECTS = documented()


def findings(value):
    """Codes and messages of numpydoc."""
    errors = validation.validate(docscrape.get_doc_object(value))["errors"]
    return [(code, message) for code, message in errors if code in CODES]


def wrong_defaults(value):
    """Parameters whose documented default is another than that of the signature."""
    documented = docscrape.get_doc_object(value)["Parameters"]
    signature = inspect.signature(value).parameters
    for names, kind, _ in documented:
        _, stated, text = kind.partition("default=")
        for name in names.split(", ") if stated and signature else ():
            if name not in signature or not is_default(text, signature[name].default):
                yield name


def is_default(text, default):
    """Whether a default, as a docstring writes it, is that of the signature."""
    try:
        return ast.literal_eval(text) == default
    except (SyntaxError, ValueError):  # a constant or an object by its name
        return text in (repr(default), getattr(default, "__name__", None))


def test_numpydoc_validation():
    wrong = [
        f"{name}: {code} {message}"
        for name, value in OBJECTS.items()
        for code, message in findings(value)
        if (name, code) not in EXCEPTIONS
    ]
    assert not wrong, "\n".join(wrong)


def test_exceptions_are_needed():
    for name, code in EXCEPTIONS:
        assert code in dict(findings(OBJECTS[name])), (name, code)


def test_documented_defaults():
    wrong = [
        f"{name}: {parameter}"
        for name, value in OBJECTS.items()
        if callable(value)
        for parameter in wrong_defaults(value)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_public_class_and_function_has_an_example():
    """The examples run as doctests."""
    found = classes_and_functions()
    assert [name for name, value in found.items() if ">>> " not in (value.__doc__ or "")] == []
    assert len(found) > 150


def test_the_walk_sees_every_kind_of_object():
    assert len(OBJECTS) > 250
    assert {
        "sklearn_pulse._pulse.PulseTransformer",
        "sklearn_pulse._pulse.PulseTransformer.decoder_reliance",  # a method
        "sklearn_pulse._persistence._mixin.PretrainedMixin.from_pretrained",  # inherited
        "sklearn_pulse.base._encoder.WindowEmbedder.encoder_",  # a property
        "sklearn_pulse.functional.info_nce",  # from a module without __all__
    } <= OBJECTS.keys()


def lumped(first, second=1):
    """Adds two numbers.

    Parameters
    ----------
    first, second
        Both numbers.
    """
    return first + second


def stale(first=1):
    """Return a number.

    Parameters
    ----------
    first : int, default=2
        The number.

    Returns
    -------
    int
        The number.
    """
    return first


def test_the_gate_sees_faults():
    assert {code for code, _ in findings(lumped)} == {"PR04", "RT01", "SS05"}
    assert list(wrong_defaults(stale)) == ["first"]
