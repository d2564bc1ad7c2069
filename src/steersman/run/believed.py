"""The file that says whose tokens are believed, read at the start and again whenever it has changed."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from steersman.run.load import StartError
from steersman.serve.credentials.issuers.provider import Issuers
from steersman.serve.credentials.issuers.settings import read_settings
from steersman.serve.files import FileError, read_file

LOOK_SECONDS: Final = 10.0
"""How often the file is looked at: it is small, and people who mend it wait for it."""
log = logging.getLogger("steersman.run")


class Believed:
    """Issuers that a file names; nobody, without a file."""

    def __init__(self, path: Path | None) -> None:
        """Raises `FileError` and `StartError`."""
        self.issuers = Issuers()
        self._path = path
        self._data = b""
        if path is None:
            return
        try:
            self._data = read_file(path)
        except FileNotFoundError:
            raise StartError(f"--authentication-config {path}: there is no such file") from None
        self.issuers.use(read_settings(self._data, str(path)))

    async def follow(self) -> None:
        """Fetches the issuers' keys, and does what the file says from then on; what is wrong changes nothing."""
        if self._path is None:
            return
        await self.issuers.warm()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Reads the file, and uses it where it says something new."""
        assert self._path is not None
        try:
            data = read_file(self._path)
            if data == self._data:
                return
            self._data = data
            self.issuers.use(read_settings(data, str(self._path)))
        except (FileError, FileNotFoundError) as error:
            log.error("the settings of before stay: %s", error)
            return
        log.info("%s is in use as it is now", self._path)
        await self.issuers.warm()
