"""The drivers of the platform: what the controllers of sites.py reach by `c.external` where they run.

A database is an SQLite file, and the zone a file as name servers read it (RFC 1035, section 5), both in one folder. A
driver takes the same requests as its model in sites.py. Requests come from several threads, and may come again: a
controller that was stopped asks once more.
"""

import os
import sqlite3
import threading
from pathlib import Path

HEAD = "$ORIGIN .\n$TTL 60\n"


class Databases:
    """A service of databases: one file each."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._turn = threading.Lock()

    def __call__(self, request):
        """get, create, resize (gigabytes) or delete a database: `{address, size}`, or None where there is none."""
        path = self.folder / f"{request['name']}.db"
        with self._turn:
            if request["op"] == "delete":
                path.unlink(missing_ok=True)
            elif request["op"] != "get":
                self._keep(path, request["size"])
            return {"address": f"{path.stem}.db.internal", "size": self._size(path)} if path.exists() else None

    @staticmethod
    def _keep(path, size):
        with sqlite3.connect(path) as database:
            database.execute("create table if not exists bounds (gigabytes integer)")
            if not database.execute("update bounds set gigabytes = max(gigabytes, ?)", (size,)).rowcount:
                database.execute("insert into bounds values (?)", (size,))

    @staticmethod
    def _size(path):
        with sqlite3.connect(path) as database:
            return database.execute("select gigabytes from bounds").fetchone()[0]


class Zone:
    """A DNS zone: a line for each owner."""

    def __init__(self, path):
        self.path = Path(path)
        self._turn = threading.Lock()

    def __call__(self, request):
        """get, put or delete the record of an owner: `domain address`, or None where there is none."""
        with self._turn:
            records = self._read()
            if request["op"] == "put":
                records[request["owner"]] = request["record"]
            elif request["op"] == "delete":
                records.pop(request["owner"], None)
            if request["op"] != "get":
                self._write(records)
            return records.get(request["owner"])

    def _read(self):
        records = {}
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            record, _, owner = line.partition(" ; ")
            if owner:
                domain, _, address = record.split()
                records[owner] = f"{domain.rstrip('.')} {address.rstrip('.')}"
        return records

    def _write(self, records):
        """Beside the old one, then in its place: a name server reads one or the other."""
        lines = [HEAD]
        for owner in sorted(records):
            name, address = records[owner].split()
            lines.append(f"{name}. CNAME {address}. ; {owner}\n")
        new = self.path.with_suffix(".new")
        new.write_text("".join(lines))
        os.replace(new, self.path)
