"""`lind mcp`: a call that would be denied waits until the client's user has said what he wants."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import pytest
from mcp_types import ElicitResult, InputRequiredResult, InputResponses

from .support import ERAS, User, connected, connected_by_web, data, text, web

# The policy protects such a file of a volume.
COMMAND = "echo x >.envrc && echo reached"
VOLUME = ("-v", ".:rw")


@pytest.mark.parametrize("era", ERAS)
async def test_the_call_goes_on_when_the_user_says_yes(era: str, project: Path) -> None:
    user = User()
    async with connected(era, *VOLUME, user=user) as client:
        ran = data(await client.call_tool("run", {"command": COMMAND}))
        assert (ran["output"].splitlines()[-1], ran["exit_code"], ran["denials"]) == ("reached", 0, [])
        (asked,) = user.asked
        assert f"{project}/.envrc" in asked and COMMAND in asked
        data(await client.call_tool("run", {"command": COMMAND}))
        assert len(user.asked) == 2, "once was for one call"
        assert data(await client.call_tool("explain"))["asks"]


@pytest.mark.parametrize("era", ERAS)
async def test_an_answer_for_all_commands(era: str, project: Path) -> None:
    user = User(decision="session")
    async with connected(era, *VOLUME, user=user) as client:
        for _ in range(3):
            assert data(await client.call_tool("run", {"command": COMMAND}))["exit_code"] == 0
        assert len(user.asked) == 1


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("user", [User("decline"), User("cancel"), User(decision="no"), User(decision="yes, and all others"), User(decision=["session"])])
async def test_all_but_a_yes_is_a_no(era: str, user: User, project: Path) -> None:
    async with connected(era, *VOLUME, user=user) as client:
        ran = data(await client.call_tool("run", {"command": COMMAND}))
        assert ran["exit_code"] == 1 and len(ran["denials"]) == 1 and ".envrc" in ran["denials"][0]["what"] and not (project / ".envrc").exists()


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_without_a_user_gets_the_denial_at_once(era: str, project: Path) -> None:
    async with connected(era, *VOLUME, "--ask", "10m") as client:
        began = time.monotonic()
        ran = data(await client.call_tool("run", {"command": COMMAND}))
        assert ran["denials"] and time.monotonic() - began < 60


@pytest.mark.parametrize("era", ERAS)
async def test_the_time_of_a_command_does_not_run_while_it_waits(era: str, project: Path) -> None:
    class Slow(User):
        async def __call__(self, *arguments: object) -> ElicitResult:
            await anyio.sleep(3)
            return await super().__call__(*arguments)  # type: ignore[arg-type]

    async with connected(era, *VOLUME, user=Slow()) as client:
        ran = data(await client.call_tool("run", {"command": COMMAND, "timeout": 2}))
        assert ran["exit_code"] == 0 and ran["seconds"] < 2


@pytest.mark.parametrize("era", ERAS)
async def test_a_command_in_the_background_asks_when_it_is_polled(era: str, project: Path) -> None:
    user = User()
    async with connected(era, *VOLUME, user=user) as client:
        began = data(await client.call_tool("run", {"command": COMMAND, "background": True}))
        ended = data(await client.call_tool("poll", {"id": began["id"], "wait": 60}))
        assert (ended["output"].splitlines()[-1], ended["running"]) == ("reached", False) and len(user.asked) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_when_nobody_answers(era: str, project: Path) -> None:
    class Away(User):
        async def __call__(self, *arguments: object) -> ElicitResult:
            await anyio.sleep(2)
            return await super().__call__(*arguments)  # type: ignore[arg-type]

    async with connected(era, *VOLUME, "--ask", "500ms", user=Away()) as client:
        ran = data(await client.call_tool("run", {"command": COMMAND}))
        assert ran["exit_code"] == 1 and len(ran["denials"]) == 1, "the answer came too late"


async def test_a_question_names_nothing_that_a_terminal_acts_on(project: Path) -> None:
    user = User("decline")
    async with connected("legacy", "-v", ".:rw", user=user) as client:
        data(await client.call_tool("run", {"command": "mkdir $'\\e[2J'; echo x >$'\\e[2J/.envrc'"}))
    assert user.asked and all("\x1b" not in asked for asked in user.asked)
    assert any("\\x1b[2J/.envrc" in asked for asked in user.asked)


async def test_the_state_of_a_question_is_for_one_call(project: Path) -> None:
    """A client cannot use it for another call, change it, or use it twice."""
    async with connected("auto", *VOLUME, user=User()) as client:
        command = {"command": COMMAND}
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
async def test_by_http(era: str, project: Path) -> None:
    user = User()
    with web(*VOLUME) as (_, address, token):
        async with connected_by_web(era, address, token, user) as client:
            result = await client.call_tool("run", {"command": COMMAND})
            assert data(result)["exit_code"] == 0 and "reached" in text(result) and len(user.asked) == 1
