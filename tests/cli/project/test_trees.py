"""Several files at once: all of them, or nothing changed."""

from pathlib import Path

import pytest

from kubewright.api import ConfigError
from kubewright.cli.project.trees import write_tree


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()
    }


def test_a_new_folder_appears_with_all_its_files(tmp_path: Path) -> None:
    write_tree(tmp_path / "a" / "b", {"x/y.txt": "1", "z.txt": "2"})
    assert contents(tmp_path) == {"a/b/x/y.txt": "1", "a/b/z.txt": "2"}


def test_files_are_added_replaced_and_removed_together(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "kept.txt").write_text("kept")
    (tmp_path / "tool").write_text("before")
    (tmp_path / "tool").chmod(0o755)
    write_tree(tmp_path, {"new/x.txt": "1", "tool": "after"}, remove=["old.txt"])
    assert contents(tmp_path) == {"kept.txt": "kept", "new/x.txt": "1", "tool": "after"}
    assert (tmp_path / "tool").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("moment", ["write_text", "replace", "unlink"])
def test_a_failure_at_any_moment_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    (tmp_path / "a.txt").write_text("before")
    (tmp_path / "old.txt").write_text("old")
    before = contents(tmp_path)
    real, calls = getattr(Path, moment), 0

    def failing(self: Path, *arguments: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        # The second file fails where there are two, the one removal at once.
        if calls == (1 if moment == "unlink" else 2):
            raise OSError(28, "No space left on device", str(self))
        return real(self, *arguments, **options)

    monkeypatch.setattr(Path, moment, failing)
    with pytest.raises(ConfigError, match="No space left on device; nothing was changed"):
        write_tree(tmp_path, {"a.txt": "after", "sub/b.txt": "new"}, remove=["old.txt"])
    monkeypatch.undo()
    assert contents(tmp_path) == before
    assert not (tmp_path / "sub").exists()


def test_a_directory_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"^cannot write .*/file/shop: .*; nothing was changed"):
        write_tree(tmp_path / "file" / "shop", {"a.txt": "1"})


def test_an_interrupted_folder_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_tree(tmp_path / "shop", {"a.txt": "1"})
    assert list(tmp_path.iterdir()) == []
