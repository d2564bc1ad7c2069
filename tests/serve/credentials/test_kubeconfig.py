"""Merging into kubeconfigs, and the token store."""

from __future__ import annotations

import base64
import os
import stat
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.serve.credentials.kubeconfig import (
    ADMIN,
    KubeconfigError,
    Tokens,
    admin_token,
    load_tokens,
    read_token,
    save_tokens,
    write_kubeconfig,
)
from steersman.serve.credentials.tokens import MAX_TOKENS, Identity
from steersman.serve.files import FileError, write_file

SERVER = "https://127.0.0.1:6443"
OTHERS = """\
apiVersion: v1
kind: Config
clusters:
- cluster: {server: https://one, insecure-skip-tls-verify: true}
  name: "on"
- name: two
  cluster:
    server: https://two
    extensions:
    - name: k
      extension: {last-update: 2020-01-01T00:00:00Z, version: "1.20", number: 007}
contexts: []
users: null
current-context: "on"
preferences: {colors: yes}
"""


def write(path: Path, token: str = "tok", **options: Any) -> None:
    write_kubeconfig(path, SERVER, b"PEM", token, **options)


def entry(document: dict[str, Any], section: str, name: str = "steersman") -> Any:
    found = [item for item in document[section] if item["name"] == name]
    assert len(found) == 1
    return found[0]


def load(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader=yaml.BaseLoader)  # every scalar as written


def test_a_new_kubeconfig(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config"
    write(path)
    document = yaml.safe_load(path.read_text())
    cluster = entry(document, "clusters")["cluster"]
    assert cluster["server"] == SERVER and base64.b64decode(cluster["certificate-authority-data"]) == b"PEM"
    assert entry(document, "users")["user"] == {"token": "tok"}
    assert entry(document, "contexts")["context"] == {"cluster": "steersman", "user": "steersman"}
    assert (document["kind"], document["apiVersion"], document["current-context"]) == ("Config", "v1", "steersman")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_token(path) == "tok" and read_token(path, "other") is None
    assert read_token(tmp_path / "missing") is None


def test_the_rest_of_the_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(OTHERS)
    path.chmod(0o644)
    write(path)
    write(path, "second")  # replaces, does not add
    document, before = load(path), yaml.load(OTHERS, Loader=yaml.BaseLoader)
    assert document["clusters"][:2] == before["clusters"] and len(document["clusters"]) == 3
    assert document["preferences"] == before["preferences"] and document["current-context"] == "on"
    assert entry(document, "users")["user"]["token"] == "second"
    assert list(document)[:4] == list(before)[:4]  # order too
    assert stat.S_IMODE(path.stat().st_mode) == 0o600  # it holds a token now
    write(path, use=True)
    assert load(path)["current-context"] == "steersman"
    assert [name.name for name in tmp_path.iterdir()] == ["config"]  # no temporary file is left


def test_a_json_kubeconfig_and_anchors_survive(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text('{"apiVersion":"v1","kind":"Config","clusters":[{"name":"a","cluster":{"server":"b"}}],"users":[]}')
    write(path)
    assert entry(load(path), "clusters", "a")["cluster"] == {"server": "b"} and read_token(path) == "tok"
    path.write_text("clusters:\n- &x {name: a, cluster: {server: b}}\nshared: *x\n")
    write(path)
    assert load(path)["shared"] == {"name": "a", "cluster": {"server": "b"}}


def test_text_beyond_ascii_stays_readable(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("clusters:\n- {name: grün-東京, cluster: {server: b}}\n")
    write(path)
    assert "grün-東京" in path.read_text()
    path.write_text('clusters:\n- {name: "a\\u2028b", cluster: {server: b}}\n')
    write(path)
    assert entry(load(path), "clusters", "a\u2028b")["cluster"] == {"server": "b"}


@given(
    st.dictionaries(
        st.sampled_from(["clusters", "users", "contexts"]),
        st.lists(
            st.fixed_dictionaries(
                {"name": st.text(max_size=8).filter(lambda name: name != "steersman")},
                optional={"cluster": st.dictionaries(st.text(max_size=6), st.text(max_size=60) | st.integers())},
            ),
            max_size=4,
        ),
    )
)
@settings(max_examples=20, deadline=None)
def test_any_other_entries_come_through(others: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "config"
        path.write_text(yaml.safe_dump({"kind": "Config", **others}))
        write(path)
        after = yaml.safe_load(path.read_text())
        for section, items in others.items():
            assert [item for item in after[section] if item["name"] != "steersman"] == items
        assert read_token(path) == "tok"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [1\nb: 2", "line 2: not YAML"),
        ("- a\n- b\n", "not a mapping"),
        ("just text", "not a mapping"),
        ("kind: Pod\napiVersion: v1\n", "kind is 'Pod'"),
        ("kind: Config\napiVersion: v2\n", "apiVersion 'v2'"),
        ("some: settings\nof: another program\n", "no kind and no clusters"),
        ("kind: Config\nclusters: {a: b}\n", "clusters: not a list"),
        ("kind: Config\n---\nkind: Config\n", "not YAML"),
        ("kind: Config\nclusters:\n- name: steersman\n  cluster: {server: x}\n", "'steersman' was made by another"),
        ("kind: Config\nusers:\n- name: steersman\n  user: {token: x}\n", "users: 'steersman' was made by another"),
        ("kind: Config\x00\n", "not YAML"),
        ("\udcff", "not UTF-8"),
    ],
)
def test_what_cannot_be_merged_is_told_and_left_alone(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "config"
    data = text.encode("utf-8", "surrogateescape")
    path.write_bytes(data)
    with pytest.raises(KubeconfigError, match=problem) as caught:
        write(path)
    assert str(path) in str(caught.value) and ";" in str(caught.value)
    assert path.read_bytes() == data


def test_symlinks_and_other_things_are_refused(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text(OTHERS)
    link.symlink_to(target)
    with pytest.raises(FileError, match="symlink"):
        write(link)
    link.unlink()
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileError, match="symlink"):
        write(link)
    assert target.read_text() == OTHERS and not (tmp_path / "nowhere").exists()
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(FileError):
            write(path)
    with pytest.raises(FileError, match="not a directory"):
        write(target / "below" / "config")
    (tmp_path / "big").write_bytes(b"#" * (5 << 20))
    with pytest.raises(FileError, match="over 4194304 bytes"):
        write(tmp_path / "big")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", denied)
    with pytest.raises(FileError, match="Permission denied; check its owner and mode"):
        write(tmp_path / "x" / "config")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config"
    write(path)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left on device; free some space"):
        write(path, "new")
    assert path.read_bytes() == before and [item.name for item in tmp_path.iterdir()] == ["config"]


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config"
    threads = [threading.Thread(target=write, args=(path, f"t{n}"), kwargs={"name": f"c{n}"}) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [read_token(path, f"c{n}") for n in range(8)] == [f"t{n}" for n in range(8)]


# -- tokens


def test_tokens_are_stored_as_hashes_only(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    assert len(load_tokens(path)) == 0
    tokens = Tokens()
    jane, joe = tokens.issue("jane", ["dev", "ops"]), tokens.issue("joe")
    assert len(jane) >= 43 and jane != joe
    save_tokens(path, tokens)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for token in (jane, joe):
        assert token not in path.read_text() and token not in repr(tokens)
    loaded = load_tokens(path)
    assert loaded.identify(jane) == Identity("jane", ("dev", "ops")) and loaded.identify(joe) == Identity("joe")
    for wrong in ("", jane[:-1], jane + "x", "ä\udcff", "x" * 10_000):
        assert loaded.identify(wrong) is None
    assert loaded.revoke("jane") == 1 and loaded.identify(jane) is None and loaded.identify(joe) is not None
    save_tokens(path, loaded)
    assert len(load_tokens(path)) == 1


def test_token_stores_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    for text, problem in (
        ("{", "is not a token store"),
        ("[]", "is not a token store"),
        ('{"version":2,"tokens":[]}', "version 2"),
        ('{"version":1,"tokens":[{"sha256":"ab","user":"u","groups":[]}]}', "is not a token store"),
        ('{"version":1,"tokens":[{"sha256":"%s","user":"u","groups":"g"}]}' % ("ab" * 32), "is not a token store"),
    ):
        write_file(path, text.encode(), 0o600)
        with pytest.raises(FileError, match=problem):
            load_tokens(path)
    path.chmod(0o644)
    with pytest.raises(FileError, match="chmod 600"):
        load_tokens(path)
    tokens = Tokens()
    for number in range(MAX_TOKENS):
        tokens.accept(f"t{number}", Identity("u"))
    tokens.accept("t0", Identity("v"))
    with pytest.raises(ValueError, match="revoke some"):
        tokens.issue("u")


def test_the_admin_keeps_its_token_over_a_restart(tmp_path: Path) -> None:
    path, store = tmp_path / "config", tmp_path / "tokens.json"
    tokens = Tokens()
    first = admin_token(tokens, path)
    write(path, first)
    save_tokens(store, tokens)
    again = load_tokens(store)
    assert admin_token(again, path) == first and len(again) == 1
    assert again.identify(first) == ADMIN
    assert admin_token(Tokens(), path) != first  # another store does not trust the file's word


def test_a_file_that_is_as_it_should_be_is_not_written_again(tmp_path):
    """So that a server starts on a full disk."""
    path = tmp_path / "tokens.json"
    tokens = Tokens()
    tokens.issue("ann")
    save_tokens(path, tokens)
    before = path.stat()
    save_tokens(path, tokens)
    assert path.stat().st_ino == before.st_ino
    path.chmod(0o644)
    save_tokens(path, tokens)
    assert path.stat().st_ino != before.st_ino and path.stat().st_mode & 0o777 == 0o600
