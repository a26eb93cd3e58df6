"""`kubewright bundle` and `kubewright scorecard` in a project."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from kubewright.cli.app import main

GOLDEN = Path(__file__).parents[2] / "golden" / "shop"
IMAGE = ("--image", "registry.example/shop:1")


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(GOLDEN, tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def say(shop: Path, table: str) -> None:
    path = shop / "pyproject.toml"
    path.write_text(path.read_text() + f"\n[tool.kubewright.bundle]\n{table}\n")


def test_the_bundle_takes_its_catalog_texts_from_pyproject(shop: Path) -> None:
    (shop / "shop.svg").write_text("<svg/>")
    say(
        shop,
        'display_name = "The Shop"\nicon = "shop.svg"\nchannels = ["stable"]\ncapability = "Deep Insights"\n'
        'maintainers = [{name = "A", email = "a@example.com"}, {name = "without address"}]\n',
    )
    assert exit_code("bundle", *IMAGE, "--replaces", "shop.v0.0.9") == 0
    csv = yaml.safe_load((shop / "bundle" / "manifests" / "shop.clusterserviceversion.yaml").read_text())
    assert csv["metadata"]["annotations"]["capabilities"] == "Deep Insights"
    assert (csv["spec"]["displayName"], csv["spec"]["replaces"]) == ("The Shop", "shop.v0.0.9")
    assert csv["spec"]["icon"] == [{"base64data": "PHN2Zy8+", "mediatype": "image/svg+xml"}]
    assert csv["spec"]["maintainers"] == [{"name": "A", "email": "a@example.com"}]
    (example,) = json.loads(csv["metadata"]["annotations"]["alm-examples"])
    assert example["spec"] == {"message": "hello"}


def test_a_bundle_is_checked_against_the_declarations(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("bundle", *IMAGE, "--check") == 1
    assert not (shop / "bundle").exists()
    assert exit_code("bundle", *IMAGE) == 0
    assert exit_code("bundle", *IMAGE, "--check") == 0
    assert exit_code("bundle", "--image", "other", "--check") == 1
    assert "stale: " in capsys.readouterr().out


def test_a_dockerfile_that_was_not_generated_is_kept(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "bundle.Dockerfile").write_text("FROM mine\n")
    assert exit_code("bundle", *IMAGE) == 1
    assert "so it is not overwritten" in capsys.readouterr().err
    assert (shop / "bundle.Dockerfile").read_text() == "FROM mine\n"
    assert not (shop / "bundle").exists()


@pytest.mark.parametrize(
    ("table", "arguments", "message"),
    [
        ("", ["--version", "one"], "not a semantic version"),
        ('colour = "red"', [], "unknown key 'colour': choose from"),
        ('capability = "Everything"', [], "choose from Basic Install"),
        ('icon = "shop.txt"', [], "gif, jpeg, png and svg"),
        ('icon = "none.png"', [], "cannot read the icon"),
        ('channels = "stable"', [], "expected a list of strings"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(
    table: str, arguments: list[str], message: str, shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say(shop, table)
    assert exit_code("bundle", *IMAGE, *arguments) == 1
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1
    assert not (shop / "bundle").exists()


def test_the_scorecard_shows_the_level_and_what_the_next_one_needs(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("scorecard") == 0
    shown = capsys.readouterr().out
    assert shown.count("pass  ") == 6
    assert "level 1 of 5: Basic Install\n      for level 2, users choose what runs" in shown
    assert exit_code("scorecard", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["capability"] == "Basic Install"


def test_a_kind_without_tests_on_a_cluster_has_no_level(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop / "tests" / "test_cart.py").unlink()
    assert exit_code("scorecard") == 0
    assert (
        "level 0 of 5: none yet\n      for level 1, tests show it on a cluster: test Cart"
        in capsys.readouterr().out
    )


def test_a_failed_check_ends_with_1(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "samples" / "cart.yaml").write_text(
        "apiVersion: shop.example.com/v1\nkind: Cart\nmetadata: {name: a}\nspec: {colour: red}\n"
    )
    assert exit_code("scorecard") == 1
    assert "FAIL  olm-crds-have-validation\n      spec.colour of Cart" in capsys.readouterr().out
