"""`lind mcp`: a call that would be denied waits until the client's user has said what he wants."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp_types import ElicitResult, InputRequiredResult, InputResponses

from .support import ERAS, User, connected, connected_by_web, data, text, web

CONNECT = ": </dev/tcp/127.0.0.1/{} && echo reached"


@pytest.fixture
def port() -> Iterator[int]:
    """A port of the host on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("era", ERAS)
async def test_the_call_goes_on_when_the_user_says_yes(era: str, port: int, project: Path) -> None:
    user = User()
    async with connected(era, user=user) as client:
        ran = data(await client.call_tool("run", {"command": CONNECT.format(port)}))
        assert (ran["output"].splitlines()[-1], ran["exit_code"], ran["denials"]) == ("reached", 0, [])
        (asked,) = user.asked
        assert f"connect tcp 127.0.0.1:{port}" in asked and CONNECT.format(port) in asked
        data(await client.call_tool("run", {"command": CONNECT.format(port)}))
        assert len(user.asked) == 2, "once was for one call"
        assert data(await client.call_tool("explain"))["asks"]


@pytest.mark.parametrize("era", ERAS)
async def test_an_answer_for_all_commands(era: str, port: int, project: Path) -> None:
    user = User(decision="session")
    async with connected(era, user=user) as client:
        for _ in range(3):
            assert data(await client.call_tool("run", {"command": CONNECT.format(port)}))["exit_code"] == 0
        assert len(user.asked) == 1


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("user", [User("decline"), User("cancel"), User(decision="no"), User(decision="yes, and all others"), User(decision=["session"])])
async def test_all_but_a_yes_is_a_no(era: str, user: User, port: int, project: Path) -> None:
    async with connected(era, user=user) as client:
        ran = data(await client.call_tool("run", {"command": CONNECT.format(port)}))
        assert ran["exit_code"] == 1 and [denied["what"] for denied in ran["denials"]] == [f"connect tcp 127.0.0.1:{port}"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_without_a_user_gets_the_denial_at_once(era: str, port: int, project: Path) -> None:
    async with connected(era, "--ask", "10m") as client:
        began = time.monotonic()
        ran = data(await client.call_tool("run", {"command": CONNECT.format(port)}))
        assert ran["denials"] and time.monotonic() - began < 60


@pytest.mark.parametrize("era", ERAS)
async def test_the_time_of_a_command_does_not_run_while_it_waits(era: str, port: int, project: Path) -> None:
    class Slow(User):
        async def __call__(self, *arguments: object) -> ElicitResult:
            await anyio.sleep(3)
            return await super().__call__(*arguments)  # type: ignore[arg-type]

    async with connected(era, user=Slow()) as client:
        ran = data(await client.call_tool("run", {"command": CONNECT.format(port), "timeout": 2}))
        assert ran["exit_code"] == 0 and ran["seconds"] < 2


@pytest.mark.parametrize("era", ERAS)
async def test_a_command_in_the_background_asks_when_it_is_polled(era: str, port: int, project: Path) -> None:
    user = User()
    async with connected(era, user=user) as client:
        began = data(await client.call_tool("run", {"command": CONNECT.format(port), "background": True}))
        ended = data(await client.call_tool("poll", {"id": began["id"], "wait": 60}))
        assert (ended["output"].splitlines()[-1], ended["running"]) == ("reached", False) and len(user.asked) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_when_nobody_answers(era: str, port: int, project: Path) -> None:
    class Away(User):
        async def __call__(self, *arguments: object) -> ElicitResult:
            await anyio.sleep(2)
            return await super().__call__(*arguments)  # type: ignore[arg-type]

    async with connected(era, "--ask", "500ms", user=Away()) as client:
        ran = data(await client.call_tool("run", {"command": CONNECT.format(port)}))
        assert ran["exit_code"] == 1 and len(ran["denials"]) == 1, "the answer came too late"


async def test_a_question_names_nothing_that_a_terminal_acts_on(project: Path) -> None:
    user = User("decline")
    async with connected("legacy", "-v", ".:rw", user=user) as client:
        data(await client.call_tool("run", {"command": "mkdir $'\\e[2J'; echo x >$'\\e[2J/.envrc'"}))
    assert user.asked and all("\x1b" not in asked for asked in user.asked)
    assert any("\\x1b[2J/.envrc" in asked for asked in user.asked)


async def test_the_state_of_a_question_is_for_one_call(port: int, project: Path) -> None:
    """A client cannot use it for another call, change it, or use it twice."""
    async with connected("auto", user=User()) as client:
        command = {"command": CONNECT.format(port)}
        asked = await client.session.call_tool("run", command, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult) and asked.input_requests and asked.request_state
        (key,) = asked.input_requests
        yes: InputResponses = {key: ElicitResult(action="accept", content={"decision": "once"})}
        for arguments, state in (({"command": "echo other"}, asked.request_state), (command, asked.request_state[:-4] + "AAAA"), (command, "v1.x")):
            with pytest.raises(Exception, match="Invalid or expired requestState"):
                await client.session.call_tool("run", arguments, input_responses=yes, request_state=state)
        ran = data(await client.call_tool("run", command, input_responses=yes, request_state=asked.request_state))
        assert ran["exit_code"] == 0
        again = data(await client.call_tool("run", command, input_responses=yes, request_state=asked.request_state))
        assert (again["id"], again["seconds"]) == (ran["id"], ran["seconds"]), "it is the same command, which has ended"


@pytest.mark.parametrize("era", ERAS)
async def test_by_http(era: str, port: int, project: Path) -> None:
    user = User()
    with web() as (_, address, token):
        async with connected_by_web(era, address, token, user) as client:
            result = await client.call_tool("run", {"command": CONNECT.format(port)})
            assert data(result)["exit_code"] == 0 and "reached" in text(result) and len(user.asked) == 1
