"""The files of a store: one process at a time, by whatever name it calls them."""

import os

import pytest

from steersman.journal import JournalError
from steersman.run.load import StartError
from steersman.run.place import Place
from steersman.serve.files import FileError


def test_a_store_in_use_is_refused(tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    with Place(url), pytest.raises(StartError, match=f"{url} is in use by process {os.getpid()}"), Place(url):
        pass
    with Place(url):
        pass


def test_a_symlink_to_a_store_in_use_is_refused(tmp_path):
    (tmp_path / "link.db").symlink_to("a.db")
    real, link = f"sqlite:{tmp_path / 'a.db'}", f"sqlite:{tmp_path / 'link.db'}"
    with Place(real), pytest.raises(StartError, match="is in use"), Place(link):
        pass
    with Place(link) as place:
        assert place.pki == tmp_path / "a.db.pki"


def test_a_store_that_others_can_read_is_refused(tmp_path):
    with Place(f"sqlite:{tmp_path / 'a.db'}"):
        pass
    (tmp_path / "a.db").chmod(0o644)
    with pytest.raises(FileError, match=r"can be read by others .mode 0644.; run: chmod 600"):
        Place(f"sqlite:{tmp_path / 'a.db'}").__enter__()
    (tmp_path / "a.db").chmod(0o600)
    with Place(f"sqlite:{tmp_path / 'a.db'}"):
        pass


def test_a_file_with_two_names_is_refused(tmp_path):
    with Place(f"sqlite:{tmp_path / 'a.db'}"):
        pass
    os.link(tmp_path / "a.db", tmp_path / "b.db")
    for name in ("a.db", "b.db"):
        with pytest.raises(JournalError, match="hard link"), Place(f"sqlite:{tmp_path / name}"):
            pass
    (tmp_path / "a.db").unlink()
    with Place(f"sqlite:{tmp_path / 'b.db'}"):
        pass
