"""The SQLite file behind a store: each commit is in it before the client gets its response."""

import os
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from kubewright.api import ConfigError, KubewrightError
from kubewright.devserver.storage.records import Record, read_labels

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    collection TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (collection, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO settings VALUES ('revision', 1);
"""


FORMAT = b"1"
"""Changed with the tables, or with how objects are encoded in them."""


class JournalError(KubewrightError):
    """A write to the data file failed, so nothing was changed; `first` is True for the first failure since a success."""

    def __init__(self, message: str, *, first: bool) -> None:
        super().__init__(message)
        self.first = first


class DataFile:
    """Write commits to a file in WAL mode, and read the state back at start."""

    def __init__(self, path: Path, kubernetes: str = "") -> None:
        """Open or create a file; raise ConfigError if it is not one, or of a newer version than `kubernetes` (`1.37`)."""
        self._path = path
        self._failing = False
        try:
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        except OSError as error:
            raise ConfigError(f"cannot keep a cluster in {path}: {error.strerror}") from None
        # The file is opened in a thread and used on the event loop, never by both at once.
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
            self._check_version(kubernetes)
        except sqlite3.Error as error:
            self._db.close()
            raise ConfigError(f"cannot keep a cluster in {path}: {error}") from None
        except ConfigError:
            self._db.close()
            raise

    def _prepare(self) -> None:
        # NORMAL writes the log at each commit but leaves flushing the disk to the system: a killed
        # process loses nothing, which is enough for a development server.
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.executescript(_SCHEMA)

    def _check_version(self, kubernetes: str) -> None:
        """Check the format of the file and the Kubernetes version of its objects, and write them into a new file."""
        form, version = self.setting("format"), (self.setting("kubernetes") or b"").decode()
        if form is None and self.revision() == 1:
            self.keep_setting("format", FORMAT)
        elif form != FORMAT:
            known = "an older format" if form is None else f"format {form.decode()}"
            raise ConfigError(
                f"{self._path} has {known}, this version of kubewright reads format {FORMAT.decode()}: "
                "choose another file, or delete it to start with an empty cluster"
            )
        if _minor(version) > _minor(kubernetes):
            raise ConfigError(
                f"{self._path} holds a cluster of Kubernetes {version}, this server is {kubernetes}: "
                "choose another file, or start that version"
            )
        if kubernetes and version != kubernetes:
            self.keep_setting("kubernetes", kubernetes.encode())

    def revision(self) -> int:
        """Return the revision of the last commit."""
        return int(self._db.execute("SELECT value FROM settings WHERE name = 'revision'").fetchone()[0])

    def collections(self) -> Iterator[tuple[str, list[Record]]]:
        """Yield all stored records, collection by collection, in key order."""
        rows = self._db.execute(
            "SELECT collection, key, revision, shape, data FROM objects ORDER BY collection, key"
        )
        name, records = "", list[Record]()
        for collection, key, revision, shape, data in rows:
            if collection != name:
                if records:
                    yield name, records
                name, records = collection, []
            records.append(Record(key, revision, data, shape, read_labels(data)))
        if records:
            yield name, records

    def write(self, collection: str, key: str, revision: int, record: Record | None) -> None:
        """Commit one change together with its revision; raise JournalError if the write fails."""
        run = self._db.execute
        with self._writing():
            run("BEGIN IMMEDIATE")
            if record is None:
                run("DELETE FROM objects WHERE collection = ? AND key = ?", (collection, key))
            else:
                row = (collection, key, revision, record.shape, record.data)
                run("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", row)
            run("UPDATE settings SET value = ? WHERE name = 'revision'", (revision,))
            run("COMMIT")

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
            self._failing = False
        except sqlite3.Error as error:
            first, self._failing = not self._failing, True
            full = error.sqlite_errorcode == sqlite3.SQLITE_FULL
            reason = "no space left on device: free some space and try again" if full else str(error)
            message = f"cannot write to the data file {self._path}: {reason}"
            raise JournalError(message, first=first) from None
        finally:
            # SQLite has rolled back by itself after some errors, a full disk among them.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def setting(self, name: str) -> bytes | None:
        """Return a setting, such as the server's keys."""
        row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def keep_setting(self, name: str, value: bytes) -> None:
        """Write a setting; raise JournalError if the write fails."""
        with self._writing():
            self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def close(self) -> None:
        """Write the log back into the file and close it."""
        self._db.close()


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")) if version else ()
