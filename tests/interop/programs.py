"""Programs for the pods of interop tests: coroutines that behave like the commands kubectl's users know."""

import io
import tarfile

FILES: dict[str, bytes] = {}
"""The files of all pods, by path."""


async def read_all(streams) -> bytes:
    data = b""
    while piece := await streams.read():
        data += piece
    return data


async def cat(streams, words, pod):
    while data := await streams.read():
        await streams.write(data)
    return 0


async def fail(streams, words, pod):
    await streams.error(b"bad\n")
    return 3


async def words_of(streams, words, pod):
    await streams.write(f"{pod.key.name}: {' '.join(words[1:])}\n".encode())
    return 0


async def shell(streams, words, pod):
    """Echoes as a terminal does, tells the terminal's size, and exits as it is told."""
    columns, rows = await streams.resized()
    await streams.write(f"{columns}x{rows}$ ".encode())
    line = b""
    while data := await streams.read():
        await streams.write(data.replace(b"\r", b"\r\n"))
        line += data
        if line.endswith(b"\r"):
            if line.startswith(b"exit "):
                return int(line[5:-1])
            line = b""
    return 0


async def tar(streams, words, pod):
    """What `kubectl cp` asks of tar, and `test -d` of a folder."""
    if words[1] == "cf":
        paths = [word for word in words[2:] if word in FILES]
        if not paths:
            await streams.error(f"tar: {words[-1]}: no such file\n".encode())
            return 2
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in paths:
                info = tarfile.TarInfo(path.lstrip("/"))
                info.size = len(FILES[path])
                archive.addfile(info, io.BytesIO(FILES[path]))
        await streams.write(packed.getvalue())
        return 0
    folder = words[words.index("-C") + 1] if "-C" in words else "/"
    with tarfile.open(fileobj=io.BytesIO(await read_all(streams))) as archive:
        for info in archive:
            if (file := archive.extractfile(info)) is not None:
                FILES[f"{folder.rstrip('/')}/{info.name}"] = file.read()
    return 0


async def no_folder(streams, words, pod):
    """`test -d`: there are only files."""
    return 1


async def web(duplex, pod):
    """One HTTP answer."""
    head = b""
    while b"\r\n\r\n" not in head:
        if not (data := await duplex.read()):
            return
        head += data
    body = f"hello from {pod.key.name}\n".encode()
    await duplex.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))


async def shout(duplex, pod):
    while data := await duplex.read():
        await duplex.write(data.upper())


COMMANDS = {"cat": cat, "fail": fail, "echo": words_of, "sh": shell, "tar": tar, "test": no_folder}
PORTS = {80: web, 7: shout}
