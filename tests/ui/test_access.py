"""Who may talk to the server of the live page: each rule, through HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from http_wire import Reply, connected
from page_client import browser

from kubewright.http.server import Limits
from kubewright.serving import BindAddress, BoundHttpServer
from kubewright.ui.access import PageAccess
from kubewright.ui.handler import PageHandler, StaticFile
from kubewright.ui.state import PageState, SourceDescription
from kubewright.ui.stream import PageDescription

DESCRIPTION = PageDescription(
    title="test", source=SourceDescription("dev", "a test"), writable=True, live=True, samples=False
)
FILES = {
    "/": StaticFile(b"<!doctype html><title>page</title>", "text/html; charset=utf-8"),
    "/static/page.js": StaticFile(b"export {}", "text/javascript; charset=utf-8"),
}


class Page:
    """A page on a port, asked with chosen headers."""

    def __init__(self, link: str) -> None:
        self.link = link
        self.port = urlsplit(link).port or 0
        self.token = link.partition("token=")[2]
        self.cookie = f"kubewright-ui-{self.port}={self.token}"

    async def ask(self, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> Reply:
        given = {"Host": f"127.0.0.1:{self.port}", "Content-Length": str(len(body))} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        async with connected(self.port) as wire:
            lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
            wire.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            return await wire.reply()


@asynccontextmanager
async def served(description: PageDescription = DESCRIPTION) -> AsyncIterator[Page]:
    state, access = PageState(), PageAccess()
    handler = PageHandler(state, access, lambda: description, files=FILES)
    async with BoundHttpServer(BindAddress("127.0.0.1", 0), handler, limits=Limits(), grace=1.0) as server:
        access.bind(server.port)
        yield Page(access.link)
        state.close()


async def test_the_link_becomes_a_cookie_and_leaves_the_address() -> None:
    async with served() as page:
        reply = await page.ask(f"/?token={page.token}")
        assert reply.status == 303
        assert reply.headers["location"] == "/"
        assert reply.headers["set-cookie"] == f"{page.cookie}; HttpOnly; SameSite=Strict; Path=/"
        assert page.token not in reply.text


@pytest.mark.parametrize(
    "path", ["/", "/static/page.js", "/api/stream", "/api/snapshot", "/api/object", "/x"]
)
async def test_everything_else_needs_the_cookie(path: str) -> None:
    async with served() as page:
        reply = await page.ask(path)
        assert reply.status == 401
        assert "Open the link" in reply.text
        assert "script" not in reply.text


async def test_the_page_and_its_files_are_served_with_the_cookie() -> None:
    async with served() as page:
        reply = await page.ask("/", Cookie=f"other=1; {page.cookie}")
        assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
        reply = await page.ask("/static/page.js", Cookie=page.cookie)
        assert (reply.status, reply.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
        reply = await page.ask("/static/../page.py", Cookie=page.cookie)
        assert reply.status == 404


@pytest.mark.parametrize(
    "cookie",
    [
        "kubewright-ui-{port}=wrong",
        "kubewright-ui-{port}=",
        "kubewright-ui-1={token}",
        "{token}",
        "x={token}",
    ],
)
async def test_a_wrong_cookie_is_refused(cookie: str) -> None:
    async with served() as page:
        reply = await page.ask("/", Cookie=cookie.format(port=page.port, token=page.token))
        assert reply.status == 401


@pytest.mark.parametrize(
    "path", ["/?token=wrong", "/?token=", "/api/stream?token={token}", "/x?token={token}"]
)
async def test_only_the_link_itself_gives_access(path: str) -> None:
    async with served() as page:
        reply = await page.ask(path.format(token=page.token))
        assert reply.status == 401
        assert "set-cookie" not in reply.headers


@pytest.mark.parametrize(
    "host", ["attacker.example", "attacker.example:{port}", "127.0.0.1", "127.0.0.1:1", ""]
)
async def test_another_host_is_refused_even_with_the_token(host: str) -> None:
    async with served() as page:
        for path in ("/", f"/?token={page.token}"):
            reply = await page.ask(path, Host=host.format(port=page.port), Cookie=page.cookie)
            assert reply.status in (400, 421)
            assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "LOCALHOST:{port}"])
async def test_the_names_of_the_loopback_interface_are_allowed(host: str) -> None:
    async with served() as page:
        reply = await page.ask("/", Host=host.format(port=page.port), Cookie=page.cookie)
        assert reply.status == 200


@pytest.mark.parametrize(
    "origin", ["http://attacker.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1"]
)
async def test_another_origin_is_refused(origin: str) -> None:
    async with served() as page:
        given = origin.format(port=page.port)
        assert (await page.ask("/", Cookie=page.cookie, Origin=given)).status == 403
        action = await page.ask(
            "/api/actions",
            "POST",
            b'{"action":"delete","uid":"1"}',
            Cookie=page.cookie,
            Origin=given,
            Content_Type="application/json",
        )
        assert action.status == 403


async def test_the_same_origin_is_allowed() -> None:
    async with served() as page:
        reply = await page.ask("/", Cookie=page.cookie, Origin=f"http://127.0.0.1:{page.port}")
        assert reply.status == 200


async def test_every_response_has_the_security_headers() -> None:
    async with served() as page:
        for path, cookie in (
            ("/", ""),
            ("/", page.cookie),
            ("/api/object?uid=1", page.cookie),
            ("/x", page.cookie),
        ):
            headers = (await page.ask(path, Cookie=cookie)).headers
            policy = headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            assert "access-control-allow-origin" not in headers
        assert (await page.ask("/api/object?uid=1", Cookie=page.cookie)).headers[
            "cache-control"
        ] == "no-store"


async def test_actions_need_json_the_cookie_and_a_limited_body() -> None:
    action = b'{"action":"delete","uid":"1"}'
    async with served() as page:
        reply = await page.ask("/api/actions", "POST", action, Content_Type="application/json")
        assert reply.status == 401
        # A form of another website can send no other types than these.
        for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            reply = await page.ask(
                "/api/actions", "POST", action, Cookie=page.cookie, Content_Type=content_type
            )
            assert reply.status == 415
        reply = await page.ask("/api/actions", Cookie=page.cookie)
        assert reply.status == 405
        reply = await page.ask("/", "POST", Cookie=page.cookie)
        assert reply.status == 405
        async with connected(page.port) as wire:
            head = f"POST /api/actions HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nCookie: {page.cookie}\r\n"
            wire.writer.write(f"{head}Content-Length: 99000000\r\n\r\n".encode())
            assert (await wire.reply()).status == 413


async def test_an_action_on_a_page_that_may_not_write_is_refused() -> None:
    async with served() as page, browser(page.link) as client:
        assert "--allow-writes" in await client.act(403, action="delete", uid="1")


async def test_a_new_server_has_another_token() -> None:
    async with served() as one, served() as other:
        assert one.token != other.token
        assert len(one.token) >= 40
        reply = await other.ask("/", Cookie=f"kubewright-ui-{other.port}={one.token}")
        assert reply.status == 401
