"""The command line of kube-apiserver as the real one reads it."""

import pytest

from kubewright.envtest.etcd import EtcdFlagError, known_flags
from kubewright.envtest.etcd import parse as parse_etcd
from kubewright.envtest.flags import FlagError, KnownFlags, parse

KNOWN = KnownFlags.load()


def test_values_follow_in_the_same_or_the_next_word() -> None:
    found = parse(["--secure-port", "1", "--cert-dir=/tmp", "-v=3", "-v", "4"], {}, KNOWN)
    assert (found.text("secure-port"), found.text("cert-dir"), found.values["v"]) == ("1", "/tmp", ["3", "4"])


def test_a_boolean_takes_no_word_after_it() -> None:
    found = parse(["--allow-privileged", "--anonymous-auth=false"], {}, KNOWN)
    assert found.flag("allow-privileged")
    assert not found.flag("anonymous-auth", default=True)


def test_underscores_are_dashes() -> None:
    assert parse(["--secure_port=1"], {}, KNOWN).text("secure-port") == "1"


def test_lists_are_repeated_or_have_commas() -> None:
    found = parse(["--disable-admission-plugins=A, B", "--disable-admission-plugins=C"], {}, KNOWN)
    assert found.texts("disable-admission-plugins") == ["A", "B", "C"]


def test_the_command_line_wins_over_the_environment() -> None:
    found = parse(["--pods=simulated"], {"KUBEWRIGHT_ENVTEST_FLAGS": "--pods=process --controllers"}, KNOWN)
    assert (found.text("pods"), found.flag("controllers")) == ("simulated", True)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (["--", "word"], '"kube-apiserver" does not take any arguments, got \\["word"\\]'),
        (
            ["--allow-privileged=maybe"],
            'invalid argument "maybe" for "--allow-privileged" flag: strconv.ParseBool',
        ),
    ],
)
def test_mistakes_have_the_words_of_the_real_program(arguments: list[str], line: str) -> None:
    with pytest.raises(FlagError, match=line):
        parse(arguments, {}, KNOWN)


def test_etcd_takes_flags_with_one_dash() -> None:
    _, flags = known_flags()
    found = parse_etcd(["-data-dir", "/tmp/x", "--unsafe-no-fsync", "--name=a"], flags)
    assert found == {"data-dir": "/tmp/x", "unsafe-no-fsync": "true", "name": "a"}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--bogus"], "flag provided but not defined: -bogus"),
        (["--data-dir"], "flag needs an argument: -data-dir"),
        (["--unsafe-no-fsync=maybe"], 'invalid boolean value "maybe" for -unsafe-no-fsync: parse error'),
        (["word"], '"word" is not a valid flag'),
    ],
)
def test_mistakes_in_flags_of_etcd_have_the_words_of_the_real_program(
    arguments: list[str], line: str
) -> None:
    with pytest.raises(EtcdFlagError, match=line):
        parse_etcd(arguments, known_flags()[1])
