"""A small data file, and a server that sends it, another file, half of it or nothing."""

import hashlib
import http.server

from components.datasets.files import DataFile

CONTENT = bytes(range(256)) * 500
SHA256 = hashlib.sha256(CONTENT).hexdigest()
GIT_BLOB = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()
FILE = DataFile("toy", "toy/file.bin", (), len(CONTENT), "none", "nowhere", sha256=SHA256)


class Handler(http.server.BaseHTTPRequestHandler):
    """/good: the file; /other: another one; /short: the first half; everything else: 404."""

    def do_GET(self):
        self.server.asked.append(self.path)
        body = {
            "/good": CONTENT,
            "/other": b"<html>log in first</html>",
            "/short": CONTENT[: len(CONTENT) // 2],
        }.get(self.path)
        self.send_response(200 if body else 404)
        # A connection that breaks half-way: the header announces more than is sent.
        self.send_header(
            "Content-Length", str(len(CONTENT) if self.path == "/short" else len(body or b""))
        )
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):
        pass


def write_toy(folder, content=CONTENT):
    path = folder / FILE.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
